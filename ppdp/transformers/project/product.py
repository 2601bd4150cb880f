"""Matrix products that give equal rows equal bits: ``docs/theory/random-projection.md``, Lemma B.

A linear algebra library sums in an order that depends on where a row stands and on how many stand with it, so equal
rows may differ in the last bit. Here both factors are cut into slices of so few bits that every sum is one of
integers below 2^53: exact, hence the same in any order.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

__all__ = ["product"]

Array = NDArray[np.float64]

EXACT = 53  # integers up to 2^53 are float64 numbers
KEPT = 54  # bits of every entry that are used, counted from the largest entry of its row
MATRIX_SLICE = 18


def product(X: Array, A: Any) -> Array:
    """``X @ A.T``; the bits of a row depend on nothing but that row and A.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Finite rows.
    A : ndarray or sparse array of shape (k, d)
        The matrix; d at most 2^17. The entries of a sparse one should be of one size.
    """
    row_slice = EXACT - MATRIX_SLICE - (X.shape[1] - 1).bit_length()
    size = _exponent(np.abs(X).max(axis=1, initial=0.0))[:, None]
    scale, parts = _sliced_matrix(A)
    total = np.zeros((X.shape[0], A.shape[0]))
    for i, rows in enumerate(_slices(X, size, row_slice), 1):
        for j, part in enumerate(parts, 1):
            total += np.ldexp(rows @ part.T, -(i * row_slice + j * MATRIX_SLICE))
    return np.asarray(np.ldexp(total, size + scale) + 0.0)  # -0 becomes 0


def _sliced_matrix(A: Any) -> tuple[Any, list[Any]]:
    """Exponents by row of A, one for all if it is sparse, and its slices."""
    if not issparse(A):
        scale = _exponent(np.abs(A).max(axis=1, initial=0.0))
        return scale, _slices(A, scale[:, None], MATRIX_SLICE)
    A = csr_array(A)
    scale = _exponent(np.abs(A.data).max(initial=0.0))
    return scale, [csr_array((part, A.indices, A.indptr), A.shape) for part in _slices(A.data, scale, MATRIX_SLICE)]


def _exponent(largest: Any) -> Any:
    """The smallest e with ``largest < 2^e``."""
    return np.frexp(largest)[1]


def _slices(values: Array, exponent: Any, bits: int) -> list[Array]:
    """Integers z₁, z₂, … of at most 2^bits such that ``values`` is ``2^exponent Σ zᵢ 2^(-i bits)``, up to 2^-55."""
    found, rest = [], np.ldexp(values, bits - exponent)
    for _ in range(math.ceil(KEPT / bits)):
        whole = np.rint(rest)
        found.append(whole)
        rest = np.ldexp(rest - whole, bits)
    return found
