"""Mean imputation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.bounds.deduplication import nobody_absent
from ppdp.core.checks import columns_of, flag, integer, positive
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.releases import observed_counts, observed_means, only
from ppdp.data.rows import Rows
from ppdp.data.statistics import Moments
from ppdp.transformers.base import Statistics, Transformer, chosen
from ppdp.transformers.impute.filling import MissingMargin, fill, missing_limit
from ppdp.transformers.way import Ask, Way

__all__ = ["MeanImputer"]

Array = NDArray[np.float64]


class MeanImputer(Transformer):
    """Fill gaps with column means.

    The mean of column j is the sum of its observed entries divided by ``max(n_j, n0)``, n_j the number of
    observed entries. With fewer than n0 of them the mean shrinks towards 0; that is what makes the bound
    unconditional. A column without any observed entry is filled with 0.

    Parameters
    ----------
    min_observed : int or float, default=0.5
        The floor n0: a count, or a fraction of the rows if at most 1 and not an integer. The exact way never takes it
        below the number of rows that must be free of gaps.
    max_missing : int or float, optional
        At most this many rows have gaps (a count, or a fraction if a float of at most 1); the smaller of this and the
        domain's is used. If it is below the number of rows, the exact way assumes it as a condition.
    floor : bool, default=True
        Whether to divide by ``max(n_j, n0)``. If False the exact way divides by n_j and assumes
        ``n_j >= n0``.
    columns : sequence of column names or positions, optional
        The columns that may have gaps, if that is known: the fewer, the less the exact way costs. Gaps elsewhere are
        filled with 0, so nothing rests on it. Default: all.
    statistics : {"auto", "exact", "noisy"}, default="auto"
        Fit without noise, or from released means. Alone, outside a pipeline, "auto" is exact.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        The fill values: private if fitted alone, released if taken from a fitted pipeline.
    norm_ : float or None
        Filled rows are clipped to this public norm.

    Notes
    -----
    **Guarantee** (``docs/theory/mean-imputation.md``; corrects Corollary 4 of "Provable privacy with
    non-private pre-processing", whose printed bound is false when the replaced row changes its gaps).
    One replaced row moves every row with gaps by at most about ``√6 R/n0``, ``2 R/n0`` with one column.

    Examples
    --------
    >>> import numpy as np
    >>> MeanImputer().fit_transform(np.array([[1.0, 2.0], [np.nan, 4.0], [3.0, 0.0]]))
    array([[1., 2.],
           [2., 4.],
           [3., 0.]])
    """

    allows_gaps = True
    fills_gaps = True
    elementwise = True
    statistic_names = ("mean", "norm")

    def __init__(
        self,
        min_observed: int | float = 0.5,
        max_missing: int | float | None = None,
        floor: bool = True,
        columns: Sequence[str | int] | None = None,
        statistics: str = "auto",
    ) -> None:
        self.min_observed = min_observed
        self.max_missing = max_missing
        self.floor = floor
        self.columns = columns
        self.statistics = statistics

    def _floor(self, n: int) -> int:
        if isinstance(self.min_observed, float) and self.min_observed <= 1:
            return max(1, math.ceil(positive("min_observed", self.min_observed, self) * n))
        return integer("min_observed", self.min_observed, self, most=n)

    @property
    def relief(self) -> str:
        return "statistics='noisy'" if self.floor else "floor=True"

    def ways(self, domain: Domain, distance: Distance) -> tuple[Way, ...]:
        """Exact (moves the rows with gaps) and noisy (moves nothing)."""
        n0 = self._floor(domain.n)
        domain.require("row_norm", "MeanImputer")
        flag("floor", self.floor, self)
        limit = missing_limit(self.max_missing, domain, self)
        if limit == 0:
            return (Way.by("imputation.zero", domain, distance),)
        # Where nobody is absent every column is observed in the rows without gaps: a floor up to their number is idle.
        floor = max(n0, domain.n - limit) if self.floor and nobody_absent(domain, distance) else n0
        columns = self._columns(domain)
        which: dict[str, Any] = {} if columns is None else {"columns": columns}
        parameters: dict[str, Any] = {"min_observed": floor, "max_missing": limit, "conditional": not self.floor}
        parameters |= which
        exact = Way.by(
            "imputation.mean",
            domain,
            distance,
            measures={
                "imputation.missing": MissingMargin(limit),
                "imputation.observed": ObservedMargin(n0, columns),
            },
            ask=Ask("means", {"min_observed": floor, **which}),
            **parameters,
        )
        noisy = Way.by("imputation.public", domain, distance, ask=Ask("means", {"min_observed": n0, **which}))
        return chosen({"noisy": noisy, "exact": exact}, self.statistics, self)

    def _columns(self, domain: Domain) -> list[int] | None:
        if self.columns is None:
            return None
        return sorted(set(columns_of("columns", self.columns, domain.feature_names, domain.d, self)))

    def prepare(self, rows: Rows, way: Way, domain: Domain) -> Statistics:
        if way.name == "public":
            return {"mean": np.zeros(rows.X.shape[1]), "norm": domain.row_norm}
        n0 = int(way.parameters["min_observed"])
        if not self.floor:
            n0 = 1  # under the condition n_j >= n0 both forms agree
        return {"mean": observed_means(rows, domain, n0, self._columns(domain)), "norm": domain.row_norm}

    def read(self, values: Moments, way: Way, domain: Domain) -> Statistics:
        bound = domain.entry_bound or float(domain.require("row_norm"))
        means, columns = np.clip(values.mean, -bound, bound), self._columns(domain)
        return {"mean": means if columns is None else only(means, columns), "norm": domain.row_norm}

    def map_rows(self, X: Array, statistics: Statistics) -> Array:
        return fill(X, statistics["mean"], statistics["norm"])


@dataclass(frozen=True, slots=True)
class ObservedMargin:
    """Margin of "every column is observed in at least ``n0`` rows"."""

    n0: int
    columns: list[int] | None

    def __call__(self, rows: Rows, unit: float) -> float:
        counts = observed_counts(rows)
        if self.columns is not None:
            counts = counts[self.columns]
        room = float(counts.min() - self.n0)
        if unit == 0:  # neighbouring datasets have the same counts, enough or not
            return math.inf if room >= 0 else 0.0
        return room / unit
