"""Columns of a data file as numbers, text, dates or labels: what a type can hold, and each cell by public rules.

A gap is NaN or None. A cell that is none of the things that its column may hold is infinity.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ppdp.data.cells import codes, numbers, objects
from ppdp.data.rows import Array

_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"  # Python reads more: "1_0", "nan"


def fits(kind: Any, form: str) -> bool:
    """Whether a column of this type can hold what is declared."""
    from pyarrow import types

    if form == "date":
        return bool(is_text(kind) or types.is_timestamp(kind) or types.is_date(kind))
    if form == "text":
        return bool(is_text(kind) or types.is_integer(kind) or types.is_boolean(kind))
    return is_number(kind)


def is_boolean(kind: Any) -> bool:
    """Whether a type is that of truth values."""
    from pyarrow import types

    return bool(types.is_boolean(kind))


def may_be(kind: Any, labels: Sequence[Any]) -> bool:
    """Whether a column of this type can hold one of these categories, as it is read as text."""
    from pyarrow import types

    if types.is_boolean(kind):
        return not {"true", "false"}.isdisjoint(labels)
    return not (types.is_integer(kind) or types.is_floating(kind)) or any(
        re.fullmatch(r"-?[0-9]+", str(label).strip()) for label in labels
    )


def short(kind: Any) -> str:
    """A type without what is in it."""
    return str(kind).partition("<")[0]


def date_type(kind: Any) -> Any:
    """The type in which dates are handed on: text as it is."""
    import pyarrow as pa

    return pa.large_string() if kind is None or is_text(kind) else kind


def parsed(column: Any, form: str, missing: Sequence[Any]) -> Any:
    """A column as it is declared, with NaN, None or NaT for gaps."""
    import pandas as pd
    import pyarrow.compute as pc

    if form == "number":
        return numbers_of(column, missing)
    if form == "date" and not is_text(column.type):
        return pd.arrays.ArrowExtensionArray(column)
    text = text_of(column)
    return objects(pd.arrays.ArrowExtensionArray(pc.if_else(_gaps(text, missing), None, text)))


def are_words(classes: Sequence[Any] | None) -> bool:
    """Whether some of the classes are text."""
    return any(isinstance(one, str) for one in classes or ())


def labels_of(column: Any, classes: Sequence[Any] | None) -> Any:
    """Labels as numbers, or as text if one of the public classes is."""
    import pyarrow as pa

    if is_text(column.type):
        column = pa.chunked_array([_as_classes(text_of(column), classes or ())])
    return text_of(column).to_numpy(zero_copy_only=False) if are_words(classes) else numbers_of(column, ())


_TRUTH = {"0": ("false", "no", "n", "f", "0", "0.0"), "1": ("true", "yes", "y", "t", "1", "1.0")}


def _as_classes(text: Any, classes: Sequence[Any]) -> Any:
    """Labels as the classes are written, where both are words for true and false, in whatever form."""
    import pyarrow as pa
    import pyarrow.compute as pc

    truth = {word: digit for digit, words in _TRUTH.items() for word in words}
    forms = {truth.get(str(one).strip().lower()): str(one) for one in classes}
    if forms.keys() != {"0", "1"} or len(classes) != 2:
        return text
    words = pa.array([*truth], pa.large_string())
    written = pa.array([forms[digit] for digit in truth.values()], pa.large_string())
    read = pc.take(written, pc.index_in(pc.utf8_lower(text), value_set=words))
    return pc.coalesce(read, text)


def is_text(kind: Any) -> bool:
    """Whether a type is one of text, or of categories that are."""
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def is_whole(kind: Any) -> bool:
    """Whether a type is one of whole numbers."""
    from pyarrow import types

    return bool(types.is_integer(kind))


def is_number(kind: Any) -> bool:
    """Whether a type is one of numbers or truth values."""
    from pyarrow import types

    checks = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    return any(check(kind) for check in checks)


def text_of(column: Any) -> Any:
    """Cells without spaces around them, as one array of strings; what is not UTF-8 becomes U+FFFD, cell by cell."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    text = column.cast(pa.large_string()).combine_chunks()
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        cells = text.cast(pa.large_binary()).to_pylist()
        text = pa.array([cell and cell.decode(errors="replace") for cell in cells], pa.large_string())
    return pc.utf8_trim_whitespace(text)


def _gaps(text: Any, missing: Sequence[Any]) -> Any:
    """Where text is empty, absent, or says that it is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    words = ["", *(word.strip() for word in missing if isinstance(word, str))]
    return pc.or_(pc.is_null(text), pc.fill_null(pc.is_in(text, value_set=pa.array(words, pa.large_string())), False))


def numbers_of(column: Any, missing: Sequence[Any]) -> Array:
    """Numbers, with NaN for gaps; the words true and false are 1 and 0, as in a column of truth values."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

    if is_text(column.type):
        text = text_of(column)
        gaps = _gaps(text, missing)
        for word, digit in (("true", "1"), ("false", "0")):
            text = pc.if_else(pc.fill_null(pc.equal(pc.utf8_lower(text), word), False), digit, text)
        proper = pc.fill_null(pc.match_substring_regex(text, _NUMBER), False)
        readable = pc.if_else(gaps, "nan", pc.if_else(proper, text, "inf"))
        values = numbers(pd.arrays.ArrowExtensionArray(readable)).values
    elif is_number(column.type):
        values = np.array(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)
    else:
        values = np.full(len(column), np.inf)
    markers = [float(marker) for marker in missing if not isinstance(marker, str)]
    values[np.isin(values, markers)] = np.nan
    return values


def ids_of(column: Any, missing: Sequence[Any]) -> Any:
    """Ids as they are written, without spaces around them; gaps are none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if is_text(column.type):
        text = text_of(column)
        return pc.if_else(_gaps(text, [one if isinstance(one, str) else f"{one:g}" for one in missing]), None, text)
    room = np.iinfo(column.type.to_pandas_dtype())
    markers = [
        int(one) for one in missing if not isinstance(one, str) and room.min <= one <= room.max and one == int(one)
    ]
    return pc.if_else(pc.is_in(column, value_set=pa.array(markers, column.type)), None, column).combine_chunks()


def codes_of(column: Any, labels: Sequence[str], missing: Sequence[Any]) -> Array:
    """Position of each cell among public categories."""
    import pandas as pd

    text = text_of(column)
    places = codes(pd.arrays.ArrowExtensionArray(text), [label.strip() for label in labels]).values
    return np.where(np.isinf(places) & np.asarray(_gaps(text, missing)), np.nan, places)
