"""Several statistics of the same rows in one pass over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.bounds.queries import counting_step
from ppdp.data.rows import Array, Rows
from ppdp.data.stream import Stream
from ppdp.data.summary import Summary, fold


@dataclass(frozen=True, slots=True)
class Weight(Summary[Array]):
    """Weight of all rows, of which that of each is rounded down to a public step: an array of one."""

    n: int  # public number of all rows
    d: int = 1

    def zero(self) -> NDArray[np.int64]:
        return np.zeros(1, dtype=np.int64)

    def add(self, total: Any, block: Rows) -> Any:
        return total + np.int64(np.floor(block.weight / counting_step(self.n)).sum())

    def finish(self, total: Any) -> Array:
        return np.asarray(total * counting_step(self.n), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class _Together(Summary[list[Any]]):
    """Statistics, each of what a map makes of the rows."""

    d: int
    parts: Sequence[tuple[Callable[[Rows], Rows] | None, Summary[Any]]]

    def zero(self) -> Any:
        return [own.zero() for _, own in self.parts]

    def add(self, total: Any, block: Rows) -> Any:
        return [
            own.add(sums, block if mapped is None else mapped(block)) for (mapped, own), sums in zip(self.parts, total)
        ]

    def merge(self, one: Any, other: Any) -> Any:
        return [own.merge(mine, theirs) for (_, own), mine, theirs in zip(self.parts, one, other)]

    def finish(self, total: Any) -> list[Any]:
        return [own.finish(sums) for (_, own), sums in zip(self.parts, total)]


def together(rows: Rows | Stream, *parts: tuple[Callable[[Rows], Rows] | None, Summary[Any]]) -> list[Any]:
    """Every statistic of what its map makes of the rows (None: of the rows), to the bits that each has alone."""
    return fold(_Together(rows.d, parts), rows)
