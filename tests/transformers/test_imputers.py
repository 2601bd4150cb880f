"""Imputers by means, trimmed means and regressions, alone and inside a pipeline."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.linear_model import Ridge

from ppdp import Adjacency, Distance, Domain, make_pipeline
from ppdp.data.rows import Rows
from ppdp.exceptions import DomainMismatch, InvalidParameter
from ppdp.mechanisms import GaussianMechanism
from ppdp.pipeline.pipeline import Pipeline
from ppdp.transformers import (
    MeanImputer,
    MedianImputer,
    MinMaxScaler,
    NormClipper,
    RegressionImputer,
    TrimmedMeanImputer,
)
from ppdp.transformers.impute import regression_imputer as module

ONE = Adjacency.replace().distance
GAP = np.nan


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
    some = pipeline(columns=["a"], fit_mode=statistics)
    some.set_params(domain=facts, gate=None).fit(frame())
    every = pipeline(fit_mode=statistics).set_params(domain=facts, gate=None)
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


@pytest.mark.parametrize("stage", [MeanImputer(max_missing=2), MeanImputer(min_observed=8, use_floor=False)], ids=repr)
def test_what_no_neighbour_changes_holds_for_ever_or_not_at_all(stage):
    """Rows that move keep their gaps: the margin is infinite where the condition holds, and 0 where it fails."""
    X = np.full((10, 1), 0.5)
    (*_, condition) = stage.set_params(fit_mode="exact").conditions(
        Domain(n_rows=10, n_features=1, row_norm=1.0, min_present=10), Distance(moved=3, radius=0.1)
    )
    assert condition.unit == 0
    X[:2] = np.nan
    assert condition.margin(X) == math.inf
    X[:3] = np.nan
    assert condition.margin(X) == 0.0


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
        ways = {way.name: way for way in stage.fit_modes(domain, ONE)}
        assert stage.prepare(rows, ways["exact"], domain)["mean"] == pytest.approx(0.6)


class TestPipelines:
    def test_few_rows_with_gaps_are_a_condition_of_the_exact_way(self):
        X, _ = data()
        pipe = trimmed_pipeline(GaussianMechanism(), fit_mode="exact", max_missing=0.2).fit(X)
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


def table(n=400, d=4, share=0.1, seed=0):
    """Rows along one direction, with gaps anywhere, and the same rows without gaps."""
    rng = np.random.default_rng(seed)
    whole = rng.uniform(-1, 1, (n, 1)) * np.array([0.5, 0.4, -0.6, 0.3][:d]) + 0.02 * rng.standard_normal((n, d))
    return np.where(rng.random((n, d)) < share, GAP, whole), whole


def test_a_gap_is_filled_by_the_ridge_regression_of_its_pattern():
    X, _ = table()
    stage = RegressionImputer(0.01)
    filled = stage.fit_transform(X)
    assert not np.isnan(filled).any()
    np.testing.assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
    complete = X[~np.isnan(X).any(axis=1)]
    assert stage.norm_ is None
    assert stage.ridge_ > 0
    for row, answer in zip(X, filled):
        missing = np.isnan(row)
        if missing.any() and not missing.all():
            expected = Ridge(alpha=stage.ridge_ * len(X), fit_intercept=False)
            expected.fit(complete[:, ~missing], complete[:, missing].reshape(len(complete), -1))
            np.testing.assert_allclose(answer[missing], expected.predict(row[~missing][None]).ravel(), atol=1e-10)


def test_related_columns_are_filled_better_than_by_means():
    X, whole = table()
    gaps = np.isnan(X)
    by_regression, by_means = (stage.fit_transform(X) for stage in (RegressionImputer(0.001), MeanImputer()))
    assert np.abs(by_regression - whole)[gaps].mean() < 0.3 * np.abs(by_means - whole)[gaps].mean()
    beside_ones = RegressionImputer(1e-4).fit_transform(np.column_stack([X + 0.5, np.ones(len(X))]))[:, :-1]
    assert np.abs(beside_ones - 0.5 - whole)[gaps].mean() < 0.3 * np.abs(by_means - whole)[gaps].mean()


def test_without_a_ridge_the_fit_is_that_of_least_squares():
    X, _ = table()
    stage = RegressionImputer(min_eigenvalue=1e-6).fit(X)
    complete = X[~np.isnan(X).any(axis=1)]
    expected, *_ = np.linalg.lstsq(complete[:, 1:], complete[:, 0], rcond=None)
    assert stage.ridge_ == 0
    row = np.array([[GAP, 0.2, -0.3, 0.15]])
    assert stage.transform(row)[0, 0] == pytest.approx(row[0, 1:] @ expected, abs=1e-8)


def test_where_the_condition_fails_the_fit_is_still_finite():
    X = np.outer(np.linspace(-1, 1, 20), [1.0, 1.0, 1.0])
    X[0, 0] = GAP
    filled = RegressionImputer(min_eigenvalue=0.01).fit_transform(X)
    assert np.isfinite(filled).all()
    assert filled[0, 0] < -0.5


def test_rows_without_any_entry_and_without_any_pattern():
    X = np.array([[GAP, GAP], [0.5, 0.5], [-0.5, -0.5]])
    stage = RegressionImputer(0.01).fit(X)
    assert (stage.transform(X)[0] == 0).all()
    assert stage.transform([[0.1, 0.2]]).tolist() == [[0.1, 0.2]]
    nothing = RegressionImputer().fit_transform(np.full((3, 2), GAP))
    assert (nothing == 0).all()


def test_one_column_has_nothing_to_be_regressed_on():
    assert RegressionImputer().fit_transform([[GAP], [1.0], [0.5]]).tolist() == [[0.0], [1.0], [0.5]]


def test_filled_rows_keep_their_public_norm_and_entries():
    X = np.array([[1.0, 1.0], [-1.0, -1.0]] * 10 + [[1.0, GAP]])
    domain = Domain(n_rows=21, n_features=2, row_norm=1.2, entry_bound=0.7)
    stage = RegressionImputer(1e-6)
    (way,) = [way for way in stage.fit_modes(domain, ONE) if way.name == "exact"]
    rows = Rows.of(np.clip(X, -0.7, 0.7))
    filled = stage.apply(rows, stage.prepare(rows, way, domain)).X
    assert way.domain.entry_bound == 0.7
    assert np.abs(filled).max() <= 0.7
    assert np.linalg.norm(filled, axis=1).max() <= 1.2
    assert filled[-1, 1] == pytest.approx(0.7, abs=1e-5)


def test_equal_rows_are_filled_equally_to_the_last_bit(monkeypatch):
    """Whatever other rows there are, and however they are cut into blocks."""
    X, _ = table(n=300, share=0.4)
    stage = RegressionImputer().fit(X)
    whole = stage.transform(X)
    rng = np.random.default_rng(1)
    order = rng.permutation(300)
    assert (stage.transform(X[order]) == whole[order]).all()
    for part in (slice(0, 1), slice(17, 19), slice(100, 299)):
        assert (stage.transform(X[part]) == whole[part]).all()
    monkeypatch.setattr(module, "BLOCK_SIZE", 7 * 16)
    assert (stage.transform(X) == whole).all()


def test_every_pattern_of_gaps_at_once():
    rng = np.random.default_rng(0)
    d = 10
    masks = (np.arange(2**d)[:, None] >> np.arange(d)) % 2 == 1
    X = np.vstack([np.where(masks, GAP, rng.uniform(-1, 1, (2**d, d))), rng.uniform(-1, 1, (50, d))])
    stage = RegressionImputer().fit(X)
    filled = stage.transform(X)
    for i in rng.integers(1, 2**d - 1, 20):
        seen, gone = np.flatnonzero(~masks[i]), np.flatnonzero(masks[i])
        gram = stage.moment_[np.ix_(seen, seen)] + stage.ridge_ * np.eye(len(seen))
        expected = X[i, seen] @ np.linalg.solve(gram, stage.moment_[np.ix_(seen, gone)])
        np.testing.assert_allclose(filled[i, gone], expected, atol=1e-12)


def test_deleted_rows_are_not_fitted_on():
    X, _ = table()
    domain = Domain(n_rows=len(X), n_features=4, row_norm=2.0)
    stage = RegressionImputer()
    (way,) = [way for way in stage.fit_modes(domain, ONE) if way.name == "exact"]
    weight = np.ones(len(X))
    weight[::2] = 0
    half = stage.prepare(Rows(X, None, weight).settled(), way, domain)["moment"]
    complete = X[1::2][~np.isnan(X[1::2]).any(axis=1)]
    np.testing.assert_allclose(half, complete.T @ complete / len(X), atol=1e-14)


DOMAIN = Domain(n_rows=100, n_features=3, row_norm=1.0)


@pytest.mark.parametrize(
    ("parameters", "facts", "names"),
    [
        ({}, {}, []),
        ({"max_missing": 10}, {}, ["missing"]),
        ({"max_missing": 0.1}, {}, ["missing"]),
        ({}, {"max_missing": 10}, ["missing"]),
        ({"min_eigenvalue": 0.1}, {}, ["eigenvalue"]),
        ({"min_eigenvalue": 0.1, "max_missing": 10}, {}, ["missing", "eigenvalue"]),
    ],
)
def test_what_the_exact_way_assumes(parameters, facts, names):
    stage = RegressionImputer(fit_mode="exact", **parameters)
    domain = DOMAIN.but(**facts)
    assert [condition.name for condition in stage.conditions(domain, ONE)] == names
    after, distance = stage.stability_map(domain, ONE)
    assert distance.moved == (10 if "missing" in names else 99)
    assert after.missing_rows == 0
    noisy = RegressionImputer(fit_mode="noisy", **parameters)
    assert noisy.conditions(domain, ONE) == ()
    assert noisy.stability_map(domain, ONE)[1] == ONE


def test_the_sensitivity_in_closed_form():
    """s = sqrt(1 + 1/(4 nu (1 + nu))) for a ridge; sqrt(1 + b^2) = 1/(2 sqrt(nu (1 - nu))) for two columns."""
    for n, share in ((1000, 0.1), (5000, 0.02)):
        ridge = RegressionImputer(share).sensitivity(DOMAIN.but(n_rows=n))
        assert ridge.l2 == pytest.approx(math.sqrt(1 + 1 / (4 * share * (1 + share))) / (share * n), rel=1e-6)
        least = RegressionImputer(min_eigenvalue=share).sensitivity(Domain(n_rows=n, n_features=2, row_norm=1.0))
        assert least.l2 == pytest.approx(1 / (2 * math.sqrt(share * (1 - share))) / (share * n), rel=1e-6)
        assert ridge.linf == n - 1


def test_rows_that_never_have_gaps_are_free():
    stage = RegressionImputer()
    assert [way.name for way in stage.fit_modes(DOMAIN.but(max_missing=0), ONE)] == ["public"]
    assert stage.stability_map(DOMAIN.but(max_missing=0), ONE)[1] == ONE


def test_the_gate_tests_the_smallest_eigenvalue():
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], (8000, 2)) / math.sqrt(2)
    X[:50, 0] = GAP
    stage = RegressionImputer(min_eigenvalue=0.2, max_missing=400, fit_mode="exact")
    pipe = make_pipeline(NormClipper(), stage, GaussianMechanism(), epsilon=3.0, delta=1e-5).fit(X)
    assert pipe.certificate_.verify()
    conditions = pipe.certificate_.to_dict()["steps"][1]["conditions"]
    assert [condition["formula"] for condition in conditions] == ["imputation.missing", "regression.eigenvalue"]
    assert all(condition["tested"] for condition in conditions)
