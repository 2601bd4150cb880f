"""Weights of rows in the cells of public grids; exact, whatever the order of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ppdp.bounds.exponential import CELLS
from ppdp.bounds.queries import by_column, counting_step
from ppdp.data.rows import Array, Rows
from ppdp.data.stream import Stream
from ppdp.data.summary import Counts, fold

Cells = Callable[[Array], NDArray[np.integer[Any]]]


def weighed(rows: Rows | Stream, sizes: Sequence[int], cells: Cells) -> Array:
    """Weight in the cells of several grids, one behind the other; one pass, weights are rounded down to a public step.

    ``cells`` gives for every row its cell in each grid, shape (n, len(sizes)); the number of a cell that a grid does
    not have stands for none.
    """
    step, number = counting_step(rows.n), sum(sizes) + len(sizes)
    starts = np.cumsum([0, *(size + 1 for size in sizes[:-1])])
    kept = np.delete(np.arange(number), np.cumsum([size + 1 for size in sizes]) - 1)

    def steps(block: Rows) -> NDArray[Any]:
        found = np.minimum(cells(block.X), sizes) + starts
        weights = np.repeat(np.floor(block.weight / step), len(sizes))
        return np.bincount(found.ravel(), weights, number)

    return np.asarray(fold(Counts(number, steps), rows)[kept] * step, dtype=np.float64)


def present(rows: Rows | Stream) -> Array:
    """Weight of all rows, an array of one."""
    return weighed(rows, [1], lambda X: np.zeros((len(X), 1), dtype=np.int64))


def between(columns: Sequence[int], edges: Sequence[Any], side: Literal["left", "right"] = "right") -> Cells:
    """Between which edges of their columns values lie; gaps are in no cell."""

    def cells(X: Array) -> NDArray[np.integer[Any]]:
        found = [np.searchsorted(marks, X[:, column], side=side) for column, marks in zip(columns, edges)]
        gaps = np.isnan(X[:, list(columns)])
        return np.where(gaps, [len(marks) + 1 for marks in edges], np.column_stack(found))

    return cells


def histograms(rows: Rows | Stream, columns: Sequence[int], sizes: Sequence[int], edges: Sequence[float]) -> Array:
    """Weight in the cells of each column, one behind the other.

    An inner edge belongs to the cell above it; the outer cells take what lies beyond.
    """
    inner = [marks[1:-1] for marks in by_column(sizes, edges)]
    return weighed(rows, [len(marks) + 1 for marks in inner], between(columns, inner))


def cell_scores(rows: Rows | Stream, quantiles: Sequence[float], bound: float) -> Array:
    """Scores of equal cells between ``-bound`` and ``bound`` for every quantile of every column, in this order.

    Minus the weight by which the ranks of values in a cell miss the quantile's.
    """
    columns = range(rows.d)
    inner = np.linspace(-bound, bound, CELLS + 1)[1:-1]
    weights = weighed(rows, [CELLS] * rows.d, between(columns, [inner] * rows.d)).reshape(rows.d, CELLS)
    up_to = np.cumsum(weights, axis=1)
    aims = np.multiply.outer(quantiles, up_to[:, -1:])
    return -np.maximum(np.maximum(up_to - weights - aims, aims - up_to), 0.0).ravel()


def middles(bound: float) -> Array:
    """The middle of each of these cells."""
    edges = np.linspace(-bound, bound, CELLS + 1)
    return (edges[1:] + edges[:-1]) / 2


def rank_scores(rows: Rows | Stream, columns: Sequence[int], q: float, candidates: Sequence[Array]) -> list[Array]:
    """For every column minus the weight by which the rank of each candidate misses ``q`` times that of all its values.

    The rank of a value that rows have is an interval, from the weight below it to the weight up to it.
    """
    sides = between(columns, candidates, "right"), between(columns, candidates, "left")
    sizes = 2 * [len(marks) + 1 for marks in candidates]
    weights = weighed(rows, sizes, lambda X: np.hstack([side(X) for side in sides]))
    sums = [np.cumsum(column) for column in np.split(weights, np.cumsum(sizes)[:-1])]
    return [
        -np.maximum(np.maximum(below[:-1] - q * below[-1], q * below[-1] - up_to[:-1]), 0.0)
        for below, up_to in zip(sums[: len(candidates)], sums[len(candidates) :])
    ]
