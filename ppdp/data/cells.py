"""The reader of all cells: features, labels, targets, dates, categories and ids, in whatever container they stand.

A cell is what its column may hold, or missing, or *improper*: neither. What it becomes depends on it and on public
facts alone (the type of its column, declared labels), never on another cell: no type is inferred from the cells of a
column. Whatever a cell does when it is read (raise, recurse, warn, return nonsense), it is improper then, and nothing
else happens: an error would tell of it, and quote it.
"""

from __future__ import annotations

import math
import re
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address
from numbers import Integral, Real
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from ppdp.bounds.statistics import LONGEST_CATEGORY
from ppdp.core.boundary import suppressed
from ppdp.data.column_types import chunks_of, is_of_a_library, kind_of, microseconds, seconds_of_instants

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_PLAIN = {str, float, int, bool, type(None), np.bool_, np.float16, np.float32, np.float64}
_PLAIN |= {np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64}
_NO_NUMBERS = (complex, np.complexfloating, np.datetime64, np.timedelta64, np.ndarray)  # float() reads some of them
_GAPS = ("NAType", "NaTType", "MaskedConstant")
_QUIET = threading.RLock()  # two threads that silence warnings by turns would leave them silent for ever
_NOTHING = "\0"  # no reader reads it
_UNDECODED = object()  # stands for a cell that its container cannot hand out

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_ENDLESS = re.compile("[+-]?inf(inity)?", re.IGNORECASE)
_DIGITS, _ULPS = 12, 4  # of a number that is a category, and how far readers may be from it
_LOGICAL = {"true": "True", "false": "False"}

_START = datetime(1970, 1, 1)
_FARTHEST = 1e12  # units from the epoch: further than any public range
_SHORT = 2_000  # bits of a whole number that Python writes at any setting
_LONGEST_ID = 10_000  # digits of a whole number: to write more takes minutes
LONGEST_TEXT = 1_000_000  # characters of a text that are looked at, so that no single row fills the memory


class Cells(NamedTuple):
    """Cells that were read: NaN or None where missing, infinity or None where neither readable nor missing."""

    values: NDArray[Any]
    improper: Mask  # an infinite number can be read, and is outside of every range


# Columns


def objects(values: Any) -> NDArray[np.object_]:
    """A column or an array as new objects; None where a masked array hides something."""
    if isinstance(values, np.ma.MaskedArray):
        held = objects(np.ma.getdata(values))
        held[np.ma.getmaskarray(values)] = None
        return held
    kind: Any = getattr(values, "dtype", None)
    held = getattr(values, "array", values)
    # Of categories apart from their codes: whole numbers become others in pandas' hands as soon as one cell is missing,
    # also where Arrow has that among its categories, and it takes bits of half floats for numbers.
    if hasattr(kind, "categories"):
        return np.append(objects(kind.categories), [None])[np.asarray(held.codes)]
    if str(kind).startswith("dictionary<"):
        return np.concatenate([np.empty(0, dtype=object), *map(_decoded_dictionary, chunks_of(held))])
    with suppress(Exception):  # Arrow's text need not be UTF-8
        alone = str(kind).startswith("extension<") or "list_view<" in str(kind)  # pyarrow ends where all are missing
        if kind_of(kind) == "text" and hasattr(kind, "pyarrow_dtype") and not alone:
            return np.asarray(held.to_numpy(object, na_value=None))
        if is_of_a_library(kind) and getattr(kind, "kind", "O") not in "mM" and not alone:
            return np.array(values, dtype=object)
    # NumPy would make numbers of dates, and bytes of UUIDs.
    return np.fromiter((_decoded(held, i) for i in range(len(held))), dtype=object, count=len(held))


def _decoded_dictionary(chunk: Any) -> NDArray[np.object_]:
    import pandas as pd

    places = chunk.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
    return np.append(objects(pd.arrays.ArrowExtensionArray(chunk.dictionary)), [None])[places]


def _decoded(held: Any, position: int) -> Any:
    with suppressed():
        return held[position]
    return _UNDECODED


def numbers(values: Any) -> Cells:
    """Every cell of a column or an array as float64."""
    kind = values.dtype
    if kind.kind not in "biuf" or not is_of_a_library(kind) or _is_half(kind):
        return _numbers_of(objects(values))
    if not isinstance(kind, np.dtype):  # pandas' own numbers and truth values, with gaps
        read = values.to_numpy(dtype=np.float64, na_value=np.nan)
    elif isinstance(values, np.ma.MaskedArray):
        read = np.where(np.ma.getmaskarray(values), np.nan, np.ma.getdata(values).astype(np.float64))
    else:
        read = np.asarray(values, dtype=np.float64)
    return Cells(read, _none(read.shape))


