"""Near-duplicates by clusters of rows."""

from __future__ import annotations

import numpy as np

from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.rows import Array, Rows
from ppdp.transformers.base import Stage, Statistics
from ppdp.transformers.deduplicate.clusters import Comparable, centres, cluster_way
from ppdp.transformers.deduplicate.keys import compared
from ppdp.transformers.deduplicate.resampler import Resampler
from ppdp.transformers.way import Way

__all__ = ["ClusterDeduplicator"]


class ClusterDeduplicator(Resampler, Stage):
    """Keep one row of every cluster of near-duplicates that stands apart from all other rows.

    A row is a good centre if no row lies between ``eta`` and ``3 eta`` from it; the rows within ``eta`` of a good
    centre are its cluster. Of each cluster the good centre that comes first in lexicographic order is kept. Rows of
    different labels are never near each other, and a row with gaps is near no other.

    Parameters
    ----------
    eta : float, default=0.01
        Rows this near are duplicates; in the units of the rows that are compared.
    max_cluster : int, default=50
        Assumed: no more rows than this crowd within ``8 eta`` (in every set of rows, some row has fewer than
        ``max_cluster`` others of the set within ``8 eta``). The gate tests it; it needs a few dozen rows of room.
    low_dimension : bool, default=False
        Assume the same within ``2 eta`` only. At equal ``max_cluster`` it costs 2, 6 or 12 times as much in 1, 2 or 3
        columns, but it can be true where rows are dense.
    keys : {"current", "raw"}, default="current"
        Which rows are compared: as they are, or as they came into the first stage that is fitted.

    Notes
    -----
    **Guarantee** (``docs/theory/clusters.md``; Theorem A there replaces Proposition 3 of "Provable privacy with
    non-private pre-processing", which is false): one replaced row switches at most ``2 (max_cluster - 1)`` others on or
    off. Conditional: :class:`Deduplicator` and :class:`GridDeduplicator` cost less and assume nothing.
    Rows are compared in memory.

    There is no ``transform``: a new row is never a duplicate. Use :meth:`fit_resample` outside a pipeline.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.50, 0.52], [0.50, 0.51], [3.0, 4.0]])
    >>> ClusterDeduplicator(eta=0.1).fit_resample(X)[0]
    array([[0.5 , 0.51],
           [3.  , 4.  ]])
    """

    def __init__(
        self, eta: float = 0.01, max_cluster: int = 50, low_dimension: bool = False, keys: str = "current"
    ) -> None:
        self.eta = eta
        self.max_cluster = max_cluster
        self.low_dimension = low_dimension
        self.keys = keys

    @property
    def relief(self) -> str:
        return "a larger max_cluster or GridDeduplicator"

    def ways(self, domain: Domain, distance: Distance) -> tuple[Way, ...]:
        """One exact way."""
        return (cluster_way(self, "clusters.deduplicate", domain, distance),)

    def _weight(self, rows: Rows, statistics: Statistics) -> Array:
        comparable = Comparable.of(compared(rows, self), rows.y, rows.weight)
        found = centres(comparable, self.eta)
        weight = rows.weight.copy()
        weight[comparable.slots[found != np.arange(len(found), dtype=found.dtype)]] = 0.0
        return weight
