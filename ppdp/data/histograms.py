"""Weights of rows in the cells of public grids, exact whatever the order of rows; and what is read off them with noise.

Ranges that nobody declared are found in two noisy histograms (``docs/theory/released-ranges.md``): the first goes over
public cells that cover all sizes, the second over equal cells between the ends that the first gave. Mean labels follow
from weights by category and label (``docs/theory/label-means.md``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ppdp.bounds.queries import by_column, counting_step
from ppdp.bounds.release import FINER, RANGE_CELLS, label_parts
from ppdp.core.domain import Domain
from ppdp.data.rows import Array, Rows
from ppdp.data.stream import Stream
from ppdp.data.summary import Counts, fold
from ppdp.data.together import Weight

Cells = Callable[[Array], NDArray[np.integer[Any]]]
FEWEST, FEW_ROWS, MORE = 2001, 5000, 6  # cells for a quantile, for so many rows; as many times as much at most
KNEE = 100  # cells are so many times finer at 0 than at the bound, and one more
TILT = 1 / 8  # how much more a missed rank counts on the shorter side of a quantile, next to the ends

LEAST, MOST = -30, 40  # powers of two: values beyond the larger are clipped, those within the smaller are as good as 0
LARGEST = 2.0**MOST
FALSE = 2e-3  # probability that an empty run of cells is taken for a full one, over all columns
RUNS = (1, 2, 4)  # cells in a row that are looked at together, for values that are few in each
COARSE = FINER // 4  # the first histogram was coarse if so few cells of the second hold nearly all rows,
NEARLY = 0.9  # that is, this share of them
UNKNOWN = (-1.0, 1.0)  # the range of a column in which nothing was found

_POWERS = [math.ldexp(root, power) for power in range(LEAST, MOST) for root in (1.0, math.sqrt(2))] + [LARGEST]
EDGES: Array = np.array([*(-power for power in reversed(_POWERS)), *_POWERS])
assert len(EDGES) + 1 == RANGE_CELLS

NOISE_ROWS = 5.0  # rows of smoothing for the variance of the noise on one number, over the rows that there are
CLEAR = 2.0  # standard deviations of its noise that a number of rows exceeds where the mean of all is taken from it


def weighed(rows: Rows | Stream, sizes: Sequence[int], cells: Cells) -> Array:
    """Weight in the cells of several grids, by every row's cell in each; weights are rounded down to a public step."""
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
    return fold(Weight(rows.n), rows)


def between(columns: Sequence[int], edges: Sequence[Any], side: Literal["left", "right"] = "right") -> Cells:
    """Between which edges of their columns values lie; gaps are in no cell."""

    def cells(X: Array) -> NDArray[np.integer[Any]]:
        found = [np.searchsorted(marks, X[:, column], side=side) for column, marks in zip(columns, edges)]
        gaps = np.isnan(X[:, list(columns)])
        return np.where(gaps, [len(marks) + 1 for marks in edges], np.column_stack(found))

    return cells


def histograms(rows: Rows | Stream, columns: Sequence[int], sizes: Sequence[int], edges: Sequence[float]) -> Array:
    """Weight in the cells of each column; an inner edge is of the cell above, outer cells take what lies beyond."""
    inner = [marks[1:-1] for marks in by_column(sizes, edges)]
    return weighed(rows, [len(marks) + 1 for marks in inner], between(columns, inner))


def weights_of_values(
    rows: Rows | Stream, columns: Sequence[int], sizes: Sequence[int], values: Sequence[float]
) -> Array:
    """Weight of the rows that hold each of the values of their columns, one column behind the other."""
    marks = [np.array(own) for own in by_column(sizes, values)]

    def cells(X: Array) -> NDArray[np.integer[Any]]:
        found = []
        for column, own in zip(columns, marks):
            at = np.minimum(np.searchsorted(own, X[:, column]), len(own) - 1)
            found.append(np.where(own[at] == X[:, column], at, len(own)))
        return np.column_stack(found)

    return weighed(rows, sizes, cells)


