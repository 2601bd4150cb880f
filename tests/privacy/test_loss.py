"""Privacy losses add as dominating pairs do, and have an answer where float64 ends; failure probabilities add."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate
from scipy.stats import norm

from ppdp.core.rounding import LEAST, tiny
from ppdp.exceptions import InvalidParameter
from ppdp.privacy import NoisyProjectionLoss, SketchLoss
from ppdp.privacy.gaussian import gaussian_delta, gaussian_epsilon
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.losses import Laplace, PoissonSamples
from ppdp.privacy.renyi import gaussian_curve, renyi_delta

mus = st.floats(1e-3, 10)
failures = st.floats(0, 1e-3)
losses = st.builds(PrivacyLoss, mus, failures)


def hockey_stick(mu: float, log_ratio: float) -> float:
    """sup P(O) - g Q(O) of N(mu, 1) against N(0, 1), for any g = exp(log_ratio) > 0."""
    return norm.cdf(mu / 2 - log_ratio / mu) - math.exp(log_ratio) * norm.cdf(-mu / 2 - log_ratio / mu)


def revealed(failure: float, log_ratio: float) -> float:
    """The same of the pair "revealed with this probability, else nothing"."""
    return failure if log_ratio >= 0 else 1 - math.exp(log_ratio) * (1 - failure)


def adaptive_delta(mu: float, worst, epsilon: float) -> float:
    """delta(epsilon) of a mu-release whose output o decides what follows; `worst` is its best hockey stick."""

    def integrand(o: float) -> float:
        return norm.pdf(o, mu) * worst(epsilon - (mu * o - mu * mu / 2))

    kink = epsilon / mu + mu / 2
    return integrate.quad(integrand, -12, 12 + mu, limit=2000, epsabs=1e-17, epsrel=1e-10, points=[kink])[0]


class TestComposition:
    @given(losses, losses, losses)
    def test_is_associative_and_commutative(self, a, b, c):
        assert ((a + b) + c).mu == pytest.approx((c + (b + a)).mu, rel=1e-12)
        assert ((a + b) + c).failure == pytest.approx((c + (b + a)).failure, rel=1e-12, abs=1e-18)

    def test_squares_of_mu_and_complements_of_failure(self):
        total = PrivacyLoss(3.0, 0.1) + PrivacyLoss(4.0, 0.2)
        assert total.mu == pytest.approx(5.0)
        assert total.failure == pytest.approx(1 - 0.9 * 0.8)

    @given(losses, st.integers(1, 50))
    def test_many_times_the_same(self, loss, count):
        one_by_one = PrivacyLoss()
        for _ in range(count):
            one_by_one = one_by_one + loss
        assert (loss * count).mu == pytest.approx(one_by_one.mu)
        assert (loss * count).failure == pytest.approx(one_by_one.failure, abs=1e-15)

    def test_certain_failure_stays_certain(self):
        assert (PrivacyLoss(1.0, 1.0) * 3).failure == 1.0
        assert (PrivacyLoss(1.0, 1.0) + PrivacyLoss()).failure == 1.0

    @given(losses)
    def test_nothing_is_neutral(self, loss):
        assert loss + PrivacyLoss() == loss

    def test_two_gaussians_by_integration(self):
        """The second release may depend on the first output; the profile is still that of hypot(mu, mu')."""
        for a, b, epsilon in [(0.3, 0.4, 0.5), (1.0, 1.0, 2.0), (0.1, 2.0, 1.0)]:
            truth = adaptive_delta(a, lambda g, mu=b: hockey_stick(mu, g), epsilon)
            answer = (PrivacyLoss(a) + PrivacyLoss(b)).delta(epsilon)
            assert truth <= answer <= truth * (1 + 1e-5)


class TestFailure:
    """A gate whose class depends on an earlier output: deltas add, the larger of the two is not enough."""

    @pytest.mark.parametrize(
        ("first", "second", "failure", "epsilon", "truth"),
        [(0.3, 0.3, 1e-6, 1.9, 1.778e-6), (0.2, 0.05, 1e-6, 0.9, 1.427e-6)],
    )
    def test_an_earlier_output_chooses_between_losing_and_failing(self, first, second, failure, epsilon, truth):
        """The first output o chooses the class: the pair is inside (loss `second`) or outside (it fails)."""

        def worst(log_ratio: float) -> float:
            return max(hockey_stick(second, log_ratio), revealed(failure, log_ratio))

        exact = adaptive_delta(first, worst, epsilon)
        assert exact == pytest.approx(truth, rel=1e-3)
        certified = (PrivacyLoss(first) + PrivacyLoss(second, failure)).delta(epsilon)
        assert certified >= exact
        assert certified <= exact * 1.05
        larger_of_the_two = max(failure, gaussian_delta(math.hypot(first, second), epsilon))
        assert larger_of_the_two < 0.9 * exact

    @given(mus, failures, st.floats(0, 20))
    def test_dominates_both_of_its_parts(self, mu, failure, epsilon):
        loss = PrivacyLoss(mu, failure)
        assert loss.delta(epsilon) >= failure
        assert loss.delta(epsilon) >= gaussian_delta(mu, epsilon) * (1 - 1e-12)
        assert loss.delta(epsilon) <= failure + gaussian_delta(mu, epsilon)

    @given(mus, failures, st.floats(1e-9, 1e-2))
    def test_epsilon_is_the_inverse_of_delta(self, mu, failure, delta):
        loss = PrivacyLoss(mu, failure)
        epsilon = loss.epsilon(delta)
        if delta <= failure:
            assert epsilon == math.inf
        else:
            assert loss.delta(epsilon) <= delta
            assert epsilon <= gaussian_epsilon(mu, (delta - failure) * (1 - 1e-9))

    def test_delta_of_exactly_the_failure_covers_failure_alone(self):
        assert PrivacyLoss(0.0, 1e-6).epsilon(1e-6) == 0.0
        assert PrivacyLoss(0.1, 1e-6).epsilon(1e-6) == math.inf
        assert PrivacyLoss(0.0, 1e-6).epsilon(0.9e-6) == math.inf


class TestGate:
    """A gate in front of everything: on a pair of data all is refused but with probability ``gate``, or all holds."""

    @given(mus, failures, st.floats(0, 20))
    def test_alone_the_larger_delta_counts(self, mu, gate, epsilon):
        assert PrivacyLoss(mu, gate=gate).delta(epsilon) == max(gate, PrivacyLoss(mu).delta(epsilon))

    @given(mus, failures, st.floats(1e-9, 1e-2))
    def test_epsilon_is_the_inverse_of_delta(self, mu, gate, delta):
        loss = PrivacyLoss(mu, gate=gate)
        if delta < gate * (1 - 1e-9):
            assert loss.epsilon(delta) == math.inf
        elif delta > gate:
            assert loss.epsilon(delta) == PrivacyLoss(mu).epsilon(delta)
            assert loss.delta(loss.epsilon(delta)) <= delta

    @pytest.mark.parametrize(("mu", "other", "gate"), [(0.3, 0.3, 1e-6), (0.1, 0.5, 1e-5)])
    def test_composed_with_anything_it_is_a_failure(self, mu, other, gate):
        """A pair outside the class pays for the other release *and* the gate's delta, whichever came first."""
        for total in (PrivacyLoss(mu, gate=gate) + PrivacyLoss(other), PrivacyLoss(other) + PrivacyLoss(mu, gate=gate)):
            assert total.gate == 0
            assert total.failure == gate
            for epsilon in (0.5, 1.0, 2.0):
                outside = gate + (1 - gate) * gaussian_delta(other, epsilon)
                assert total.delta(epsilon) >= outside * (1 - 1e-12)

    def test_two_gates_are_two_failures(self):
        twice = PrivacyLoss(0.3, gate=1e-6) + PrivacyLoss(0.4, gate=2e-6)
        assert twice.failure == pytest.approx(3e-6, rel=1e-5)
        assert twice.mu == pytest.approx(0.5)
        assert (PrivacyLoss(0.3, gate=1e-6) * 2).failure == pytest.approx(2e-6, rel=1e-5)
        assert PrivacyLoss(0.3, gate=1e-6) * 1 == PrivacyLoss(0.3, gate=1e-6)

    def test_renyi_is_infinite(self):
        assert PrivacyLoss(0.3, gate=1e-6).renyi(2.0) == math.inf == PrivacyLoss(0.3, gate=1e-6).rho


class TestRenyi:
    @pytest.mark.parametrize("alpha", [1.01, 2.0, 30.0])
    def test_of_a_gaussian_by_integration(self, alpha):
        mu = 0.7
        moment = integrate.quad(
            lambda o: math.exp(alpha * norm.logpdf(o, mu) + (1 - alpha) * norm.logpdf(o)), -np.inf, np.inf
        )[0]
        assert PrivacyLoss(mu).renyi(alpha) == pytest.approx(math.log(moment) / (alpha - 1), rel=1e-6)
        assert PrivacyLoss(mu).rho * alpha == pytest.approx(PrivacyLoss(mu).renyi(alpha))

    def test_is_infinite_where_anything_can_fail(self):
        assert PrivacyLoss(0.1, 1e-9).renyi(2.0) == math.inf

    def test_refuses_an_order_of_one(self):
        with pytest.raises(InvalidParameter):
            PrivacyLoss(1.0).renyi(1.0)


@pytest.mark.parametrize("bad", [{"mu": -1e-9}, {"mu": math.nan}, {"failure": -0.1}, {"failure": 1.1}, {"gate": -0.1}])
def test_refuses_what_is_no_loss(bad):
    with pytest.raises(InvalidParameter):
        PrivacyLoss(**bad)


def test_does_not_add_to_a_number():
    with pytest.raises(TypeError):
        PrivacyLoss(1.0) + 1.0


# ---------------- where float64 ends


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
