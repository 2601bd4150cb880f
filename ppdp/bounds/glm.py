"""Gradients of generalised linear models with a log link: ``docs/theory/generalized-linear-models.md``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ppdp.bounds.learning import Gradient, augmented_norm, mean_gradient
from ppdp.core.domain import Domain
from ppdp.core.formula import sane
from ppdp.core.rounding import UNIT

LARGEST_SCORE = 500.0  # scores beyond count as this; no gradient gets larger by it
LARGEST_SHARE = 8.0


def target_unit(y_range: Sequence[float]) -> float:
    """What a score of 0 predicts, from the public range of the targets: its lower end, or an eighth of the upper."""
    return max(float(y_range[0]), float(y_range[1]) / LARGEST_SHARE)


def target_shares(y_range: Sequence[float]) -> tuple[float, float]:
    """The range of the targets over their unit: at most 8."""
    unit = target_unit(y_range)
    return float(y_range[0]) / unit, float(y_range[1]) / unit


def tweedie_slope(score: float, shares: tuple[float, float], power: float) -> float:
    """Largest ``|phi'|`` of a score of at most this size: ``phi' = exp((2 - p) v) - t exp((1 - p) v)``.

    It increases in v and decreases in t, so it is largest at one of two corners.
    """
    low, high = shares
    v = min(score, LARGEST_SCORE)
    rising, falling = 2 - power, power - 1
    above = math.exp(rising * v) - low * math.exp(-falling * v)
    below = high * math.exp(falling * v) - math.exp(-rising * v)
    return max(above, below)


def tweedie_smoothness(
    row_norm: float, coef_norm: float, *, power: float, shares: tuple[float, float], clip: float, least_norm: float
) -> float:
    """Lipschitz constant in the row of the gradient ``phi'(score) x``, clipped at norm ``clip``.

    The maximum over ``least_norm <= r <= row_norm`` of ``min(A(r), C/r) + r D min(t^a + max(a, b) C/r, B(r))`` with
    ``a = 2 - p``, ``b = p - 1``, t the largest target, A the largest ``|phi'|`` and ``B = a exp(a r D) + b t exp(b r
    D)`` no less than any ``phi''``. Where the gradient is not clipped, ``|phi'| <= C/r`` keeps ``phi''`` small too.
    """
    rising, falling, high = 2 - power, power - 1, shares[1]
    steep, steeper = high**rising, max(rising, falling)

    def slope(r: float) -> float:
        return tweedie_slope(r * coef_norm, shares, power)

    def curvature(r: float) -> float:
        v = min(r * coef_norm, LARGEST_SCORE)
        return rising * math.exp(rising * v) + falling * high * math.exp(falling * v)

    def at(r: float) -> float:
        return min(slope(r) * r, clip) / r + coef_norm * min(steep * r + steeper * clip, curvature(r) * r)

    # It increases until the clip begins to bind; beyond it is convex on either side of where the minimum changes over.
    least = max(least_norm, 1e-9 * row_norm)
    binds = _root(lambda r: slope(r) * r - clip, least, row_norm)
    changes = _root(lambda r: curvature(r) * r - steep * r - steeper * clip, least, row_norm)
    return max(at(r) for r in (binds, max(binds, changes), row_norm))


def _root(increasing: Callable[[float], float], low: float, high: float) -> float:
    """Where a function becomes positive, or the end at which it is closest to that."""
    if increasing(low) >= 0:
        return low
    if increasing(high) <= 0:
        return high
    from scipy.optimize import brentq  # not above: every certificate would wait for it

    return float(brentq(increasing, low, high, xtol=1e-15 * high, rtol=1e-14))


@mean_gradient(
    "learning.glm-gradient",
    "generalized-linear-models",
    used_by=("GammaRegressor", "PoissonRegressor", "TweedieRegressor"),
)
def glm_gradient(
    domain: Domain, *, clip: float, coef_norm: float, fit_intercept: bool, y_range: Sequence[float], power: float
) -> Gradient:
    """Gradient of half the Tweedie deviance of power 1 (Poisson) to 2 (gamma), log link.

    Targets, clipped to a public range, and predictions are shares of their unit.
    """
    sane(clip > 0 and coef_norm > 0 and 1 <= power <= 2)
    sane(0 <= y_range[0] < y_range[1] and 1e-100 <= y_range[1] <= 1e100)
    sane(domain.y_range is None or tuple(domain.y_range) == tuple(y_range))
    norm = augmented_norm(float(domain.require("row_norm")), fit_intercept)
    shares = target_shares(y_range)
    bound = min(clip, norm * tweedie_slope(norm * coef_norm, shares, power))
    least = 1.0 if fit_intercept else 0.0
    smoothness = tweedie_smoothness(norm, coef_norm, power=power, shares=shares, clip=bound, least_norm=least)
    # Where a row is not far beyond its clip, both terms of phi' are below 4 t^a + 2 C/r; where it is, it stays clipped.
    steepness = (4 * shares[1] ** (2 - power) * norm + 2 * bound) * (1 + min(norm * coef_norm, LARGEST_SCORE))
    return Gradient(domain.d + bool(fit_intercept), bound, smoothness, (8 * domain.d + 80) * UNIT * steepness)
