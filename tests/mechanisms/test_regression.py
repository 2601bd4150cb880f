"""Regressions: targets in a public range, through estimators and pipelines."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_regressor
from sklearn.linear_model import LinearRegression as PublicRegression
from sklearn.linear_model import Ridge as PublicRidge
from sklearn.metrics import r2_score

from ppdp import Domain, Pipeline, declare, make_pipeline
from ppdp.data.rows import encode_targets
from ppdp.exceptions import DomainMismatch, InvalidInput, InvalidParameter
from ppdp.mechanisms import GammaRegressor, LinearRegression, PoissonRegressor, Ridge, TweedieRegressor
from ppdp.transformers import Deduplicator, MeanImputer, MinMaxScaler, RobustScaler, StandardScaler

N = 4000
RANGE = (10.0, 50.0)
MODELS = [LinearRegression(), Ridge(), Ridge(solver="output")]
kinds = pytest.mark.parametrize("model", MODELS, ids=lambda m: f"{type(m).__name__}-{m.solver}")


@pytest.fixture(scope="module")
def houses():
    """A price that depends on three columns, in a public range."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1, 1, (N, 3)), columns=["size", "age", "noise"])
    return X, (30 + 8 * X["size"] - 5 * X["age"] + rng.normal(0, 2, N)).rename("price")


def pipeline(model, **parameters):
    steps = [("range", MinMaxScaler(ranges=(-1, 1))), ("dedup", Deduplicator()), ("model", model)]
    return Pipeline(steps, **{"epsilon": 1.0, "delta": 1e-6, **parameters})


def ranged(model, **parameters):
    return type(model)(**{**model.get_params(), "y_range": RANGE, **parameters})


class TestWhatIsLearned:
    @kinds
    def test_nearly_as_well_as_without_privacy(self, houses, model):
        X, y = houses
        pipe = pipeline(ranged(model)).fit(X, y)
        least = PublicRegression().fit(X, y).score(X, y) - (0.2 if model.solver == "output" else 0.05)
        assert pipe.score(X, y) == r2_score(y, pipe.predict(X)) > least
        assert pipe.certificate_.status == "UNCONDITIONAL"
        assert pipe.certificate_.verify()

    def test_coefficients_in_units_of_the_targets(self, houses):
        X, y = houses
        settings = {"noise_scale": 1e-5, "max_iter": 400, "max_grad_norm": 100.0, "max_coef_norm": 100.0}
        for own in ("dpgd", "output"):
            model = Ridge(y_range=RANGE, alpha=50.0, random_state=0, solver=own, **settings).fit(X, y)
            centred = y - 30.0  # the public centre: under "output" the intercept is penalised too
            wide = X.assign(one=1.0) if own == "output" else X
            public = PublicRidge(alpha=50.0, fit_intercept=own == "dpgd").fit(wide, centred)
            np.testing.assert_allclose(model.coef_, public.coef_[:3], atol=5e-3)
            intercept = public.coef_[3] if own == "output" else public.intercept_
            assert model.intercept_ == pytest.approx(30 + intercept, abs=5e-3)
            assert model.score(X, y) == r2_score(y, model.predict(X))

    def test_no_intercept_means_the_centre_of_the_range(self, houses):
        model = LinearRegression(RANGE, fit_intercept=False, noise_scale=1e-3).fit(*houses)
        assert model.intercept_ == 30.0


class TestManners:
    @pytest.mark.parametrize("model", [*MODELS, PoissonRegressor(), TweedieRegressor(), GammaRegressor()], ids=repr)
    def test_is_a_regressor_and_so_is_its_pipeline(self, houses, model):
        X, y = houses
        pipe = pipeline(ranged(model))
        assert is_regressor(model)
        assert is_regressor(pipe)
        pipe.fit(X, y)
        assert not hasattr(pipe, "classes_")
        assert not any(hasattr(pipe, name) for name in ("predict_proba", "decision_function"))
        assert pipe["model"].coef_.shape == (3,)
        assert isinstance(pipe["model"].intercept_, float)
        assert pipe.predict(X).shape == (N,)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(pipe)).predict(X), pipe.predict(X))

    @kinds
    def test_alone_reads_the_range_of_the_targets(self, houses, model):
        model = type(model)(**{**model.get_params(), "noise_scale": 1e-3, "random_state": 0})
        assert model.fit(*houses).score(*houses) > 0.5
        assert model.fit(houses[0], np.full(N, 7.0)).predict(houses[0][:2]).shape == (2,)

    def test_gaps_and_noisy_stages(self, houses):
        X, y = houses
        holes = X.mask(np.random.default_rng(0).random(X.shape) < 0.05)
        stages = MinMaxScaler(ranges=(-1, 1)), MeanImputer(), StandardScaler()
        pipe = make_pipeline(*stages, Ridge(RANGE), epsilon=3.0, delta=1e-6).fit(holes, y)
        assert pipe.score(holes, y) > 0.6
        assert pipe.certificate_.verify()


