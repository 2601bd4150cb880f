"""Rows that are read in blocks, each mapped when it is read, as often as somebody sums over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ppdp.data.parallel import PIECE, in_parallel
from ppdp.data.rows import Rows

T = TypeVar("T")


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Stream:
    """What :class:`~ppdp.data.rows.Rows` is to statistics, for rows that are nowhere all at once."""

    source: Any  # a BlockSource, or anything else with its ``over``, for maps that begin with what that hands out
    names: Sequence[str]  # which columns are read
    n: int  # public number of rows
    d: int  # columns behind all maps
    # What becomes of a block: the first takes a table of the source, each other one rows. They map every row by itself,
    # to the same bits in every pass.
    maps: tuple[Callable[[Any], Any], ...]
    altered: NDArray[np.float64] | None = None  # marks of the rows, added up where they were lost on the way
    # What else is added up of every block in any pass, and where sums of the last pass are put.
    beside: tuple[Callable[[Rows], Any], list[Any]] | None = None

    def each(self, function: Callable[[Rows], Rows], d: int) -> Stream:
        """The same rows behind one more map, to d columns."""
        return replace(self, maps=(*self.maps, function), d=d)

    def over(
        self, task: Callable[[Rows], T], d: int | None = None, merge: Callable[[T, T], T] | None = None
    ) -> Iterator[T]:
        """Results of a task for every block of rows, or several merged; one pass over all of them."""
        width = self.d if d is None else d
        if self.beside is None:
            yield from self.source.over(partial(_run, self.maps, task), self.names, width, merge)
            return
        counted, sums = self.beside
        sums.clear()
        both, merged = partial(_both, task, counted), None if merge is None else partial(_merged, merge)
        for found, own in self.source.over(partial(_run, self.maps, both), self.names, width, merged):
            sums.append(own)
            yield found

    def grouped(self, task: Callable[[Rows], Any], parts: int, compare: Callable[[Any], Any]) -> Any:
        """The same of tasks whose results meet where the rows are: :func:`ppdp.data.engine.external_join.grouped`."""
        return self.source.grouped(partial(_run, self.maps, task), self.names, self.d, parts, compare)

    def held(self) -> Stream:
        """The same rows behind all maps, which an engine elsewhere holds where they are."""
        if not self.maps:
            return self
        return Stream(self.source.held(partial(_run, self.maps, _kept), self.names, self.d), (), self.n, self.d, ())

    def taken(self, batch: NDArray[np.intp]) -> Rows | Stream:
        """Some of rows that were kept, ascending: in memory, or a stream of those that an engine holds elsewhere."""
        if self.source.local:
            rows: Rows = _run(self.maps, _same, 0, self.source.taken(batch))
            return rows
        return Stream(self.held().source.taken(batch), (), len(batch), self.d, ())

    def __repr__(self) -> str:
        return f"Stream({self.n} x {self.d})"


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class _InMemory:
    """A source of blocks of rows that are here."""

    rows: Rows
    local = True
    keeps = False

    def block_rows(self, names: Sequence[str]) -> int:
        """As many as pieces have."""
        return PIECE

    def over(self, task: Callable[[int, Rows], T], names: Sequence[str], width: int, merge: Any = None) -> Iterator[T]:
        return in_parallel(lambda block: task(block.first, block), self.rows.blocks(), width)


def streamed(rows: Rows | Stream) -> Stream:
    """The same rows, of which what maps make of them is held for one block at a time, wherever the rows are."""
    return rows if isinstance(rows, Stream) else Stream(_InMemory(rows), (), rows.n, rows.d, ())


def _same(rows: Rows) -> Rows:
    return rows


def _kept(rows: Rows) -> Rows:
    return replace(rows.last(), marks=rows.marks)


def _both(task: Callable[[Rows], T], counted: Callable[[Rows], Any], rows: Rows) -> tuple[T, Any]:
    return task(rows), counted(rows)


def _merged(merge: Callable[[T, T], T], one: tuple[T, Any], other: tuple[T, Any]) -> tuple[T, Any]:
    return merge(one[0], other[0]), one[1] + other[1]


def _run(maps: Sequence[Callable[[Any], Any]], task: Callable[[Rows], T], first: int, table: Any) -> T:
    def mapped(rows: Any, function: Callable[[Any], Rows]) -> Rows:
        found = function(rows)
        own = None if found.norms is getattr(rows, "norms", None) else found.norms  # else they are of other rows
        return replace(found, first=first, norms=own)

    return task(reduce(mapped, maps, table))
