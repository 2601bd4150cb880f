"""Public grids: near-duplicates share a cell; rows are rounded, hard, with slopes, or by a grid for every slot."""

import numpy as np
import pytest

from ppdp import Adjacency, Distance, Domain
from ppdp.data.rows import Rows
from ppdp.exceptions import InvalidParameter, MissingBound, UnsupportedOrder
from ppdp.transformers import Deduplicator, GridDeduplicator, GridQuantizer, NormClipper

ONE = Adjacency.replace().distance

DOMAIN = Domain(n_rows=100, n_features=2, row_norm=1.0, entry_bound=0.9, min_present=100)


def near_copies(n, copies, rng, spread=1e-6):
    """Rows, of which the last few are near-copies of the first."""
    rows = rng.uniform(-0.6, 0.6, size=(n, 2))
    rows[n - copies :] = rows[:copies] + rng.uniform(-spread, spread, size=(copies, 2))
    return rows


def cells(stage, rows):
    """Cell of every row, one after the other, by the definition."""
    sides = np.broadcast_to(stage.cell_width, rows.shape[1])
    origin = np.random.Generator(np.random.PCG64(stage.seed)).random(rows.shape[1]) * sides
    return [
        tuple("gap" if np.isnan(x) else np.floor((x - o) / s) for x, o, s in zip(row, origin, sides)) for row in rows
    ]


@pytest.mark.parametrize("labels", ["record", "unanimous", "first"])
@pytest.mark.parametrize("keep", ["centre", "first"])
@pytest.mark.parametrize("cell", [0.5, [0.3, 1.0]])
@pytest.mark.repeated("cell")
def test_the_rules_cell_by_cell(keep, labels, cell):
    rng = np.random.default_rng(0)
    for seed in range(20):
        rows = np.where(rng.random((25, 2)) < 0.2, np.nan, rng.uniform(-1, 1, size=(25, 2)))
        y = rng.integers(2, size=25).astype(float)
        stage = GridDeduplicator(cell, keep=keep, label_rule=labels, seed=seed)
        groups = {}
        for i, key in enumerate(cells(stage, rows)):
            groups.setdefault((*key, y[i]) if labels == "record" else key, []).append(i)
        kept = [g for g in groups.values() if labels != "unanimous" or len({y[i] for i in g}) == 1]
        short, ys = stage.fit_resample(rows, y)
        assert len(short) == len(kept)
        if keep == "first":
            first = [min(g, key=lambda i: (*np.where(np.isnan(rows[i]), np.inf, rows[i]), y[i])) for g in kept]
            np.testing.assert_array_equal(short, rows[sorted(first)])
            assert ys.tolist() == y[sorted(first)].tolist()
        elif labels == "first":
            assert sorted(ys) == sorted(min(y[i] for i in g) for g in kept)


class TestCentre:
    def test_a_row_is_half_a_cell_from_its_centre_at_most(self):
        rows = np.random.default_rng(0).uniform(-1, 1, size=(50, 3))
        stage = GridDeduplicator(1e-3)
        short, _ = stage.fit_resample(rows)
        assert np.abs(short - rows).max() <= 0.5e-3 * (1 + 1e-9)
        assert cells(stage, short) == cells(stage, rows)

    def test_rows_stay_inside_the_domain(self):
        """Centres of cells at the border lie outside, and are clipped."""
        rng = np.random.default_rng(0)
        rows = NormClipper(1.0).fit_transform(np.clip(rng.normal(size=(100, 2)), -0.9, 0.9))
        stage = GridDeduplicator(0.7)
        (way,) = stage.fit_modes(DOMAIN, ONE)
        assert way.domain == DOMAIN.but(min_present=1)
        out = stage.apply(Rows.of(rows), stage.prepare(Rows.of(rows), way, DOMAIN))
        assert (np.linalg.norm(out.X, axis=1) <= 1.0).all()
        assert (np.abs(out.X) <= 0.9).all()
        assert (out.X[out.weight == 0] == 0).all()

    def test_gaps_stay_gaps_and_are_cells_of_their_own(self):
        rows = np.array([[np.nan, 0.1], [np.nan, 0.1001], [0.1, 0.1], [np.nan, np.nan]])
        short, _ = GridDeduplicator(0.5).fit_resample(rows)
        assert np.isnan(short).tolist() == [[True, False], [False, False], [True, True]]

    def test_the_same_cell_has_the_same_centre_to_the_last_bit(self):
        rng = np.random.default_rng(0)
        rows = rng.uniform(0, 1, size=(9000, 2))
        stage = GridDeduplicator(0.1)
        statistics = {"sides": np.full(2, 0.1), "row_norm": 1.2, "entry_bound": np.inf}
        results = [stage.apply(Rows.of(part), statistics) for part in (rows, rows[::-1])]
        records = [{row.tobytes() for row in out.X[out.weight > 0]} for out in results]
        assert records[0] == records[1]


class TestOutsideAPipeline:
    def test_weights_of_a_cell_are_equal_and_sum_to_one(self):
        rows = np.array([[0.1], [0.1001], [3.0], [0.1002]])
        stage = GridDeduplicator(0.5, keep="soft")
        np.testing.assert_allclose(stage.weights(rows), [1 / 3, 1 / 3, 1, 1 / 3])
        assert stage.weights(rows, [0, 1, 0, 1]).tolist() == [1, 0.5, 1, 0.5]
        assert stage.set_params(label_rule="first").weights(rows, [0, 1, 0, 1]).sum() == pytest.approx(2)
        with pytest.raises(InvalidParameter, match="weights"):
            stage.fit_resample(rows)

    def test_near_copies_are_found(self):
        rows = near_copies(600, 200, np.random.default_rng(0))
        assert len(GridDeduplicator(0.001).fit_resample(rows)[0]) <= 405
        assert len(Deduplicator().fit_resample(rows)[0]) == 600

    def test_the_seed_moves_the_grid(self):
        rows = near_copies(100, 20, np.random.default_rng(0))
        counts = {len(GridDeduplicator(0.2, seed=seed).fit_resample(rows)[0]) for seed in range(5)}
        assert len(counts) > 1


