"""What counts prove: exact bounds, and claims that are refuted only if they are false."""

import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binom, binomtest

from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.losses import Pure, ScalarLaplace
from ppdp.testing.confidence import Certified, at_least, at_most, epsilon_at_least, mu_at_least

EVENTS = np.concatenate([[1e-4, 1e-3], np.linspace(0.01, 0.99, 99), [0.999, 0.9999]])


def certified(loss, delta=1e-6):
    return Certified(loss, loss.epsilon(delta), delta)


class TestCounts:
    @pytest.mark.parametrize(("successes", "runs"), [(0, 10), (3, 10), (690, 1000), (1000, 1000)])
    def test_bounds_are_those_of_clopper_and_pearson(self, successes, runs):
        exact = binomtest(successes, runs).proportion_ci(1 - 2e-6, method="exact")
        assert float(at_least(successes, runs, 1e-6)) == pytest.approx(exact.low, abs=1e-12)
        assert float(at_most(successes, runs, 1e-6)) == pytest.approx(exact.high, abs=1e-12)

    @pytest.mark.parametrize("p", [0.01, 0.3, 0.97])
    def test_bounds_fail_as_rarely_as_is_said(self, p):
        """All counts that 200 runs can give, with their probabilities."""
        counts, doubt = np.arange(201), 0.01
        likely = binom.pmf(counts, 200, p)
        assert likely[at_least(counts, 200, doubt) > p].sum() <= doubt
        assert likely[at_most(counts, 200, doubt) < p].sum() <= doubt

    def test_the_sampler_is_taken_off(self):
        loss = PrivacyLoss(1.0)
        p, q = certified(loss).bounds(60, 20, 100, 0.01)
        off = Certified(loss, 5.0, 1e-6, off=1e-3).bounds(60, 20, 100, 0.01)
        assert np.subtract(off, (p, q)) == pytest.approx([-1e-3, 1e-3])
        assert Certified(loss, 5.0, 1e-6, off=1.0).bounds(60, 20, 100, 0.01) == (0.0, 1.0)


class TestBounds:
    def test_mu_is_that_of_the_trade_off(self):
        assert mu_at_least(ndtr(ndtri(EVENTS) + 1.3), EVENTS) == pytest.approx(1.3)
        assert float(mu_at_least(0.3, 0.3)) == 0.0

    @pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
    def test_epsilon_is_that_of_randomised_response(self, epsilon):
        p = math.exp(epsilon) / (1 + math.exp(epsilon))
        assert float(epsilon_at_least(p, 1 - p, 0.0)) == pytest.approx(epsilon)
        delta = 0.01
        assert float(epsilon_at_least((1 - delta) * p + delta, (1 - delta) * (1 - p), delta)) == pytest.approx(epsilon)

    def test_the_complement_speaks_as_well(self):
        """A refusal that is never seen on the right."""
        assert float(epsilon_at_least(0.999, 0.5, 0.0)) == pytest.approx(math.log(500))
        assert float(epsilon_at_least(0.5, 0.001, 0.0)) == pytest.approx(math.log(500))
        assert float(epsilon_at_least(0.0, 1.0, 0.1)) == 0.0


LAWS = {
    "Gaussian": (PrivacyLoss(1.1), ndtr(ndtri(EVENTS) + 1.1)),
    "failure": (PrivacyLoss(0.8, failure=0.03), 0.03 + 0.97 * ndtr(ndtri(EVENTS) + 0.8)),
    "gate": (PrivacyLoss(gate=0.05), np.minimum(EVENTS + 0.05, 1.0)),
    "Laplace": (
        PrivacyLoss(parts=(ScalarLaplace(shift=1.0, scale=0.7),)),
        np.minimum.reduce([np.minimum(EVENTS * math.exp(1 / 0.7), 1.0), 1 - math.exp(-1 / 0.7) * (1 - EVENTS)]),
    ),
}


