"""Where noise is drawn too coarsely for the epsilon asked for, the largest that can be certified is kept."""

import math

import numpy as np
import pytest

from ppdp import Domain, PrivateSearchCV, make_pipeline
from ppdp.exceptions import NoiseWarning, NoRoute
from ppdp.mechanisms import (
    ExponentialMechanism,
    GaussianMechanism,
    GaussianSketch,
    LaplaceMechanism,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    SignMechanism,
)
from ppdp.privacy.noise.sampler import TOTAL_VARIATION_PER_DRAW, certifiable_epsilon
from ppdp.transformers import MeanImputer, MinMaxScaler, NormClipper, StandardScaler

X = np.random.default_rng(0).uniform(0, 1, (500, 3))
Y = (X.sum(axis=1) > 1.5).astype(int)
MECHANISMS = [
    GaussianMechanism(),
    GaussianMechanism("rows"),
    LaplaceMechanism(),
    ExponentialMechanism(candidates=range(3)),
    GaussianSketch(),
    SignMechanism(),
    LogisticRegression((0, 1)),
    LogisticRegression((0, 1), solver="output"),
    Ridge(y_range=(0, 1)),
    PoissonRegressor(y_range=(0, 1)),
]


def pipeline(mechanism, **parameters):
    return make_pipeline(MinMaxScaler((0, 1)), MeanImputer(), StandardScaler(), mechanism, **parameters)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_every_mechanism_fits_at_epsilon_50(mechanism):
    pipe = pipeline(mechanism, epsilon=50.0, dataset=repr(mechanism))
    with pytest.warns(NoiseWarning, match="epsilon = 50 at delta = 1e-06: the plan keeps epsilon = 2"):
        pipe.fit(X, Y)
    assert pipe.certificate_.verify()
    assert 20 < pipe.certificate_["epsilon"] < 28
    assert pipe.certificate_["delta"] == 1e-6


def test_what_draws_exactly_keeps_all_of_it():
    plan = make_pipeline(MinMaxScaler((0, 1)), LaplaceMechanism(), epsilon=50.0).plan(Domain(n_rows=500, n_features=3))
    assert plan.epsilon == 50
    assert not plan.warnings


def test_more_epsilon_is_never_more_noise():
    domain = Domain(n_rows=500, n_features=3)
    noise = [
        make_pipeline(MinMaxScaler((0, 1)), GaussianMechanism(), epsilon=e).plan(domain).mechanism.noise_scale
        for e in (1.0, 10.0, 20.0, 25.0, 27.0, 28.0, 50.0, 500.0)
    ]
    assert noise == sorted(noise, reverse=True)


@pytest.mark.parametrize("draws", [1, 1000, 10**9])
@pytest.mark.parametrize("delta", [1e-12, 1e-9, 1e-6, 1e-3])
def test_the_largest_epsilon_leaves_half_of_delta(draws, delta):
    kept = certifiable_epsilon(500.0, delta, draws)
    used = (1 + math.exp(kept)) * draws * TOTAL_VARIATION_PER_DRAW
    assert kept == 0 or used <= delta / 2 < used * 1.03
    assert certifiable_epsilon(kept / 2, delta, draws) == kept / 2


def test_a_search_keeps_the_largest_epsilon_too():
    pipe = make_pipeline(MinMaxScaler((0, 1)), LogisticRegression((0, 1)))
    search = PrivateSearchCV(pipe, {"minmaxscaler__feature_range": [(-1, 1), (0, 1)]}, epsilon=50.0, dataset="search")
    with pytest.warns(NoiseWarning, match="the plan keeps epsilon = 2"):
        search.fit(X, Y)
    assert search.certificate_.verify()
    assert 15 < search.certificate_["epsilon"] < 28


def test_a_refusal_at_a_large_epsilon_speaks_of_no_smaller_one():
    pipe = make_pipeline(NormClipper(), GaussianMechanism(), epsilon=50.0, delta=1e-18)
    with pytest.raises(NoRoute, match=r"Fix: a larger delta\.") as caught:
        pipe.plan(Domain(n_rows=60, n_features=10))
    assert "No epsilon up to" not in str(caught.value)
