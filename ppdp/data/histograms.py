"""Weights of rows in the cells of public grids; exact, whatever the order of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ppdp.bounds.queries import by_column, counting_step
from ppdp.data.rows import Array, Rows
from ppdp.data.stream import Stream
from ppdp.data.summary import Counts, fold

Cells = Callable[[Array], NDArray[np.integer[Any]]]
FEWEST, FEW_ROWS, MORE = 2001, 5000, 6  # cells for a quantile, for so many rows; as many times as much at most
KNEE = 100  # cells are so many times finer at 0 than at the bound, and one more
TILT = 1 / 8  # how much more a missed rank counts on the shorter side of a quantile, next to the ends


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


def quantile_edges(bound: float, n_rows: int) -> Array:
    """Edges of the cells between ``-bound`` and ``bound`` of which one is chosen for a quantile; all is public.

    They are finer near 0, in the middle of a cell, since bounds are often far beyond most values; and more for more
    rows, beside which the noise is less.
    """
    cells = 1 + 2 * round((FEWEST - 1) / 2 * math.sqrt(min(max(n_rows / FEW_ROWS, 1), MORE**2)))
    place = np.arange(-cells, cells + 1, 2) / cells
    return np.sign(place) * np.expm1(np.abs(place) * math.log1p(KNEE)) * (bound / KNEE)


def cell_scores(rows: Rows | Stream, quantiles: Sequence[float], edges: Array) -> Array:
    """Scores of the cells between ``edges`` for every quantile of every column, in this order: (quantiles * d, cells).

    Minus the weight by which the ranks of values in a cell miss the quantile's: times ``1 + TILT (2q - 1)`` above it,
    ``1 - TILT (2q - 1)`` below. Together that is 2, so the range of what one row changes is as without.
    """
    size = len(edges) - 1
    found = weighed(rows, [size] * rows.d, between(range(rows.d), [edges[1:-1]] * rows.d))
    weights = found.reshape(rows.d, size)
    up_to = np.cumsum(weights, axis=1)
    q = np.asarray(quantiles)[:, None, None]
    tilt, aims = TILT * (2 * q - 1), q * up_to[:, -1:]
    missed = np.maximum((1 + tilt) * (up_to - weights - aims), (1 - tilt) * (aims - up_to))
    return np.asarray(-np.maximum(missed, 0.0).reshape(-1, size))


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
