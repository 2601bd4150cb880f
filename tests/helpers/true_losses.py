"""True privacy of runs of known steps, by other means than the library's: no grid of losses, no order, no convolution.

With M(z) = E_P exp(z L), L the privacy loss of one step under P, the loss of T steps has the moments M^T, and

    δ(ε) = E_P max(0, 1 - exp(ε - L)) = 1/(2πi) ∫ M(z)^T exp(-εz) / (z (z + 1)) dz   over Re z = θ > 0,

because that is the transform of max(0, 1 - exp(ε - x)). On the line through the saddle point the trapezoidal rule is
exact to ten digits, however small delta is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.special import logsumexp
from scipy.stats import binom

LogMoment = Callable[[NDArray[Any]], NDArray[Any]]  # of real numbers or complex ones

MOST = 3_000_000  # points of a transform; a law that needs more is too close to a lattice for this


class Law:
    """Privacy loss of one step under P, as masses on many points: a quadrature, not a rounding."""

    def __init__(self, *parts: tuple[NDArray[np.float64], NDArray[np.float64]]) -> None:
        self.log_mass = np.concatenate([log_mass for log_mass, _ in parts])
        self.loss = np.concatenate([loss for _, loss in parts])

    def __call__(self, z: NDArray[Any]) -> NDArray[Any]:
        """At one point, or at a multiple of 32 that are equally far from each other on a line of equal real part."""
        exponents = self.log_mass + z[0] * self.loss
        top = exponents.real.max()
        masses = np.exp(exponents - top)
        if len(z) == 1:
            return top + np.log(masses.sum(keepdims=True))
        few, turn, sums = np.exp(np.multiply.outer(z[:32] - z[0], self.loss)), np.exp((z[32] - z[0]) * self.loss), []
        for _ in range(0, len(z), 32):
            sums.append(few @ masses)
            masses = masses * turn
        return top + np.log(np.concatenate(sums))


def gaussian(mu: float) -> LogMoment:
    """Of a Gaussian release, or of many."""
    return lambda z: z * (z + 1) * mu**2 / 2


def laplace(shift: float) -> LogMoment:
    """Of one number with Laplace noise of scale 1."""

    def log_moment(z: NDArray[Any]) -> NDArray[Any]:
        between = -np.expm1(-(1 + 2 * z) * shift) / (2 * (1 + 2 * z))
        return z * shift + np.log(0.5 + 0.5 * np.exp(-shift - 2 * z * shift) + between)

    return log_moment


def mixtures(
    p: NDArray[np.float64], a: NDArray[np.float64], q: NDArray[np.float64], b: NDArray[np.float64], weight: float = 1.0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Log masses and losses of sum p N(a, 1) against sum q N(b, 1)."""
    low, high = min(a.min(), b.min()) - 13, max(a.max(), b.max()) + 13
    x, step = np.linspace(low, high, math.ceil((high - low) * max(12, 16 * (np.ptp(a) + np.ptp(b)))), retstep=True)
    logs = [logsumexp(np.multiply.outer(m, x) - (m**2 / 2)[:, None], axis=0, b=w[:, None]) for w, m in ((p, a), (q, b))]
    log_mass = logs[0] - x**2 / 2 + math.log(step / math.sqrt(2 * math.pi) * weight)
    return log_mass, logs[0] - logs[1]


def poisson(
    rate: float, sigma: float, *, rows=(1, 1), moved: int = 0, each: float = 0.0, total: float = math.inf
) -> Law:
    """Of a noisy sum over a Poisson sample, K, the number of sampled rows that moved, being public.

    ``rows`` of contribution 1 stand in one dataset only, -1 in the other.
    """
    parts = []
    counts = [np.arange(count + 1) for count in rows]
    laws = [binom.pmf(count, rows[side], rate) for side, count in enumerate(counts)]
    for k, weight in enumerate(binom.pmf(np.arange(moved + 1), moved, rate)):
        if weight > 1e-22:
            shift = min(k * each, total)
            parts.append(mixtures(laws[0], counts[0] / sigma, laws[1], -(shift + counts[1]) / sigma, weight))
    return Law(*parts)


