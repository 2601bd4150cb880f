"""Norms of rows, products of rows with matrices, and what is known of rows by their moments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from ppdp.core.rounding import BLOCK, EXACT
from ppdp.data.parallel import PIECE, blocks, in_parallel, threads_for

Array = NDArray[np.float64]

WIDE = 2**13  # entries of a line with which an operation is fast: NumPy copies shorter ones
TINY, HUGE = 1e-250, 1e250  # squares between are neither lost nor infinite


@dataclass(frozen=True, slots=True)
class Moments:
    """Mean and second moment of rows over their public number."""

    mean: Array  # of every column, shape (d,)
    squares: Array  # mean square of every column, shape (d,)
    matrix: Array | None = None  # the whole second-moment matrix, if it is known, shape (d, d)
    spread: Array | None = None  # standard deviations, where more is known of them than follows from mean and squares

    @classmethod
    def of_matrix(cls, mean: Array, matrix: Array) -> Moments:
        """Moments whose squares are the diagonal of the matrix."""
        return cls(mean, np.diag(matrix).copy(), matrix)

    def affine(self, a: Array, b: Array) -> Moments:
        """Moments of ``a x + b``; without the matrix ``a`` must be diagonal, which a vector stands for."""
        mean = a * self.mean if a.ndim == 1 else a @ self.mean
        if self.matrix is None:
            slope = a if a.ndim == 1 else np.diag(a)
            return Moments(mean + b, slope**2 * self.squares + 2 * mean * b + b**2)
        cross = np.outer(mean, b)
        matrix = a[:, None] * self.matrix * a if a.ndim == 1 else a @ self.matrix @ a.T
        return Moments.of_matrix(mean + b, matrix + cross + cross.T + np.outer(b, b))


def by_column(operation: np.ufunc, X: Array, values: Any, out: Array) -> None:
    """``operation(X, values)`` with a number for every column, of several short rows at once: NumPy goes row by row."""
    several = WIDE // max(1, X.shape[-1])
    if X.ndim == 2 and np.ndim(values) and several > 1 and X.flags.c_contiguous and out.flags.c_contiguous:
        whole = len(X) - len(X) % several
        shape = whole // several, several * X.shape[1]
        operation(X[:whole].reshape(shape), np.tile(values, several), out=out[:whole].reshape(shape))
        X, out = X[whole:], out[whole:]
    operation(X, values, out=out)


def multiplied(X: Array, *matrices: Array, out: Array | None = None) -> Array:
    """Product of the rows with matrices, one after the other, block by block; ``out`` may be ``X``."""
    out = np.empty((X.shape[0], matrices[-1].shape[1])) if out is None else out
    rows = max(1000, min(BLOCK, 50_000 // X.shape[1]))  # the fastest products

    def product(first: int) -> None:
        for start in range(first, min(first + PIECE, X.shape[0]), rows):
            *before, last = matrices
            block = X[start : min(start + rows, first + PIECE)]
            for matrix in before:
                block = block @ matrix
            if np.may_share_memory(block, out):
                out[start : start + len(block)] = block @ last
            else:
                np.matmul(block, last, out=out[start : start + len(block)])

    for _ in in_parallel(product, range(0, X.shape[0], PIECE), X.shape[1]):
        pass
    return out


def gram(X: Array) -> Array:
    """``X.T @ X`` in float64: twice to four times as fast as exact sums, but last bits know the order of the rows."""
    pieces = (X[start : start + PIECE] for start in range(0, len(X), PIECE))
    return np.asarray(sum(in_parallel(lambda piece: piece.T @ piece, pieces, X.shape[1])))


def top_eigenvectors(moment: Array, k: int) -> tuple[Array, Array]:
    """Eigenvalues in descending order and the leading ``k`` eigenvectors as rows."""
    with threads_for(len(moment)):
        values, vectors = np.linalg.eigh(moment)
    return values[::-1], vectors[:, ::-1][:, :k].T


def row_norms(X: Array) -> Array:
    """Norm of every row over its observed entries, infinite only beyond float64; equal rows may differ in last bits."""
    norms = np.empty(X.shape[0])
    for part in blocks(*X.shape):
        rows = X[part]
        with np.errstate(all="ignore"):
            squares = np.einsum("ij,ij->i", rows, rows)
            norms[part] = np.sqrt(squares)
            if (rest := (~((squares > TINY) & (squares < HUGE))).nonzero()[0]).size:
                size, share = _polar(rows[rest])
                norms[part][rest] = size * share
    return norms


def clip_norms(X: Any, bound: float | None, out: Array | None = None) -> Any:
    """Project rows on the ball of radius ``bound``, in place by ``out=X``; gaps stay. X itself if all are inside."""
    if bound is None:
        return X
    inner = bound * (1 - (X.shape[1] + 4) * 2.0**-53)
    surely = bound**2 * (1 - 1e-6) if bound > 1e-100 else 0.0  # squares of anything smaller underflow
    if issparse(X):
        return _clipped_sparse(X, bound, inner, surely)
    for part in blocks(*X.shape):
        rows = X[part]
        with np.errstate(all="ignore"):
            squares = np.einsum("ij,ij->i", rows, rows)
        # A fast look that may depend on where a row stands, so only what is surely inside is let through.
        near = (~(squares < surely)).nonzero()[0]
        if not near.size:
            continue
        size, share = _polar(rows[near])
        with np.errstate(over="ignore"):
            over = share > bound / size
        if over.any():
            if out is None:
                X = out = X.copy()
            far = near[over]
            X[part][far] = (X[part][far] / size[over, None]) * (inner / share[over])[:, None]
    return X


def _clipped_sparse(X: Any, bound: float, inner: float, surely: float) -> Any:
    """The same of a sparse array, to the last bit, for zeros change no norm."""
    counts = np.diff(X.indptr)
    with np.errstate(all="ignore"):
        squares = np.asarray((X * X).sum(axis=1)).ravel()
    factors, sizes, inside = np.ones(X.shape[0]), np.ones(X.shape[0]), True
    near = np.flatnonzero(~(squares < surely) & (counts > 0))
    for start in range(0, len(near), EXACT):
        some = near[start : start + EXACT]
        held = np.arange(counts[some].max())
        there = held < counts[some, None]
        packed = np.where(there, X.data[np.where(there, X.indptr[some, None] + held, 0)], 0.0)
        size, share = _polar(packed)
        with np.errstate(over="ignore"):
            over = share > bound / size
        sizes[some[over]], factors[some[over]] = size[over], inner / share[over]
        inside &= not over.any()
    if inside:
        return X
    return csr_array((X.data / np.repeat(sizes, counts) * np.repeat(factors, counts), X.indices, X.indptr), X.shape)


def _polar(X: Array) -> tuple[Array, Array]:
    """Largest observed entry of every row, and its norm over that: entry by entry, wherever it stands; no overflow."""
    size = np.fmax.reduce(np.abs(X), axis=1, initial=0.0)
    size = np.where(size > 0, size, 1.0)
    squares = X / size[:, None]
    squares *= squares
    np.copyto(squares, 0.0, where=np.isnan(squares))
    return size, np.sqrt(np.add.accumulate(squares, axis=1, out=squares)[:, -1])
