"""Soft projection on the leading eigenvectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ppdp.core.checks import number
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, largest_entry
from ppdp.data.exact_matmul import steadily
from ppdp.data.rows import Array, Rows
from ppdp.data.statistics import Moments
from ppdp.data.summary import second_moment
from ppdp.transformers.base import Statistics, Transformer, chosen
from ppdp.transformers.fit_mode import FitMode, StatisticRequest


@dataclass(eq=False, repr=False)
class SoftPCA(Transformer):
    """Shrink rows along the directions in which all rows are short: the smooth counterpart of PCA.

    ``x -> C (C + λI)⁻¹ x`` with C the second moment over the public number of rows. A direction with eigenvalue well
    above λ passes, one well below vanishes. Nothing is assumed of the data, where :class:`PCA` needs an eigengap.

    Parameters
    ----------
    alpha : float, optional
        λ in units of ``row_norm²``. Default: ``0.25 / n_features``, a quarter of the mean eigenvalue of rows that are
        as long as they may be.
    fit_mode : {"auto", "exact", "noisy"}, default="auto"
        Fit without noise, or from a released second moment. Outside a pipeline, "auto" is exact.

    Attributes
    ----------
    shrinkage_ : ndarray of shape (n_features, n_features)
        The symmetric matrix that rows are multiplied by: private if fitted alone, released if taken from a fitted
        pipeline.

    Notes
    -----
    **Guarantee** (``docs/theory/soft-pca.md``). Unconditional. One replaced row moves every row by at most
    ``R³ / (n λ + R²)`` and all of them together by about ``R² / (2 √λ)``.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> SoftPCA(alpha=0.25).fit_transform(X)
    array([[ 1. ,  0. ],
           [-1. ,  0. ],
           [ 0. ,  0.2],
           [ 0. , -0.2]])
    """

    alpha: float | None = None
    fit_mode: str = "auto"

    leakage = "low", "means and directions of most variance"
    multiplies_columns = True
    statistic_names = ("shrinkage",)

    def fit_modes(self, domain: Domain, distance: Distance) -> tuple[FitMode, ...]:
        """Exact (moves all rows) and noisy (moves nothing)."""
        norm, share = self._norm_of_complete_rows(domain), 0.25 / domain.d
        if self.alpha is not None:
            share = number("alpha", self.alpha, self, least=1e-6, most=1e6)
        ridge = share * norm**2
        names = {"noisy": "soft-pca.row-wise", "exact": "soft-pca.shrinkage"}
        ways = {
            way: FitMode.by(name, domain, distance, request=StatisticRequest("moment"), ridge=ridge)
            for way, name in names.items()
        }
        return chosen(ways, self.fit_mode, self)

    def prepare(self, rows: Rows, way: FitMode, domain: Domain) -> Statistics:
        return _shrinkage(second_moment(rows, largest_entry(domain)) / rows.n, way, domain)

    def read(self, values: Moments, way: FitMode, domain: Domain) -> Statistics:
        assert values.matrix is not None
        return _shrinkage(values.matrix, way, domain)

    def carry(self, values: Moments, statistics: Statistics) -> Moments:
        shrinkage = statistics["shrinkage"]
        return values.affine(shrinkage, np.zeros(len(shrinkage)))

    def map_rows(self, X: Array, statistics: Statistics) -> Array:
        return steadily(X, statistics["shrinkage"])


def _shrinkage(moment: Array, way: FitMode, domain: Domain) -> Statistics:
    """The matrix F; eigenvalues end in their public range, whatever noise has made of them."""
    values, vectors = np.linalg.eigh(moment)
    values = np.clip(values, 0.0, float(domain.require("row_norm")) ** 2)
    return {"shrinkage": (vectors * (values / (values + way.parameters["ridge"]))) @ vectors.T}
