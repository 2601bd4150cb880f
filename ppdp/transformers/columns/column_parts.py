"""What the parts of a ``ColumnTransformer`` are given: stages with their names, and columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ppdp.core.checks import shown
from ppdp.exceptions import InvalidParameter
from ppdp.transformers.rowwise.ranges import has_private

REST, PASS, DROP = "remainder", "passthrough", "drop"
Named = tuple[str, Any]


@dataclass(frozen=True, slots=True)
class ColumnPart:
    """Some columns with the stages for them; no columns are those of no other part, and no stages drop them."""

    name: str
    columns: Any
    stages: list[Named] | None


def named_stages(given: Any) -> list[Named]:
    """Stages with their names: those of a pipeline, of a list of pairs, or their classes."""
    given = getattr(given, "steps", given)
    listed = list(given) if isinstance(given, (list, tuple)) else [given]
    if listed and all(isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], str) for one in listed):
        return [(name, stage) for name, stage in listed if not (isinstance(stage, str) and stage == PASS)]
    kinds = [type(stage).__name__.lower() for stage in listed]
    counted = [
        f"{kind}-{kinds[: i + 1].count(kind)}" if kinds.count(kind) > 1 else kind for i, kind in enumerate(kinds)
    ]
    return list(zip(counted, listed))


def listed_columns(columns: Any, part: str) -> Any:
    """Names or positions, as a list; a function that chooses them."""
    if callable(columns):
        return columns
    columns = columns.tolist() if hasattr(columns, "tolist") else columns
    if isinstance(columns, slice) and isinstance(columns.stop, int) and min(columns.stop, columns.start or 0) >= 0:
        columns = list(range(columns.stop))[columns]
    listed = [columns] if isinstance(columns, (str, int)) else columns
    if isinstance(listed, (list, tuple)) and listed and all(isinstance(one, bool) for one in listed):
        return [at for at, taken in enumerate(listed) if taken]
    if not isinstance(listed, (list, tuple)) or any(
        isinstance(one, bool) or not isinstance(one, (str, int)) for one in listed
    ):
        what = f"{shown(columns)} are no names or positions of columns."
        raise InvalidParameter(what, stage=part, fix="a list, such as ['age', 'dose'].", parameter="transformers")
    return list(listed)


def _leading(part: ColumnPart) -> int:
    """How many stages at the beginning of a part are public maps of columns as they come in."""
    count = 0
    for _, stage in part.stages or ():
        released = getattr(stage, "quantiles", None) is not None or has_private(getattr(stage, "ranges", None))
        if not hasattr(stage, "column_maps") or released:
            break
        count += 1
    return count


def laid_out(
    name: str, parts: Sequence[ColumnPart], *, first: bool
) -> tuple[list[ColumnPart], dict[str, int], list[tuple[ColumnPart, Named]]]:
    """Parts that are kept, how many public maps begin each, and the stages behind these, by their names in a plan."""
    kept = [part for part in parts if part.stages is not None]
    maps = {part.name: _leading(part) if first else 0 for part in kept}
    return kept, maps, [(part, own) for part in kept for own in _named_tail(name, part, maps[part.name])]


def _named_tail(name: str, part: ColumnPart, leading: int) -> Iterator[Named]:
    """The stages of a part behind its public maps, by their names in a plan."""
    tail = (part.stages or [])[leading:]
    for own, stage in tail:
        yield (f"{name}-{part.name}" if len(tail) == 1 else f"{name}-{part.name}-{own}"), stage
