"""Scalers: columns of categories are left alone unless somebody asks for them; one scale for all columns."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from ppdp import Adjacency, Certificate, Domain, Pipeline, declare, make_column_map, make_pipeline
from ppdp.bounds import lookup
from ppdp.data.noisy_statistics import STATISTICS
from ppdp.data.statistics import Moments
from ppdp.exceptions import DomainMismatch, InvalidParameter
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.transformers import (
    PCA,
    CategoryEncoder,
    MeanImputer,
    MinMaxScaler,
    NormClipper,
    QuantileTransformer,
    RandomProjection,
    RegressionImputer,
    RobustScaler,
    SoftPCA,
    StandardScaler,
)

N = 2000
FACTS = Domain(n_rows=N, feature_names=("a", "b", "c", "ward"))
SCALERS = [
    StandardScaler(),
    StandardScaler(fit_mode="exact"),
    StandardScaler(use_floor=False, clip=None, min_std=0.01),
    StandardScaler(per_column=False),
    RobustScaler(),
    MinMaxScaler(quantiles=(0.05, 0.95)),
]
EVERY = pytest.mark.parametrize("scaler", SCALERS, ids=repr)


def table(n_categories, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(50, 10, (2 * N, 3)), columns=["a", "b", "c"])
    X["ward"] = pd.array([f"w{i}" for i in rng.integers(0, n_categories, 2 * N)], "string")
    return X, ((X["a"] + X["b"] + X["c"] - 150) / 17 + rng.normal(0, 0.1, 2 * N) > 0).astype(int)


def pipeline(scaler, n_categories, last=None, **parameters):
    facts = declare(table(n_categories)[0][:0])
    facts.update(a=(0, 100), b=(0, 100), c=(0, 100), ward=[f"w{i}" for i in range(n_categories)])
    last = LogisticRegression((0, 1)) if last is None else last
    return Pipeline([*facts.steps(), ("impute", MeanImputer()), ("scale", scaler), ("last", last)], **parameters)


@EVERY
def test_columns_of_categories_pass_unchanged(scaler):
    X, y = table(5)
    pipe = pipeline(clone(scaler), 5, epsilon=50.0, random_state=0, gate=None)
    pipe.fit(X, y)
    step = pipe.certificate_.record.steps[-1]
    assert list(step.parameters["columns"]) == [0, 1, 2]
    assert pipe.certificate_.verify()
    mapped, before = np.asarray(pipe[:-1].transform(X)), np.asarray(pipe[:-2].transform(X))
    np.testing.assert_array_equal(mapped[:, 3:], before[:, 3:])
    assert not np.allclose(mapped[:, :3], before[:, :3])
    assert pipe["scale"].columns_ == [0, 1, 2]


@pytest.mark.parametrize(
    "scaler", [StandardScaler(columns=["a"], use_floor=False), StandardScaler(use_floor=False)], ids=repr
)
@pytest.mark.parametrize("per_column", [True, False])
def test_what_is_assumed_of_some_columns_is_read_as_it_was_written(scaler, per_column):
    stages = clone(scaler).set_params(fit_mode="exact", per_column=per_column), GaussianMechanism()
    pipe = Pipeline([*pipeline(stages[0], 3).steps[:-1], ("last", stages[1])], gate=None, epsilon=5.0, delta=1e-5)
    pipe.fit(table(3)[0].assign(a=np.linspace(0, 100, 2 * N)))
    written = pipe.certificate_.to_json()
    assert [one.statement for one in pipe.certificate_.record.steps[-1].conditions]
    assert Certificate.from_json(written).verify()


@EVERY
def test_plain_objects_of_scikit_learn_map_the_same_columns(scaler):
    X, y = table(5)
    pipe = pipeline(clone(scaler), 5, epsilon=20.0, gate=None, dataset=repr(scaler)).fit(X, y)
    twin = pipe.release_.to_sklearn(conditional=True)
    np.testing.assert_allclose(twin.decision_function(X), pipe.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("n_categories", [50, 1000])
def test_many_categories_cost_the_other_columns_little(n_categories):
    """Scaled like numbers they take .78 and .64 (before: .86 and .68 on the rows of a reader)."""
    X, y = table(n_categories)
    scores = {}
    for columns in (None, "all"):
        pipe = pipeline(StandardScaler(columns=columns), n_categories, epsilon=1.0, random_state=1).fit(X[:N], y[:N])
        scores[columns] = pipe.score(X[N:], y[N:])
    assert scores[None] > 0.93
    assert scores["all"] < 0.85


def test_the_release_is_of_the_other_columns_alone():
    plan = pipeline(StandardScaler(), 1000).plan(FACTS)
    releases = {plan.steps[release.serves[0]].name: release for release in plan.releases}
    assert releases["scale"].parameters["columns"] == [0, 1, 2]
    # 2 b sqrt(3) / n, and not that of 1,004 columns
    assert releases["scale"].sensitivity == pytest.approx(2 * np.sqrt(3) / N, rel=1e-6)


@pytest.mark.parametrize("kind", [StandardScaler, RobustScaler])
def test_where_all_columns_are_categories_nothing_is_fitted(kind):
    pipe = make_pipeline(CategoryEncoder(["u", "v"]), kind(), GaussianMechanism())
    plan = pipe.plan(Domain(n_rows=100, feature_names=("ward",)))
    assert [step.way.name for step in plan.steps] == ["public", "public"]
    assert not plan.releases
    pipe.set_params(random_state=0).fit(pd.DataFrame({"ward": ["u", "v"] * 50}))
    assert pipe.certificate_.verify()


def test_columns_are_named_or_counted_or_all():
    X = np.random.default_rng(0).normal(size=(50, 3))
    plain = StandardScaler(clip=None).fit(X)
    for columns in ([0, 2], np.array([2, 0]), ("x0", "x2")):
        frame = pd.DataFrame(X, columns=["x0", "x1", "x2"]) if columns[0] == "x0" else X
        some = StandardScaler(clip=None, columns=columns).fit(frame)
        assert some.columns_ == [0, 2]
        np.testing.assert_array_equal(some.transform(frame)[:, 1], X[:, 1])
        np.testing.assert_allclose(some.transform(frame)[:, 0], plain.transform(X)[:, 0])
    assert StandardScaler(columns="all").fit(X).columns_ is None
    assert StandardScaler(columns=[0, 1, 2]).fit(X).columns_ is None


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        ([0, 0], InvalidParameter),
        ([], InvalidParameter),
        ("a", InvalidParameter),
        ([3], DomainMismatch),
        ([-1], InvalidParameter),
        (["z"], DomainMismatch),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [StandardScaler, RobustScaler])
def test_columns_that_mean_nothing(kind, columns, error):
    with pytest.raises(error):
        make_pipeline(NormClipper(), kind(columns=columns), GaussianMechanism()).plan(Domain(n_rows=100, n_features=3))


def test_a_norm_clipper_and_an_imputer_keep_columns_in_their_places():
    pipe = make_pipeline(CategoryEncoder({"ward": ["u", "v"]}), NormClipper(0.5), StandardScaler(), GaussianMechanism())
    assert [s.way.formula for s in pipe.plan(Domain(n_rows=100, feature_names=("ward",))).steps][-1] == "scaling.none"


def test_a_column_of_categories_has_no_missing_values_to_pay_for():
    plan = pipeline(MeanImputer(), 1000).plan(FACTS)
    step = next(release for release in plan.releases if release.statistic == "means")
    assert step.parameters["columns"] == [0, 1, 2]


class TestFiveThousandCategories:
    """What is released and held grows with the number of columns and not with its square, or a plan says so."""

    FACTS = Domain(n_rows=N, feature_names=("ward", "a"))
    ENCODER = CategoryEncoder([f"w{i}" for i in range(5000)])

    def plan(self, *stages):
        columns = make_column_map((self.ENCODER, ["ward"]), (MinMaxScaler((0, 1)), ["a"]))
        return make_pipeline(columns, *stages, LogisticRegression((0, 1))).plan(self.FACTS)

    @pytest.mark.parametrize(
        "stages",
        [(StandardScaler(),), (StandardScaler(columns="all"),), (MeanImputer(), StandardScaler()), (RobustScaler(),)],
        ids=repr,
    )
    def test_no_scaler_takes_a_matrix(self, stages):
        plan = self.plan(*stages)
        sizes = [STATISTICS[r.statistic].size(plan.steps[r.at].domain, r.parameters) for r in plan.releases]
        assert max(sizes) <= 3 * 5002
        assert not any("matrix" in warning for warning in plan.warnings)

    @pytest.mark.parametrize(
        "stage", [PCA(3), PCA(3, fit_mode="exact"), SoftPCA(), SoftPCA(fit_mode="exact")], ids=repr
    )
    def test_what_takes_a_matrix_is_named_with_its_size(self, stage):
        (warning,) = [w for w in self.plan(stage).warnings if "matrix" in w]
        assert "5,002 x 5,002 numbers (0.2 GiB)" in warning
        assert not any("matrix" in w for w in self.plan(RandomProjection(50), stage).warnings)

    def test_few_columns_of_many_rows_are_named_too(self):
        for n_rows, long in ((10**5, False), (10**6, True)):
            facts = Domain(n_rows=n_rows, n_features=500)
            steps = MinMaxScaler(ranges=(0, 1)), PCA(3, fit_mode="exact"), LogisticRegression((0, 1))
            plan = make_pipeline(*steps, delta=1e-8, gate=None).plan(facts)
            assert any("matrix" in one for one in plan.warnings) == long

    def test_an_imputer_that_takes_a_matrix_is_named_too(self):
        assert any("5,002 x 5,002" in one for one in self.plan(RegressionImputer()).warnings)

    def test_what_changes_no_row_takes_none(self):
        assert not any("matrix" in one for one in self.plan(PCA()).warnings)

    def test_moments_are_scaled_without_a_matrix(self):
        moments = Moments(np.arange(3.0), np.arange(3.0) + 4).affine(np.array([2.0, 3.0, 4.0]), np.ones(3))
        alone = Moments(np.arange(3.0), np.arange(3.0) + 4).affine(np.diag([2.0, 3.0, 4.0]), np.ones(3))
        np.testing.assert_array_equal(moments.mean, alone.mean)
        np.testing.assert_array_equal(moments.squares, alone.squares)


ONE = Adjacency.replace().distance


def two_columns(n=3000):
    rng = np.random.default_rng(0)
    return np.column_stack([rng.uniform(-0.9, 0.9, n), rng.uniform(-0.2, 0.4, n)])


def test_columns_keep_their_proportions():
    X = two_columns()
    stage = StandardScaler(per_column=False, clip=None).fit(X)
    scaled = stage.transform(X)
    assert np.ptp(stage.scale_) == 0
    assert stage.scale_[0] == pytest.approx(math.sqrt(X.var(axis=0).sum()))
    np.testing.assert_allclose(scaled, (X - X.mean(axis=0)) / stage.scale_[0], atol=1e-12)
    assert np.mean(np.sum(scaled**2, axis=1)) == pytest.approx(1.0)


def test_the_floor_and_the_clip_are_those_of_whole_rows():
    X = np.full((20, 3), 0.5)
    X[0] = -0.5
    stage = StandardScaler(per_column=False).fit(X)
    norm = 0.5 * math.sqrt(3)  # what is read off the rows outside a pipeline
    assert stage.scale_ == pytest.approx(np.full(3, max(0.25 * norm, norm * 2 * math.sqrt(0.05 * 0.95))))
    assert stage.clip_ == 2.0
    assert np.linalg.norm(stage.transform(X), axis=1).max() == pytest.approx(2.0)
    flat = StandardScaler(per_column=False).fit(np.full((20, 3), 0.5))
    assert flat.scale_ == pytest.approx(np.full(3, 0.25 * norm))


def test_the_condition_is_one_about_the_sum_of_variances():
    """One column may be constant."""
    X = two_columns()
    X[:, 1] = 0.1
    stage = StandardScaler(0.3, use_floor=False, per_column=False, fit_mode="exact")
    pipe = make_pipeline(NormClipper(), stage, GaussianMechanism(), epsilon=3.0, delta=1e-5).fit(X)
    assert pipe.certificate_.verify()
    (condition,) = pipe.certificate_.to_dict()["steps"][1]["conditions"]
    assert "add up" in condition["statement"]
    each = StandardScaler(0.3, use_floor=False, fit_mode="exact")
    domain = Domain(n_rows=len(X), n_features=2, row_norm=1.0, max_missing=0)
    assert [found.margin(X) for found in each.conditions(domain, ONE)] == [0.0]


def test_a_formula_that_says_nothing_means_one_scale_per_column():
    domain = Domain(n_rows=100, n_features=3, row_norm=1.0, max_missing=0)
    scaling = lookup("scaling.standard", "stability")
    parameters = {"min_std": 0.2, "conditional": False, "clip": 3.0}
    silent = scaling(domain, ONE, **parameters)
    assert silent == scaling(domain, ONE, **parameters, per_column=True)
    assert silent != scaling(domain, ONE, **parameters, per_column=False)


@pytest.mark.parametrize(
    "scaler",
    [
        MinMaxScaler(ranges=[(0, 10), (-5, 5), (0, 1)], feature_range=(0, 3)),
        MinMaxScaler(quantiles=(0.001, 0.999), columns=[2, 0]),
        StandardScaler(columns=[1], clip=100.0),
        RobustScaler(columns=[0, 1], clip=100.0),
    ],
)
def test_scaled_rows_lead_back(scaler):
    X = np.random.default_rng(0).uniform(0, 1, (200, 3)) * [10, 5, 1]
    X[:6] = np.tile(np.array([[0.0], [1.0]]), 3).repeat(3, axis=0) * [10, 5, 1]  # which no quantile cuts off
    X[6, 1] = np.nan if scaler.allows_gaps else 0.0
    back = clone(scaler).fit(X).inverse_transform(clone(scaler).fit_transform(X))
    np.testing.assert_allclose(back, X, atol=1e-12)
    with pytest.raises(DomainMismatch, match="2 columns, and scaled rows have 3"):
        clone(scaler).fit(X).inverse_transform(X[:, :2])
    with pytest.raises(NotFittedError):
        clone(scaler).inverse_transform(X)
    assert not hasattr(QuantileTransformer(), "inverse_transform")
