"""Rows in a private file, for as long as several passes over them take: as the first step sees them, or the last.

Few rows are held in memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ppdp.core.private_files import is_of_a_full_disk, private_path
from ppdp.core.progress import holding, paced
from ppdp.data.engine.source import BlockSource
from ppdp.data.parallel import ROOM, in_parallel
from ppdp.data.rows import Array, Rows
from ppdp.data.stream import Stream
from ppdp.data.summary import truths
from ppdp.exceptions import InvalidInput

T = TypeVar("T")
Positions = NDArray[np.intp]
MAPPED = 1024  # single rows that are read at once; each takes some 64 KiB of address space with it
SPARSE = 32  # of so many rows at least one is read, or they are read one by one
BESIDE = 3  # numbers beside the features of a row: weight, label, and norm or, as long as it has one, factor
_SHARE: ContextVar[float] = ContextVar("share", default=1.0)


@dataclass(frozen=True, slots=True)
class _DiskCache(BlockSource):
    """Blocks of rows in a file as float64: features, weights, labels, norms, factors; what is lacking has its place."""

    n: int
    d: int
    file: str
    room: int  # columns for which every block has room
    rows: int  # of a block
    labelled: bool = False
    normed: bool = False
    factored: bool = False
    keeps = True

    def tables(self, names: Sequence[str]) -> Iterator[Any]:
        raise InvalidInput("rows that were read once are no tables any more.", fix="the files that they came from.")

    def over(self, task: Callable[[int, Any], T], names: Sequence[str], width: int, merge: Any = None) -> Iterator[T]:
        results = in_parallel(lambda first: task(first, self.block(first)), range(0, self.n, self.rows), width)
        return paced(results, self.n, self.rows)

    def block_rows(self, names: Sequence[str]) -> int:
        return self.rows

    def block(self, first: int) -> Rows:
        """The block that begins with a row, in memory: a mapped one would take longer wherever it is looked at."""
        n = min(self.rows, self.n - first)
        values = np.fromfile(self.file, np.float64, n * (self.d + BESIDE), offset=first * (self.room + BESIDE) * 8)
        X, (weight, y, last) = values[: n * self.d].reshape(n, self.d), values[n * self.d :].reshape(BESIDE, n)
        return replace(self._rows(X, weight, y, last), ours=True, first=first)

    def _rows(self, X: Array, weight: Array, y: Array, last: Array) -> Rows:
        norms, factor = (last if own else None for own in (self.normed, self.factored))
        return Rows(X, y if self.labelled else None, weight, norms=norms, factor=factor)

    def write(self, block: Rows) -> tuple[bool, bool, bool]:
        """Write a block, beside others if they are; whether it has labels, norms, and factors."""
        last = block.factor if block.norms is None else block.norms
        parts = zip((block.X, block.weight, block.y, last), (0, *range(self.d, self.d + BESIDE)))
        with open(self.file, "r+b") as file:
            for part, place in parts:
                if part is not None:
                    file.seek((block.first * (self.room + BESIDE) + block.n * place) * 8)
                    file.write(np.ascontiguousarray(part).data)
        return block.y is not None, block.norms is not None, block.norms is None and block.factor is not None

    def taken(self, batch: Positions) -> Rows:
        """Some of the rows, ascending, of which nothing else is read."""
        if len(batch) * SPARSE < self.n:
            # What is mapped of the file counts as memory until it is let go of, a few rows later.
            parts = [self._single(batch[start : start + MAPPED]) for start in range(0, len(batch) or 1, MAPPED)]
        else:
            ends = np.searchsorted(batch, np.arange(0, self.n + self.rows, self.rows))

            def some(block: int) -> Rows:
                first = block * self.rows
                return self.block(first).part(batch[ends[block] : ends[block + 1]] - first)

            parts = list(in_parallel(some, range(len(ends) - 1), self.d))
        return Rows.joined(parts)

    def scatter(self, rows: Rows, places: Positions) -> None:
        """Write rows at their places."""
        values = self._values("r+")  # anew: what is mapped counts as memory
        X, weight, y, factor = self._places(places)
        values[X], values[weight] = rows.X, rows.weight
        if rows.y is not None:
            values[y] = rows.y
        if rows.factor is not None:
            values[factor] = rows.factor

    def _single(self, batch: Positions) -> Rows:
        values = self._values("r")
        X, weight, y, last = self._places(batch)
        nothing = np.empty(0)  # what was not written is not read
        own = values[last] if self.normed or self.factored else nothing
        return self._rows(values[X], values[weight], values[y] if self.labelled else nothing, own)

    def _values(self, mode: Any) -> Array:
        return np.memmap(self.file, np.float64, mode).view(np.ndarray)

    def _places(self, rows: Positions) -> tuple[Positions, Positions, Positions, Positions]:
        """Where in the file numbers of some rows stand: features, weights, labels, norms or factors."""
        block, place = np.divmod(rows, self.rows)
        start, n = block * self.rows * (self.room + BESIDE), np.minimum(self.rows, self.n - block * self.rows)
        X, weight = start + place * self.d, start + n * self.d + place
        return X[:, None] + np.arange(self.d), weight, weight + n, weight + 2 * n


@contextmanager
def cached_on_disk(rows: Any, passes: int, *, last: bool = False, over: bool = True) -> Iterator[Any]:
    """Rows to be read so many times: a stream that several passes would map again is written down once, if it is long.

    ``last`` says that no stage comes any more: they may be written over those that an earlier one saw, unless ``over``
    says that somebody reads these again.
    """
    streamed = isinstance(rows, Stream) and passes > 1 and bool(rows.maps)
    if not streamed or not rows.source.local:
        yield rows.held() if streamed else rows
        return
    if fit_memory(rows.n, rows.d):
        yield _in_memory(rows)
        return
    within = isinstance(rows.source, _DiskCache) and last and over and rows.d <= rows.source.room
    with nullcontext(replace(rows.source, d=rows.d)) if within else _file(rows, rows.n) as own:
        ready = Rows.last if last else Rows.bare

        def written(block: Rows) -> tuple[tuple[bool, bool, bool], Any]:
            return own.write(ready(block)), None if block.marks is None else truths(block.marks)

        kinds, marks = zip(*rows.over(written))  # by the threads that map them
        labelled, normed, factored = kinds[0]
        altered = None if marks[0] is None else np.asarray(np.sum(marks, axis=0), dtype=np.float64)
        yield Stream(replace(own, labelled=labelled, normed=normed, factored=factored), (), rows.n, rows.d, (), altered)


def fit_memory(n: int, d: int) -> bool:
    """Whether so many rows of so many columns are held in memory."""
    return 8 * n * (d + BESIDE) <= ROOM * _SHARE.get()


def in_place_of(rows: float) -> AbstractContextManager[None]:
    """In this context rows stand for so many times as many, as far as it matters whether they fit memory."""
    return holding(_SHARE, 1 / rows)


def _in_memory(rows: Stream) -> Rows:
    """All rows of a stream."""
    X = np.empty((rows.n, rows.d))

    def placed(block: Rows) -> Rows:
        X[block.first : block.first + block.n] = block.X
        # Copies: what is a part of a block that was read would keep all of it.
        beside: dict[str, Any] = {name: getattr(block, name) for name in ("y", "weight", "norms", "factor")}
        own: dict[str, Any] = {name: None if values is None else values.copy() for name, values in beside.items()}
        return replace(block, X=np.empty((block.n, 0)), **own)

    beside = Rows.joined(list(rows.over(placed)))  # by the threads that map them
    return replace(beside, X=X, ours=True)


@contextmanager
def scatter_to_slots(rows: Stream, slots: Positions, n: int) -> Iterator[Stream]:
    """Rows, each at its slot among n of a private file; elsewhere are deleted rows, and a negative slot is none."""
    with _file(rows, n) as own:
        for first in range(0, n, own.rows):  # whole before any row is read: a full disk tells of n only
            size = min(own.rows, n - first)
            own.write(
                Rows(np.zeros((size, rows.d)), np.zeros(size), np.zeros(size), first=first, factor=np.zeros(size))
            )
        altered: Any = None
        factored = False
        for block in rows.over(_with_marks):
            places = slots[block.first : block.first + block.n]
            own.scatter(block.part(places >= 0), places[places >= 0])
            factored = block.factor is not None
            if block.marks is not None:
                added = truths(block.marks[places >= 0]).astype(np.float64)
                altered = added if altered is None else altered + added
        labelled = len(rows.names) > rows.d + factored
        yield Stream(replace(own, labelled=labelled, factored=factored), (), n, rows.d, (), altered)


def _with_marks(block: Rows) -> Rows:
    return replace(block.bare(), marks=block.marks)


@contextmanager
def _file(rows: Stream, n: int) -> Iterator[_DiskCache]:
    """Room for so many rows like these, which goes with this context."""
    d = rows.d
    with private_path() as path:
        with open(path, "wb") as file:
            _make_room(file, n * (d + BESIDE) * 8)
        yield _DiskCache(n, d, path, d, rows.source.block_rows(rows.names))


def _make_room(file: Any, size: int) -> None:
    """Give a file its size, and its place on the disk: a write that must find one takes ten times as long."""
    try:
        os.posix_fallocate(file.fileno(), 0, size)
    except (AttributeError, OSError) as error:  # not every system can
        if is_of_a_full_disk(error):
            raise
        file.truncate(size)
