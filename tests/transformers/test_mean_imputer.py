"""MeanImputer with columns that may have gaps, and TrimmedMeanImputer."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ppdp import Adjacency, Distance, Domain, make_pipeline
from ppdp.data.rows import Rows
from ppdp.exceptions import DomainMismatch, InvalidParameter
from ppdp.mechanisms import GaussianMechanism
from ppdp.pipeline.pipeline import Pipeline
from ppdp.transformers import MeanImputer, MedianImputer, MinMaxScaler, TrimmedMeanImputer


def frame(n: int = 60) -> pd.DataFrame:
    X = pd.DataFrame(np.random.default_rng(0).uniform(-1, 1, size=(n, 3)), columns=["a", "b", "c"])
    X.iloc[::3, 0] = np.nan
    X.iloc[1, 1] = np.nan
    return X


def pipeline(**parameters: object) -> Pipeline:
    steps = [
        ("range", MinMaxScaler(ranges=(-1, 1))),
        ("impute", MeanImputer(**parameters)),
        ("mean", GaussianMechanism()),
    ]
    return Pipeline(steps, epsilon=1.0, delta=1e-3)


@pytest.mark.parametrize("columns", [["a"], [0], ["a", 0]])
def test_gaps_elsewhere_are_filled_with_zero(columns):
    X = frame()
    filled = MeanImputer(columns=columns).set_output(transform="pandas").fit_transform(X)
    assert filled.iloc[0, 0] == pytest.approx(X["a"].mean(), rel=1e-6)
    assert filled.iloc[1, 1] == 0.0
    assert not filled.isna().any(axis=None)


def test_all_columns_named_are_all_columns():
    X = frame()
    expected = MeanImputer().fit_transform(X)
    np.testing.assert_array_equal(MeanImputer(columns=["c", "a", "b"]).fit_transform(X), expected)


@pytest.mark.parametrize("statistics", ["exact", "noisy"])
def test_a_pipeline_is_certified_and_pays_less(statistics):
    facts = Domain(max_missing=0.5)
    some = pipeline(columns=["a"], statistics=statistics)
    some.set_params(domain=facts, gate=None).fit(frame())
    every = pipeline(statistics=statistics).set_params(domain=facts, gate=None)
    assert some.certificate_.verify()
    noise = [
        pipe.plan(Domain(n_rows=60, n_features=3, feature_names=("a", "b", "c"), max_missing=0.5))
        for pipe in (some, every)
    ]
    if statistics == "exact":
        assert noise[0].mechanism.noise_scale < 0.8 * noise[1].mechanism.noise_scale
    else:
        assert noise[0].releases[0].noise_scale < 0.8 * noise[1].releases[0].noise_scale
        twin = some["impute"]
        assert twin.mean_[0] != 0
        assert twin.mean_[1] == twin.mean_[2] == 0


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        (["z"], DomainMismatch),
        ([3], DomainMismatch),
        ("a", InvalidParameter),
        ([], InvalidParameter),
        ([0.5], InvalidParameter),
    ],
)
def test_columns_that_do_not_exist(columns, error):
    with pytest.raises(error, match="columns"):
        MeanImputer(columns=columns).fit(frame())


@pytest.mark.parametrize("stage", [MeanImputer(max_missing=2), MeanImputer(min_observed=8, floor=False)], ids=repr)
def test_what_no_neighbour_changes_holds_for_ever_or_not_at_all(stage):
    """Rows that move keep their gaps: the margin is infinite where the condition holds, and 0 where it fails."""
    X = np.full((10, 1), 0.5)
    (*_, condition) = stage.set_params(statistics="exact").conditions(
        Domain(n_rows=10, n_features=1, row_norm=1.0, min_present=10), Distance(moved=3, radius=0.1)
    )
    assert condition.unit == 0
    X[:2] = np.nan
    assert condition.margin(X) == math.inf
    X[:3] = np.nan
    assert condition.margin(X) == 0.0


ONE = Adjacency.replace().distance

GAP = np.nan
N = 4000


def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (N, 2))
    y = (X[:, 0] > 0).astype(int)
    X[: N // 10, 1] = GAP
    return pd.DataFrame(X, columns=["a", "b"]), y


def trimmed_pipeline(mechanism, *before, **parameters):
    stages = MinMaxScaler(ranges=(-1, 1)), *before, TrimmedMeanImputer(**parameters)
    return make_pipeline(*stages, mechanism, epsilon=2.0, delta=1e-5, random_state=0)


class TestValues:
    def test_full_columns_are_trimmed_by_a_count_that_min_observed_decides(self):
        X = np.random.default_rng(0).normal(size=(41, 3))
        X[-1] = GAP
        fitted = TrimmedMeanImputer(trim=0.2, min_observed=40).fit(X)
        np.testing.assert_allclose(fitted.mean_, stats.trim_mean(X[:-1], 0.2))
        half = TrimmedMeanImputer(trim=0.2, min_observed=20).fit(X)
        np.testing.assert_allclose(half.mean_, stats.trim_mean(X[:-1], 0.1))

    def test_without_trimming_it_is_the_mean_imputer(self):
        X, _ = data()
        np.testing.assert_allclose(TrimmedMeanImputer(trim=0.0).fit_transform(X), MeanImputer().fit_transform(X))

    def test_a_column_with_few_values_is_filled_up_with_zeros(self):
        X = np.array([[6.0], [5.0], [1.0], [GAP], [GAP], [GAP]])
        assert TrimmedMeanImputer(trim=0.2, min_observed=5).fit(X).mean_[0] == 2.0  # of 0, 0, 1, 5, 6

    def test_outliers_do_not_move_it(self):
        X = np.append(np.linspace(0, 1, 101), [1000.0, GAP])[:, None]
        assert abs(TrimmedMeanImputer(trim=0.1, min_observed=100).fit(X).mean_[0] - 0.5) < 0.01

    def test_deleted_rows_do_not_count(self):
        rows = Rows(np.array([[0.5], [0.6], [1.0], [0.0], [0.0]]), None, np.array([1.0, 1, 1, 0, 0]))
        domain = Domain(n_rows=5, n_features=1, row_norm=1.0)
        stage = TrimmedMeanImputer(trim=0.34, min_observed=3)
        ways = {way.name: way for way in stage.ways(domain, ONE)}
        assert stage.prepare(rows, ways["exact"], domain)["mean"] == pytest.approx(0.6)

    def test_filled_rows_keep_their_norm(self):
        rows = Rows.of(np.array([[1.0, 0.0], [1.0, 0.0], [GAP, 1.0]]))
        domain, stage = Domain(n_rows=3, n_features=2, row_norm=1.0), TrimmedMeanImputer(trim=0, min_observed=2)
        ways = {way.name: way for way in stage.ways(domain, ONE)}
        filled = stage.apply(rows, stage.prepare(rows, ways["exact"], domain))
        np.testing.assert_allclose(filled.X[2], np.sqrt([0.5, 0.5]))


class TestPipelines:
    def test_few_rows_with_gaps_are_a_condition_of_the_exact_way(self):
        X, _ = data()
        pipe = trimmed_pipeline(GaussianMechanism(), statistics="exact", max_missing=0.2).fit(X)
        assert pipe.certificate_.verify()
        step = pipe.certificate_["steps"][1]
        assert [k["formula"] for k in step["conditions"]] == ["imputation.missing"]
        assert step["distance"]["moved"] == 0.2 * N

    def test_rows_move_some_fifty_times_less_than_by_medians(self):
        """What the documentation says, for whatever number of rows."""
        for n in (2000, 200_000):
            domain = Domain(n_rows=n, n_features=5, row_norm=1.0)
            moves = [stage.stability_map(domain, ONE)[1].radius for stage in (MedianImputer(), TrimmedMeanImputer())]
            assert 40 < moves[0] / moves[1] < 60
