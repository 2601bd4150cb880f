"""Scaling by public ranges, or by quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.core.checks import number, pair
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, largest_entry
from ppdp.data.quantiles import column_quantiles
from ppdp.data.rows import Rows
from ppdp.exceptions import InvalidParameter, MissingBound
from ppdp.transformers.base import RowWiseTransformer, Statistics, chosen
from ppdp.transformers.rowwise.ranges import resolve_ranges
from ppdp.transformers.scale.rank_gaps import gap_margin, public_gap, public_width, refuse_weights
from ppdp.transformers.way import Ask, Way

__all__ = ["MinMaxScaler"]

Array = NDArray[np.float64]


class MinMaxScaler(RowWiseTransformer):
    """Clip columns to ranges and map them onto an interval.

    With public ``ranges`` it bounds the rows and costs nothing. With ``quantiles`` the ranges are fitted, under a
    condition. The smallest and largest values of the data cannot be used: one row decides each of them, so that no test
    could ever find them stable.

    Parameters
    ----------
    ranges : mapping, pair, or sequence of pairs
        Public (low, high) of every column: ``{name: (low, high)}``, a pair per column, or one for all.
    feature_range : tuple of two floats, default=(-1, 1)
        Where the ranges are mapped to.
    quantiles : tuple of two floats, optional
        Instead of ``ranges``: from which to which quantile of a column its range goes, such as ``(0.05, 0.95)``. The
        quantile q of N values is the ``⌈q N⌉``-th; gaps are left out, and stay gaps.
    min_width : float, optional
        With ``quantiles``: a range is at least this wide, in units of ``row_norm``. Default: half of the largest
        possible entry, ``0.5 / √d``.
    gap : float, optional
        With ``quantiles``, the condition: in every column the values ranked next to both quantiles are near them,
        within ``gap`` in L2 over the columns, in units of ``row_norm``. Default: ``400/n``, at most 2.
    statistics : {"auto", "exact"}, default="auto"
        With ``quantiles`` there is one way, without noise. With "auto" a plan does not offer it where it cannot be of
        use: if no data could pass the test of the condition, or if released quantiles would be too noisy.

    Attributes
    ----------
    low_, high_ : ndarray of shape (n_features,)
        The ranges. Those fitted to quantiles are private if fitted alone, released if taken from a fitted pipeline.

    Notes
    -----
    **Guarantee**. ``ranges`` (``docs/theory/row-wise.md``): row-wise, moves nothing. Gaps stay gaps. ``quantiles``
    (``docs/theory/order-statistics.md``): one replaced row moves every row by at most
    ``(high - low) gap / min_width``. There is **no noisy way**: one row can move a quantile from end to end of its
    range, so noise that covers all data drowns it. Quantiles released for prediction rest on the same condition.
    Columns are sorted, so ``quantiles`` need all rows in memory.

    Examples
    --------
    >>> import numpy as np
    >>> MinMaxScaler(ranges=[(0, 10), (0, 2)]).fit_transform(np.array([[5.0, 2.0], [20.0, np.nan]]))
    array([[ 0.,  1.],
           [ 1., nan]])
    >>> MinMaxScaler(quantiles=(0.2, 0.8)).fit_transform(np.array([[0.0], [1.0], [2.0], [3.0], [4.0]])).ravel()
    array([-1.        , -0.33333333,  0.33333333,  1.        ,  1.        ])
    """

    elementwise = True
    statistic_names = ("low", "high")

    def __init__(
        self,
        ranges: Any = None,
        feature_range: tuple[float, float] = (-1, 1),
        quantiles: tuple[float, float] | None = None,
        min_width: float | None = None,
        gap: float | None = None,
        statistics: str = "auto",
    ) -> None:
        self.ranges = ranges
        self.feature_range = feature_range
        self.quantiles = quantiles
        self.min_width = min_width
        self.gap = gap
        self.statistics = statistics

    @classmethod
    def example(cls) -> Any:
        return cls(ranges=(-10, 10))

    @property
    def bounds_rows(self) -> bool:  # type: ignore[override]
        """Whether it bounds the rows without knowing a bound before."""
        return self.quantiles is None

    @property
    def in_memory(self) -> bool:  # type: ignore[override]
        """Whether it needs all rows in memory: it sorts columns for quantiles."""
        return self.quantiles is not None

    def _target(self) -> tuple[float, float]:
        return pair("feature_range", self.feature_range, self)

    def _table(self, domain: Domain) -> Array:
        if self.ranges is None:
            raise MissingBound(
                "ranges is not declared, and the smallest and largest values of private rows cannot stand in:"
                " one row decides each of them, so that no test could ever find them stable.",
                stage="MinMaxScaler",
                fix="ranges={column: (low, high)} from public knowledge, or quantiles=(0.05, 0.95).",
            )
        return resolve_ranges(self.ranges, domain.d, domain.feature_names, "MinMaxScaler")

    @property
    def relief(self) -> str:
        return "public ranges"

    def ways(self, domain: Domain, distance: Distance) -> tuple[Way, ...]:
        """Public with ranges; with quantiles exact (moves all rows), under a condition."""
        low, high = self._target()
        if self.quantiles is not None:
            return self._fitted_ways(domain, distance, low, high)
        table = self._table(domain)
        widths = [float(w) for w in table[:, 1] - table[:, 0]]
        return (Way.by("row-wise.range-scaling", domain, distance, widths=widths, low=low, high=high),)

    def _fitted_ways(self, domain: Domain, distance: Distance, low: float, high: float) -> tuple[Way, ...]:
        if self.ranges is not None:
            raise InvalidParameter(
                "ranges and quantiles exclude each other.", stage="MinMaxScaler", fix="leave one of them out."
            )
        gap = public_gap(self.gap, domain, self)
        lower, upper = (
            number("quantiles", q, self, least=1e-3, most=1 - 1e-3, fix="the ends of the data can never pass a test.")
            for q in pair("quantiles", self.quantiles, self)
        )
        refuse_weights(distance, "MinMaxScaler")
        release = {"gap": gap, "lower": lower, "upper": upper}
        width = public_width(self.min_width, 0.5, domain, self)
        parameters: dict[str, Any] = {**release, "min_width": width, "low": low, "high": high}
        exact = Way.by(
            "scaling.quantile",
            domain,
            distance,
            measures={"order-statistics.gap": gap_margin(domain, distance, (lower, upper), gap)},
            ask=Ask("quantile-pairs", release),
            **parameters,
        )
        return chosen({"exact": exact}, self.statistics, self)

    def prepare(self, rows: Rows, way: Way, domain: Domain) -> Statistics:
        if way.name == "exact":
            return _ranges(column_quantiles(rows, (way.parameters["lower"], way.parameters["upper"])), way)
        table = self._table(domain)
        return {"low": table[:, 0], "high": table[:, 1]}

    def read(self, values: Any, way: Way, domain: Domain) -> Statistics:
        bound = largest_entry(domain)
        return _ranges(np.clip(values, -bound, bound), way)

    def map_rows(self, X: Array, statistics: Statistics) -> Array:
        low, high = self._target()
        share = (np.clip(X, statistics["low"], statistics["high"]) - statistics["low"]) / (
            statistics["high"] - statistics["low"]
        )
        return np.asarray(low + share * (high - low))


def _ranges(quantiles: Array, way: Way) -> Statistics:
    """From the lower to the upper quantile, but at least as wide as the floor."""
    low, high = quantiles
    return {"low": low, "high": low + np.maximum(high - low, way.parameters["min_width"])}
