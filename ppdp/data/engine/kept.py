"""Rows as the last stage left them, in a private file for as long as many passes over them take."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ppdp.core.progress import paced
from ppdp.data.parallel import PIECE, in_parallel
from ppdp.data.rows import Rows
from ppdp.data.stream import Stream

T = TypeVar("T")
Positions = NDArray[np.intp]
MAPPED = 1024  # rows that are mapped at once; each takes some 64 KiB of address space with it


@dataclass(frozen=True, slots=True)
class _Kept:
    """Blocks of rows in a file, one after the other, as float64: features, weights, labels."""

    n: int
    d: int
    labelled: bool
    file: str
    local: bool = True

    def over(self, task: Callable[[int, Any], T], names: Sequence[str], width: int, merge: Any = None) -> Iterator[T]:
        """Results of a task for every block, which is read where it runs."""
        results = in_parallel(lambda first: task(first, self._block(first)), range(0, self.n, PIECE), width)
        return paced(results, self.n, PIECE)

    def _block(self, first: int) -> Rows:
        n, wide = min(PIECE, self.n - first), self.d + 1 + self.labelled
        values = np.fromfile(self.file, count=n * wide, offset=first * wide * 8)
        X, weight, y = np.split(values, [n * self.d, n * (self.d + 1)])
        return Rows(X.reshape(n, self.d), y if self.labelled else None, weight, first=first)

    def taken(self, batch: Positions) -> Rows:
        """Some of the rows, of which nothing else is read."""
        # What is mapped of the file counts as memory until it is let go of, a few rows later.
        parts = [self._taken(batch[start : start + MAPPED]) for start in range(0, len(batch), MAPPED)]
        if not parts:
            return Rows(np.empty((0, self.d)), np.empty(0) if self.labelled else None, np.empty(0))
        y = np.concatenate([part.y for part in parts]) if self.labelled else None
        return Rows(np.concatenate([part.X for part in parts]), y, np.concatenate([part.weight for part in parts]))

    def _taken(self, batch: Positions) -> Rows:
        values = np.memmap(self.file, dtype=np.float64, mode="r")
        X, weight, y = self.places(batch)
        return Rows(values[X], values[y] if self.labelled else None, values[weight])

    def places(self, rows: Positions) -> tuple[Positions, Positions, Positions]:
        """Where in the file numbers of some rows stand: features, weights, labels."""
        block, place = np.divmod(rows, PIECE)
        start, n = block * PIECE * (self.d + 1 + self.labelled), np.minimum(PIECE, self.n - block * PIECE)
        X, weight = start + place * self.d, start + n * self.d + place
        return X[:, None] + np.arange(self.d), weight, weight + n


@contextmanager
def kept(rows: Any, passes: int) -> Iterator[Any]:
    """Rows to be read so many times: a stream that many passes would map again and again is written down once."""
    streamed = isinstance(rows, Stream) and passes > 1
    if not streamed or not rows.source.local:
        yield rows.held() if streamed else rows
        return
    with tempfile.TemporaryDirectory(prefix="ppdp-") as folder:
        path, labelled = os.path.join(folder, "rows"), False
        with open(path, "wb") as file:
            for block in rows.over(lambda block: block):
                labelled = block.y is not None
                for part in (block.X, block.weight, *([block.y] if labelled else [])):
                    part.tofile(file)
        yield Stream(_Kept(rows.n, rows.d, labelled, path), (), rows.n, rows.d, ())


@contextmanager
def scattered(rows: Stream, slots: Positions, n: int) -> Iterator[Stream]:
    """Rows as they came in, each at its slot among n of a private file; where none stands is a deleted row."""
    labelled = len(rows.names) > rows.d
    with tempfile.TemporaryDirectory(prefix="ppdp-") as folder:
        own = _Kept(n, rows.d, labelled, os.path.join(folder, "rows"))
        with open(own.file, "wb") as file:  # whole before any row is read: a full disk tells of n only
            for first in range(0, n, PIECE):
                np.zeros((min(PIECE, n - first), rows.d + 1 + labelled)).tofile(file)
        for block in rows.over(Rows.bare):
            values = np.memmap(own.file, dtype=np.float64, mode="r+")  # anew: what is mapped counts as memory
            X, weight, y = own.places(slots[block.first : block.first + block.n])
            values[X], values[weight] = block.X, block.weight
            if block.y is not None:
                values[y] = block.y
            del values
        yield Stream(own, (), n, rows.d, ())
