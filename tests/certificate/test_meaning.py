"""The guarantee as the power of an attacker's test: never less than any attack reaches."""

import math

import numpy as np
import pytest
from documents import detection_power
from pages import real_documents
from scipy.stats import norm

from ppdp import PrivacyLoss
from ppdp.certificate.pages.interpretation import rounded_up


@pytest.fixture(scope="module", name="documents")
def documents_of_every_kind():
    return real_documents()


def total(mu, failure=0.0, gate_delta=0.0, allowance=0.0, epsilon=1.0):
    documents = real_documents()
    gate = {**documents["gated"]["gate"], "delta": gate_delta, "rule": "max"} if gate_delta else None
    total = {"mu": mu, "failure": failure, "allowance": allowance, "parts": []}
    return {**documents["unconditional"], "total": total, "gate": gate, "epsilon": epsilon}


@pytest.mark.parametrize("alarm", [0.001, 0.01, 0.05, 0.5])
@pytest.mark.parametrize("failure", [0.0, 1e-6, 0.02])
@pytest.mark.parametrize("mu", [0.01, 0.2367, 1.0, 4.0])
@pytest.mark.repeated("alarm", "failure", keep=3)
def test_power_is_what_the_privacy_profile_allows(mu, failure, alarm):
    """Duality: the best power is the least of ``exp(ε) α + δ(ε)`` over all real ε, negative ones included."""
    epsilon = np.linspace(-mu * mu - 12 * mu, mu * mu + 12 * mu, 20_001)
    ideal = norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    bound = np.min(np.exp(epsilon) * alarm + failure + (1 - failure) * ideal)
    assert detection_power(total(mu, failure), alarm) == pytest.approx(bound, rel=1e-4)
    assert detection_power(total(mu, failure), alarm) <= bound * (1 + 1e-12)


def test_power_never_exceeds_the_certified_pair(documents):
    for c in documents.values():
        for alarm in (0.01, 0.05):
            assert alarm < detection_power(c, alarm) <= math.exp(c["epsilon"]) * alarm + c["delta"]


def test_power_agrees_with_the_loss_it_is_computed_from(documents):
    for c in documents.values():
        loss = PrivacyLoss(c["total"]["mu"], c["total"]["failure"])
        least = min(math.exp(e) * 0.05 + loss.delta(e) for e in np.linspace(-3, 3, 601))
        slack = c["gate"]["delta"] if c["gate"] and c["gate"]["rule"] == "max" else 0.0
        assert detection_power(c, 0.05) == pytest.approx(least + slack, rel=1e-3)


def test_power_covers_a_gate_that_gives_everything_away():
    """Where a condition fails: reveals all with probability g, and a Gaussian release otherwise."""
    for mu in (0.1, 1.0):
        for g in (1e-6, 0.01, 0.2):
            for alarm in (0.001, 0.05, 0.5):
                attack = g + (1 - g) * norm.cdf(mu + norm.ppf(min(1.0, alarm / (1 - g))))
                assert attack <= detection_power(total(mu, gate_delta=g), alarm)


def test_power_covers_the_samplers_distance_on_both_sides():
    """Mass t moved out of the acceptance region on one side and into the rejection region on the other."""
    t, mu, alarm = 0.01, 0.5, 0.05
    attack = norm.cdf(mu + norm.ppf(alarm + t)) + t
    assert detection_power(total(mu, allowance=t * (1 + math.e)), alarm) == pytest.approx(attack)


def test_power_of_extreme_documents_is_a_probability():
    assert detection_power(total(0.3, failure=1.0), 0.01) == 1.0
    assert detection_power(total(1e6), 0.01) == 1.0
    assert detection_power(total(0.0), 0.01) == pytest.approx(0.01)
    assert 0 <= detection_power(total(0.2, allowance=1e-9, epsilon=1e4), 0.01) <= 1


def test_percentages_are_rounded_up():
    assert [rounded_up(p).split()[0] for p in (0.0183, 0.01830001, 0.5, 0.99999, 1.0)] == [
        "1.83",
        "1.84",
        "50.00",
        "100.00",
        "100.00",
    ]
