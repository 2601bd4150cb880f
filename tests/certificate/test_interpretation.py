"""The trade-off, its Gaussian parameter, and what noise does to results: figures agree with attacks and draws."""

import math

import numpy as np
import pytest
from documents import missed, record_of
from pages import real_documents
from scipy.stats import norm
from zoo import document

from ppdp import make_pipeline
from ppdp.certificate.pages import interpretation as tradeoff
from ppdp.certificate.pages.derivation import expected_error, loses_most
from ppdp.certificate.pages.interpretation import (
    detection_power,
    gaussian_missed,
    gaussian_summary,
    guess_in_words,
    rho,
    right_guesses,
)
from ppdp.mechanisms import GaussianMechanism, LaplaceMechanism, Report
from ppdp.transformers import MinMaxScaler

ALARMS = np.concatenate([10.0 ** np.arange(-9, -1, 0.5), np.linspace(0.05, 1, 60)])
NOT_GAUSSIAN = ("a Laplace mean", "a whole count", "Poisson samples", "a vote", "gated, Laplace")


def changed(mu, failure=0.0, gate_delta=0.0, allowance=0.0):
    documents = real_documents()
    gate = {**documents["gated"]["gate"], "delta": gate_delta, "rule": "max"} if gate_delta else None
    total = {"mu": mu, "failure": failure, "allowance": allowance, "parts": []}
    return record_of({**documents["unconditional"], "total": total, "gate": gate})


def exact_laplace(c):
    """How often the best test of one number with Laplace noise misses."""
    (part,) = c.total.parts
    theta = part["shift"] / part["scale"]

    def misses(alarm):
        if alarm < math.exp(-theta) / 2:
            return 1 - math.exp(theta) * alarm
        return math.exp(-theta) / (4 * alarm) if alarm <= 0.5 else math.exp(-theta) * (1 - alarm)

    return misses, 0.5 + (1 - math.exp(-theta / 2)) / 2


# ---------------------------------------------------------------- Gaussian


@pytest.mark.parametrize("kind", ["unconditional", "gated", "deltas add"])
def test_what_is_gaussian_has_its_own_mu_and_no_error(kind):
    c = record_of(real_documents()[kind])
    summary = gaussian_summary(c)
    assert (summary.mu, summary.error) == (c.total.mu, 0.0)
    assert summary.slack == pytest.approx(c.total.failure + (c.gate.delta if kind == "gated" else 0.0), abs=1e-14)
    for alarm in ALARMS:
        exact = norm.cdf(norm.isf(alarm) - summary.mu)
        assert gaussian_missed(summary, alarm) <= missed(c, alarm) * (1 + 1e-9) + 1e-15
        assert missed(c, alarm) <= exact * (1 + 1e-9)
        assert missed(c, alarm) == pytest.approx(exact, abs=4e-6)
    assert norm.cdf(summary.mu / 2) <= right_guesses(c) <= norm.cdf(summary.mu / 2) + 2e-6


def test_a_mechanism_that_fails_outright_is_guessed_no_better():
    """Reveals all with the gate's delta or with the chance of failure, and a Gaussian number otherwise."""
    for mu, fails in ((0.1, 0.2), (1.0, 1e-3)):
        attack = fails + (1 - fails) * norm.cdf(mu / 2)
        c = changed(mu, failure=fails)
        assert attack <= right_guesses(c) == pytest.approx(attack, abs=fails)
        assert (1 - fails) * norm.cdf(norm.isf(0.05 / (1 - fails)) - mu) >= gaussian_missed(gaussian_summary(c), 0.05)
        gated = changed(mu, gate_delta=fails)  # either is (0, fails) or Gaussian
        assert max(0.5 + fails / 2, norm.cdf(mu / 2)) <= right_guesses(gated)


@pytest.mark.parametrize("mu", [0.01, 0.25, 2.0])
def test_whoever_suspected_more_before_gains_no_more(mu):
    """The best choice between two Gaussians at any odds, against always choosing the likelier one."""
    gained = []
    for before in np.linspace(0.5, 0.99, 50):
        threshold = mu / 2 + math.log(before / (1 - before)) / mu
        right = before * norm.cdf(threshold) + (1 - before) * norm.sf(threshold - mu)
        gained.append(right - before)
    assert max(gained) <= right_guesses(changed(mu)) - 0.5
    assert gained[0] == max(gained) == pytest.approx(right_guesses(changed(mu)) - 0.5, abs=2e-6)


def test_the_samplers_error_is_in_it():
    c = changed(0.5, allowance=0.01 * (1 + math.e))
    assert right_guesses(c) == pytest.approx(norm.cdf(0.25) + 0.01)
    assert gaussian_summary(c).slack == pytest.approx(0.01)


# ---------------------------------------------------------------- not Gaussian


def test_laplace_noise_is_never_told_apart_better_than_said():
    c = record_of(document("a Laplace mean"))
    misses, guesses = exact_laplace(c)
    summary = gaussian_summary(c)
    assert guesses <= right_guesses(c) < guesses + 1e-3
    for alarm in ALARMS:
        assert misses(alarm) >= missed(c, alarm) - 1e-12
        assert misses(alarm) >= gaussian_missed(summary, alarm) - 1e-12
    smaller = type(summary)(0.95 * summary.mu, summary.slack, summary.error)
    assert any(misses(alarm) < gaussian_missed(smaller, alarm) for alarm in ALARMS), "no smaller mu would do"


