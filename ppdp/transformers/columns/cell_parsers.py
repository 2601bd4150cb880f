"""What the columns of encoders hold, and the numbers that their cells become: each cell by itself and by a public rule.

The type of a column is public: one that cannot hold what is declared is refused by its type, before any cell is looked
at. A gap is NaN; a cell that is none of the things that its column may hold is infinity, an invalid value.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import murmurhash3_32

from ppdp.core.boundary import outside
from ppdp.core.names import alike, unquoted
from ppdp.data.categories import MISSING, OTHER, Places, coded, distinct, texts_of
from ppdp.data.cells import codes, dates, numbers, texts, whole_text
from ppdp.data.column_types import described, kind_of, type_of_values
from ppdp.data.rows import Array
from ppdp.exceptions import DiagnosticWarning, DomainMismatch, InvalidParameter, NonNumericData

Words = NDArray[np.object_]
FIRST = 2.0**51  # code of the first text: no number of a table is near it


def coded_texts(column: Any, read: Callable[[Any], str | None] = whole_text) -> tuple[Array, Words]:
    """The code of every cell, infinite where it is no text and 0 where it is missing, and the texts."""
    places, cells = texts(column, read)
    bare = np.asarray(cells.values == np.array(None), dtype=bool)
    own = np.where(cells.improper, np.inf, np.where(bare, 0.0, FIRST + np.arange(len(bare))))
    return own[places], np.where(bare, "", cells.values)


def texts_at(codes: Array, held: Words | None) -> Words:
    """The text of every code; of numbers that nobody has coded themselves as text. What is no code is empty."""
    if held is None:
        if _are_codes(codes).any():
            raise RuntimeError("the texts of rows were lost on the way")
        codes, held = coded_texts(codes)
    found = np.full(len(codes), "", dtype=object)
    known = _are_codes(codes)
    found[known] = held[(codes[known] - FIRST).astype(np.intp)]
    return found


def numbered(X: Array) -> Array:
    """Rows with numbers in place of codes, which stand for texts of which only that they differ counts."""
    return np.where(_are_codes(X), X - FIRST, X)


def _are_codes(values: Array) -> NDArray[np.bool_]:
    return np.asarray((values >= FIRST) & (values < 2 * FIRST))


_AS_TEXT = ("null", "binary", "binary_view", "large_binary", "fixed_size_binary")
SECONDS = {
    "seconds": 1.0,
    "minutes": 60.0,
    "hours": 3600.0,
    "days": 86_400.0,
    "weeks": 7 * 86_400.0,
    "years": 365.2425 * 86_400.0,
}
"""Units of time, of which a year is the mean one."""


@dataclass(frozen=True)
class LabelParser:
    """Positions of public labels; -1 for any other one, and ``gap`` for a gap, None for NaN."""

    labels: tuple[Any, ...]
    gap: float | None = None
    other: float = -1.0
    typed: bool = False  # whether a column whose type holds none of the labels is refused

    def codes(self, column: Any, name: Any) -> Array:
        """The column as numbers; its name is for errors."""
        if self.typed:
            self._check(column.dtype, name)
        read = codes(column, self.labels)
        missing = math.nan if self.gap is None else self.gap
        return np.where(np.isnan(read.values), missing, np.where(read.improper, self.other, read.values))

    def _check(self, dtype: Any, name: Any) -> None:
        """Refuse a type that can hold none of the labels: every cell would count as another one."""
        own = type_of_values(dtype)
        if kind_of(own) not in ("text", "unknown") and all(isinstance(label, str) for label in self.labels):
            fix = "declare the categories as the column has them, or convert the column."
            _refuse(own, name, "its declared categories are text", fix)


@dataclass(frozen=True)
class DateParser:
    """Units of time since a public epoch; numbers are such units, of which a warning says so if ranges are dates."""

    unit: str
    epoch: float  # seconds since 1970
    format: str | None = None  # of text; ISO 8601 without
    plain: bool = False  # whether the public range is one of numbers

    def codes(self, column: Any, name: Any) -> Array:
        """The column as numbers; its name is for errors."""
        kind = kind_of(column.dtype)
        if kind == "none" or _kind_of_values(column.dtype) in ("boolean", "none"):
            fix = "dates, times with a date (of periods .dt.to_timestamp()), text, or numbers of units since the epoch."
            _refuse(type_of_values(column.dtype), name, "dates are declared", fix)
        if kind == "number":
            if not (self.plain or len(column)):  # once, where the form of the table is looked at
                warnings.warn(
                    f"the column {name!r} holds numbers, and its range dates: they are taken as {self.unit}. Fix: of "
                    f"years, MinMaxScaler({{{name!r}: (1920, 2010)}}); of {self.unit}, a range of numbers as well.",
                    DiagnosticWarning,
                    stacklevel=outside(),
                )
            return numbers(column).values.ravel()
        read = dates(column, unit=SECONDS[self.unit], epoch=self.epoch, form=self.format)
        return np.asarray((read.values - self.epoch) / SECONDS[self.unit])


@dataclass(frozen=True)
class TextParser:
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
        _check_category(column, name)
        further = {name: code for name, code in ((self.other, OTHER), (self.missing, MISSING)) if name is not None}
        return texts_of(column, further)


@dataclass(frozen=True)
class HashParser:
    """Cells as numbers of buckets, by a public hash of their texts."""

    buckets: int

    def codes(self, column: Any, name: Any) -> Array:
        """The column as numbers; its name is for errors."""
        _check_category(column, name)
        places, texts = texts_of(column, {})
        hashed = [murmurhash3_32(t, positive=True) % self.buckets if isinstance(t, str) else t for t in texts]
        return np.array(hashed, dtype=np.float64)[places]


@dataclass(frozen=True)
class WordsParser:
    """Cells as texts that are mapped as a whole: the rows know them while they are mapped."""

    def codes(self, column: Any, name: Any) -> Array:
        """The column as numbers; its name is for errors."""
        return np.where(np.isinf(self.learned(column, name)[0]), math.inf, 0.0)

    def learned(self, column: Any, name: Any) -> tuple[Array, Words]:
        """The column as codes of its texts, and these texts, which are private."""
        if _kind_of_values(column.dtype) in ("date", "none"):
            fix = "text; FeatureHasher for lists and mappings, DateEncoder for dates, or leave the column out."
            _refuse(type_of_values(column.dtype), name, "words are declared", fix)
        return coded_texts(column)


def _kind_of_values(dtype: Any) -> str:
    """What a type says of its cells, also of categories, which are read where they are bytes or none at all."""
    own = type_of_values(dtype)
    return kind_of(dtype if described(own) in _AS_TEXT else own)


def _check_category(column: Any, name: Any) -> None:
    if _kind_of_values(column.dtype) in ("date", "none"):
        fix = "DateEncoder for dates, .astype(str) for intervals and periods, or leave the column out."
        _refuse(type_of_values(column.dtype), name, "categories are text, numbers or truths", fix)


def _refuse(dtype: Any, name: Any, declared: str, fix: str) -> NoReturn:
    raise NonNumericData(f"the column {name!r} holds {described(dtype)}, and {declared}.", fix=fix)


CellParser = LabelParser | DateParser | TextParser | HashParser | WordsParser


def is_date(value: Any) -> bool:
    """Whether it is a date in Python's, NumPy's or pandas' form."""
    return isinstance(value, (date, np.datetime64))


def by_column(given: Any, columns: Sequence[Any], stage: str, parameter: str) -> list[Any]:
    """What a mapping by name or position holds for these columns; every one of them must be there, and no other."""
    if not isinstance(given, Mapping):
        what = f"{parameter} must be a mapping."
        raise InvalidParameter(what, stage=stage, fix=f"{parameter}={{column: ...}}.", parameter=parameter)
    unknown = [key for key in given if key not in columns]
    missing = [column for column in columns if column not in given]
    if missing or unknown:
        what = f"lacks the columns {missing}" if missing else f"declares the columns {unknown}, which it does not get"
        fix = "declare every column once, by its name." if columns else "a list, or a selector that takes some."
        raise DomainMismatch(
            f"{parameter} {what}.",
            stage=stage,
            fix=unquoted(parameter, unknown, missing) or alike(unknown, missing) or fix,
            parameter=parameter,
        )
    return [given[column] for column in columns]