def _is_half(kind: Any) -> bool:
    """Whether Arrow holds numbers of 16 bits there, which older versions do not hand out beside a missing one."""
    return str(kind).startswith("halffloat")


def _numbers_of(cells: NDArray[np.object_]) -> Cells:
    with suppressed():  # an integer beyond float64, a type that cannot be hashed
        if set(map(type, cells.flat)) <= _PLAIN:  # which NumPy reads as Python does
            return Cells(cells.astype(np.float64), _none(cells.shape))
    return _each(_number, cells)


def dates(column: Any, *, unit: float = 1.0, epoch: float = 0.0, form: str | None = None) -> Cells:
    """Every cell as ``unit``s since ``epoch``, both in seconds; a zone is read as UTC, text by ``form`` or ISO 8601."""
    if kind_of(column.dtype) == "date" and is_of_a_library(column.dtype):
        return Cells(*seconds_of_instants(column))

    def seconds(cell: Any) -> float:
        cell = plain(cell)
        if isinstance(cell, Decimal):
            cell = float(cell)
        if type(cell) not in (int, float):
            return _seconds(cell, form)
        if math.isinf(cell):
            raise _Improper
        return epoch + float(min(max(cell, -_FARTHEST), _FARTHEST)) * unit

    return _each(seconds, objects(column))


def codes(column: Any, labels: Sequence[Any]) -> Cells:
    """Position of every cell of a column among public labels."""
    own = isinstance(column.dtype, np.dtype)
    fixed = is_of_a_library(column.dtype) and column.dtype.kind in ("biufU" if own else "biuf")
    fixed = fixed and not _is_half(column.dtype)
    if isinstance(column, np.ma.MaskedArray) or not fixed:
        return _looked_up(column, labels)
    if own:
        typed, missing = np.asarray(column), _none(column.shape)
    else:  # numbers of pandas or Arrow, with gaps; Arrow's text would take for every cell what the longest does
        kind = np.dtype(getattr(column.dtype, "numpy_dtype", getattr(column.dtype, "subtype", None))).type
        typed, missing = column.to_numpy(kind, na_value=kind(0)), np.asarray(column.isna())
    if typed.dtype.kind == "f":
        missing = missing | np.isnan(typed)
    values, unlike = np.full(typed.shape, -1.0), np.ones(typed.shape, dtype=bool)
    for position, label in enumerate(labels):
        with suppress(OverflowError):  # a number that no label of this type can be
            equal = np.asarray(typed == label, dtype=bool) & unlike
            values += equal * float(position + 1)  # to choose cells would take many times as long
            unlike &= ~equal
    unlike &= ~missing
    values[unlike], values[missing] = np.inf, np.nan
    return Cells(values, unlike)


def _looked_up(column: Any, labels: Sequence[Any]) -> Cells:
    code_of = {plain(label): float(code) for code, label in enumerate(labels)}

    def code(cell: Any) -> float:
        cell = plain(cell)
        # A duration equals the number of its units; and Python ends where it hashes tuples within tuples within tuples.
        if not isinstance(cell, (str, Real, Decimal)) or isinstance(cell, np.timedelta64):
            raise _Improper
        return code_of[cell]

    places, cells = _different(column)
    read = _each(code, cells)
    return Cells(read.values[places], read.improper[places])


def category_texts(column: Any) -> tuple[NDArray[np.intp], Cells]:
    """Texts of categories (:func:`text_of`), some only once, and each cell's place; None if missing, "" if improper."""
    places, cells = _different(column)
    return places, _each(_text, cells, missing=None, improper="")


def texts(column: Any, read: Callable[[Any], str | None]) -> tuple[NDArray[np.intp], Cells]:
    """Cells of a column as ``read``, of which some are one cell's only once; and the place of every cell.

    None where a cell is missing or improper.
    """
    places, cells = _different(column)
    return places, _each(read, cells, missing=None, improper=None)


def carried(values: Any) -> NDArray[np.object_]:
    """Cells as texts that are read as the cells are, where nothing but text can travel; None for a missing value."""
    return np.asarray(_each(_carried, objects(values), missing=None, improper=_NOTHING).values)


def identifiers(column: Any) -> Cells:
    """Every cell of a column as the text of an id: a whole number, text, a UUID, an address or a date.

    Readers make numbers of some ids of a column and text of others, so all are text here: 7, "7" and " 7" are one id.
    Two persons who become one are protected together; one who became two would not be.
    """
    return _each(_id, objects(column).ravel(), missing=None, improper=None)


def plain_labels(column: NDArray[np.object_]) -> NDArray[np.object_]:
    """Labels as Python's own texts and numbers, to be compared with predictions; None for what is neither."""
    return np.asarray(_each(_label, column, missing=None, improper=None).values)


