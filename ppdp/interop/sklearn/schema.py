"""The columns that a ``ColumnTransformer`` takes, by name, as far as public names and types tell them.

A function sees made-up frames of these names and types alone, and must take the same columns of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer

from ppdp.core.checks import shown
from ppdp.core.closure_inspection import refuse_captured
from ppdp.exceptions import InvalidParameter
from ppdp.interop.sklearn.declared_facts import DeclaredFacts
from ppdp.interop.sklearn.leaks import quiet, root_of
from ppdp.interop.sklearn.steps import Step, own_name
from ppdp.transformers.columns.column_group import ColumnGroup

_NUMBERS, _LABELS = ("float64", "int64"), ("object", "category", "string")


def is_listed(columns: Any) -> bool:
    """Whether columns are given by a list of names."""
    return isinstance(columns, (list, tuple)) and len(columns) > 0 and all(isinstance(one, str) for one in columns)


def frame_of_types(types: Any) -> Any:
    """An empty frame with columns of these names and types; None for none."""
    if types is None:
        return None
    import pandas as pd

    try:
        if hasattr(types, "empty_table"):
            return types.empty_table().to_pandas(ignore_metadata=True)
        return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in types.items()})
    except Exception:  # whatever else was passed
        pass
    raise InvalidParameter(
        f"types must be those of columns, got {shown(types)}.", fix="types=X.dtypes of a pandas frame."
    )


def columns_taken(step: Step, name: str, columns: Any, facts: DeclaredFacts) -> Any:
    """The columns of a part: names where these are known, else what was given."""
    if callable(columns):
        return _chosen(step, name, columns, facts)
    return _named(columns, facts.domain.feature_names if facts.types is None else list(facts.types))


def _named(columns: Any, names: Any) -> Any:
    """Positions, masks and slices as names, where names are known; arrays and pandas' own lists as lists."""
    columns = columns.tolist() if hasattr(columns, "tolist") else columns
    if names is None or columns is None or isinstance(columns, str) or is_listed(columns):
        return columns
    return [names[i] for i in ColumnGroup(columns).positions(names, len(names))]


def with_picked(steps: list[Step], facts: DeclaredFacts) -> list[Step]:
    """With a ``ColumnTransformer`` in place of what only picks columns of a frame, at the entrance."""
    names = picked_columns(steps[0], facts) if steps else None
    if names is None:
        return steps
    columns = ColumnTransformer([(steps[0].name, "passthrough", names)], verbose_feature_names_out=False)
    return [Step(steps[0].name, columns, [PICKS]), *steps[1:]]


PICKS = "it picks columns of a frame, and leaves them as they are"


def picked_columns(step: Step, facts: DeclaredFacts) -> list[Any] | None:
    """The columns that a step leaves as they are, and no others; None if it does anything else.

    It is a function, or of a class of the user's own that transforms before it has seen any rows.
    """
    function: Any = step.given()["func"] if step.kind == "FunctionTransformer" else None
    own = not step.kind and root_of(step.estimator) != "ppdp" and hasattr(step.estimator, "transform")
    if not own and (not callable(function) or isinstance(function, np.ufunc) or step.name in facts.functions):
        return None

    def picked(frame: Any) -> list[Any]:
        if own:
            left = clone(step.estimator).transform(frame.copy())
        else:
            left = deepcopy(function)(frame.copy(), **(step.given()["kw_args"] or {}))
        names = [left.name] if left.ndim == 1 else list(left)
        if not left.equals(frame[names[0] if left.ndim == 1 else names]):
            raise ValueError
        return names

    names = _by_function(picked, _forms(facts))
    if names and not own:
        refuse_captured(partial(function, **(step.given()["kw_args"] or {})), step.name)
    return names or None


