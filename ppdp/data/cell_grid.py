"""Public cells of the values of every column, and halved ranges above them: ``docs/theory/boosting.md``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.bounds.boosting import nodes, widths
from ppdp.data.parallel import in_parallel, pieces
from ppdp.data.rows import Array

Codes = NDArray[Any]

EARLY = 2.0**-12
"""By what part of a cell its edges stand before round numbers: whole numbers of a table often stand there, and so they
are on one side however their scale, or the float32 of another tool, rounds them."""

FINE, FEW = 2**12, 8  # parts of a range among which edges are looked up, and edges of one part, at most
LEAST_UNIT = 0.02  # standard deviation of an indicator: of rare categories it hides in noise


def places_among(edges: Array, values: Array, bound: float) -> Codes:
    """How many of sorted edges are no larger than each value, and of a missing one any number.

    As :func:`numpy.searchsorted` has it, in a fifth of the time: equal parts of the range -bound to bound say where to
    begin, and what is left are comparisons with the few edges of one part.
    """

    def part(numbers: Array) -> Codes:
        within = np.fmin(np.fmax((numbers + bound) * (FINE / 2 / bound), 0.0), FINE - 1.0)
        return np.asarray(within.astype(np.intp))

    of_edges = part(edges)
    most = int(np.bincount(of_edges, minlength=1).max())
    if most > FEW:
        return np.searchsorted(edges, values, side="right")
    places, behind = np.searchsorted(of_edges, np.arange(FINE))[part(values)], np.append(edges, np.nan)
    for _ in range(most):
        places += values >= behind[places]
    return places


@dataclass(frozen=True, slots=True)
class CellGrid:
    """Which cell of its column every value lies in."""

    categories: Sequence[int]  # how many each column has, whose codes are 0, 1, ...; 0 for a column of numbers
    count: int  # equal cells of the range of a column of numbers, a power of 2
    bound: float  # public bound on the size of numbers
    edges: Array | None = field(default=None, compare=False)  # inner ones of each column of numbers, if released

    @property
    def widths(self) -> list[int]:
        """Cells of each column; the last is that of missing values."""
        return widths(self.categories, self.count)

    @property
    def starts(self) -> list[int]:
        """Where the cells of each column begin among all of them."""
        return [0, *np.cumsum(self.widths)[:-1].tolist()]

    @property
    def levels(self) -> int:
        """How often the range of a column of numbers is halved."""
        return int(math.log2(self.count))

    def of_column(self, column: int, values: Array) -> Codes:
        """Cells of the values of one column. What is no category is missing."""
        most = self.widths[column] - 1
        with np.errstate(invalid="ignore"):
            if self.categories[column]:
                codes = np.rint(values)
                codes[~((codes >= 0) & (codes < most))] = most
            elif self.edges is not None:
                codes = places_among(self.ends(column)[1:-1], values, self.bound)
                codes[np.isnan(values)] = most
            else:
                codes = np.floor((values + self.bound) * (most / (2 * self.bound)) + EARLY)
                np.clip(codes, 0, most - 1, out=codes)
                codes[np.isnan(codes)] = most
        return codes.astype(np.intp)

    def ends(self, column: int) -> Array:
        """Where cells of values, or categories as they are coded, begin, and where the last one ends."""
        if self.categories[column]:
            return np.asarray(np.arange(self.widths[column]) - 0.5, dtype=np.float64)
        if self.edges is None:
            return np.linspace(-self.bound, self.bound, self.count + 1, dtype=np.float64)
        inner = self.edges[list(self.categories[:column]).count(0)]
        return np.concatenate([[-self.bound], inner, [self.bound]])

    def places(self, column: int) -> Array:
        """Middles of the cells of a column of numbers, -1 to 1."""
        ends = self.ends(column) / self.bound
        return np.asarray((ends[1:] + ends[:-1]) / 2)

    def of_rows(self, X: Array) -> Codes:
        """Cells of all values of rows, of the same shape; columns one after the other in memory."""
        codes = np.empty(X.shape, np.min_scalar_type(max(self.widths) - 1), order="F")

        def task(piece: slice) -> None:
            for column in range(X.shape[1]):
                codes[piece, column] = self.of_column(column, X[piece, column])

        for _ in in_parallel(task, pieces(len(X)), 0):
            pass
        return codes

    def regions(self, column: int) -> tuple[Array, Codes]:
        """Thresholds of the values of a column, and the cells of what is no larger than each, and of what is larger.

        What lies in front of the first category or behind the last one is missing.
        """
        cells = np.arange(self.widths[column])
        if not self.categories[column]:
            if self.edges is not None:
                return np.nextafter(self.ends(column)[1:-1], -np.inf), cells[:-1]
            return np.asarray((cells[1:-1] - EARLY) * (2 * self.bound / self.count) - self.bound), cells[:-1]
        halves = np.where(cells % 2, cells - 0.5, np.nextafter(cells - 0.5, -np.inf))  # rounded to even numbers
        return halves, np.concatenate([cells[-1:], cells])

    def terms(self, column: int, shares: Array) -> Array:
        """Of every cell what a linear model may have: indicators of categories, or one line; scaled by shares."""
        if self.categories[column]:
            tables = np.eye(len(shares))[:-1]
        else:
            line = self.places(column)
            tables = np.append(line, line @ shares[:-1] / shares[:-1].sum())[None]
        tables = tables - (tables @ shares)[:, None]
        return np.asarray(tables / np.maximum(np.sqrt(tables**2 @ shares), LEAST_UNIT)[:, None])

    def in_nodes(self, column: int, weights: Array) -> Array:
        """Weights of cells, along the last axis, as numbers that rows of norm 1 add up to.

        Of a column of numbers these are the sums over all levels of halved ranges, each over the root of the number of
        levels, and the weight of missing values.
        """
        if self.categories[column]:
            return weights
        levels = [
            weights[..., :-1].reshape(*weights.shape[:-1], 2**level, -1).sum(axis=-1) / math.sqrt(self.levels)
            for level in range(1, self.levels + 1)
        ]
        return np.asarray(np.concatenate([*levels, weights[..., -1:]], axis=-1))

    def from_nodes(self, column: int, numbers: Array) -> Array:
        """Weights of cells from noisy numbers, by least squares."""
        if self.categories[column]:
            return numbers
        tree = _tree(self.count)
        return np.concatenate([numbers[..., :-1] @ tree.inverse.T, numbers[..., -1:]], axis=-1)

    def covariance(self, column: int) -> Array:
        """That of the weights of cells, for noise of variance 1 on every number."""
        width = self.widths[column]
        if self.categories[column]:
            return np.eye(width)
        matrix = np.eye(width)
        matrix[:-1, :-1] = _tree(self.count).covariance
        return matrix

    @property
    def nodes(self) -> list[int]:
        """How many numbers each column has."""
        return nodes(self.categories, self.count)


@dataclass(frozen=True)
class _Tree:
    """Sums over all levels of halved ranges, and least squares from them."""

    count: int

    @cached_property
    def matrix(self) -> Array:
        """Numbers of one unit in each cell, shape (nodes, cells)."""
        levels = int(math.log2(self.count))
        cells = np.arange(self.count)
        parts = [cells * 2**level // self.count == np.arange(2**level)[:, None] for level in range(1, levels + 1)]
        return np.asarray(np.concatenate(parts) / math.sqrt(levels))

    @cached_property
    def covariance(self) -> Array:
        return np.asarray(np.linalg.inv(self.matrix.T @ self.matrix), dtype=np.float64)

    @cached_property
    def inverse(self) -> Array:
        return np.asarray(self.covariance @ self.matrix.T)


@cache
def _tree(count: int) -> _Tree:
    return _Tree(count)
