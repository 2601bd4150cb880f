"""Steps of a pipeline as those of its plan, in which a ``ColumnTransformer`` is several stages, and back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from ppdp.exceptions import InvalidParameter
from ppdp.transformers.columns.column_parts import Named
from ppdp.transformers.columns.column_transformer import ColumnTransformer


def _side_by_side(steps: Any) -> bool:
    """Whether there is a ``ColumnTransformer`` among the steps."""
    pairs = isinstance(steps, (list, tuple)) and all(isinstance(one, (list, tuple)) and len(one) == 2 for one in steps)
    return pairs and any(isinstance(step, ColumnTransformer) for _, step in steps)


def by_function(steps: Any) -> bool:
    """Whether a function chooses columns of a ``ColumnTransformer``."""
    return _side_by_side(steps) and any(isinstance(step, ColumnTransformer) and step.by_function for _, step in steps)


def with_names(steps: Any, table: Any) -> Any:
    """The steps of a pipeline with names in place of functions that choose columns.

    ``table`` tells names and types of the columns that come in; a domain names alone. Behind another step both would
    follow from the rows.
    """
    if not by_function(steps):
        return steps
    late = next((name for name, step in steps[1:] if isinstance(step, ColumnTransformer) and step.by_function), None)
    if late is not None:
        what = "a function chooses its columns, and behind another step these have no types."
        raise InvalidParameter(what, stage=str(late), fix="a list of names or positions, or this step first.")
    (name, step), *others = steps
    return [(name, step.with_names(table)), *others]


def spread(steps: Any) -> Any:
    """The steps of a pipeline, where each ``ColumnTransformer`` is the stages that it is in a plan."""
    if not _side_by_side(steps):
        return steps
    found: list[Named] = []
    for name, step in steps:
        inner = isinstance(step, ColumnTransformer)
        found += step.planned_steps(str(name), first=not found) if inner else [(name, step)]
    return found


def origins(steps: Sequence[Named]) -> dict[str, str]:
    """Of which ``ColumnTransformer`` a stage of a plan is, by names."""
    return {
        own: name
        for position, (name, step) in enumerate(steps)
        if isinstance(step, ColumnTransformer)
        for own in step.planned_names(name, first=position == 0)
    }


def gathered(steps: Sequence[Named], twins: Sequence[Named]) -> list[Named]:
    """Released twins of such stages as steps of the pipeline: those of one ``ColumnTransformer`` are one again."""
    own, known = origins(steps), dict(steps)
    found: list[Named] = []
    for name, parts in groupby(twins, key=lambda twin: str(own.get(twin[0], twin[0]))):
        step, held = known.get(name), list(parts)
        found += [(name, step.held_by(held))] if isinstance(step, ColumnTransformer) else held
    return found
