"""What stages of public maps read of cells that are no numbers, and what they ask to be released of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ppdp.bounds.release import MOST_CATEGORIES
from ppdp.exceptions import InvalidParameter
from ppdp.transformers.columns.cell_parsers import CellParser, TextParser
from ppdp.transformers.columns.column_group import ColumnGroup, LocatedBlock
from ppdp.transformers.columns.modes import FillMode
from ppdp.transformers.fit_mode import StatisticRequest


def readings(found: Sequence[tuple[ColumnGroup, list[int]]]) -> dict[int, CellParser]:
    """How every column is read that does not hold numbers."""
    known: dict[int, CellParser | None] = {}
    for block, positions in found:
        for at, i in enumerate(positions):
            reading = None if block.encoder is None else block.encoder.reading(at)
            if known.setdefault(i, reading) != reading:
                raise InvalidParameter(
                    "a column is encoded twice, with other categories, or read once as categories and once as numbers.",
                    stage=block.stage,
                    fix="declare the same categories, in the same order; drop it where it is no category.",
                )
    return {i: reading for i, reading in known.items() if reading is not None}


def request_of(parts: Sequence[LocatedBlock], *, gaps: bool) -> StatisticRequest | None:
    """What is to be released: categories that nobody declared, or of each column the one that fills gaps."""
    unlisted = _unlisted(readings([(part.block, part.positions) for part in parts]))
    if sum(unlisted.values()) > MOST_CATEGORIES:
        too_many = f"at most {MOST_CATEGORIES} categories can be released."
        raise InvalidParameter(too_many, stage="ColumnMap", fix="a smaller max_categories.")
    held = _to_fill(parts) if gaps else {}
    if unlisted and held:
        both = "of some columns all categories are to be released, of others the most frequent one."
        raise InvalidParameter(both, stage="ColumnMap", fix="declare all categories, or leave strategy out.")
    if unlisted:
        asked = {"columns": list(unlisted), "max_categories": list(unlisted.values())}
        return StatisticRequest("categories", asked)
    if not held:
        return None
    values = [value for own in held.values() for value in own]
    return StatisticRequest("modes", {"columns": list(held), "sizes": [*map(len, held.values())], "values": values})


def _to_fill(parts: Sequence[LocatedBlock]) -> dict[int, list[float]]:
    """The numbers of the categories of columns whose gaps become one of several."""
    held: dict[int, set[float]] = {}
    for part in parts:
        for step in part.block.maps:
            if isinstance(step, FillMode):
                for i, values in zip(part.positions, step.values):
                    held.setdefault(i, set()).update(values)
    return {i: sorted(values) for i, values in sorted(held.items()) if len(values) > 1}


def _unlisted(known: Mapping[int, CellParser]) -> dict[int, int]:
    """Columns whose categories are to be released, and how many of them there may be."""
    return {i: reading.most for i, reading in sorted(known.items()) if isinstance(reading, TextParser)}
