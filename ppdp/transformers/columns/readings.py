"""Cells that are no numbers become numbers, each by itself and by a public rule.

The type of a column is public: one that cannot hold what is declared is refused by its type, before any cell is looked
at. A gap is NaN; a cell that is none of the things that its column may hold is infinity, an invalid value.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any

import numpy as np

from ppdp.data.categories import MISSING, OTHER, Places, coded, distinct, texts_of
from ppdp.data.frames import is_gap, numbers, objects
from ppdp.data.rows import Array, encode_labels
from ppdp.exceptions import NonNumericData

SECONDS = {
    "seconds": 1.0,
    "minutes": 60.0,
    "hours": 3600.0,
    "days": 86_400.0,
    "weeks": 7 * 86_400.0,
    "years": 365.2425 * 86_400.0,
}
"""Units of time, of which a year is the mean one."""

_START = datetime(1970, 1, 1)
_FARTHEST = 1e12  # units from the epoch: further than any public range


def kind_of(dtype: Any) -> str:
    """What the type of a column says of its cells: "number", "boolean", "date", "text", "unknown" or "none" of these.

    Examples
    --------
    >>> [kind_of(np.dtype(name)) for name in ("int8", "bool", "datetime64[s]", "O", "complex64")]
    ['number', 'boolean', 'date', 'unknown', 'none']
    """
    name, kind = str(dtype).lower(), getattr(dtype, "kind", "O")
    if kind == "b":
        return "boolean"
    if kind in "iuf" or name.startswith("decimal"):
        return "number"
    if name.startswith(("datetime", "timestamp", "date32", "date64")) or kind == "M":
        return "date"
    if name.startswith(("string", "str", "large_string", "category", "dictionary")) or kind == "U":
        return "text"
    return "unknown" if name == "object" else "none"


@dataclass(frozen=True)
class Labels:
    """Positions of public labels; -1 for any other one, and ``gap`` for a gap, None for NaN."""

    labels: tuple[Any, ...]
    gap: float | None = None
    other: float = -1.0
    typed: bool = False  # whether a column whose type holds none of the labels is refused

    def codes(self, column: Any, name: Any) -> Array:
        """The column as numbers; its name is for errors."""
        if self.typed:
            self._check(column.dtype, name)
        cells = objects(column)
        codes = encode_labels(cells, self.labels)
        gaps = np.frompyfunc(is_gap, 1, 1)(cells).astype(bool)
        return np.where(gaps, math.nan if self.gap is None else self.gap, np.where(np.isnan(codes), self.other, codes))

    def _check(self, dtype: Any, name: Any) -> None:
        """Refuse a type that can hold none of the labels: every cell would count as another one."""
        own = getattr(getattr(dtype, "categories", None), "dtype", dtype)
        if kind_of(own) not in ("text", "unknown") and all(isinstance(label, str) for label in self.labels):
            raise NonNumericData(
                f"the column {name!r} holds {described(own)}, and its declared categories are text.",
                fix="declare the categories as the column has them, or convert the column.",
            )


@dataclass(frozen=True)
class Dates:
    """Units of time since a public epoch; numbers are such units already."""

    unit: str
    epoch: float  # seconds since 1970
    format: str | None = None  # of text; ISO 8601 without

    def codes(self, column: Any, name: Any) -> Array:
        """The column as numbers; its name is for errors."""
        kind = kind_of(column.dtype)
        if kind in ("boolean", "none"):
            raise NonNumericData(
                f"the column {name!r} holds {described(column.dtype)}, and dates are declared.",
                fix="dates, times with a date, text, or numbers of units since the epoch.",
            )
        if kind == "number":
            return numbers(column)[0].ravel()
        if kind == "date":
            seconds = _seconds(column)
        else:
            seconds = np.frompyfunc(self._seconds_of, 1, 1)(objects(column)).astype(np.float64)
        return np.asarray((seconds - self.epoch) / SECONDS[self.unit])

    def _seconds_of(self, cell: Any) -> float:
        if is_gap(cell):
            return math.nan
        if isinstance(cell, (int, float, np.integer, np.floating)) and not isinstance(cell, bool):
            return self.epoch + float(min(max(cell, -_FARTHEST), _FARTHEST)) * SECONDS[self.unit]
        return seconds_of(cell, self.format)


@dataclass(frozen=True)
class AsText:
    """Cells as codes of their texts: the place among those that are known, or among all that the column holds."""

    most: int
    other: str | None = None  # names of further categories, which no text has
    missing: str | None = None
    labels: tuple[str, ...] = ()  # those that are known

    def codes(self, column: Any, name: Any) -> Array:
        """The column as numbers; its name is for errors."""
        places, texts = self._texts(column, name)
        return np.asarray(coded(texts, self.labels)[places])

    def learned(self, column: Any, name: Any) -> tuple[Array, tuple[str, ...]]:
        """The column as codes of all texts that it holds, and these texts, which are private."""
        places, texts = self._texts(column, name)
        found = distinct(texts)
        return np.asarray(coded(texts, found)[places]), found

    def _texts(self, column: Any, name: Any) -> tuple[Places, list[str | float]]:
        if kind_of(column.dtype) in ("date", "none"):
            raise NonNumericData(
                f"the column {name!r} holds {described(column.dtype)}, and categories are text, numbers or truths.",
                fix="DateEncoder for dates, or leave the column out.",
            )
        further = {name: code for name, code in ((self.other, OTHER), (self.missing, MISSING)) if name is not None}
        return texts_of(column, further)


Reading = Labels | Dates | AsText


def described(dtype: Any) -> str:
    """A type in a few letters: one of categories would list them, one of bytes tells how long the longest is."""
    return re.sub(r"^([SUV])\d+$", r"\1", re.split(r"[\[<]", str(dtype).lstrip("<|>="))[0])


def _seconds(column: Any) -> Array:
    """Instants of a column of dates, in seconds since 1970; those with a zone in UTC."""
    if hasattr(column, "dt"):
        kind = column.dtype
        if hasattr(kind, "pyarrow_dtype"):
            import pyarrow as pa

            column = pa.chunked_array(pa.array(column)).cast(pa.timestamp("us"), safe=False).to_numpy()
        else:
            column = (column if isinstance(kind, np.dtype) else column.dt.tz_convert(None)).to_numpy()
    instants = np.asarray(column).astype("datetime64[us]")
    return np.where(np.isnat(instants), np.nan, instants.astype(np.int64) / 1e6)


def seconds_of(cell: Any, format: str | None = None) -> float:
    """A date in seconds since 1970, NaN for a gap, infinity for what is no date; one with a zone is taken in UTC.

    Examples
    --------
    >>> seconds_of("1970-01-02"), seconds_of("1970-01-01T01:00+01:00"), seconds_of("2.1.1970", "%d.%m.%Y")
    (86400.0, 0.0, 86400.0)
    >>> seconds_of("yesterday"), seconds_of(1995), seconds_of(None)
    (inf, inf, nan)
    """
    try:
        if is_gap(cell):
            return math.nan
        if isinstance(cell, np.datetime64):
            cell = cell.astype("datetime64[us]").item()
        if isinstance(cell, str):
            cell = datetime.fromisoformat(cell.strip()) if format is None else datetime.strptime(cell.strip(), format)
        elif isinstance(cell, date) and not isinstance(cell, datetime):
            cell = datetime.combine(cell, time())
        if not isinstance(cell, datetime):
            return math.inf
        naive = cell if cell.tzinfo is None else cell.astimezone(UTC).replace(tzinfo=None)
        return float((naive - _START).total_seconds())
    except Exception:  # whatever a cell holds, it is no date
        return math.inf


def is_date(value: Any) -> bool:
    """Whether it is a date in Python's, NumPy's or pandas' form."""
    return isinstance(value, (date, np.datetime64))
