"""Scaling by the median and the distance of two quantiles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ppdp.bounds.column_groups import entries_of
from ppdp.bounds.order_statistics import one_way
from ppdp.core.checks import number, pair
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.rows import Array, Rows
from ppdp.data.unit_conversion import Columns
from ppdp.exceptions import InvalidParameter
from ppdp.transformers.base import Statistics
from ppdp.transformers.fit_mode import FitMode
from ppdp.transformers.scale.base import QuantileScaler, among_all, columns_of_way, mapped_columns
from ppdp.transformers.scale.standard_scaler import StandardScaler


@dataclass(eq=False, repr=False)
class RobustScaler(QuantileScaler):
    """Subtract column medians, divide by quantile ranges with a public floor, and clip entries.

    ``x -> clip((x - median) / max(width, w), -B, B)``, width the distance of two quantiles. Missing values are left out
    of the quantiles and stay missing.

    Parameters
    ----------
    quantile_range : tuple of two floats, default=(25.0, 75.0)
        The quantiles, in percent.
    min_width : float, optional
        The floor w, in units of ``row_norm``. Default: a quarter of the largest possible entry, ``0.25 / √d``; by which
        a width is replaced that, from released quantiles of rows that have not moved, is below ``500 / n``.
    clip : float, default=3.0
        B: scaled entries are clipped to ``[-B, B]``.
    max_quantile_gap : float, optional
        The condition: in every column the values ranked next to both quantiles and the median are near them, within
        ``max_quantile_gap`` in L2 over the columns, in units of ``row_norm``. Default: ``400/n``, at most 2.
    fit_mode : {"auto", "exact", "noisy"}, default="auto"
        Fit without noise, under the condition, or from released quantiles, which assume nothing. Outside a
        pipeline, "auto" is exact.
    columns : "all" or list of names or positions, optional
        Columns to scale; the others stay as they are. Default: all but the columns of 0 and 1 that a step
        in front of it made of categories. Outside a pipeline, that is all.

    Attributes
    ----------
    center_, scale_ : ndarray of shape (n_features,)
        Private if fitted alone, released if taken from a fitted pipeline.
    columns_ : list of int or None
        Positions of the columns that are scaled; None are all.
    clip_ : float
        The public clip.

    Notes
    -----
    **Guarantee** (``docs/theory/order-statistics.md``). One replaced row moves every row by at most
    ``(B + 1) gap / w``, ``(2B + 1) gap / w`` if rows may have missing values or be deleted. The floor costs nothing, so
    no condition on the width is needed. Columns are sorted, so all rows are needed in memory. From released quantiles
    (``docs/theory/released-quantiles.md``): nothing moves but what had moved.

    **With more rows** what is fitted from released quantiles goes to scikit-learn's, clipped; but a column of which so
    many values are equal that both quantiles are the same is divided by a quarter of the largest possible entry, and
    there by 1. Fitted exactly the floor stays as it is: how far all rows move grows with 1/w.

    Prefer :class:`StandardScaler` after clipping to public ranges: it assumes nothing and moves rows far less.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [2.0], [4.0], [6.0], [50.0]])
    >>> RobustScaler(min_width=0.01).fit_transform(X).ravel()
    array([-1. , -0.5,  0. ,  0.5,  3. ])
    """

    quantile_range: tuple[float, float] = (25.0, 75.0)
    min_width: float | None = None
    clip: float = 3.0
    max_quantile_gap: float | None = None
    fit_mode: str = "auto"
    columns: Any = None

    allows_gaps = True
    in_memory = True
    relief = "StandardScaler"
    statistic_names = ("center", "scale", "clip", "columns")
    _default_width = 0.25

    def fit_modes(self, domain: Domain, distance: Distance) -> tuple[FitMode, ...]:
        """Exact (moves all rows), under a condition, and noisy."""
        lower, upper = (
            number("quantile_range", q, self, least=0.1, most=99.9) / 100
            for q in pair("quantile_range", self.quantile_range, self)
        )
        if upper <= 0.01:
            what, fix = "quantile_range is in percent, as scikit-learn's.", "quantile_range=(25.0, 75.0)."
            raise InvalidParameter(what, stage="RobustScaler", fix=fix, parameter="quantile_range")
        exact = "scaling.robust-by-ranks" if one_way(domain, distance) else "scaling.robust"
        return self._quantile_ways(
            domain,
            distance,
            (lower, 0.5, upper),
            {"exact": exact, "noisy": "scaling.robust-public"},
            released_width=None if distance.moved else _released_width(domain, self._scaled_columns(domain)),
            clip=number("clip", self.clip, self, least=1e-3, most=1e6),
        )

    def instead(self) -> Iterator[tuple[str, Any]]:
        yield "StandardScaler", StandardScaler()

    def prepare(self, rows: Rows, way: FitMode, domain: Domain) -> Statistics:
        if way.formula == "scaling.none":
            zeros, ones = np.zeros(domain.d), np.ones(domain.d)
            return {"center": zeros, "scale": ones, "clip": None, "columns": []}
        return self._of_quantiles(self._fitted_quantiles(rows, way), way, domain)

    def _of_quantiles(self, quantiles: Array, way: FitMode, domain: Domain) -> Statistics:
        (low, median, high), columns = quantiles, columns_of_way(way)
        width, least = high - low, float(way.parameters["min_width"])
        narrow = max(least, self._width(entries_of(domain, columns)))
        scale = among_all(np.where(width > least, width, narrow), domain.d, columns, 1.0)
        center = among_all(median, domain.d, columns, 0.0)
        return {"center": center, "scale": scale, "clip": way.parameters["clip"], "columns": columns}

    def units(self, columns: Columns) -> Columns:
        scaled = columns.scaled(self.scale_, self.center_)
        if self.columns_ is None:
            return scaled.clipped(-self.clip_, self.clip_)
        ends = among_all(np.full(len(self.columns_), self.clip_), len(self.scale_), self.columns_, np.nan)
        return scaled.clipped(-ends, ends)

    def map_rows(self, X: Array, statistics: Statistics) -> Array:
        clip, center, scale = statistics["clip"], statistics["center"], statistics["scale"]
        columns = statistics["columns"]
        if columns is None:
            return np.clip((X - center) / scale, -clip, clip)
        return mapped_columns(X, columns, lambda part: np.clip((part - center[columns]) / scale[columns], -clip, clip))


def _released_width(domain: Domain, columns: list[int] | None) -> float:
    """The usual floor of the width between released quantiles, as a share of the largest possible entry.

    A quarter or, where that is less, about seven standard errors of what is chosen at about epsilon = 1 of n values
    that are spread evenly.
    """
    d = domain.d if columns is None else len(columns)
    return min(0.25, 500 * float(d) ** 0.5 / domain.n)
