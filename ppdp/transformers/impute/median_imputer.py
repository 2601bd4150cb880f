"""Median imputation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, largest_entry
from ppdp.data.quantiles import column_quantiles
from ppdp.data.rows import Rows
from ppdp.transformers.base import Statistics, Transformer, chosen
from ppdp.transformers.impute.filling import MissingMargin, fill, missing_limit
from ppdp.transformers.scale.rank_gaps import gap_margin, public_gap, refuse_weights
from ppdp.transformers.way import Ask, Way

__all__ = ["MedianImputer"]

Array = NDArray[np.float64]

_MIDDLE = (0.5,)


class MedianImputer(Transformer):
    """Fill gaps with column medians.

    The median of N observed values is the ``⌈N/2⌉``-th, the lower one if N is even. A column without any is filled
    with 0. Filled rows are clipped to ``row_norm``.

    Parameters
    ----------
    gap : float, optional
        The condition: in every column the values ranked next to the median are near it, within ``gap`` in L2 over the
        columns, in units of ``row_norm``. Default: ``400/n``, at most 2.
    max_missing : int or float, optional
        At most this many rows have gaps (a count, or a fraction if a float of at most 1); the smaller of this and the
        domain's is used. If it is below the number of rows, it is a condition as well.
    statistics : {"auto", "exact"}, default="auto"
        There is one way, without noise. With "auto" a plan does not offer it where it cannot be of use: if no data
        could pass the test of the condition, or if medians released for prediction would be too noisy.

    Attributes
    ----------
    median_ : ndarray of shape (n_features,)
        The fill values: private if fitted alone, released if taken from a fitted pipeline.
    norm_ : float or None
        Filled rows are clipped to this public norm.

    Notes
    -----
    **Guarantee** (``docs/theory/order-statistics.md``; Proposition 16 of "Provable privacy with non-private
    pre-processing" forgets that one row changes all medians). One replaced row moves every row with gaps by at most
    ``gap``. Columns are sorted, so all rows are needed in memory.

    There is **no noisy way**: one row can move a median from end to end of its range, so noise that covers all data
    drowns it. Medians released for prediction rest on the same condition, behind its test.

    Prefer :class:`TrimmedMeanImputer`: as robust for most purposes, it assumes nothing and moves rows some fifty times
    less.

    Examples
    --------
    >>> import numpy as np
    >>> MedianImputer().fit_transform(np.array([[1.0, 2.0], [np.nan, 4.0], [3.0, 0.0], [5.0, 1.0]]))
    array([[1., 2.],
           [3., 4.],
           [3., 0.],
           [5., 1.]])
    """

    allows_gaps = True
    fills_gaps = True
    in_memory = True
    elementwise = True
    statistic_names = ("median", "norm")

    def __init__(
        self, gap: float | None = None, max_missing: int | float | None = None, statistics: str = "auto"
    ) -> None:
        self.gap = gap
        self.max_missing = max_missing
        self.statistics = statistics

    @property
    def relief(self) -> str:
        return "TrimmedMeanImputer"

    def ways(self, domain: Domain, distance: Distance) -> tuple[Way, ...]:
        """Exact (moves the rows with gaps), under a condition."""
        gap = public_gap(self.gap, domain, self)
        limit = missing_limit(self.max_missing, domain, self)
        if limit == 0:
            return (Way.by("imputation.zero", domain, distance),)
        refuse_weights(distance, "MedianImputer")
        parameters: dict[str, Any] = {"gap": gap, "max_missing": limit}
        exact = Way.by(
            "imputation.median",
            domain,
            distance,
            measures={
                "imputation.missing": MissingMargin(limit),
                "order-statistics.gap": gap_margin(domain, distance, _MIDDLE, gap),
            },
            ask=Ask("medians", {"gap": gap}),
            **parameters,
        )
        return chosen({"exact": exact}, self.statistics, self)

    def prepare(self, rows: Rows, way: Way, domain: Domain) -> Statistics:
        if way.name == "public":
            return {"median": np.zeros(rows.X.shape[1]), "norm": domain.row_norm}
        return {"median": column_quantiles(rows, _MIDDLE)[0], "norm": domain.row_norm}

    def read(self, values: Any, way: Way, domain: Domain) -> Statistics:
        bound = largest_entry(domain)
        return {"median": np.clip(values[0], -bound, bound), "norm": domain.row_norm}

    def map_rows(self, X: Array, statistics: Statistics) -> Array:
        return fill(X, statistics["median"], statistics["norm"])
