"""What released numbers mean in the units of the table that came in.

Maps that are public or released lead back to those units where each column is scaled and shifted by itself. Where one
is not of that kind, or stays private, raw values are NaN and a note says why: never a wrong unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from numpy.typing import ArrayLike

from ppdp.data.rows import Array


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Columns at one point of a pipeline: the raw value is ``offset + slope * value``, NaN where no map leads back."""

    names: tuple[str, ...]
    slope: Array
    offset: Array
    notes: tuple[str, ...]  # of each column, what was done to its values, or why there is no way back

    @classmethod
    def raw(cls, names: Sequence[str], note: str = "") -> Columns:
        """Columns whose values are what they are."""
        return cls(tuple(names), np.ones(len(names)), np.zeros(len(names)), (note,) * len(names))

    @classmethod
    def lost(cls, names: Sequence[str], why: str) -> Columns:
        """Columns from which no map leads back."""
        none = np.full(len(names), np.nan)
        return cls(tuple(names), none, none, (why,) * len(names))

    @classmethod
    def beside(cls, parts: Sequence[Columns]) -> Columns:
        """Columns of several parts, one behind the other."""
        slope, offset = (np.concatenate([getattr(part, name) for part in parts]) for name in ("slope", "offset"))
        names, notes = (tuple(chain.from_iterable(getattr(p, name) for p in parts)) for name in ("names", "notes"))
        return cls(names, slope, offset, notes)

    def at(self, positions: Sequence[int]) -> Columns:
        """Some of them."""
        names, notes = (tuple(given[i] for i in positions) for given in (self.names, self.notes))
        return Columns(names, self.slope[list(positions)], self.offset[list(positions)], notes)

    def scaled(self, slope: ArrayLike, offset: ArrayLike) -> Columns:
        """The same behind a map that ``offset + slope * value`` undoes."""
        slope, offset = np.asarray(slope, dtype=np.float64), np.asarray(offset, dtype=np.float64)
        return replace(self, slope=self.slope * slope, offset=self.offset + self.slope * offset)

    def noted(self, *words: str) -> Columns:
        """The same with one more note: for all of them, or for each its own; nothing is added to what is lost."""
        every = words * len(self.names) if len(words) == 1 else words
        known = np.isfinite(self.slope)
        said = (f"{note}; {more}" if note and more else note or more for note, more in zip(self.notes, every))
        return replace(self, notes=tuple(new if ok else old for new, old, ok in zip(said, self.notes, known)))

    def clipped(self, low: ArrayLike, high: ArrayLike) -> Columns:
        """The same with values clipped to ranges in their present units; infinite or NaN where they are not."""
        ends = np.sort([self.value(np.broadcast_to(end, self.slope.shape)) for end in (low, high)], axis=0).T
        return self.noted(*(f"clipped to [{a:.6g}, {b:.6g}]" if np.isfinite([a, b]).all() else "" for a, b in ends))

    def value(self, values: Array) -> Array:
        """Raw values."""
        return np.asarray(self.offset + self.slope * values)


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Released numbers of one kind, each with the standard error of its noise, as released and in raw units.

    Standard errors are of the noise alone, before a number is moved to where it could lie; NaN where none follows from
    public numbers.
    """

    statistic: str
    columns: tuple[str, ...]
    value: Array
    error: Array
    raw: Array
    raw_error: Array
    notes: tuple[str, ...]
    cells: Array | None = None  # of histograms: ends of every cell, as released and raw, shape (4, number)

    @classmethod
    def of(cls, statistic: str, columns: Columns, value: ArrayLike, error: ArrayLike, note: str = "") -> Answers:
        """One number for every column, in its units."""
        return cls.linear(statistic, columns, value, error, columns.slope, columns.offset, note)

    @classmethod
    def linear(
        cls,
        statistic: str,
        columns: Columns,
        value: ArrayLike,
        error: ArrayLike,
        slope: Array,
        offset: Array | float = 0.0,
        note: str = "",
    ) -> Answers:
        """One number for every column, whose raw value is ``offset + slope * value``."""
        value = np.asarray(value, dtype=np.float64)
        error = np.broadcast_to(np.asarray(error, dtype=np.float64), value.shape)
        told = columns.noted(note).notes
        raw: Array = offset + slope * value
        return cls(statistic, columns.names, value, error, raw, np.abs(slope) * error + 0 * raw, told)

    @classmethod
    def plain(cls, statistic: str, value: ArrayLike, error: ArrayLike, note: str = "", column: str = "") -> Answers:
        """Numbers that have no units but their own."""
        value = np.atleast_1d(np.asarray(value, dtype=np.float64))
        return cls.of(statistic, Columns.raw([column] * value.size), value, error, note)
