"""Near-duplicates by clusters of rows: kept once, or moved onto one another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.rows import Array, Rows
from ppdp.transformers.base import Statistics
from ppdp.transformers.deduplicate.base import Resampler
from ppdp.transformers.deduplicate.clusters import Comparable, centres, cluster_way
from ppdp.transformers.deduplicate.records import compared
from ppdp.transformers.way import Way


@dataclass(eq=False, repr=False)
class ClusterDeduplicator(Resampler):
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

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.50, 0.52], [0.50, 0.51], [3.0, 4.0]])
    >>> ClusterDeduplicator(eta=0.1).fit_resample(X)[0]
    array([[0.5 , 0.51],
           [3.  , 4.  ]])
    """

    eta: float = 0.01
    max_cluster: int = 50
    low_dimension: bool = False
    keys: str = "current"

    relief = "a larger max_cluster or GridDeduplicator"

    def ways(self, domain: Domain, distance: Distance) -> tuple[Way, ...]:
        return (cluster_way(self, "clusters.deduplicate", domain, distance),)

    def _weight(self, rows: Rows, statistics: Statistics) -> Array:
        comparable = Comparable.of(compared(rows, self.keys), rows.y, rows.weight)
        found = centres(comparable, self.eta)
        weight = rows.weight.copy()
        weight[comparable.slots[found != np.arange(len(found), dtype=found.dtype)]] = 0.0
        return weight


@dataclass(eq=False, repr=False)
class ClusterQuantizer(Resampler):
    """Move the rows of every cluster of near-duplicates onto its centre.

    The same clusters as those of :class:`ClusterDeduplicator`; every row of a cluster becomes a copy of the one that
    the deduplicator keeps. Labels stay, and no row is deleted.

    Parameters
    ----------
    eta : float, default=0.01
        Rows this near are duplicates; in the units of the rows.
    max_cluster : int, default=50
        Assumed: no more rows than this crowd within ``8 eta``, see :class:`ClusterDeduplicator`.
    low_dimension : bool, default=False
        Assume the same within ``2 eta`` only, for at most 3 columns.

    Notes
    -----
    **Guarantee** (``docs/theory/clusters.md``; Theorem A there replaces Proposition 3 of "Provable privacy with
    non-private pre-processing", which is false): one replaced row moves at most ``2 (max_cluster - 1)`` others, each by
    at most ``2 eta`` and ``eta`` on average. Conditional: :class:`GridQuantizer` costs nothing and assumes nothing.
    Rows are compared in memory.

    There is no ``transform``: copies of private rows are private, so a new row stays as it is. Outside a pipeline,
    :meth:`fit_resample` returns the moved rows.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.50, 0.52], [0.50, 0.51], [3.0, 4.0]])
    >>> ClusterQuantizer(eta=0.1).fit_resample(X)[0]
    array([[0.5 , 0.51],
           [0.5 , 0.51],
           [3.  , 4.  ]])
    """

    eta: float = 0.01
    max_cluster: int = 50
    low_dimension: bool = False

    _rewrites = True
    relief = "a larger max_cluster or GridQuantizer"

    def ways(self, domain: Domain, distance: Distance) -> tuple[Way, ...]:
        return (cluster_way(self, "clusters.quantize", domain, distance),)

    def apply(self, rows: Rows, statistics: Statistics) -> Rows:
        comparable = Comparable.of(rows.X, rows.y, rows.weight)
        X = rows.X.copy()
        X[comparable.slots] = rows.X[comparable.slots[centres(comparable, self.eta)]]
        return rows.with_X(X)
