"""Rows that are compared though they are read in blocks: those with equal keys meet in a part of a private file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import itemgetter
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.core.private_files import private_file
from ppdp.data.parallel import in_parallel
from ppdp.data.rows import Array, Rows
from ppdp.data.stream import Stream

Words = NDArray[np.uint64]
Positions = NDArray[np.intp]
Marks = NDArray[np.uint8]

PART, FAR = 2**24, 2**26  # bytes that are compared at once, here or elsewhere, but for rows with equal keys
WRITTEN = 2**26  # bytes that are written at once
SPREAD = np.uint64(0x9E3779B97F4A7C15)  # odd, so that different words stay different


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class KeptRows:
    """Which of many rows stay, a bit for each."""

    bits: Marks

    def of(self, block: Rows) -> Array:
        """The weights of a block of the rows."""
        return _own(self.bits, block).astype(np.float64)


def keep_mask(
    rows: Stream, keys: Callable[[Rows], Words], stay: Callable[[Rows, Words, bool], Array], bands: int = 1
) -> KeptRows:
    """Which of the rows with weight stay, after a pass over their words, and one over rows that share a word.

    ``keys`` gives words of shape (n, bands) of rows with weight; in a band, a row is compared with those that have its
    word, and stays if there are none, or if it does in each band. ``stay`` takes rows in their order, their words in
    one band, and whether all rows with these words are among them. It gives a weight for each, 0 for one that does not
    stay. Where rows are lacking, one that gets 0 does not stay, and what becomes of all others is the same without it,
    whichever rows are lacking.
    """
    left, shared, some = _shared(rows, keys, bands)
    if some:
        parts = _parts(rows, some * (max(rows.d, len(rows.names)) + 3) * 8)
        _compare(left, shared, rows, keys, stay, bands, parts)
    return KeptRows(left)


def _shared(rows: Stream, keys: Callable[[Rows], Words], bands: int) -> tuple[Marks, Marks, int]:
    """Which rows have weight, which are the first of a block with some word that another row has, too, and how many."""

    def found(block: Rows) -> tuple[tuple[int, Marks], Words, Positions]:
        slots, own = _present(block)
        tables, counts = [], []
        for words in keys(own).T:
            spread = words * SPREAD
            order, starts = _alike(spread)
            first, several = order[starts], np.diff(starts, append=len(order)) > 1
            numbers = (block.first + slots[first]).astype(np.uint64)
            tables.append(np.column_stack([spread[first], 2 * numbers + several]))
            counts.append(np.bincount(_part(spread[first], parts), minlength=parts))
        present = np.packbits(block.weight > 0, bitorder="little")
        return (block.first, present), np.concatenate(tables), np.cumsum(counts)

    def alike(table: Words) -> Positions:
        order, starts = _alike(table[:, 0])
        numbers, sizes = table[order, 1], np.diff(starts, append=len(order))
        return (numbers[(np.repeat(sizes, sizes) > 1) | (numbers % 2 == 1)] // 2).astype(np.intp)

    parts = _parts(rows, rows.n * 16)
    with grouped(rows, found, bands * parts, alike) as (known, places):
        left = np.concatenate([present for _, present in sorted(known, key=itemgetter(0))])
        shared, some = np.zeros_like(left), 0
        for first in places:
            some += len(first)
            np.bitwise_or.at(shared, first >> 3, np.left_shift(1, first & 7).astype(np.uint8))
    return left, shared, -(-some // bands)


def _compare(
    left: Marks,
    shared: Marks,
    rows: Stream,
    keys: Callable[[Rows], Words],
    stay: Callable[[Rows, Words, bool], Array],
    bands: int,
    parts: int,
) -> None:
    """Rows that share a word stay among those that are left, or not; a block that has none is not looked at."""

    def found(block: Rows) -> tuple[tuple[int, Marks], Words, Positions] | None:
        marks = _own(shared, block)
        if not marks.any():
            return None
        slots, own = _present(block)
        mask, tables, counts = np.ones(block.n, dtype=bool), [], []
        for words in keys(own).T:
            order, starts = _alike(words * SPREAD)
            common = np.repeat(marks[slots[order[starts]]] > 0, np.diff(starts, append=len(order)))
            some = np.sort(order[common])
            weight = stay(own.part(some), words[some], False)
            mask[slots[some[weight == 0]]] = False
            some = some[weight > 0]
            columns = [own.X[some]] if own.y is None else [own.X[some], own.y[some, None]]
            numbers = 2 * (block.first + slots[some]).astype(np.uint64) + (own.y is not None)
            table = np.column_stack([*(column.view(np.uint64) for column in columns), words[some], numbers])
            part = _part(words[some] * SPREAD, parts)
            tables.append(table[np.argsort(part, kind="stable")])  # here, where several blocks are sorted at once
            counts.append(np.bincount(part, minlength=parts))
        return (block.first, np.packbits(mask, bitorder="little")), np.concatenate(tables), np.cumsum(counts)

    def compared(table: Words) -> Positions:
        width, labelled = table.shape[1] - 2, bool(table[0, -1] % 2)
        values, words, numbers = table[:, :width].copy().view(np.float64), table[:, width], table[:, -1] // 2
        X = np.ascontiguousarray(values[:, : width - labelled])
        own = Rows(X, values[:, -1].copy() if labelled else None, np.ones(len(X)))
        return numbers[stay(own, words.copy(), True) == 0].astype(np.intp)

    with grouped(rows, found, bands * parts, compared) as (known, places):
        for start, bits in known:
            left[start // 8 : start // 8 + len(bits)] &= bits
        for lost in places:
            np.bitwise_and.at(left, lost >> 3, ~np.left_shift(1, lost & 7).astype(np.uint8))


@contextmanager
def grouped(
    rows: Stream, task: Callable[[Rows], Any], parts: int, compare: Callable[[Words], Positions]
) -> Iterator[tuple[Iterable[Any], Iterator[Positions]]]:
    """What a task knows of every block, and what is found in every part of what it hands on, once all are known.

    The task gives what it knows, a table of words sorted by part, and where each part ends; or None, for nothing. The
    other function takes the rows of a part, in the order of the blocks, if there are any. Tables are written to a
    private file, or stay where the rows are.
    """
    if not rows.source.local:
        with rows.grouped(task, parts, compare) as found:
            yield found
        return
    with private_file() as file:
        shuffled, known = _Shuffled(file, parts), []
        for result in rows.over(task):
            if result is not None:
                of_block, table, ends = result
                known.append(of_block)
                shuffled.add(table, ends)
        yield known, shuffled.over(compare)


def _parts(rows: Stream, size: int) -> int:
    """Into how many parts so many bytes are split."""
    return -(-size // (PART if rows.source.local else FAR))


def _own(marks: Marks, block: Rows) -> Marks:
    """The marks of the rows of a block, a number for each."""
    own = marks[block.first // 8 : -(-(block.first + block.n) // 8)]
    return np.unpackbits(own, count=block.n, bitorder="little")


def _present(block: Rows) -> tuple[Positions, Rows]:
    """Where in a block rows with weight stand, and these rows."""
    slots = np.flatnonzero(block.weight)
    return slots, block if len(slots) == block.n else block.part(slots)


def _part(spread: Words, parts: int) -> Positions:
    """The part of a file for each of words that are spread over all numbers, ascending as they are."""
    return (((spread >> np.uint64(32)) * np.uint64(parts)) >> np.uint64(32)).astype(np.intp)


def _alike(words: Words) -> tuple[Positions, Positions]:
    """Positions in the order of their words, and where in that order each word begins."""
    order = in_order(words)
    ranked = words[order]
    return order, np.flatnonzero(np.append(True, ranked[1:] != ranked[:-1])[: len(ranked)])


def in_order(words: Words) -> Positions:
    """Positions in the order of their words, those of equal ones ascending."""
    low = np.uint64(2 ** max(len(words) - 1, 1).bit_length() - 1)
    packed = (words & ~low) | np.arange(len(words), dtype=np.uint64)
    packed.sort()  # much faster than to sort positions
    order = (packed & low).astype(np.intp)
    packed |= low
    close = np.flatnonzero(packed[1:] == packed[:-1])
    if close.size:
        some = np.union1d(close, close + 1)
        order[some] = order[some][np.argsort(words[order[some]], kind="stable")]
    return order


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
            self._write()

    def over(self, task: Callable[[Words], Positions]) -> Iterator[Positions]:
        """What a task finds in each part that has rows, in the order in which they came."""
        self._write()
        rows = sum((np.diff(ends) for ends in self.ends), np.zeros(self.parts, dtype=np.intp))
        return in_parallel(lambda part: task(self._read(part)), np.flatnonzero(rows).tolist(), 0)

    def _write(self) -> None:
        """Write what waits, part by part."""
        if not self.waiting:
            return
        self.width = self.waiting[0][0].shape[1]
        pieces = [np.split(words, ends[:-1]) for words, ends in self.waiting]
        self.file.writelines(piece.data for part in zip(*pieces) for piece in part if piece.size)
        sizes = np.sum([np.diff(ends, prepend=0) for _, ends in self.waiting], axis=0)
        self.waiting.clear()
        self.ends.append(np.cumsum([self.ends[-1][-1] if self.ends else 0, *sizes]))

    def _read(self, part: int) -> Words:
        """All rows of a part."""
        sizes = [ends[part + 1] - ends[part] for ends in self.ends]
        table = np.empty((sum(sizes), self.width), dtype=np.uint64)
        with self.lock:
            for ends, own in zip(self.ends, np.split(table, np.cumsum(sizes)[:-1])):
                self.file.seek(int(ends[part]) * self.width * 8)
                self.file.readinto(own.data)
        return table
