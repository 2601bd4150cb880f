"""How many of some rows are in a batch: binomial and hypergeometric laws, rounded up, in logarithms.

What a batch costs grows with how many of its rows differ, so a law that lies above the true one serves: the mass
between two chosen values is moved to the upper one. Nothing is dropped where float64 would underflow. A tail that
SciPy computes is believed only between two proven bounds; elsewhere the upper one is charged.
Theory: ``docs/theory/subsampling.md``, 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

Floats = NDArray[np.float64]

LEVELS = np.log(np.concatenate([np.linspace(0.98, 0.02, 65), 10.0 ** -np.arange(2, 21)]))
"""Logarithms of the tails at which a law is cut; whatever is rarer counts as the largest value."""

FAR = np.concatenate([LEVELS, LEVELS[-1] * 1.2 ** np.arange(1, 64)])
"""The same for moments of high order, to which values of probability exp(-4 000 000) may contribute."""

_EXACT = 64  # a law with at most this many values is used as it is
_COUNTABLE = 2**31 - 1  # of more rows than this, all are charged
_BINOMIAL_ERROR = 1e-6  # more than the relative error of binomial tails by SciPy, where it is believed
_HYPERGEOMETRIC_ERROR = 1e-5  # more than the relative error of tails that are sums of hypergeometric probabilities
_SUPPORT, _POPULATION = 2**22, 10**8  # a law of more values is not tabulated, one of more rows not precise enough
_EXCESS = 0.01  # share by which rounding may enlarge the logarithm of a mean
_MOST_VALUES = 4096  # a mean is not refined further


class Law(NamedTuple):
    """Values in ascending order, and the logarithms of their probabilities."""

    values: Floats
    log_weights: Floats


def binomial_log_tail(k: ArrayLike, count: int, rate: float) -> Floats:
    """``log P(K > k)`` for K ~ Bin(count, rate) and whole numbers ``0 <= k < count``, rounded up.

    With D(k) the deviance ``k log(k / nq) + (n - k) log((n - k) / (n - nq))`` and ``z(k) = sign(k - nq) sqrt(2 D(k))``:
    ``Φ(-z(k + 1)) <= P(K > k) <= Φ(-z(k))`` (Zubkov and Serov, *A complete proof of universal inequalities for the
    distribution function of the binomial law*, 2013). Boost's incomplete beta function, which ``scipy.stats.binom``
    calls, counts if it lies between; what it gives elsewhere is not believed.
    """
    from scipy.stats import binom

    k = np.asarray(k, float)
    least, most = _log_normal_tail(k + 1, count, rate, +1), _log_normal_tail(k, count, rate, -1)
    with np.errstate(divide="ignore"):
        known = np.log(binom.sf(k, count, rate)) + _BINOMIAL_ERROR
    return np.where((least <= known) & (known <= most + 2 * _BINOMIAL_ERROR), known, most)


def binomial_law(count: int, rate: float, most: float = math.inf, levels: Floats = LEVELS) -> Law:
    """A law above that of ``min(K, most)``, K ~ Bin(count, rate): the same, or rounded up."""
    last = int(min(count, most))
    if rate == 1 or count > _COUNTABLE:
        return Law(np.array([float(last)]), np.zeros(1))
    if count <= _EXACT:
        return _exact(count, rate, last)
    return _likely(_cut(_cuts(count, rate, levels), count, rate, last))


def binomial_log_mean(count: int, rate: float, most: float, log_moment: Callable[[int], float]) -> float:
    """``log E exp(log_moment(min(K, most)))``, K ~ Bin(count, rate), for a function that does not decrease; rounded up.

    The law is cut ever finer, where it matters, until rounding it down instead would make the logarithm at most 1 %
    smaller: so the answer is at most 1 % above the truth, but for the errors of tails.
    """
    found: dict[int, float] = {}

    def at(values: Floats) -> Floats:
        for k in map(int, values):
            if k not in found:
                found[k] = log_moment(k)
        return np.array([found[int(k)] for k in values])

    law = binomial_law(count, rate, most)
    while True:
        high = at(law.values)
        wide = np.append(False, np.diff(law.values) > 1) & (law.log_weights > -math.inf)
        low = np.where(wide, np.append(high[0], high[:-1]), high)
        mean, least = _log_mean(law, high), _log_mean(law, low)
        if count <= _EXACT or not least * (1 + _EXCESS) < mean < math.inf or len(law.values) > _MOST_VALUES:
            return mean
        with np.errstate(divide="ignore"):
            excess = law.log_weights + high + np.log(-np.expm1(low - high))
        worst = min(excess.max(), mean + math.log(-math.expm1(-mean * _EXCESS)) - math.log(len(excess)))
        split = (excess >= worst).nonzero()[0]
        middles = np.floor((law.values[split - 1] + law.values[split]) / 2)
        law = _cut(np.union1d(law.values, middles), count, rate, int(min(count, most)))


def hypergeometric_law(marked: int, population: int, drawn: int, most: float) -> Law:
    """A law above that of ``min(K, most)``, K of the ``marked`` among ``drawn`` of the population."""
    drawn = min(drawn, population)
    least, last = max(0, drawn - (population - marked)), min(marked, drawn)
    if marked >= population or last - least > _SUPPORT or population > _POPULATION:  # all that can be drawn are charged
        return Law(np.array([float(min(last, most))]), np.zeros(1))
    from scipy.stats import hypergeom

    k = np.arange(least, last + 1, dtype=float)
    tails = np.cumsum(np.exp(hypergeom.logpmf(k, population, marked, drawn))[::-1])[::-1][1:]  # of lying above k[:-1]
    with np.errstate(divide="ignore"):
        log_tails = np.log(tails) + _HYPERGEOMETRIC_ERROR
    if len(k) > _EXACT:
        chosen = np.unique([0, len(k) - 1, *np.searchsorted(-tails, -np.exp(LEVELS))])
        k, log_tails = k[chosen], log_tails[chosen[:-1]]
    within = np.append(k[:-1] < most, True)
    k, log_tails = np.minimum(k[within], most), log_tails[within[:-1]]
    return _likely(_weighed(k, log_tails))


def _exact(count: int, rate: float, last: int) -> Law:
    k = np.arange(count + 1)
    ways = np.array([math.log(math.comb(count, int(i))) for i in k])
    log_weights = ways + k * math.log(rate) + (count - k) * math.log1p(-rate)
    log_weights[last] = log_sum(log_weights[last:])
    return Law(k[: last + 1].astype(float), log_weights[: last + 1])


def _cut(values: Floats, count: int, rate: float, last: int) -> Law:
    """The law that takes these values only, the largest of them the last one."""
    values = np.append(values[values < last], float(last))
    return _weighed(values, binomial_log_tail(values[:-1], count, rate))


def _weighed(values: Floats, log_tails: Floats) -> Law:
    """The law on ascending values that exceeds each but the last with these tails."""
    above = np.concatenate([[0.0], np.minimum.accumulate(np.minimum(log_tails, 0.0)), [-math.inf]])
    with np.errstate(divide="ignore", invalid="ignore"):
        return Law(values, above[:-1] + np.log(-np.expm1(above[1:] - above[:-1])))


def _log_mean(law: Law, heights: Floats) -> float:
    """Logarithm of the mean of ``exp(heights)``."""
    likely = law.log_weights > -math.inf
    return float(log_sum(law.log_weights[likely] + heights[likely]))


def log_sum(logs: ArrayLike, axis: int = -1) -> Floats:
    """``log(sum(exp(logs)))``: SciPy's ``logsumexp`` to the last bit, in a fraction of the time."""
    logs = np.asarray(logs)
    top = logs.max(axis=axis, keepdims=True)
    largest = logs == top
    with np.errstate(invalid="ignore"):  # infinite ones
        rest = np.exp(np.where(largest, -math.inf, logs - top)).sum(axis=axis, keepdims=True)
    count = largest.sum(axis=axis, keepdims=True)
    return np.asarray((np.log1p(rest / count) + np.log(count) + top).squeeze(axis))


