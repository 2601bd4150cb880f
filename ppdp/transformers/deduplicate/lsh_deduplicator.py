"""Near-duplicates by locality-sensitive hashing: the buckets of a row, and what becomes of the rows of a bucket.

The keys of a row are functions of that row and of a public seed, computed entry by entry: products of matrices would
round differently from place to place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import blake2b
from itertools import chain
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils import check_consistent_length

from ppdp.core.checks import choice, integer, number
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.rows import Array, Rows
from ppdp.exceptions import InvalidInput, InvalidParameter
from ppdp.transformers.base import Statistics
from ppdp.transformers.deduplicate.base import RowSelector
from ppdp.transformers.deduplicate.records import Bits, Positions, bits, grouped, mixed, present
from ppdp.transformers.fit_mode import FitMode

HASHES = {"minhash": 6, "simhash": 32}  # per band
MOST_HASHES = {"minhash": 1024, "simhash": 64}
FORMULAS = {"first": "bands-first", "window": "bands-window", "soft": "bands-weights"}
Similar = Callable[[Positions, Positions], NDArray[np.bool_]]

BLOCK = 4096  # rows


@dataclass(eq=False, repr=False)
class LSHDeduplicator(RowSelector):
    """Keep rows that share no bucket with an earlier one: near-duplicate documents, token sets or vectors.

    Every row has one bucket in each of a few bands, by a public hash that similar rows are likely to share. Rows of a
    matrix are ordered by a public hash of their values, documents as they come.

    Parameters
    ----------
    bands : int, default=10
        Number of buckets of a row. More find more duplicates, and cost more.
    rows_per_band : int, optional
        Hashes that must agree for two rows to share the bucket of a band. More make buckets smaller. Default: 6 for
        "minhash", 32 for "simhash" (at most 64 there).
    mode : {"minhash", "simhash"}, default="minhash"
        "minhash": rows are sets, of words (``fit_resample`` on texts or lists of strings) or of the values of integer
        columns; a missing value is no token. "simhash": rows are vectors, compared by their angle; missing is 0.
    rule : {"first", "window", "soft"}, default="first"
        "first": a row is kept if it is the first of each of its buckets. "window": a row is kept if it is among the
        first ``window`` rows of each of its buckets and not similar to an earlier one there. "soft": every row is kept
        with weight 1 / (rows in its largest bucket).
    window : int, default=4
        For ``rule="window"``.
    similarity : float, default=0.8
        For ``rule="window"``: the Jaccard similarity ("minhash") or cosine ("simhash") from which two rows are similar.
    seed : int, default=0
        Public seed of the hashes.
    compare : {"current", "raw"}, default="current"
        Which rows are compared: as they are, or as they came into the first stage that is fitted.

    Notes
    -----
    **Guarantee** (``docs/theory/lsh-deduplication.md``): unconditional. One replaced record switches at most
    ``2 * bands`` other rows, with a window ``2 * bands * window``; "soft" changes a weight of at most ``bands + 1`` in
    all, and compares rows in memory.

    Two sets of Jaccard similarity s share a bucket with probability ``1 - (1 - s**rows)**bands``: 0.95 at 0.8 with the
    default.

    Examples
    --------
    >>> texts = ["the quick brown fox jumps", "A text of its own", "jumps the quick brown fox"]
    >>> LSHDeduplicator().fit_resample(texts)
    (['the quick brown fox jumps', 'A text of its own'], None)
    """

    bands: int = 10
    rows_per_band: int | None = None
    mode: str = "minhash"
    rule: str = "first"
    window: int = 4
    similarity: float = 0.8
    seed: int = 0
    compare: str = "current"

    _example: ClassVar = {"bands": 2, "mode": "simhash"}

    @property
    def in_memory(self) -> bool:  # type: ignore[override]
        """Whether rows get weights, which need all of them at once."""
        return self.rule == "soft"

    @property
    def _weighs(self) -> bool:  # type: ignore[override]
        return self.rule == "soft"

    def fit_modes(self, domain: Domain, distance: Distance) -> tuple[FitMode, ...]:
        rule = choice("rule", self.rule, FORMULAS, self)
        parameters: dict[str, Any] = {"bands": integer("bands", self.bands, self)}
        parameters["seed"] = integer("seed", self.seed, self, least=0)
        self._hashes()
        if rule == "window":
            number("similarity", self.similarity, self, above=0, most=1)
            parameters["window"] = integer("window", self.window, self)
        raw = self.takes_raw_keys(domain, distance)
        return (FitMode.by(f"deduplication.{FORMULAS[rule]}", domain, distance, raw=raw, **parameters),)

    def _hashes(self) -> int:
        mode = choice("mode", self.mode, list(HASHES), self)
        return (
            HASHES[mode]
            if self.rows_per_band is None
            else integer("rows_per_band", self.rows_per_band, self, most=MOST_HASHES[mode])
        )

    def prepare(self, rows: Rows, way: FitMode, domain: Domain) -> Statistics:
        return self._decided(rows, {}, self.bands)

    def _words(self, rows: Rows, statistics: Statistics) -> Bits:
        return self._table(rows.X).keys(self.bands, self._hashes(), self.seed)

    def _stay(self, rows: Rows, statistics: Statistics, words: Bits, *, whole: bool) -> Array:
        similar = self._table(rows.X).similar if whole and self.rule == "window" else None
        return self._weights(words[:, None], self._order(rows.X, rows.y), similar)

    def _weight(self, rows: Rows, statistics: Statistics) -> Array:
        slots, X, y = present(rows, self.compare)
        weight = np.zeros(rows.n)
        weight[slots] = self._of_table(self._table(X), self._order(X, y))
        return weight

    def _table(self, X: Array) -> TokenSets | Vectors:
        return TokenSets.of_rows(X) if self.mode == "minhash" else Vectors.of_rows(X)

    def _order(self, X: Array, y: Array | None) -> Positions:
        return (grouped(X) if y is None else grouped(X, y)).order

    def _of_table(self, table: TokenSets | Vectors, order: Positions) -> Array:
        """Weight of every row of a table."""
        return self._weights(table.keys(self.bands, self._hashes(), self.seed), order, table.similar)

    def _weights(self, keys: Bits, order: Positions, similar: Callable[[float], Similar] | None) -> Array:
        """Weight of every row by its keys; a row is similar to none where nothing is said of it."""
        if self.rule == "soft":
            return 1.0 / largest_load(keys)
        if self.rule == "first":
            return first_everywhere(keys, order).astype(np.float64)
        alike = similar(self.similarity) if similar else None
        return windowed(keys, order, self.window, alike).astype(np.float64)

    def _values(self, X: Any) -> Array:
        documents = _documents(X)
        if documents is None:
            return super()._values(X)
        if self.mode != "minhash":
            raise InvalidParameter("documents are sets of words.", stage="LSHDeduplicator", fix="mode='minhash'.")
        self.n_features_in_ = 1
        return np.zeros((len(documents), 1))

    def _resampled(self, X: Any, y: Any) -> Rows:
        documents = _documents(X)
        if documents is None:
            return super()._resampled(X, y)
        if y is not None:
            check_consistent_length(documents, y)
        self.fit(X)
        rows = Rows.of(self._values(X))
        try:
            table = TokenSets.of_documents(documents)
        except (AttributeError, TypeError):
            table = None  # so that the error below does not hold on to this one, which may quote a document
        if table is None:
            raise InvalidInput("a document must be a string or a list of strings.")
        return replace(rows, weight=self._of_table(table, np.arange(rows.n)))


def _documents(X: Any) -> Sequence[str | Iterable[str]] | None:
    """The documents of a list or column, or None if X is a table of numbers."""
    if getattr(X, "ndim", 1) != 1 or hasattr(X, "columns"):
        return None
    items = X if isinstance(X, (list, tuple)) else X.to_list() if hasattr(X, "to_list") else list(X)
    if any(isinstance(item, (str, set, frozenset)) for item in items[:1]):
        return items
    tokens = next((item for item in items if isinstance(item, (list, tuple)) and len(item)), ())
    return items if any(isinstance(token, str) for token in tokens[:1]) else None


@dataclass(frozen=True, slots=True)
class TokenSets:
    """Rows as sets of 64-bit tokens."""

    words: Bits  # tokens of all rows, one row after the other
    counts: Positions  # how many tokens each row has; repeated ones count once in all that follows

    @classmethod
    def of_rows(cls, X: Array) -> TokenSets:
        """Every entry of a row is a token; a missing one is none."""
        entries = ~np.isnan(X)
        return cls(bits(X)[entries], entries.sum(axis=1))

    @classmethod
    def of_documents(cls, documents: Sequence[Iterable[str]]) -> TokenSets:
        """Tokens that are strings; texts are split at white space."""
        counts = np.empty(len(documents), dtype=np.intp)
        words_of_blocks, word = [], cache(_word)  # which forgets the words with this call
        for start in range(0, len(documents), BLOCK):
            block = documents[start : start + BLOCK]
            split = [document.split() if isinstance(document, str) else list(document) for document in block]
            counts[start : start + BLOCK] = sizes = list(map(len, split))
            words = map(word, chain.from_iterable(split))
            words_of_blocks.append(np.fromiter(words, np.uint64, sum(sizes)))
        return cls(np.concatenate(words_of_blocks) if words_of_blocks else np.empty(0, np.uint64), counts)

    def keys(self, bands: int, rows: int, seed: int) -> Bits:
        """MinHash: a key per band, equal for two sets with probability (Jaccard similarity)^rows."""
        salts = np.random.Generator(np.random.PCG64(seed)).integers(2**64, size=(bands, rows), dtype=np.uint64)
        bucket_keys = np.zeros((len(self.counts), bands), dtype=np.uint64)
        ends = np.concatenate([[0], np.cumsum(self.counts)])
        for start in range(0, len(self.counts), BLOCK):
            filled = start + np.flatnonzero(self.counts[start : start + BLOCK])
            if not len(filled):
                continue
            words = self.words[ends[start] : ends[min(start + BLOCK, len(self.counts))]]
            for band, salt in np.ndindex(salts.shape):
                least = np.minimum.reduceat(mixed(words ^ salts[band, salt]), ends[filled] - ends[start])
                bucket_keys[filled, band] = mixed(bucket_keys[filled, band] ^ least)
        return bucket_keys

    def similar(self, least: float) -> Similar:
        """Whether the Jaccard similarity of two sets is at least ``least``; empty sets are equal."""
        columns = np.unique(self.words, return_inverse=True)[1]
        ends = np.concatenate([[0], np.cumsum(self.counts)])
        sets = csr_array((np.ones(len(columns)), columns, ends), shape=(len(self.counts), len(columns) or 1))
        sets.sum_duplicates()
        sets.data[:] = 1.0
        sizes = np.diff(sets.indptr)

        def similar(first_rows: Positions, second_rows: Positions) -> NDArray[np.bool_]:
            common = np.asarray((sets[first_rows] * sets[second_rows]).sum(axis=1)).ravel()
            together = sizes[first_rows] + sizes[second_rows] - common
            result: NDArray[np.bool_] = common >= least * together
            return result

        return similar


@dataclass(frozen=True, slots=True)
class Vectors:
    """Rows as vectors; a missing value is 0."""

    X: Array

    @classmethod
    def of_rows(cls, X: Array) -> Vectors:
        """The rows with zeros for missing values."""
        return cls(np.nan_to_num(X, posinf=0.0, neginf=0.0))

    def keys(self, bands: int, rows: int, seed: int) -> Bits:
        """SimHash: a key per band, equal for two vectors with probability (1 - angle/π)^rows."""
        n, d = self.X.shape
        directions = np.random.Generator(np.random.PCG64(seed)).standard_normal((d, rows, bands))
        bucket_keys = np.zeros((n, bands), dtype=np.uint64)
        for start in range(0, n, BLOCK):
            block = self.X[start : start + BLOCK]
            shadows = np.zeros((len(block), rows, bands))
            for column, direction in zip(block.T, directions):
                shadows += column[:, None, None] * direction
            for row in range(rows):
                bucket_keys[start : start + BLOCK] <<= np.uint64(1)
                bucket_keys[start : start + BLOCK] |= (shadows[:, row] > 0).astype(np.uint64)
        return bucket_keys

    def similar(self, least: float) -> Similar:
        """Whether the cosine of two vectors is at least ``least``; zero vectors are equal."""

        def similar(first_rows: Positions, second_rows: Positions) -> NDArray[np.bool_]:
            product, first, second = np.zeros((3, len(first_rows)))
            for column in self.X.T:
                a, b = column[first_rows], column[second_rows]
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