def _chosen(step: Step, name: str, function: Any, facts: DeclaredFacts) -> list[Any]:
    """The columns that a function takes, if public names and types are all that it goes by."""
    refuse_captured(function, step.name)
    form, names = facts.types, facts.domain.feature_names
    if own_name(function) != "make_column_selector":
        chosen = _by_function(function, _forms(facts))
    else:
        if form is None and names is not None and function.dtype_include is None and function.dtype_exclude is None:
            form = frame_of_types(dict.fromkeys(names, float))
        with step.reading():
            chosen = _by_declared(function, facts) if form is None else list(function(form))
    if chosen is None:
        step.refuse(
            f"the columns of {name!r} are chosen by a function of the data.",
            "name them in a list, for example ['age', 'dose']; a make_column_selector, or a function of names and "
            f"types alone, chooses by what is declared by name, {facts.call}ranges={{'column': (low, high), ...}}, "
            "...), or by types=X.dtypes.",
        )
    if form is None:
        step.changed.append(
            f"{name!r} takes {', '.join(map(repr, chosen)) or 'no column'}: its function chose among the columns "
            "that are declared, ranges for numbers and categories for text; others are left out"
        )
    return chosen


def _declared(facts: DeclaredFacts) -> list[Mapping[str, Any]] | None:
    """Columns of numbers and columns of labels, as far as they are declared; None if they are not all told by name."""
    kinds = [facts.ranges or {}, facts.categories or {}]
    return kinds if any(kinds) and all(isinstance(one, Mapping) for one in kinds) else None


def _by_declared(selector: Any, facts: DeclaredFacts) -> list[Any] | None:
    """What a selector takes of the columns that are declared."""
    chosen: list[Any] = []
    for declared, types in zip(_declared(facts) or (), (_NUMBERS, _LABELS)):
        takes = (
            [set(selector(frame_of_types(dict.fromkeys(declared, kind)))) for kind in types] if declared else [set()]
        )
        # A type that is asked for is any of its kind, and one that is excluded must be none of them.
        taken = set.union(*takes) if selector.dtype_include is not None else set.intersection(*takes)
        chosen += [column for column in declared if column in taken and column not in chosen]
    return None if _declared(facts) is None else chosen


def _forms(facts: DeclaredFacts) -> list[list[Any]]:
    """Empty frames of the types that columns may have, for each type of labels those of numbers."""
    if facts.types is not None:
        return [[facts.types]]
    names, declared = facts.domain.feature_names, _declared(facts)
    if names is not None:
        return [[frame_of_types(dict.fromkeys(names, kind)) for kind in (*_NUMBERS, *_LABELS)]]
    numbers, labels = declared or ({}, {})
    by_label = [
        [frame_of_types({**dict.fromkeys(numbers, kind), **dict.fromkeys(labels, label)}) for kind in _NUMBERS]
        for label in (_LABELS if declared is not None else ())
    ]
    return [[*alike, alike[0].iloc[:, ::-1]] for alike in by_label]  # their order is not declared


def _by_function(function: Callable[..., Any], forms: list[list[Any]]) -> list[Any] | None:
    """What a function takes of frames of all these types, whatever their cells hold."""
    found: dict[tuple[Any, ...], bool] = {}
    for alike in forms:
        try:
            taken = [_taken(function, frame) for form in alike for frame in (form, *_made_up(form))]
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
        columns = _named(deepcopy(function)(frame.copy()), list(frame))
    return (columns,) if isinstance(columns, str) else tuple(columns)


def _made_up(form: Any) -> Iterator[Any]:
    """Frames of the same names and types with many values, with positive ones alone, and with gaps and zeros."""
    import pandas as pd

    many = 1e6 * np.arange(-32.0, 32.0)
    for cells in (many, np.abs(many) + 1e6, np.where(many < 0, np.nan, 0.0)):
        yield pd.DataFrame({name: _cells(cells, form[name].dtype) for name in form})


def _cells(cells: Any, kind: Any) -> Any:
    """A column of a type that holds these numbers, or their words, or zeros; else of nothing but gaps."""
    import pandas as pd

    for values in (cells, cells.astype(str), np.nan_to_num(cells)):
        try:
            return pd.Series(values).astype(kind)
        except Exception:  # a type may refuse whatever it does not hold
            continue
    return pd.Series(dtype=kind).reindex(range(len(cells)))
