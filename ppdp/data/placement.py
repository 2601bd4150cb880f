"""Where rows stand whose number is private: ``docs/theory/distance.md``, Theorem P."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from ppdp.core.domain import Domain
from ppdp.data.engine.kept import scattered
from ppdp.data.rows import Rows
from ppdp.data.stream import Stream
from ppdp.exceptions import DomainMismatch
from ppdp.privacy.noise.sampler import Noise


def placed(rows: Rows, domain: Domain, noise: Noise) -> Rows:
    """The rows in secret slots, if their number is private; the other slots are those of deleted rows.

    Every injection of rows into slots is equally likely, so a dataset with one row more stands in the same slots but
    for one. What is drawn does not depend on the rows, nor on how many there are. :class:`DomainMismatch` if there are
    more rows than slots; not told is how many.
    """
    if not domain.adjacency.hides_number:
        return rows
    n_slots, slots = domain.n, _slots(rows.n, domain, noise)

    def spread(values: NDArray[np.float64]) -> NDArray[np.float64]:
        out = np.zeros((n_slots, *values.shape[1:]))
        out[slots] = values
        return out

    if issparse(rows.X):
        X = csr_array((np.ones(rows.n), (slots, np.arange(rows.n))), shape=(n_slots, rows.n)) @ rows.X
    else:
        X = spread(rows.X)
    return Rows(X, None if rows.y is None else spread(rows.y), spread(rows.weight))


@contextmanager
def standing(rows: Rows | Stream, domain: Domain, noise: Noise) -> Iterator[Any]:
    """The same, also of rows that are read in blocks: a private file holds them at their slots, in this context."""
    if isinstance(rows, Rows) or not domain.adjacency.hides_number:
        yield rows if isinstance(rows, Stream) else placed(rows, domain, noise)
        return
    with scattered(rows, _slots(rows.n, domain, noise), domain.n) as stream:
        yield stream


def _slots(n: int, domain: Domain, noise: Noise) -> NDArray[np.intp]:
    if n > domain.n:
        raise DomainMismatch(
            "there are more rows than n_rows declares.", fix="declare a cap that no such table exceeds; never len(X)."
        )
    return _secret_order(noise, domain.n)[:n]


def _secret_order(noise: Noise, count: int) -> NDArray[np.intp]:
    """A uniform order: that of random words, all drawn again if two are equal, once in 2^64 / count² tries."""
    while True:
        words = noise.words(count)
        order = np.argsort(words)
        words = words[order]
        if (words[1:] > words[:-1]).all():
            return order