def test_an_attack_on_sampled_steps_guesses_no_better_but_comes_close():
    """One row that pulls one way or the other in every step that draws it."""
    c = record_of(document("Poisson samples"))
    (part,) = c.total.parts
    rng = np.random.default_rng(0)
    drawn = rng.uniform(size=(200_000, part["count"])) < part["rate"]
    seen = drawn + rng.normal(scale=part["noise_scale"], size=drawn.shape)
    for_it, against = (
        1 - part["rate"] + part["rate"] * np.exp((sign * seen - 0.5) / part["noise_scale"] ** 2) for sign in (1, -1)
    )
    right = np.mean(np.log(for_it / against).sum(axis=1) > 0)
    assert right - 5e-3 <= right_guesses(c) <= right + 0.02


@pytest.mark.parametrize("name", NOT_GAUSSIAN)
def test_the_error_is_how_far_both_curves_are_apart(name):
    c = record_of(document(name))
    summary = gaussian_summary(c)
    assert 0 < summary.error < 0.1
    assert summary.slack == c.delta

    def apart(error):
        ideal = norm.cdf(norm.isf(ALARMS) - summary.mu)
        moved = np.array([missed(c, min(1.0, alarm + error)) for alarm in ALARMS]) - error
        return np.max(moved - ideal)

    assert apart(summary.error) <= 1e-9
    assert apart(0.8 * summary.error) > 0
    for alarm in ALARMS:
        assert gaussian_missed(summary, alarm) <= missed(c, alarm) + 1e-9


def test_the_sentence_for_one_person_rounds_up_and_names_the_choice():
    told = guess_in_words(changed(0.2367))
    assert told == (
        "at even chances, an attacker who knows every row except one person's and must guess which of two possible"
        " records of that person was used is right at most 55 times in 100, averaged over noise; blind guessing, 50"
    )
    assert guess_in_words(changed(9.0)).endswith("may be right every time; blind guessing, 50")
    assert "51 times" in guess_in_words(changed(1e-3))
    assert "may be right every time" in guess_in_words(changed(9.0))


# ---------------------------------------------------------------- claims


@pytest.mark.parametrize("name", ["unconditional", "changed signs", "persons", "a Laplace mean"])
def test_no_claims_that_are_mostly_right_come_more_often_than_page_one_says(name, monkeypatch):
    """Every test that the certificate allows, those of a fine grid: the frequent ones of high share come close."""
    record = record_of(document(name))
    for sure in (0.6, 0.9):
        monkeypatch.setattr(tradeoff, "SURE", sure)
        alarms = np.geomspace(1e-12, 0.5, 6000)
        powers = np.array([detection_power(record, alarm) for alarm in alarms])
        surely = powers[powers / (powers + alarms) > sure]
        bound = tradeoff.mostly_right(record)
        assert surely.max(initial=0.0) <= bound <= max(1.01 * surely.max(initial=0.0), tradeoff.RARE)


def test_where_a_release_may_fail_claims_that_are_mostly_right_come_as_often():
    content = document("unconditional")
    before = tradeoff.mostly_right(record_of(content))
    content["total"]["failure"] = 2e-4
    assert 2e-4 <= tradeoff.mostly_right(record_of(content)) <= 2e-4 + 2 * before


# ---------------- what the noise does to the results


ROWS = np.linspace(0, 1, 900)[:, None]


def counted(mechanism):
    pipe = make_pipeline(MinMaxScaler((0, 1)), mechanism, diagnostics=None).fit(ROWS)
    return pipe.certificate_.record, pipe.release_.to_pandas()["standard_error"]


@pytest.mark.parametrize(
    "mechanism",
    [
        GaussianMechanism("histogram", bins=4),
        LaplaceMechanism("histogram", bins=4),
        Report(["histogram", "mean"], bins=4),
    ],
)
def test_the_error_of_a_count_is_that_of_the_release_and_small_groups_follow(mechanism):
    c, errors = counted(mechanism)
    told = float(expected_error(c).split(" errs by ")[1].split()[0])
    error = errors.max() if not isinstance(mechanism, Report) else errors.iloc[-4:].max()
    assert told == pytest.approx(error, rel=0.1)
    group = int(loses_most(c).split("fewer than ")[1].split()[0])
    assert 10 * error <= group <= 1 + 10 * error * 1.03


def test_a_mean_is_told_beside_the_largest_and_numbers_beside_rows():
    c, _ = counted(GaussianMechanism())
    shares = expected_error(c)
    scale = c.mechanism.noise_scale / c.mechanism.bound
    assert float(shares.split("\u00a0%")[0].split()[-1]) == pytest.approx(100 * scale, rel=0.05)
    assert f"; results made of {c.mechanism.size} noisy number" in shares
    assert shares.endswith("900 rows")
    assert "count" not in loses_most(c)


def test_rho_is_exact_where_all_noise_is_gaussian_and_told_nowhere_else():
    gaussian, laplace = record_of(document("unconditional")), record_of(document("a Laplace mean"))
    orders = np.array([1.5, 2.0, 8.0])
    mu = gaussian.total.mu
    divergences = [_renyi(order, mu) for order in orders]
    assert divergences == pytest.approx(orders * rho(gaussian), rel=1e-6)
    assert rho(laplace) is None


def _renyi(order, mu):
    """Of two normal distributions at this distance, integrated."""
    x = np.linspace(-40, 40, 400_001)
    density = np.exp(-order * (x - mu) ** 2 / 2 - (1 - order) * x**2 / 2) / math.sqrt(2 * math.pi)
    return math.log(np.trapezoid(density, x)) / (order - 1)
