"""Scaling by public or released ranges, or by quantiles."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, issparse
from sklearn.base import clone

from ppdp.bounds.release import CLIPPED, TINY
from ppdp.core.checks import number, pair
from ppdp.core.declared import Value, plain
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.altered import MOST_TINY, Property, alike, beside_zero, outside, tiny
from ppdp.data.rows import Array, Rows
from ppdp.data.statistics import by_column
from ppdp.data.unit_conversion import Columns
from ppdp.exceptions import InvalidParameter, MissingBound
from ppdp.transformers.base import RowWiseTransformer, Statistics, chosen, hold
from ppdp.transformers.columns.maps import ClipToRange, PublicMap, RangeScale
from ppdp.transformers.fit_mode import FitMode, StatisticRequest
from ppdp.transformers.rowwise.ranges import check_reached, has_private, resolve_ranges, with_private
from ppdp.transformers.scale.base import QuantileScaler, among_all, columns_of_way, mapped_columns
from ppdp.transformers.scale.standard_scaler import StandardScaler

RELEASED = "found in the rows, with noise"


@dataclass(eq=False, repr=False)
class MinMaxScaler(QuantileScaler, RowWiseTransformer):
    """Clip columns to ranges and map them onto an interval.

    With public ``ranges`` it bounds the rows and costs nothing. With ``quantiles`` the ranges are fitted, under a
    condition. The smallest and largest values of the data cannot be used: one row decides each of them, so that no test
    could ever find them stable.

    Parameters
    ----------
    ranges : "private", mapping, pair, or sequence of pairs
        Public (low, high) of every column: ``{name: (low, high)}``, a pair per column, or one for all. In place of all
        or of some of them ``"private"``: found in the rows, with noise, so a plan pays for them.
    feature_range : tuple of two floats, default=(-1, 1)
        Where the ranges are mapped to.
    quantiles : tuple of two floats, optional
        Instead of ``ranges``: from which to which quantile of a column its range goes, such as ``(0.05, 0.95)``. The
        quantile q of N values is the ``⌈q N⌉``-th; missing values are left out, and stay missing.
    min_width : float, optional
        With ``quantiles``: a range is at least this wide, in units of ``row_norm``. Default: half of the largest
        possible entry, ``0.5 / √d``.
    max_quantile_gap : float, optional
        With ``quantiles``, the condition: in every column the values ranked next to both quantiles are near them,
        within ``max_quantile_gap`` in L2 over the columns, in units of ``row_norm``. Default: ``400/n``, at most 2.
    fit_mode : {"auto", "exact", "noisy"}, default="auto"
        With ``quantiles``: fitted without noise, under the condition, or from released quantiles, which assume nothing.
        Private ranges are always noisy. Outside a pipeline, "auto" is exact.
    columns : "all" or list of names or positions, optional
        With ``quantiles``: columns to scale; the others stay as they are. Default: all but the columns of 0 and 1 that
        a step in front of it made of categories. Outside a pipeline, that is all.

    Attributes
    ----------
    low_, high_ : ndarray of shape (n_features,)
        The ranges. Those fitted to quantiles are private if fitted alone, released if taken from a fitted pipeline.
    columns_ : list of int or None
        Positions of the columns that are scaled; None are all.

    Notes
    -----
    **Guarantee**. ``ranges`` (``docs/theory/row-wise.md``): row-wise, moves nothing. Missing values stay missing.
    Private ranges (``docs/theory/released-ranges.md``): released, so that they move nothing; nothing need be known of
    the rows before. ``quantiles`` (``docs/theory/order-statistics.md``): one replaced row moves every row by at most
    ``(high - low) gap / min_width``; released ones (``docs/theory/released-quantiles.md``) move nothing. Exact ones
    sort columns, so they need all rows in memory.

    Examples
    --------
    >>> import numpy as np
    >>> MinMaxScaler(ranges=[(0, 10), (0, 2)]).fit_transform(np.array([[5.0, 2.0], [20.0, np.nan]]))
    array([[ 0.,  1.],
           [ 1., nan]])
    >>> MinMaxScaler(quantiles=(0.2, 0.8)).fit_transform(np.array([[0.0], [1.0], [2.0], [3.0], [4.0]])).ravel()
    array([-1.        , -0.33333333,  0.33333333,  1.        ,  1.        ])
    """

    ranges: Any = None
    feature_range: tuple[float, float] = (-1, 1)
    quantiles: tuple[float, float] | None = None
    min_width: float | None = None
    max_quantile_gap: float | None = None
    fit_mode: str = "auto"
    columns: Any = None

    takes_sparse = "keeps"
    relief = "public ranges"
    statistic_names = ("low", "high", "columns")
    _default_width = 0.5
    _example: ClassVar = {"ranges": (-10, 10)}

    @property
    def leakage(self) -> tuple[str, str]:  # type: ignore[override]
        """Nothing where ranges are declared."""
        return RowWiseTransformer.leakage if self.quantiles is None else QuantileScaler.leakage

    alone_without_bounds = True

    @property
    def bounds_rows(self) -> bool:  # type: ignore[override]
        """True where ranges are declared, or released."""
        return self.quantiles is None

    @property
    def in_memory(self) -> bool:  # type: ignore[override]
        """True where it sorts columns."""
        return self.quantiles is not None

    @property
    def adds_up(self) -> bool:  # type: ignore[override]
        """True where ranges are declared, and no row decides anything."""
        return self.quantiles is None and not has_private(self.ranges)

    def _table(self, domain: Domain) -> tuple[Array, list[int]]:
        if self.ranges is None:
            raise MissingBound(
                "ranges is not declared, and the smallest and largest values of private rows cannot stand in:"
                " one row decides each of them, so that no test could ever find them stable.",
                stage="MinMaxScaler",
                fix='ranges={column: (low, high)} from public knowledge, ranges="private", or quantiles=(0.05, 0.95).',
                parameter="ranges",
            )
        return with_private(self.ranges, domain.d, domain.feature_names, "MinMaxScaler")

    def fit_modes(self, domain: Domain, distance: Distance) -> tuple[FitMode, ...]:
        """Public with ranges, noisy with private ones; with quantiles exact (moves all rows), under a condition."""
        low, high = pair("feature_range", self.feature_range, self)
        if self.quantiles is not None:
            return self._fitted_ways(domain, distance, low, high)
        table, private = self._table(domain)
        if private:
            request = StatisticRequest("ranges", {"columns": private})
            asked: dict[str, Any] = {"columns": private, "low": low, "high": high}
            noisy = FitMode.by("row-wise.released-ranges", domain, distance, request=request, **asked)
            return chosen({"noisy": noisy}, self.fit_mode, self)
        check_reached(table, domain, "MinMaxScaler")
        widths = [float(w) for w in table[:, 1] - table[:, 0]]
        return (FitMode.by("row-wise.range-scaling", domain, distance, widths=widths, low=low, high=high),)

    def _fitted_ways(self, domain: Domain, distance: Distance, low: float, high: float) -> tuple[FitMode, ...]:
        if self.ranges is not None:
            what = "ranges and quantiles exclude each other."
            raise InvalidParameter(what, stage="MinMaxScaler", fix="leave one of them out.", parameter="ranges")
        lower, upper = (
            number("quantiles", q, self, least=1e-3, most=1 - 1e-3, fix="shares of the rows, such as (0.05, 0.95).")
            for q in pair("quantiles", self.quantiles, self)
        )
        formulas = {"exact": "scaling.quantile", "noisy": "scaling.quantile-public"}
        return self._quantile_ways(domain, distance, (lower, upper), formulas, low=low, high=high)

    def declared(self, domain: Domain) -> tuple[Value, ...]:
        """With private ranges those, and of the others what clips further than the interval that all are mapped to."""
        values = super().declared(domain)
        if not has_private(self.ranges):
            return values
        names = domain.feature_names or tuple(f"column {i}" for i in range(domain.d))
        released = [(f"range of {names[i]}", RELEASED, "released") for i in self._table(domain)[1]]
        idle = " to ".join(map(plain, self.feature_range))
        return (*released, *(value for value in values if value[1] != idle))

    def column_maps(self, columns: Sequence[Any]) -> tuple[PublicMap, ...]:
        """The public maps that it is for some columns of a table, by public ranges."""
        if self.quantiles is not None:
            what = "quantiles of some of the columns have no route."
            raise InvalidParameter(what, stage="MinMaxScaler", fix="ranges=(low, high).", parameter="quantiles")
        if has_private(self.ranges):
            fix = 'wide public ranges here, and a step MinMaxScaler(ranges={column: "private", ...}) behind the map.'
            raise InvalidParameter("beside other stages ranges must be public.", stage="MinMaxScaler", fix=fix)
        names = tuple(map(str, columns))
        ranges = resolve_ranges(self.ranges, len(columns), names, "MinMaxScaler")
        pairs = tuple((float(low), float(high)) for low, high in ranges)
        return ClipToRange(pairs), RangeScale(pair("feature_range", self.feature_range, self))

    def alters(self, domain: Domain) -> tuple[Property, ...]:
        names = domain.feature_names or tuple(f"column {i}" for i in range(domain.d))
        if not self.adds_up:
            return ()
        small = [Property(TINY, names[i]) for i in self._beside_zero(domain)]
        return (*(Property(CLIPPED, name) for name in names), *small)

    def altered(self, X: Any, domain: Domain) -> Any:
        table, near = self._table(domain)[0], self._beside_zero(domain)
        clipped = outside(X, *table.T)
        if near.size == 0:
            return clipped
        blocks = [clipped, tiny(X[:, near], *table[near].T)]
        return hstack(blocks, "csr") if issparse(X) else np.concatenate(blocks, axis=1)

    def _beside_zero(self, domain: Domain) -> NDArray[np.intp]:
        """Columns whose public range holds values that are tiny beside it, of a table that is not wide."""
        return np.flatnonzero(beside_zero(*self._table(domain)[0].T) & (domain.d <= MOST_TINY))

    def simulated(self, n: int, domain: Domain, rng: np.random.Generator) -> Any:
        if self.quantiles is not None:
            return None
        low, high = self._table(domain)[0].T
        return low + (high - low) * rng.beta(2.0, 2.0, (n, domain.d))

    def instead(self) -> Iterator[tuple[str, Any]]:
        if self.quantiles is not None:
            yield "public ranges", MinMaxScaler(ranges=(-1, 1), feature_range=self.feature_range)
            yield "StandardScaler", StandardScaler()

    def prepare(self, rows: Rows, way: FitMode, domain: Domain) -> Statistics:
        if way.name == "exact":
            return self._of_quantiles(self._fitted_quantiles(rows, way), way, domain)
        if way.formula == "scaling.none":
            return self._of_quantiles(np.empty((2, 0)), way, domain)
        table, _ = self._table(domain)
        return {"low": table[:, 0], "high": table[:, 1], "columns": None}

    def read(self, values: Any, way: FitMode, domain: Domain) -> Statistics:
        if way.formula == "row-wise.released-ranges":
            table, private = self._table(domain)
            table[private] = values
            return {"low": table[:, 0], "high": table[:, 1], "columns": None}
        return super().read(values, way, domain)

    def _of_quantiles(self, quantiles: Array, way: FitMode, domain: Domain) -> Statistics:
        """From the lower to the upper quantile, but at least as wide as the floor."""
        (low, high), columns = quantiles, columns_of_way(way)
        end = low + np.maximum(high - low, way.parameters.get("min_width", 0.0))
        return {
            "low": among_all(low, domain.d, columns, 0.0),
            "high": among_all(end, domain.d, columns, 1.0),
            "columns": columns,
        }

    def units(self, columns: Columns) -> Columns:
        low, high = pair("feature_range", self.feature_range, self)
        slope = (self.high_ - self.low_) / (high - low)
        start, end, shift = self.low_, self.high_, self.low_ - low * slope
        if self.columns_ is not None:
            start, end = (among_all(of[self.columns_], len(of), self.columns_, np.nan) for of in (start, end))
            slope, shift = (
                among_all(of[self.columns_], len(of), self.columns_, rest) for of, rest in ((slope, 1.0), (shift, 0.0))
            )
        return columns.clipped(start, end).scaled(slope, shift)

    def public_units(self, columns: Columns, way: FitMode, domain: Domain) -> Columns | None:
        """Of columns whose ranges are private nothing is known before they are released."""
        if self.quantiles is not None:
            return super().public_units(columns, way, domain)
        table, private = self._table(domain)
        table[private] = math.nan
        made: Columns = hold(clone(self), {"low": table[:, 0], "high": table[:, 1]}, domain).units(columns)
        return made

    def map_rows(self, X: Any, statistics: Statistics) -> Any:
        start, end, columns = statistics["low"], statistics["high"], statistics.get("columns")
        if columns is not None:
            return mapped_columns(
                X, columns, lambda part: self.map_rows(part, {"low": start[columns], "high": end[columns]})
            )
        if issparse(X):
            held = self.map_rows(X.data, {"low": start[X.indices], "high": end[X.indices]})
            return csr_array((held, X.indices, X.indptr), X.shape)
        out = np.empty(X.shape)
        MinMaxScaler.map_into(self, X, statistics, out)  # a subclass whose map is another may call this one
        return out

    def map_into(self, X: Array, statistics: Statistics, out: Array) -> None:
        if statistics.get("columns") is not None:
            super().map_into(X, statistics, out)
            return
        low, high = pair("feature_range", self.feature_range, self)
        start, end = statistics["low"], statistics["high"]
        start, end, width = alike(start), alike(end), alike(end - start)
        if np.ndim(start) or np.ndim(end):
            by_column(np.maximum, X, start, out)
            by_column(np.minimum, out, end, out)
        else:  # which takes a quarter of the time
            np.clip(X, start, end, out=out)
        by_column(np.subtract, out, start, out)
        by_column(np.divide, out, width, out)
        out *= high - low
        out += low