def _likely(law: Law) -> Law:
    """The law without the values that have no weight."""
    return Law(*(part[law.log_weights > -math.inf] for part in law))


def _cuts(count: int, rate: float, levels: Floats) -> Floats:
    """0 and, for each level, the least k with ``log P(K > k)`` no larger."""
    low, high = np.full(len(levels), -1.0), np.full(len(levels), float(count))
    while (high - low).max() > 1:
        middle = np.floor((low + high) / 2)
        small = binomial_log_tail(np.maximum(middle, 0.0), count, rate) <= levels
        narrow = high - low <= 1
        low, high = np.where(small | narrow, low, middle), np.where(small & ~narrow, middle, high)
    return np.unique(np.append(high, 0.0))


def _log_normal_tail(k: Floats, count: int, rate: float, side: int) -> Floats:
    """``log Φ(-z(k))`` for ``0 <= k <= count``, moved down for side 1 and up for side -1 by what may have been lost."""
    off = k - count * rate
    deviance = special.xlog1py(k, off / (count * rate)) + special.xlog1py(count - k, -off / (count * (1 - rate)))
    signed = np.copysign(np.maximum(deviance, 0.0), off) + side * 4e-15 * (1 + np.abs(off) + deviance)
    log_tail = special.log_ndtr(-np.sign(signed) * np.sqrt(2 * np.abs(signed))) * (1 + side * 1e-13)
    log_tail = np.where(k == 0, math.log(-math.expm1(count * math.log1p(-rate))), log_tail)
    return np.where(k == count, count * math.log(rate), log_tail)
