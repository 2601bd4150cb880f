"""Projection on the leading eigenvectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.bounds.rounding import eigen_error, product_error
from ppdp.checks import integer, positive
from ppdp.conditions import Condition
from ppdp.distance import Distance
from ppdp.domain import Domain
from ppdp.exceptions import UnsupportedOrder
from ppdp.planning.ways import Ask, Way
from ppdp.rows import Rows
from ppdp.statistics import Moments, second_moment, top_eigenvectors
from ppdp.transformers.base import Statistics, Transformer, chosen

__all__ = ["PCA"]

Array = NDArray[np.float64]


class PCA(Transformer):
    """Project rows on the top eigenvectors of their second moment, uncentred, keeping the dimension.

    ``x -> P x`` with P of rank ``n_components``. The output has as many columns as the input, so it needs no choice of
    basis: eigenvectors may flip or rotate within the block between two neighbouring datasets, P may not.

    Parameters
    ----------
    n_components : int, optional
        Rank of P. Default: all, which changes nothing.
    min_gap : float, optional
        The exact way assumes that the eigengap ``λ_k - λ_{k+1}`` of ``(1/n) Σ x xᵀ`` is at least this, in units of
        ``row_norm²``. Default: ``0.1 / k``.
    statistics : {"auto", "exact", "noisy"}, default="auto"
        Fit without noise, or from a released second moment. Alone, outside a pipeline, "auto" is exact.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features) or None
        Leading eigenvectors: private if fitted alone, released if taken from a fitted pipeline. None in
        a pipeline that ran the exact way: its model then works on the rows as they are.

    Notes
    -----
    **Guarantee** (``docs/theory/pca.md``; Theorem 1 there replaces Proposition 5 of "Provable privacy with non-private
    pre-processing"). One replaced row moves P by at most ``R²/(n β)``, 12 times less than printed.

    Examples
    --------
    >>> import numpy as np
    >>> PCA(n_components=1).fit_transform(np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0]]))
    array([[ 2.,  0.],
           [-2.,  0.],
           [ 0.,  0.]])
    """

    fits = True
    _statistic_names = ("components",)

    def __init__(self, n_components: int | None = None, min_gap: float | None = None, statistics: str = "auto") -> None:
        self.n_components = n_components
        self.min_gap = min_gap
        self.statistics = statistics

    @classmethod
    def example(cls) -> Any:
        """An instance that works on any numeric data, for contract tests."""
        return cls(n_components=1)

    def _rank(self, d: int) -> int:
        if self.n_components is None:
            return d
        k = self.n_components
        # A number of components that is read off the data (a share of variance) would be private.
        return integer("n_components", k, self, most=d)

    def ways(self, domain: Domain, distance: Distance) -> tuple[Way, ...]:
        """Exact (assumes an eigengap, moves all rows) and noisy (moves nothing)."""
        if domain.missing_rows:
            raise UnsupportedOrder("rows may have gaps here.", stage="PCA", fix="put an imputer before it.")
        norm, k = float(domain.require("row_norm", "PCA")), self._rank(domain.d)
        if k == domain.d:
            return (Way.by("public", "row-wise.identity", domain, distance),)
        share = 0.1 / k if self.min_gap is None else positive("min_gap", self.min_gap, self, most=1)
        gap = share * norm**2
        condition = Condition.by("eigengap", "pca.gap", domain, distance, GapMargin(k, gap, norm), min_gap=gap)
        exact = Way.by("exact", "pca.rank", domain, distance, conditions=(condition,), min_gap=gap)
        noisy = Way.by("noisy", "pca.public", domain, distance, asks=(Ask("matrix", "fit"),), affine=True)
        return chosen({"noisy": noisy, "exact": exact}, self.statistics, self)

    def _statistics(self, rows: Rows, way: Way, domain: Domain) -> Statistics:
        if way.name == "public":
            return {"components": None}
        return {"components": top_eigenvectors(second_moment(rows.X, rows.weight), self._rank(domain.d))[1]}

    def _released(self, values: Moments, way: Way, domain: Domain) -> Statistics:
        assert values.matrix is not None
        return {"components": top_eigenvectors(values.matrix, self._rank(domain.d))[1]}

    def _carry(self, values: Moments, statistics: Statistics) -> Moments:
        components = statistics["components"]
        return values.affine(components.T @ components, np.zeros(components.shape[1]))

    def _without_release(self, way: Way) -> Statistics:
        return {"components": None}

    def _apply(self, X: Array, statistics: Statistics) -> Array:
        components = statistics["components"]
        return X if components is None else (X @ components.T) @ components


@dataclass(frozen=True, slots=True)
class GapMargin:
    """Margin of "the eigengap after the k-th eigenvalue is at least ``gap``"."""

    k: int
    gap: float
    norm: float

    def __call__(self, rows: Rows, unit: float) -> float:
        n, d = rows.X.shape
        values, _ = top_eigenvectors(second_moment(rows.X, rows.weight) / n, self.k)
        error = product_error(n, self.norm) / n + eigen_error(d, self.norm)
        room = float(values[self.k - 1] - values[self.k]) - self.gap - 2 * error
        return room / (unit + 4 * error) if room > 0 else 0.0
