"""Laws of how many rows are in a batch: never below the truth to 60 digits, whatever SciPy says, and hardly above."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
import scipy.stats
from sampled_steps import true_log_tail
from scipy.special import logsumexp
from scipy.stats import binom, hypergeom

from ppdp.privacy.batch_distributions import (
    FAR,
    Law,
    binomial_law,
    binomial_log_mean,
    binomial_log_tail,
    hypergeometric_law,
    log_sum,
)

COUNTS = [(65, 0.3), (1000, 1e-6), (10**4, 0.01), (10**6, 0.999), (10**8, 0.1), (2**31 - 1, 0.05), (10**10, 0.01)]
DEVIATIONS = (-30, -7, -2, -0.1, 0, 0.5, 3, 8, 30, 45)


def places(count: int, rate: float) -> list[int]:
    mean, spread = count * rate, math.sqrt(count * rate * (1 - rate))
    near = (math.floor(mean + z * spread) for z in DEVIATIONS)
    return sorted({0, count - 1, *(k for k in near if 0 <= k < count)})


@pytest.mark.parametrize(("count", "rate"), COUNTS)
def test_binomial_tails(count, rate):
    """To six digits where float64 has them, otherwise at most as if one row more were sampled."""
    ks = places(count, rate)
    for k, answer in zip(ks, binomial_log_tail(ks, count, rate)):
        truth = true_log_tail(k, count, rate)
        assert truth <= answer
        most = truth + mp.mpf("3e-6") if truth > -600 else (true_log_tail(k - 1, count, rate) if k else 0) + 1e-6
        assert answer <= most


@pytest.mark.parametrize("wrong", [0.0, math.nan, 0.92, 1.1], ids=str)
@pytest.mark.parametrize(("count", "rate"), COUNTS[4:])
@pytest.mark.repeated("count", "rate")
def test_a_tail_that_scipy_gets_wrong_is_not_believed(count, rate, wrong, monkeypatch):
    """As its own ``bdtrc`` does: 8 % off at a mean of 1e7, and 0.0 for one half at 1e8."""
    right = binom.sf
    monkeypatch.setattr(scipy.stats, "binom", type("Wrong", (), {"sf": staticmethod(lambda *a: wrong * right(*a))}))
    ks = places(count, rate)
    for k, answer in zip(ks, binomial_log_tail(ks, count, rate)):
        truth = true_log_tail(k, count, rate)
        assert truth <= answer <= (true_log_tail(k - 1, count, rate) if k else 0) + 1e-6


@pytest.mark.parametrize(("count", "rate"), [(40, 0.1), (5000, 0.02), (2**31 - 1, 0.05)])
def test_a_rounded_law_lies_above_and_only_just(count, rate):
    law = binomial_law(count, rate)
    assert logsumexp(law.log_weights) == pytest.approx(0, abs=1e-12)
    above = np.cumsum(np.exp(law.log_weights)[::-1])[::-1][1:]
    assert (above >= binom.sf(law.values[:-1], count, rate) * (1 - 1e-9)).all()
    assert np.exp(law.log_weights) @ law.values <= count * rate + 0.05 * math.sqrt(count * rate)


def test_many_rows_at_once():
    assert binomial_law(10**6, 0.5, most=3.0).values.tolist() == [3.0]
    assert binomial_law(10**12, 0.5) == Law(np.array([1e12]), np.zeros(1))
    assert binomial_law(9, 1.0) == Law(np.array([9.0]), np.zeros(1))


def test_what_underflows_is_not_dropped():
    """Sixty of sixty rows, each with probability 1e-6: 1e-360."""
    assert binomial_law(60, 1e-6).log_weights[-1] == pytest.approx(60 * math.log(1e-6))
    far = binomial_law(1000, 0.01, levels=FAR)
    assert far.log_weights[-1] < -4000
    assert np.diff(far.values).max() <= 101


@pytest.mark.parametrize(("count", "rate"), [(30, 0.2), (10**4, 0.01), (10**4, 0.3), (10**6, 1e-5)])
@pytest.mark.parametrize("slope", [1e-9, 1e-5, 1e-3, 0.05])
@pytest.mark.parametrize("cap", [1.0, 0.02])
@pytest.mark.repeated("slope")
def test_means_are_above_the_sum_by_one_percent_at_most(count, rate, slope, cap):
    """Moments that grow with the square of the sampled rows, small ones and such as only the far tail makes."""
    most = max(1.0, cap * count)
    k = np.arange(count + 1)
    truth = logsumexp(binom.logpmf(k, count, rate) + slope * np.minimum(k, most) ** 2)
    found = binomial_log_mean(count, rate, most, lambda k: slope * k**2)
    assert truth * (1 - 1e-6) <= found <= truth * 1.0101 + 1e-9


@pytest.mark.parametrize(
    ("marked", "population", "drawn"), [(40, 99, 10), (300, 999, 200), (5, 99, 98), (4000, 5000, 900)]
)
def test_hypergeometric_laws(marked, population, drawn):
    k, log_weights = hypergeometric_law(marked, population, drawn, math.inf)
    weights = np.exp(log_weights)
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    law = hypergeom(population, marked, drawn)
    at = np.arange(min(marked, drawn) + 1)
    above = np.array([weights[k > value].sum() for value in at])
    assert (above >= law.sf(at) * (1 - 1e-9) - 1e-15).all()
    assert (weights * k).sum() <= law.mean() * 1.02


def test_of_very_many_rows_all_that_can_have_moved_are_charged():
    """There the hypergeometric law is known to six digits only."""
    assert hypergeometric_law(10**9, 2 * 10**9, 1000, math.inf) == Law(np.array([1000.0]), np.zeros(1))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("impossible", [0.0, 0.5, 1.0])
def test_a_sum_in_logarithms_is_that_of_scipy_to_the_last_bit(impossible, axis):
    rng = np.random.default_rng(3)
    logs = np.round(100 * rng.normal(size=(40, 300)), 1)  # some are equal
    logs[rng.random(logs.shape) < impossible] = -math.inf
    np.testing.assert_array_equal(log_sum(logs, axis), logsumexp(logs, axis=axis))
