"""Steps of a pipeline as those of its plan, in which a ``ColumnTransformer`` is several stages, and back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from ppdp.transformers.columns.column_transformer import ColumnTransformer, Named


def spread(steps: Any) -> Any:
    """The steps of a pipeline, where each ``ColumnTransformer`` is the stages that it is in a plan."""
    pairs = isinstance(steps, (list, tuple)) and all(isinstance(one, (list, tuple)) and len(one) == 2 for one in steps)
    if not pairs or not any(isinstance(step, ColumnTransformer) for _, step in steps):
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
        for own, _ in step.planned_steps(name, first=position == 0)
    }


def gathered(steps: Sequence[Named], twins: Sequence[Named]) -> list[Named]:
    """Released twins of such stages as steps of the pipeline: those of one ``ColumnTransformer`` are one again."""
    own, known = origins(steps), dict(steps)
    found: list[Named] = []
    for name, parts in groupby(twins, key=lambda twin: str(own.get(twin[0], twin[0]))):
        step, held = known.get(name), list(parts)
        found += [(name, step.held_by(held))] if isinstance(step, ColumnTransformer) else held
    return found
