"""Gaussian accounting against 60 digits: never below the truth, and hardly above it."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ppdp.exceptions import ImpossibleBudget
from ppdp.privacy.gaussian import gaussian_delta, gaussian_epsilon, gaussian_mu

EXCESS = 1e-3  # an answer may exceed the truth by 0.1 %

MUS = np.geomspace(1e-6, 50, 40)
EPSILONS = np.geomspace(1e-3, 50, 30)
DELTAS = np.geomspace(1e-12, 1e-3, 19)


def true_delta(mu: float, epsilon: float) -> mp.mpf:
    """Φ(mu/2 - ε/mu) - exp(ε) Φ(-mu/2 - ε/mu), to 60 digits."""
    with mp.workdps(60):
        mu, epsilon = mp.mpf(float(mu)), mp.mpf(float(epsilon))
        cdf = lambda x: mp.erfc(-x / mp.sqrt(2)) / 2  # noqa: E731
        return +(cdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * cdf(-mu / 2 - epsilon / mu))


class TestDelta:
    @pytest.mark.parametrize("mu", MUS)
    @pytest.mark.repeated("mu", keep=14)
    def test_never_below_the_truth_and_hardly_above_it(self, mu):
        for epsilon in [0.0, 1e-9, 1e-6, *EPSILONS]:
            truth, answer = true_delta(mu, epsilon), gaussian_delta(float(mu), float(epsilon))
            if truth > 1e-30:
                assert truth <= answer * (1 + mp.mpf(10) ** -15)
                assert answer <= truth * (1 + EXCESS)
            else:
                assert 0 <= answer < 1e-29

    @given(st.floats(-13.8, 3.9), st.floats(-2.0, 11.0))
    def test_anywhere(self, log_mu, threshold):
        """Parametrised by where the likelihood ratio is cut, so that delta is never trivial."""
        mu = math.exp(log_mu)
        epsilon = max(0.0, mu * threshold + mu * mu / 2)
        truth, answer = true_delta(mu, epsilon), gaussian_delta(mu, epsilon)
        assert truth <= answer * (1 + mp.mpf(10) ** -15) or truth < 1e-30
        assert answer <= truth * (1 + EXCESS) or truth < 1e-30

    def test_ends(self):
        assert gaussian_delta(0.0, 1.0) == 0.0
        assert gaussian_delta(math.inf, 1.0) == 1.0
        assert gaussian_delta(50.0, 0.0) == 1.0

    def test_known_figures(self):
        assert gaussian_delta(1.0, 1.0) == pytest.approx(0.126937, rel=1e-5)
        assert gaussian_epsilon(1.0, 1e-6) == pytest.approx(4.887, abs=5e-4)
        assert gaussian_epsilon(5.0, 1e-6) == pytest.approx(35.57, abs=5e-3)
        assert gaussian_mu(1.0, 1e-6) == pytest.approx(0.2367, abs=5e-5)


class TestEpsilon:
    @pytest.mark.parametrize("mu", MUS)
    @pytest.mark.repeated("mu", keep=14)
    def test_is_enough_and_hardly_more(self, mu):
        for delta in DELTAS:
            answer = gaussian_epsilon(float(mu), float(delta))
            assert true_delta(mu, answer) <= delta
            assert answer == 0 or true_delta(mu, answer * (1 - EXCESS)) > delta

    def test_ends(self):
        assert gaussian_epsilon(0.0, 1e-6) == 0.0
        assert gaussian_epsilon(math.inf, 1e-6) == math.inf
        assert gaussian_epsilon(1.0, 0.0) == math.inf
        assert gaussian_epsilon(1.0, 1.0) == 0.0


class TestMu:
    @pytest.mark.parametrize("epsilon", EPSILONS)
    @pytest.mark.repeated("epsilon", keep=12)
    def test_fits_and_uses_the_budget(self, epsilon):
        for delta in DELTAS:
            answer = gaussian_mu(float(epsilon), float(delta))
            assert true_delta(answer, epsilon) <= delta
            assert true_delta(answer * (1 + EXCESS), epsilon) > delta

    @given(st.floats(1e-3, 50), st.floats(1e-12, 1e-3))
    def test_is_the_inverse_of_epsilon(self, epsilon, delta):
        mu = gaussian_mu(epsilon, delta)
        assert epsilon * (1 - EXCESS) <= gaussian_epsilon(mu, delta) <= epsilon * (1 + 1e-9)

    @pytest.mark.parametrize("epsilon", [-1e-9, -1.0, math.inf, math.nan])
    def test_refuses_an_impossible_epsilon(self, epsilon):
        with pytest.raises(ImpossibleBudget):
            gaussian_mu(epsilon, 1e-6)

    @pytest.mark.parametrize("delta", [0.0, 1.0, -1e-6, 2.0, math.nan])
    def test_refuses_an_impossible_delta(self, delta):
        with pytest.raises(ImpossibleBudget):
            gaussian_mu(1.0, delta)


class TestAgainstDpAccounting:
    """An independent implementation; events go in with ADD_OR_REMOVE_ONE, which leaves the noise as it is."""

    @staticmethod
    def accountant(mus):
        from dp_accounting import GaussianDpEvent, NeighboringRelation
        from dp_accounting.pld import PLDAccountant

        accountant = PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE, value_discretization_interval=1e-3)
        for mu in mus:
            accountant.compose(GaussianDpEvent(1 / mu))
        return accountant

    @pytest.mark.parametrize("mu", [0.05, 0.2367, 1.0, 4.0])
    def test_one_release(self, mu):
        accountant = self.accountant([mu])
        for delta in (1e-9, 1e-6, 1e-3):
            theirs = accountant.get_epsilon(delta)  # rounded up, to a grid of privacy losses
            assert theirs * 0.98 - 2e-3 <= gaussian_epsilon(mu, delta) <= theirs * (1 + 1e-6) + 1e-9

    def test_composition_is_the_root_of_the_sum_of_squares(self):
        mus = [0.1, 0.3, 0.25, 0.6]
        theirs = self.accountant(mus).get_epsilon(1e-6)
        assert gaussian_epsilon(math.sqrt(sum(mu * mu for mu in mus)), 1e-6) == pytest.approx(theirs, rel=0.01)
