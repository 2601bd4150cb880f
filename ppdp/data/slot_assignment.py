"""Which rows stay, and where, if their number is private: ``docs/theory/distance.md``, Theorems P and K."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from ppdp.core.domain import Domain
from ppdp.data.engine.disk_cache import scatter_to_slots
from ppdp.data.rows import Rows
from ppdp.data.stream import Stream
from ppdp.exceptions import DomainMismatch
from ppdp.privacy.noise.sampler import Noise

Positions = NDArray[np.intp]


def assign_slots(rows: Rows, domain: Domain, noise: Noise, persons: Positions | None = None) -> Rows:
    """The rows in secret slots, if their number is private; the other slots are those of deleted rows.

    Every injection of rows into slots is equally likely, so a dataset with one row more stands in the same slots but
    for one. What is drawn does not depend on the rows, nor on how many there are. :class:`DomainMismatch` if there are
    more rows than slots; not told is how many.

    ``persons`` says whose each row is, by codes; of everybody only so many rows have a slot as the adjacency keeps, and
    none of a negative code.
    """
    if not domain.adjacency.unbounded:
        return rows
    which, slots = _stays(rows.n, domain, noise, persons)

    def spread(values: NDArray[np.float64]) -> NDArray[np.float64]:
        out = np.zeros((domain.n, *values.shape[1:]))
        out[slots] = values[which]
        return out

    if issparse(rows.X):
        X = csr_array((np.ones(len(slots)), (slots, which)), shape=(domain.n, rows.n)) @ rows.X
    else:
        X = spread(rows.X)
    y = None if rows.y is None else spread(rows.y)
    marks = None
    if rows.marks is not None:
        marks = np.zeros((domain.n, rows.marks.shape[1]), dtype=bool)
        marks[slots] = rows.marks[which]
    factor = None if rows.factor is None else spread(rows.factor)
    return Rows(X, y, spread(rows.weight), texts=rows.texts, marks=marks, factor=factor)


@contextmanager
def slots_assigned(
    rows: Rows | Stream, domain: Domain, noise: Noise, persons: Positions | None = None
) -> Iterator[Any]:
    """The same, also of rows that are read in blocks: a private file holds them at their slots, in this context."""
    if isinstance(rows, Rows) or not domain.adjacency.unbounded:
        yield rows if isinstance(rows, Stream) else assign_slots(rows, domain, noise, persons)
        return
    which, slots = _stays(rows.n, domain, noise, persons)
    places = np.full(rows.n, -1)
    places[which] = slots
    with scatter_to_slots(rows, places, domain.n) as stream:
        yield stream


def _stays(n: int, domain: Domain, noise: Noise, persons: Positions | None) -> tuple[Positions, Positions]:
    """Which rows have a slot, and which one."""
    which = np.arange(n) if persons is None else _cut(persons, domain.adjacency.rows, noise)
    if len(which) > domain.n:
        raise DomainMismatch(
            "there are more rows than n_rows declares.",
            fix=f"declare at least the {domain.adjacency.phrases.capped}; never len(X).",
        )
    return which, _secret_order(noise, domain.n)[: len(which)]


def _cut(persons: Positions, most: int, noise: Noise) -> Positions:
    """At most so many rows of everybody: the first of theirs in a secret order of all rows."""
    order = _secret_order(noise, len(persons))
    order = order[np.argsort(persons[order], kind="stable")]
    own = persons[order]
    return order[(own >= 0) & (np.arange(len(own)) - np.searchsorted(own, own) < most)]


def _secret_order(noise: Noise, count: int) -> Positions:
    """A uniform order: that of random words, all drawn again if two are equal, once in 2^64 / count² tries."""
    while True:
        words = noise.words(count)
        order = np.argsort(words)
        words = words[order]
        if (words[1:] > words[:-1]).all():
            return order
