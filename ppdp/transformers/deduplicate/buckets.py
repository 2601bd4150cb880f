"""Locality-sensitive hashing: the buckets of a row, and what becomes of the rows of a bucket.

The keys of a row are functions of that row and of a public seed, computed entry by entry: products of matrices would
round differently from place to place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ppdp.data.rows import Array
from ppdp.transformers.deduplicate.records import Bits, Positions, bits, mixed

Similar = Callable[[Positions, Positions], NDArray[np.bool_]]

BLOCK = 4096  # rows


@dataclass(frozen=True, slots=True)
class TokenSets:
    """Rows as sets of 64-bit tokens."""

    words: Bits  # tokens of all rows, one row after the other
    counts: Positions  # how many tokens each row has; repeated ones count once in all that follows

    @classmethod
    def of_rows(cls, X: Array) -> TokenSets:
        """Every entry of a row is a token; a gap is none."""
        entries = ~np.isnan(X)
        return cls(bits(X)[entries], entries.sum(axis=1))

    @classmethod
    def of_documents(cls, documents: Sequence[Iterable[str]]) -> TokenSets:
        """Tokens that are strings; texts are split at white space."""
        counts = np.empty(len(documents), dtype=np.intp)
        found, word = [], cache(_word)  # which forgets the words with this call
        for start in range(0, len(documents), BLOCK):
            some = documents[start : start + BLOCK]
            split = [one.split() if isinstance(one, str) else list(one) for one in some]
            counts[start : start + BLOCK] = sizes = list(map(len, split))
            words = map(word, chain.from_iterable(split))
            found.append(np.fromiter(words, np.uint64, sum(sizes)))
        return cls(np.concatenate(found) if found else np.empty(0, np.uint64), counts)

    def keys(self, bands: int, rows: int, seed: int) -> Bits:
        """MinHash: a key per band, equal for two sets with probability (Jaccard similarity)^rows."""
        salts = np.random.Generator(np.random.PCG64(seed)).integers(2**64, size=(bands, rows), dtype=np.uint64)
        found = np.zeros((len(self.counts), bands), dtype=np.uint64)
        ends = np.concatenate([[0], np.cumsum(self.counts)])
        for start in range(0, len(self.counts), BLOCK):
            filled = start + np.flatnonzero(self.counts[start : start + BLOCK])
            if not len(filled):
                continue
            words = self.words[ends[start] : ends[min(start + BLOCK, len(self.counts))]]
            for band, salt in np.ndindex(salts.shape):
                least = np.minimum.reduceat(mixed(words ^ salts[band, salt]), ends[filled] - ends[start])
                found[filled, band] = mixed(found[filled, band] ^ least)
        return found

    def similar(self, least: float) -> Similar:
        """Whether the Jaccard similarity of two sets is at least ``least``; empty sets are equal."""
        columns = np.unique(self.words, return_inverse=True)[1]
        ends = np.concatenate([[0], np.cumsum(self.counts)])
        sets = csr_array((np.ones(len(columns)), columns, ends), shape=(len(self.counts), len(columns) or 1))
        sets.sum_duplicates()
        sets.data[:] = 1.0
        sizes = np.diff(sets.indptr)

        def similar(one: Positions, other: Positions) -> NDArray[np.bool_]:
            common = np.asarray((sets[one] * sets[other]).sum(axis=1)).ravel()
            together = sizes[one] + sizes[other] - common
            result: NDArray[np.bool_] = common >= least * together
            return result

        return similar


@dataclass(frozen=True, slots=True)
class Vectors:
    """Rows as vectors; a gap is 0."""

    X: Array

    @classmethod
    def of_rows(cls, X: Array) -> Vectors:
        """The rows with zeros for gaps."""
        return cls(np.nan_to_num(X, posinf=0.0, neginf=0.0))

    def keys(self, bands: int, rows: int, seed: int) -> Bits:
        """SimHash: a key per band, equal for two vectors with probability (1 - angle/π)^rows."""
        n, d = self.X.shape
        directions = np.random.Generator(np.random.PCG64(seed)).standard_normal((d, rows, bands))
        found = np.zeros((n, bands), dtype=np.uint64)
        for start in range(0, n, BLOCK):
            block = self.X[start : start + BLOCK]
            shadows = np.zeros((len(block), rows, bands))
            for column, direction in zip(block.T, directions):
                shadows += column[:, None, None] * direction
            for row in range(rows):
                found[start : start + BLOCK] <<= np.uint64(1)
                found[start : start + BLOCK] |= (shadows[:, row] > 0).astype(np.uint64)
        return found

    def similar(self, least: float) -> Similar:
        """Whether the cosine of two vectors is at least ``least``; zero vectors are equal."""

        def similar(one: Positions, other: Positions) -> NDArray[np.bool_]:
            product, first, second = np.zeros((3, len(one)))
            for column in self.X.T:
                a, b = column[one], column[other]
                product += a * b
                first += a * a
                second += b * b
            result: NDArray[np.bool_] = product >= least * (np.sqrt(first) * np.sqrt(second))
            return result & ((first > 0) == (second > 0))

        return similar


def _word(token: str) -> int:
    """64 bits that stand for a string."""
    return int.from_bytes(blake2b(token.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def first_everywhere(keys: Bits, order: Positions) -> NDArray[np.bool_]:
    """Which rows are, in the given order, the first row of each of their buckets."""
    kept = np.ones(len(order), dtype=bool)
    for band in keys[order].T:
        first = np.zeros(len(order), dtype=bool)
        first[np.unique(band, return_index=True)[1]] = True
        kept[order] &= first
    return kept


def windowed(keys: Bits, order: Positions, window: int, similar: Similar | None) -> NDArray[np.bool_]:
    """Which rows are among the first ``window`` of each of their buckets and similar to no earlier row there."""
    kept = np.ones(len(order), dtype=bool)
    for band in keys.T:
        bucketed = order[np.argsort(band[order], kind="stable")]
        starts = np.flatnonzero(np.r_[True, band[bucketed[1:]] != band[bucketed[:-1]]])
        place = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
        kept[bucketed[place >= window]] = False
        if similar is None:
            continue
        for lag in range(1, window):
            later = np.flatnonzero((place >= lag) & (place < window))
            row, earlier = bucketed[later], bucketed[later - lag]
            kept[row[similar(row, earlier)]] = False
    return kept


def largest_load(keys: Bits) -> Positions:
    """Number of rows in the largest bucket of every row."""
    loads = np.ones(len(keys), dtype=np.intp)
    for band in keys.T:
        _, bucket, sizes = np.unique(band, return_inverse=True, return_counts=True)
        loads = np.maximum(loads, sizes[bucket])
    return loads