def modes(answer: Array, columns: Sequence[int], sizes: Sequence[int], values: Sequence[float]) -> dict[int, float]:
    """The value of the largest noisy weight of every column, of equal ones the first."""
    weights = by_column(sizes, answer.tolist())
    return {
        column: own[int(np.argmax(weight))] for column, weight, own in zip(columns, weights, by_column(sizes, values))
    }


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


def coarse(rows: Rows | Stream, columns: Sequence[int]) -> Array:
    """The first histogram of every column."""
    return weighed(rows, [RANGE_CELLS] * len(columns), between(columns, [EDGES] * len(columns)))


def fine(rows: Rows | Stream, columns: Sequence[int], ranges: Array) -> Array:
    """The second histogram of every column; values outside of its first range are in no cell."""
    low, high = ranges.T

    def cells(X: Array) -> NDArray[np.int64]:
        with np.errstate(all="ignore"):
            share = (X[:, list(columns)] - low) / (high - low)
            inside = (share >= 0) & (share <= 1)
            return np.where(inside, np.minimum(share * FINER, FINER - 1), FINER).astype(np.int64)

    return weighed(rows, [FINER] * len(columns), cells)


def first_ranges(answer: Array, noise_scale: float) -> Array:
    """Ranges of all columns by the first histogram, shape (columns, 2)."""
    ranges, empty = _full_ranges(answer, noise_scale)
    return np.where(empty[:, None], UNKNOWN, ranges)


def without_range(answer: Array, count: int, noise_scale: float) -> NDArray[np.bool_]:
    """In which of so many columns the first histogram shows no range, or values that are as good as 0."""
    ranges, empty = _full_ranges(answer[: count * RANGE_CELLS], noise_scale)
    return empty | (np.abs(ranges) <= math.ldexp(1.0, LEAST)).all(axis=1)


def _full_ranges(answer: Array, noise_scale: float) -> tuple[Array, NDArray[np.bool_]]:
    """Where full runs of cells begin and end in every column, and whether there are none between the last edges."""
    counts = answer.reshape(-1, RANGE_CELLS)
    first, last, found = ends(counts, threshold(len(counts)) * noise_scale)
    edges = np.concatenate([EDGES[:1], EDGES, EDGES[-1:]])
    ranges = np.column_stack([edges[first], edges[last + 1]])
    return ranges, ~found | (ranges[:, 0] >= ranges[:, 1])


def second_ranges(answer: Array, ranges: Array, noise_scale: float) -> Array:
    """Where nearly all rows are in few of the second's cells, these and half as many on either side; else the first."""
    counts = answer.reshape(-1, FINER)
    sums = np.cumsum(np.pad(counts, ((0, 0), (1, 0))), axis=1)
    least = np.maximum(NEARLY * counts.sum(axis=1), threshold(len(counts)) * noise_scale * math.sqrt(FINER))
    ends, side = np.tile([0, FINER], (len(counts), 1)), (ranges[:, 1] - ranges[:, 0]) / FINER
    for run in range(COARSE, 0, -1):
        within = sums[:, run:] - sums[:, :-run]
        first, more = within.argmax(axis=1), max(1, run // 2)
        found = np.column_stack([first - more, first + run + more])
        ends = np.where((within.max(axis=1) >= least)[:, None], found, ends)
    return np.clip(ranges[:, :1] + side[:, None] * ends, ranges[:, :1], ranges[:, 1:])


def released_ranges(answer: Array, count: int, noise_scale: float) -> Array:
    """Ranges of so many columns by both histograms, as they were released one behind the other."""
    split = count * RANGE_CELLS
    return second_ranges(answer[split:], first_ranges(answer[:split], noise_scale), noise_scale)


def threshold(count: int, cells: int = RANGE_CELLS, false: float = FALSE, runs: Sequence[int] = RUNS) -> float:
    """From how many standard deviations of its noise on a run of cells counts as full."""
    return float(-ndtri(false / (2 * len(runs) * cells * count)))


def ends(
    counts: Array, least: float, runs: Sequence[int] = RUNS
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.bool_]]:
    """First and last cell that a column's rows reach, by where the first full run begins, else all; and whether any.

    ``least`` is the weight from which on a single cell is full.
    """
    first, found = _begins(counts, least, runs)
    last, _ = _begins(counts[:, ::-1], least, runs)
    return first, counts.shape[1] - 1 - last, found


