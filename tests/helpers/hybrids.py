"""Rényi curves that only proofs need: any two curves by the weak triangle inequality, and curves known at some orders.

Whoever runs a pipeline composes pairs that dominate exactly, which is never worse (``docs/theory/renyi.md``, 6 and 7).
"""

import math
from functools import lru_cache

import numpy as np

from ppdp.core.checks import number
from ppdp.exceptions import InvalidParameter

_SLACK = 1 + 1e-12


def above_one(alpha):
    if not alpha > 1:
        raise InvalidParameter(f"a Rényi order must be above 1, got {alpha!r}.")
    return alpha


def interpolated(values):
    """Curve through bounds known at some orders, such as the integers; infinite above the largest.

    ``(a - 1) D_a`` is convex in a and 0 at a = 1, so its chords are above it.
    """
    orders = [1.0, *sorted(above_one(order) for order in values)]
    heights = [0.0, *((order - 1) * number("a bound", values[order], least=0) for order in orders[1:])]

    def curve(alpha):
        if above_one(alpha) > orders[-1]:
            return math.inf
        return float(np.interp(alpha, orders, heights)) / (alpha - 1) * _SLACK

    return curve


def weak_triangle(moves, replacement):
    """Curve for a pair that is two steps apart: rows that move, and rows that are replaced.

    The least bound found is returned (Theorem 2 of "Provable privacy with non-private pre-processing", with the minimum
    in place of the maximum); both curves must hold on *all* datasets of the mechanism's domain.
    """

    def curve(alpha):
        above_one(alpha)
        return min(hybrid(alpha, moves, replacement), hybrid(alpha, replacement, moves)) * _SLACK

    return lru_cache(maxsize=4096)(curve)


def hybrid(alpha, first, second):
    """Least bound over c for the pair (first step, then second step)."""

    def at(log_excess):
        excess = math.exp(log_excess)  # c - 1; the orders are written in it, so that nothing cancels
        c = 1 + excess
        return (alpha * c - 1) / (c * (alpha - 1)) * first(alpha * c) + second(alpha + (alpha - 1) / excess)

    least = min(first(alpha) + second(math.inf), alpha / (alpha - 1) * first(math.inf) + second(alpha))  # c = 1, inf
    low, high = -16.0, 16.0
    for _ in range(4):  # every c is valid, so the search need not converge
        grid = np.linspace(low, high, 33)
        found = [at(float(u)) for u in grid]
        best = int(np.argmin(found))
        least = min(least, found[best])
        low, high = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, 32)])
    return least
