"""Stages by quantiles: behaviour, errors that teach, scikit-learn's where they are exact, and pipelines."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn import preprocessing
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import MaxAbsScaler
from sklearn.preprocessing import MinMaxScaler as DataDrivenScaler

from ppdp import Adjacency, ColumnTransformer, Domain, Pipeline, PrivacyRefusal, make_pipeline
from ppdp import transformers as S
from ppdp.exceptions import InvalidParameter, MissingBound, UnsupportedOrder
from ppdp.mechanisms import GaussianMechanism, GradientBoostingClassifier, LogisticRegression

ONE = Adjacency.replace().distance

GAP = np.nan
STAGES = [
    S.MedianImputer(fit_mode="exact"),
    S.RobustScaler(fit_mode="exact"),
    S.MinMaxScaler(quantiles=(0.1, 0.9), fit_mode="exact"),
]
N = 4000

every_stage = pytest.mark.parametrize("stage", STAGES, ids=lambda stage: type(stage).__name__)


def data(n=N, gaps=True):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 2))
    y = (X[:, 0] > 0).astype(int)
    if gaps:
        X[: n // 10, 1] = GAP
    return pd.DataFrame(X, columns=["a", "b"]), y


def pipeline(stage, mechanism, **parameters):
    steps = [("range", S.MinMaxScaler(ranges=(-1, 1))), ("stage", clone(stage))]
    if not stage.fills_gaps:
        steps.append(("fill", S.MeanImputer(fit_mode="noisy")))
    settings = {"epsilon": 15.0, "delta": 1e-5, "random_state": 0, **parameters}
    return Pipeline([*steps, ("last", mechanism)], **settings)


class TestValues:
    def test_lower_medians_fill_gaps(self):
        X = np.array([[4.0, GAP], [1.0, 5.0], [3.0, 7.0], [2.0, GAP], [GAP, GAP]])
        filled = S.MedianImputer().fit_transform(X)
        np.testing.assert_array_equal(filled[:, 0], [4, 1, 3, 2, 2])
        np.testing.assert_array_equal(filled[:, 1], [5, 5, 7, 5, 5])

    def test_odd_columns_have_the_usual_median(self):
        X = np.random.default_rng(0).normal(size=(31, 3))
        X[0], X[1] = GAP, GAP
        expected = SimpleImputer(strategy="median").fit(X).statistics_
        np.testing.assert_array_equal(S.MedianImputer().fit(X).median_, expected)

    def test_a_column_without_values_is_filled_with_zeros(self):
        X = np.array([[1.0, GAP], [3.0, GAP]])
        np.testing.assert_array_equal(S.MedianImputer().fit_transform(X), [[1, 0], [3, 0]])

    def test_robust_scaling(self):
        X = np.arange(1.0, 10.0)[:, None]
        scaler = S.RobustScaler(min_width=1e-6, clip=0.75).fit(X)
        assert (scaler.center_, scaler.scale_) == (5.0, 4.0)  # of 9 values the 3rd, 5th, 7th
        np.testing.assert_allclose(scaler.transform(X).ravel(), np.clip((X.ravel() - 5) / 4, -0.75, 0.75))

    def test_quantile_scaling(self):
        X = np.arange(1.0, 11.0)[:, None]
        scaler = S.MinMaxScaler(quantiles=(0.1, 0.9), feature_range=(0, 1)).fit(X)
        expected = np.quantile(X, [0.1, 0.9], method="inverted_cdf")
        np.testing.assert_array_equal([scaler.low_[0], scaler.high_[0]], expected)
        np.testing.assert_allclose(scaler.transform(X).ravel(), np.clip((X.ravel() - 1) / 8, 0, 1))

    @pytest.mark.parametrize("stage", STAGES[1:])
    def test_a_constant_column_is_divided_by_the_floor(self, stage):
        scaled = clone(stage).fit_transform(np.full((5, 2), 3.0))
        assert np.isfinite(scaled).all()
        assert np.ptp(scaled) == 0

    @pytest.mark.parametrize("stage", STAGES[1:])
    def test_gaps_stay_gaps_and_are_left_out(self, stage):
        X = data()[0].to_numpy()
        scaled = clone(stage).fit_transform(X)
        np.testing.assert_array_equal(np.isnan(scaled), np.isnan(X))
        complete = ~np.isnan(X[:, 1])
        alone = clone(stage).set_params(min_width=1e-6).fit(X[complete][:, 1:])
        both = clone(stage).set_params(min_width=1e-6).fit(X)
        np.testing.assert_array_equal(alone.transform(X[:, 1:])[:, 0], both.transform(X)[:, 1])


class TestErrors:
    def test_neither_ranges_nor_quantiles_says_why_the_data_cannot_stand_in(self):
        with pytest.raises(MissingBound, match="one row decides") as caught:
            S.MinMaxScaler().fit(data(20)[0])
        assert "ranges=" in caught.value.fix
        assert "quantiles=" in caught.value.fix

    @pytest.mark.parametrize("scaler", [DataDrivenScaler(), MaxAbsScaler()])
    def test_scalers_by_the_ends_of_the_data_are_refused_with_the_fix(self, scaler):
        pipe = make_pipeline(scaler, GaussianMechanism(), epsilon=1.0, delta=1e-6)
        with pytest.raises(MissingBound) as caught:
            pipe.fit(data(20, gaps=False)[0])
        assert "ranges=" in caught.value.fix


class TestPipelines:
    @every_stage
    def test_the_gate_refuses_wide_gaps(self, stage):
        """Half of the values at each end: one row takes the median from there to here."""
        X = pd.DataFrame({"a": np.repeat([-1.0, 1.0], N // 2), "b": np.repeat([-1.0, 1.0], N // 2)})
        X.iloc[0, 0] = GAP
        if not stage.fills_gaps:
            stage = clone(stage).set_params(**({"quantiles": (0.1, 0.5)} if hasattr(stage, "quantiles") else {}))
        with pytest.raises(PrivacyRefusal):
            pipeline(stage, GaussianMechanism()).fit(X)

    @every_stage
    def test_without_a_gate_the_certificate_names_the_assumption(self, stage):
        X, _ = data()
        certificate = pipeline(stage, GaussianMechanism(), gate=None).fit(X).certificate_
        assert any("fitted quantiles" in reason for reason in certificate["reasons"])

    def test_declared_missing_rows_are_a_second_condition(self):
        X, _ = data()
        few = pipeline(S.MedianImputer(max_missing=0.2, fit_mode="exact"), GaussianMechanism()).fit(X)
        steps = few.certificate_["steps"]
        assert [k["name"] for k in steps[1]["conditions"]] == ["missing", "gap"]
        assert steps[1]["distance"]["moved"] == 0.2 * N
        assert few.certificate_.verify()

    def test_no_rows_with_gaps_cost_nothing(self):
        X, _ = data(gaps=False)
        domain = Domain(max_missing=0)
        pipe = pipeline(S.MedianImputer(), GaussianMechanism(), domain=domain, epsilon=1.0).fit(X)
        assert pipe.certificate_.verify()
        assert pipe.certificate_["steps"][1]["formula"] == "imputation.zero"

    def test_auto_does_not_offer_what_no_data_could_pass(self):
        plan = pipeline(S.MedianImputer(max_quantile_gap=0.1), GaussianMechanism(), epsilon=1.0, delta=1e-6).plan(
            Domain(n_rows=200, n_features=2)
        )
        assert plan.steps[1].way.name == "noisy"
        assert any("no data could pass" in other.reason for other in plan.alternatives)

    @every_stage
    def test_released_quantiles_are_near_and_move_nothing(self, stage):
        """Of uniform values, one column with gaps, and of another scale behind a released range."""
        X, y = data()
        noisy = clone(stage).set_params(fit_mode="noisy")
        pipe = pipeline(noisy, LogisticRegression(classes=(0, 1), max_iter=5), epsilon=4.0).fit(X, y)
        step = next(step for step in pipe.certificate_["steps"] if step["name"] == "stage")
        assert step["way"] == "noisy"
        assert step["distance"] == pipe.certificate_["entrance"]["distance"]
        assert pipe.certificate_.verify()
        twin, alone = pipe["stage"], clone(stage).fit(X)
        for name in set(stage.statistic_names) - {"norm", "clip", "columns"}:
            np.testing.assert_allclose(getattr(twin, f"{name}_"), getattr(alone, f"{name}_"), atol=0.1)

    def test_rows_that_spread_evenly_pass_at_the_default_gap(self):
        """The default is meant for them: about 200 rows of margin, whatever their number."""
        for n in (2000, 20_000):
            X = np.random.default_rng(1).uniform(-1, 1, (n, 3))
            domain = Domain(n_rows=n, n_features=3, row_norm=3**0.5, entry_bound=1.0)
            for stage in STAGES:
                (way,) = stage.fit_modes(domain, ONE)
                assert 150 < way.conditions[-1].margin(X) < 250


# ---------------- bins, ranks and splines


X = np.random.default_rng(0).lognormal(size=(N, 2))
X.flags.writeable = False
CLIPPED = np.clip(X, 0, 20)


def private(stage, table=X, **more):
    steps = [("range", S.MinMaxScaler(ranges=(0, 20))), ("quantiles", stage), ("model", LogisticRegression((0, 1)))]
    return Pipeline(steps, epsilon=5.0, delta=1e-6, random_state=0, **more).fit(table, (X[:, 0] > 1).astype(int))


@pytest.mark.parametrize("encode", ["onehot", "ordinal"])
def test_bins_are_those_of_scikit_learn_but_for_rows_next_to_edges(encode):
    theirs = preprocessing.KBinsDiscretizer(4, encode=encode.replace("onehot", "onehot-dense")).fit_transform(CLIPPED)
    alone = S.KBinsDiscretizer(4, encode).fit_transform(X)
    pipe = private(S.KBinsDiscretizer(4, encode))
    released = pipe[:-1].transform(X)
    assert alone.shape == released.shape == theirs.shape
    assert np.abs(alone - theirs).any(axis=1).mean() < 0.002
    assert np.abs(released - theirs).any(axis=1).mean() < 0.1
    assert pipe.certificate_.verify()


@pytest.mark.parametrize("output", ["uniform", "normal"])
def test_ranks_are_those_of_scikit_learn_but_for_straight_lines(output):
    theirs = preprocessing.QuantileTransformer(n_quantiles=1000, output_distribution=output).fit_transform(CLIPPED)
    pipe = private(S.QuantileTransformer(20, output))
    inner = (np.abs(preprocessing.QuantileTransformer(n_quantiles=1000).fit_transform(CLIPPED) - 0.5) < 0.45).all(
        axis=1
    )
    assert np.abs(pipe[:-1].transform(X) - theirs)[inner].max() < (0.05 if output == "uniform" else 0.25)
    assert pipe.certificate_.verify()


@pytest.mark.parametrize("bias", [True, False])
def test_splines_are_those_of_scikit_learn_with_these_knots(bias):
    pipe = private(S.SplineTransformer(6, include_bias=bias))
    knots = pipe[1].edges_ + 1e-6 * np.arange(6)[:, None]
    theirs = preprocessing.SplineTransformer(knots=knots, include_bias=bias).fit(knots).transform(pipe[:1].transform(X))
    np.testing.assert_allclose(pipe[:-1].transform(X), theirs, atol=1e-6)
    assert pipe.certificate_.verify()
    assert pipe[1].edges_[0, 0] < pipe[1].edges_[-1, 0] < 0  # where the rows are, not the range


def test_splines_beside_columns_of_categories():
    table = pd.DataFrame({"kind": np.where(X[:, 1] > 1, "a", "b"), "size": CLIPPED[:, 0]})
    encoder = S.CategoryEncoder({"kind": ["a", "b"]}, other=None)
    columns = ColumnTransformer([("kind", encoder, ["kind"]), ("size", S.MinMaxScaler(ranges=(0, 20)), ["size"])])
    steps = [("columns", columns), ("splines", S.SplineTransformer(4)), ("m", LogisticRegression((0, 1)))]
    pipe = Pipeline(steps, random_state=0).fit(table, (X[:, 0] > 1).astype(int))
    rows = pipe[:-1].transform(table)
    assert rows.shape == (N, 2 + 6)
    assert rows[:, 2:].min() >= 0
    assert np.allclose(rows[:, 2:].sum(axis=1), 1)
    assert pipe.score(table, (X[:, 0] > 1).astype(int)) > 0.9


def test_columns_of_categories_stay_and_names_tell_the_bins():
    table = pd.DataFrame({"kind": np.where(X[:, 1] > 1, "a", "b")})
    pipe = Pipeline(
        [
            ("kind", S.CategoryEncoder({"kind": ["a", "b"]}, other=None)),
            ("bins", S.KBinsDiscretizer(3)),
            ("m", LogisticRegression()),
        ],
        domain=Domain(classes=(0, 1)),
        random_state=0,
    ).fit(table, (X[:, 0] > 1).astype(int))
    assert pipe[:-1].transform(table).shape == (N, 2)
    some = S.KBinsDiscretizer(3, columns=[0]).fit(X)
    assert list(some.get_feature_names_out(["one", "two"])) == ["one_0", "one_1", "one_2", "two"]
    assert np.array_equal(some.transform(X)[:, 3], X[:, 1])


def test_missing_values_are_zeros_or_stay():
    rows = np.array([[1.0, np.nan], [2.0, 3.0], [5.0, 4.0]])
    assert S.KBinsDiscretizer(2).fit(rows).transform(rows)[0].tolist() == [1, 0, 0, 0]
    assert not S.SplineTransformer().fit(rows).transform(rows)[0, 7:].any()
    for stage in (S.KBinsDiscretizer(2, "ordinal"), S.QuantileTransformer(2)):
        assert np.isnan(stage.fit(rows).transform(rows)).tolist() == np.isnan(rows).tolist()


def test_a_column_of_one_value_has_bins():
    flat = np.column_stack([np.full(N, 3.0), X[:, 1]])
    for stage in (S.KBinsDiscretizer(3), S.SplineTransformer()):
        assert private(stage, flat).certificate_.verify()


@pytest.mark.parametrize("stage", [S.KBinsDiscretizer(2), S.QuantileTransformer(2), S.SplineTransformer(3, 1)])
def test_rows_reach_the_certified_norm_and_cross_an_edge_as_far_as_any(stage):
    """The norm sets the noise of what stands behind; that rows that moved count as replaced is no more than they do."""
    domain = Domain(n_rows=100, n_features=2, row_norm=math.sqrt(2), entry_bound=1.0)
    (way,) = stage.fit_modes(domain, Adjacency.replace().distance)
    edges = np.zeros((len(stage._levels), 2)) - isinstance(stage, S.KBinsDiscretizer)
    held = stage.read(edges, way, domain)
    rows = stage.map_rows(np.array([[-1.0, -1.0], [-1 + 1e-9, -1 + 1e-9], [1.0, 1.0]]), held)
    assert 1 - 1e-6 < np.linalg.norm(rows, axis=1).max() / way.domain.row_norm <= 1
    if isinstance(stage, S.KBinsDiscretizer):
        assert np.linalg.norm(rows[1] - rows[0]) == np.linalg.norm(rows[2] - rows[0]) == 2.0


def test_a_refusal_of_a_pipeline_with_them_can_be_read():
    steps = [("range", S.MinMaxScaler((0, 20))), ("scale", S.StandardScaler()), ("bins", S.KBinsDiscretizer(3))]
    with pytest.raises(UnsupportedOrder) as refused:
        Pipeline([*steps, ("m", GradientBoostingClassifier((0, 1)))]).fit(X, (X[:, 0] > 1).astype(int))
    assert "put an imputer before it" in str(refused.value)


@pytest.mark.parametrize(
    "stage",
    [
        S.KBinsDiscretizer(1),
        S.KBinsDiscretizer(10**6),
        S.KBinsDiscretizer(3, "dense"),
        S.QuantileTransformer(4, "beta"),
        S.SplineTransformer(2),
        S.SplineTransformer(degree=0),
        S.SplineTransformer(include_bias="no"),
    ],
)
def test_what_is_refused(stage):
    with pytest.raises(InvalidParameter):
        private(stage)