class TestTheRange:
    def test_of_the_model_or_of_the_domain(self, houses):
        own = pipeline(LinearRegression(RANGE), random_state=0).fit(*houses)
        declared = pipeline(LinearRegression(), domain=Domain(y_range=RANGE), random_state=0).fit(*houses)
        np.testing.assert_array_equal(own["model"].coef_, declared["model"].coef_)
        origins = [
            next(fact["origin"] for fact in pipe.certificate_["facts"] if fact["name"] == "y_range")
            for pipe in (own, declared)
        ]
        assert origins == ["parameter of the model; targets are clipped", "declared; targets are clipped"]
        assert own.certificate_["entrance"]["domain"]["y_range"] == list(RANGE)

    def test_may_not_be_two(self, houses):
        with pytest.raises(DomainMismatch, match="ranges of y"):
            pipeline(LinearRegression(RANGE), domain=Domain(y_range=(0, 1))).fit(*houses)

    def test_impossible(self, houses):
        with pytest.raises(InvalidParameter, match="y_range"):
            LinearRegression((3, 1), noise_scale=1.0).fit(*houses)

    def test_targets_are_shares_of_half_of_it(self):
        y = np.array([-np.inf, 10.0, 30.0, 40.0, 50.0, 1e308, np.nan])
        np.testing.assert_array_equal(encode_targets(y, RANGE), [-1, -1, 0, 0.5, 1, 1, 0])
        huge = encode_targets(np.array([-1e308, 0.0, 1e308]), (-8e307, 8e307))
        np.testing.assert_array_equal(huge, [-1, 0, 1])


class TestInvalidTargets:
    @pytest.mark.parametrize("y", [["low"] * N, [None, "x"] * (N // 2), np.full(N, np.datetime64("2020-01-01"))])
    def test_that_are_no_numbers(self, houses, y):
        with pytest.raises(InvalidInput, match=r"y (must hold numbers|holds dates or durations)"):
            pipeline(LinearRegression(RANGE)).fit(houses[0], y)


@pytest.mark.parametrize("between", [[], [("scale", RobustScaler())]], ids=["as they are", "scaled"])
def test_steps_of_many_categories_do_not_go_too_far(between):
    """Targets lie in a part of their range, and rows are as long as any: moments are of shortened ones."""
    rng = np.random.default_rng(0)
    km, rain = (
        rng.gamma(3, 3, 40_000).clip(0.5, 60),
        np.where(rng.random(40_000) < 0.75, 0.0, rng.exponential(2.5, 40_000)),
    )
    line = rng.integers(1, 81, len(km))
    delay = 1 + 0.25 * km + 0.5 * rain + 1.5 * (line % 9 == 0) + rng.normal(0, 2.9, len(km))
    X = pd.DataFrame({"km": km, "rain": rain.clip(0, 60), "line": [f"L{number}" for number in line]})
    facts = declare(X)
    facts.update(km=(0, 60), rain=(0, 60), line=[f"L{number}" for number in range(1, 81)])
    model = ("model", LinearRegression(y_range=(-10, 60)))
    for seed in range(2):
        pipe = Pipeline([*facts.steps(), *between, model], epsilon=1.0, delta=1e-6, random_state=seed).fit(X, delay)
        assert pipe.score(X, delay) > 0.6 * PublicRegression().fit(X[["km", "rain"]], delay).score(
            X[["km", "rain"]], delay
        )
