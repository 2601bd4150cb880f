"""Exact accounting of Gaussian mechanisms: one number ``mu``.

A mechanism is ``mu``-GDP if telling two neighbouring datasets apart from its output is at least as
hard as telling N(0, 1) from N(mu, 1). A Gaussian release of L2 sensitivity ``s`` with standard deviation
``sigma`` has ``mu = s / sigma`` exactly; adaptive composition is the root of the sum of squares
(Dong, Roth and Su, 2022). Theory: ``docs/theory/accounting.md``. And the least noise for a budget, whatever its loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Protocol

import numpy as np
from scipy import special

from ppdp.core.checks import number, positive
from ppdp.core.rounding import LEAST, tiny
from ppdp.exceptions import ImpossibleBudget

# Every answer is moved to the safe side by this; what the difference of two logarithms may lose is charged on top.
_SLACK = 1e-7
_NOTHING = -750.0  # logarithm of what float64 has no positive number for


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Smallest delta such that mu-GDP implies (epsilon, delta)-DP, rounded up: 0 only at ``mu = 0``.

    ``Φ(mu/2 - ε/mu) - exp(ε) Φ(-mu/2 - ε/mu)`` (Balle and Wang, 2018, Theorem 8).

    >>> round(gaussian_delta(1.0, 1.0), 6)
    0.126937
    """
    if mu == 0:
        return 0.0
    if math.isinf(mu):
        return 1.0
    log_p = float(special.log_ndtr(mu / 2 - epsilon / mu))
    if log_p < _NOTHING:
        return LEAST
    log_q = epsilon + float(special.log_ndtr(-mu / 2 - epsilon / mu))
    cancelled = 4e-15 * (1 + epsilon + abs(log_p) + abs(log_q))  # what the difference of the logarithms may have lost
    return min(1.0, tiny(math.exp(log_p) * -math.expm1(min(log_q - log_p, 0.0) - cancelled) * (1 + _SLACK)))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Smallest epsilon such that mu-GDP implies (epsilon, delta)-DP, rounded up.

    >>> round(gaussian_epsilon(1.0, 1e-6), 3)
    4.887
    """
    if mu == 0 or gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    if math.isinf(mu) or delta <= 0:
        return math.inf
    low, high = 0.0, mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / delta)) + 1e-9  # zCDP bound: always enough
    while high - low > 1e-12 * (1 + high):
        middle = (low + high) / 2
        low, high = (low, middle) if gaussian_delta(mu, middle) <= delta else (middle, high)
    return high


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Largest mu that fits into (epsilon, delta), rounded down.

    :class:`ImpossibleBudget` if ``epsilon`` is negative or ``delta`` is not in (0, 1).

    >>> round(gaussian_mu(1.0, 1e-6), 4)
    0.2367
    """
    if not (epsilon >= 0 and math.isfinite(epsilon)):
        raise ImpossibleBudget(f"epsilon must be finite and not negative, got {epsilon!r}.", parameter="epsilon")
    if not 0 < delta < 1:
        what = f"delta must lie strictly between 0 and 1, got {delta!r}."
        raise ImpossibleBudget(what, fix="a usual value is 1e-6.", parameter="delta")
    return _largest_mu(epsilon, delta)


@lru_cache(maxsize=4096)  # plans ask for few budgets, and often
def _largest_mu(epsilon: float, delta: float) -> float:
    low, high = 0.0, 1.0
    while gaussian_delta(high, epsilon) <= delta:
        high *= 2
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(middle, epsilon) <= delta else (low, middle)
    return low


class _HasEpsilon(Protocol):
    """Anything that knows its epsilon at a delta: a LossDistribution, a PrivacyLoss."""

    def epsilon(self, delta: float, /) -> float:
        """Smallest epsilon at this delta."""


def least_noise(
    loss_of: Callable[[float], _HasEpsilon],
    epsilon: float,
    delta: float,
    *,
    start: float = 1.0,
    tolerance: float = 1e-4,
) -> float:
    """Least noise scale whose loss is within (epsilon, delta), rounded up; by bisection.

    ``loss_of`` gives the loss at a noise scale, of which ``start`` is the first that is tried. One that is smaller than
    the answer by more than ``tolerance``, as a share, is not enough. :class:`ImpossibleBudget` if no noise scale up to
    ``2^80 start`` is enough.
    """
    number("epsilon", epsilon, above=0, kind=ImpossibleBudget)
    first = math.log(positive("start", start))
    tried: dict[float, float] = {}  # logarithm of a noise scale, and by how much its loss is too large
    low, high, at, step = -math.inf, math.inf, first, math.log(2)
    while abs(at - first) <= 80 * math.log(2):
        with np.errstate(all="ignore"):  # far too little noise
            found = loss_of(math.exp(at)).epsilon(delta)
        tried[at] = _excess(found, epsilon, delta)
        low, high = (at, high) if tried[at] > 0 else (low, at)
        if high - low <= math.log1p(tolerance):
            return math.exp(high)
        if math.isinf(high):
            at, step = low + _reach(tried[low], step), 2 * step
        elif math.isinf(low):
            at, step = high - _reach(-tried[high], step), 2 * step
        elif len(tried) % 4 == 3 or math.isinf(tried[low]) or math.isinf(tried[high]):
            at = (low + high) / 2
        else:
            at = _between(low, high, tried[low], tried[high], math.log1p(tolerance) / 3)
    if math.isinf(high):
        raise ImpossibleBudget("no noise is enough for this budget.", fix="raise epsilon or delta.")
    return math.exp(high)


def _excess(found: float, epsilon: float, delta: float) -> float:
    """Logarithm of how many times too large a loss is, as a Gaussian one that twice the noise halves."""
    if not found < 1e5:
        return math.inf
    if found <= 0:
        return -math.inf
    if delta == 0:
        return math.log(found / epsilon)
    ratio = math.log(gaussian_mu(found, delta) / gaussian_mu(epsilon, delta))
    return max(ratio, 1e-12) if found > epsilon else min(ratio, 0.0)


def _reach(excess: float, step: float) -> float:
    """How far to go if a loss falls about as fast as noise grows, and a little further."""
    return 1.05 * excess + 1e-3 if math.isfinite(excess) else step


def _between(low: float, high: float, above: float, below: float, margin: float) -> float:
    """Where to look for a zero: on the line through two points, a little off towards the one that is further away."""
    guess = low + (high - low) * above / (above - below)
    guess += -margin if guess - low > high - guess else margin
    return min(max(guess, low + min(margin, (high - low) / 4)), high - min(margin, (high - low) / 4))