class TestDistance:
    def test_the_centre_is_free(self):
        for distance in (ONE, Distance(replaced=2), Distance(toggled=3)):
            _, out = GridDeduplicator(0.1).stability_map(DOMAIN, distance)
            assert (out.replaced, out.toggled, out.mass, out.one_sided, out.moved) == (
                distance.replaced,
                distance.toggled,
                distance.mass,
                distance.one_sided,
                0,
            )

    def test_the_first_row_moves_inside_its_cell_if_that_can_be_said(self):
        _, out = GridDeduplicator([0.03, 0.04], keep="first").stability_map(DOMAIN, ONE)
        assert (out.replaced, out.toggled, out.moved, out.mass) == (1, 0, 1, 2)
        assert out.radius == pytest.approx(0.05)
        assert GridDeduplicator(1.7, keep="first").stability_map(DOMAIN, ONE)[1].radius == 2.0
        for labels, domain in (("first", DOMAIN), ("unanimous", DOMAIN), ("record", DOMAIN.but(row_norm=None))):
            _, out = GridDeduplicator(0.1, keep="first", label_rule=labels).stability_map(domain, ONE)
            assert (out.toggled, out.moved, out.mass) == (2, 0, 4)

    def test_weights_say_that_they_are_weights(self):
        domain, out = GridDeduplicator(0.1, keep="soft").stability_map(DOMAIN, ONE)
        assert (out.reweighted, out.mass, out.one_sided) == (100, 2, 1.5)
        assert domain.min_present == 1
        with pytest.raises(UnsupportedOrder, match="weights"):
            Deduplicator().fit_modes(domain, out)

    def test_raw_keys_behind_a_stage_that_moves_all_rows(self):
        moved = Distance(replaced=1, moved=99, radius=0.01)
        for keep, mass in (("first", 4), ("soft", 2)):
            _, out = GridDeduplicator(0.1, keep=keep, compare="raw").stability_map(DOMAIN, moved)
            assert (out.moved, out.radius, out.mass) == (99, 0.01, mass)


MODES = ["hard", "staircase", "dither"]
QUANTIZED = Domain(n_rows=1000, n_features=4, row_norm=1.0)
ROUNDED = np.array([[0.3, -0.2], [0.8, np.nan], [-0.74, 0.0]])


def test_rows_go_to_the_nearest_centre():
    out = GridQuantizer(cell_width=0.5).fit_transform(ROUNDED)
    np.testing.assert_array_equal(out, [[0.5, 0.0], [0.8, np.nan], [-0.5, 0.0]])  # 1.0 is more than any entry was


def test_the_default_cell_is_a_tenth_of_the_norm():
    (way,) = GridQuantizer().fit_modes(QUANTIZED.but(row_norm=3.0), ONE)
    assert way.parameters["cell"] == pytest.approx(0.3)
    with pytest.raises(MissingBound, match="row_norm"):
        GridQuantizer().fit_modes(Domain(n_rows=10, n_features=2), ONE)


def test_a_staircase_is_flat_inside_and_continuous():
    stage = GridQuantizer(cell_width=1.0, mode="staircase", soft_edge=0.2).fit([[3.0]])
    x = np.array([[0.0], [0.39], [0.4], [0.45], [0.5], [0.6], [1.3], [-0.45]])
    np.testing.assert_allclose(stage.transform(x).ravel(), [0, 0, 0, 0.25, 0.5, 1, 1, -0.25], atol=1e-12)
    whole = GridQuantizer(cell_width=1.0, mode="staircase", soft_edge=1).fit([[3.0]])
    np.testing.assert_allclose(whole.transform(x), x, atol=1e-12)


def test_dither_is_for_slots_and_averages_out():
    domain = Domain(n_rows=20000, n_features=1, row_norm=1.0)
    stage = GridQuantizer(cell_width=0.4, mode="dither", seed=5)
    (way,) = stage.fit_modes(domain, ONE)
    rows = Rows.of(np.full((20000, 1), 0.13))
    statistics = stage.prepare(rows, way, domain)
    out = stage.apply(rows, statistics).X
    assert np.ptp(out) > 0.39
    assert out.mean() == pytest.approx(0.13, abs=0.005)
    assert (out == stage.apply(rows, statistics).X).all()
    assert (stage.map_rows(rows.X, statistics) == 0).all()  # a new row has no slot: the nearest centre
    assert (out != GridQuantizer(cell_width=0.4, mode="dither", seed=6).apply(rows, statistics).X).any()


@pytest.mark.parametrize("mode", MODES)
def test_it_costs_nothing_where_no_row_has_moved(mode):
    assert GridQuantizer(mode=mode).stability_map(QUANTIZED, ONE) == (QUANTIZED, ONE)
    assert GridQuantizer(mode=mode).conditions(QUANTIZED, ONE) == ()


def test_what_it_costs_behind_rows_that_moved():
    moved = Distance(replaced=1, moved=10, radius=0.01)
    hard, slopes = (GridQuantizer(0.1, mode).stability_map(QUANTIZED, moved)[1] for mode in ("hard", "staircase"))
    assert (hard.radius, hard.total) == pytest.approx((0.01 + 0.2, 0.1 + 10 * 0.2))
    assert (slopes.radius, slopes.total) == pytest.approx((0.02, 0.2))
