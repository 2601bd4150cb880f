"""Weights of rows by category and label, and the means that are read from them once they have noise.

Theory: ``docs/theory/label-means.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.bounds.queries import counting_step
from ppdp.bounds.release import label_parts
from ppdp.core.domain import Domain
from ppdp.data.rows import Array, Rows
from ppdp.data.stream import Stream
from ppdp.data.summary import Counts, fold

NOISE_ROWS = 5.0  # rows of smoothing for the variance of the noise on one number, over the rows that there are
CLEAR = 2.0  # standard deviations of its noise that a number of rows exceeds where the mean of all is taken from it


def cells_of(X: Array, columns: Sequence[int], cells: int) -> NDArray[np.int64]:
    """The category of every row in these columns: the nearest whole number, or the last cell for anything else."""
    codes = np.rint(X[:, list(columns)])
    return np.where((codes >= 0) & (codes < cells - 1), codes, cells - 1).astype(np.int64)


def weights_by_label(rows: Rows | Stream, domain: Domain, columns: Sequence[int], cells: int) -> Array:
    """Weight of the rows by column, category and part of the label, one number behind the other; one pass.

    Weights are rounded down to a public step, so that sums are exact; the parts of a row's weight add up to it.
    """
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
