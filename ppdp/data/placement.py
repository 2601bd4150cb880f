"""Where rows stand whose number is private: ``docs/theory/distance.md``, Theorem P."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from ppdp.core.domain import Domain
from ppdp.data.rows import Rows
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
    n_slots = domain.n
    if rows.n > n_slots:
        raise DomainMismatch(
            "there are more rows than n_rows declares.", fix="declare a cap that no such table exceeds; never len(X)."
        )
    slots = _secret_order(noise, n_slots)[: rows.n]

    def spread(values: NDArray[np.float64]) -> NDArray[np.float64]:
        out = np.zeros((n_slots, *values.shape[1:]))
        out[slots] = values
        return out

    if issparse(rows.X):
        X = csr_array((np.ones(rows.n), (slots, np.arange(rows.n))), shape=(n_slots, rows.n)) @ rows.X
    else:
        X = spread(rows.X)
    return Rows(X, None if rows.y is None else spread(rows.y), spread(rows.weight))


def _secret_order(noise: Noise, count: int) -> NDArray[np.intp]:
    """A uniform order: that of random words, all drawn again if two are equal, once in 2^64 / count² tries."""
    while True:
        words = noise.words(count)
        order = np.argsort(words)
        if (np.diff(words[order]) > 0).all():
            return order
