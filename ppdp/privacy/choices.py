"""Accounting of choices: mechanisms whose privacy loss has a bounded range, each free to depend on the ones before.

The exponential mechanism is one. Theory: ``docs/theory/renyi.md``, 4.
"""

from __future__ import annotations

import functools
import math
import operator

import numpy as np
from numpy.typing import NDArray

from ppdp.core.checks import integer, positive
from ppdp.privacy.pld import LossDistribution, gaussian_distribution, loss_distribution
from ppdp.privacy.subsampling import Profile

Floats = NDArray[np.float64]

_PARTS = 100  # a range is widened by this share of itself
_TOGETHER = 20  # choices whose profile is worked out at once; more are composed of such blocks


@functools.lru_cache(maxsize=32)
def bounded_range_profile(width: float, count: int) -> Profile:
    """Profile of ``count`` adaptive choices, each with losses in an interval of length ``width``; rounded up.

    One choice costs ``V_1(ε) = (1 - exp((ε - width) / 2))² / (1 - exp(-width))``, and k choices at most
    ``V_k(ε) = max over t of p_t V_(k-1)(ε - t) + (1 - p_t) V_(k-1)(ε - t + width)`` with losses t and t - width, and
    ``p_t = (1 - exp(t - width)) / (1 - exp(-width))``: convexity leaves two outcomes. The only loss is that t is on a
    grid, for which the width is enlarged by one step.
    """
    step, most = positive("width", width) / _PARTS, integer("count", count) * (_PARTS + 1)
    wide = _PARTS + 1
    upper = np.arange(1, wide)  # the larger of the two losses, in steps
    likely = np.expm1((upper - wide) * step) / np.expm1(-wide * step)
    losses = np.arange(-most - wide, most + wide + 1)
    certain = -np.expm1(np.minimum(losses * step, 0.0))  # where what is left of epsilon is spent already
    near = np.minimum(losses * step, width)
    values = np.where(near > -width, np.expm1((near - width) / 2) ** 2 / -math.expm1(-width), certain)
    inside = slice(wide, len(losses) - wide)
    for _ in range(count - 1):
        windows = np.lib.stride_tricks.sliding_window_view(values, 2 * wide + 1)
        spent, saved = windows[:, wide - 1 : 0 : -1], windows[:, 2 * wide - 1 : wide : -1]
        values = certain.copy()
        values[inside] = (likely * spent + (1 - likely) * saved).max(axis=1)
    ratios, heights = np.exp(losses[most + wide :] * step), values[most + wide :]

    def delta(epsilon: Floats) -> Floats:
        return np.interp(np.exp(np.minimum(epsilon, 700.0)), ratios, heights, right=0.0)

    return Profile.symmetric(delta)


def bounded_range_distribution(width: float, count: int, interval: float) -> LossDistribution:
    """Loss of ``count`` adaptive choices, in blocks of a few."""
    if width == 0:
        return gaussian_distribution(0.0, interval)
    blocks, rest = divmod(count, _TOGETHER)
    whole = [loss_distribution(bounded_range_profile(width, _TOGETHER), interval) * blocks] if blocks else []
    last = [loss_distribution(bounded_range_profile(width, rest), interval)] if rest else []
    return functools.reduce(operator.add, whole + last)


def pure_distribution(epsilon: float, interval: float) -> LossDistribution:
    """Loss of randomised response, which dominates every mechanism of this epsilon."""

    def delta(at: Floats) -> Floats:
        return np.asarray(-np.expm1(np.minimum(np.asarray(at, float) - epsilon, 0.0)) / (1 + math.exp(-epsilon)))

    return loss_distribution(Profile.symmetric(delta), interval)
