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

    def taken(self, batch: NDArray[np.intp]) -> Rows:
        """Some of the rows, of which nothing else is read."""
        # What is mapped of the file counts as memory until it is let go of, a few rows later.
        parts = [self._taken(batch[start : start + MAPPED]) for start in range(0, len(batch), MAPPED)]
        if not parts:
            return Rows(np.empty((0, self.d)), np.empty(0) if self.labelled else None, np.empty(0))
        y = np.concatenate([part.y for part in parts]) if self.labelled else None
        return Rows(np.concatenate([part.X for part in parts]), y, np.concatenate([part.weight for part in parts]))

    def _taken(self, batch: NDArray[np.intp]) -> Rows:
        values = np.memmap(self.file, dtype=np.float64, mode="r")
        block, place = np.divmod(batch, PIECE)
        start, n = block * PIECE * (self.d + 1 + self.labelled), np.minimum(PIECE, self.n - block * PIECE)
        X = values[(start + place * self.d)[:, None] + np.arange(self.d)]
        y = values[start + n * (self.d + 1) + place] if self.labelled else None
        return Rows(X, y, values[start + n * self.d + place])


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
