"""Columns that a function chooses, such as a ``make_column_selector``, as far as public names and types tell them.

A function sees made-up frames of these names and types alone, and must take the same columns of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import numpy as np
from sklearn.compose import make_column_selector

from ppdp.core.boundary import suppressed
from ppdp.core.closure_inspection import refuse_captured
from ppdp.core.domain import Domain
from ppdp.data.column_types import is_of_a_library
from ppdp.data.deferred_input import DeferredTable
from ppdp.data.frames import named, readable
from ppdp.data.validation import table_of
from ppdp.exceptions import InvalidParameter
from ppdp.transformers.columns.column_group import ColumnGroup
from ppdp.transformers.rowwise.probe import quiet

NUMBERS, LABELS = ("float64", "int64"), ("object", "category", "string")
"""Types that columns may have where none is known."""
OTHERS = ("bool", "datetime64[ns]", "timedelta64[ns]", "datetime64[ns, UTC]")
"""Types that columns may have where not even a range or labels are declared."""


def is_listed(columns: Any) -> bool:
    """Whether columns are given by a list of names."""
    return isinstance(columns, (list, tuple)) and len(columns) > 0 and all(isinstance(one, str) for one in columns)


def frame_of_types(types: Any) -> Any:
    """An empty frame with columns of these names and types, none of which holds a value; None for none."""
    if types is None:
        return None
    import pandas as pd

    try:
        if hasattr(types, "empty_table"):
            return types.empty_table().to_pandas(ignore_metadata=True)
        kinds = {name: pd.api.types.pandas_dtype(kind) for name, kind in types.items()}
        empty = {kind: pd.Series(dtype=_bare(kind)) for kind in set(kinds.values())}
        return pd.DataFrame({name: empty[kind] for name, kind in kinds.items()})
    except Exception:  # whatever else was passed
        pass
    what = f"types must be those of columns, got a value of type {type(types).__name__}."
    raise InvalidParameter(what, fix="types=X.dtypes of a pandas frame.")


def frames_of(table: Any) -> list[Any]:
    """An empty frame of the names and types of a table; of a domain, which knows names alone, one for each type.

    No cell is looked at. There is none where columns have no names.
    """
    if table is None or isinstance(table, Domain):
        names = () if table is None else table.feature_names or ()
        return [frame_of_types(dict.fromkeys(names, kind)) for kind in (*NUMBERS, *LABELS, *OTHERS)] if names else []
    opened = table_of(table)
    if not isinstance(opened, DeferredTable) and named(opened) is None:
        return []
    return [frame_of_types(opened.dtypes if hasattr(table, "iloc") else _types_of(opened, table))]


def _types_of(opened: Any, table: Any) -> dict[str, Any]:
    """Types in pandas of a table of Arrow or polars by its schema: an empty slice keeps the labels of categories."""
    import pyarrow as pa

    empty = opened.empty_table if isinstance(opened, DeferredTable) else None
    if empty is None:
        schema = getattr(table, "schema", None)
        empty = pa.Table.from_batches([], schema) if isinstance(schema, pa.Schema) else table.clear()
    with suppressed():
        return dict(readable(empty).dtypes.items())
    kinds = dict.fromkeys(getattr(empty, "column_names", empty.columns), np.dtype(object))
    for name in kinds:  # pandas has no type for some of them
        with suppressed():
            kinds[name] = readable(empty.select([name])).dtypes[name]
    return kinds


def _bare(kind: Any) -> Any:
    """A type without the values that it may hold, as one of categories does."""
    if not is_of_a_library(kind):
        return object
    if hasattr(kind, "fill_value"):
        return type(kind)(kind.subtype)
    return "category" if hasattr(kind, "categories") else kind


def chosen_columns(part: str, function: Any, frames: list[Any]) -> list[Any]:
    """The columns of part of a table that a function takes, if public names and types are all that it goes by."""
    refuse_captured(function, part, argued=False)
    if not frames:
        what = "a function chooses its columns, whose names are not known here."
        fix = "a list, such as ['age', 'dose']; or a frame for fit, of which all names are text, "
        fix += "X.rename(columns=str); Domain(feature_names=(...), ...) for a plan."
        raise InvalidParameter(what, stage=part, fix=fix, parameter="transformers")
    selector = type(function) is make_column_selector
    typed = selector and (function.dtype_include is not None or function.dtype_exclude is not None)
    told = len(frames) == 1
    chosen = None if typed and not told else by_function(function, [frames])
    if chosen or (chosen is not None and isinstance(function, make_column_selector)):
        return chosen
    what = "a function chooses its columns by more than names and types, or takes none; what cells hold is private."
    fix = "a make_column_selector, or a list of names, such as ['age', 'dose']."
    if not told and (typed or not selector):
        what = "a function chooses its columns by their types, which a plan does not know."
        fix = "what it gives for a table, a list: selector(X); or fit(X, y), which knows them."
    elif selector:
        what = "its make_column_selector fails, by its pattern or by types that X.select_dtypes does not take."
        fix = "types such as dtype_include='number', a regular expression such as pattern='^num', or a list of names."
    raise InvalidParameter(what, stage=part, fix=fix, parameter="transformers")


def as_names(columns: Any, names: Any) -> Any:
    """Positions, masks and slices as names, where names are known; arrays and pandas' own lists as lists."""
    columns = columns.tolist() if hasattr(columns, "tolist") else columns
    if names is None or columns is None or isinstance(columns, str) or is_listed(columns):
        return columns
    return [names[i] for i in ColumnGroup(columns).positions(names, len(names))]


