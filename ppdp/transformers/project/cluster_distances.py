"""Distances of rows from released centres of clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from ppdp.bounds.k_means import FIXED_DEPTH
from ppdp.bounds.queries import longest_row
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, largest_entry
from ppdp.data.clusters import HalvedCells, count_of_clusters, exact_centers, squared_distances
from ppdp.data.rows import Array, Rows
from ppdp.data.unit_conversion import Columns
from ppdp.transformers.base import Statistics, Transformer
from ppdp.transformers.fit_mode import FitMode, StatisticRequest


@dataclass(eq=False, repr=False)
class ClusterDistances(ClassNamePrefixFeaturesOutMixin, Transformer):
    """Replace columns by the distances from centres of clusters, which are released with noise.

    It is what ``transform`` of scikit-learn's ``KMeans`` is, in front of a model. For the centres themselves take
    :class:`ppdp.mechanisms.KMeans`, which adapts to noisy answers more often.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, and of columns that come out.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centres: private if fitted alone, released if taken from a fitted pipeline.
    reach_ : float
        The largest distance that there can be.

    Notes
    -----
    **Guarantee** (``docs/theory/k-means.md``): weights of cells of the public range in six rounds of halving, and
    weights and sums around centres that follow from them, are one release of sensitivity 4 for one replaced row. With
    these numbers it is a map of each row by itself, so nothing moves; it is √n_clusters-Lipschitz for rows that had
    moved. Rows must be complete, and columns scaled in front.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.repeat([[-1.0], [1.0]], 50, axis=0)
    >>> np.sort(ClusterDistances(2).fit_transform(X), axis=1)[[0, -1]].round(2)
    array([[0., 2.],
           [0., 2.]])
    """

    n_clusters: int = 8

    chooses = False  # there is one way
    leakage = "high", "where rows lie: a cluster may be one row"
    statistic_names = ("cluster_centers", "reach")
    _example: ClassVar = {"n_clusters": 2}

    def fit_modes(self, domain: Domain, distance: Distance) -> tuple[FitMode, ...]:
        self._norm_of_complete_rows(domain)
        count = count_of_clusters(self, domain)
        request = StatisticRequest("clusters", {"n_clusters": count})
        return (FitMode.by("row-wise.cluster-distances", domain, distance, request=request, n_clusters=count),)

    def read(self, values: Any, way: FitMode, domain: Domain) -> Statistics:
        (centers, _), norm = values, longest_row(domain)
        lengths = np.sqrt(np.square(centers).sum(axis=1, keepdims=True))
        return {"cluster_centers": centers * (norm / np.maximum(lengths, norm)), "reach": 2 * norm}

    def exact(self, rows: Rows, way: FitMode, domain: Domain) -> Any:
        return exact_centers(rows, HalvedCells(domain.d, FIXED_DEPTH, largest_entry(domain)), self.n_clusters)

    def map_rows(self, X: Array, statistics: Statistics) -> Array:
        distances = np.sqrt(squared_distances(X, statistics["cluster_centers"]))
        return np.minimum(distances, statistics["reach"])

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def units(self, columns: Columns) -> Columns:
        return self._lost(len(self.cluster_centers_))

    def public_units(self, columns: Columns, way: FitMode, domain: Domain) -> Columns:
        return self._lost(way.parameters["n_clusters"])

    def _lost(self, count: int) -> Columns:
        """No map leads back from distances."""
        prefix = type(self).__name__.lower()
        return Columns.lost([f"{prefix}{i}" for i in range(count)], "a distance from a centre")