@pytest.mark.parametrize("law", LAWS)
class TestClaims:
    def test_a_true_claim_is_never_refuted(self, law):
        """Events with exactly the probabilities of a mechanism that costs just what is certified, or less."""
        loss, p = LAWS[law]
        if law == "Laplace":  # between the two lines the trade-off of Laplace noise is curved: take what it has
            shift = 1 / 0.7
            cuts = np.linspace(-3, 5, 200)
            tail = np.where(cuts > 0, np.exp(-np.abs(cuts)) / 2, 1 - np.exp(-np.abs(cuts)) / 2)
            other = np.where(cuts > shift, np.exp(-np.abs(cuts - shift)) / 2, 1 - np.exp(-np.abs(cuts - shift)) / 2)
            assert not certified(loss).refuted(other, tail)
        else:
            assert not certified(loss).refuted(p, EVENTS)

    def test_a_claim_that_is_a_little_false_is_refuted(self, law):
        _, p = LAWS[law]
        smaller = {
            "Gaussian": PrivacyLoss(1.0),
            "failure": PrivacyLoss(0.8, failure=0.02),
            "gate": PrivacyLoss(gate=0.04),
            "Laplace": PrivacyLoss(parts=(ScalarLaplace(shift=1.0, scale=0.8),)),
        }[law]
        assert certified(smaller).refuted(p, EVENTS)


class TestExcess:
    def test_of_a_gaussian_it_is_what_the_trade_off_does_not_allow(self):
        q = np.array([0.02, 0.3, 0.9])
        p = ndtr(ndtri(q) + 1.2)
        expected = np.maximum(p - ndtr(ndtri(q) + 1.0), 1 - q - ndtr(ndtri(1 - p) + 1.0))
        assert certified(PrivacyLoss(1.0)).excess(p, q) == pytest.approx(expected)

    def test_the_promised_epsilon_counts(self):
        """Between the epsilons of the grid a loss may be broken there only."""
        loss = PrivacyLoss(parts=(ScalarLaplace(shift=1.0, scale=1 / 2.6),))
        claim = Certified(loss, 2.6, 0.0)
        q = 1e-4
        assert float(claim.excess(1.01 * math.exp(2.6) * q, q)) == pytest.approx(0.01 * math.exp(2.6) * q, rel=1e-3)

    def test_no_event_refutes_an_infinite_epsilon(self):
        loss = PrivacyLoss(failure=0.5)
        claim = certified(loss)
        assert claim.epsilon == math.inf
        assert not claim.refuted(0.5 + 0.5 * EVENTS, EVENTS)
        assert claim.refuted(0.999, 1e-7)

    @pytest.mark.parametrize("mu", [3.0, 6.0, 8.0])
    def test_what_is_left_of_one_is_not_taken_for_nothing(self, mu):
        """The complement of an event that all but surely happens is rounded to probability 0."""
        q = np.concatenate([EVENTS, [1 - 1e-8]])
        assert not certified(PrivacyLoss(mu)).refuted(ndtr(ndtri(q) + mu), q)

    @pytest.mark.parametrize("epsilon", [30.0, 50.0, 690.0])
    def test_nor_is_it_in_randomised_response(self, epsilon):
        p = 1 / (1 + math.exp(-epsilon))
        claim = certified(PrivacyLoss(parts=(Pure(epsilon=epsilon),)), delta=0.0)
        assert not claim.refuted(p, 1 / (1 + math.exp(epsilon)))

    @pytest.mark.filterwarnings("error")
    def test_limits_are_numbers(self):
        for loss in (PrivacyLoss(math.inf), PrivacyLoss(1.0), PrivacyLoss(failure=1.0), PrivacyLoss(gate=0.1)):
            claim = Certified(loss, 1.0, 0.1)
            assert np.isfinite(claim.excess([0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, 1.0])).all()
        assert not Certified(PrivacyLoss(math.inf), math.inf, 0.0).refuted(1.0, 0.0)
        assert float(epsilon_at_least(1.0, 5e-324, 0.0)) > 700


class TestMu:
    @pytest.mark.parametrize("loss", [PrivacyLoss(0.8, failure=0.03), PrivacyLoss(0.8, gate=0.03)])
    def test_what_is_lost_is_not_taken_for_mu(self, loss):
        kept = 1 - 0.03
        p = 0.03 + kept * ndtr(ndtri(np.minimum(EVENTS / kept, 1.0)) + 0.8)
        found = certified(loss, 0.1).mu_at_least(p, EVENTS)
        assert found[kept > EVENTS] == pytest.approx(0.8)
        assert (found < 0.8 + 1e-9).all()

    def test_alone_it_shows_nothing(self):
        assert float(certified(PrivacyLoss(0.1, gate=0.05), 0.1).mu_at_least(0.05, 1e-9)) == -math.inf
