"""What counts, bets and guesses prove: exact bounds, and claims that are refuted only if they are false."""

import itertools
import math
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import coo_array
from scipy.special import expit, ndtr, ndtri
from scipy.stats import binom, binomtest

from ppdp.audit.events import Bets, bets_of, tangents
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.losses import Pure, ScalarLaplace
from ppdp.testing.confidence import Certified, at_least, at_most, epsilon_at_least, guessed_at_most, mu_at_least

EVENTS = np.concatenate([[1e-4, 1e-3], np.linspace(0.01, 0.99, 99), [0.999, 0.9999]])


def certified(loss, delta=1e-6, off=0.0):
    return Certified(loss, loss.epsilon(delta), delta, off)


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


# ---------------- bets


SHARES = np.linspace(0.02, 0.98, 7)


CLAIMS = {
    "Gaussian": certified(PrivacyLoss(1.0)),
    "failure": certified(PrivacyLoss(0.8, failure=1e-7)),
    "gate": Certified(PrivacyLoss(0.5, gate=0.05), 3.0, 0.1),
    "sampler": certified(PrivacyLoss(1.0), off=0.01),
    "Laplace": certified(PrivacyLoss(parts=(ScalarLaplace(shift=1.0, scale=1.0),))),
}


def expected(bets, guesses, p, q):
    """Mean wealth behind one pair of independent runs, against each claim."""
    likely = np.outer([p, 1 - p], [q, 1 - q]).ravel()
    total = 0.0
    for one, chance in zip(np.eye(4), likely):
        player = Bets(bets.values, bets.lines, bets.off)
        player.play(*guesses, one)
        total = total + chance * np.exp(player._wealth)
    return total


def border(claim, purpose, q):
    """The largest probability on the left of an event with q on the right, of which the complement is allowed, too."""
    p = np.linspace(q, 1, 20_001)
    if purpose == "epsilon":
        return p[np.maximum(p - np.exp(claim.epsilon) * q, 1 - q - np.exp(claim.epsilon) * (1 - p)) <= claim.delta][-1]
    if purpose == "mu":
        return p[claim.mu_at_least(p, q) <= claim.loss.mu][-1]
    return p[claim.excess(p, q) <= 0][-1]


@pytest.mark.parametrize("name", CLAIMS)
def test_wealth_does_not_grow_while_the_claim_is_true(name):
    """At events that are just allowed, and at guesses that are not theirs."""
    claim, rng, grown = CLAIMS[name], np.random.default_rng(0), 0.0
    true = {"mu": claim.loss.mu if claim.gaussian else 12.0, "epsilon": claim.epsilon, "loss": 0.0}
    for (purpose, bets), q in product(bets_of(claim).items(), SHARES):
        p = min(border(claim, purpose, q) + claim.off, 1.0)
        for guesses in ((p * 0.998 + 0.001, q), tuple(rng.uniform(0.01, 0.99, 2))):
            wealth = expected(bets, guesses, p, q)
            assert (wealth[bets.values >= true[purpose]] <= 1 + 1e-12).all()
            grown = max(grown, wealth.max())
    assert grown > 1.01, "against claims that are false it does"


def test_whoever_stops_when_it_suits_is_wrong_no_more_often():
    """Events on the border of what is claimed, looked at after every 40 pairs: part of the doubt is used."""
    rng, doubt, rounds, q = np.random.default_rng(0), 0.3, 60, 0.3
    p = ndtr(1 + ndtri(q))
    mu, wrong = np.array([1.0]), 0
    for _ in range(rounds):
        player, seen = Bets(mu, lambda high, low: tangents(mu, low, 0.0), 0.0), np.array([6.0, 3.0])
        for turn in range(15):
            left, right = rng.random(40) < p, rng.random(40) < q
            both, hits, alarms = (left & right).sum(), left.sum(), right.sum()
            player.play(*(seen + 0.5) / (10 + 40 * turn + 1), np.array([both, hits - both, alarms - both, 0]) + 0.0)
            seen += hits, alarms
        wrong += player.refuted(doubt) > 0
    assert 0 < wrong <= doubt * rounds


@pytest.mark.parametrize("lost", [0.0, 0.05])
def test_no_tangent_is_below_the_trade_off(lost):
    claim = Certified(PrivacyLoss(1.3, failure=lost), np.inf, 0.5)
    for at in SHARES:
        slope, height = tangents(np.array([1.3]), at, lost)
        above = slope * SHARES + height - claim.allowed(SHARES)
        assert above.min() > -1e-12
        trade_off = lost + (1 - lost) * ndtr(1.3 + ndtri(at / (1 - lost))) if at < 1 - lost else 1.0
        assert slope * at + height == pytest.approx(trade_off, abs=1e-5)


