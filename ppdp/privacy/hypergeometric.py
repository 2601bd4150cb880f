"""The logarithm of Kummer's function: of the moments of a random share of a vector's length.

Theory: ``docs/theory/fresh-projections.md``, 3.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy import special

from ppdp.core.checks import number

_FEW = 64  # terms
_REST, _FALL = 1e-16, 50.0  # of a series, as a share; of an integrand, as a logarithm
_LARGE = 2.0**100  # z over b: what is missing to z is nothing beside it
_UP = 1 + 1e-11  # more than either can be too small by


@lru_cache(maxsize=2**14)
def log1F1(a: float, b: float, z: float) -> float:
    """``log 1F1(a; b; z) = log E exp(z B)`` for B ~ Beta(a, b - a), ``0 < a < b`` and ``z >= 0``; rounded up.

    The series, all of whose terms are positive, until its tail is at most that of a geometric series; where its largest
    term comes late, Euler's integral by the trapezoidal rule. Never above z; relative error below 1e-10.
    :class:`InvalidParameter` if a number is outside this range.
    """
    number("a", a, above=0)
    number("b", b, above=a)
    number("z", z, least=0)
    if z == 0 or z > _LARGE * b:
        return z
    half = (z - b - 1) / 2
    largest = half + math.sqrt(max(half * half + a * z - b, 0.0))  # where two terms that follow each other are equal
    found = (
        _integral(a, b, z)
        if largest > max(1000, b / 25)
        else _series(a, b, z, _FEW + int(1.5 * max(largest, 0.0)))  # below 0 where terms fall from the first
    )
    return min(found * _UP, z)


def _series(a: float, b: float, z: float, size: int) -> float:
    """``log(1 + sum of (a)_n z^n / ((b)_n n!))``, in blocks of terms, the first of this size."""
    top, total, log_term, start = 0.0, 0.0, 0.0, 0  # the sum but its first term is total exp(top)
    while True:
        n = np.arange(start, start + size, dtype=float)
        ratios = z / (n + 1) * ((a + n) / (b + n))
        logs = log_term + np.cumsum(np.log(ratios))
        higher = max(top, float(logs.max()))
        total = total * math.exp(top - higher) + float(np.exp(logs - higher).sum())
        top, log_term, start = higher, float(logs[-1]), start + size
        ratio = z / (start + 1) * max(1.0, (a + start) / (start + 1)) * (start + 1) / (b + start)  # of all that follow
        rest = math.exp(log_term - top) * ratio / (1 - ratio) if ratio < 1 else math.inf
        size *= 2
        if rest <= _REST * total:
            total += rest
            return math.log1p(total) if top == 0 else top + math.log(math.exp(-top) + total)


def _integral(a: float, b: float, z: float) -> float:
    """``z + log E exp(-z (1 - B))``, over ``t = log(B / (1 - B))``: analytic, with one peak, that decays at both ends.

    The trapezoidal rule then errs by ``exp(-2 pi² / (step² curvature))``, as a share, or less.
    """
    root = math.sqrt((z - b) ** 2 + 4 * a * z)
    x = ((z - b) + root) / (2 * z) if z > b else 2 * a / ((b - z) + root)
    y = 2 * (b - a) / ((z + b) + math.sqrt((z - b) ** 2 + 4 * a * z))
    peak = math.log(x / y)
    step = min(0.2, 0.6 / math.sqrt(x * y * (b + z * (x - y))))

    def height(t: np.ndarray) -> np.ndarray:
        away = np.logaddexp(0.0, t)  # -log(1 - B)
        return np.asarray(-z * special.expit(-t) + a * (t - away) - (b - a) * away)

    highest = float(height(np.asarray(peak)))
    low = high = 8
    while float(height(np.asarray(peak - low * step))) > highest - _FALL:
        low += low // 2
    while float(height(np.asarray(peak + high * step))) > highest - _FALL:
        high += high // 2
    values = height(peak + step * np.arange(-low, high + 1)) - highest
    return z + highest + math.log(step * float(np.exp(values).sum())) - float(special.betaln(a, b - a))
