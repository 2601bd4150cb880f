"""Rows as the last stage left them, in a private file for as long as many passes over them take."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ppdp.data.parallel import PIECE, in_parallel
from ppdp.data.rows import Rows
from ppdp.data.stream import Stream

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Kept:
    """Blocks of rows in a file, one after the other, as float64: features, weights, labels."""

    schema: Any
    n: int
    d: int
    labelled: bool
    file: int
    local: bool = True

    def over(self, task: Callable[[Any], T], names: Sequence[str], width: int) -> Iterator[T]:
        """Results of a task for every block, which is read where it runs."""
        return in_parallel(lambda first: task(self._block(first)), range(0, self.n, PIECE), width)

    def _block(self, first: int) -> Rows:
        n, wide = min(PIECE, self.n - first), self.d + 1 + self.labelled
        values = np.empty(n * wide)
        os.preadv(self.file, [values], first * wide * values.itemsize)
        X, weight, y = np.split(values, [n * self.d, n * (self.d + 1)])
        return Rows(X.reshape(n, self.d), y if self.labelled else None, weight)


@contextmanager
def kept(rows: Any, passes: int) -> Iterator[Any]:
    """Rows to be read so many times: a stream that many passes would map again and again is written down once."""
    local = isinstance(rows, Stream) and rows.source.local
    with tempfile.TemporaryFile(prefix="ppdp-") if local and passes > 1 else nullcontext() as file:
        if file is None:
            yield rows
            return
        labelled = False
        for block in rows.over(lambda block: block):
            labelled = block.y is not None
            for part in (block.X, block.weight, *([block.y] if labelled else [])):
                file.write(np.ascontiguousarray(part, dtype=np.float64).data)
        file.flush()
        yield Stream(_Kept(rows.source.schema, rows.n, rows.d, labelled, file.fileno()), (), rows.n, rows.d, ())
