"""GridQuantizer: a public grid, hard, with slopes, or with a grid for every slot."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ppdp import Adjacency, Distance, Domain, make_pipeline
from ppdp.data.rows import Rows
from ppdp.exceptions import InvalidParameter, MissingBound
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.transformers import GridQuantizer, MinMaxScaler, StandardScaler

ONE = Adjacency.replace().distance

MODES = ["hard", "staircase", "dither"]
DOMAIN = Domain(n_rows=1000, n_features=4, row_norm=1.0)
X = np.array([[0.3, -0.2], [0.8, np.nan], [-0.74, 0.0]])


def test_rows_go_to_the_nearest_centre():
    out = GridQuantizer(cell=0.5).fit_transform(X)
    np.testing.assert_array_equal(out, [[0.5, 0.0], [0.8, np.nan], [-0.5, 0.0]])  # 1.0 is more than any entry was


def test_the_default_cell_is_a_tenth_of_the_norm():
    (way,) = GridQuantizer().ways(DOMAIN.but(row_norm=3.0), ONE)
    assert way.parameters["cell"] == pytest.approx(0.3)
    with pytest.raises(MissingBound, match="row_norm"):
        GridQuantizer().ways(Domain(n_rows=10, n_features=2), ONE)


def test_a_staircase_is_flat_inside_and_continuous():
    stage = GridQuantizer(cell=1.0, mode="staircase", ramp=0.2).fit([[3.0]])
    x = np.array([[0.0], [0.39], [0.4], [0.45], [0.5], [0.6], [1.3], [-0.45]])
    np.testing.assert_allclose(stage.transform(x).ravel(), [0, 0, 0, 0.25, 0.5, 1, 1, -0.25], atol=1e-12)
    whole = GridQuantizer(cell=1.0, mode="staircase", ramp=1).fit([[3.0]])
    np.testing.assert_allclose(whole.transform(x), x, atol=1e-12)


def test_dither_is_for_slots_and_averages_out():
    domain = Domain(n_rows=20000, n_features=1, row_norm=1.0)
    stage = GridQuantizer(cell=0.4, mode="dither", seed=5)
    (way,) = stage.ways(domain, ONE)
    rows = Rows.of(np.full((20000, 1), 0.13))
    statistics = stage.prepare(rows, way, domain)
    out = stage.apply(rows, statistics).X
    assert np.ptp(out) > 0.39
    assert out.mean() == pytest.approx(0.13, abs=0.005)
    assert (out == stage.apply(rows, statistics).X).all()
    assert (stage.map_rows(rows.X, statistics) == 0).all()  # a new row has no slot: the nearest centre
    assert (out != GridQuantizer(cell=0.4, mode="dither", seed=6).apply(rows, statistics).X).any()


@pytest.mark.parametrize("mode", MODES)
def test_it_costs_nothing_where_no_row_has_moved(mode):
    assert GridQuantizer(mode=mode).stability_map(DOMAIN, ONE) == (
        DOMAIN,
        ONE,
    )
    assert GridQuantizer(mode=mode).conditions(DOMAIN, ONE) == ()


def test_what_it_costs_behind_rows_that_moved():
    moved = Distance(replaced=1, moved=10, radius=0.01)
    hard, slopes = (GridQuantizer(0.1, mode).stability_map(DOMAIN, moved)[1] for mode in ("hard", "staircase"))
    assert (hard.radius, hard.total) == pytest.approx((0.01 + 0.2, 0.1 + 10 * 0.2))
    assert (slopes.radius, slopes.total) == pytest.approx((0.02, 0.2))


@pytest.mark.parametrize("mode", MODES)
def test_in_a_pipeline(mode):
    rng = np.random.default_rng(0)
    data, y = rng.uniform(0, 1, (4000, 3)), rng.integers(2, size=4000)
    stages = (
        MinMaxScaler(ranges=(0, 1)),
        GridQuantizer(cell=0.25, mode=mode, seed=2),
        StandardScaler(statistics="exact"),
    )
    for mechanism in (LogisticRegression(classes=(0, 1), max_iter=5), GaussianMechanism()):
        pipe = make_pipeline(*stages, mechanism, epsilon=5.0, delta=1e-5).fit(data, y)
        assert pipe.certificate_.verify()
        assert pipe.certificate_.status == "UNCONDITIONAL"
        (step,) = [step for step in pipe.certificate_["steps"] if step["class"] == "GridQuantizer"]
        assert (step["formula"], step["way"]) == (f"quantization.{mode}", "public")


def test_frames_and_names():
    frame = pd.DataFrame(np.nan_to_num(X), columns=["a", "b"], index=[4, 5, 6])
    stage = GridQuantizer(cell=0.5).set_output(transform="pandas").fit(frame)
    assert list(stage.get_feature_names_out()) == ["a", "b"]
    assert list(stage.transform(frame).index) == [4, 5, 6]
    out = GridQuantizer(cell=0.5).set_output(transform="polars").fit_transform(pl.DataFrame({"a": [0.3], "b": [0.8]}))
    assert isinstance(out, pl.DataFrame)
    assert out.columns == ["a", "b"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"cell": 0},
        {"cell": 2.5},
        {"cell": "1"},
        {"mode": "soft"},
        {"ramp": 0},
        {"ramp": 1.5},
        {"seed": -1},
        {"seed": 0.5},
    ],
    ids=str,
)
def test_impossible_parameters(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        GridQuantizer(**wrong).ways(DOMAIN, ONE)
