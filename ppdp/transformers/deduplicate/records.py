"""Which records are equal, and in which order they stand, without regard to where they stand.

A record is a row of float64; two missing values are equal, and so are -0 and 0. Records are ordered by a public hash,
and by their bits where two hashes agree: the order of two different records depends on nothing but the two of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ppdp.data.engine.external_join import in_order
from ppdp.data.parallel import blocks, in_parallel, pieces
from ppdp.data.rows import Array, Rows

Bits = NDArray[np.uint64]
Positions = NDArray[np.intp]

CHUNK = 2**16  # rows
PROBED, SAMPLED = 4, 256  # columns that tell most records apart, and rows by which they are chosen
MANY = 2**18  # rows
SURE = 0.9  # share of those rows that differ in a column which, with another, tells nearly all apart


@dataclass(frozen=True)
class Groups:
    """Rows sorted group by group, equal rows by position."""

    order: Positions  # of all rows
    starts: Positions  # where in ``order`` each group begins

    @cached_property
    def sizes(self) -> Positions:
        """Number of rows of every group."""
        return np.diff(self.starts, append=len(self.order))

    @cached_property
    def first(self) -> Positions:
        """Position of the first row of every group."""
        return self.order[self.starts]

    def of_rows(self, value: NDArray) -> NDArray:
        """What belongs to every group, given to its rows."""
        spread = np.empty(len(self.order), dtype=value.dtype)
        spread[self.order] = np.repeat(value, self.sizes)
        return spread

    def constant(self, column: Array) -> NDArray[np.bool_]:
        """Which groups agree in a column."""
        if not len(self.starts):
            return np.ones(0, dtype=bool)
        values = column[self.order]
        return np.minimum.reduceat(values, self.starts) == np.maximum.reduceat(values, self.starts)


def compared(rows: Rows, keys: str) -> Array:
    """The rows that are compared: as they are, or as they came into the first stage that is fitted or moves rows."""
    return rows.raw if keys == "raw" and rows.raw is not None else rows.X


def present(rows: Rows, keys: str) -> tuple[Positions, Array, Array | None]:
    """Slots of the rows that are present, the rows that are compared, and their labels."""
    X, slots = compared(rows, keys), np.flatnonzero(rows.weight)
    if len(slots) == rows.n:
        return slots, X, rows.y
    return slots, X[slots], None if rows.y is None else rows.y[slots]


def bits(values: Array) -> Bits:
    """Bit patterns of numbers, the same for all missing values and for both zeros."""
    plain = values + 0.0
    np.copyto(plain, np.nan, where=np.isnan(plain))
    return plain.view(np.uint64)


def mixed(words: Bits) -> Bits:
    """A public one-to-one map of 64-bit words that looks random (the last step of SplitMix64)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def hashed(words: Bits, hashes: Bits) -> None:
    """Go on with a public hash of every row, by these of its columns; writes over them."""
    words ^= words >> np.uint64(32)
    words *= np.uint64(0x9E3779B97F4A7C15)
    words ^= words >> np.uint64(29)
    hashes *= np.uint64(0x9E3779B97F4A7C15)
    hashes += words @ (mixed(np.arange(1, 1 + words.shape[1], dtype=np.uint64)) | np.uint64(1))


def hashes_of(*columns: Array) -> Bits:
    """A public hash of every record."""
    tables = [column if column.ndim == 2 else column[:, None] for column in columns]
    hashes = np.zeros(len(columns[0]), dtype=np.uint64)

    def task(piece: slice) -> None:
        for part in blocks(piece.stop - piece.start, tables[0].shape[1]):
            for table in tables:
                hashed(bits(table[piece][part]), hashes[piece][part])

    for _ in in_parallel(task, pieces(len(hashes)), 0):
        pass
    return hashes


