"""What floating point adds to a distance.

Theory: ``docs/theory/rounding.md``. Sums of columns are taken in 64-bit fixed point: every row is rounded
to a public grid by itself, so equal rows cancel exactly in any order and only rows that differ can
contribute a rounding step. So are second moments, of rows whose entries are rounded to a finer grid, or
to a coarser one where only few rows differ.
"""

from __future__ import annotations

import math
import sys

from ppdp.core.distance import Distance

UNIT = 2.0**-53
LEAST = math.ulp(0.0)  # the smallest positive float
BLOCK = 4096  # rows of a matrix product
EXACT = 1024  # rows of an exact sum
MOST_ROWS = 2**40
COARSE, FINER = 16, 12  # bits of the coarse part of an entry, and further ones of twice the entry less that part

# Evaluating a bound costs a few roundings of its own; every bound is moved to the safe side by this.
_EVALUATION = 1 + 1e-9


def inflate(value: float) -> float:
    """Move a computed bound to the safe side of its own rounding."""
    return value * _EVALUATION


def tiny(value: float) -> float:
    """A positive number as float64 has it, moved above what underflow took: never 0, by at most two least steps."""
    return value if value >= sys.float_info.min else max(value + 2 * LEAST if value else 0.0, LEAST)


def fixed_point_exponent(n_rows: int) -> int:
    """Exponent k such that n integers of size at most 2^k sum without overflow in int64, ``EXACT`` also in float64."""
    rows = math.ceil(math.log2(max(n_rows, 2)))
    return min(61 - rows, 53 - min(rows, math.ceil(math.log2(EXACT))))


def column_sum_error(n_rows: int, width: int, bound: float, distance: Distance) -> float:
    """Extra L2 sensitivity of ``width`` fixed-point column sums of entries at most ``bound`` large.

    Each slot that differs at all adds at most one grid step per column; turning the exact integer
    into a float64 adds a relative 2·2^-53 to each of the two results.
    """
    step = 2.0 ** (1 + math.ceil(math.log2(bound)) - fixed_point_exponent(n_rows))
    mass = min(distance.changed, n_rows)
    return math.sqrt(width) * (mass * step + 8 * UNIT * n_rows * bound)


def slice_bits(width: int) -> int:
    """Bits b of the coarse and of the fine part of an entry, so many that ``√(1.03 width) 4^-b`` is at most 2^-41."""
    return max(22, 21 + math.ceil(math.log2(1.03 * width) / 4 - 0.5))


def product_error(n_rows: int, row_norm: float) -> float:
    """Frobenius error of ``sum w x x^T`` over rows in two slices of :func:`slice_bits`."""
    return (BLOCK + 8) * UNIT * n_rows * row_norm**2


def coarse_error(n_features: int, row_norm: float, entry: float) -> float:
    """Frobenius error of ``x x^T`` of one row in a single product of :data:`COARSE` and :data:`FINER` bits."""
    rounded = math.sqrt(n_features) * row_norm * entry * 2.0 ** -(COARSE + FINER)
    return 1.01 * (rounded + n_features * entry**2 * 4.0**-COARSE)


def apply_error(n_features: int, norm: float) -> float:
    """L2 error of one row that is scaled column by column and clipped in float64."""
    return (2 * n_features + 16) * UNIT * norm


def projection_error(n_features: int, norm: float) -> float:
    """L2 error of one row that is projected by two matrix products in float64."""
    return (2 * n_features * math.sqrt(n_features) + 10 * n_features + 8) * UNIT * norm


def eigen_error(n_features: int, norm: float) -> float:
    """Backward error of a symmetric eigenproblem with a spectrum of size norm²."""
    return 10 * n_features * UNIT * norm**2
