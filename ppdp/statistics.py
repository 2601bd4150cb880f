"""Sums over private rows: exact fixed-point column sums and blocked second moments.

Both are sums over rows, so they can be merged over blocks. Errors and what they cost:
``docs/theory/rounding.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppdp.bounds.rounding import BLOCK, fixed_point_exponent

__all__ = ["Moments", "clip_norms", "column_sums", "row_norms", "second_moment", "top_eigenvectors"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Moments:
    """Mean and second moment of rows over their public number.

    Attributes
    ----------
    mean, squares : ndarray of shape (d,)
        Mean and mean square of every column.
    matrix : ndarray of shape (d, d), optional
        The whole second-moment matrix, if it is known.
    """

    mean: Array
    squares: Array
    matrix: Array | None = None

    @classmethod
    def of_matrix(cls, mean: Array, matrix: Array) -> Moments:
        """Moments whose squares are the diagonal of the matrix."""
        return cls(mean, np.diag(matrix).copy(), matrix)

    def affine(self, a: Array, b: Array) -> Moments:
        """Moments of ``a x + b``; without the matrix ``a`` must be diagonal."""
        mean = a @ self.mean
        if self.matrix is None:
            slope = np.diag(a)
            return Moments(mean + b, slope**2 * self.squares + 2 * mean * b + b**2)
        cross = np.outer(mean, b)
        return Moments.of_matrix(mean + b, a @ self.matrix @ a.T + cross + cross.T + np.outer(b, b))


def column_sums(values: Array, weight: Array, bound: float) -> Array:
    """Weighted column sums, exact up to one rounding of every entry to a public grid.

    Entries are clamped to ``[-bound, bound]`` first, and a gap counts as 0. The result does not depend on
    the order of rows.
    """
    n = values.shape[0]
    scale = math.ceil(math.log2(bound))
    grid = fixed_point_exponent(n) - scale
    total = np.zeros(values.shape[1], dtype=np.int64)
    for start in range(0, n, BLOCK * 16):
        part = slice(start, start + BLOCK * 16)
        entries = np.nan_to_num(np.clip(values[part], -bound, bound), nan=0.0) * weight[part, None]
        total += np.rint(np.ldexp(entries, grid)).astype(np.int64).sum(axis=0)
    return np.ldexp(total.astype(np.float64), -grid)


def second_moment(X: Array, weight: Array) -> Array:
    """``Σ w x xᵀ`` in blocks of float64, block sums added with compensation."""
    d = X.shape[1]
    total, lost = np.zeros((d, d)), np.zeros((d, d))
    for start in range(0, X.shape[0], BLOCK):
        block = X[start : start + BLOCK]
        part = (block * weight[start : start + BLOCK, None]).T @ block - lost
        grown = total + part
        lost = (grown - total) - part
        total = grown
    return (total + total.T) / 2


def top_eigenvectors(moment: Array, k: int) -> tuple[Array, Array]:
    """Eigenvalues in descending order and the leading ``k`` eigenvectors as rows."""
    values, vectors = np.linalg.eigh(moment)
    return values[::-1], vectors[:, ::-1][:, :k].T


def row_norms(X: Array) -> Array:
    """Euclidean norm of every row over its observed entries; infinite only if it exceeds float64."""
    size, share = _polar(X)
    with np.errstate(over="ignore"):
        return np.asarray(size * share)


def clip_norms(X: Array, bound: float | None) -> Array:
    """Project every row on the ball of radius ``bound``; gaps stay gaps."""
    if bound is None:
        return X
    inner = bound * (1 - (X.shape[1] + 4) * 2.0**-53)
    size, share = _polar(X)
    with np.errstate(over="ignore"):
        over = share > bound / size
    if not over.any():
        return X
    X = X.copy()
    X[over] = (X[over] / size[over, None]) * (inner / share[over])[:, None]
    return X


def _polar(X: Array) -> tuple[Array, Array]:
    """Largest observed entry of every row, and the norm of the row divided by it.

    Column after column, so that a row's result does not depend on where it stands; no overflow.
    """
    size = np.nanmax(np.abs(X), axis=1, initial=0.0)
    size = np.where(size > 0, size, 1.0)
    squares = np.zeros(X.shape[0])
    for column in X.T:
        part = column / size
        squares += np.where(np.isnan(part), 0.0, part * part)
    return size, np.sqrt(squares)
