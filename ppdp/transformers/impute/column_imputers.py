"""What imputers share, and those that fill a column with its mean, its median or its trimmed mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ppdp.bounds.column_groups import entries_of
from ppdp.bounds.deduplication import nobody_absent
from ppdp.bounds.release import MISSING
from ppdp.core.checks import columns_of, flag, integer, number, positive
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, largest_entry
from ppdp.data.altered import MOST_TINY, Property, missing
from ppdp.data.noisy_statistics import means_of, observed_counts, observed_sums, only
from ppdp.data.quantiles import column_quantiles, trimmed_means
from ppdp.data.rows import Array, Rows
from ppdp.data.statistics import Moments, clip_norms
from ppdp.data.summary import incomplete
from ppdp.data.unit_conversion import ALONE, FILLED, Columns
from ppdp.exceptions import InvalidParameter
from ppdp.transformers.base import Statistics, Transformer, chosen
from ppdp.transformers.fit_mode import FitMode, Measure, StatisticRequest
from ppdp.transformers.scale.base import gap_margin, public_gap, refuse_weights
from ppdp.transformers.scale.standard_scaler import resolved


class Imputer(Transformer):
    """Fills the missing values of rows of which at most ``max_missing`` have any."""

    max_missing: int | float | None
    fit_mode: str

    allows_gaps = True
    fills_gaps = True
    keeps_units = True

    def units(self, columns: Columns) -> Columns:
        return columns.noted(FILLED + ALONE)

    def alters(self, domain: Domain) -> tuple[Property, ...]:
        names = domain.feature_names or tuple(f"column {i}" for i in range(domain.d))
        return tuple(Property(MISSING, names[i]) for i in self._counted(domain))

    def altered(self, X: Any, domain: Domain) -> Any:
        return missing(X[:, self._counted(domain)])

    def _counted(self, domain: Domain) -> list[int]:
        """Columns whose missing values are counted: those of numbers, of a table that is not wide."""
        if domain.max_missing == 0 or domain.d > MOST_TINY:
            return []
        return [column for column in range(domain.d) if column not in domain.indicators]

    def fit_modes(self, domain: Domain, distance: Distance) -> tuple[FitMode, ...]:
        """Exact (moves the rows with missing values) and, if there is one, noisy (moves nothing but what had moved)."""
        parameters = self._parameters(domain)
        domain.require("row_norm", type(self).__name__)
        limit = domain.missing_rows
        if self.max_missing is not None:
            number("max_missing", self.max_missing, self, least=0)
            limit = min(limit, domain.but(max_missing=self.max_missing).missing_rows)
        if limit == 0:
            return (FitMode.by("imputation.zero", domain, distance),)
        return chosen(self._ways(domain, distance, limit, parameters), self.fit_mode, self)

    def _parameters(self, domain: Domain) -> dict[str, Any]:
        """Its own parameters, checked, in public numbers."""
        raise NotImplementedError

    def _ways(self, domain: Domain, distance: Distance, limit: int, parameters: dict[str, Any]) -> dict[str, FitMode]:
        """The ways where at most ``limit`` rows have missing values, and some may."""
        raise NotImplementedError


class ColumnImputer(Imputer):
    """Fills a column with one value, the first of its statistics, and clips filled rows to a norm."""

    elementwise = True
    leakage = "low", "means of columns, and which are empty"

    def prepare(self, rows: Rows, way: FitMode, domain: Domain) -> Statistics:
        values = np.zeros(rows.X.shape[1]) if way.name == "public" else self._values(rows, way, domain)
        return {self.statistic_names[0]: values, "norm": domain.row_norm}

    def _values(self, rows: Rows, way: FitMode, domain: Domain) -> Array:
        """What missing values are filled with, by column."""
        raise NotImplementedError

    def read(self, values: Any, way: FitMode, domain: Domain) -> Statistics:
        bound = largest_entry(domain)
        return {self.statistic_names[0]: np.clip(values[0], -bound, bound), "norm": domain.row_norm}

    def map_rows(self, X: Array, statistics: Statistics) -> Array:
        filled = X.copy()
        ColumnImputer.map_into(self, filled, statistics, filled)  # a subclass whose map is another may call this one
        return filled

    def map_into(self, X: Array, statistics: Statistics, out: Array) -> None:
        if out is not X:
            out[...] = X
        rows, columns = np.divmod(np.flatnonzero(np.isnan(out)), out.shape[1])
        if not rows.size:
            return
        out[rows, columns] = statistics[self.statistic_names[0]][columns]
        rows = rows[np.diff(rows, prepend=-1) > 0]  # a complete row stays as it is, whatever the others lack
        filled = out[rows]
        clipped = clip_norms(filled, statistics["norm"])
        if clipped is not filled:
            out[rows] = clipped


def least_observed(min_observed: Any, n: int, stage: object) -> int:
    """The parameter ``min_observed``, a count or a share of the rows, as a count."""
    if isinstance(min_observed, float) and min_observed <= 1:
        return max(1, math.ceil(positive("min_observed", min_observed, stage) * n))
    return integer("min_observed", min_observed, stage, most=n)


def missing_margin(limit: int, rows: Rows, unit: float) -> float:
    """Margin of "at most ``limit`` rows have missing values"."""
    room = limit + 1 - incomplete(rows)
    if unit == 0:  # neighbouring datasets have as many, too many or not
        return math.inf if room > 0 else 0.0
    return room / unit


@dataclass(eq=False, repr=False)
class MeanImputer(ColumnImputer):
    """Fill missing values with column means.

    The mean of column j is the sum of its observed entries divided by ``max(n_j, n0)``, n_j the number of
    observed entries. With fewer than n0 of them the mean shrinks towards 0; that is what makes the bound
    unconditional. A column without any observed entry is filled with 0.

    Parameters
    ----------
    min_observed : int or float, default=0.5
        The floor n0: a count, or a fraction of the rows if at most 1 and not an integer. The exact mode never takes it
        below the number of rows that must be complete. Means that are released in parts of ranges, where rows are many
        for the columns, take no floor.
    max_missing : int or float, optional
        At most this many rows have missing values (a count, or a fraction if a float of at most 1); the smaller of this
        and the domain's is used. If it is below the number of rows, the exact mode assumes it as a condition.
    use_floor : bool, default=True
        Whether to divide by ``max(n_j, n0)``. If False the exact mode divides by n_j and assumes
        ``n_j >= n0``.
    columns : sequence of column names or positions, optional
        The columns that may have missing values, if that is known: the fewer, the less the exact mode costs. Missing
        values elsewhere are filled with 0, so nothing rests on it. Default: all but the columns of 0 and 1 that a step
        in front of it made of categories, where no value is missing.
    fit_mode : {"auto", "exact", "noisy"}, default="auto"
        Fit without noise, or from released means. Outside a pipeline, "auto" is exact.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        The fill values: private if fitted alone, released if taken from a fitted pipeline.
    norm_ : float or None
        Filled rows are clipped to this public norm.

    Notes
    -----
    **Guarantee** (``docs/theory/mean-imputation.md``). One replaced row moves every row with missing values by at most
    about ``√6 R/n0``, ``2 R/n0`` with one column.

    Examples
    --------
    >>> import numpy as np
    >>> MeanImputer().fit_transform(np.array([[1.0, 2.0], [np.nan, 4.0], [3.0, 0.0]]))
    array([[1., 2.],
           [2., 4.],
           [3., 0.]])
    """

    min_observed: int | float = 0.5
    max_missing: int | float | None = None
    use_floor: bool = True
    columns: Sequence[str | int] | None = None
    fit_mode: str = "auto"

    adds_up = True
    statistic_names = ("mean", "norm")

    @property
    def relief(self) -> str:  # type: ignore[override]
        """What to use instead where the gate refuses a condition."""
        return "fit_mode='noisy'" if self.use_floor else "use_floor=True"

    def _parameters(self, domain: Domain) -> dict[str, Any]:
        flag("use_floor", self.use_floor, self)
        return {"min_observed": least_observed(self.min_observed, domain.n, self)}

    def _ways(self, domain: Domain, distance: Distance, limit: int, parameters: dict[str, Any]) -> dict[str, FitMode]:
        columns, floor = self._columns(domain), int(parameters["min_observed"])
        which: dict[str, Any] = {} if columns is None else {"columns": columns}
        request = StatisticRequest("means", parameters | which)
        if domain.entry_bound is not None and resolved(entries_of(domain, columns)):
            request = StatisticRequest("squares-in-parts", which)
        noisy = FitMode.by("imputation.public", domain, distance, request=request)
        measures: dict[str, Measure] = {
            "imputation.missing": partial(missing_margin, limit),
            "imputation.observed": partial(_observed_margin, floor, columns),
        }
        # Where nobody is absent every column is observed in all complete rows: a floor up to their number is idle.
        if self.use_floor and nobody_absent(domain, distance):
            floor = max(floor, domain.n - limit)
        request = StatisticRequest("means", {"min_observed": floor, **which})
        which = {"min_observed": floor, "max_missing": limit, "conditional": not self.use_floor, **which}
        exact = FitMode.by("imputation.mean", domain, distance, measures=measures, request=request, **which)
        return {"noisy": noisy, "exact": exact}

    def _columns(self, domain: Domain) -> list[int] | None:
        if self.columns is None:
            kept = set(domain.indicators)
            rest = [column for column in range(domain.d) if column not in kept]
            return rest if 0 < len(rest) < domain.d else None
        return sorted(set(columns_of("columns", self.columns, domain.feature_names, domain.d, self)))

    def _values(self, rows: Rows, way: FitMode, domain: Domain) -> Array:
        return self._means(self._sums(rows, domain), way, domain)

    def _sums(self, rows: Rows, domain: Domain) -> Array:
        return observed_sums(rows, domain)

    def _of_sums(self, sums: Array, way: FitMode, domain: Domain) -> Statistics:
        return {"mean": self._means(sums, way, domain), "norm": domain.row_norm}

    def _means(self, sums: Array, way: FitMode, domain: Domain) -> Array:
        # Under the condition of use_floor=False, that every column is observed often enough, both forms agree.
        least = int(way.parameters["min_observed"]) if self.use_floor else 1
        return means_of(sums, least, self._columns(domain))

    def read(self, values: Moments, way: FitMode, domain: Domain) -> Statistics:
        bound = domain.entry_bound or float(domain.require("row_norm"))
        means, columns = np.clip(np.nan_to_num(values.mean), -bound, bound), self._columns(domain)
        return {"mean": means if columns is None else only(means, columns), "norm": domain.row_norm}

    def carry(self, values: Moments, statistics: Statistics) -> Moments:
        return values


def _observed_margin(n0: int, columns: list[int] | None, rows: Rows, unit: float) -> float:
    """Margin of "every column is observed in at least ``n0`` rows"."""
    counts = observed_counts(rows)
    room = float((counts if columns is None else counts[columns]).min() - n0)
    if unit == 0:  # neighbouring datasets have the same counts, enough or not
        return math.inf if room >= 0 else 0.0
    return room / unit


@dataclass(eq=False, repr=False)
class MedianImputer(ColumnImputer):
    """Fill missing values with column medians.

    The median of N observed values is the ``⌈N/2⌉``-th, the lower one if N is even. A column without any is filled
    with 0. Filled rows are clipped to ``row_norm``.

    Parameters
    ----------
    max_quantile_gap : float, optional
        The condition: in every column the values ranked next to the median are near it, within ``max_quantile_gap`` in
        L2 over the columns, in units of ``row_norm``. Default: ``400/n``, at most 2.
    max_missing : int or float, optional
        At most this many rows have missing values (a count, or a fraction if a float of at most 1); the smaller of this
        and the domain's is used. If it is below the number of rows, it is a condition as well.
    fit_mode : {"auto", "exact", "noisy"}, default="auto"
        Fit without noise, under the condition, or from released medians, which assume nothing. Outside a
        pipeline, "auto" is exact.

    Attributes
    ----------
    median_ : ndarray of shape (n_features,)
        The fill values: private if fitted alone, released if taken from a fitted pipeline.
    norm_ : float or None
        Filled rows are clipped to this public norm.

    Notes
    -----
    **Guarantee** (``docs/theory/order-statistics.md``). One replaced row moves every row with missing values by at most
    ``max_quantile_gap``, from released medians (``docs/theory/released-quantiles.md``) nothing. Columns are sorted, so
    all rows are needed in memory.

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

    max_quantile_gap: float | None = None
    max_missing: int | float | None = None
    fit_mode: str = "auto"

    in_memory = True
    leakage = "high", "medians of columns, which are values of single rows"
    relief = "TrimmedMeanImputer"
    statistic_names = ("median", "norm")

    def _parameters(self, domain: Domain) -> dict[str, Any]:
        return {"gap": public_gap(self.max_quantile_gap, domain, self)}

    def _ways(self, domain: Domain, distance: Distance, limit: int, parameters: dict[str, Any]) -> dict[str, FitMode]:
        refuse_weights(distance, self)
        measures: dict[str, Measure] = {"imputation.missing": partial(missing_margin, limit)}
        measures |= gap_margin(domain, distance, (0.5,), parameters["gap"])
        request, known = StatisticRequest("medians", parameters), {**parameters, "max_missing": limit}
        exact = FitMode.by("imputation.median", domain, distance, measures=measures, request=request, **known)
        chosen: dict[str, Any] = {"quantiles": [0.5]}
        request = StatisticRequest("quantile-choices", chosen)
        noisy = FitMode.by("imputation.released-medians", domain, distance, request=request, **chosen)
        return {"noisy": noisy, "exact": exact}

    def _values(self, rows: Rows, way: FitMode, domain: Domain) -> Array:
        return column_quantiles(rows, (0.5,))[0]


