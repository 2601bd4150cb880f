"""Generalised linear models: counts and amounts in a public range, through estimators and pipelines."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn import linear_model
from sklearn.metrics import d2_tweedie_score, r2_score

from ppdp import Domain, Pipeline
from ppdp.exceptions import InvalidParameter, InvalidValue, MissingBound
from ppdp.mechanisms import GammaRegressor, LinearRegression, PoissonRegressor, Ridge, TweedieRegressor
from ppdp.transformers import Deduplicator, MeanImputer, MinMaxScaler

N = 8000
RANGE = (0.0, 12.0)
POWER = {PoissonRegressor: 1.0, TweedieRegressor: 1.5, GammaRegressor: 2.0}
kinds = pytest.mark.parametrize("kind", POWER, ids=lambda kind: kind.__name__)
regressors = pytest.mark.parametrize("kind", [*POWER, LinearRegression, Ridge], ids=lambda kind: kind.__name__)


def problem(kind, seed=0, n=N):
    """Targets whose logarithmic mean depends on two of three columns."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(-1, 1, (n, 3)), columns=["age", "distance", "noise"])
    mean = np.exp(0.7 + 0.9 * X["age"] - 0.6 * X["distance"])
    y = {
        GammaRegressor: lambda: rng.gamma(3.0, mean / 3.0),
        TweedieRegressor: lambda: np.array([rng.gamma(2.0, 0.5, count).sum() for count in rng.poisson(mean)]),
    }.get(kind, lambda: rng.poisson(mean).astype(float))()
    return X, pd.Series(y, name="visits")


def pipeline(model, **parameters):
    steps = [("range", MinMaxScaler(ranges=(-1, 1))), ("dedup", Deduplicator()), ("model", model)]
    return Pipeline(steps, **{"epsilon": 1.0, "delta": 1e-6, **parameters})


class TestDefaults:
    """As the docstrings have them."""

    STEPS, STEP_SIZE = "6 (n μ / √(d + 1))^0.275", "1.8 / max(1, min(R², d) / √d)"

    @kinds
    @pytest.mark.parametrize(("n", "d", "norm"), [(200, 1, 1.0), (2000, 3, 1.0), (2000, 9, 2.0), (50_000, 4, 9.0)])
    def test_steps_and_their_length(self, kind, n, d, norm):
        assert self.STEPS in kind.__doc__
        assert self.STEP_SIZE in kind.__doc__
        domain, mu = Domain(n_rows=n, n_features=d, row_norm=norm, min_present=n), 0.25
        found = kind(RANGE).query_spec(domain, mu)
        assert found.steps == int(min(max(6 * (n * mu / math.sqrt(d + 1)) ** 0.275, 10), 80))
        assert found.learning_rate == pytest.approx(min(1.8 / max(1, min(norm**2, d) / math.sqrt(d)), 0.45))


class TestWhatIsLearned:
    @pytest.mark.parametrize("kind", [PoissonRegressor, GammaRegressor])
    def test_descent_on_targets_in_the_middle_of_their_range(self, kind):
        """Whose curvature is 4 times that of a score of 0: with longer steps R² was -3 to 0.8 (median 0)."""
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, (700, 1))
        y = np.clip(rng.normal(5 + 2 * X[:, 0], 0.5), 0.1, 10)
        found = [pipeline(kind((0.1, 10), solver="dpgd"), random_state=seed).fit(X, y).predict(X) for seed in range(4)]
        assert min(r2_score(y, one) for one in found) > 0.5

    @kinds
    def test_coefficients_are_those_of_the_minimiser(self, kind):
        X, y = problem(kind, n=500)
        settings = {
            "noise_scale": 1e-5,
            "max_iter": 300,
            "max_grad_norm": 100.0,
            "max_coef_norm": 20.0,
            "learning_rate": 0.3,
        }
        model = kind(random_state=0, **settings).fit(X, y)
        public = linear_model.TweedieRegressor(power=POWER[kind], alpha=0, link="log", solver="newton-cholesky")
        public.fit(X, y)
        np.testing.assert_allclose(model.coef_, public.coef_, atol=0.01)
        assert model.intercept_ == pytest.approx(public.intercept_, abs=0.01)
        assert model.score(X, y) == pytest.approx(public.score(X, y), abs=1e-3)

    @kinds
    def test_units_do_not_matter(self, kind):
        """Targets in other units change the intercept only, by the logarithm of the unit."""
        X, y = problem(kind, n=500)
        one, other = (
            kind((0.0, 12.0 * unit), noise_scale=0.01, max_iter=20, random_state=0).fit(X, y * unit) for unit in (1, 64)
        )
        np.testing.assert_array_equal(one.coef_, other.coef_)
        assert other.intercept_ - one.intercept_ == pytest.approx(np.log(64))

    def test_no_intercept_means_the_unit(self):
        model = PoissonRegressor((0.0, 16.0), fit_intercept=False, noise_scale=1e-3).fit(*problem(PoissonRegressor))
        assert model.intercept_ == np.log(2.0)
        assert model.coef_.shape == (3,)


