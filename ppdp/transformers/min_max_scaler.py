"""Scaling by public ranges."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.checks import pair
from ppdp.distance import Distance
from ppdp.domain import Domain
from ppdp.planning.ways import Way
from ppdp.rows import Rows
from ppdp.transformers.base import RowWiseTransformer, Statistics
from ppdp.transformers.ranges import resolve_ranges

__all__ = ["MinMaxScaler"]


class MinMaxScaler(RowWiseTransformer):
    """Clip columns to public ranges and map them onto an interval. Bounds the rows; costs nothing.

    Parameters
    ----------
    ranges : mapping, pair, or sequence of pairs
        Public (low, high) of every column: ``{name: (low, high)}``, a pair per column, or one for all.
        Ranges read off the data cannot be certified: one row decides them.
    feature_range : tuple of two floats, default=(-1, 1)
        Where the ranges are mapped to.

    Attributes
    ----------
    low_, high_ : ndarray of shape (n_features,)
        The public ranges.

    Notes
    -----
    **Guarantee** (``docs/theory/row-wise.md``): row-wise, moves nothing. Gaps stay gaps.

    Examples
    --------
    >>> import numpy as np
    >>> MinMaxScaler(ranges=[(0, 10), (0, 2)]).fit_transform(np.array([[5.0, 2.0], [20.0, np.nan]]))
    array([[ 0.,  1.],
           [ 1., nan]])
    """

    bounds_rows = True
    _statistic_names = ("low", "high")

    def __init__(self, ranges: Any = None, feature_range: tuple[float, float] = (-1, 1)) -> None:
        self.ranges = ranges
        self.feature_range = feature_range

    @classmethod
    def example(cls) -> Any:
        """An instance that works on any numeric data, for contract tests."""
        return cls(ranges=(-10, 10))

    def _target(self) -> tuple[float, float]:
        return pair("feature_range", self.feature_range, self)

    def ways(self, domain: Domain, distance: Distance) -> tuple[Way, ...]:
        """One public way."""
        table = resolve_ranges(self.ranges, domain.d, domain.feature_names, "MinMaxScaler")
        low, high = self._target()
        widths = [float(w) for w in table[:, 1] - table[:, 0]]
        return (Way.by("public", "row-wise.range-scaling", domain, distance, widths=widths, low=low, high=high),)

    def _statistics(self, rows: Rows, way: Way, domain: Domain) -> Statistics:
        table = resolve_ranges(self.ranges, domain.d, domain.feature_names, "MinMaxScaler")
        return {"low": table[:, 0], "high": table[:, 1]}

    def _apply(self, X: NDArray[np.float64], statistics: Statistics) -> NDArray[np.float64]:
        low, high = self._target()
        share = (np.clip(X, statistics["low"], statistics["high"]) - statistics["low"]) / (
            statistics["high"] - statistics["low"]
        )
        return np.asarray(low + share * (high - low))