@dataclass(eq=False, repr=False)
class TrimmedMeanImputer(ColumnImputer):
    """Fill missing values with column means that leave out the smallest and largest values.

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
        At most this many rows have missing values (a count, or a fraction if a float of at most 1); the smaller of this
        and the domain's is used. If it is below the number of rows, the exact mode assumes it as a condition.
    fit_mode : {"auto", "exact", "noisy"}, default="auto"
        Fit without noise, or from released trimmed means. Outside a pipeline, "auto" is exact.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        The fill values: private if fitted alone, released if taken from a fitted pipeline.
    norm_ : float or None
        Filled rows are clipped to this public norm.

    Notes
    -----
    **Guarantee** (``docs/theory/trimmed-mean.md``). For all data one replaced row moves every row with missing values
    by at most ``K(A)/(n0 - 2m)``, ``K(A) = √(4R² + 2A²)``. Columns are sorted, so all rows are needed in memory.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0], [2.0], [3.0], [100.0], [np.nan]])
    >>> TrimmedMeanImputer(trim=0.25, min_observed=4).fit_transform(X).ravel()
    array([  1. ,   2. ,   3. , 100. ,   2.5])
    """

    trim: float = 0.1
    min_observed: int | float = 0.5
    max_missing: int | float | None = None
    fit_mode: str = "auto"

    in_memory = True
    statistic_names = ("mean", "norm")

    def _parameters(self, domain: Domain) -> dict[str, Any]:
        least = least_observed(self.min_observed, domain.n, self)
        trimmed = math.floor(number("trim", self.trim, self, least=0, most=0.5) * least)
        if 2 * trimmed >= least:
            what = "trim leaves nothing of a column."
            fix = "a trim below 0.5, such as 0.25."
            raise InvalidParameter(what, stage="TrimmedMeanImputer", fix=fix, parameter="trim")
        return {"min_observed": least, "trimmed": trimmed}

    def _ways(self, domain: Domain, distance: Distance, limit: int, parameters: dict[str, Any]) -> dict[str, FitMode]:
        refuse_weights(distance, self)
        request = StatisticRequest("trimmed-means", parameters)
        measures = {"imputation.missing": partial(missing_margin, limit)}
        counts = {**parameters, "max_missing": limit}
        exact = FitMode.by("imputation.trimmed-mean", domain, distance, measures=measures, request=request, **counts)
        return {"noisy": FitMode.by("imputation.trimmed-public", domain, distance, request=request), "exact": exact}

    def _values(self, rows: Rows, way: FitMode, domain: Domain) -> Array:
        counts = way.parameters["min_observed"], way.parameters["trimmed"]
        return trimmed_means(rows, *counts, largest_entry(domain))
