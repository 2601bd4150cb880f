"""Bets against claims: wealth does not grow while a claim is true, whenever one looks and whatever was guessed."""

from itertools import product

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from ppdp.audit.events import Bets, bets_of, tangents
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.losses import ScalarLaplace
from ppdp.testing.confidence import Certified

SHARES = np.linspace(0.02, 0.98, 7)


def certified(loss, off=0.0):
    return Certified(loss, loss.epsilon(1e-6), 1e-6, off)


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
