"""A user's rows where an engine holds them: the public form now, the rows in blocks when they are paid for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.core.boundary import at_step
from ppdp.core.names import nearest
from ppdp.data.engine.registry import opened_source
from ppdp.data.engine.source import BlockSource
from ppdp.data.frames import cells, column, opened, opened_block
from ppdp.data.rows import Rows
from ppdp.data.stream import Stream
from ppdp.exceptions import InvalidInput

MOST_CLASSES = 1000  # labels that are told apart where none are declared


@contextmanager
def resolve_inputs(X: Any, y: Any, groups: Any, sample_weight: Any = None) -> Iterator[tuple[Any, Any, Any, Any]]:
    """What was passed to a fit, what is named apart where it is a column; of an engine :class:`DeferredTable`."""
    beside = {"y": y, "groups": groups, "sample_weight": sample_weight}
    source = opened_source(X)
    if source is None:
        if any(isinstance(value, str) for value in beside.values()) and type(X).__name__ != "LazyFrame":
            X, beside = _parted(X, beside)
        yield X, *beside.values()
        return
    with source:
        for which, what in (("y", "labels"), ("groups", "ids"), ("sample_weight", "weights")):
            if not isinstance(beside[which], str | None):
                what = f"rows are read in blocks, so {what} must be a column of them."
                raise InvalidInput(what, fix=f"{which}='its name'.")
        named = _named(beside, source.schema.names)
        names = tuple(name for name in source.schema.names if name not in named.values())
        given = DeferredTable(source, names, named.get("y"), named.get("sample_weight"))
        yield given, given.labels, groups, sample_weight


def _parted(X: Any, beside: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """A frame without the columns that are named beside it, and these; no cell is looked at."""
    names = getattr(X, "column_names", getattr(X, "columns", None))  # Arrow's, or those of pandas and polars
    if names is None:
        which = next(which for which, value in beside.items() if isinstance(value, str))
        what = f"{which} is the name of a column, and the columns of X have no names."
        raise InvalidInput(what, fix=f"{which}=one value for every row of X, or X as a frame.")
    named = _named(beside, list(names))
    if not named:
        return X, dict(beside)
    left = [name for name in names if name not in named.values()]
    return (X.select(left) if hasattr(X, "select") else X[left]), {**beside, **{k: X[v] for k, v in named.items()}}


def _named(beside: Mapping[str, Any], names: Sequence[Any]) -> dict[str, str]:
    """What is the name of a column, of what stands beside the features."""
    found = {which: value for which, value in beside.items() if isinstance(value, str)}
    for which, name in found.items():
        if list(names).count(name) != 1:
            meant = nearest(name, names)
            fix = (
                f"{which}={meant!r}." if meant else f"{which}='its name', or one value for every row: table['column']."
            )
            raise InvalidInput(f"no column, or more than one, is called {name!r}, as {which} says.", fix=fix)
    if len(set(found.values())) < len(found):
        told = " and ".join(found)
        raise InvalidInput(f"{told} name the same column.", fix="labels in one, ids in another, weights in a third.")
    return found


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class DeferredTable:
    """Rows of a source, of which only the form was looked at."""

    source: BlockSource
    names: Sequence[str]
    label: str | None
    weight: str | None = None

    @property
    def form(self) -> Any:
        """The columns without their rows, as a table of that kind is opened."""
        return opened(self.empty_table)

    @property
    def empty_table(self) -> Any:
        """The same as a table of Arrow."""
        return self._without_rows(self.names)

    @property
    def labels(self) -> Any:
        """The column of labels without its rows."""
        return None if self.label is None else self.empty(self.label)

    def empty(self, name: str) -> Any:
        """Any column without its rows."""
        return column(self._without_rows([name])[name])

    def _without_rows(self, names: Sequence[str]) -> Any:
        import pyarrow as pa

        if untyped := [name for name in names if name in self.source.untyped]:
            what = f"the columns {untyped} hold objects, which would be text or numbers by what stands in their cells."
            raise InvalidInput(what, fix=f"frame.astype({{{untyped[0]!r}: 'string'}}).")
        return pa.Table.from_batches([], self.source.schema).select(list(names))  # of unions, too

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return self.source.n, len(self.names)

    def classes(self) -> NDArray[Any]:
        """Different labels, each once; one pass over them alone."""
        label = self.label
        assert label is not None

        def found(_: int, table: Any) -> list[Any]:
            return list(dict.fromkeys(cells(column(table[label])).tolist()))[: MOST_CLASSES + 1]

        known: dict[Any, None] = {}
        for some in self.source.over(found, [label], 1):
            known |= dict.fromkeys(some)
            if len(known) > MOST_CLASSES:
                raise InvalidInput("y holds too many different labels.", fix="pass classes=(...) to the model.")
        empty = cells(self.labels)
        return np.array(list(known), dtype=empty.dtype)

    def stream(self, read: Callable[[Any, Any, Any], Rows], *, as_numbers: bool = False) -> Stream:
        """The rows, once they are read by what takes a table, or a matrix of numbers, its labels and its weights."""
        names, beside = list(self.names), (self.label, self.weight)

        open_ = opened_block if as_numbers else opened

        def entering(table: Any) -> Rows:
            with at_step("entrance"):
                own = (None if name is None else column(table[name]) for name in beside)
                return replace(read(open_(table.select(names)), *own), ours=True)

        wanted = [*names, *(name for name in beside if name is not None)]
        return Stream(self.source, wanted, *self.shape, (entering,))
