"""Some columns of a table, the public maps for them, and where the columns are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.bounds.release import CLIPPED, MOST_CATEGORIES, UNLISTED
from ppdp.core.checks import columns_of
from ppdp.data.altered import beside_zero, tiny
from ppdp.data.rows import Array
from ppdp.data.unit_conversion import Columns
from ppdp.exceptions import DomainMismatch, InvalidParameter
from ppdp.transformers.columns.categories import FillMode, ReleasedCategories
from ppdp.transformers.columns.cell_parsers import CellParser, TextParser, texts_at
from ppdp.transformers.columns.maps import ColumnFacts, FillConstant, PublicMap
from ppdp.transformers.fit_mode import StatisticRequest

Released = Mapping[int, tuple[str, ...] | float]
"""What was released of columns, by their position: the texts of their categories, or the one that most rows hold."""


@dataclass(frozen=True)
class ColumnGroup:
    """Some columns, and what is done with them."""

    columns: Any  # names or positions, a slice or a mask; None is all columns, or those of the ``rest``
    maps: tuple[PublicMap, ...] = ()  # one after the other
    prefix: str = ""  # put before the names of what comes out
    rest: bool = False  # whether these are the columns that no other block takes
    drop: bool = False  # whether they are left out

    @property
    def expects(self) -> bool:
        """Whether gaps are declared to come in."""
        return any(step.expects for step in self.maps)

    @property
    def fills(self) -> bool:
        """Whether no gap is left."""
        return self.drop or any(step.fills for step in self.maps)

    @property
    def encoder(self) -> PublicMap | None:
        """What reads the columns as labels or dates; None if they are read as numbers."""
        first = next((step for step in self.maps if not isinstance(step, FillConstant | FillMode)), None)
        return first if first is not None and first.reads else None

    @property
    def reads_cells(self) -> bool:
        """Whether its columns hold no numbers."""
        return self.encoder is not None and self.encoder.reads_cells

    @property
    def takes_texts(self) -> bool:
        """Whether its columns hold texts that are mapped whole."""
        return bool(self.maps) and self.maps[0].takes_texts

    @property
    def described(self) -> str:
        """Its columns in words."""
        if isinstance(self.columns, (list, tuple)):
            return ", ".join(map(repr, self.columns))
        if self.columns is None:
            return "the remaining columns" if self.rest else "all columns"
        return repr(self.columns)

    @property
    def stage(self) -> str:
        """What an error calls it."""
        return self.prefix.removesuffix("__") or "ColumnMap"

    @property
    def _listed(self) -> list[Any]:
        """What chooses the columns: names, positions, a mask, the ends of a slice."""
        if self.columns is None:
            return []
        if isinstance(self.columns, slice):
            return [end for end in (self.columns.start, self.columns.stop, self.columns.step) if end is not None]
        return [self.columns] if isinstance(self.columns, (str, int)) else list(self.columns)

    @property
    def named(self) -> tuple[str, ...]:
        """Columns that it takes by name."""
        return tuple(str(column) for column in self._listed if isinstance(column, str))

    def knowing(self, positions: Sequence[int], released: Released) -> ColumnGroup:
        """The same with what was released of its columns, by their position; a table may lack some."""
        if not released:
            return self
        return replace(self, maps=tuple(_knowing(step, positions, released) for step in self.maps))

    @property
    def ordered(self) -> bool:
        """Whether the order of the columns tells which ones it takes."""
        listed = self._listed
        return len(self.named) < len(listed) or (isinstance(self.columns, slice) and bool(listed))

    def positions(self, names: Sequence[str] | None, count: int) -> list[int]:
        """Where the columns are; all of them must exist."""
        if self.columns is None:
            return list(range(count))
        if isinstance(self.columns, slice):
            return list(range(count))[_by_position(self.columns, names, count)]
        columns = self._listed
        if columns and all(isinstance(c, (bool, np.bool_)) for c in columns):
            if len(columns) != count:
                raise DomainMismatch("a mask of columns has another length.", stage=self.stage, fix="name them.")
            return np.flatnonzero(columns).tolist()
        plain = [int(c) if isinstance(c, np.integer) else str(c) if isinstance(c, str) else c for c in columns]
        plain = [count + c if isinstance(c, int) and c < 0 else c for c in plain]
        return columns_of("columns", plain, names, count, self.stage) if plain else []


def _by_position(columns: slice, names: Sequence[str] | None, count: int) -> slice:
    """A slice by names, which holds both its ends, as one by positions."""
    start, stop = columns.start, columns.stop
    if isinstance(start, str):
        start = columns_of("columns", [start], names, count)[0]
    if isinstance(stop, str):
        stop = columns_of("columns", [stop], names, count)[0] + 1
    return slice(start, stop, columns.step)


def _knowing(step: PublicMap, positions: Sequence[int], released: Released) -> PublicMap:
    found = [released.get(i) for i in positions]
    if isinstance(step, ReleasedCategories):
        return replace(step, found=tuple(one if isinstance(one, tuple) else () for one in found))
    if isinstance(step, FillMode):
        return step.knowing([one if isinstance(one, float) else None for one in found])
    return step


@dataclass(frozen=True)
class NamedGroup(ColumnGroup):
    """Columns that a ``ColumnTransformer`` knows under a name."""

    group: str = ""


@dataclass(frozen=True)
class LocatedBlock:
    """A block whose columns were found."""

    block: ColumnGroup
    positions: list[int]
    facts: tuple[ColumnFacts, ...]

    @property
    def end(self) -> ColumnFacts:
        """What is known behind the last map."""
        return self.facts[-1]

    def apply(self, X: Array, texts: Mapping[int, Any]) -> Array:
        """What becomes of its columns of a whole table, in which the codes of some stand for these texts."""
        if self.block.takes_texts:
            own = [texts_at(X[:, i], texts.get(i)) for i in self.positions]
            values: Any = np.column_stack(own)
        else:
            values = _clipped(X[:, self.positions], self.facts[0])
        for step, given, out in zip(self.block.maps, self.facts, self.facts[1:]):
            values = _clipped(step.apply(values, given), out)
        return values

    def alters(self, *, ranged: bool) -> str | None:
        """What it may do to values of its columns that must not be overlooked; ``ranged`` if ranges are declared."""
        encoder = self.block.encoder
        if encoder is not None and encoder.listed:
            return UNLISTED
        ranged = ranged and encoder is None and bool(np.isfinite(self.facts[0].ranges).any())
        return CLIPPED if ranged or any(step.narrows for step in self.block.maps) else None

    def altered(self, X: Array) -> NDArray[np.bool_]:
        """Which values are of no listed category, or outside of their ranges."""
        if self.block.encoder is not None and self.block.encoder.listed:
            return self.block.encoder.unlisted(X)
        values = _clipped(X, self.facts[0])
        found = (values != X) & ~np.isnan(X)
        for step, given, out in zip(self.block.maps, self.facts, self.facts[1:]):
            if step.narrows:
                low, high = out.ranges.T
                return np.asarray(found | (values < low) | (values > high))
            if out.names != given.names or not isinstance(step, FillConstant):
                break
            values = _clipped(step.apply(values, given), out)
        return np.asarray(found)

    def beside_zero(self) -> list[int]:
        """Which of its columns are numbers whose public range holds values that are tiny beside it."""
        return [] if self.block.encoder is not None else np.flatnonzero(beside_zero(*self.limits.T)).tolist()

    def tiny(self, X: Array) -> NDArray[np.bool_]:
        """Which values of these columns are tiny beside their range."""
        near = self.beside_zero()
        return np.asarray(tiny(X[:, near], *self.limits[near].T))

    @property
    def limits(self) -> Array:
        """The public ranges to which columns of numbers are clipped first."""
        narrowed = (out.ranges for step, out in zip(self.block.maps, self.facts[1:]) if step.narrows)
        return next(narrowed, self.facts[0].ranges)

    def units(self, columns: Columns) -> Columns:
        """Raw units of the columns that come out."""
        found = columns.at(self.positions).clipped(*self.facts[0].ranges.T)
        for step, given, out in zip(self.block.maps, self.facts, self.facts[1:]):
            found = step.units(found, given, out)
        return replace(found, names=tuple(f"{self.block.prefix}{name}" for name in found.names))


def _clipped(X: Array, facts: ColumnFacts) -> Array:
    low, high = facts.ranges.T
    return np.clip(X, np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high))


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
    known = sorted(readings([(part.block, part.positions) for part in parts]).items())
    unlisted = {i: reading.most for i, reading in known if isinstance(reading, TextParser)}
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
