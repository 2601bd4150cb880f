"""In which part of their public bounds the rows of columns lie, from noisy shares of them, and what is measured there:
``docs/theory/releases.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.bounds.queries import counting_step
from ppdp.bounds.release import BOX_WEIGHT, OCTAVES, TAIL_CELLS, TAIL_WEIGHT
from ppdp.bounds.statistics import n_columns
from ppdp.core.domain import Domain, largest_entry
from ppdp.data.histograms import ends, threshold
from ppdp.data.rows import Array, Rows
from ppdp.data.statistics import Moments, by_column
from ppdp.data.stream import Stream
from ppdp.data.summary import Counts, fold, joint_sums

FALSE = 0.02  # probability that an empty run of cells is taken for a full one, over all columns
WIDER = 5.0  # width of a part over that of the cells which surely hold rows
QUARTER, FIFTH = 1 / 4, 1 / 5  # floor of a deviation over half of a part, and over the width of cells that hold rows
ERRORS, SURE = 6.0, 1.0  # standard errors of a variance: its floor, and what is taken off it
TOGETHER = 2**18  # entries that are looked up at once
_STEPS = 2**OCTAVES

_halves = 0.5 ** np.arange(1, OCTAVES + 1)
EDGES: Array = np.unique([-1.0, *-_halves, *(_halves - 1), *_halves, *(1 - _halves), 1.0])
"""Of cells between -1 and 1: ever finer towards both ends and the middle."""
_CELLS = np.searchsorted(EDGES[1:-1], (np.arange(-2, 2 * _STEPS) + 0.5) / _STEPS - 1).astype(np.uint8)  # of equal steps
_CELLS[0] = TAIL_CELLS  # of what is missing; before the first step there is room for its rounding


def tail_shares(rows: Rows | Stream, columns: Sequence[int] | None, bound: float) -> Array:
    """Share of the rows in every cell of ``bound`` times :data:`EDGES`, for every column, times ``TAIL_WEIGHT``.

    A missing value is in no cell.
    """
    count = rows.d if columns is None else len(columns)
    step, starts = counting_step(rows.n), np.arange(count) * (TAIL_CELLS + 1)

    def counted(block: Rows) -> NDArray[Any]:
        X = block.X if columns is None else block.X[:, list(columns)]
        weights, total = np.floor(block.weight / step), np.zeros(count * (TAIL_CELLS + 1))
        alike = bool((weights == weights[:1]).all())  # then whole numbers are added, which takes half the time
        size = max(1, TOGETHER // count)
        for start in range(0, block.n, size):
            part = slice(start, start + size)
            steps = X[part] * (_STEPS / bound)
            steps += _STEPS + 2
            places = np.empty(steps.shape, dtype=np.intp)
            with np.errstate(invalid="ignore"):  # of what is missing, which becomes 0 or the smallest integer
                steps_of = steps.astype(np.int32)
            by_column(np.add, _CELLS.take(steps_of, mode="clip"), starts, places)
            if alike:
                total += weights[0] * np.bincount(places.ravel(), minlength=len(total))
            else:
                total += np.bincount(places.ravel(), np.repeat(weights[part], count), len(total))
        return total.reshape(count, -1)[:, :TAIL_CELLS].ravel()

    return np.asarray(fold(Counts(count * TAIL_CELLS, counted), rows) * (step * TAIL_WEIGHT / rows.n), dtype=np.float64)


def _of_columns(columns: list[int], rows: Rows) -> Rows:
    return rows.with_X(np.ascontiguousarray(rows.X[:, columns]))


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """Of every column the part in which noisy shares say that rows lie, wider than what surely holds some.

    All of the column where noise shows no more than one cell: rows may be anywhere.
    """

    middle: Array
    half: Array  # of its width
    floor: Array  # of a standard deviation, by cells that hold rows
    observed: Array  # share of the rows that have a value there; 1 where none may lack it
    unsure: Array  # standard error of that share

    @classmethod
    def of(cls, answer: Array, domain: Domain, release: Any) -> Parts:
        """From the shares with which the answer to a release begins."""
        count, bound = n_columns(domain, release.parameters), largest_entry(domain)
        least = threshold(count, TAIL_CELLS, FALSE) * release.noise_scale
        shares = answer[: count * TAIL_CELLS].reshape(count, TAIL_CELLS)
        first, last, found = ends(shares, least)
        low, high = EDGES[first], EDGES[last + 1]
        seen, known = high - low, found & (first < last)
        more = (WIDER - 1) / 2 * seen
        low = np.where(known, np.maximum(low - more, -1.0), -1.0)
        high = np.where(known, np.minimum(high + more, 1.0), 1.0)
        floor = np.where(known, FIFTH * seen, QUARTER * (high - low) / 2)
        middle, observed, unsure = (low + high) / 2, np.ones(count), np.zeros(count)
        if domain.missing_rows:  # they count as the middle: one amid the rows makes little of how many there are
            middle = np.where(found, (EDGES[first] + EDGES[last + 1]) / 2, 0.0)
            within = (EDGES[1:] > low[:, None]) & (EDGES[:-1] < high[:, None])
            unsure = np.sqrt(within.sum(axis=1)) * release.noise_scale / TAIL_WEIGHT
            fewest = np.maximum(1 - domain.missing_rows / domain.n, 2 * unsure)
            observed = np.clip((shares * within).sum(axis=1) / TAIL_WEIGHT, np.minimum(fewest, 1.0), 1.0)
        half = np.maximum(high - middle, middle - low)
        return cls(bound * middle, bound * half, bound * floor, observed, unsure)

    def measured(self, rows: Rows | Stream, columns: Sequence[int] | None) -> Array:
        """Means and, times ``BOX_WEIGHT``, mean squares of these columns in units of their parts; 0 where none is."""
        rows = rows if columns is None else rows.each(partial(_of_columns, list(columns)), len(columns))
        means, squares = joint_sums(rows, [(None, 1.0), (np.square, 1.0)], self._mapped)
        return np.concatenate([means, BOX_WEIGHT * squares]) / rows.n

    def _mapped(self, X: Array) -> Array:
        """Entries in units of their parts; what lies beyond is clipped where it is summed."""
        out = np.empty(X.shape)
        by_column(np.subtract, X, self.middle, out)
        by_column(np.multiply, out, 1 / self.half, out)
        return out

    def in_units(self, answer: Array) -> Array:
        """Means and mean squares of what is observed, in units of parts, in a release that ends with them."""
        mean, squares = np.split(answer[-2 * len(self.half) :], 2)
        return np.array([mean, squares / BOX_WEIGHT]) / self.observed

    def errors(self, answer: Array, noise_scale: float) -> Array:
        """Standard errors of these."""
        noise = np.array([[noise_scale], [noise_scale / BOX_WEIGHT]])
        return np.asarray(np.hypot(noise, self.in_units(answer) * self.unsure) / self.observed)

    def moments(self, answer: Array, noise_scale: float) -> tuple[Array, Array, Array]:
        """Means, mean squares and deviations of columns, what is missing filled with the mean."""
        (mean, squares), error = self.in_units(answer), noise_scale / BOX_WEIGHT
        variance = self.half**2 * (self.observed * (squares - mean**2) - SURE * error)
        floor = np.minimum(self.floor * np.sqrt(self.observed), self.half * math.sqrt(ERRORS * error))
        filled = self.observed * squares + (1 - self.observed) * mean**2
        made = Moments(mean, filled).affine(self.half, self.middle)
        return made.mean, made.squares, np.sqrt(np.maximum(variance, floor**2))
