"""Models of a function of the targets: what they learn, and what they predict in the units of the targets."""

import numpy as np
import pytest

from ppdp import Pipeline, load
from ppdp.exceptions import InvalidParameter
from ppdp.mechanisms import GradientBoostingRegressor, LinearRegression, Ridge
from ppdp.mechanisms.target_functions import FUNCTIONS
from ppdp.transformers import MinMaxScaler

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (2000, 2))
Y = np.exp(0.5 + X @ [0.4, -0.3] + 0.1 * RNG.standard_normal(len(X)))
RANGE = (1.0, 4.0)
QUIET = {"noise_scale": 1e-9, "random_state": 0}


@pytest.mark.parametrize("kind", [LinearRegression, Ridge, GradientBoostingRegressor])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.repeated("name")
def test_the_function_of_the_targets_is_learned_and_targets_are_predicted(kind, name):
    function, inverse = FUNCTIONS[name]
    ours = kind(RANGE, target_func=name, **QUIET).fit(X, Y)
    learned = kind(tuple(function(RANGE)), **QUIET).fit(X, function(np.clip(Y, *RANGE)))
    assert np.allclose(ours.predict(X), inverse(learned.predict(X)), atol=1e-6)
    assert ours.y_range_ == RANGE
    assert ours.learned_range_ == pytest.approx(tuple(function(RANGE)))


@pytest.mark.parametrize("kind", [Ridge, GradientBoostingRegressor])
def test_a_release_predicts_alike_everywhere(kind, tmp_path):
    steps = [("range", MinMaxScaler(ranges=(-1, 1))), ("model", kind(RANGE, target_func="log"))]
    pipe = Pipeline(steps, epsilon=300.0, delta=1e-6).fit(X, Y)
    predicted = pipe.predict(X)
    assert pipe.score(X, Y) > 0.7
    assert pipe.certificate_.verify()
    pipe.export(tmp_path / "model.zip")
    assert np.array_equal(load(tmp_path / "model.zip").predict(X), predicted)
    assert np.allclose(pipe.release_.to_sklearn().predict(X), predicted, atol=1e-12)


@pytest.mark.parametrize(
    ("model", "parameter"),
    [
        (Ridge((0, 5), target_func="log"), "y_range"),
        (Ridge((-2, 5), target_func="square"), "y_range"),
        (Ridge((0, 1000), target_func="exp"), "y_range"),
        (Ridge(RANGE, target_func="cbrt"), "target_func"),
        (GradientBoostingRegressor(RANGE, loss="poisson", target_func="log"), "target_func"),
    ],
)
def test_what_is_no_range_is_refused(model, parameter):
    with pytest.raises(InvalidParameter) as refused:
        model.set_params(**QUIET).fit(X, Y)
    assert refused.value.parameter == parameter