class TestManners:
    @kinds
    def test_predictions_are_finite_whatever_the_row(self, kind):
        model = kind(RANGE, noise_scale=1e-3).fit(*problem(kind, n=1000))
        extreme = pd.DataFrame([[1e9, 0.0, 0.0], [-1e9, 0.0, 0.0]], columns=["age", "distance", "noise"])
        assert np.isfinite(model.predict(extreme)).all()
        assert (model.predict(extreme) > 0).all()

    def test_gaps(self):
        X, y = problem(PoissonRegressor)
        holes = X.mask(np.random.default_rng(0).random(X.shape) < 0.05)
        steps = [("range", MinMaxScaler(ranges=(-1, 1))), ("impute", MeanImputer()), ("model", PoissonRegressor(RANGE))]
        pipe = Pipeline(steps, epsilon=2.0).fit(holes, y)
        assert pipe.certificate_.verify()
        assert d2_tweedie_score(y, pipe.predict(holes), power=1) > 0.1


class TestTheRange:
    @regressors
    def test_must_be_declared(self, kind):
        X, y = problem(kind, n=1000)
        for ask in (lambda pipe: pipe.plan(Domain(n_rows=100, n_features=2)), lambda pipe: pipe.fit(X, y)):
            with pytest.raises(MissingBound, match="range of the targets") as caught:
                ask(pipeline(kind()))
            assert "y_range" in caught.value.fix
            assert caught.value.stage == kind.__name__
        assert pipeline(kind()).plan(Domain(n_rows=1000, n_features=2, y_range=RANGE)).loss.mu > 0

    @kinds
    @pytest.mark.parametrize(
        ("y_range", "says"),
        [
            ((-1.0, 5.0), "begin below 0"),
            ((3.0, 1.0), "low < high"),
            ((0.0, 1e-120), "1e-100"),
            ((0.0, 1e200), "1e100"),
        ],
    )
    def test_may_not_begin_below_zero_nor_be_out_of_reach(self, kind, y_range, says):
        with pytest.raises(InvalidParameter, match=says):
            pipeline(kind(y_range)).plan(Domain(n_rows=1000, n_features=2))

    @regressors
    def test_targets_outside_are_clipped(self, kind):
        X, y = problem(kind, n=1000)
        wild = y.where(y < 9, 1e300).where(y > 0.5, -5.0)
        tame = wild.clip(*RANGE)
        one, other = (pipeline(kind(RANGE), random_state=0).fit(X, t)["model"].coef_ for t in (wild, tame))
        np.testing.assert_array_equal(one, other)

    @kinds
    def test_alone_it_is_read_off_the_targets(self, kind):
        X, y = problem(kind, n=500)
        assert kind(noise_scale=1e-3).fit(X, y).score(X, y + 1e-9) > 0
        assert np.isfinite(kind(noise_scale=1e-3).fit(X, np.zeros(500)).predict(X)).all()
        with pytest.raises(InvalidValue, match="negative"):
            kind(noise_scale=1e-3).fit(X, y - 1e6)