def _begins(counts: Array, least: float, runs: Sequence[int]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    sums = np.cumsum(np.pad(counts, ((0, 0), (1, 0))), axis=1)
    begins = np.full(counts.shape, -1)
    for run in reversed(runs):
        full = sums[:, run:] - sums[:, :-run] > least * math.sqrt(run)
        begins[:, run - 1 :] = np.where(full, np.arange(full.shape[1]), begins[:, run - 1 :])
    found = begins >= 0
    first = np.take_along_axis(begins, found.argmax(axis=1)[:, None], axis=1)[:, 0]
    return np.maximum(first, 0), np.asarray(found.any(axis=1))


def cells_of(X: Array, columns: Sequence[int], cells: int) -> NDArray[np.int64]:
    """The category of every row in these columns: the nearest whole number, or the last cell for anything else."""
    codes = np.rint(X[:, list(columns)])
    return np.where((codes >= 0) & (codes < cells - 1), codes, cells - 1).astype(np.int64)


def weights_by_label(rows: Rows | Stream, domain: Domain, columns: Sequence[int], cells: int) -> Array:
    """Weight of rows by column, category and part of the label, rounded down to a public step; parts add up to it."""
    step, parts, classified = counting_step(rows.n), label_parts(domain), domain.classes is not None
    number = len(columns) * cells * parts

    def steps(block: Rows) -> NDArray[Any]:
        found = (cells_of(block.X, columns, cells) + np.arange(len(columns)) * cells) * parts
        whole, y = np.floor(block.weight / step), np.zeros(block.n) if block.y is None else block.y
        if classified:
            return _summed(found + np.clip(y, 0, parts - 1).astype(np.int64)[:, None], whole, number)
        upper = np.floor(whole * np.clip((1 + y) / 2, 0.0, 1.0))
        return _summed(found, whole - upper, number) + _summed(found + 1, upper, number)

    return np.asarray(fold(Counts(number, steps), rows) * step, dtype=np.float64)


def weights_by_class(rows: Rows | Stream, scores: Callable[[Array], Array], edges: Sequence[float]) -> Array:
    """Weight of the rows by the cell of their score between edges, and by which of two classes they have; one pass."""
    step, number = counting_step(rows.n), 2 * (len(edges) + 1)

    def steps(block: Rows) -> NDArray[Any]:
        assert block.y is not None
        places = 2 * np.searchsorted(edges, scores(block.X), side="right") + (block.y > 0)
        return np.bincount(places, np.floor(block.weight / step), number)

    return np.asarray(fold(Counts(number, steps), rows) * step, dtype=np.float64)


def _summed(places: NDArray[np.int64], weights: Array, number: int) -> NDArray[Any]:
    """Whole numbers of steps, added up at one place for every column."""
    return np.bincount(places.ravel(), np.repeat(weights, places.shape[1]), number)


def smoothed_shares(table: Array, noise_scale: float, smoothing: float) -> Array:
    """The share of each part of the label among the rows of every category, pulled towards that among all rows.

    ``table`` has weights by column, category and part, with noise. ``(weight + m share of all) / (rows + m)`` with
    ``m = smoothing (1 + 5 noise² / rows)``, so that what is hardly more than noise counts for little.
    """
    rows = np.maximum(table.sum(axis=2), 0.0)
    clear = table[rows > CLEAR * noise_scale * math.sqrt(table.shape[2])].sum(axis=0)
    parts = table.shape[2]
    overall = np.clip(clear / clear.sum(), 0.0, 1.0) if clear.sum() > 0 else np.full(parts, 1 / parts)
    some = np.where(rows > 0, rows, 1.0)
    weight = rows**2 / (some**2 + smoothing * (some + NOISE_ROWS * noise_scale**2))
    own = table / some[:, :, None]
    return np.clip(overall + weight[:, :, None] * (own - overall), 0.0, 1.0)
