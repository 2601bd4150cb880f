"""Losses where float64 ends: a delta is 0 only where nothing is lost, and every parameter has an answer."""

import math

import mpmath as mp
import pytest

from ppdp import PrivacyLoss
from ppdp.core.rounding import LEAST, tiny
from ppdp.privacy import NoisyProjectionLoss, SketchLoss
from ppdp.privacy.gaussian import gaussian_delta, gaussian_epsilon
from ppdp.privacy.losses import Laplace, PoissonSamples
from ppdp.privacy.renyi import gaussian_curve, renyi_delta

SAMPLES = {"replaced": 0.0, "toggled": 1.0, "moved": 0.0, "radius": 0.0, "total": 0.0, "bound": 1.0, "lipschitz": 0.0}


@pytest.mark.parametrize(
    "delta",
    [
        lambda: gaussian_delta(1e-3, 1.0),
        lambda: gaussian_delta(1e-300, 1.0),
        lambda: renyi_delta(gaussian_curve(1e-6), 1.0),
        lambda: PrivacyLoss(1e-3).delta(1.0),
        lambda: PrivacyLoss(parts=(PoissonSamples(count=1, rate=0.5, noise_scale=1e6, **SAMPLES),)).delta(1.0),
        lambda: NoisyProjectionLoss(512, 16, 1e-3).delta(1.0),
        lambda: SketchLoss(rank=1, shift=1e-9, floor=1.0).delta(50.0),
    ],
)
def test_a_delta_that_underflows_is_the_smallest_float(delta):
    assert 0 < delta() <= 2**-60


def test_nothing_lost_is_nothing():
    assert gaussian_delta(0.0, 1.0) == PrivacyLoss().delta(0.0) == 0.0
    assert PrivacyLoss(parts=(Laplace(shift=1.0, scale=2.0),)).delta(0.5) == 0.0


def test_deltas_below_the_normal_numbers_are_rounded_up():
    with mp.workdps(40):
        for epsilon in (37.0, 37.5, 38.0, 38.2, 38.3, 38.4, 38.5, 39.0):
            true = mp.ncdf(0.5 - mp.mpf(epsilon)) - mp.exp(epsilon) * mp.ncdf(-0.5 - mp.mpf(epsilon))
            assert mp.mpf(gaussian_delta(1.0, epsilon)) >= true
    assert (tiny(0.0), tiny(LEAST), tiny(0.25)) == (LEAST, 3 * LEAST, 0.25)


@pytest.mark.parametrize("shape", [(512, 16), (11_008, 1)])
@pytest.mark.parametrize("mu", [1e-300, 1e-120, 1e-50, 262.0, 1e4, 1e120, 1e160, 1e300])
@pytest.mark.parametrize("more", [{}, {"steps": 5}, {"steps": 5, "rank_one": True}, {"steps": 5, "sampling_rate": 0.1}])
def test_projections_of_any_size_have_a_loss_no_larger_than_without(shape, mu, more):
    loss, plain = NoisyProjectionLoss(*shape, mu, **more), mu * math.sqrt(more.get("steps", 1))
    for epsilon in (0.0, 1.0, 50.0):
        assert 0 < loss.delta(epsilon) <= gaussian_delta(plain, epsilon) * (1 + 1e-9)
    assert loss.epsilon(1e-6) <= gaussian_epsilon(plain, 1e-6)
    assert loss.curve()(2.5) >= 0
