"""Trimmed-mean imputation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.core.checks import integer, number, positive
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, largest_entry
from ppdp.data.quantiles import trimmed_means
from ppdp.data.rows import Rows
from ppdp.exceptions import InvalidParameter
from ppdp.transformers.base import Statistics, Transformer, chosen
from ppdp.transformers.impute.filling import MissingMargin, fill, missing_limit
from ppdp.transformers.scale.rank_gaps import refuse_weights
from ppdp.transformers.way import Ask, Way

__all__ = ["TrimmedMeanImputer"]

Array = NDArray[np.float64]


class TrimmedMeanImputer(Transformer):
    """Fill gaps with column means that leave out the smallest and largest values.

    Of every column the ``m = ⌊trim n0⌋`` smallest and the m largest observed values are left out and the rest is
    averaged, n0 being ``min_observed``; a column with fewer than n0 observed values is filled up with zeros first. So m
    is public: it is the share ``trim`` of a column with n0 values, and less of a fuller one. Filled rows are clipped
    to ``row_norm``.

    Parameters
    ----------
    trim : float, default=0.1
        The share, at least 0 and below 0.5. The closer to 0.5, the closer to the median, and the less precise.
    min_observed : int or float, default=0.5
        n0: a count, or a fraction of the rows if at most 1 and not an integer.
    max_missing : int or float, optional
        At most this many rows have gaps (a count, or a fraction if a float of at most 1); the smaller of this and the
        domain's is used. If it is below the number of rows, the exact way assumes it as a condition.
    statistics : {"auto", "exact", "noisy"}, default="auto"
        Fit without noise, or from released trimmed means. Alone, outside a pipeline, "auto" is exact.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        The fill values: private if fitted alone, released if taken from a fitted pipeline.
    norm_ : float or None
        Filled rows are clipped to this public norm.

    Notes
    -----
    **Guarantee** (``docs/theory/trimmed-mean.md``; Table 3 of "Provable privacy with non-private pre-processing" prints
    a negative bound that depends on the data). For all data, whatever lies between their values, one replaced row moves
    every row with gaps by at most ``K(A)/(n0 - 2m)``, ``K(A) = √(4R² + 2A²)``. Columns are sorted, so all rows are
    needed in memory.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0], [2.0], [3.0], [100.0], [np.nan]])
    >>> TrimmedMeanImputer(trim=0.25, min_observed=4).fit_transform(X).ravel()
    array([  1. ,   2. ,   3. , 100. ,   2.5])
    """

    allows_gaps = True
    fills_gaps = True
    in_memory = True
    elementwise = True
    statistic_names = ("mean", "norm")

    def __init__(
        self,
        trim: float = 0.1,
        min_observed: int | float = 0.5,
        max_missing: int | float | None = None,
        statistics: str = "auto",
    ) -> None:
        self.trim = trim
        self.min_observed = min_observed
        self.max_missing = max_missing
        self.statistics = statistics

    def _counts(self, n: int) -> dict[str, int]:
        """The public n0 and m."""
        if isinstance(self.min_observed, float) and self.min_observed <= 1:
            least = max(1, math.ceil(positive("min_observed", self.min_observed, self) * n))
        else:
            least = integer("min_observed", self.min_observed, self, most=n)
        share = number("trim", self.trim, self, least=0, most=0.5)
        trimmed = math.floor(share * least)
        if 2 * trimmed >= least:
            raise InvalidParameter(
                "trim leaves nothing of a column.", stage="TrimmedMeanImputer", fix="a trim below 0.5, such as 0.25."
            )
        return {"min_observed": least, "trimmed": trimmed}

    def ways(self, domain: Domain, distance: Distance) -> tuple[Way, ...]:
        """Exact (moves the rows with gaps) and noisy (moves nothing)."""
        domain.require("row_norm", "TrimmedMeanImputer")
        counts = self._counts(domain.n)
        limit = missing_limit(self.max_missing, domain, self)
        if limit == 0:
            return (Way.by("imputation.zero", domain, distance),)
        refuse_weights(distance, "TrimmedMeanImputer")
        parameters: dict[str, Any] = {**counts, "max_missing": limit}
        exact = Way.by(
            "imputation.trimmed-mean",
            domain,
            distance,
            measures={"imputation.missing": MissingMargin(limit)},
            ask=Ask("trimmed-means", counts),
            **parameters,
        )
        noisy = Way.by("imputation.trimmed-public", domain, distance, ask=Ask("trimmed-means", counts))
        return chosen({"noisy": noisy, "exact": exact}, self.statistics, self)

    def prepare(self, rows: Rows, way: Way, domain: Domain) -> Statistics:
        if way.name == "public":
            return {"mean": np.zeros(rows.X.shape[1]), "norm": domain.row_norm}
        counts = way.parameters["min_observed"], way.parameters["trimmed"]
        return {"mean": trimmed_means(rows, *counts, largest_entry(domain)), "norm": domain.row_norm}

    def read(self, values: Any, way: Way, domain: Domain) -> Statistics:
        bound = largest_entry(domain)
        return {"mean": np.clip(values[0], -bound, bound), "norm": domain.row_norm}

    def map_rows(self, X: Array, statistics: Statistics) -> Array:
        return fill(X, statistics["mean"], statistics["norm"])
