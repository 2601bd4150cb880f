"""Statistics that are sums over rows: exact, so that neither the order nor the partition of the rows shows in a bit.

What a row adds is rounded to a public grid, row by row, and then only whole numbers are added. So a statistic can be
taken of an array, of record batches or of rows on several machines, by one and the same :func:`fold`. Errors and what
they cost: ``docs/theory/rounding.md``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from itertools import pairwise
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ppdp.core.domain import Domain
from ppdp.core.rounding import COARSE, EXACT, FINER, fixed_point_exponent, slice_bits
from ppdp.data.parallel import blocks, in_parallel, pieces
from ppdp.data.rows import Rows
from ppdp.data.stream import Stream

Array = NDArray[np.float64]
Total = NDArray[Any]
Term = tuple[Callable[[Array], Array] | None, float]

T = TypeVar("T")

CARRY = 40  # bits of the lower of two words
CARRIED = 512  # products of at most 2^53 that the lower word takes before it is carried
BYTE = 255  # truths that a byte can count
TOGETHER = 2**16  # entries of slices that are multiplied by one call: threads wait for each other between calls


class Summary(ABC, Generic[T]):
    """A statistic that can be taken of blocks of rows with ``d`` columns, in any order, and put together."""

    d: int

    @abstractmethod
    def zero(self) -> Total:
        """The total of no rows."""

    @abstractmethod
    def add(self, total: Total, block: Rows) -> Total:
        """The total with the rows of a block; may write over the old one."""

    def merge(self, one: Total, other: Total) -> Total:
        """The total of both; whole numbers are added, so this is associative and commutes."""
        return one + other

    @abstractmethod
    def finish(self, total: Total) -> T:
        """The statistic."""


def fold(summary: Summary[T], rows: Rows | Stream | Iterable[Rows]) -> T:
    """A statistic of rows, which may come in blocks, one at a time; what it says of all rows is said at the end."""

    def total(part: Rows) -> Total:
        return summary.add(summary.zero(), part)

    if isinstance(rows, (Rows, Stream)):
        totals = rows.over(total, summary.d, summary.merge)
    else:
        totals = in_parallel(total, rows, summary.d)
    return summary.finish(reduce(summary.merge, totals, summary.zero()))


@dataclass(frozen=True, slots=True)
class ColumnSums(Summary[Array]):
    """Column sums of elementwise functions of the rows, exact up to one rounding of every entry to a public grid."""

    n: int  # public number of all rows
    d: int  # and of columns
    terms: Sequence[Term]  # summed (None: the entries), clamped to ``[-bound, bound]``, or truths; a gap counts as 0
    first: Callable[[Array], Array] | None = None  # what becomes of the entries before any term is taken of them

    def zero(self) -> Total:
        return np.zeros((len(self.terms), self.d), dtype=np.int64)

    def add(self, total: Total, block: Rows) -> Total:
        gaps = False
        for part in blocks(block.n, self.d):
            rows, weight = block.X[part], block.weight[part]
            everybody = bool((weight == 1).all())
            whole = everybody or bool(((weight == 0) | (weight == 1)).all())  # products are as exact as the entries
            factors = weight if whole else np.ones(len(rows))
            rows = rows if self.first is None else self.first(rows)
            for which, ((function, bound), grid) in enumerate(zip(self.terms, self._grids)):
                given, entries = rows if function is None else function(rows), np.empty(rows.shape)
                if everybody and given.dtype == bool:
                    total[which] += truths(given) << grid
                    continue
                if whole and given.dtype == bool:  # whole numbers already
                    np.copyto(entries, given)
                else:
                    np.clip(given, -bound, bound, out=entries)
                    if not whole:
                        entries *= weight[:, None]
                    # A float64 of this size has the grid as its last place, so that adding it rounds to the grid.
                    anchor = 1.5 * 2.0 ** (52 - grid)
                    entries += anchor
                    entries -= anchor
                if gaps:  # as there were before
                    np.copyto(entries, 0.0, where=np.isnan(entries))
                sums = _exact_sums(factors, entries)
                if np.isnan(sums).any():
                    gaps = True
                    np.copyto(entries, 0.0, where=np.isnan(entries))
                    sums = _exact_sums(factors, entries)
                total[which] += np.ldexp(sums, grid).astype(np.int64).sum(axis=0)
        return total

    def finish(self, total: Total) -> Array:
        """The sums, of shape (len(terms), d)."""
        return np.array([np.ldexp(sums.astype(np.float64), -grid) for sums, grid in zip(total, self._grids)])

    @property
    def _grids(self) -> list[int]:
        """Places behind the binary point, of every term."""
        exponent = fixed_point_exponent(self.n)
        return [exponent - math.ceil(math.log2(bound)) for _, bound in self.terms]


def truths(marks: NDArray[Any]) -> NDArray[np.int64]:
    """How often each column is true; added up as bytes, as far as one can count."""
    ones, d = np.ascontiguousarray(marks).view(np.uint8), marks.shape[1]
    whole = len(ones) - len(ones) % BYTE
    counts = ones[:whole].reshape(BYTE, -1).sum(axis=0, dtype=np.uint8).reshape(whole // BYTE, d)
    return np.asarray(counts.sum(axis=0, dtype=np.int64) + ones[whole:].sum(axis=0, dtype=np.int64))


def _exact_sums(factors: Array, entries: Array) -> Array:
    """Sums of at most ``EXACT`` rows each, which are at most 2^53 grid steps and so exact."""
    n, d = entries.shape
    whole = n // EXACT * EXACT
    if not whole:
        return np.asarray((factors @ entries)[None])
    first = factors[:whole].reshape(-1, 1, EXACT) @ entries[:whole].reshape(-1, EXACT, d)
    return np.concatenate([first[:, 0], (factors[whole:] @ entries[whole:])[None]])


@dataclass(frozen=True, slots=True)
class SecondMoment(Summary[Array]):
    """``Σ w x xᵀ`` over the rows without gaps, entries clamped to ``[-bound, bound]`` and rounded to a public grid.

    An entry is the sum of two whole numbers of steps, one coarse and one fine, whose products are summed exactly in
    float64 over as many rows as leave room for it, and from there on in two words of 64 bits.
    """

    d: int
    bound: float

    def zero(self) -> Total:
        return np.zeros((2, 3, self.d, self.d), dtype=np.int64)

    def add(self, total: Total, block: Rows) -> Total:
        rows = min(self._rows, max(320, 16_000 // self.d))  # the fastest products
        several = min(CARRIED, max(1, TOGETHER // (rows * self.d)))
        roots = None if (block.weight == 1).all() else np.sqrt(block.weight)
        # To allocate room for every slice would take as long as a product.
        room = np.empty((2, min(several * rows, block.n), self.d))
        whole, waiting = block.n - block.n % rows, 0
        for start, stop in pairwise([*range(0, whole, several * rows), whole, block.n]):
            if start == stop:
                continue
            shape = (-1, min(rows, stop - start), self.d)
            X, own = block.X[start:stop].reshape(shape), None
            if roots is not None:
                own = roots[start:stop].reshape(*X.shape[:2], 1)
            self._add_products(total[1], X, own, room[:, : stop - start].reshape(2, *X.shape))
            waiting += several
            if waiting > CARRIED - several:
                _carry(total)
                waiting = 0
        return _carry(total)

    def merge(self, one: Total, other: Total) -> Total:
        return _carry(one + other)

    def finish(self, total: Total) -> Array:
        bits = slice_bits(self.d)
        coarse, mixed, fine = _float(total)
        steps = coarse + np.ldexp(mixed + mixed.T, -bits - 1) + np.ldexp(fine, -2 * (bits + 1))
        return np.ldexp(steps, 2 * (self._exponent - bits))

    @property
    def _exponent(self) -> int:
        return math.ceil(math.log2(self.bound * (1 + 1e-9)))  # a row may be longer than its norm in the last place

    @property
    def _rows(self) -> int:
        """How many rows have exact sums of products."""
        return int(2 ** (53 - 2 * slice_bits(self.d)))

    def _add_products(self, total: Total, X: Array, roots: Array | None, room: Array) -> None:
        products = self._products(X, roots, room)
        if np.isnan(products[0]).any():
            gaps = np.isnan(X).any(axis=2, keepdims=True)
            products = self._products(np.where(gaps, 0.0, X), roots, room)
        for which, product in enumerate(products):
            total[which] += product.astype(np.int64).sum(axis=0)

    def _products(self, X: Array, roots: Array | None, room: Array) -> tuple[Array, ...]:
        """Of coarse steps, and of fine ones for what is left, each of ``slice_bits`` bits; several slices at once."""
        bits, (coarse, fine) = slice_bits(self.d), room
        np.multiply(X, 2.0 ** (bits - self._exponent), out=fine)
        if roots is not None:
            fine *= roots
        np.clip(fine, -(2.0**bits), 2.0**bits, out=fine)
        np.rint(fine, out=coarse)
        fine -= coarse
        fine *= 2.0 ** (bits + 1)
        np.rint(fine, out=fine)
        of_coarse, of_fine = coarse.transpose(0, 2, 1), fine.transpose(0, 2, 1)
        return of_coarse @ coarse, of_coarse @ fine, of_fine @ fine


@dataclass(frozen=True, slots=True)
class CoarseMoment(SecondMoment):
    """The same by one product instead of three; a row is off by at most ``coarse_error``.

    With ``x = c + f``, c of coarse steps, ``c (2x - c)ᵀ`` and its transpose add up to twice ``x xᵀ - f fᵀ``.
    """

    def zero(self) -> Total:
        return np.zeros((2, 1, self.d, self.d), dtype=np.int64)

    def finish(self, total: Total) -> Array:
        (product,) = _float(total)
        return np.ldexp(product + product.T, 2 * (self._exponent - COARSE) - FINER - 1)

    @property
    def _rows(self) -> int:
        return int(2 ** (53 - 2 * COARSE - FINER))

    def _products(self, X: Array, roots: Array | None, room: Array) -> tuple[Array, ...]:
        """Of whole numbers c, and of 2x - c in whole numbers of fine steps."""
        coarse, rest = room
        np.multiply(X, 2.0 ** (COARSE - self._exponent), out=rest)
        if roots is not None:
            rest *= roots
        np.clip(rest, -(2.0**COARSE), 2.0**COARSE, out=rest)
        np.rint(rest, out=coarse)
        rest += rest
        rest -= coarse
        anchor = 1.5 * 2.0 ** (52 - FINER)  # its last place is a fine step, so that adding it rounds to fine steps
        rest += anchor
        rest -= anchor
        return (coarse.transpose(0, 2, 1) @ rest * 2.0**FINER,)


def _float(total: Total) -> Array:
    """Both words together."""
    return np.ldexp(total[0].astype(np.float64), CARRY) + total[1]


def _carry(total: Total) -> Total:
    """The same two words, of which the lower has its one form."""
    over = total[1] >> CARRY
    total[0] += over
    total[1] -= over << CARRY
    return total


@dataclass(frozen=True, slots=True)
class Counts(Summary[NDArray[np.int64]]):
    """Sums of whole numbers, which a function gives for every block: rows in each of so many cells."""

    size: int
    of: Callable[[Rows], Any]

    d = 0  # no product is taken, so that each block has a thread

    def zero(self) -> Total:
        return np.zeros(self.size, dtype=np.int64)

    def add(self, total: Total, block: Rows) -> Total:
        return total + np.asarray(self.of(block)).astype(np.int64)

    def finish(self, total: Total) -> NDArray[np.int64]:
        return total


def column_sums(rows: Rows | Stream, bound: float) -> Array:
    """Weighted column sums, as :class:`ColumnSums` takes them; the result does not depend on the order of rows."""
    return joint_sums(rows, [(None, bound)])[0]


def joint_sums(rows: Rows | Stream, terms: Sequence[Term], first: Callable[[Array], Array] | None = None) -> Array:
    """Column sums of several elementwise functions of the same rows, in one pass over them; shape (len(terms), d)."""
    return fold(ColumnSums(rows.n, rows.d, terms, first), rows)


def second_moment(rows: Rows | Stream, bound: float, *, coarse: bool = False) -> Array:
    """``Σ w x xᵀ`` over the rows without gaps, whose entries are at most ``bound``; see :class:`CoarseMoment`."""
    return fold((CoarseMoment if coarse else SecondMoment)(rows.d, bound), rows)


@cache
def _triangle(width: int) -> tuple[tuple[NDArray[np.intp], ...], Array]:
    """Places in an upper triangle, and factors with which they have the Frobenius norm of a symmetric matrix."""
    places = np.triu_indices(width)
    return places, np.where(places[0] == places[1], 1.0, math.sqrt(2))


def upper_triangle(matrix: Array) -> Array:
    """The upper triangle of a symmetric matrix, isometric to it."""
    places, factors = _triangle(len(matrix))
    return np.asarray(matrix[places] * factors)


def symmetric(triangle: Array, width: int) -> Array:
    """The matrix of an upper triangle."""
    (places, factors), matrix = _triangle(width), np.zeros((width, width))
    matrix[places] = triangle / factors
    return np.asarray(matrix + np.triu(matrix, 1).T)


def incomplete(rows: Rows | Stream) -> int:
    """How many rows with weight have a gap."""
    return int(fold(Counts(1, lambda block: block.incomplete.sum()), rows)[0])


def extremes(X: Array) -> tuple[float, float]:
    """Smallest and largest entry; not a number if some entry is none."""
    found = np.array(list(in_parallel(lambda piece: (X[piece].min(), X[piece].max()), pieces(len(X)), X.shape[1])))
    return float(found[:, 0].min()), float(found[:, 1].max())


@dataclass(frozen=True, slots=True)
class Extent:
    """What is read off rows that are fitted alone."""

    n: int
    d: int
    largest: float  # absolute observed entry; not a number if none is observed
    gaps: bool

    @classmethod
    def of(cls, X: Array) -> Extent:
        """Of an array, which may have gaps and infinite entries."""
        low, high = extremes(X)
        gaps = math.isnan(low)
        if gaps:
            low, high = np.fmin.reduce(X, axis=None), np.fmax.reduce(X, axis=None)
        return cls(len(X), X.shape[1], float(max(high, -low)), gaps)

    def plus(self, other: Extent) -> Extent:
        """Of both."""
        largest = float(np.fmax(self.largest, other.largest))
        return Extent(self.n + other.n, self.d, largest, self.gaps or other.gaps)

    @property
    def domain(self) -> Domain:
        """The same as facts; never used by a certificate."""
        entry = min(self.largest or 1.0, 1e90) if math.isfinite(self.largest) else 1.0
        gaps, norm = None if self.gaps else 0, entry * math.sqrt(self.d)
        return Domain(n_rows=self.n, n_features=self.d, row_norm=norm, entry_bound=entry, max_missing=gaps)
