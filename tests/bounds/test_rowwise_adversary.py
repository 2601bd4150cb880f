"""Row-wise maps against an adversary: equal rows stay equal, moved rows move by the Lipschitz constant at most."""

import numpy as np
from adversary import World, attack
from effort import rounds
from neighbours import ROUNDING, Chain, Pair, by_position, shares

from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.transformers import MeanImputer, MinMaxScaler, RowMap


def test_a_map_without_lipschitz_constant_turns_moved_rows_into_replaced_ones():
    distance = Distance(replaced=1, toggled=1, moved=3, radius=1e-3)
    world = World(Domain(n_rows=8, n_features=2, row_norm=1.0), distance)
    chain = Chain.of([RowMap(np.sign, out_ranges=(-1, 1))], world.domain, distance)
    assert (chain.distance.replaced, chain.distance.moved) == (4, 0)
    torn = [0, *range(world.roles[2].start, world.roles[2].stop)]

    def used(pair):
        return max(shares(by_position(pair.mapped(chain.run), torn), chain.distance).values())

    rng = np.random.default_rng(0)
    X = rng.choice([-1e-4, 1e-4], size=(8, 2))
    reached, _ = attack(world, used, first=[Pair.of(X, -X)])
    assert reached == 1


def test_rounding_is_charged_to_the_total_as_well():
    """Rows that are 1e-12 apart: what float64 adds is visible, and the certified radius and total allow for it."""
    distance = Distance(moved=1, radius=1e-12)
    domain = Domain(n_rows=1, n_features=5, row_norm=1.1)
    chain = Chain.of([MinMaxScaler(ranges=(-3, 3), feature_range=(-3, 3))], domain, distance)
    rng = np.random.default_rng(0)
    grown = 0.0
    for _ in range(rounds(1000)):
        x, step = rng.standard_normal((2, 1, 5))
        x /= np.linalg.norm(x)
        pair = Pair.of(x, x + 0.999 * distance.radius * step / np.linalg.norm(step))
        if by_position(pair).radius > distance.radius:
            continue
        out = by_position(pair.mapped(chain.run))
        grown = max(grown, out.total / distance.total)
        assert max(shares(out, chain.distance).values()) <= ROUNDING
    assert grown > 1.00005


def holes(X):
    """The identity on rows without gaps; a row with gaps loses its large entries as well."""
    incomplete = np.isnan(X).any(axis=1, keepdims=True)
    return np.where(incomplete & (X > 0.5), np.nan, X)


def test_a_row_that_moved_may_get_other_gaps():
    """1-Lipschitz, and yet the means behind it see a row replaced for every row with gaps.

    Nothing tests how many those are: a declaration that the rows do not keep must not be what the distance rests on.
    """
    n, gaps = 100, 20
    domain = Domain(n_rows=n, n_features=2, row_norm=2.0, entry_bound=1.0, max_missing=1)
    distance = Distance(replaced=1, moved=n - 1, radius=1e-3)
    stages = [RowMap(holes, out_ranges=(-1, 1), lipschitz=1.0), MeanImputer(min_observed=n - gaps)]
    chain = Chain.of(stages, domain, distance)
    left = np.column_stack([np.full(n, 0.4995), np.zeros(n)])
    left[:gaps, 1] = np.nan
    right = left + 1e-3
    after = chain.steps[0][1].distance
    mapped = [stages[0].fit_transform(X) for X in (left, right)]
    other_gaps = (np.isnan(mapped[0]) != np.isnan(mapped[1])).any(axis=1).sum()
    assert gaps == other_gaps <= after.replaced
    assert (after.replaced, after.moved) == (n, 0)
    none = domain.but(max_missing=0)
    assert stages[0].stability_map(none, distance)[1].replaced == 1