def by_function(function: Callable[..., Any], forms: list[list[Any]]) -> list[Any] | None:
    """What a function takes of frames of all these types, whatever their cells hold."""
    found: dict[tuple[Any, ...], bool] = {}
    for alike in forms:
        try:
            taken = [_taken(function, frame) for form in alike for frame in _shown(function, form)]
        except (Exception, SystemExit):  # a user's function may raise anything
            return None
        if len({*map(frozenset, taken)}) > 1:
            return None
        found[taken[0]] = 0 < len(taken[0]) < alike[0].shape[1]
    # Of labels one type is asked for, or excluded, and others are none of it, or all.
    told = [one for one, some in found.items() if some or len(found) == 1]
    return list(told[0]) if len(told) == 1 else None


def _taken(function: Callable[..., Any], frame: Any) -> tuple[Any, ...]:
    with quiet():
        # Copies, so that an object with a memory stays as it is, and so does the frame.
        columns = as_names(deepcopy(function)(frame.copy()), list(frame))
    return (columns,) if isinstance(columns, str) else tuple(columns)


def _shown(function: Any, form: Any) -> Iterator[Any]:
    """The frames that a function must take the same columns of: scikit-learn's selector looks at no cell."""
    yield form
    if type(function) is not make_column_selector:
        yield from _made_up(form)


def _made_up(form: Any) -> Iterator[Any]:
    """Frames of the same names and types with many values, with positive ones alone, and with gaps and zeros."""
    import pandas as pd

    many = 1e6 * np.arange(-32.0, 32.0)
    for cells in (many, np.abs(many) + 1e6, np.where(many < 0, np.nan, 0.0)):
        made = {kind: _cells(cells, kind) for kind in set(form.dtypes)}
        yield pd.DataFrame({name: made[kind] for name, kind in form.dtypes.items()})


def _cells(cells: Any, kind: Any) -> Any:
    """A column of a type that holds these numbers, or their words, or zeros; else of nothing but gaps."""
    import pandas as pd

    for values in (cells, cells.astype(str), np.nan_to_num(cells)):
        try:
            return pd.Series(values).astype(kind)
        except Exception:  # a type may refuse whatever it does not hold
            continue
    return pd.Series(dtype=kind).reindex(range(len(cells)))
