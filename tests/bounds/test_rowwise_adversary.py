"""Row-wise maps against an adversary: equal rows stay equal, moved rows move by the Lipschitz constant at most."""

import numpy as np
import pytest
from adversary import DISTANCES, World, attack, domains, named
from effort import rounds
from neighbours import ROUNDING, Chain, Pair, by_position, shares

from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.transformers import MeanImputer, MinMaxScaler, NormClipper, RowMap


def stages(d):
    return {
        "clip": NormClipper(0.6),
        "ranges": MinMaxScaler(ranges=[(-0.5, 1.0), (-1.0, 0.25), (0.0, 0.5)][:d]),
        "narrow ranges": MinMaxScaler(ranges=(-2.0, 2.0), feature_range=(0.25, 0.5)),
        "smooth map": RowMap(np.tanh, out_ranges=(-0.5, 1.0), lipschitz=1.0),
        "affine map": RowMap(lambda X: 2 * X[:, :1] - 0.1, out_ranges=[(-1.0, 3.0)], lipschitz=2.0),
    }


@pytest.mark.parametrize("name", stages(1))
@pytest.mark.parametrize("domain", domains(8, 1, 3), ids=named)
@pytest.mark.parametrize("distance", DISTANCES, ids=named)
@pytest.mark.repeated("domain")
def test_no_pair_exceeds_the_map(name, domain, distance):
    gaps = 0 if name.endswith("map") else 8  # a user's function may give a row with gaps others
    domain = domain.but(max_missing=gaps)
    world = World(domain, distance, gaps=gaps, labels=True, deleted=True)
    chain = Chain.of([stages(domain.d)[name]], domain, distance)
    reached, _ = attack(world, lambda pair: chain.use(pair, world.free), draws=8, steps=8 if distance.moved else 3)
    assert reached <= ROUNDING


@pytest.mark.parametrize("name", stages(1))
def test_moves_reach_the_lipschitz_constant(name):
    distance = Distance(moved=3, radius=0.02, total=0.05)
    world = World(Domain(n_rows=8, n_features=3, row_norm=1.0, max_missing=0), distance)
    chain = Chain.of([stages(3)[name]], world.domain, distance)
    for number in ("radius", "total"):
        reached, _ = attack(
            world,
            lambda pair, number=number: shares(by_position(pair.mapped(chain.run)), chain.distance)[number],
            steps=200,
        )
        assert 0.95 <= reached <= ROUNDING


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
