"""Partitions of frames and datasets as tables of one schema, though their cells say of what type some are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ppdp.data.cells import carried, numbers, objects, plain_labels
from ppdp.data.column_types import kind_of, microseconds
from ppdp.data.frames import of_arrow
from ppdp.exceptions import DomainMismatch, InvalidInput

_PICKLED = "pickled_object"  # in the name of Ray's type of objects


def schema_of(kinds: Iterable[tuple[str, Any]]) -> Any:
    """Names and types of the columns of a frame, as Arrow has them; with room for any number of categories."""
    import pandas as pd
    import pyarrow as pa

    try:
        form = _with_texts(pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in kinds}))
        schema = pa.Schema.from_pandas(form, preserve_index=False)
    except (pa.ArrowException, TypeError):
        fix = "frame.astype(...) to numbers, text, categories or dates; sparse columns to dense ones."
        raise InvalidInput("some column has a type that Arrow does not have.", fix=fix) from None
    return pa.schema([(field.name, roomy(field.type)) for field in schema])


def untyped(kinds: Iterable[tuple[str, Any]]) -> tuple[str, ...]:
    """Columns of objects, whose type only their cells say."""
    return tuple(name for name, kind in kinds if str(kind) == "object")


def form_of(part: Any) -> tuple[Any, Sequence[str]]:
    """Names and types of the columns of a frame of pandas or a table of Arrow, and which of them hold objects."""
    import pyarrow as pa

    if hasattr(part, "iloc"):
        return schema_of(part.dtypes.items()), untyped(part.dtypes.items())
    objects = [field.name for field in part.schema if _PICKLED in str(field.type)]
    return pa.schema([(one.name, pa.null() if one.name in objects else one.type) for one in part.schema]), objects


def common(forms: Sequence[tuple[Any, Sequence[str]]], given: Any = None) -> Any:
    """The schema of all parts of a dataset, or of a frame that says which one is ``given``; None if they differ.

    Libraries find the types part by part, by the cells there: whole numbers have another type than fractions, instants
    one by how fine they are, and missing values alone, or beside texts, none. Columns that hold objects in every part
    have the type of nothing.
    """
    import pyarrow as pa

    first = given or forms[0][0]
    schemas = {first, *(schema for schema, _ in forms)}  # mostly one
    names = {tuple(schema.names) for schema in schemas}
    if not all(set(first.names) <= set(some) for some in names) or (given is None and len(names) != 1):
        return None
    mixed = {name for _, objects in forms for name in objects}
    fields = []
    for own in first:
        held = {roomy(schema.field(own.name).type) for schema in schemas}
        kind = _widest(held, objects=own.name in mixed)
        if given is None and own.name in mixed and sum(one.field(own.name).type != pa.null() for one, _ in forms) < 2:
            kind = None  # in a part of one value and gaps this cell would say how objects are read
        exact = any(pa.types.is_temporal(one) or pa.types.is_decimal(one) for one in held)
        if exact and (kind is None or own.name in mixed):
            return None  # of dates for one cell all times of a part would be cut
        if given is not None and kind is None:  # each cell as the frame says
            kind = _widest({_values(own.type)}, objects=True)
            if kind is None or not all(_is_read(one, kind) for one in held):
                return None
        if kind is None and own.name not in mixed:
            return None
        fields.append((own.name, pa.null() if kind is None else kind))  # a type of no fields is false
    return pa.schema(fields)


def objects_in(schema: Any, forms: Sequence[tuple[Any, Sequence[str]]]) -> tuple[str, ...]:
    """Columns that hold objects, and for which no part has a type as which they are read."""
    import pyarrow as pa

    found = {name for _, objects in forms for name in objects}
    return tuple(one.name for one in schema if one.name in found and one.type == pa.null())


def _is_read(own: Any, kind: Any) -> bool:
    """Whether a part of this type has every cell as objects have it that are read as another."""
    import pyarrow.types as of

    own = _values(own)
    if of.is_large_string(kind) or of.is_null(kind):  # of numbers "17" would be "17.0" beside a missing value
        return bool(of.is_string(own) or of.is_large_string(own) or of.is_null(own))
    return not of.is_dictionary(own) if of.is_floating(kind) else own == kind or of.is_null(own)


def _values(kind: Any) -> Any:
    """The type of categories that are texts or numbers, which are read as if they stood there; any other as it is."""
    import pyarrow.types as of

    own = kind.value_type if of.is_dictionary(kind) else kind
    plain = of.is_string(own) or of.is_large_string(own) or of.is_integer(own) or of.is_float64(own)
    return own if plain else kind


def _widest(kinds: set[Any], *, objects: bool) -> Any:
    """The type as which all cells of these are read, and objects; None if there is none."""
    import pyarrow as pa
    import pyarrow.types as of

    typed = kinds - {pa.null()}
    zones = {getattr(kind, "tz", None) for kind in typed}

    def all_are(*tests: Any) -> bool:
        return all(any(test(kind) for test in tests) for kind in typed)

    if len(typed) < 1 + (not objects):
        return next(iter(typed or kinds))
    if all_are(of.is_timestamp) and len(zones) == 1 and not objects:
        return pa.timestamp("us", *zones)
    if all_are(of.is_integer) and not objects and pa.uint64() not in typed:
        return pa.int64()
    typed = typed if objects else set(map(_values, typed))
    if all_are(of.is_boolean):
        return pa.bool_()
    if all_are(of.is_string, of.is_large_string):
        return pa.large_string()
    if all_are(of.is_integer, of.is_float64):  # a fraction of fewer bits equals another number here than there
        return pa.float64()
    return None


def table_of(part: Any, first: int, last: int, schema: Any) -> Any:
    """Some rows of a frame of pandas, or of a table, as a table of this schema."""
    import pyarrow as pa

    try:
        if hasattr(part, "iloc"):
            frame = _with_texts(part.iloc[first:last][schema.names], schema)
            for own, field in zip(schema_of(frame.dtypes.items()), schema):
                if own != field and (read := _read_as(field.type, frame[field.name], own.type)) is not None:
                    frame = frame.assign(**{field.name: of_arrow(read)})
            return _table(frame, schema)
        table = part.slice(first, last - first).select(schema.names)
        for place, field in enumerate(schema):
            own = table.column(place)
            if own.type != field.type and (read := _read_as(field.type, of_arrow(own), own.type)) is not None:
                table = table.set_column(place, field, read)
        return table.cast(schema, safe=False)
    except (pa.ArrowException, KeyError, TypeError, ValueError):
        pass
    what = "some partition lacks a column, or has it with another type than the frame says."
    raise DomainMismatch(what, fix="give all partitions the types of the frame.")


def _read_as(kind: Any, column: Any, own: Any) -> Any:
    """A column as one of another type, each cell by itself; None if Arrow makes it so."""
    import pyarrow as pa
    import pyarrow.types as of

    if of.is_dictionary(own) and of.is_dictionary(kind):
        return None
    if kind == pa.bool_():  # what is none is missing
        return pa.array([cell if type(cell) is bool else None for cell in plain_labels(objects(column))], kind)
    if kind == pa.float64():
        return pa.array(numbers(column).values, kind, from_pandas=True)
    if of.is_timestamp(kind) and of.is_timestamp(own):  # the earlier microsecond, as everywhere, also before 1970
        instants = pa.array(column, own)
        none = np.array(instants.is_null())
        held, far = microseconds(np.array(instants.cast(pa.int64()).fill_null(0)).astype(f"datetime64[{own.unit}]"))
        return pa.array(held.astype(np.int64), mask=none | far).cast(kind)
    texts = of.is_string(own) or of.is_large_string(own)
    return pa.array(carried(column), kind) if kind == pa.large_string() and not texts else None


def roomy(kind: Any, *, ordered: bool = True) -> Any:
    """The same type; of categories one that holds any number of them: how many a part has, its cells say."""
    import pyarrow as pa

    if not pa.types.is_dictionary(kind):
        return kind
    return pa.dictionary(pa.int32(), kind.value_type, ordered and kind.ordered)


def typed(schema: Any, files: Sequence[Any]) -> Any:
    """The same columns, with the type in any file where the first one has none: all values may be missing there."""
    import pyarrow as pa

    for place, field in enumerate(schema):
        if field.type == pa.null():
            known = (one.physical_schema for one in files)
            held = (own.field(field.name).type for own in known if own.get_field_index(field.name) >= 0)
            schema = schema.set(place, field.with_type(next((kind for kind in held if kind != pa.null()), field.type)))
    return schema


def is_empty(there: Any, kind: Any) -> bool:
    """Whether a column has no value in a file, and becomes one of a type: Arrow makes no views of lists of it."""
    import pyarrow as pa

    try:
        return there == pa.null() and bool(pa.nulls(0).cast(kind).type == kind)
    except pa.ArrowNotImplementedError:
        return False


def check_nested(schema: Any, *, written: bool = False) -> None:
    """Refuse categories within lists, which Arrow cannot join: one that another part lacks would stop a fit.

    Where rows are ``written`` down, seconds within lists as well, of which Parquet refuses the farthest.
    """
    import pyarrow as pa

    refused = {"dictionary<": ("categories", "text there, as by polars' cast(pl.List(pl.String)).")}
    if written:
        refused["timestamp[s"] = "instants in seconds", "microseconds there."
    for field in schema:
        if not (pa.types.is_dictionary(field.type) or pa.types.is_timestamp(field.type)):
            for words, (what, fix) in refused.items():
                if words in str(field.type):
                    raise InvalidInput(f"{field.name!r} holds {what} within lists or structures.", fix=fix)


def _with_texts(frame: Any, schema: Any = None) -> Any:
    """A frame with texts for categories that are objects, of which Arrow takes one type alone, or texts in a schema.

    Of what type a partition's categories are, its cells say.
    """
    import pandas as pd

    def are_texts(name: str, kind: Any) -> bool:
        if schema is None:
            return kind_of(kind.categories.dtype) in ("text", "unknown")
        return "string" in str(getattr(schema.field(name).type, "value_type", ""))

    mixed = {name: kind for name, kind in frame.dtypes.items() if getattr(kind, "categories", None) is not None}
    for name in (name for name, kind in mixed.items() if are_texts(name, kind)):
        column = frame[name].array
        known: dict[str | None, int] = {None: -1}  # pandas' own table of texts takes some different ones for equal
        places = [known.setdefault(text, len(known) - 1) for text in carried(column.categories)]
        codes = np.array([*places, -1])[column.codes]  # what is missing has the code -1
        frame = frame.assign(**{name: pd.Categorical.from_codes(codes, pd.Index([*known][1:], dtype="string"))})
    return frame


def _table(frame: Any, schema: Any) -> Any:
    """A frame as a table of Arrow, whose text has no halves of characters."""
    import pyarrow as pa

    try:
        return pa.Table.from_pandas(frame, schema, preserve_index=False)
    except UnicodeError:
        whole = frame.copy(deep=False)
        for name in frame.select_dtypes("string"):
            whole[name] = frame[name].astype(object).str.encode("utf-8", "replace").str.decode("utf-8")
        return pa.Table.from_pandas(whole, schema, preserve_index=False)