def fixed_size(fraction: float, mu: float) -> Law:
    """Of a batch of fixed size: (1 - q) N(0, 1) + q N(mu, 1) against N(0, 1) where that is above 0, and mirrored.

    Its profile is q δ_G(mu, log(1 + (exp(ε) - 1) / q)) for ε >= 0 both ways round; what is left is a loss of 0.
    """
    nodes, weights = np.polynomial.legendre.leggauss(20)
    edges = np.linspace(mu / 2, 14 + 1.5 * mu, 41)
    x = ((edges[:-1] + edges[1:])[:, None] / 2 + np.diff(edges)[:, None] / 2 * nodes).ravel()
    cell = (np.diff(edges)[:, None] / 2 * weights).ravel()
    loss = np.logaddexp(math.log1p(-fraction), math.log(fraction) + mu * x - mu**2 / 2)
    log_mass = loss - x**2 / 2 + np.log(cell / math.sqrt(2 * math.pi))
    rest = 1 - np.exp(log_mass).sum() - np.exp(log_mass - loss).sum()
    return Law((log_mass, loss), (log_mass - loss, -loss), (np.array([math.log(rest)]), np.zeros(1)))


def true_delta(log_moment: LogMoment, runs: int, epsilon: float, precision: float = 1e-9) -> float:
    """delta(epsilon) of ``runs`` steps, up to about this relative precision."""

    def exponent(z: NDArray[Any]) -> NDArray[Any]:
        return runs * log_moment(z) - z * epsilon - np.log(z) - np.log1p(z)

    def on_the_line(theta: float) -> float:
        return float(exponent(np.array([theta]))[0])

    theta = math.exp(minimize_scalar(lambda u: on_the_line(math.exp(u)), bounds=(-9, 13), method="bounded").x)
    top, h = on_the_line(theta), 1e-3 * theta
    width = h / math.sqrt(max(on_the_line(theta + h) - 2 * top + on_the_line(theta - h), 1e-12))
    step, total, at = width / 5, 0.5, 1
    while at < MOST:
        size = 256 if at < 2000 else 4096
        values = np.exp(exponent(theta + 1j * step * np.arange(at, at + size)) - top)
        total += float(values.real.sum())
        at += size
        if np.abs(values[-64:]).max() * at < precision:
            return math.exp(top) * total * step / math.pi
    raise ValueError("the transform does not vanish: this law is nearly one of a lattice")


def true_epsilon(delta_of: Callable[[float], float], delta: float, most: float) -> float:
    """Where delta_of, which falls, is delta; 0 if it is never more."""
    if delta_of(0.0) <= delta:
        return 0.0
    return float(brentq(lambda epsilon: delta_of(epsilon) - delta, 0.0, most, xtol=1e-12 * most, rtol=1e-11))


def choices_delta(width: float, count: int, epsilon: float) -> float:
    """delta(epsilon) of ``count`` choices, losses t and t - width, for the worst t, the same in all: a lower bound."""
    lower = np.arange(count + 1)

    def at(t: NDArray[np.float64]) -> NDArray[np.float64]:
        likely = np.expm1(t - width) / math.expm1(-width)
        gains = -np.expm1(np.minimum(epsilon - np.multiply.outer(count * t, np.ones(count + 1)) + lower * width, 0.0))
        return np.asarray((binom.pmf(lower, count, 1 - np.expand_dims(likely, -1)) * gains).sum(axis=-1))

    grid = np.linspace(0, width, 42)[1:-1]
    best = int(np.argmax(at(grid)))
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, 39)]
    return max(float(at(grid[best])), -minimize_scalar(lambda t: -float(at(t)), bounds=bounds, method="bounded").fun)


def whole_delta(shift: int, decay: float, epsilon: float) -> float:
    """delta(epsilon) of one integer with noise ``~ exp(-decay |k|)``, by enumeration."""
    k = np.arange(-math.ceil(40 / decay), math.ceil(40 / decay) + shift + 1)
    p, q = (math.tanh(decay / 2) * np.exp(-decay * np.abs(k - at)) for at in (0, shift))
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The mu of (epsilon, delta), to 40 digits."""
    with mp.workdps(40):

        def excess(log_mu: mp.mpf) -> mp.mpf:
            mu = mp.exp(log_mu)
            return mp.log(mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)) - mp.log(
                delta
            )

        low, high = mp.mpf(-30), mp.mpf(4)
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if _negative(excess, middle) else (low, middle)
        return float(mp.exp(high))


def _negative(excess: Callable[[mp.mpf], mp.mpf], at: mp.mpf) -> bool:
    """Whether there is too little; where nothing is left after cancellation there is."""
    try:
        return not excess(at).real > 0
    except ValueError:
        return True
