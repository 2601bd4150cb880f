"""Secret batches of rows, exactly as the accounting takes them to be drawn: ``docs/theory/subsampling.md``.

All coins come from :class:`~ppdp.privacy.noise.sampler.Noise`: the operating system's entropy, or a seed for
tests. Nothing here looks at a row.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ppdp.privacy.noise.sampler import Noise

T = TypeVar("T")
Indices = NDArray[np.intp]
_ROWS = 2**26  # whose coins are held at once


def uniform(noise: Noise, below: int, count: int) -> Indices:
    """Independent uniform integers from 0 to ``below - 1``, by rejection from 64 random bits."""
    last = np.uint64(2**64 - 2**64 % below - 1)
    words = noise.words(count)
    while (pending := np.flatnonzero(words > last)).size:
        words[pending] = noise.words(pending.size)
    return (words % np.uint64(below)).astype(np.intp)


def poisson_sample(noise: Noise, n_rows: int, rate: float) -> Indices:
    """Every row with probability ``rate`` (less by at most 2^-64), independently; perhaps none."""
    threshold = int(rate * 2.0**64)
    if threshold >= 2**64:
        return np.arange(n_rows)
    if n_rows > _ROWS:
        parts = (poisson_sample(noise, min(_ROWS, n_rows - start), rate) + start for start in range(0, n_rows, _ROWS))
        return np.concatenate(list(parts))
    top, rest = divmod(threshold, 2**56)  # a byte decides all but one row in 256, 56 more bits the others
    leading = np.frombuffer(noise.random_bytes(n_rows), dtype=np.uint8)
    taken = leading < top
    undecided = np.flatnonzero(leading == top)
    taken[undecided] = noise.words(undecided.size) >> np.uint64(8) < np.uint64(rest)
    return np.flatnonzero(taken)


def fixed_size_sample(noise: Noise, n_rows: int, size: int) -> Indices:
    """A uniform set of exactly ``size`` rows: the first distinct ones of a uniform sequence, or all but those."""
    few = min(size, n_rows - size)
    drawn = np.empty(0, dtype=np.intp)
    first = np.empty(0, dtype=np.intp)
    while first.size < few:
        drawn = np.concatenate([drawn, uniform(noise, n_rows, few)])
        _, first = np.unique(drawn, return_index=True)
    chosen = drawn[np.sort(first)[:few]]
    if few == size:
        return np.sort(chosen)
    kept = np.ones(n_rows, dtype=bool)
    kept[chosen] = False
    return np.flatnonzero(kept)


def shuffled(noise: Noise, n_rows: int) -> Indices:
    """The rows in a secret order that does not depend on them; nothing rests on its being uniform."""
    return np.argsort(noise.words(n_rows), kind="stable")


def secret_one(noise: Noise, items: Iterable[T], count: int) -> T:
    """One of ``count`` items, uniformly; all are made whichever it is."""
    chosen = int(uniform(noise, count, 1)[0])
    (iterate,) = [item for position, item in enumerate(items) if position == chosen]
    return iterate
