"""What imputers share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ppdp.core.checks import integer, number, positive
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, largest_entry
from ppdp.data.rows import Array, Rows
from ppdp.data.statistics import clip_norms
from ppdp.data.summary import incomplete
from ppdp.data.units import Columns
from ppdp.transformers.base import Statistics, Transformer, chosen
from ppdp.transformers.way import Way


class Imputer(Transformer):
    """Fills the gaps of rows of which at most ``max_missing`` have any."""

    max_missing: int | float | None
    statistics: str

    allows_gaps = True
    fills_gaps = True
    keeps_units = True

    def units(self, columns: Columns) -> Columns:
        return columns.noted("gaps filled")

    def ways(self, domain: Domain, distance: Distance) -> tuple[Way, ...]:
        """Exact (moves the rows with gaps) and, if there is one, noisy (moves nothing but what had moved)."""
        parameters = self._parameters(domain)
        domain.require("row_norm", type(self).__name__)
        limit = domain.missing_rows
        if self.max_missing is not None:
            number("max_missing", self.max_missing, self, least=0)
            limit = min(limit, domain.but(max_missing=self.max_missing).missing_rows)
        if limit == 0:
            return (Way.by("imputation.zero", domain, distance),)
        return chosen(self._ways(domain, distance, limit, parameters), self.statistics, self)

    def _parameters(self, domain: Domain) -> dict[str, Any]:
        """Its own parameters, checked, in public numbers."""
        raise NotImplementedError

    def _ways(self, domain: Domain, distance: Distance, limit: int, parameters: dict[str, Any]) -> dict[str, Way]:
        """The ways where at most ``limit`` rows have gaps, and some may."""
        raise NotImplementedError


class ColumnImputer(Imputer):
    """Fills every gap of a column with the same value, the first of its statistics, and clips filled rows to a norm."""

    elementwise = True

    def prepare(self, rows: Rows, way: Way, domain: Domain) -> Statistics:
        values = np.zeros(rows.X.shape[1]) if way.name == "public" else self._values(rows, way, domain)
        return {self.statistic_names[0]: values, "norm": domain.row_norm}

    def _values(self, rows: Rows, way: Way, domain: Domain) -> Array:
        """What gaps are filled with, by column."""
        raise NotImplementedError

    def read(self, values: Any, way: Way, domain: Domain) -> Statistics:
        bound = largest_entry(domain)
        return {self.statistic_names[0]: np.clip(values[0], -bound, bound), "norm": domain.row_norm}

    def map_rows(self, X: Array, statistics: Statistics) -> Array:
        if not np.isnan(X.sum()):
            return X
        filled = np.where(np.isnan(X), statistics[self.statistic_names[0]], X)
        return clip_norms(filled, statistics["norm"], out=filled)


def least_observed(min_observed: Any, n: int, stage: object) -> int:
    """The parameter ``min_observed``, a count or a share of the rows, as a count."""
    if isinstance(min_observed, float) and min_observed <= 1:
        return max(1, math.ceil(positive("min_observed", min_observed, stage) * n))
    return integer("min_observed", min_observed, stage, most=n)


@dataclass(frozen=True, slots=True)
class MissingMargin:
    """Margin of "at most ``limit`` rows have gaps"."""

    limit: int

    def __call__(self, rows: Rows, unit: float) -> float:
        room = self.limit + 1 - incomplete(rows)
        if unit == 0:  # neighbouring datasets have as many, too many or not
            return math.inf if room > 0 else 0.0
        return room / unit
