"""What scalers share: which columns they scale, and how those with quantiles are fitted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ppdp.bounds.column_groups import entries_of
from ppdp.bounds.order_statistics import coordinate_moves
from ppdp.core.checks import columns_of, number, positive
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, largest_entry
from ppdp.data.noisy_statistics import of_columns
from ppdp.data.quantiles import RankGapMargin, column_quantiles
from ppdp.data.rows import Array, Rows
from ppdp.data.unit_conversion import Columns
from ppdp.exceptions import DomainMismatch, InvalidParameter, UnsupportedOrder
from ppdp.transformers.base import Statistics, Transformer, chosen
from ppdp.transformers.fit_mode import FitMode, Measure, StatisticRequest

ALL = "all"
_SPREAD = 400  # ranks that values spread evenly over a box of norm R may be apart, in units of R/2


class ColumnScaler(Transformer):
    """A scaler of all or some columns; the others stay as they are."""

    columns: Any

    elementwise = True
    columns_: ClassVar[list[int] | None] = None

    @available_if(lambda self: self.elementwise)
    def inverse_transform(self, X: Any) -> Array:
        """Rows in the units of those that came in; what was clipped is where the clip put it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Scaled rows.
        """
        check_is_fitted(self)
        X = check_array(X, dtype=np.float64, ensure_all_finite="allow-nan")
        if X.shape[1] != self.n_features_in_:
            what = f"X has {X.shape[1]} columns, and scaled rows have {self.n_features_in_}."
            raise DomainMismatch(what, stage=type(self).__name__)
        raw: Any = self.units(Columns.raw([""] * X.shape[1]))
        return raw.offset + raw.slope * X

    def _scaled_columns(self, domain: Domain) -> list[int] | None:
        """Positions of the columns to scale; None are all.

        Without a parameter these are all columns but those that stand for categories or words: divided by their
        deviation the rare ones would make rows long, for which every column pays.
        """
        if self.columns is None:
            indicators = set(domain.indicators)
            return [column for column in range(domain.d) if column not in indicators] if indicators else None
        if isinstance(self.columns, str) and self.columns == ALL:
            return None
        listed = list(self.columns) if isinstance(self.columns, (list, tuple, np.ndarray)) else self.columns
        columns = columns_of("columns", listed, domain.feature_names, domain.d, self)
        if len(set(columns)) < len(columns):
            raise InvalidParameter("columns names a column twice.", stage=type(self).__name__, fix="name it once.")
        return sorted(columns) if len(columns) < domain.d else None


class QuantileScaler(ColumnScaler):
    """A scaler by quantiles: exact ones under a condition on the gaps between ranks, or released ones."""

    leakage = "high", "quantiles of columns, which are values of single rows"

    min_width: float | None
    max_quantile_gap: float | None
    fit_mode: str

    _default_width: ClassVar[float]  # floor of the width between the outer quantiles, in units of the largest entry

    def _quantile_ways(
        self,
        domain: Domain,
        distance: Distance,
        quantiles: Sequence[float],
        formulas: Mapping[str, str],
        released_width: float | None = None,
        **parameters: Any,
    ) -> tuple[FitMode, ...]:
        """The ways of ``formulas``, for quantiles of the columns to scale."""
        columns = self._scaled_columns(domain)
        if columns == []:
            return (FitMode.by("scaling.none", domain, distance),)
        part, some = entries_of(domain, columns), asked_for(columns)
        gap, width = public_gap(self.max_quantile_gap, part, self), self._width(part)
        refuse_weights(distance, self)
        asked: dict[str, Any] = {"gap": gap, "lower": quantiles[0], "upper": quantiles[-1], **some}
        choices: dict[str, Any] = {"quantiles": list(quantiles), **some}
        measures = measured_on(gap_margin(part, distance, tuple(quantiles), gap), columns)
        request = StatisticRequest("quantile-pairs" if len(quantiles) == 2 else "quantile-triples", asked)
        known = {**asked, "min_width": width, **parameters}
        exact = FitMode.by(formulas["exact"], domain, distance, measures=measures, request=request, **known)
        least = width if released_width is None else self._width(part, released_width)
        request, known = StatisticRequest("quantile-choices", choices), {**choices, "min_width": least, **parameters}
        noisy = FitMode.by(formulas["noisy"], domain, distance, request=request, **known)
        return chosen({"noisy": noisy, "exact": exact}, self.fit_mode, self)

    def _width(self, domain: Domain, default: float | None = None) -> float:
        """The floor of a width; by default a share of the largest possible entry."""
        norm = float(domain.require("row_norm", type(self).__name__))
        if self.min_width is None:
            return (self._default_width if default is None else default) * norm / domain.d**0.5
        return norm * number("min_width", self.min_width, self, least=1e-6, most=2)

    def _fitted_quantiles(self, rows: Rows, way: FitMode) -> Array:
        """Quantiles of an exact mode."""
        outer = way.parameters["lower"], way.parameters["upper"]
        quantiles = (outer[0], 0.5, outer[1]) if way.request and way.request.statistic == "quantile-triples" else outer
        return column_quantiles(of_columns(rows, columns_of_way(way)), quantiles)

    def read(self, values: Any, way: FitMode, domain: Domain) -> Statistics:
        bound = largest_entry(domain)
        return self._of_quantiles(np.clip(values, -bound, bound), way, domain)

    def _of_quantiles(self, quantiles: Array, way: FitMode, domain: Domain) -> Statistics:
        """What rows are mapped by; a row of numbers for each quantile."""
        raise NotImplementedError


def public_gap(gap: Any, domain: Domain, stage: object) -> float:
    """The threshold of the condition; by default 400/n of the row norm."""
    norm = float(domain.require("row_norm", type(stage).__name__))
    return norm * (min(2.0, _SPREAD / domain.n) if gap is None else positive("max_quantile_gap", gap, stage, most=2))


def gap_margin(domain: Domain, distance: Distance, quantiles: tuple[float, ...], gap: float) -> dict[str, Measure]:
    """How to measure the condition of a stage that fits these quantiles; it counts whole rows."""
    margin = RankGapMargin(gap, quantiles, largest_entry(domain), coordinate_moves(domain, distance))
    return {"order-statistics.gap": margin}


def refuse_weights(distance: Distance, stage: object) -> None:
    """Ranks count rows; a row of fractional weight has none."""
    if distance.reweighted:
        what = "it ranks rows, and rows may have fractional weights here."
        fix = "put it before the stage that weights rows, or use a stage with means."
        raise UnsupportedOrder(what, stage=type(stage).__name__, fix=fix)


def asked_for(columns: Sequence[int] | None) -> dict[str, Any]:
    """The parameter of a formula for these columns; none where it is for all."""
    return {} if columns is None else {"columns": list(columns)}


def columns_of_way(way: FitMode) -> list[int] | None:
    """The columns that a way is for; None are all."""
    columns = [] if way.formula == "scaling.none" else way.parameters.get("columns")
    return None if columns is None else list(columns)


def measured_on(measures: Mapping[str, Measure], columns: Sequence[int] | None) -> dict[str, Measure]:
    """The same measurements, of these columns of the rows."""
    if columns is None:
        return dict(measures)
    return {name: partial(_of_columns, measure, tuple(columns)) for name, measure in measures.items()}


def among_all(values: Array, d: int, columns: Sequence[int] | None, elsewhere: float) -> Array:
    """Values of these columns in their places among all, and another value in the other places."""
    if columns is None:
        return values
    everywhere = np.full(d, elsewhere)
    everywhere[list(columns)] = values
    return everywhere


def mapped_columns(X: Array, columns: Sequence[int], function: Callable[[Array], Array]) -> Array:
    """The rows with these columns mapped by a function, and the others as they are."""
    out = X.copy()
    if columns:
        out[:, columns] = function(np.ascontiguousarray(X[:, columns]))
    return out


def _of_columns(measure: Measure, columns: tuple[int, ...], rows: Rows, unit: float) -> float:
    return measure(of_columns(rows, columns), unit)
