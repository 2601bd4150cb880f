"""Scaling by medians and quantile ranges."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.bounds.order_statistics import one_way
from ppdp.core.checks import number, pair
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, largest_entry
from ppdp.data.quantiles import column_quantiles
from ppdp.data.rows import Rows
from ppdp.transformers.base import Statistics, Transformer, chosen
from ppdp.transformers.scale.rank_gaps import gap_margin, public_gap, public_width, refuse_weights
from ppdp.transformers.way import Ask, Way

__all__ = ["RobustScaler"]

Array = NDArray[np.float64]


class RobustScaler(Transformer):
    """Subtract column medians, divide by quantile ranges with a public floor, and clip entries.

    ``x -> clip((x - median) / max(width, w), -B, B)``, width the distance of two quantiles. Gaps are left out of the
    quantiles and stay gaps.

    Parameters
    ----------
    quantile_range : tuple of two floats, default=(25.0, 75.0)
        The quantiles, in percent.
    min_width : float, optional
        The floor w, in units of ``row_norm``. Default: a quarter of the largest possible entry, ``0.25 / √d``.
    clip : float, default=3.0
        B: scaled entries are clipped to ``[-B, B]``.
    gap : float, optional
        The condition: in every column the values ranked next to both quantiles and the median are near them, within
        ``gap`` in L2 over the columns, in units of ``row_norm``. Default: ``400/n``, at most 2.
    statistics : {"auto", "exact"}, default="auto"
        There is one way, without noise. With "auto" a plan does not offer it where it cannot be of use: if no data
        could pass the test of the condition, or if quantiles released for prediction would be too noisy.

    Attributes
    ----------
    center_, scale_ : ndarray of shape (n_features,)
        Private if fitted alone, released if taken from a fitted pipeline.
    clip_ : float
        The public clip.

    Notes
    -----
    **Guarantee** (``docs/theory/order-statistics.md``). One replaced row moves every row by at most
    ``(B + 1) gap / w``, ``(2B + 1) gap / w`` if rows may have gaps or be deleted. The floor costs nothing, so no
    condition on the width is needed. Columns are sorted, so all rows are needed in memory.

    There is **no noisy way**: one row can move a quantile from end to end of its range, so noise that covers all data
    drowns it. Quantiles released for prediction rest on the same condition, behind its test.

    Prefer :class:`StandardScaler` after clipping to public ranges: it assumes nothing and moves rows far less.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [2.0], [4.0], [6.0], [50.0]])
    >>> RobustScaler(min_width=0.01).fit_transform(X).ravel()
    array([-1. , -0.5,  0. ,  0.5,  3. ])
    """

    allows_gaps = True
    in_memory = True
    elementwise = True
    statistic_names = ("center", "scale", "clip")

    def __init__(
        self,
        quantile_range: tuple[float, float] = (25.0, 75.0),
        min_width: float | None = None,
        clip: float = 3.0,
        gap: float | None = None,
        statistics: str = "auto",
    ) -> None:
        self.quantile_range = quantile_range
        self.min_width = min_width
        self.clip = clip
        self.gap = gap
        self.statistics = statistics

    @property
    def relief(self) -> str:
        return "StandardScaler"

    def ways(self, domain: Domain, distance: Distance) -> tuple[Way, ...]:
        """Exact (moves all rows), under a condition."""
        gap = public_gap(self.gap, domain, self)
        lower, upper = (
            number("quantile_range", q, self, least=0.1, most=99.9) / 100
            for q in pair("quantile_range", self.quantile_range, self)
        )
        refuse_weights(distance, "RobustScaler")
        release: dict[str, Any] = {"gap": gap, "lower": lower, "upper": upper}
        parameters: dict[str, Any] = {
            **release,
            "min_width": public_width(self.min_width, 0.25, domain, self),
            "clip": number("clip", self.clip, self, least=1e-3, most=1e6),
        }
        exact = Way.by(
            "scaling.robust-by-ranks" if one_way(domain, distance) else "scaling.robust",
            domain,
            distance,
            measures={"order-statistics.gap": gap_margin(domain, distance, (lower, 0.5, upper), gap)},
            ask=Ask("quantile-triples", release),
            **parameters,
        )
        return chosen({"exact": exact}, self.statistics, self)

    def prepare(self, rows: Rows, way: Way, domain: Domain) -> Statistics:
        quantiles = way.parameters["lower"], 0.5, way.parameters["upper"]
        return self._scaled_by(column_quantiles(rows, quantiles), way)

    def read(self, values: Any, way: Way, domain: Domain) -> Statistics:
        bound = largest_entry(domain)
        return self._scaled_by(np.clip(values, -bound, bound), way)

    def _scaled_by(self, quantiles: Array, way: Way) -> Statistics:
        low, median, high = quantiles
        scale = np.maximum(high - low, way.parameters["min_width"])
        return {"center": median, "scale": scale, "clip": way.parameters["clip"]}

    def map_rows(self, X: Array, statistics: Statistics) -> Array:
        clip = statistics["clip"]
        return np.clip((X - statistics["center"]) / statistics["scale"], -clip, clip)
