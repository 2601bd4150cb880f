"""Grids against an adversary: rows that moved end no further apart than certified, and equal rows stay equal."""

import numpy as np
import pytest
from adversary import World, domains
from neighbours import Chain, Pair, by_position, shares

from ppdp.bounds import lookup
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.rows import Rows
from ppdp.exceptions import CertificateError
from ppdp.transformers import GridQuantizer

STAGES = {
    "coarse": GridQuantizer(cell=0.7),
    "fine": GridQuantizer(cell=1e-3),
    "staircase": GridQuantizer(cell=0.4, mode="staircase", ramp=0.3),
    "slope only": GridQuantizer(cell=0.4, mode="staircase", ramp=1),
    "dither": GridQuantizer(cell=0.4, mode="dither", seed=3),
}


@pytest.mark.parametrize("name", STAGES)
def test_no_row_moves_further_than_half_a_cell(name):
    """Projecting back on the box and the ball brings no row further away."""
    stage, rng = STAGES[name], np.random.default_rng(1)
    for domain in domains(200, 2, 5):
        rows = World(domain).draw(rng).left
        (way,) = stage.ways(domain, Distance(replaced=1))
        out = stage.apply(rows, stage.prepare(rows, way, domain))
        share = 1 - stage.ramp if stage.mode == "staircase" else 1
        most = share * stage.cell / 2 * np.sqrt(domain.d)
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
    assert attained(GridQuantizer(cell=1.0), corner - 1e-9, corner + 1e-9, names) == pytest.approx([1, 1, 1], abs=1e-7)


def test_rows_on_a_slope_attain_the_lipschitz_constant():
    stage = GridQuantizer(cell=1.0, mode="staircase", ramp=0.25)
    slope = np.array([[0.5, -0.5], [1.5, 2.5]])
    names = "moved", "radius", "total"
    assert attained(stage, slope - 0.05, slope + 0.05, names) == pytest.approx([1, 1, 1], abs=1e-7)


def test_a_staircase_has_no_jumps():
    stage = GridQuantizer(cell=0.5, mode="staircase", ramp=0.2).fit(np.ones((1, 1)))
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


@pytest.mark.parametrize(
    ("mode", "parameters"),
    [("hard", {"cell": 0.0}), ("hard", {"cell": 3.0}), ("staircase", {"ramp": 0.0}), ("dither", {"seed": -1})],
)
def test_impossible_parameters_of_a_forged_certificate(mode, parameters):
    given = {"cell": 0.5} | parameters
    with pytest.raises(CertificateError):
        lookup(f"quantization.{mode}", "stability")(
            Domain(n_rows=3, n_features=2, row_norm=1.0), Distance(moved=1, radius=1), **given
        )
