"""MedianImputer, RobustScaler and MinMaxScaler(quantiles=...): behaviour, errors that teach, and pipelines."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import MaxAbsScaler
from sklearn.preprocessing import MinMaxScaler as DataDrivenScaler

from ppdp import Adjacency, Domain, Pipeline, PrivacyRefusal, make_pipeline
from ppdp.exceptions import MissingBound
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.transformers import MeanImputer, MedianImputer, MinMaxScaler, RobustScaler

ONE = Adjacency.replace().distance

GAP = np.nan
STAGES = [
    MedianImputer(fit_mode="exact"),
    RobustScaler(fit_mode="exact"),
    MinMaxScaler(quantiles=(0.1, 0.9), fit_mode="exact"),
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
    steps = [("range", MinMaxScaler(ranges=(-1, 1))), ("stage", clone(stage))]
    if not stage.fills_gaps:
        steps.append(("fill", MeanImputer(fit_mode="noisy")))
    settings = {"epsilon": 15.0, "delta": 1e-5, "random_state": 0, **parameters}
    return Pipeline([*steps, ("last", mechanism)], **settings)


class TestValues:
    def test_lower_medians_fill_gaps(self):
        X = np.array([[4.0, GAP], [1.0, 5.0], [3.0, 7.0], [2.0, GAP], [GAP, GAP]])
        filled = MedianImputer().fit_transform(X)
        np.testing.assert_array_equal(filled[:, 0], [4, 1, 3, 2, 2])
        np.testing.assert_array_equal(filled[:, 1], [5, 5, 7, 5, 5])

    def test_odd_columns_have_the_usual_median(self):
        X = np.random.default_rng(0).normal(size=(31, 3))
        X[0], X[1] = GAP, GAP
        expected = SimpleImputer(strategy="median").fit(X).statistics_
        np.testing.assert_array_equal(MedianImputer().fit(X).median_, expected)

    def test_a_column_without_values_is_filled_with_zeros(self):
        X = np.array([[1.0, GAP], [3.0, GAP]])
        np.testing.assert_array_equal(MedianImputer().fit_transform(X), [[1, 0], [3, 0]])

    def test_robust_scaling(self):
        X = np.arange(1.0, 10.0)[:, None]
        scaler = RobustScaler(min_width=1e-6, clip=0.75).fit(X)
        assert (scaler.center_, scaler.scale_) == (5.0, 4.0)  # of 9 values the 3rd, 5th, 7th
        np.testing.assert_allclose(scaler.transform(X).ravel(), np.clip((X.ravel() - 5) / 4, -0.75, 0.75))

    def test_quantile_scaling(self):
        X = np.arange(1.0, 11.0)[:, None]
        scaler = MinMaxScaler(quantiles=(0.1, 0.9), feature_range=(0, 1)).fit(X)
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
            MinMaxScaler().fit(data(20)[0])
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
        few = pipeline(MedianImputer(max_missing=0.2, fit_mode="exact"), GaussianMechanism()).fit(X)
        steps = few.certificate_["steps"]
        assert [k["name"] for k in steps[1]["conditions"]] == ["missing", "gap"]
        assert steps[1]["distance"]["moved"] == 0.2 * N
        assert few.certificate_.verify()

    def test_no_rows_with_gaps_cost_nothing(self):
        X, _ = data(gaps=False)
        domain = Domain(max_missing=0)
        pipe = pipeline(MedianImputer(), GaussianMechanism(), domain=domain, epsilon=1.0).fit(X)
        assert pipe.certificate_.verify()
        assert pipe.certificate_["steps"][1]["formula"] == "imputation.zero"

    def test_auto_does_not_offer_what_no_data_could_pass(self):
        plan = pipeline(MedianImputer(max_quantile_gap=0.1), GaussianMechanism(), epsilon=1.0, delta=1e-6).plan(
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
