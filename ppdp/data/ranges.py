"""Ranges that nobody declared, found in two noisy histograms: ``docs/theory/released-ranges.md``.

The first goes over public cells that cover all sizes, the second over equal cells between the ends that the first gave.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ppdp.bounds.release import FINER, RANGE_CELLS
from ppdp.data.histograms import between, weighed
from ppdp.data.rows import Array, Rows
from ppdp.data.stream import Stream

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
    counts = answer.reshape(-1, RANGE_CELLS)
    first, last, found = _ends(counts, noise_scale)
    edges = np.concatenate([EDGES[:1], EDGES, EDGES[-1:]])
    ranges = np.column_stack([edges[first], edges[last + 1]])
    empty = ~found | (ranges[:, 0] >= ranges[:, 1])  # all of it beyond the last edge
    return np.where(empty[:, None], UNKNOWN, ranges)


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


def threshold(count: int) -> float:
    """From how many standard deviations of its noise on a run of cells counts as full."""
    return float(-ndtri(FALSE / (2 * len(RUNS) * RANGE_CELLS * count)))


def _ends(counts: Array, noise_scale: float) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.bool_]]:
    """First and last cell that the rows of each column reach, and whether any were found; else all cells.

    The first is where the first run that is full begins, the shortest of those that end at the same cell.
    """
    first, found = _begins(counts, noise_scale)
    last, _ = _begins(counts[:, ::-1], noise_scale)
    return first, counts.shape[1] - 1 - last, found


def _begins(counts: Array, noise_scale: float) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    sums = np.cumsum(np.pad(counts, ((0, 0), (1, 0))), axis=1)
    begins = np.full(counts.shape, -1)
    for run in reversed(RUNS):
        full = sums[:, run:] - sums[:, :-run] > threshold(len(counts)) * noise_scale * math.sqrt(run)
        begins[:, run - 1 :] = np.where(full, np.arange(full.shape[1]), begins[:, run - 1 :])
    found = begins >= 0
    first = np.take_along_axis(begins, found.argmax(axis=1)[:, None], axis=1)[:, 0]
    return np.maximum(first, 0), np.asarray(found.any(axis=1))
