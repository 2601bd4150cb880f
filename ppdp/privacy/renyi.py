"""Rényi accounting: curves, their composition and conversion, and the weak triangle inequality.

A *curve* maps an order ``alpha > 1`` (``math.inf`` included) to a bound on the Rényi divergence of that order between
the outputs on two neighbouring datasets, both ways round. For Gaussian releases
:class:`~ppdp.privacy.loss.PrivacyLoss` is exact and better; curves are for the rest. Every function here returns an
upper bound. Theory: ``docs/theory/renyi.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ppdp.core.checks import integer, number, positive
from ppdp.core.distance import Distance
from ppdp.core.rounding import tiny
from ppdp.exceptions import ImpossibleBudget, InvalidParameter

Curve = Callable[[float], float]

ORDERS: tuple[float, ...] = tuple(
    float(order)
    for order in np.unique(
        np.concatenate([1 + np.geomspace(1e-3, 1, 80), np.linspace(2, 20, 73), np.geomspace(20, 8192, 200)])
    )
)
"""Orders at which a conversion looks: fine just above 1 (large losses), far up (small ones)."""

_SLACK = 1 + 1e-12  # a value computed in a few roundings, moved to the safe side


def gaussian_curve(mu: float) -> Curve:
    """Curve of a mu-GDP Gaussian release, ``alpha mu² / 2``; exact."""
    number("mu", mu, least=0)
    return lambda alpha: _order(alpha) * mu * mu / 2 * _SLACK if mu else 0.0


def laplace_curve(shift: float) -> Curve:
    """Curve of Laplace noise of scale 1 when the released vector changes by at most ``shift`` in L1; exact.

    ``log(a/(2a-1) exp((a-1) s) + (a-1)/(2a-1) exp(-a s)) / (a-1)``, and s at infinite order; a vector costs most
    when all of its shift is in one coordinate (``docs/theory/renyi.md``, 3).
    """
    number("shift", shift, least=0)

    def curve(alpha: float) -> float:
        if math.isinf(_order(alpha)) or shift == 0:
            return shift
        more, less = (alpha - 1) * shift, -alpha * shift
        if more > 1:
            ahead, behind = math.log(alpha / (2 * alpha - 1)), math.log((alpha - 1) / (2 * alpha - 1))
            log_moment = float(np.logaddexp(ahead + more, behind + less))
        else:  # the terms of first order cancel: nothing is lost if they cancel among small numbers
            rise = (alpha * math.expm1(more) + (alpha - 1) * math.expm1(less)) / (2 * alpha - 1)
            log_moment = math.log1p(rise + 1e-15 * more)
        return min(log_moment / (alpha - 1) * _SLACK, shift)

    return curve


def bounded_range_curve(width: float) -> Curve:
    """Curve of a mechanism whose privacy loss has a range of at most ``width``; exact for the worst such mechanism.

    The exponential mechanism with weights ``exp(rate * score)`` and a score that changes by at most s has width
    ``2 rate s`` (``rate s`` if no two scores move in opposite directions). The worst mechanism has two outcomes
    (``docs/theory/renyi.md``, 4); never more than ``min(width, alpha width² / 8)``.
    """
    number("width", width, least=0)

    def curve(alpha: float) -> float:
        if math.isinf(_order(alpha)) or width == 0:
            return width
        spread, spread_less, spread_one = (math.log(-math.expm1(-a * width)) for a in (alpha, alpha - 1, 1.0))
        upper = width + math.log1p(-1 / alpha) + spread - spread_less  # the larger of the two losses
        lost = 4e-16 * (2 + width + abs(spread) + abs(spread_less) + abs(spread_one) + math.log(alpha))
        exact = upper + (spread - math.log(alpha) - spread_one) / (alpha - 1) + lost * alpha / (alpha - 1)
        return min(exact, width, alpha * width**2 / 8 * _SLACK)

    return curve


def hidden_iterate_curve(
    distance: Distance, *, n_rows: int, bound: float, lipschitz: float, noise_scale: float
) -> Curve:
    """Curve of one pass of noisy projected SGD that releases only its iterate at a secret uniform time.

    One row per step in a fixed public order, ``theta <- Proj(theta - eta (g + Z))``, Z with standard deviation
    ``noise_scale`` in every coordinate, convex losses that are beta-smooth in theta, ``eta <= 2 / beta``. With
    ``V = bound * mass + min(lipschitz * total, 2 bound moved)``, toggled rows included:
    ``log(mean over j <= n of exp(a (a-1) V² / (2 sigma² j))) / (a-1)`` (``docs/theory/renyi.md``, 5).

    Every row's gradient has norm at most ``bound`` and is ``lipschitz`` (perhaps infinite) in the row; rows that match
    only up to a permutation are charged.
    """
    integer("n_rows", n_rows)
    shift = distance.by_position().shift(bound, lipschitz) / positive("noise_scale", noise_scale)
    first, count = _blocks(n_rows)

    def curve(alpha: float) -> float:
        if shift == 0 or math.isinf(_order(alpha)):
            return math.inf if shift else 0.0
        exponents = alpha * (alpha - 1) * shift**2 / 2 / first
        if exponents[0] < 1:
            log_mean = math.log1p(float((count * np.expm1(exponents)).sum()) / n_rows)
        else:
            rest = count * np.exp(exponents - exponents[0])  # of the first, which is the largest, there is one
            rest[0] = 0.0
            log_mean = float(np.log1p(rest.sum()) + exponents[0]) - math.log(n_rows)
        return log_mean / (alpha - 1) * (1 + 1e-10)

    return lru_cache(maxsize=4096)(curve)


def composed(*curves: Curve) -> Curve:
    """Curve of an adaptive composition: the sum."""
    return lambda alpha: math.fsum(curve(alpha) for curve in curves) * _SLACK


def repeated(curve: Curve, times: int) -> Curve:
    """Curve of an adaptive composition of ``times`` mechanisms of one curve."""
    integer("times", times, least=0)
    return lambda alpha: times * curve(alpha) * _SLACK if times else 0.0


def linear_weak_triangle(moves_slope: float, replacement_slope: float) -> Curve:
    """Curve for a pair two steps apart, with curves ``a * alpha`` and ``b * alpha``: ``alpha (sqrt a + sqrt b)²``.

    Theorem 2 of "Provable privacy with non-private pre-processing" with the best ``c``, ``1 + (alpha - 1) / alpha
    sqrt(b / a)`` (``docs/theory/renyi.md``, 6). For Gaussian noise this is the exact divergence of the two shifts added
    up.
    """
    number("moves_slope", moves_slope, least=0)
    number("replacement_slope", replacement_slope, least=0)
    slope = (math.sqrt(moves_slope) + math.sqrt(replacement_slope)) ** 2 * _SLACK
    return lambda alpha: _order(alpha) * slope if slope else 0.0


def renyi_epsilon(curve: Curve, delta: float, orders: Iterable[float] = ORDERS) -> float:
    """Epsilon at this delta, rounded up: least over the orders of ``r + log(1 - 1/a) - log(a delta) / (a - 1)``.

    Source: Asoodeh et al., 2020; Canonne, Kamath and Steinke, 2020, Proposition 12.
    """
    _small(delta)
    less, least = math.log(delta), math.inf
    for a, ahead, log in reversed(_logs(tuple(orders))):
        if ahead - (less + log) / (a - 1) < least:  # else the order is of no use, whatever the curve is there
            least = min(least, curve(a) + ahead - (less + log) / (a - 1))
    return max(0.0, _rounded_up(least))


def renyi_epsilon_classic(curve: Curve, delta: float, orders: Iterable[float] = ORDERS) -> float:
    """Epsilon at this delta, rounded up: least over the orders of ``r - log(delta) / (a - 1)``.

    Source: Mironov, 2017, Proposition 3. For comparison: :func:`renyi_epsilon` is never worse.
    """
    _small(delta)
    return _rounded_up(min(curve(a) - math.log(delta) / (a - 1) for a in orders))


def renyi_delta(curve: Curve, epsilon: float, orders: Iterable[float] = ORDERS) -> float:
    """Delta at this epsilon, rounded up: the inverse of :func:`renyi_epsilon`."""
    number("epsilon", epsilon, least=0)
    lowest = min((a - 1) * (curve(a) - epsilon + ahead) - log for a, ahead, log in _logs(tuple(orders)))
    return min(1.0, tiny(math.exp(min(lowest + 1e-12 * (1 + abs(lowest)), 0.0))))


@lru_cache(maxsize=8)
def _logs(orders: tuple[float, ...]) -> tuple[tuple[float, float, float], ...]:
    """Every order ``a`` with ``log(1 - 1/a)`` and ``log(a)``."""
    return tuple((a, math.log1p(-1 / a), math.log(a)) for a in orders)


def _blocks(n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Blocks of 1..n by their first number and size; a decreasing function is largest at the first number."""
    exact = min(n, 4096)
    first = np.unique(np.concatenate([np.arange(1, exact + 1), np.floor(np.geomspace(exact, n, 2048))]))
    first = first[first <= n]
    return first, np.diff(first, append=n + 1)


def _order(alpha: float) -> float:
    if not alpha > 1:
        raise InvalidParameter(f"a Rényi order must be above 1, got {alpha!r}.")
    return alpha


def _small(delta: float) -> None:
    number("delta", delta, above=0, most=1, kind=ImpossibleBudget, fix="a usual value is 1e-6.")


def _rounded_up(epsilon: float) -> float:
    return epsilon + 1e-12 * (1 + abs(epsilon))