# Single cells


def is_gap(cell: Any) -> bool:
    """Whether it is None, NaN, or what pandas and NumPy have for them."""
    kind = type(cell)
    if cell is None or kind.__name__ in _GAPS:
        return True
    if issubclass(kind, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(cell))
    return issubclass(kind, (float, np.floating)) and math.isnan(cell)


def plain(cell: Any) -> Any:
    """A number, a truth value or text as Python's own, whatever its class makes of it; any other cell as it is."""
    kind = type(cell)
    if kind is str or kind is float or kind is int or kind is bool:
        return cell
    if issubclass(kind, (np.bool_, np.integer, np.floating)) and not issubclass(kind, np.timedelta64):
        return np.generic.item(cell)
    read = next((read for own, read in _READ_AS.items() if issubclass(kind, own)), None)
    return cell if read is None else read(cell)


_READ_AS: dict[type, Callable[[Any], Any]] = {
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
    bytes: lambda cell: bytes.__getitem__(cell, slice(None)),
}


def text_of(cell: Any) -> str | None:
    """A cell as text; empty for what cannot be a category, None for a missing value.

    Readers make numbers or truth values of a column or leave it text, by what its cells hold, so that one odd cell
    would change all texts. Hence 7, 7.0, "7", "07", "7.00" and b"7" are one category, True and "TRUE" another, and a
    number that is not the same for all readers (from 2^53 on, infinite, or of more than 12 digits) is none. Nothing
    else is done to a text: case, blanks and the ways to write an accent tell categories apart.
    """
    text, improper = _read(_text, None, None, cell)
    return "" if improper else text


def has_one_spelling(text: str) -> bool:
    """Whether no other text is this category."""
    return _NUMBER.fullmatch(text) is None and text not in _LOGICAL.values()


def seconds_of(cell: Any, form: str | None = None) -> float:
    """A date in seconds since 1970, NaN for a gap, infinity for what is no date; one with a zone is taken in UTC.

    >>> seconds_of("1970-01-02"), seconds_of("1970-01-01T01:00+01:00"), seconds_of("2.1.1970", "%d.%m.%Y")
    (86400.0, 0.0, 86400.0)
    >>> seconds_of("yesterday"), seconds_of(1995), seconds_of(None)
    (inf, inf, nan)
    """
    return float(_read(lambda held: _seconds(plain(held), form), math.nan, math.inf, cell)[0])


# The guard, and what stands in it


class _Improper(Exception):
    """A cell is none of what its column may hold."""


def _read(read: Callable[[Any], Any], missing: Any, improper: Any, cell: Any) -> tuple[Any, bool]:
    """A cell as its reader has it, or what stands for missing or improper ones; and whether it is improper."""
    try:
        return (missing if is_gap(cell) else plain(read(cell))), False  # text, too, may be of a class of its own
    except KeyboardInterrupt:  # the user's word
        raise
    except BaseException:  # a cell's own code may raise anything
        return improper, True


def _each(
    read: Callable[[Any], Any], cells: NDArray[np.object_], missing: Any = math.nan, improper: Any = math.inf
) -> Cells:
    """Objects, each read by itself in the guard; every different text once."""
    texts: dict[str, tuple[Any, bool]] = {}

    def guarded(cell: Any) -> tuple[Any, bool]:
        if type(cell) is not str:
            return _read(read, missing, improper, cell)
        if cell not in texts:
            texts[cell] = _read(read, missing, improper, cell)
        return texts[cell]

    with _QUIET, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a cell's own conversion may warn, and quote it
        values, wrong = np.frompyfunc(guarded, 1, 2)(cells)
    return Cells(np.asarray(values, dtype=object if missing is None else np.float64), np.asarray(wrong, dtype=bool))


def _different(column: Any) -> tuple[NDArray[np.intp], NDArray[np.object_]]:
    """The cells of a column as objects, and the place of each: every different text once where Arrow holds them."""
    kind = getattr(column, "dtype", None)
    stored = getattr(kind, "pyarrow_dtype", "string" if getattr(kind, "storage", "") == "pyarrow" else "")
    if str(stored) not in ("string", "large_string", "string_view"):  # in Python pandas takes some texts for equal
        cells = objects(column)
        return np.arange(len(cells)), cells
    places, different = column.factorize()
    return places, np.concatenate([objects(different), np.array([None])])  # what is missing has the place -1


def _none(shape: tuple[int, ...]) -> Mask:
    """No cell of so many: a False that stands for all of them."""
    return np.broadcast_to(np.False_, shape)


