"""Matrix products that give equal rows equal bits: ``docs/theory/random-projection.md``, Lemmas B, G and O, and
``docs/theory/rounding.md``, products of rows.

A linear algebra library sums in an order that depends on where a row stands and on how many stand with it, so equal
rows may differ in the last bit. Here every sum is one of integers below 2^53, exact and hence the same in any order, or
it is taken in the order of the columns. Rows may be a sparse array; their bits are those of the same rows made dense.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from ppdp.bounds.random_matrix import EXACT, at_once, row_bits, whole
from ppdp.data.frames import canonical
from ppdp.data.parallel import blocks, in_parallel
from ppdp.data.rows import Array

KEPT = 54  # bits of every entry that are used, counted from the largest entry of its row
MATRIX_SLICE = 18
HALF, SPARE = 2.0**26, 1 + 2.0**-18
LEAST_NORM = 1e-150  # of a matrix's row: what underflows in a square is far below it
LEAST = -512  # of exponents of rows: those of smaller rows are rounded to the same grid


def product(X: Any, A: Any) -> Array:
    """``X @ A.T`` of finite rows and at most 2^17 columns; the bits of a row depend on nothing but that row and A."""
    X, row_slice = _ordered(X), EXACT - MATRIX_SLICE - (X.shape[1] - 1).bit_length()
    size, scale = _exponents(X), _exponents(A)
    parts = _slices(A, scale, MATRIX_SLICE)
    total = np.zeros((X.shape[0], A.shape[0]))
    for i, rows in enumerate(_slices(X, size, row_slice), 1):
        for j, part in enumerate(parts, 1):
            total += np.ldexp(_dense(rows @ part.T), -(i * row_slice + j * MATRIX_SLICE))
    return np.asarray(np.ldexp(total, size[:, None] + scale) + 0.0)  # -0 becomes 0


def project(X: Any, A: Any, entry: float = 0.0) -> Array:
    """``X @ A.T`` for a matrix that :func:`~ppdp.bounds.random_matrix.draw` has drawn, by one product.

    Rows are rounded first, to as many bits as keep the sums exact, unless A is sparse and not crowded. The bits of a
    row depend on nothing but that row, A and ``entry``; under a sparse A those of a component depend on nothing but
    the columns that it sums, of a crowded one in rows whose entries are at most ``entry``, which is public: they meet
    it on one grid.
    """
    X, (S, unit), least = _ordered(X), whole(A), LEAST
    if issparse(S) and at_once(S):
        S, least = S.toarray(), max(math.frexp(entry)[1], LEAST) if entry else LEAST
    if issparse(S) and issparse(X):  # each sum is taken from the first column to the last; zeros change nothing
        return _dense(X @ S.T) * unit
    bits = 0 if issparse(S) else row_bits(S)
    S_t = np.ascontiguousarray(S.T) if issparse(X) else S.T
    out = np.empty((X.shape[0], S.shape[0]))

    def task(part: slice) -> None:
        rows = X[part]
        if issparse(S):
            out[part] = (S @ np.ascontiguousarray(rows.T)).T
            out[part] *= unit
            return
        exponents = np.maximum(_exponents(rows), least)
        up, down = np.ldexp(1.0, bits - exponents), unit * np.ldexp(1.0, exponents - bits)
        if issparse(rows):
            out[part] = _with(rows, np.rint(rows.data * _by_entry(rows, up))) @ S_t
        else:
            rounded = rows * up[:, None]
            np.matmul(np.rint(rounded, out=rounded), S_t, out=out[part])
        out[part] *= down[:, None]
        out[part] += 0.0  # -0 becomes 0

    for _ in in_parallel(task, blocks(*(out if issparse(X) else X).shape), 0):  # one thread for each block
        pass
    return out


def steady(X: Array, A: Array) -> Array:
    """``A @ X.T`` of dense rows; the bits of a row's column depend on nothing but that row and A.

    All are rounded to 26 bits below their norms: sums are exact. Two products more round to about twice as many. What a
    row of norm beyond 10^154 gives is no number.
    """
    X_t = np.array(X.T, dtype=np.float64, order="C")
    scale = _above(np.sqrt(squares_of(X_t)))
    X_t *= HALF / scale
    norms = np.linalg.norm(A, axis=1, keepdims=True)
    size = np.where(norms > LEAST_NORM, norms * SPARE, 1.0)
    rest = A / size * HALF
    coarse, of_rows = np.rint(rest), np.rint(X_t)
    more = 2.0 ** (28 - ((X.shape[1] - 1).bit_length() + 1) // 2)
    rest, X_t = np.rint((rest - coarse) * more), np.rint((X_t - of_rows) * more)
    found = coarse @ of_rows + (rest @ of_rows + coarse @ X_t) / more
    found *= size / HALF
    found *= scale / HALF
    return np.asarray(found)


def steadily(X: Array, A: Array, out: Array | None = None) -> Array:
    """``X @ A.T`` by :func:`steady` products, block by block; ``out`` may be ``X``."""
    out = np.empty((len(X), len(A))) if out is None else out

    def task(part: slice) -> None:
        out[part] = steady(X[part], A).T

    for _ in in_parallel(task, blocks(*X.shape), 0):  # one thread for each block
        pass
    return out


def on_grid(X: Array, bound: float) -> tuple[Array, float]:
    """Rows of norm at most ``bound`` in whole numbers of a unit, of 26 bits: sums of products of two are exact."""
    unit = float(_above(np.asarray(bound))) / HALF
    whole = X * (1 / unit)
    return np.rint(whole, out=whole), unit


def squares_of(columns: Array) -> Array:
    """Squared norms of rows, from their columns one after the other, so that no row's place shows in its bits."""
    total = np.zeros(columns.shape[1])
    for column in columns:
        total += column * column
    return total


def _above(norms: Array) -> Array:
    """Powers of 2 above these, NaN above what is infinite; those of the smallest rows are the same."""
    exponents = np.maximum(np.frexp(norms * SPARE)[1], LEAST)
    return np.where(np.isfinite(norms), np.ldexp(1.0, exponents), np.nan)


def _ordered(X: Any) -> Any:
    return canonical(X) if issparse(X) else X


def _exponents(A: Any) -> NDArray[np.int64]:
    """Of every row the smallest e with ``largest < 2^e``."""
    largest = abs(A).max(axis=1).toarray() if issparse(A) else np.abs(A).max(axis=1, initial=0.0)
    return np.asarray(np.frexp(largest.ravel())[1], dtype=np.int64)


def _slices(A: Any, exponents: NDArray[np.int64], bits: int) -> list[Any]:
    """Integers Z₁, Z₂, … of at most 2^bits such that a row is ``2^exponent Σ Zᵢ 2^(-i bits)``, up to 2^-55."""
    found, rest = [], np.ldexp(A.data if issparse(A) else A, bits - _by_entry(A, exponents))
    for _ in range(math.ceil(KEPT / bits)):
        integers = np.rint(rest)
        found.append(_with(A, integers))
        rest = np.ldexp(rest - integers, bits)
    return found


def _by_entry(A: Any, of_row: NDArray[np.int64]) -> NDArray[np.int64]:
    """A number of every row, for each of its entries that are held."""
    return np.repeat(of_row, np.diff(A.indptr)) if issparse(A) else of_row[:, None]


def _with(A: Any, entries: Array) -> Any:
    """Other entries in the same places."""
    return csr_array((entries, A.indices, A.indptr), A.shape) if issparse(A) else entries


def _dense(A: Any) -> Array:
    return np.asarray(A.toarray() if issparse(A) else A)
