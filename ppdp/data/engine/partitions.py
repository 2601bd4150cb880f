"""Partitions of frames and datasets as tables of one schema, though their cells say of what type some are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ppdp.data.cells import carried
from ppdp.data.column_types import kind_of
from ppdp.exceptions import DomainMismatch, InvalidInput


def schema_of(kinds: Iterable[tuple[str, Any]]) -> Any:
    """Names and types of the columns of a frame, as Arrow has them; with room for any number of categories."""
    import pandas as pd
    import pyarrow as pa

    form = _with_texts(pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in kinds}))
    try:
        schema = pa.Schema.from_pandas(form, preserve_index=False)
    except (pa.ArrowException, TypeError):
        fix = "frame.astype(...) to numbers, text, categories or dates; sparse columns to dense ones."
        raise InvalidInput("some column has a type that Arrow does not have.", fix=fix) from None
    return pa.schema([(field.name, _roomy(field.type)) for field in schema])


def untyped(kinds: Iterable[tuple[str, Any]]) -> tuple[str, ...]:
    """Columns of objects, whose type only their cells say."""
    return tuple(name for name, kind in kinds if str(kind) == "object")


def common(schemas: Sequence[Any]) -> Any:
    """The schema of all parts of a dataset; None if they differ.

    Of items Ray finds the types part by part: a part that holds nothing but missing values has no type, and one of
    whole numbers has another than one of fractions.
    """
    import pyarrow as pa

    if len({tuple(schema.names) for schema in schemas}) != 1:
        return None
    fields = []
    for name in schemas[0].names:
        kinds = {_roomy(schema.field(name).type) for schema in schemas}
        kinds = kinds - {pa.null()} or kinds
        kinds = {pa.float64()} if kinds == {pa.int64(), pa.float64()} else kinds
        if len(kinds) > 1:
            return None
        fields.append((name, kinds.pop()))
    return pa.schema(fields)


def table_of(part: Any, first: int, last: int, schema: Any) -> Any:
    """Some rows of a frame of pandas, or of a table, as a table of this schema."""
    import pyarrow as pa

    try:
        if hasattr(part, "iloc"):
            return _table(_with_texts(part.iloc[first:last][schema.names], schema), schema)
        return part.slice(first, last - first).select(schema.names).cast(schema, safe=False)
    except (pa.ArrowException, KeyError, TypeError, ValueError):
        pass
    what = "some partition lacks a column, or has it with another type than the frame says."
    raise DomainMismatch(what, fix="give all partitions the types of the frame.")


def _roomy(kind: Any) -> Any:
    """The same type; of categories one that holds any number of them: how many a partition has, its cells say."""
    import pyarrow as pa

    return pa.dictionary(pa.int32(), kind.value_type, kind.ordered) if pa.types.is_dictionary(kind) else kind


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
        places, texts = pd.factorize(carried(column.categories))
        codes = np.append(places, -1)[column.codes]  # what is missing has the code -1
        frame = frame.assign(**{name: pd.Categorical.from_codes(codes, pd.Index(texts, dtype="string"))})
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
