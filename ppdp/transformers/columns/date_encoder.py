"""Columns of dates as numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ppdp.core.checks import choice, pair, shown
from ppdp.core.declared import PRIVATE
from ppdp.data.cells import seconds_of
from ppdp.data.rows import Array
from ppdp.data.unit_conversion import Columns, Dates
from ppdp.exceptions import InvalidParameter, MissingBound
from ppdp.transformers.columns.cell_parsers import SECONDS, CellParser, DateParser, by_column
from ppdp.transformers.columns.column_stage import Encoder
from ppdp.transformers.columns.maps import ColumnFacts, PublicMap, RangeScale
from ppdp.transformers.rowwise.ranges import resolve_ranges


@dataclass(frozen=True)
class Dated(PublicMap):
    """Units of time since a public epoch, within public ranges."""

    ranges: tuple[tuple[float, float], ...]  # in these units
    unit: str
    epoch: float  # seconds since 1970
    format: str | None = None
    step: str = ""
    plain: bool = False  # whether the ranges were given as numbers
    bounds = True
    reads = True
    narrows = True
    reads_cells = True

    def reading(self, position: int) -> CellParser | None:
        return DateParser(self.unit, self.epoch, self.format, self.plain)

    def told(self, names: Sequence[str]) -> Iterable[tuple[str, str]]:
        days = [[_day(self.epoch + end * SECONDS[self.unit]) for end in ends] for ends in self.ranges]
        return [(f"range of {name}", " to ".join(ends)) for name, ends in zip(names, days)]

    def facts(self, given: ColumnFacts) -> ColumnFacts:
        return ColumnFacts.within(given.names, resolve_ranges(self.ranges, len(given.names), given.names, self.step))

    def apply(self, X: Array, given: ColumnFacts) -> Array:
        return X

    def units(self, columns: Columns, given: ColumnFacts, out: ColumnFacts) -> Columns:
        length = SECONDS[self.unit]

        def number(date: Any) -> float:
            seconds = seconds_of(date)
            if not math.isfinite(seconds) and isinstance(date, str) and self.format is not None:
                seconds = seconds_of(date, self.format)
            return (seconds - self.epoch) / length

        kind = Dates(f"{self.unit} since {_day(self.epoch)}", number, lambda value: _day(self.epoch + value * length))
        return Columns.raw(out.names, kinds=[kind] * len(out.names)).clipped(*out.ranges.T)


def _day(seconds: float) -> str:
    """An instant in words, of which midnight is left out; none where noise leads beyond all dates."""
    if not abs(seconds) < 1e17:
        return ""
    return str(np.datetime64(round(seconds), "s")).removesuffix("T00:00:00")


@dataclass(eq=False, repr=False)
class DateEncoder(Encoder):
    """Columns of dates as numbers of units since a public epoch, clipped to public ranges and scaled.

    Parameters
    ----------
    ranges : mapping, pair, or sequence of pairs
        Public (first, last) date of every column: by column, one pair for all, or a pair per column; dates of Python,
        pandas or NumPy, text in ISO 8601, or numbers of units.
    unit : {"seconds", "minutes", "hours", "days", "weeks", "years"}, default="days"
        Of the numbers; a year has 365.2425 days.
    epoch : date, default="1970-01-01"
        Where they begin.
    feature_range : tuple of two floats or None, default=(-1, 1)
        Where the ranges are mapped to, as by ``MinMaxScaler``. With None they stay numbers of units, which make long
        rows: put a scaler behind them.
    format : str, optional
        Of dates that are text, as for ``datetime.strptime``: ``"%d.%m.%Y"``. Default: ISO 8601.

    Notes
    -----
    **Guarantee** (``docs/theory/row-wise.md``): row-wise, moves nothing, costs nothing. Gaps stay gaps. A time with a
    zone is taken in UTC, one without as it stands; columns of numbers are numbers of units already. Text that is no
    date is an invalid value: an error or a gap, as the pipeline's ``on_invalid`` says. Each cell is read by itself.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"born": pd.to_datetime(["1950-01-01", "2000-01-01", None])})
    >>> century = ("1900-01-01", "2000-01-01")
    >>> DateEncoder(century).fit_transform(X).round(3).ravel()
    array([ 0.,  1., nan])
    >>> DateEncoder(century, unit="years", feature_range=None).fit_transform(X).round(1).ravel()
    array([-20.,  30.,  nan])
    """

    ranges: Any = None
    unit: str = "days"
    epoch: Any = "1970-01-01"
    feature_range: tuple[float, float] | None = (-1, 1)
    format: str | None = None

    improper = (
        "no date: each argument must be a date, a string that is one, or a number",
        "dates in ISO 8601, or format=... as they are written.",
    )

    _example: ClassVar = {"ranges": (-10, 10)}

    def column_maps(self, columns: Sequence[Any]) -> tuple[PublicMap, ...]:
        """Units since the epoch and, unless there is no range for them, a public scale."""
        unit, epoch = choice("unit", self.unit, SECONDS, self), seconds_of(self.epoch)
        if not math.isfinite(epoch):
            what = f"epoch={shown(self.epoch)} is no date."
            raise InvalidParameter(what, stage=_NAME, fix='epoch="1970-01-01".', parameter="epoch")
        if self.format is not None and not isinstance(self.format, str):
            what = f"format={shown(self.format)} is no text."
            raise InvalidParameter(what, stage=_NAME, fix='format="%d.%m.%Y".', parameter="format")
        try:
            table = resolve_ranges(self._numbers(columns), len(columns), tuple(columns), _NAME)
        except InvalidParameter as error:  # whose fix is numbers
            raise InvalidParameter(error.message, stage=_NAME, fix=_FIX, parameter="ranges") from None
        if not (np.abs(epoch + table * SECONDS[unit]) < _FARTHEST).all():
            what = "ranges hold what is no date between the years 1 and 9999."
            raise InvalidParameter(what, stage=_NAME, fix=_FIX, parameter="ranges")
        read = Dated(
            tuple((float(low), float(high)) for low, high in table), unit, epoch, self.format, _NAME, self._plain()
        )
        if self.feature_range is None:
            return (read,)
        return read, RangeScale(pair("feature_range", self.feature_range, self))

    def _numbers(self, columns: Sequence[Any]) -> Any:
        """The public ranges in units since the epoch, in the form in which they are given."""
        given = self.ranges
        if given is None or (isinstance(given, str) and given == PRIVATE):
            what = "is not declared" if given is None else "that nobody declared cannot be released yet"
            raise MissingBound(f"ranges {what}.", stage=_NAME, fix=_FIX, parameter="ranges")
        if isinstance(given, Mapping):
            given = by_column(given, columns, _NAME, "ranges")
        if isinstance(given, str) or not isinstance(given, Iterable):
            what = f"ranges must hold (first, last) pairs, got {shown(given)}."
            raise InvalidParameter(what, stage=_NAME, fix=_FIX, parameter="ranges")
        given = list(given)
        if any(map(_is_pair, given)):
            return [[self._number(end) for end in one] if _is_pair(one) else one for one in given]
        return [self._number(end) for end in given]

    def _plain(self) -> bool:
        """Whether all ends of ranges are numbers."""
        given = list(self.ranges.values() if isinstance(self.ranges, Mapping) else self.ranges)
        return all(_is_number(end) for one in given for end in (one if _is_pair(one) else [one]))

    def _number(self, end: Any) -> float:
        """The end of a range in units since the epoch."""
        if _is_number(end):
            return float(end)
        seconds = seconds_of(end)
        if not math.isfinite(seconds):
            raise InvalidParameter(f"{shown(end)} is no date in ISO 8601.", stage=_NAME, fix=_FIX)
        return (seconds - seconds_of(self.epoch)) / SECONDS[self.unit]


def _is_number(end: Any) -> bool:
    return isinstance(end, (int, float, np.number)) and not isinstance(end, bool)


def _is_pair(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str)


_FARTHEST = 2.6e11  # seconds between 1970 and the last year that dates have
_NAME = "DateEncoder"
_FIX = 'ranges={column: ("1990-01-01", "2030-12-31")} from public knowledge, not from the data.'
