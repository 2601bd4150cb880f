"""Order statistics of private columns, over the observed entries of the rows that are present."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ppdp.core.rounding import UNIT
from ppdp.data.rows import Rows
from ppdp.data.summary import column_sums

Array = NDArray[np.float64]
Ranks = NDArray[np.int64]


def _sorted(rows: Rows) -> tuple[Array, Ranks]:
    """Columns in ascending order, NaN last, and the number of values in each."""
    columns = np.sort(np.where(rows.weight[:, None] > 0, rows.X, np.nan), axis=0)
    return columns, (~np.isnan(columns)).sum(axis=0)


def _rank(quantile: float, counts: Ranks) -> Ranks:
    """Rank of a quantile among so many values, from 1 (0 of none), which one more raises by 0 or 1; 0.1 of 30 is 3."""
    return np.ceil(np.round(quantile * counts, 6)).astype(np.int64)


def column_quantiles(rows: Rows, quantiles: tuple[float, ...]) -> Array:
    """Quantiles of every column, the ``⌈q N⌉``-th of its N values, 0 without any; shape (number of quantiles, d)."""
    columns, counts = _sorted(rows)
    if not len(columns):
        return np.zeros((len(quantiles), columns.shape[1]))
    ranks = np.stack([_rank(q, counts) for q in quantiles])
    return np.where(counts > 0, np.take_along_axis(columns, np.maximum(ranks - 1, 0), axis=0), 0.0)


def trimmed_means(rows: Rows, min_observed: int, trimmed: int, bound: float) -> Array:
    """Mean of every column without its ``trimmed`` smallest and largest values.

    A column with fewer than ``min_observed`` values is filled up with zeros first.
    """
    values = np.where(rows.weight[:, None] > 0, rows.X, np.nan)
    missing = np.isnan(values)
    counts = rows.n - missing.sum(axis=0)
    values[missing & (missing.cumsum(axis=0) <= min_observed - counts)] = 0.0
    sizes = np.maximum(counts, min_observed)
    ranks = np.arange(rows.n)[:, None]
    kept = np.where((ranks >= trimmed) & (ranks < sizes - trimmed), np.sort(values, axis=0), 0.0)
    return np.asarray(column_sums(Rows.of(kept), bound) / (sizes - 2 * trimmed))


@dataclass(frozen=True, slots=True)
class RankGapMargin:
    """Margin of "the values up to one step's ranks away from the quantiles are near them".

    After t further steps a column can be so far changed that a window of ``(t + 1) unit`` ranks, which starts at or
    before a quantile and is no longer than that away, is what was one step wide. The margin is the smallest t at which
    the widest windows of all columns are too wide; that is the exact number of rows for one column of raw data
    (``docs/theory/order-statistics.md``).
    """

    gap: float  # bound on the L2 norm of the gaps of all columns
    quantiles: tuple[float, ...]  # where; the worst of them counts in each column
    entry: float  # every value is at most this large; so are the ends of a window that leaves the column
    moves: float  # how far one step moves values besides (L2 over the columns)

    def __call__(self, rows: Rows, unit: float) -> float:
        """Measure the margin; ``unit`` is the number of ranks that one step shifts a value by."""
        step = int(unit)
        if step == 0:
            return float(rows.n)  # then no value changes its rank, and the bounds need no gap
        columns, counts = _sorted(rows)
        edge = np.full((1, columns.shape[1]), self.entry)
        columns = np.concatenate([-edge, np.where(np.isnan(columns), edge, columns), edge])
        error = (4 * columns.shape[1] + 32) * UNIT * self.entry * np.sqrt(columns.shape[1])

        def fails(t: int) -> bool:
            widest = _widest_windows(columns, counts, self.quantiles, (t + 1) * step)
            # twice the rounding for every step, so that one step of the data still moves the margin by at most 1
            return bool(np.linalg.norm(widest) + 2 * t * self.moves + (2 * t + 1) * error > self.gap)

        last = rows.n // step + 1  # by then a window holds the whole column, whatever the data
        low = high = 0
        while high <= last and not fails(high):
            low, high = high + 1, 2 * high + 1
        high = min(high, last + 1)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if fails(middle) else (middle + 1, high)
        return float(min(low, rows.n)) if low <= last else float(rows.n)


def _widest_windows(columns: Array, counts: Ranks, quantiles: tuple[float, ...], length: int) -> Array:
    """For every column the widest window of ``length`` ranks that starts at most so many before a quantile.

    ``columns`` are sorted, with the least and the largest value that there can be at ranks 0 and n + 1.
    """
    offsets = np.arange(-length, 1)[:, None]
    widest = np.zeros(columns.shape[1])
    for q in quantiles:
        starts = _rank(q, counts) + offsets
        ends = np.take_along_axis(columns, np.minimum(starts + length, len(columns) - 1), axis=0)
        begins = np.take_along_axis(columns, np.maximum(starts, 0), axis=0)
        widest = np.maximum(widest, (ends - begins).max(axis=0))
    return widest
