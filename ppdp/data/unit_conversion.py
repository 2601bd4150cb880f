"""What released numbers mean in the units of the table that came in.

Maps that are public or released lead back to those units where each column is scaled and shifted by itself. Where one
is not of that kind, or stays private, raw values are NaN and a note says why: never a wrong unit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from ppdp.core.domain import Domain
from ppdp.core.figures import figure
from ppdp.data.rows import Array


@dataclass(frozen=True, slots=True)
class Dates:
    """Raw values are units of time since an epoch: how a date is read as such a number, and told."""

    words: str  # of the unit and the epoch
    number: Callable[[Any], float]
    text: Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Codes:
    """Raw values are codes of categories, or 0 and 1 for one category: the names of the values that there may be."""

    values: tuple[float, ...]  # ascending
    names: tuple[str, ...]
    indicates: bool = False  # whether the column is 1 for the last of two names and 0 for anything else
    column: str = ""  # whose category that is

    @classmethod
    def of(cls, names: Sequence[str], **others: float) -> Codes:
        """Positions of names, and further codes by their names, where such a code is no position."""
        values = {float(i): name for i, name in enumerate(names)}
        further = {code: name for name, code in others.items() if code not in values}
        every = sorted((values | further).items())
        return cls(tuple(code for code, _ in every), tuple(name for _, name in every))

    @classmethod
    def indicator(cls, name: str, column: str = "") -> Codes:
        """Whether it is this category, of this column of the table."""
        return cls((0.0, 1.0), (f"not {name}", name), indicates=True, column=column)

    def without(self, codes: Collection[float]) -> Codes:
        """The same without codes that no row can have."""
        every = [(value, name) for value, name in zip(self.values, self.names) if value not in codes]
        return Codes(tuple(value for value, _ in every), tuple(name for _, name in every), self.indicates)

    @property
    def edges(self) -> list[float]:
        """Ends of cells of which each holds one code."""
        inner = [(a + b) / 2 for a, b in pairwise(self.values)]
        return [self.values[0] - 0.5, *inner, self.values[-1] + 0.5]


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Columns at one point of a pipeline: the raw value is ``offset + slope * value``, NaN where no map leads back."""

    names: tuple[str, ...]
    slope: Array
    offset: Array
    notes: tuple[str, ...]  # of each column, what was done to its values, or why there is no way back
    ranges: Array  # public (low, high) of values as they are here, of shape (n_columns, 2); NaN where none follows
    kinds: tuple[Dates | Codes | None, ...]  # what raw values are, if they are no plain numbers
    gaps: Array  # the share of rows, at most, where a value was filled in
    unsure: Array  # raw standard error of what fills them; NaN where it is unknown

    @classmethod
    def raw(
        cls,
        names: Sequence[str],
        note: str = "",
        ranges: ArrayLike = math.nan,
        kinds: Sequence[Dates | Codes | None] = (),
    ) -> Columns:
        """Columns whose values are what they are."""
        count = len(names)
        table = np.array(np.broadcast_to(np.asarray(ranges, dtype=np.float64), (count, 2)))
        return cls(
            tuple(names),
            np.ones(count),
            np.zeros(count),
            (note,) * count,
            table,
            tuple(kinds) or (None,) * count,
            np.zeros(count),
            np.zeros(count),
        )

    @classmethod
    def lost(cls, names: Sequence[str], why: str) -> Columns:
        """Columns from which no map leads back."""
        return replace(cls.raw(names, why), slope=np.full(len(names), np.nan), offset=np.full(len(names), np.nan))

    def lost_at(self, positions: Sequence[int], why: str) -> Columns:
        """The same, where no map leads back from some of them."""
        lost = Columns.lost(self.names, why)
        return Columns.beside([(lost if i in positions else self).at([i]) for i in range(len(self.names))])

    @classmethod
    def beside(cls, parts: Sequence[Columns]) -> Columns:
        """Columns of several parts, one behind the other."""
        slope, offset, ranges, gaps, unsure = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("slope", "offset", "ranges", "gaps", "unsure")
        )
        names, notes = (tuple(chain.from_iterable(getattr(p, name) for p in parts)) for name in ("names", "notes"))
        kinds = tuple(chain.from_iterable(part.kinds for part in parts))
        return cls(names, slope, offset, notes, ranges, kinds, gaps, unsure)

    def at(self, positions: Sequence[int]) -> Columns:
        """Some of them."""
        own = list(positions)
        names, notes = (tuple(given[i] for i in own) for given in (self.names, self.notes))
        kinds = tuple(self.kinds[i] for i in own)
        slope, offset, ranges, gaps, unsure = (
            table[own] for table in (self.slope, self.offset, self.ranges, self.gaps, self.unsure)
        )
        return Columns(names, slope, offset, notes, ranges, kinds, gaps, unsure)

    def scaled(self, slope: ArrayLike, offset: ArrayLike) -> Columns:
        """The same behind a map that ``offset + slope * value`` undoes."""
        slope, offset = np.asarray(slope, dtype=np.float64), np.asarray(offset, dtype=np.float64)
        with np.errstate(all="ignore"):
            ranges = np.sort((self.ranges.T - offset) / slope, axis=0).T
        return replace(self, slope=self.slope * slope, offset=self.offset + self.slope * offset, ranges=ranges)

    def noted(self, *words: str) -> Columns:
        """The same with one more note, for all or for each its own; nothing is said twice, or added to what is lost."""
        every = words * len(self.names) if len(words) == 1 else words
        known = np.isfinite(self.slope)
        said = (
            f"{note}; {more}" if note and more and not f"; {note}".endswith(f"; {more}") else note or more
            for note, more in zip(self.notes, every)
        )
        return replace(self, notes=tuple(new if ok else old for new, old, ok in zip(said, self.notes, known)))

    def within(self, low: ArrayLike, high: ArrayLike) -> Columns:
        """The same where values are publicly known to be within ranges in their present units."""
        ends = np.stack([np.broadcast_to(np.asarray(end, dtype=np.float64), self.slope.shape) for end in (low, high)])
        ends[~np.isfinite(ends)] = np.nan
        low, high = np.fmax(self.ranges[:, 0], ends[0]), np.fmin(self.ranges[:, 1], ends[1])
        return replace(self, ranges=np.column_stack([np.fmin(low, high), high]))

    def clipped(self, low: ArrayLike, high: ArrayLike) -> Columns:
        """The same with values clipped to ranges in their present units; infinite or NaN where they are not."""
        ends = np.sort([self.value(np.broadcast_to(end, self.slope.shape)) for end in (low, high)], axis=0).T
        words = (self._range(i, a, b) if np.isfinite([a, b]).all() else "" for i, (a, b) in enumerate(ends))
        return self.within(low, high).noted(*words)

    def _range(self, column: int, low: float, high: float) -> str:
        kind = self.kinds[column]
        if isinstance(kind, Dates):
            return f"{kind.words}; clipped to {kind.text(low)} to {kind.text(high)}"
        return f"clipped to [{low:.6g}, {high:.6g}]"

    def value(self, values: Array) -> Array:
        """Raw values."""
        return np.asarray(self.offset + self.slope * values)

    def present(self, column: int, raw: Array) -> Array:
        """Raw values of one column as values here, ascending."""
        return np.sort((raw - self.offset[column]) / self.slope[column])

    def raw_value(self, column: int, values: Array) -> Array:
        """Values of one column as raw ones, without the last digits, which are those of scaling there and back."""
        raw = self.offset[column] + self.slope[column] * values
        size = max(abs(self.offset[column]), abs(self.slope[column]))
        return np.asarray(raw if not 0 < size < math.inf else np.round(raw, 12 - math.ceil(math.log10(size))))

    @property
    def categories(self) -> tuple[str, ...]:
        """Of columns that are 1 for one category its name; () if none is."""
        own = tuple(kind.names[1] if isinstance(kind, Codes) and kind.indicates else "" for kind in self.kinds)
        return own if any(own) else ()

    @property
    def dates(self) -> tuple[Dates | None, ...]:
        """How raw values are told as dates; () if none are."""
        own = tuple(kind if isinstance(kind, Dates) else None for kind in self.kinds)
        return own if any(own) else ()

    def has_units(self, column: int) -> bool:
        """Whether a map leads back from one column."""
        return bool(np.isfinite(self.slope[column]) and np.isfinite(self.offset[column]) and self.slope[column])


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
    categories: tuple[str, ...] = ()  # of which category each number is
    dates: tuple[Dates | None, ...] = ()  # how raw values, or the ends of cells, are told as dates
    law: Law = "gaussian"  # of the noise
    ends: Callable[[float], tuple[Array, Array]] | None = None  # of an interval, where it is not around the value
    within: tuple[float, float] = (-math.inf, math.inf)  # where the number lies without noise
    line: tuple[Array | float, Array | float] = (math.nan, math.nan)  # slope and offset of raw values
    sampling: Array | None = None  # standard error of drawing the rows from a population
    raw_sampling: Array | None = None

    @classmethod
    def of(cls, statistic: str, columns: Columns, value: ArrayLike, error: ArrayLike, note: str = "") -> Answers:
        """One number for every column, in its units."""
        found = cls.linear(statistic, columns, value, error, columns.slope, columns.offset, note)
        return replace(found, dates=columns.dates)

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
        raw_error = np.abs(slope) * error + 0 * raw
        kinds, line = columns.categories, (slope, offset)
        return cls(statistic, columns.names, value, error, raw, raw_error, told, categories=kinds, line=line)

    @classmethod
    def plain(cls, statistic: str, value: ArrayLike, error: ArrayLike, note: str = "", column: str = "") -> Answers:
        """Numbers that have no units but their own."""
        value = np.atleast_1d(np.asarray(value, dtype=np.float64))
        return cls.of(statistic, Columns.raw([column] * value.size), value, error, note)

    def behind_gaps(self, columns: Columns, left: float | Array = 1.0, n: float = 1.0) -> Answers:
        """Means, of this share of the rows, or sums of n rows, with the error of what fills missing values as well.

        Where that is unknown the error stays that of the last step, and there is no interval.
        """
        gaps = np.minimum(columns.gaps / left, 1.0)
        if not gaps.any():
            return self
        with np.errstate(all="ignore"):
            raw = np.where(gaps > 0, n * gaps * columns.unsure, 0.0)
            more = raw / np.abs(columns.slope)
            rest = np.where(gaps < 1, 1 - gaps, np.nan)  # observed values are so many fewer, and as spread
        known = np.isfinite(more)
        said = np.where(raw > 0, [f", error as if {figure(100 * gap, 2)} % were missing" for gap in gaps], "")
        notes = (note.replace(ALONE, more) if ok else note for note, more, ok in zip(self.notes, said.tolist(), known))
        return replace(
            self,
            error=np.where(known, np.hypot(self.error, more), self.error),
            raw_error=np.where(known, np.hypot(self.raw_error, raw), self.raw_error),
            notes=tuple(notes),
            ends=partial(_wider, self.ends or partial(gaussian_ends, self.value, self.error), self.error, more),
            sampling=None if self.sampling is None else self.sampling / rest,
        )

    def interval(self, alpha: float, *, raw: bool) -> dict[str, Array]:
        """Value, standard errors and ends of intervals, raw or as released."""
        slope, offset = self.line if raw else (1.0, 0.0)
        value, error = (self.raw, self.raw_error) if raw else (self.value, self.error)
        sampling = self.raw_sampling if raw else self.sampling
        if sampling is None:
            sampling = np.full_like(value, np.nan) if self.sampling is None else np.abs(slope) * self.sampling
        with np.errstate(invalid="ignore"):
            if self.ends is None:
                half = half_width(self.law, error, alpha)
                low, high = value - half, value + half
            else:
                low, high = np.sort([offset + slope * np.clip(end, *self.within) for end in self.ends(alpha)], axis=0)
            ends = [low, high, *both(low, high, error, sampling, alpha)]
            if self.ends is None:  # counts and shares, which have no other units
                ends = [np.clip(end, *self.within) for end in ends]
        return dict(zip(FIGURES, (value, error, *ends[:2], sampling, *ends[2:])))


