"""Categories that nobody declared, found by noisy counts: ``docs/theory/released-categories.md``.

Every cell is read as text by itself. While a fit lasts, a column holds codes of its texts, and the rows know the texts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.bounds.queries import counting_step
from ppdp.bounds.statistics import CATEGORY_NUMBERS, LONGEST_CATEGORY, PACKED
from ppdp.core.formula import sane
from ppdp.data.cells import category_texts, text_of
from ppdp.data.rows import Array, Rows
from ppdp.data.stream import Stream
from ppdp.privacy.noise.sampler import Noise

OTHER, MISSING = -1.0, -2.0  # codes of what is no category


Places = NDArray[np.intp]
Texts = Mapping[int, tuple[str, ...]]
"""Texts by the position of their column; the code of a text is its place."""


def texts_of(column: Any, reserved: Mapping[str, float]) -> tuple[Places, list[str | float]]:
    """Place of each cell, and the texts there, or codes of what is no category, as texts that are ``reserved`` are."""
    known: dict[str | None, float] = {None: MISSING, "": OTHER}
    known.update(reserved)
    places, read = category_texts(column)
    return places, [known.get(text, text) for text in read.values]


def distinct(texts: Sequence[str | float]) -> tuple[str, ...]:
    """The texts among them in the order of their bytes, whatever the order of the rows."""
    return tuple(sorted({text for text in texts if isinstance(text, str)}))


def coded(texts: Sequence[str | float], known: Sequence[str]) -> Array:
    """The place of every text among those that are known; another one is one of the others."""
    places: dict[str, float] = {text: float(place) for place, text in enumerate(known)}
    return np.array([places.get(text, OTHER) if isinstance(text, str) else text for text in texts], dtype=np.float64)


def with_texts(rows: Rows, columns: Sequence[int]) -> Rows:
    """Rows that know the texts of these columns; where nobody has read any, their numbers are read as text."""
    if rows.texts is not None:
        return rows
    X, found = rows.X.copy(), {}
    for i in columns:
        places, texts = texts_of(X[:, i], {})
        found[i] = distinct(texts)
        X[:, i] = coded(texts, found[i])[places]
    return replace(rows, X=X, texts=found, ours=False)


def among(rows: Rows, released: Texts) -> Rows:
    """The same rows with the places of their texts among those that were released, which they know no more."""
    rows = with_texts(rows, list(released))
    X = rows.X.copy()
    for i, texts in released.items():
        places = np.append(coded((rows.texts or {})[i], texts), OTHER)  # behind it empty slots, where there is no text
        which = X[:, i] >= 0
        X[which, i] = places[X[which, i].astype(np.intp)]
    left = {i: texts for i, texts in (rows.texts or {}).items() if i not in released} or None
    return replace(rows, X=X, texts=left, ours=False, raw=None if rows.raw is None else X)


@dataclass(frozen=True, slots=True, repr=False)
class Tally:
    """Weight of every text that some row with weight holds, column by column."""

    texts: tuple[tuple[str, ...], ...]
    weights: tuple[Array, ...]

    @classmethod
    def of(cls, rows: Rows | Stream, columns: Sequence[int]) -> Tally:
        """Those of rows; exact, whatever their order, and in whatever blocks they are read."""
        counted = partial(_counted, columns, counting_step(rows.n))
        counts = rows.over(counted, len(columns), _added) if isinstance(rows, Stream) else [counted(rows)]
        found = [dict(sorted(of_column.items())) for of_column in reduce(_added, counts)]
        return cls(tuple(map(tuple, found)), tuple(np.array([*own.values()]) for own in found))

    def apart(self, other: Tally) -> float:
        """How far apart the weights of texts are that both have."""
        squares = 0.0
        for mine, own, theirs, others in zip(self.texts, self.weights, other.texts, other.weights):
            known = dict(zip(theirs, others))
            squares += sum((weight - known[text]) ** 2 for text, weight in zip(mine, own) if text in known)
        return math.sqrt(squares)

    def released(self, most: Sequence[int], noise_scale: float, threshold: float, bound: float, noise: Noise) -> Array:
        """Of every column the texts whose noisy weight exceeds the threshold, at most so many, with that weight.

        The heaviest are taken, of equally heavy ones the first in the order of texts, in which they leave. The rest of
        the numbers are 0.
        """
        noisy = noise.release(np.concatenate([np.empty(0), *self.weights]), noise_scale, bound)
        parts = []
        for texts, weights, count in zip(self.texts, np.split(noisy, np.cumsum([*map(len, self.weights)])), most):
            heaviest = np.argsort(-weights, kind="stable")[:count]
            kept = np.sort(heaviest[weights[heaviest] > threshold])
            table = np.zeros((count, CATEGORY_NUMBERS))
            for line, i in zip(table, kept):
                line[0], line[1:] = weights[i], _packed(texts[i])
            parts.append(table.ravel())
        return np.concatenate(parts)


def _counted(columns: Sequence[int], step: float, rows: Rows) -> list[dict[str, float]]:
    """The weight of every text of these columns that some row with weight holds, in whole steps."""
    rows = with_texts(rows, columns)
    found = []
    for i in columns:
        own = (rows.texts or {})[i]
        which = (rows.X[:, i] >= 0) & (rows.weight > 0)
        steps = np.floor(rows.weight[which] / step)
        weights = np.bincount(rows.X[which, i].astype(np.intp), steps, len(own)) * step
        found.append({text: float(weight) for text, weight in zip(own, weights) if weight > 0})
    return found


def _added(one: list[dict[str, float]], other: list[dict[str, float]]) -> list[dict[str, float]]:
    """The weights of both; sums of whole steps are exact."""
    for mine, theirs in zip(one, other):
        for text, weight in theirs.items():
            mine[text] = mine.get(text, 0.0) + weight
    return one


def released_categories(answer: Array, columns: Sequence[int], most: Sequence[int], threshold: float) -> Texts:
    """The texts of every column, from the numbers that left; refuses numbers that no release gives."""
    tables = np.split(answer, CATEGORY_NUMBERS * np.cumsum(most)[:-1])
    return {i: _texts(table.reshape(-1, CATEGORY_NUMBERS), threshold) for i, table in zip(columns, tables)}


def released_weights(answer: Array, most: Sequence[int]) -> list[Array]:
    """The noisy weights of the texts of every column."""
    tables = (
        table.reshape(-1, CATEGORY_NUMBERS) for table in np.split(answer, CATEGORY_NUMBERS * np.cumsum(most)[:-1])
    )
    return [table[table[:, 0] != 0, 0] for table in tables]


def _packed(text: str) -> list[int]:
    data = text.encode().ljust(LONGEST_CATEGORY, b"\0")
    return [int.from_bytes(data[i : i + PACKED], "big") for i in range(0, LONGEST_CATEGORY, PACKED)]


def _texts(table: Array, threshold: float) -> tuple[str, ...]:
    used = table[:, 0] != 0
    sane(bool(np.isfinite(table).all()) and not table[~used].any() and not used[np.count_nonzero(used) :].any())
    sane(bool((table[used, 0] > threshold).all()))
    found = tuple(_unpacked(line[1:]) for line in table[used])
    sane(all(found) and list(found) == sorted(set(found)))
    return found


def _unpacked(numbers: Array) -> str:
    sane(bool(((numbers >= 0) & (numbers < 2.0 ** (8 * PACKED)) & (numbers == np.floor(numbers))).all()))
    data = b"".join(int(number).to_bytes(PACKED, "big") for number in numbers).rstrip(b"\0")
    text = text_of(data)
    sane(bool(text) and text is not None and text.encode() == data)
    return text or ""