# ---------------- guesses of members


class TestGuesses:
    """``docs/theory/membership.md``: a linear program over all mechanisms attains Theorem 1, and nothing exceeds it."""

    @staticmethod
    def most(coins, guesses, right, epsilon, delta):
        """The largest probability that a mechanism, which answers with guesses and 0 for none, is right so often."""
        inputs = list(itertools.product((-1, 1), repeat=coins))
        outputs = [y for y in itertools.product((-1, 0, 1), repeat=coins) if np.count_nonzero(y) == guesses]
        near = [
            pair for pair in itertools.permutations(range(len(inputs)), 2) if _apart(*(inputs[i] for i in pair)) == 1
        ]
        wide, entries, bounds = len(inputs) * len(outputs), [], []
        for k, (a, b) in enumerate(near):
            excess = wide + k * len(outputs)
            for y in range(len(outputs)):
                line = len(bounds)
                entries += [(line, a * len(outputs) + y, 1.0), (line, b * len(outputs) + y, -math.exp(epsilon))]
                entries.append((line, excess + y, -1.0))
                bounds.append(0.0)
            entries += [(len(bounds), excess + y, 1.0) for y in range(len(outputs))]
            bounds.append(delta)
        line, column, value = zip(*entries)
        sums = coo_array((np.ones(wide), (np.repeat(range(len(inputs)), len(outputs)), range(wide))))
        size = wide + len(near) * len(outputs)
        sums = coo_array((sums.data, sums.coords), shape=(len(inputs), size))
        hits = [sum(s == g for s, g in zip(coins, y)) >= right for coins in inputs for y in outputs]
        goal = -np.append(np.array(hits, dtype=float) / len(inputs), np.zeros(size - wide))
        limits = coo_array((value, (line, column)), shape=(len(bounds), size))
        return -linprog(goal, limits, bounds, sums, np.ones(len(inputs)), method="highs").fun

    @pytest.mark.parametrize(("coins", "guesses"), [(1, 1), (2, 1), (3, 3), (3, 2)])
    @pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.01), (1.0, 0.001)])
    def test_the_theorem_is_attained(self, coins, guesses, epsilon, delta):
        q = expit(epsilon)
        for right in range(1, guesses + 1):
            tail, here = binom.sf(right - 1, guesses, q), binom.pmf(right, guesses, q)
            exact = tail + coins * delta * tail * (1 - tail) / (right * here)
            most = self.most(coins, guesses, right, epsilon, delta)
            assert most <= min(1.0, exact) * (1 + 1e-9)
            assert most == pytest.approx(exact, rel=1e-6) or guesses < coins
            assert exact <= guessed_at_most(right, guesses, coins, epsilon, delta) * (1 + 1e-9)

    def test_it_is_close_to_the_theorem_where_it_is_used(self):
        for right, guesses, delta in ((90, 100, 1e-6), (700, 1000, 1e-8)):
            tail, here = binom.sf(right - 1, guesses, expit(0.5)), binom.pmf(right, guesses, expit(0.5))
            exact = tail + 1000 * delta * tail * (1 - tail) / (right * here)
            assert 1 <= guessed_at_most(right, guesses, 1000, 0.5, delta) / exact < 1.1

    def test_it_grows_with_what_is_claimed_and_falls_with_what_is_seen(self):
        found = [guessed_at_most(70, 100, 200, epsilon, 1e-6) for epsilon in np.linspace(0, 3, 31)]
        assert found == sorted(found)
        found = [guessed_at_most(right, 100, 200, 0.5, 1e-6) for right in range(101)]
        assert found == sorted(found, reverse=True)
        assert guessed_at_most(0, 100, 200, 0.0, 0.0) == 1 == guessed_at_most(100, 100, 200, 800.0, 0.0)

    def test_it_is_smaller_than_that_of_the_paper(self):
        """Theorem 5.2 of Steinke, Nasr and Jagielski, as its appendix computes it."""
        for right, guesses, epsilon, delta in ((85, 100, 1.0, 1e-5), (300, 400, 0.5, 1e-6), (98, 100, 2.0, 1e-4)):
            q = expit(epsilon)
            missed = np.cumsum(binom.pmf(right - np.arange(1, right + 1), guesses, q)) / np.arange(1, right + 1)
            paper = binom.sf(right - 1, guesses, q) + 2 * 1000 * delta * missed.max()
            assert guessed_at_most(right, guesses, 1000, epsilon, delta) < paper


def _apart(one, other):
    return sum(a != b for a, b in zip(one, other))