FIGURES = ("value", "standard_error", "lower", "upper", "sampling_error", "population_lower", "population_upper")
FILLED = "missing values filled"
ALONE = ", error of the last step alone"
Law = Literal["gaussian", "laplace", "whole"]  # the last is Laplace noise in whole numbers


def rows_are_a_sample(domain: Domain) -> bool:
    """Whether rows count alike and are those of so many persons, so that one may think of them as drawn one by one."""
    return domain.adjacency.one_row and domain.max_weight is None


def half_width(law: Law, error: ArrayLike, alpha: float) -> Array:
    """What noise of this standard deviation exceeds with probability ``alpha`` at most."""
    error = np.asarray(error, dtype=np.float64)
    if law == "gaussian":
        return np.asarray(-ndtri(alpha / 2) * error)
    if law == "laplace":
        return np.asarray(-math.log(alpha) / math.sqrt(2) * error)
    square = np.maximum(error, 1e-150) ** 2  # = 2 q / (1 - q)², where P(|Z| > k) = 2 q^(k + 1) / (1 + q)
    q = square / (square + 1 + np.sqrt(2 * square + 1))
    return np.asarray(np.maximum(np.ceil(np.log(alpha * (1 + q) / 2) / np.log(q) - 1 - 1e-9), 0.0) + 0 * error)


