"""Some columns of a table, and the public maps for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ppdp.core.checks import columns_of
from ppdp.data.categories import Texts
from ppdp.exceptions import DomainMismatch
from ppdp.transformers.columns.maps import Filled, PublicMap
from ppdp.transformers.columns.unlisted import Unlisted


@dataclass(frozen=True)
class Block:
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
        first = next((step for step in self.maps if not isinstance(step, Filled)), None)
        return first if first is not None and first.reads else None

    @property
    def reads_cells(self) -> bool:
        """Whether its columns hold no numbers."""
        return self.encoder is not None and self.encoder.reads_cells

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

    def knowing(self, positions: Sequence[int], released: Texts) -> Block:
        """The same with the categories that were released, by the position of their column; a table may lack some."""
        if not released or not any(isinstance(step, Unlisted) for step in self.maps):
            return self
        own = tuple(released.get(i, ()) for i in positions)
        return replace(self, maps=tuple(replace(m, found=own) if isinstance(m, Unlisted) else m for m in self.maps))

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
            return list(np.flatnonzero(columns))
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
