"""Privacy of Gaussian sketches: rows mixed by a secret Gaussian matrix, and noise.

A sketch of rank r of rows X is ``S X + sigma N`` with S of shape (r, n) and N of shape (r, d), all entries N(0, 1),
secret and drawn for it alone: its rows are independent N(0, XᵀX + sigma² I). Theory:
``docs/theory/gaussian-sketch.md``.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ppdp.privacy.renyi import Curve
from ppdp.privacy.subsampling import Profile

Floats = NDArray[np.float64]

_UP = 1 + 1e-9  # of a profile: more than quadrature and incomplete gamma functions can lose
_CANCELLED = 1e-12  # of the larger of two terms that are subtracted
_NODES, _REACH = 160, 9.0  # beyond √m - 9 and √m + 9 a chi variable has a mass below 1e-36


def matrix_change(shift: float, floor: float, noise_scale: float) -> float:
    """Frobenius norm x of ``Σ'^(-1/2) (Σ - Σ') Σ'^(-1/2)`` at most, ``Σ = XᵀX + sigma² I`` (Theorem 1).

    Rows change by at most ``shift`` (Frobenius), the eigenvalues of ``XᵀX`` and ``X'ᵀX'`` are at least ``floor``. With
    ``A = floor + sigma²``: ``κ shift + shift²/A``, ``κ = 2 √floor / A`` where the floor is at least sigma², else
    ``√(2/A)``.
    """
    least = floor + noise_scale**2
    steep = 2 * math.sqrt(floor) / least if floor >= noise_scale**2 else math.sqrt(2 / least)
    return steep * shift + shift**2 / least


def matrix_curve(change: float, rank: int) -> Curve:
    """Rényi curve of a sketch whose covariances differ by at most ``change``, as :func:`matrix_change` has it.

    ``rank/2 (-log(1 + x) - log(1 - (alpha - 1) x) / (alpha - 1))`` for orders from 2 to ``1 + 1/x``; attained. Below 2
    the least of that at 2 and ``rank alpha x²/4 max(1 / (1 - (alpha - 1) x), 1 + x)``.
    """

    def curve(alpha: float) -> float:
        if change == 0:
            return 0.0
        found = _direction(max(alpha, 2.0), change)
        if alpha < 2 and (alpha - 1) * change < 1:
            found = min(found, alpha * change**2 / 4 * max(1 / (1 - (alpha - 1) * change), 1 + change))
        return rank * found * (1 + 1e-12)

    return curve


def rows_curve(ratio: float, sides: int, size: int) -> Curve:
    """Rényi curve of the pair of :func:`rows_profile`, the worse way round; exact."""

    def curve(alpha: float) -> float:
        up = _direction(alpha, ratio)
        if math.isinf(up):
            return math.inf
        down = _direction(alpha, -ratio / (1 + ratio))
        return size * (up + down if sides == 2 else max(up, down)) * (1 + 1e-12)

    return curve


def _direction(alpha: float, y: float) -> float:
    """Rényi divergence of N(0, 1 + y) from N(0, 1)."""
    u = alpha - 1
    if math.isinf(alpha) or u * y >= 1:
        return math.inf
    if abs(y) * max(alpha, 1.0) < 1e-4:  # the terms of first order cancel: the integral of the derivative, rounded up
        return alpha * y**2 / 4 * (1 + 2 * max(alpha, 1.0) * abs(y))
    return (-math.log1p(y) - math.log1p(-u * y) / u) / 2 * (1 + 1e-10)


def rows_profile(ratio: float, sides: int, size: int) -> Profile:
    """Profile of ``size`` numbers N(0, 1 + ratio) against N(0, 1), and as many the other way round if ``sides`` is 2.

    It dominates a sketch of which rows appear on one side (and on both, if ``sides`` is 2; Theorem 2), and is attained
    by one row, or by two that are orthogonal.
    """
    if sides == 2:
        return Profile.symmetric(lambda epsilon: _both(epsilon, ratio, size))
    return Profile(lambda epsilon: _more(epsilon, ratio, size), lambda epsilon: _less(epsilon, ratio, size))


def _more(epsilon: Floats, ratio: float, size: int) -> Floats:
    """N(0, 1 + ratio) against N(0, 1): what is longer tells."""
    epsilon = np.asarray(epsilon, float)
    cut = (epsilon + size / 2 * math.log1p(ratio)) / ratio
    upper = special.gammaincc(size / 2, cut)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        lower = np.exp(epsilon + np.log(special.gammaincc(size / 2, cut * (1 + ratio))))
    return _rounded(upper, lower)


def _less(epsilon: Floats, ratio: float, size: int) -> Floats:
    """N(0, 1) against N(0, 1 + ratio): what is shorter tells."""
    epsilon = np.asarray(epsilon, float)
    cut = np.maximum(size / 2 * math.log1p(ratio) - epsilon, 0.0) * (1 + ratio) / ratio
    upper = special.gammainc(size / 2, cut)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        lower = np.exp(epsilon + np.log(special.gammainc(size / 2, cut / (1 + ratio))))
    return _rounded(upper, lower)


def _both(epsilon: Floats, ratio: float, size: int) -> Floats:
    """Both together: the loss is ``(a X - b Y) / 2``, X and Y of law χ², ``a = ratio`` and ``b = a / (1 + a)``.

    Given Y the profile is one of incomplete gamma functions, and smooth in √Y, of which the mean is taken.
    """
    squares, weights = _chi(size)
    epsilon = np.asarray(epsilon, float)[..., None]
    lost = ratio / (1 + ratio) * squares / 2
    cut = (epsilon + lost) / ratio
    upper = special.gammaincc(size / 2, cut)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        logs = epsilon + lost - size / 2 * math.log1p(ratio) + np.log(special.gammaincc(size / 2, cut * (1 + ratio)))
        lower = np.exp(logs)
    return np.asarray(_rounded(upper, lower) @ weights)


def _rounded(upper: Floats, lower: Floats) -> Floats:
    """The difference of two terms, rounded up."""
    difference = upper - np.where(np.isnan(lower), 0.0, lower)
    return np.asarray(np.clip((difference + _CANCELLED * upper) * _UP, 0.0, 1.0))


@lru_cache(maxsize=8)
def _chi(size: int) -> tuple[Floats, Floats]:
    """Nodes, squared, and weights of a mean over a chi variable with so many degrees of freedom."""
    low, high = max(math.sqrt(size) - _REACH, 0.0), math.sqrt(size) + _REACH
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    z = low + (high - low) * (nodes + 1) / 2
    logs = (size - 1) * np.log(z) - z**2 / 2 - (size / 2 - 1) * math.log(2) - special.gammaln(size / 2)
    weights = weights * np.exp(logs)
    return z**2, weights / weights.sum()