def gaussian_ends(value: Array, error: Array, alpha: float) -> tuple[Array, Array]:
    """Ends of an interval for numbers with Gaussian noise; NaN where their error is."""
    half = half_width("gaussian", error, alpha)
    return value - half, value + half


def _wider(
    ends: Callable[[float], tuple[Array, Array]], error: Array, more: Array, alpha: float
) -> tuple[Array, Array]:
    """Ends of intervals that have these ends by noise of this error, with more of it that is Gaussian."""
    low, high = ends(alpha)
    wide = both(low, high, error, more, alpha)
    same = (more == 0) | (np.isinf(low) & ~np.isnan(more))
    return np.where(same, low, wide[0]), np.where(same, high, wide[1])


def no_ends(value: Array, alpha: float) -> tuple[Array, Array]:
    """No interval: noise has chosen what is told, or has moved it further than is known."""
    return np.full_like(value, np.nan), np.full_like(value, np.nan)


def quotient_ends(
    total: Array, share: float, noise: float, unsure: float, law: Law, alpha: float
) -> tuple[Array, Array]:
    """Ends of an interval for a quotient of two numbers with noise (Fieller's); infinite where the second may be 0."""
    if not unsure:
        half = half_width(law, noise, alpha) / share
        return total / share - half, total / share + half
    factor = max(half_width("gaussian", 1.0, alpha), half_width(law, 1.0, alpha))  # nothing between them is longer
    a, b = share**2 - (factor * unsure) ** 2, total * share
    if a <= 0 or share <= 0:
        return np.full_like(total, -math.inf), np.full_like(total, math.inf)
    root = np.sqrt(np.maximum(b**2 - a * (total**2 - (factor * noise) ** 2), 0.0))
    return (b - root) / a, (b + root) / a


def both(low: Array, high: Array, error: Array, sampling: Array, alpha: float) -> tuple[Array, Array]:
    """Ends of an interval that covers noise, which alone has these ends, and sampling."""
    factor, half = -ndtri(alpha / 2), (high - low) / 2
    wide = np.maximum(np.hypot(half, factor * sampling), factor * np.hypot(error, sampling))
    return (low + high) / 2 - wide, (low + high) / 2 + wide
