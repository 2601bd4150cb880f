"""The columns that a ``ColumnTransformer`` of scikit-learn's takes, by name, as far as what is declared tells them."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer

from ppdp.core.closure_inspection import refuse_captured
from ppdp.interop.sklearn.declared_facts import DeclaredFacts
from ppdp.interop.sklearn.leaks import root_of
from ppdp.interop.sklearn.steps import Step, own_name
from ppdp.transformers.columns.column_choice import LABELS, NUMBERS, as_names, by_function, frame_of_types


def columns_taken(step: Step, name: str, columns: Any, facts: DeclaredFacts) -> Any:
    """The columns of a part: names where these are known, else what was given."""
    if callable(columns):
        return _chosen(step, name, columns, facts)
    return as_names(columns, facts.domain.feature_names if facts.types is None else list(facts.types))


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

    names = by_function(picked, _forms(facts))
    if names and not own:
        refuse_captured(partial(function, **(step.given()["kw_args"] or {})), step.name)
    return names or None


def _chosen(step: Step, name: str, function: Any, facts: DeclaredFacts) -> list[Any]:
    """The columns that a function takes, if public names and types are all that it goes by."""
    refuse_captured(function, step.name, argued=False)
    form, names = facts.types, facts.domain.feature_names
    if own_name(function) != "make_column_selector":
        chosen = by_function(function, _forms(facts))
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
    for declared, types in zip(_declared(facts) or (), (NUMBERS, LABELS)):
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
        return [[frame_of_types(dict.fromkeys(names, kind)) for kind in (*NUMBERS, *LABELS)]]
    numbers, labels = declared or ({}, {})
    by_label = [
        [frame_of_types({**dict.fromkeys(numbers, kind), **dict.fromkeys(labels, label)}) for kind in NUMBERS]
        for label in (LABELS if declared is not None else ())
    ]
    return [[*alike, alike[0].iloc[:, ::-1]] for alike in by_label]  # their order is not declared
