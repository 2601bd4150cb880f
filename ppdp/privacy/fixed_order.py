"""Rényi divergences of sampled steps at one order, for an account that must fix its order before anything is seen.

They come from integrating what dominates a step. Theory: ``docs/theory/ledger.md``.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ppdp.core.checks import integer, number
from ppdp.core.distance import Distance
from ppdp.exceptions import InvalidParameter
from ppdp.privacy.fixed_size import fixed_size_split
from ppdp.privacy.laws import FAR, binomial_log_mean
from ppdp.privacy.subsampling import PoissonStep

__all__ = ["fixed_size_renyi", "poisson_renyi"]

Floats = NDArray[np.float64]

_INFLATION = 1 + 1e-7  # of a profile and of an integral: more than evaluating it can lose
_STEPS = 20_000  # of the integral over a profile
_FAR = 12.0  # standard deviations behind its peak at which the rest of that integral is bounded as a whole


def poisson_renyi(
    distance: Distance, order: float, *, rate: float, bound: float, lipschitz: float, noise_scale: float
) -> float:
    """Rényi divergence of one noisy sum over a Poisson sample, both ways round; attained where no row moved.

    The pair that dominates is the one with K, the number of sampled rows that moved, published: moments are means over
    its law. The worst split of the toggled rows counts.
    """
    step = PoissonStep.at(distance, rate=rate, bound=bound, lipschitz=lipschitz, noise_scale=noise_scale)

    def log_moment(split: tuple[int, int], backward: bool, k: int) -> float:
        pair = step.pair(split, k, FAR)
        found = (pair.reversed() if backward else pair).renyi(order)
        if math.isinf(found) and k:  # too long to integrate, and mostly too rare to matter
            found = order * pair.gap**2 / 2 * (1 + 1e-12)
        return (order - 1) * found

    ways = [(split, backward) for split in step.splits for backward in {False, split[0] != split[1]}]
    means = [binomial_log_mean(step.moved, rate, step.enough, partial(log_moment, *way)) for way in ways]
    return (max(means) + 1e-13) / (order - 1) * (1 + 1e-12) if max(means) else 0.0


def fixed_size_renyi(
    distance: Distance,
    order: float,
    *,
    n_rows: int,
    batch_size: int,
    bound: float,
    lipschitz: float,
    noise_scale: float,
) -> float:
    """Rényi divergence of one noisy sum over a batch of fixed size, both ways round.

    The noise is split as in :func:`~ppdp.privacy.fixed_size.fixed_size_split`; what hides the moved rows is Gaussian,
    the rest is the integral over the profile of the sampled step.
    """
    mu, sampled = fixed_size_split(
        distance, n_rows=n_rows, batch_size=batch_size, bound=bound, lipschitz=lipschitz, noise_scale=noise_scale
    )
    hidden = 0.0 if sampled is None else _profile_renyi(order, integer("batch_size", batch_size) / n_rows, sampled)
    return (order * mu**2 / 2 + hidden) * (1 + 1e-12)


def _profile_renyi(order: float, fraction: float, mu: float) -> float:
    """Rényi divergence from the profile h of a sampled step, the same both ways round; rounded up.

    ``log(1 + a (a - 1) ∫ (γ^(a-2) + γ^(-a-1)) h(γ) dγ) / (a - 1)`` over γ > 1. Between points, chords lie above h.
    """
    if not number("order", order) > 1:
        raise InvalidParameter(f"a Rényi order must be above 1, got {order!r}.")
    inner = np.linspace(0.0, order * mu + _FAR, _STEPS) * mu  # log of the ratio, were the batch public
    far = inner + math.log(fraction) + np.log1p(-(1 - 1 / fraction) * np.exp(-np.maximum(inner, 1.0)))
    e = np.where(inner < 1, np.log1p(fraction * np.expm1(np.minimum(inner, 1.0))), far)
    gaps = np.diff(e)
    heights = math.log(fraction) + _log_gaussian_profile(mu, inner)
    middles = np.logaddexp(heights[:-1], heights[1:]) - math.log(2)
    if order >= 2:  # γ^(a-2) increases and the chord falls: the mean of the product is below the product of means
        upward = (order - 1) * e[:-1] + _log_expm1((order - 1) * gaps) - math.log(order - 1) + middles
    else:
        upward = (order - 1) * e[:-1] + _log_expm1(gaps) + middles
    # γ^(-a-1) and the chord are convex and fall: so is their product, and the trapezoidal rule is above it.
    falls = heights - (order + 1) * e
    downward = np.logaddexp(falls[:-1], falls[1:]) - math.log(2) + e[:-1] + _log_expm1(gaps)
    tails = _tails(order, fraction, mu, float(inner[-1]), float(e[-1]))
    log_integral = float(special.logsumexp(np.concatenate([upward, downward, tails])))
    log_excess = log_integral + math.log(order) + math.log(order - 1) + math.log(_INFLATION)
    return float(np.logaddexp(0.0, log_excess) + 1e-14) / (order - 1) * (1 + 1e-12)


def _tails(order: float, fraction: float, mu: float, inner: float, e: float) -> list[float]:
    """Logarithms of bounds on both integrals behind the last point: there h is below fraction P(loss > inner)."""
    # Ratios γ are below a multiple of those of the public batch, if raised to a power a - 2 that is positive, or above.
    multiple = e - inner if order >= 2 else math.log(fraction)
    tilted = order * (order - 1) * mu**2 / 2 + float(special.log_ndtr((order - 0.5) * mu - inner / mu))
    upward = 2 * math.log(fraction) + (order - 2) * multiple + tilted - math.log(order - 1)
    downward = math.log(fraction) + float(special.log_ndtr(mu / 2 - inner / mu)) - order * e - math.log(order)
    return [upward, downward]


def _log_gaussian_profile(mu: float, epsilon: Floats) -> Floats:
    """Logarithm of :func:`~ppdp.privacy.gaussian.gaussian_delta`, rounded up, also where that is 0 in float64."""
    log_p = special.log_ndtr(mu / 2 - epsilon / mu)
    log_q = epsilon + special.log_ndtr(-mu / 2 - epsilon / mu)
    lost = 4e-15 * (1 + epsilon + np.abs(log_p) + np.abs(log_q))
    return np.asarray(log_p + np.log(-np.expm1(np.minimum(log_q - log_p, 0.0) - lost)) + 1e-15 * np.abs(log_p))


def _log_expm1(x: Floats) -> Floats:
    return np.asarray(x + np.log(-np.expm1(-x)))
