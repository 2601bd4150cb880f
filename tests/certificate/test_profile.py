"""The guarantee at every delta: every pair holds, and what a test detects is bounded by all of them together."""

import math

import numpy as np
import pytest
from documents import detection_power, privacy_profile
from pages import real_documents
from scipy.stats import norm
from zoo import certificate

from ppdp import PrivacyLoss
from ppdp.certificate.pages.interpretation import rounded_up

KINDS = ("unconditional", "gated, max", "gated, sum", "gated, Laplace", "a Laplace mean", "a vote", "a hidden pass")
some = pytest.mark.parametrize("name", KINDS)
ALARMS = (0.001, 0.01, 0.05, 0.3, 0.9)


def variation_of(one):
    """Total variation that the sampler may be off by."""
    return one["total"]["allowance"] / (1 + math.exp(one.epsilon))


@some
def test_every_pair_holds(name):
    one = certificate(name)
    for delta, epsilon in privacy_profile(one.to_dict()):
        if math.isfinite(epsilon):
            needed = one.loss.delta(epsilon * (1 + 1e-9)) + (1 + math.exp(epsilon)) * variation_of(one)
            assert needed <= delta * (1 + 1e-6) + 1e-11, "a composition of distributions is exact to 1e-11"


@some
def test_pairs_are_those_of_the_certificate(name):
    one = certificate(name)
    profile = dict(privacy_profile(one.to_dict()))
    assert profile[one.delta] <= one.epsilon
    assert {10.0**power for power in (-12, -9, -6, -3)} <= profile.keys()
    assert {1e-4, 1e-5, 1e-6, 1e-8, 1e-10} <= profile.keys()
    assert list(profile) == sorted(profile)
    assert list(profile.values()) == sorted(profile.values(), reverse=True)
    for delta in (1e-10, 1e-5, 1e-3):
        exact = one.epsilon_at(delta)
        assert profile[delta] == exact or exact * (1 - 1e-9) <= profile[delta] <= exact * (1 + 1e-4)


def test_nothing_is_promised_below_the_gates_delta():
    one = certificate("gated, Laplace")
    assert all(math.isinf(epsilon) == (delta < one.delta) for delta, epsilon in privacy_profile(one.to_dict()))


def test_a_smaller_delta_of_its_own_is_on_the_profile():
    deep = {**certificate("unconditional").to_dict(), "delta": 1e-14}
    assert min(delta for delta, _ in privacy_profile(deep)) == 1e-16


# ---------------------------------------------------------------- what a test detects


def laplace_power(shift, alarm):
    """The best test between Laplace laws of scale 1 this far apart (Neyman and Pearson)."""
    if alarm < math.exp(-shift) / 2:
        return math.exp(shift) * alarm
    return 1 - math.exp(-shift) / (4 * alarm) if alarm < 0.5 else 1 - math.exp(-shift) * (1 - alarm)


@pytest.mark.parametrize("alarm", ALARMS)
def test_power_under_laplace_noise_is_hardly_more_than_the_best_tests(alarm):
    one = certificate("a Laplace mean")
    (part,) = one["total"]["parts"]
    best = laplace_power(part["shift"] / part["scale"], alarm)
    assert best <= detection_power(one.to_dict(), alarm) <= 1.05 * best


@pytest.mark.parametrize("alarm", [0.01, 0.05])
def test_power_over_samples_of_rows_covers_the_likelihood_ratio_test(alarm):
    """The row pulls one way on one dataset, the other way on the other; every step is seen."""
    one = certificate("Poisson samples")
    (part,) = one["total"]["parts"]
    rng, rate, noise = np.random.default_rng(0), part["rate"], part["noise_scale"] / part["bound"]

    def ratios(way):
        seen = way * rng.binomial(1, rate, (200_000, part["count"])) + rng.normal(scale=noise, size=(200_000, 5))
        towards, away = (np.exp((2 * sign * seen - 1) / (2 * noise**2)) for sign in (1, -1))
        return np.log((1 - rate + rate * towards) / (1 - rate + rate * away)).sum(axis=1)

    detected = (ratios(1) > np.quantile(ratios(-1), 1 - alarm)).mean()
    bound = detection_power(one.to_dict(), alarm)
    assert 0.9 * bound < detected < bound + 5e-3
    assert bound < 0.25 * min(1.0, math.exp(one.epsilon) * alarm), "far below what its one pair allows"


@some
def test_power_is_that_of_the_worst_pair_at_most_and_never_below_guessing(name):
    one = certificate(name)
    powers = [detection_power(one.to_dict(), alarm) for alarm in ALARMS]
    assert powers == sorted(powers)
    for alarm, power in zip(ALARMS, powers):
        assert alarm <= power <= min(1.0, math.exp(one.epsilon) * alarm + one.delta)
        assert power <= 1 - math.exp(-one.epsilon) * (1 - alarm - one.delta) + 1e-12


# ---------------- the power of a test


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
    shares = [rounded_up(p).split()[0] for p in (0.0183, 0.01830001, 0.5, 0.99999, 1.0)]
    assert shares == ["1.83", "1.84", "50.00", "100.00", "100.00"]
