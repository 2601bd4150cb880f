"""In which part of their public bounds the rows of columns lie, from noisy shares of them, and what is measured there:
``docs/theory/releases.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.bounds.queries import counting_step
from ppdp.bounds.release import BOX_WEIGHT, OCTAVES, TAIL_CELLS, TAIL_WEIGHT, TURN_CELLS
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
WEIGHT = TAIL_WEIGHT / math.sqrt(2)  # of both kinds of shares
MOST, RUNS = 0.6, (1, 4, 16, 64)  # share of the rows that one cell or two hold, and runs of cells within a turn
TOGETHER = 2**18  # entries that are looked up at once
_STEPS = 2**OCTAVES

_halves = 0.5 ** np.arange(1, OCTAVES + 1)
EDGES: Array = np.unique([-1.0, *-_halves, *(_halves - 1), *_halves, *(1 - _halves), 1.0])
"""Of cells between -1 and 1: ever finer towards both ends and the middle."""

TURN = 1 / 4  # width of the widest of them, of which each has one or a part, cut into cells of equal width
_JOINT = np.union1d(EDGES, np.linspace(-1.0, 1.0, round(2 / TURN) * TURN_CELLS + 1))
_CELLS = len(_JOINT) - 1
_MIDDLES = (np.arange(-2, 2 * _STEPS) + 0.5) / _STEPS - 1  # of equal steps; before the first there is room for rounding
_CELL_OF_STEP = np.searchsorted(_JOINT[1:-1], _MIDDLES).astype(np.uint16)
_CELL_OF_STEP[0] = _CELLS  # of what is missing
_FIRST = [np.searchsorted(_JOINT, edges) for edges in (EDGES[:-1], np.arange(-1, 1, TURN / TURN_CELLS))]


def tail_shares(rows: Rows | Stream, columns: Sequence[int] | None, bound: float) -> Array:
    """Share of the rows in every cell of ``bound`` times :data:`EDGES`, for every column, then by where they are in the
    turn of ``bound`` times ``TURN`` in which they are.

    Times ``WEIGHT``; a missing value is in no cell.
    """
    count = rows.d if columns is None else len(columns)
    step, starts = counting_step(rows.n), np.arange(count) * len(_JOINT)

    def counted(block: Rows) -> NDArray[Any]:
        X = block.X if columns is None else block.X[:, list(columns)]
        weights, total = np.floor(block.weight / step), np.zeros(count * len(_JOINT))
        alike = bool((weights == weights[:1]).all())  # then whole numbers are added, which takes half the time
        size = max(1, TOGETHER // count)
        for start in range(0, block.n, size):
            part = slice(start, start + size)
            steps = X[part] * (_STEPS / bound)
            steps += _STEPS + 2
            places = np.empty(steps.shape, dtype=np.intp)
            with np.errstate(invalid="ignore"):  # of what is missing, which becomes 0 or the smallest integer
                steps_of = steps.astype(np.int32)
            by_column(np.add, _CELL_OF_STEP.take(steps_of, mode="clip"), starts, places)
            if alike:
                total += weights[0] * np.bincount(places.ravel(), minlength=len(total))
            else:
                total += np.bincount(places.ravel(), np.repeat(weights[part], count), len(total))
        tails, equal = (np.add.reduceat(total.reshape(count, -1)[:, :_CELLS], first, axis=1) for first in _FIRST)
        return np.append(tails, equal.reshape(count, -1, TURN_CELLS).sum(axis=1))

    counts = fold(Counts(count * (TAIL_CELLS + TURN_CELLS), counted), rows)
    return np.asarray(counts * (step * WEIGHT / rows.n), dtype=np.float64)


def _of_columns(columns: list[int], rows: Rows) -> Rows:
    return rows.with_X(np.ascontiguousarray(rows.X[:, columns]))


@lru_cache(maxsize=8)
def _seen(released: bytes, count: int, noise_scale: float) -> tuple[Array, Array, NDArray[Any], NDArray[Any]]:
    """Where rows of so many columns surely lie, whether that is in several cells, and whether it is anywhere.

    Where one cell or two hold most of them, these are looked for again by where in a turn they are: the cell is in one,
    and two are around the edge between them.
    """
    answer = np.frombuffer(released)
    shares, turns = answer[: count * TAIL_CELLS].reshape(count, -1), answer[count * TAIL_CELLS :].reshape(count, -1)
    first, last, found = ends(shares, threshold(count, TAIL_CELLS, FALSE) * noise_scale)
    low, high, cells = EDGES[first], EDGES[last + 1], np.arange(TAIL_CELLS)
    held = np.where((cells >= first[:, None]) & (cells <= last[:, None]), shares, 0.0).sum(axis=1)
    few = found & (held > MOST * WEIGHT) & (last - first <= 1)
    start = np.where(first == last, np.floor(low / TURN) * TURN, EDGES[last] - TURN / 2)
    places = np.arange(TURN_CELLS + 1) * (TURN / TURN_CELLS) + start[:, None]
    inside = few[:, None] & (places[:, :-1] >= low[:, None]) & (places[:, 1:] <= high[:, None])
    at = np.round(places[:, :-1] * (TURN_CELLS / TURN)).astype(np.intp) % TURN_CELLS
    turns = np.where(inside, np.take_along_axis(turns, at, axis=1), 0.0)
    begin, end, again = ends(turns, threshold(count, TURN_CELLS, FALSE, RUNS) * noise_scale, RUNS)
    nearer = few & again & (begin < end)
    low = np.where(nearer, np.take_along_axis(places, begin[:, None], axis=1)[:, 0], low)
    high = np.where(nearer, np.take_along_axis(places, end[:, None] + 1, axis=1)[:, 0], high)
    return low, high, nearer | (found & (first < last)), found


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
        released = answer[: count * (TAIL_CELLS + TURN_CELLS)].tobytes()  # read when parts are measured, and again
        low, high, known, found = _seen(released, count, release.noise_scale)
        middle_seen, seen = (low + high) / 2, high - low
        more = (WIDER - 1) / 2 * seen
        low = np.where(known, np.maximum(low - more, -1.0), -1.0)
        high = np.where(known, np.minimum(high + more, 1.0), 1.0)
        floor = np.where(known, FIFTH * seen, QUARTER * (high - low) / 2)
        middle, observed, unsure = (low + high) / 2, np.ones(count), np.zeros(count)
        if domain.missing_rows:  # they count as the middle: one amid the rows makes little of how many there are
            middle = np.where(found, middle_seen, 0.0)
            within = (EDGES[1:] > low[:, None]) & (EDGES[:-1] < high[:, None])
            unsure = np.sqrt(within.sum(axis=1)) * release.noise_scale / WEIGHT
            fewest = np.maximum(1 - domain.missing_rows / domain.n, 2 * unsure)
            shares = answer[: count * TAIL_CELLS].reshape(count, TAIL_CELLS) / WEIGHT
            observed = np.clip((shares * within).sum(axis=1), np.minimum(fewest, 1.0), 1.0)
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