def grouped(*columns: Array) -> Groups:
    """Groups of equal records, in the order of records; the columns of a record may stand in several tables."""
    hashes = hashes_of(*columns)
    order = in_order(hashes)
    ranked = hashes[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = ranked[1:] != ranked[:-1]
    if any(_share_a_hash(table, order, np.flatnonzero(~new)) for table in columns):
        words = np.column_stack([bits(table) for table in columns])
        order = np.lexsort((*words.T, hashes))
        new[1:] = (words[order[1:]] != words[order[:-1]]).any(axis=1)
    return Groups(order, np.flatnonzero(new))


def firsts(*columns: Array) -> Positions:
    """Position of the first record of every group of equal ones, ascending; few columns are compared before all."""
    sample = columns[0][:SAMPLED, :SAMPLED]
    different = [len(np.unique(column)) for column in sample.T]
    if 2 * max(different, default=0) <= len(sample):
        return np.sort(grouped(*columns).first)
    probed = PROBED if max(different) < SURE * len(sample) else PROBED // 2
    start = max(0, min(int(np.argmax(different)), columns[0].shape[1] - probed))
    agree = _agreeing(_probes(columns[0][:, start : start + probed]))
    stays = np.ones(len(columns[0]), dtype=bool)
    stays[agree] = False
    stays[agree[grouped(*(table[agree] for table in columns)).first]] = True
    return np.flatnonzero(stays)


def _probes(table: Array) -> Bits:
    """Words of every record, equal for equal ones: they tell most others apart, in less time than hashes."""
    words = np.zeros(len(table), dtype=np.uint64)

    def task(piece: slice) -> None:
        for part in blocks(piece.stop - piece.start, PROBED):
            own = words[piece][part]
            for column in table[piece][part].T:
                own += bits(column)
                own *= np.uint64(0x9E3779B97F4A7C15)
                own ^= own >> np.uint64(32)
            own *= np.uint64(0xBF58476D1CE4E5B9)

    for _ in in_parallel(task, pieces(len(words)), 0):
        pass
    return words


def _agreeing(hashes: Bits) -> Positions:
    """Positions of hashes that are there more than once, ascending; of many a fourth at a time, by how they begin."""
    if len(hashes) < MANY:
        return _alike(hashes)

    def task(start: int) -> Positions:
        some = np.flatnonzero(hashes >> np.uint64(62) == start)
        return some[_alike(hashes[some] << np.uint64(2))]

    return np.sort(np.concatenate(list(in_parallel(task, range(4), 0))))


def _alike(hashes: Bits) -> Positions:
    """The same, of as many as a table has room for in a processor's cache."""
    size, kind = (2 * len(hashes)).bit_length(), np.min_scalar_type(-max(len(hashes), 1))  # a small table is faster
    own = (hashes >> np.uint64(64 - size)).view(np.int64)
    holder = np.empty(2**size, dtype=kind)  # of every place one of the hashes that fall there
    left, agree = np.arange(len(hashes), dtype=kind), np.zeros(len(hashes), dtype=bool)
    while left.size:
        holder[own] = left
        held = holder[own]
        other = np.flatnonzero(held != left)
        left, held, own = left[other], held[other], own[other]
        same = hashes[left] == hashes[held]
        agree[left[same]] = agree[held[same]] = True
        left, own = left[~same], own[~same]
    return np.flatnonzero(agree)


def _share_a_hash(records: Array, order: Positions, places: Positions) -> bool:
    """Whether at any of these places stands another record than before it, although their hashes agree."""
    for start in range(0, len(places), CHUNK):
        some = places[start : start + CHUNK]
        if (bits(records[order[some]]) != bits(records[order[some - 1]])).any():
            return True
    return False


def smallest(records: Array, groups: Groups) -> Positions:
    """Position of the lexicographically smallest record of every group, the first of equal ones; NaN is the largest."""
    positions, sizes = groups.first.copy(), groups.sizes
    several = sizes > 1
    owner = np.repeat(np.arange(len(several)), sizes)
    open_ = several[owner]
    rows, owner = groups.order[open_], owner[open_]
    for column in records.T:
        if not len(rows):
            break
        values = np.where(np.isnan(column[rows]), np.inf, column[rows])
        starts, counts = _runs(owner)
        least = values == np.repeat(np.minimum.reduceat(values, starts), counts)
        rows, owner = rows[least], owner[least]
        starts, counts = _runs(owner)
        positions[owner[starts]] = rows[starts]
        open_ = np.repeat(counts > 1, counts)
        rows, owner = rows[open_], owner[open_]
    return positions


def _runs(owner: Positions) -> tuple[Positions, Positions]:
    """Where each run of equal numbers begins, and how long it is."""
    new = np.ones(len(owner) + 1, dtype=bool)
    new[1:-1] = owner[1:] != owner[:-1]
    ends = np.flatnonzero(new)
    return ends[:-1], ends[1:] - ends[:-1]
