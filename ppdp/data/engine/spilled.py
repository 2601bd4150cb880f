"""Rows that are compared though they are read in blocks: those with equal keys meet in a part of a private file."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.data.parallel import in_parallel
from ppdp.data.rows import Array, Rows
from ppdp.data.stream import Stream

Words = NDArray[np.uint64]
Positions = NDArray[np.intp]

PART = 2**24  # bytes that are compared at once, but for rows with equal keys
WRITTEN = 2**26  # bytes that are written at once


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Staying:
    """Which of many rows stay, a bit for each."""

    bits: NDArray[np.uint8]

    def of(self, block: Rows) -> Array:
        """The weights of a block of the rows."""
        own = self.bits[block.first // 8 : -(-(block.first + block.n) // 8)]
        return np.unpackbits(own, count=block.n, bitorder="little").astype(np.float64)


def staying(
    rows: Stream, keys: Callable[[Rows], Words], stay: Callable[[Rows, Words, bool], Array], bands: int = 1
) -> Staying:
    """Which of the rows with weight stay, after one pass over all.

    Parameters
    ----------
    rows : Stream
        Rows as they are compared.
    keys : callable
        Words of shape (n, bands) for rows with weight; in a band, a row is compared with those that have its word.
    stay : callable
        Takes rows in their order, their words in one band, and whether all rows with these words are among them. Gives
        a weight for each, 0 for one that does not stay. Where rows are lacking, one that gets 0 does not stay, and what
        becomes of all others is the same without it, whichever rows are lacking.
    bands : int
        A row stays if it does in each.
    """
    parts = -(-rows.n * (max(rows.d, len(rows.names)) + 3) * 8 // PART)

    def compared(block: Rows) -> tuple[NDArray[np.uint8], Words, Positions, bool]:
        slots = np.flatnonzero(block.weight)
        own = Rows(block.X[slots], None if block.y is None else block.y[slots], block.weight[slots])
        alive, found, owners = block.weight > 0, [], []
        for band, words in enumerate(keys(own).T):
            weight = stay(own, words, False)
            alive[slots[weight == 0]] = False
            some = np.flatnonzero(weight)
            columns = [own.X[some]] if own.y is None else [own.X[some], own.y[some, None]]
            numbers = (block.first + slots[some]).astype(np.uint64)
            found.append(np.column_stack([*(column.view(np.uint64) for column in columns), words[some], numbers]))
            spread = (words[some] * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)
            owners.append(band * parts + (spread % np.uint64(parts)).astype(np.intp))
        part = np.concatenate(owners)
        ends = np.cumsum(np.bincount(part, minlength=bands * parts))
        table = np.concatenate(found)[np.argsort(part, kind="stable")]  # here, where several blocks are sorted at once
        return np.packbits(alive, bitorder="little"), table, ends, own.y is not None

    with tempfile.TemporaryFile(prefix="ppdp-") as file:
        bits, shuffled, labelled = [], _Shuffled(file, bands * parts), False
        for alive, found, ends, has_labels in rows.over(compared):
            bits.append(alive)
            labelled = has_labels
            shuffled.add(found, ends)
        shuffled.write()
        left = np.concatenate(bits)

        def lost(part: int) -> Positions:
            table = shuffled.read(part)
            width = table.shape[1] - 2
            values, words, numbers = table[:, :width].copy().view(np.float64), table[:, width], table[:, -1]
            X = np.ascontiguousarray(values[:, : width - labelled])
            own = Rows(X, values[:, -1].copy() if labelled else None, np.ones(len(X)))
            return numbers[stay(own, words.copy(), True) == 0].astype(np.intp)

        for places in in_parallel(lost, range(bands * parts), 0):
            np.bitwise_and.at(left, places >> 3, ~np.left_shift(1, places & 7).astype(np.uint8))
    return Staying(left)


@dataclass(slots=True, repr=False, eq=False)
class _Shuffled:
    """Rows of words by part, in a file without a name that goes with the process."""

    file: Any
    parts: int
    width: int = 0
    waiting: list[tuple[Words, Positions]] = field(default_factory=list)
    ends: list[Positions] = field(default_factory=list)  # of parts, in rows, for each time that some were written
    lock: Any = field(default_factory=Lock)

    def add(self, words: Words, ends: Positions) -> None:
        """More rows, part by part, and where each part ends."""
        self.waiting.append((words, ends))
        if sum(table.nbytes for table, _ in self.waiting) >= WRITTEN:
            self.write()

    def write(self) -> None:
        """Write what waits, part by part."""
        if not self.waiting:
            return
        self.width = self.waiting[0][0].shape[1]
        pieces = [np.split(words, ends[:-1]) for words, ends in self.waiting]
        self.file.writelines(piece.data for part in zip(*pieces) for piece in part if piece.size)
        sizes = np.sum([np.diff(ends, prepend=0) for _, ends in self.waiting], axis=0)
        self.waiting.clear()
        self.ends.append(np.cumsum([self.ends[-1][-1] if self.ends else 0, *sizes]))

    def read(self, part: int) -> Words:
        """All rows of a part, in the order in which they came."""
        sizes = [ends[part + 1] - ends[part] for ends in self.ends]
        table = np.empty((sum(sizes), self.width), dtype=np.uint64)
        with self.lock:
            for ends, own in zip(self.ends, np.split(table, np.cumsum(sizes)[:-1])):
                self.file.seek(int(ends[part]) * self.width * 8)
                self.file.readinto(own.data)
        return table
