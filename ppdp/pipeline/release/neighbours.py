"""The nearest rows of a table, by blocks of rows; equal ones in the order of the rows.

Where ``faiss`` is installed it finds the candidates. What comes out is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.data.rows import Array

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]
Counts = NDArray[np.unsignedinteger[Any]]

QUERIES, ROWS = 16, 4096  # of a block, such that it stays in the cache of a core
MORE = 32  # candidates beyond the neighbours that are asked for
_ONES = np.array([byte.bit_count() for byte in range(256)], dtype=np.uint8)


def installed_faiss() -> Any:
    """The library, or None."""
    return None if find_spec("faiss") is None else import_module("faiss")


def pack(signs: NDArray[np.bool_]) -> Bytes:
    """Bits of every row in bytes, the first one lowest."""
    return np.packbits(signs, axis=1, bitorder="little")


def distances(queries: Bytes, rows: Bytes) -> Counts:
    """How many bits differ, shape (n_queries, n_rows)."""
    counts = np.empty((len(queries), len(rows)), dtype=np.uint32)
    for start, first, block in _distances(queries, rows):
        counts[start : start + block.shape[0], first : first + block.shape[1]] = block
    return counts


def _distances(queries: Bytes, rows: Bytes) -> Iterator[tuple[int, int, Counts]]:
    """The same by blocks: first query, first row, distances."""
    words, others = _words(queries), _words(rows)
    kind = np.uint16 if 64 * words.shape[1] < 2**16 else np.uint32
    for first in range(0, len(others), ROWS):
        columns = np.ascontiguousarray(others[first : first + ROWS].T)
        for start in range(0, len(words), QUERIES):
            some = words[start : start + QUERIES]
            block = np.zeros((len(some), columns.shape[1]), dtype=kind)
            for column, word in zip(columns, some.T):
                block += ones(column ^ word[:, None])
            yield start, first, block


def _words(packed: Bytes) -> NDArray[np.uint64]:
    """Bytes as words of eight, the last ones filled up with zeros."""
    width = -(-packed.shape[1] // 8) * 8
    filled = np.zeros((len(packed), width), dtype=np.uint8)
    filled[:, : packed.shape[1]] = packed
    return filled.view(np.uint64)


def ones_by_table(words: NDArray[np.uint64]) -> Bytes:
    """How many bits of every word are 1."""
    counts: Bytes = _ONES[np.ascontiguousarray(words).view(np.uint8)].reshape(*words.shape, 8).sum(-1, dtype=np.uint8)
    return counts


ones = getattr(np, "bitwise_count", ones_by_table)  # since NumPy 2


def smallest_distances(queries: Bytes, rows: Bytes, count: int) -> tuple[Places, Places]:
    """The least Hamming distances of every query, and the rows that have them."""
    if (faiss := installed_faiss()) is not None:
        index = faiss.IndexBinaryFlat(8 * rows.shape[1])
        index.add(np.ascontiguousarray(rows))
        queries = np.ascontiguousarray(queries)
        found, places = index.search(queries, min(count + MORE, len(rows)))
        keys = np.sort(found.astype(np.int64) * len(rows) + places, axis=1)
        found, places = keys // len(rows), keys % len(rows)
        # Of rows at the largest distance some may be missing; counted in the order of the rows, the first are found.
        vague = (found[:, -1] == found[:, count - 1]) & (found.shape[1] < len(rows))
        found, places = found[:, :count], places[:, :count]
        index.use_heap = False
        if vague.any():
            found[vague], places[vague] = index.search(queries[vague], count)
        return found, places
    best = _Best(count, np.zeros(len(queries), dtype=np.int64))
    best.see(_distances(queries, rows))
    return np.stack(best.costs), np.stack(best.places)


def largest_products(queries: Array, rows: Array, count: int) -> tuple[Array, Places]:
    """The largest inner products with every query, and the rows that have them.

    Candidates are found by products of matrices, whose last bits depend on the place of a row; theirs do not.
    """
    reach = np.sqrt(np.einsum("ij,ij->i", queries, queries) * np.einsum("ij,ij->i", rows, rows).max(initial=0.0))
    products, places = np.empty((len(queries), count)), np.empty((len(queries), count), dtype=np.int64)
    waiting = np.arange(len(queries))
    if (faiss := installed_faiss()) is not None:
        index = faiss.IndexFlatIP(rows.shape[1])
        index.add(rows.astype(np.float32))
        scores, candidates = index.search(queries.astype(np.float32), min(count + MORE, len(rows)))
        for i, query in enumerate(queries):
            products[i], places[i] = _ordered(query, rows, np.sort(candidates[i]), count)
        missed = scores[:, -1] + (rows.shape[1] + 4) * 2.0**-23 * reach  # what any other row has at most
        waiting = np.flatnonzero(~(missed < products[:, -1]) & (candidates.shape[1] < len(rows)))
    best = _Best(count, (rows.shape[1] + 4) * 2.0**-50 * reach[waiting])
    best.see(_products(queries[waiting], rows))
    for j, candidates in zip(waiting, best.places):
        products[j], places[j] = _ordered(queries[j], rows, np.sort(candidates), count)
    return products, places


def _ordered(query: Array, rows: Array, candidates: Places, count: int) -> tuple[Array, Places]:
    """Largest products first; candidates come in the order of the rows."""
    products = (rows[candidates] * query).sum(axis=1)
    first = np.argsort(-products, kind="stable")[:count]
    return products[first], candidates[first]


def _products(queries: Array, rows: Array) -> Iterator[tuple[int, int, Array]]:
    """First query, first row, and products, the largest of which are the least."""
    for first in range(0, len(rows), ROWS):
        for start in range(0, len(queries), 8 * QUERIES):
            yield start, first, -queries[start : start + 8 * QUERIES] @ rows[first : first + ROWS].T


class _Best:
    """For every query the rows of least cost among those that were seen, and those within its slack of the last."""

    def __init__(self, count: int, slack: NDArray[Any]) -> None:
        self.count, self.slack = count, slack
        most = np.inf if slack.dtype.kind == "f" else np.iinfo(slack.dtype).max
        self.limits = np.full(len(slack), most, dtype=slack.dtype)
        self.costs = [self.limits[:0]] * len(slack)
        self.places = [np.empty(0, dtype=np.int64)] * len(slack)

    def see(self, blocks: Iterable[tuple[int, int, NDArray[Any]]]) -> None:
        """First query, first row, and what these rows cost these queries; rows come in their order."""
        for start, first, block in blocks:
            limits = self.limits[start : start + len(block), None]
            if block.dtype.kind == "u":
                limits = np.minimum(limits, np.iinfo(block.dtype).max).astype(block.dtype)
            below = block < limits
            for i in np.flatnonzero(below.any(axis=1)).tolist():
                (places,) = np.nonzero(below[i])
                self._keep(start + i, block[i, places].astype(self.slack.dtype), first + places)

    def _keep(self, i: int, costs: NDArray[Any], places: Places) -> None:
        """Equal costs stay in the order of the rows, and later rows are kept only if they are better."""
        costs, places = np.concatenate([self.costs[i], costs]), np.concatenate([self.places[i], places])
        order = np.argsort(costs, kind="stable")
        costs, places = costs[order], places[order]
        if len(costs) >= self.count:
            self.limits[i] = costs[self.count - 1] + self.slack[i]
            kept = max(self.count, int(np.searchsorted(costs, self.limits[i])))
            costs, places = costs[:kept], places[:kept]
        self.costs[i], self.places[i] = costs, places