def _number(cell: Any) -> float:
    cell = plain(cell)
    if issubclass(type(cell), _NO_NUMBERS):
        raise _Improper
    return float(cell)


def _label(cell: Any) -> Any:
    cell = plain(cell)
    return cell if type(cell) in (str, int, float, bool, bytes) else _number(cell)


def _text(cell: Any) -> str | None:
    cell = plain(cell)
    if type(cell) is bytes:
        cell = cell.decode()
    if type(cell) is str:
        if not cell:
            return None
        text, bare = cell, cell.strip()
        if _NUMBER.fullmatch(bare):
            text = _number_as_text(float(bare))
        text = "" if _ENDLESS.fullmatch(bare) else _LOGICAL.get(bare.lower(), text)
    elif type(cell) is bool:
        text = str(cell)
    elif isinstance(cell, Decimal) and cell.is_nan():
        return None
    elif isinstance(cell, (Real, Decimal)) and not isinstance(cell, np.timedelta64):
        text = _number_as_text(float(cell))
    else:
        raise _Improper
    if not text or not text.isprintable() or len(text.encode()) > LONGEST_CATEGORY:
        raise _Improper
    return text


def whole_text(cell: Any) -> str | None:
    """Text as it stands, up to :data:`LONGEST_TEXT` characters; bytes as UTF-8, numbers and truths written out."""
    cell = plain(cell)
    if type(cell) is bytes:
        cell = cell.decode()
    if type(cell) is str:
        return cell[:LONGEST_TEXT].encode("utf-8", "replace").decode()
    if isinstance(cell, Decimal) and cell.is_nan():
        return None
    if type(cell) is bool or not isinstance(cell, (Real, Decimal)) or isinstance(cell, np.timedelta64):
        return _text(cell)
    return _number_as_text(float(cell)) or repr(float(cell))


def _number_as_text(number: float) -> str:
    """A number as text, empty where readers might differ in it."""
    if not abs(number) < 2.0**53:
        return ""
    if number.is_integer():
        return str(int(number))
    text = f"{number:.{_DIGITS}g}"
    return text if abs(float(text) - number) <= _ULPS * math.ulp(number) else ""


def _carried(cell: Any) -> str | None:
    cell = plain(cell)
    if type(cell) is str:
        return cell.encode("utf-8", "replace").decode()
    return repr(cell) if type(cell) in (bool, float) else _id(cell)


def _id(cell: Any) -> str | None:
    cell = plain(cell)
    if type(cell) is bytes:
        try:
            cell = cell.decode()
        except UnicodeDecodeError:  # to replace what is wrong, byte by byte, takes minutes where there is much
            return repr(cell)
    if type(cell) is str:
        return cell.strip() or None
    if isinstance(cell, UUID):
        return UUID.__str__(cell)
    if isinstance(cell, (IPv4Address, IPv6Address)):
        return str(cell)
    if isinstance(cell, np.datetime64):
        cell = microseconds(np.array([cell]))[0][0].item()
    if isinstance(cell, date):
        midnight = isinstance(cell, datetime) and cell.tzinfo is None and cell.time() == time()
        return date.isoformat(cell) if midnight or not isinstance(cell, datetime) else datetime.isoformat(cell, " ")
    if isinstance(cell, Decimal):
        if not cell.is_finite() or cell.adjusted() > _LONGEST_ID:
            raise _Improper
        return _whole(int(cell)) if cell == cell.to_integral_value() else str(cell)
    if not isinstance(cell, Integral) or isinstance(cell, (bool, np.timedelta64)):
        raise _Improper
    return _whole(int(cell))


def _whole(number: int) -> str:
    """A whole number in decimal, which ``str`` refuses to write where it is long."""
    if number.bit_length() > _LONGEST_ID * math.log2(10):
        raise _Improper
    return str(number) if number.bit_length() < _SHORT else format(Decimal(number), "f")


def _seconds(cell: Any, form: str | None) -> float:
    if isinstance(cell, np.datetime64):
        (seconds,), (far,) = seconds_of_instants(np.array([cell]))
        if far:
            raise _Improper
        return float(seconds)
    if type(cell) is bytes:
        cell = cell.decode()
    if type(cell) is str:
        cell = datetime.fromisoformat(cell.strip()) if form is None else datetime.strptime(cell.strip(), form)
    elif isinstance(cell, date) and not isinstance(cell, datetime):
        cell = datetime.combine(cell, time())
    if not isinstance(cell, datetime):
        raise _Improper
    naive = cell if cell.tzinfo is None else cell.astimezone(UTC).replace(tzinfo=None)
    naive = datetime(*naive.timetuple()[:6], naive.microsecond)  # without nanoseconds, as in columns of instants
    return float((naive - _START).total_seconds())
