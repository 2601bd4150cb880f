"""Near-duplicates by a grid: one row per cell, at its centre, its first row, or all of them with equal weights."""

import numpy as np
import pandas as pd
import pytest

from ppdp import Adjacency, Distance, Domain, make_pipeline
from ppdp.data.rows import Rows
from ppdp.exceptions import DomainMismatch, InvalidParameter, UnsupportedOrder
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.transformers import Deduplicator, GridDeduplicator, MinMaxScaler, NormClipper, StandardScaler

ONE = Adjacency.replace().distance

DOMAIN = Domain(n_rows=100, n_features=2, row_norm=1.0, entry_bound=0.9, min_present=100)


def near_copies(n, copies, rng, spread=1e-6):
    """Rows, of which the last few are near-copies of the first."""
    rows = rng.uniform(-0.6, 0.6, size=(n, 2))
    rows[n - copies :] = rows[:copies] + rng.uniform(-spread, spread, size=(copies, 2))
    return rows


def cells(stage, rows):
    """Cell of every row, one after the other, by the definition."""
    sides = np.broadcast_to(stage.cell, rows.shape[1])
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
        stage = GridDeduplicator(cell, keep=keep, labels=labels, seed=seed)
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
        (way,) = stage.ways(DOMAIN, ONE)
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
    def test_every_kind_of_data_stays_what_it_is(self):
        pl = pytest.importorskip("polars")
        rows = np.array([[0.1, 0.1], [0.1001, 0.1], [3.0, 4.0]])
        frame = pd.DataFrame(rows, columns=["u", "v"], index=["p", "q", "r"])
        for keep in ("centre", "first"):
            stage = GridDeduplicator(0.5, keep=keep)
            short, labels = stage.fit_resample(frame, pd.Series([1, 1, 0], index=frame.index))
            assert (short.columns.tolist(), short.index.tolist(), labels.tolist()) == (["u", "v"], ["p", "r"], [1, 0])
            short, _ = stage.fit_resample(pl.DataFrame(rows, schema=["u", "v"]))
            assert (type(short), short.columns, short.shape) == (pl.DataFrame, ["u", "v"], (2, 2))
            assert isinstance(stage.fit_resample(rows)[0], np.ndarray)

    def test_weights_of_a_cell_are_equal_and_sum_to_one(self):
        rows = np.array([[0.1], [0.1001], [3.0], [0.1002]])
        stage = GridDeduplicator(0.5, keep="soft")
        np.testing.assert_allclose(stage.weights(rows), [1 / 3, 1 / 3, 1, 1 / 3])
        assert stage.weights(rows, [0, 1, 0, 1]).tolist() == [1, 0.5, 1, 0.5]
        assert stage.set_params(labels="first").weights(rows, [0, 1, 0, 1]).sum() == pytest.approx(2)
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


class TestParameters:
    @pytest.mark.parametrize(
        ("kind", "parameters", "says"),
        [
            (InvalidParameter, {"cell": 0}, "cell"),
            (InvalidParameter, {"cell": "a"}, "cell"),
            (InvalidParameter, {"cell": np.nan}, "cell"),
            (InvalidParameter, {"cell": [0.1, -1]}, "cell"),
            (DomainMismatch, {"cell": [0.1]}, "1 sides for 2 columns"),
            (DomainMismatch, {"cell": [0.1, 0.1], "keep": "first", "keys": "raw"}, "raw rows"),
            (InvalidParameter, {"keep": "mean"}, "keep"),
            (InvalidParameter, {"labels": "majority"}, "labels"),
            (InvalidParameter, {"keep": "soft", "labels": "unanimous"}, "soft"),
            (InvalidParameter, {"seed": -1}, "seed"),
            (InvalidParameter, {"keys": "old"}, "keys"),
            (InvalidParameter, {"keys": "raw"}, "centre"),
        ],
    )
    def test_impossible(self, kind, parameters, says):
        with pytest.raises(kind, match=says):
            GridDeduplicator(**parameters).ways(DOMAIN, ONE)


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
            _, out = GridDeduplicator(0.1, keep="first", labels=labels).stability_map(domain, ONE)
            assert (out.toggled, out.moved, out.mass) == (2, 0, 4)

    def test_weights_say_that_they_are_weights(self):
        domain, out = GridDeduplicator(0.1, keep="soft").stability_map(DOMAIN, ONE)
        assert (out.reweighted, out.mass, out.one_sided) == (100, 2, 1.5)
        assert domain.min_present == 1
        with pytest.raises(UnsupportedOrder, match="weights"):
            Deduplicator().ways(domain, out)

    def test_raw_keys_behind_a_stage_that_moves_all_rows(self):
        moved = Distance(replaced=1, moved=99, radius=0.01)
        for keep, mass in (("first", 4), ("soft", 2)):
            _, out = GridDeduplicator(0.1, keep=keep, keys="raw").stability_map(DOMAIN, moved)
            assert (out.moved, out.radius, out.mass) == (99, 0.01, mass)


class TestInAPipeline:
    rows = near_copies(800, 300, np.random.default_rng(1))
    y = (rows[:, 0] > 0).astype(int)

    @pytest.mark.parametrize("labels", ["record", "unanimous", "first"])
    @pytest.mark.parametrize("keep", ["centre", "first"])
    def test_certified_predictions(self, keep, labels):
        grid = GridDeduplicator(0.02, keep=keep, labels=labels)
        stages = MinMaxScaler(ranges=(-1, 1)), grid, LogisticRegression(classes=(0, 1), max_iter=5)
        pipe = make_pipeline(*stages, epsilon=20.0, delta=1e-4, random_state=0).fit(self.rows, self.y)
        assert pipe.certificate_.verify()
        assert pipe.predict(self.rows[:5]).shape == (5,)

    def test_a_mean_of_weighted_rows(self):
        stages = NormClipper(1.0), GridDeduplicator(0.001, keep="soft"), GaussianMechanism()
        pipe = make_pipeline(*stages, epsilon=20.0, delta=1e-4, random_state=0).fit(self.rows)
        assert pipe.certificate_.verify()
        step = pipe.certificate_["steps"][1]
        assert step["parameters"] == {"cell": [0.001, 0.001], "seed": 0, "labels": "record", "raw": False}

    def test_raw_keys_behind_a_scaler(self):
        grid = GridDeduplicator(0.01, keep="first", keys="raw")
        stages = MinMaxScaler(ranges=(-1, 1)), StandardScaler(), grid, GaussianMechanism()
        pipe = make_pipeline(*stages, epsilon=20.0, delta=1e-4, random_state=0).fit(self.rows)
        assert pipe.certificate_.verify()
