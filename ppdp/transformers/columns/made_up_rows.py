"""Rows as blocks of columns expect them, for rehearsals: of each column what is declared of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ppdp.data.rows import Array
from ppdp.transformers.columns.categories import Categorical, OrdinalCodes, labels_only
from ppdp.transformers.columns.cell_parsers import HashParser, TextParser, Words
from ppdp.transformers.columns.column_group import ColumnGroup, LocatedBlock


def made_up(parts: Sequence[LocatedBlock], start: Array, n: int, rng: np.random.Generator) -> Any:
    """A table of so many rows; ``start`` are the public ranges in front of all blocks, NaN where there are none."""
    X = _drawn(_ranges(parts, start), n, rng).astype(object)
    for part in parts:
        for at, i in enumerate(part.positions if part.block.encoder is not None else ()):
            if part.block.takes_texts:
                X[:, i] = _texts(n, rng)
            elif labels := _labels(part.block, at):
                X[:, i] = np.asarray(labels, dtype=object)[rng.integers(len(labels), size=n)]
            else:  # dates, in units since their epoch
                X[:, i] = _drawn(part.facts[1].ranges[[at]], n, rng)[:, 0]
    return X


def _ranges(parts: Sequence[LocatedBlock], start: Array) -> Array:
    """Those to which each block of numbers clips first, or those in front."""
    ranges = start.copy()
    for part in parts:
        if part.block.encoder is None:
            ranges[part.positions] = np.where(np.isnan(part.limits), ranges[part.positions], part.limits)
    return ranges


def _drawn(ranges: Array, n: int, rng: np.random.Generator) -> Array:
    """Numbers within ranges, and about 0 where there are none."""
    (low, high), bare = ranges.T, np.isnan(ranges).any(axis=1)
    X = low + (high - low) * rng.beta(2.0, 2.0, (n, len(ranges)))
    X[:, bare] = rng.standard_normal((n, np.count_nonzero(bare)))
    return np.asarray(X)


def _labels(block: ColumnGroup, at: int) -> Sequence[Any]:
    """The categories of one of its columns; none of dates."""
    encoder = block.encoder
    if isinstance(encoder, OrdinalCodes):
        return encoder.labels[at]
    if isinstance(encoder, Categorical):
        return labels_only(encoder.categories[at])
    reading = encoder and encoder.reading(at)
    if isinstance(reading, HashParser):
        return range(reading.buckets)
    return range(reading.most) if isinstance(reading, TextParser) else ()


def _texts(n: int, rng: np.random.Generator) -> Words:
    """Texts of three words of a few."""
    words = np.array([f"word{i}" for i in range(50)], dtype=object)[rng.zipf(1.5, (n, 3)) % 50]
    return np.asarray(words[:, 0] + " " + words[:, 1] + " " + words[:, 2])
