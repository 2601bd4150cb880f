"""Random projection with a public seed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from ppdp.bounds.projection import FAMILIES, MOST_ENTRIES, draw
from ppdp.core.checks import choice, integer
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.rows import Rows
from ppdp.exceptions import InvalidParameter, UnsupportedOrder
from ppdp.transformers.base import RowWiseTransformer, Statistics
from ppdp.transformers.project.product import product
from ppdp.transformers.way import Way

__all__ = ["RandomProjection"]


class RandomProjection(ClassNamePrefixFeaturesOutMixin, RowWiseTransformer):
    """Map every row to a few random combinations of its columns; the matrix is public.

    Parameters
    ----------
    n_components : int, default=100
        Number of columns that come out.
    family : {"gaussian", "rademacher", "sparse", "oporp"}, default="gaussian"
        Normal entries; random signs; random signs at a share 1/√d of the places; one permutation and one random sign
        for each column, which are then dealt out to the components in turn. All keep squared norms on average.
    seed : int, default=0
        Decides the matrix. It is public and must be chosen without looking at the data.

    Attributes
    ----------
    components_ : ndarray or sparse array of shape (n_components, n_features)
        The matrix.

    Notes
    -----
    **Guarantee** (``docs/theory/random-projection.md``): row-wise, moves nothing. Rows that moved before move further
    by the operator norm of the matrix that was drawn, which also bounds the rows. Random projections do not add
    privacy.

    Examples
    --------
    >>> import numpy as np
    >>> RandomProjection(n_components=2, family="oporp").fit_transform(np.array([[1.0, 2.0, 4.0, 8.0]]))
    array([[-10.,  -5.]])
    """

    allows_gaps = False
    statistic_names = ("components",)

    def __init__(self, n_components: int = 100, family: str = "gaussian", seed: int = 0) -> None:
        self.n_components = n_components
        self.family = family
        self.seed = seed

    @classmethod
    def example(cls) -> Any:
        return cls(n_components=2)

    def ways(self, domain: Domain, distance: Distance) -> tuple[Way, ...]:
        """One public way."""
        if domain.missing_rows:
            raise UnsupportedOrder(
                "rows may have gaps here.", stage="RandomProjection", fix="put an imputer before it."
            )
        domain.require("row_norm", "RandomProjection")
        family = choice("family", self.family, FAMILIES, self)
        components = integer("n_components", self.n_components, self)
        if components * (1 if family == "oporp" else domain.d) > MOST_ENTRIES:
            raise InvalidParameter(
                f"n_components = {components} makes a matrix of more than {MOST_ENTRIES} entries.",
                stage="RandomProjection",
                fix="take fewer, or family='oporp'.",
            )
        seed = integer("seed", self.seed, self, least=0, most=2**63 - 1)
        return (Way.by("projection.random", domain, distance, family=family, n_components=components, seed=seed),)

    def prepare(self, rows: Rows, way: Way, domain: Domain) -> Statistics:
        chosen = way.parameters
        return {"components": draw(chosen["family"], chosen["n_components"], domain.d, chosen["seed"])}

    def map_rows(self, X: NDArray[np.float64], statistics: Statistics) -> NDArray[np.float64]:
        return product(X, statistics["components"])

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])
