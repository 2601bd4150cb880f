"""Moving near-duplicates onto one another."""

from __future__ import annotations

from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.rows import Rows
from ppdp.transformers.base import Stage, Statistics
from ppdp.transformers.deduplicate.clusters import Comparable, centres, cluster_way
from ppdp.transformers.deduplicate.resampler import Resampler
from ppdp.transformers.way import Way

__all__ = ["ClusterQuantizer"]


class ClusterQuantizer(Resampler, Stage):
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

    keys = "current"  # a row cannot be moved to where another one came from
    _rewrites = True

    def __init__(self, eta: float = 0.01, max_cluster: int = 50, low_dimension: bool = False) -> None:
        self.eta = eta
        self.max_cluster = max_cluster
        self.low_dimension = low_dimension

    @property
    def relief(self) -> str:
        return "a larger max_cluster or GridQuantizer"

    def ways(self, domain: Domain, distance: Distance) -> tuple[Way, ...]:
        """One exact way."""
        return (cluster_way(self, "clusters.quantize", domain, distance),)

    def apply(self, rows: Rows, statistics: Statistics) -> Rows:
        comparable = Comparable.of(rows.X, rows.y, rows.weight)
        X = rows.X.copy()
        X[comparable.slots] = rows.X[comparable.slots[centres(comparable, self.eta)]]
        return rows.with_X(X)
