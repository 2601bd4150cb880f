"""Sums over private rows: exact fixed-point column sums and blocked second moments.

Both are sums over rows, so they can be merged over blocks. Errors and what they cost:
``docs/theory/rounding.md``.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ppdp.core.rounding import BLOCK, EXACT, fixed_point_exponent

__all__ = [
    "Moments",
    "blocks",
    "clip_norms",
    "column_sums",
    "extremes",
    "in_parallel",
    "joint_sums",
    "multiplied",
    "row_norms",
    "second_moment",
    "threads_for",
    "top_eigenvectors",
]

Array = NDArray[np.float64]

T = TypeVar("T")

CACHED = 2**17  # entries
NARROW = 128  # columns
SPAN = 8  # blocks that a thread takes at a time
TINY, HUGE = 1e-250, 1e250  # squares between are neither lost nor infinite


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
    return joint_sums(values, weight, [(None, bound)])[0]


def joint_sums(values: Array, weight: Array, terms: Sequence[tuple[Callable[[Array], Array] | None, float]]) -> Array:
    """Column sums of several elementwise functions of the same rows, in one pass over them.

    Parameters
    ----------
    values : ndarray of shape (n, d)
        Rows.
    weight : ndarray of shape (n,)
        In [0, 1].
    terms : sequence of (function or None, bound)
        What is summed, block by block (None: the entries themselves), with the bound of :func:`column_sums`.

    Returns
    -------
    ndarray of shape (len(terms), d)
    """
    n, d = values.shape
    exponent = fixed_point_exponent(n)
    grids = [exponent - math.ceil(math.log2(bound)) for _, bound in terms]
    total = np.zeros((len(terms), d), dtype=np.int64)
    ones = np.ones(EXACT)
    for part in blocks(n, d):
        rows, w = values[part], weight[part, None]
        whole = bool((w == 1).all())
        for which, (function, bound) in enumerate(terms):
            entries = np.clip(rows if function is None else function(rows), -bound, bound)
            if not whole:
                entries *= w
            # A float64 of this size has the grid as its last place, so that adding it rounds to the grid.
            anchor = 1.5 * 2.0 ** (52 - grids[which])
            entries += anchor
            entries -= anchor
            sums = ones[: len(rows)] @ entries  # whole numbers of grid steps, at most 2^53 of them: exact
            if np.isnan(sums).any():
                np.copyto(entries, 0.0, where=np.isnan(entries))
                sums = ones[: len(rows)] @ entries
            total[which] += np.ldexp(sums, grids[which]).astype(np.int64)
    return np.stack([np.ldexp(sums.astype(np.float64), -grid) for sums, grid in zip(total, grids)])


def blocks(n: int, d: int) -> Iterator[slice]:
    """Slices of at most ``EXACT`` rows that fit a processor's cache."""
    rows = min(EXACT, max(64, CACHED // max(d, 1)))
    return (slice(start, start + rows) for start in range(0, n, rows))


def second_moment(X: Array, weight: Array) -> Array:
    """``Σ w x xᵀ`` in blocks of float64, block sums added with compensation."""
    d = X.shape[1]
    total, lost = np.zeros((d, d)), np.zeros((d, d))

    def product(start: int) -> Array:
        block, w = X[start : start + BLOCK], weight[start : start + BLOCK, None]
        with np.errstate(all="ignore"):
            return (block * w if (w != 1).any() else block).T @ block

    with np.errstate(all="ignore"):
        for part in in_parallel(product, range(0, X.shape[0], BLOCK), d):
            part = part - lost
            grown = total + part
            lost = (grown - total) - part
            total = grown
    return (total + total.T) / 2


def multiplied(X: Array, *matrices: Array, out: Array | None = None) -> Array:
    """Product of the rows with matrices, one after the other, block by block; ``out`` may be ``X``."""
    out = np.empty((X.shape[0], matrices[-1].shape[1])) if out is None else out

    def product(start: int) -> None:
        *first, last = matrices
        block = X[start : start + BLOCK]
        for matrix in first:
            block = block @ matrix
        if np.may_share_memory(block, out):
            out[start : start + BLOCK] = block @ last
        else:
            np.matmul(block, last, out=out[start : start + BLOCK])

    for _ in in_parallel(product, range(0, X.shape[0], BLOCK), X.shape[1]):
        pass
    return out


def extremes(X: Array) -> tuple[float, float]:
    """Smallest and largest entry; not a number if some entry is none."""

    def ends(start: int) -> tuple[float, float]:
        block = X[start : start + BLOCK]
        return block.min(), block.max()

    low, high = np.array(list(in_parallel(ends, range(0, X.shape[0], BLOCK), 1))).T
    return float(low.min()), float(high.max())


def in_parallel(task: Callable[[int], T], starts: range, d: int) -> Iterator[T]:
    """Results of a task for every block, in order.

    Products of matrices with few columns are faster with one thread each, several at a time: the threads of one such
    product would wait for each other.
    """
    if len(starts) <= 4 or d > NARROW:
        yield from map(task, starts)
        return
    from concurrent.futures import ThreadPoolExecutor

    def several(first: int) -> list[T]:
        return [task(start) for start in starts[first : first + SPAN]]

    with threads_for(d), ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        for results in pool.map(several, range(0, len(starts), SPAN)):
            yield from results


def threads_for(d: int) -> AbstractContextManager[Any]:
    """Linear algebra of d columns: few of them get no threads of their own.

    Threads that waited for each other over a small matrix go on spinning, and the next pass over all rows is slower.
    """
    return _libraries().limit(limits=1, user_api="blas") if d <= NARROW else nullcontext()


@functools.cache
def _libraries() -> Any:
    """The libraries of linear algebra that are loaded: looking for them takes longer than a few products."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def top_eigenvectors(moment: Array, k: int) -> tuple[Array, Array]:
    """Eigenvalues in descending order and the leading ``k`` eigenvectors as rows."""
    with threads_for(len(moment)):
        values, vectors = np.linalg.eigh(moment)
    return values[::-1], vectors[:, ::-1][:, :k].T


def row_norms(X: Array) -> Array:
    """Euclidean norm of every row over its observed entries; infinite only if it exceeds float64.

    Equal rows may have norms that differ in their last bits.
    """
    norms = np.empty(X.shape[0])
    for part in blocks(*X.shape):
        rows = X[part]
        with np.errstate(all="ignore"):
            squares = np.einsum("ij,ij->i", rows, rows)
            norms[part] = np.sqrt(squares)
            if (rest := np.flatnonzero(~((squares > TINY) & (squares < HUGE)))).size:
                size, share = _polar(rows[rest])
                norms[part][rest] = size * share
    return norms


def clip_norms(X: Array, bound: float | None, out: Array | None = None) -> Array:
    """Project every row on the ball of radius ``bound``; gaps stay gaps.

    Without ``out`` the input is returned itself if every row lies inside; with ``out=X`` it is changed in place.
    """
    if bound is None:
        return X
    inner = bound * (1 - (X.shape[1] + 4) * 2.0**-53)
    surely = bound**2 * (1 - 1e-6) if bound > 1e-100 else 0.0  # squares of anything smaller underflow
    for part in blocks(*X.shape):
        rows = X[part]
        with np.errstate(all="ignore"):
            squares = np.einsum("ij,ij->i", rows, rows)
        # A fast look that may depend on where a row stands, so only what is surely inside is let through.
        near = np.flatnonzero(~(squares < surely))
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


def _polar(X: Array) -> tuple[Array, Array]:
    """Largest observed entry of every row, and the norm of the row divided by it.

    Entry after entry, never in pairs, so that a row's result does not depend on where it stands; no overflow.
    """
    size = np.fmax.reduce(np.abs(X), axis=1, initial=0.0)
    size = np.where(size > 0, size, 1.0)
    squares = X / size[:, None]
    squares *= squares
    np.copyto(squares, 0.0, where=np.isnan(squares))
    return size, np.sqrt(np.add.accumulate(squares, axis=1, out=squares)[:, -1])
