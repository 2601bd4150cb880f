"""Steps of noisy gradient descent on batches of fixed size, drawn without replacement; moved rows included.

Conventions are those of :mod:`ppdp.privacy.subsampling`. Theory: ``docs/theory/subsampling.md``, 3 and 4. And Rényi
divergences of all sampled steps at one order, for an account that must fix its order before anything is seen; they come
from integrating what dominates a step. Theory: ``docs/theory/ledger.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

import ppdp.privacy.subsampling as subsampling
from ppdp.core.checks import integer, number, positive
from ppdp.core.distance import Distance
from ppdp.exceptions import InvalidParameter, UnsupportedOrder
from ppdp.privacy.batch_distributions import FAR, binomial_log_mean, hypergeometric_law, log_sum

Floats = NDArray[np.float64]

_INFLATION = 1 + 1e-7  # of a profile and of an integral: more than evaluating it can lose
_STEPS = 20_000  # of the integral over a profile
_FAR = 12.0  # standard deviations behind its peak at which the rest of that integral is bounded as a whole


def fixed_size_profile(fraction: float, mu: float, shift: float = 0.0) -> subsampling.Profile:
    """Profile of one step on a batch of fixed size, one row replaced; attained.

    ``fraction`` is the size of the batch over the number of rows, ``mu`` the Gaussian parameter of the step if the
    batch were public, ``2 bound / noise_scale``, and ``shift`` the norm by which the sum of the other rows of the batch
    differs, over the noise scale. Without it the profile is
    ``fraction * delta_mu(log(1 + (exp(epsilon) - 1) / fraction))`` (Balle, Barthe and Gaboardi, 2018).
    """
    number("fraction", fraction, above=0, most=1)
    if shift == 0:
        return subsampling.Profile.symmetric(_still(fraction, mu))
    if fraction == 1:
        return subsampling.gaussian_profile(mu + shift)
    some, certain = np.log([1 - fraction, fraction]), np.zeros(1)
    one_sided = subsampling.GaussianMixturePair(some, np.array([0.0, mu]), certain, np.array([shift])).delta
    hidden, shown = subsampling.gaussian_profile(shift).forward, subsampling.gaussian_profile(mu + shift).forward

    def delta(epsilon: Floats) -> Floats:
        epsilon = np.atleast_1d(np.asarray(epsilon, float))
        small = epsilon * (1 - 1e-9) <= shift * (mu + shift) / 2
        found = np.empty_like(epsilon)
        found[small] = (1 - fraction) * hidden(epsilon[small]) + fraction * shown(epsilon[small])
        found[~small] = one_sided(epsilon[~small])
        return found

    return subsampling.Profile.symmetric(delta)


def fixed_size_step(
    distance: Distance, *, n_rows: int, batch_size: int, bound: float, lipschitz: float, noise_scale: float
) -> tuple[float, subsampling.Profile | None]:
    """One step on a batch of fixed size: a Gaussian release (its mu) if no row is replaced, else a profile.

    The profile is the mean over the number of moved rows in the batch (``docs/theory/subsampling.md``, 4). More than
    one replaced or toggled row, and reweighted ones, are refused.
    """
    fraction, one, all_moves = _batch(distance, n_rows, batch_size, bound, lipschitz, noise_scale)
    if not one:
        return all_moves / noise_scale, None
    each = subsampling.moves(distance, bound, lipschitz, 1)
    mu = 2 * bound / noise_scale
    if each == 0:
        return 0.0, fixed_size_profile(fraction, mu)
    law = hypergeometric_law(math.ceil(distance.moved), n_rows - 1, batch_size, math.ceil(all_moves / each))
    shifts = np.minimum(each * law.values, all_moves) / noise_scale
    profiles = [fixed_size_profile(fraction, mu, shift).forward for shift in shifts]
    return 0.0, subsampling.Profile.symmetric(subsampling.weighted(np.exp(law.log_weights), profiles))


def _split(
    distance: Distance, *, n_rows: int, batch_size: int, bound: float, lipschitz: float, noise_scale: float
) -> tuple[float, float | None]:
    """The step as a Gaussian release and a sampled step, for Rényi divergences: their Gaussian parameters.

    The noise is split: a share of its variance hides the moved rows, without amplification, and the rest the one
    replaced or toggled row, with it (``docs/theory/subsampling.md``, 4). Every share is a bound; the one with the least
    second moment of the loss is taken.
    """
    fraction, one, all_moves = _batch(distance, n_rows, batch_size, bound, lipschitz, noise_scale)
    shift = all_moves / noise_scale
    if not one:
        return shift, None
    if shift == 0:
        return 0.0, 2 * bound / noise_scale
    # The replaced row takes the place of another row of the batch, which may have moved.
    change = (2 * bound + subsampling.moves(distance, bound, lipschitz, 1)) / noise_scale
    shares = np.linspace(0.001, 0.999, 999)
    sampled = fraction**2 * np.expm1(np.minimum(change**2 / (1 - shares), 700.0))
    share = float(shares[np.argmin(shift**2 / shares + sampled)])
    return shift / math.sqrt(share), change / math.sqrt(1 - share)


def _batch(
    distance: Distance, n_rows: int, batch_size: int, bound: float, lipschitz: float, noise_scale: float
) -> tuple[float, bool, float]:
    """Its share of the rows, whether a row is replaced or toggled, and how far moved rows shift the sum over it."""
    positive("noise_scale", noise_scale)
    fraction = integer("batch_size", batch_size, most=integer("n_rows", n_rows)) / n_rows
    count = sum(subsampling.whole_rows(distance))
    if count > 1:
        what = "batches of fixed size are proved for one replaced row."
        raise UnsupportedOrder(what, fix="use Poisson sampling or full batches.")
    return fraction, count == 1, subsampling.moves(distance, bound, lipschitz, batch_size)


def _still(fraction: float, mu: float) -> Callable[[Floats], Floats]:
    """Profile where no row has moved."""
    inner = subsampling.gaussian_profile(mu).forward

    def delta(epsilon: Floats) -> Floats:
        epsilon = np.atleast_1d(np.asarray(epsilon, float))
        near = np.log1p(np.expm1(np.minimum(epsilon, 30.0)) / fraction)
        far = epsilon - math.log(fraction) + np.log1p(-(1 - fraction) * np.exp(-epsilon)) if fraction < 1 else epsilon
        return fraction * inner(np.where(epsilon < 30, near, far))

    return delta


def poisson_renyi(distance: Distance, order: float, **step: float) -> float:
    """Rényi divergence of one noisy sum over a Poisson sample, both ways round; attained where no row moved.

    The sum is that of :func:`~ppdp.privacy.subsampling.poisson_profiles`. The pair that dominates is the one with K,
    the number of sampled rows that moved, published: moments are means over its law. The worst split of the toggled
    rows counts.
    """
    one = subsampling.PoissonStep.at(distance, **step)

    def log_moment(split: tuple[int, int], backward: bool, k: int) -> float:
        pair = one.pair(split, k, FAR)
        found = (pair.reversed() if backward else pair).renyi(order)
        if math.isinf(found) and k:  # too long to integrate, and mostly too rare to matter
            found = order * pair.gap**2 / 2 * (1 + 1e-12)
        return (order - 1) * found

    ways = [(split, backward) for split in one.splits for backward in {False, split[0] != split[1]}]
    means = [binomial_log_mean(one.moved, one.rate, one.enough, partial(log_moment, *way)) for way in ways]
    return (max(means) + 1e-13) / (order - 1) * (1 + 1e-12) if max(means) else 0.0


def fixed_size_renyi(distance: Distance, order: float, **step: Any) -> float:
    """Rényi divergence of one noisy sum over a batch of fixed size, both ways round.

    The noise is split as in statement 4; what hides the moved rows is Gaussian,
    the rest is the integral over the profile of the sampled step.
    """
    mu, sampled = _split(distance, **step)
    hidden = 0.0 if sampled is None else _profile_renyi(order, step["batch_size"] / step["n_rows"], sampled)
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
    log_integral = float(log_sum(np.concatenate([upward, downward, tails])))
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
