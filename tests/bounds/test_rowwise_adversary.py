"""Row-wise maps and grids against an adversary: equal rows stay equal, moved rows end no further apart than said."""

import numpy as np
import pytest
from adversary import World, attack, domains
from effort import rounds
from neighbours import ROUNDING, Chain, Pair, by_position, shares

from ppdp.bounds import lookup
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.rows import Rows
from ppdp.transformers import GridQuantizer, MeanImputer, MinMaxScaler, RowMap


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


STAGES = {
    "coarse": GridQuantizer(cell_width=0.7),
    "fine": GridQuantizer(cell_width=1e-3),
    "staircase": GridQuantizer(cell_width=0.4, mode="staircase", soft_edge=0.3),
    "slope only": GridQuantizer(cell_width=0.4, mode="staircase", soft_edge=1),
    "dither": GridQuantizer(cell_width=0.4, mode="dither", seed=3),
}


@pytest.mark.parametrize("name", STAGES)
def test_no_row_moves_further_than_half_a_cell(name):
    """Projecting back on the box and the ball brings no row further away."""
    stage, rng = STAGES[name], np.random.default_rng(1)
    for domain in domains(200, 2, 5):
        rows = World(domain).draw(rng).left
        (way,) = stage.fit_modes(domain, Distance(replaced=1))
        out = stage.apply(rows, stage.prepare(rows, way, domain))
        share = 1 - stage.soft_edge if stage.mode == "staircase" else 1
        most = share * stage.cell_width / 2 * np.sqrt(domain.d)
        assert np.linalg.norm(out.X - rows.X, axis=1).max() <= most + 1e-12


def attained(stage, left, right, names):
    """Shares of a pair of rows as far apart as its distance says."""
    pair = Pair.of(left, right)
    distance = by_position(pair)
    domain = Domain(n_rows=pair.left.n, n_features=pair.left.X.shape[1], row_norm=10.0)
    chain = Chain.of([stage], domain, distance)
    used = shares(by_position(pair.mapped(chain.run)), chain.distance)
    return [used[name] for name in names]


def test_rows_on_either_side_of_a_corner_of_cells_attain_the_jump():
    corner = np.array([[0.5, 0.5, 0.5], [1.5, -0.5, 2.5]])
    names = "moved", "radius", "total"
    assert attained(GridQuantizer(cell_width=1.0), corner - 1e-9, corner + 1e-9, names) == pytest.approx(
        [1, 1, 1], abs=1e-7
    )


def test_rows_on_a_slope_attain_the_lipschitz_constant():
    stage = GridQuantizer(cell_width=1.0, mode="staircase", soft_edge=0.25)
    slope = np.array([[0.5, -0.5], [1.5, 2.5]])
    names = "moved", "radius", "total"
    assert attained(stage, slope - 0.05, slope + 0.05, names) == pytest.approx([1, 1, 1], abs=1e-7)


def test_a_staircase_has_no_jumps():
    stage = GridQuantizer(cell_width=0.5, mode="staircase", soft_edge=0.2).fit(np.ones((1, 1)))
    x = np.linspace(-1, 1, 20001)[:, None]
    y = stage.transform(x)
    assert np.diff(y, axis=0).max() <= 1e-4 / 0.2 * (1 + 1e-9)
    assert (np.diff(y, axis=0) >= 0).all()
    assert (np.diff(y, axis=0) == 0).mean() > 0.75  # flat on the rest of each cell


def test_a_dithered_row_must_stay_in_its_slot():
    """Two equal rows that change places are mapped differently, so rows that match in any order are charged."""
    distance = Distance(replaced=1, reordered=2)
    domain = Domain(n_rows=3, n_features=2, row_norm=1.0)
    certified = {
        mode: lookup(f"quantization.{mode}", "stability")(domain, distance, cell=0.5, **more)[1]
        for mode, more in (("hard", {}), ("staircase", {"ramp": 0.5}), ("dither", {"seed": 0}))
    }
    assert certified["hard"] == certified["staircase"] == distance
    assert certified["dither"] == distance.by_position() == Distance(replaced=1, toggled=2, one_sided=2)
    rows = Rows.of(np.full((2, 2), 0.3))
    stage = STAGES["dither"]
    out = stage.apply(rows, {"cell": 0.4, "row_norm": 1.0, "entry_bound": 1.0}).X
    assert (out[0] != out[1]).any()
