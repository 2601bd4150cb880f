"""Standard scaling."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from ppdp.bounds.column_groups import entries_of
from ppdp.bounds.deduplication import nobody_absent
from ppdp.bounds.release import BOX_WEIGHT
from ppdp.core.checks import flag, number, positive
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, largest_entry
from ppdp.core.rounding import UNIT
from ppdp.data.rows import Array, Rows
from ppdp.data.statistics import Moments, by_column, clip_norms
from ppdp.data.summary import joint_sums
from ppdp.data.unit_conversion import Columns
from ppdp.exceptions import UnsupportedOrder
from ppdp.transformers.base import Statistics, chosen
from ppdp.transformers.fit_mode import FitMode, StatisticRequest
from ppdp.transformers.scale.base import ColumnScaler, among_all, asked_for, columns_of_way, mapped_columns, measured_on

_USUAL_MU = 0.2 * math.sqrt(0.05)  # of a release in front of a mechanism, at about epsilon = 1
_ERRORS = 6.0
_RESOLVED = 75.0  # rows times that, over the root of the columns, from which on it pays to look where they lie
ROWS = 250  # of each column, from which on clips grow
LONGEST, MANY_ROWS = 64.0, 1000  # in front of least squares: so many times the usual, at most
FINEST = 2.0**-20  # least deviation that is told from released parts of columns, over the norm of a row


@dataclass(eq=False, repr=False)
class StandardScaler(ColumnScaler):
    """Centre columns and divide by their standard deviation, with a public floor.

    ``x -> clip((x - mean) / max(std, s))``, population standard deviation, statistics over the public
    number of rows with deleted rows as zeros.

    Parameters
    ----------
    min_std : float, optional
        The floor s, in units of ``row_norm``, of the columns that are scaled. Default: a quarter of the largest
        possible entry, ``0.25 / √d`` of the row norm; 0.25 with one scale for all columns. From released moments of
        rows that have not moved the floor falls with n, see :func:`usual_floor`, unless ``clip`` is None: rows would
        be as long as the floor is low. If rows are many for the columns, it goes by the part of each in which they lie.
    use_floor : bool, default=True
        Divide by ``max(std, s)``. If False the exact mode divides by the standard deviation and assumes that it is at
        least s in every column.
    clip : float, "auto" or None, default="auto"
        Scaled rows are clipped to this norm; "auto" is ``2√d`` (2 with one scale for all columns), and from released
        moments of rows that have not moved ``(n / (250 d))^¼`` times that, if more, or ``(n / (1000 d))²`` times up to
        64 right in front of least squares, which clips what rows add by itself. None does not clip.
    with_mean : bool, default=True
        Whether to centre columns.
    fit_mode : {"auto", "exact", "noisy"}, default="auto"
        Fit without noise, or from released moments. Outside a pipeline, "auto" is exact.
    per_column : bool, default=True
        Whether every column has its own scale. If False all are divided by the same, the root of the sum of their
        variances, so that scaled rows have mean square norm 1 and columns keep their proportions.
    columns : "all" or list of names or positions, optional
        Columns to scale; the others stay as they are. Default: all but the columns of 0 and 1 that a step in front of
        it made of categories. Outside a pipeline, that is all.

    Attributes
    ----------
    mean_, scale_ : ndarray of shape (n_features,)
        Private if fitted alone, released if taken from a fitted pipeline; 0 and 1 where a column is not scaled.
    columns_ : list of int or None
        Positions of the columns that are scaled; None are all.
    clip_ : float or None
        The public clip.

    Notes
    -----
    **Guarantee** (``docs/theory/standard-scaling.md``). All rows move. ``use_floor=False`` sorts columns for its
    condition, so all rows are needed in memory.

    **With more rows** what is fitted from released moments goes to what scikit-learn's ``StandardScaler`` gives. Fitted
    exactly, floor and clip stay as they are: how far all rows move grows with 1/s².

    Examples
    --------
    >>> import numpy as np
    >>> StandardScaler().fit_transform(np.array([[1.0], [-1.0], [1.0], [-1.0]]))
    array([[ 1.],
           [-1.],
           [ 1.],
           [-1.]])
    """

    min_std: float | None = None
    use_floor: bool = True
    clip: float | str | None = "auto"
    with_mean: bool = True
    fit_mode: str = "auto"
    per_column: bool = True
    columns: Any = None

    adds_up = True
    leakage = "low", "means and variances of columns"
    relief = "use_floor=True"
    statistic_names = ("mean", "scale", "clip", "columns")

    @property
    def in_memory(self) -> bool:  # type: ignore[override]
        """True where its condition sorts columns."""
        return not self.use_floor

    def fit_modes(self, domain: Domain, distance: Distance) -> tuple[FitMode, ...]:
        """Exact (moves all rows) and noisy (moves nothing)."""
        self._norm_of_complete_rows(domain)
        per_column, floor = flag("per_column", self.per_column, self), flag("use_floor", self.use_floor, self)
        with_mean = flag("with_mean", self.with_mean, self)
        columns = self._scaled_columns(domain)
        if columns == []:
            return (FitMode.by("scaling.none", domain, distance),)
        part = entries_of(domain, columns)
        norm = float(part.require("row_norm"))
        root = math.sqrt(part.d) if per_column else 1.0  # root mean square norm of a scaled row
        given = None if self.min_std is None else number("min_std", self.min_std, self, least=1e-6, most=1)
        s, released = (0.25 / root, usual_floor(part, per_column)) if given is None else (given, given)
        usual = isinstance(self.clip, str) and self.clip == "auto"
        clip: Any = 2 * root if usual else self.clip
        if clip is not None:
            clip = positive("clip", clip, self)
        s, released = s * norm, (s if distance.moved or clip is None else released) * norm
        grown = clip * usual_growth(domain.n, part.d) if usual and not distance.moved else clip
        whole = floor or not distance.reweighted
        if not whole and self.fit_mode == "exact":
            what = "rows may have weights between 0 and 1 here, and the margin of use_floor=False counts whole rows."
            raise UnsupportedOrder(what, stage="StandardScaler", fix="use use_floor=True, or fit_mode='noisy'.")
        chosen_columns, centred = asked_for(columns), with_mean and columns is None and nobody_absent(domain, distance)
        asked: dict[str, Any] = {
            "request": StatisticRequest("squares", chosen_columns),
            "with_mean": with_mean,
            **chosen_columns,
        }
        noisy = FitMode.by("scaling.public", domain, distance, clip=grown, min_std=released, **asked)
        if usual and given is None and per_column and not distance.moved and resolved(part):
            parts = asked | {"min_std": FINEST * norm, "request": StatisticRequest("squares-in-parts", chosen_columns)}
            noisy = replace(FitMode.by("scaling.public", domain, distance, clip=grown, **parts), shared=noisy)
            longer = clip * min(LONGEST, (domain.n / (MANY_ROWS * part.d)) ** 2)
            if longer > grown and 2 * len(domain.indicators) < domain.d:  # else least squares may be by second moments
                noisy = replace(noisy, longer=FitMode.by("scaling.public", domain, distance, clip=longer, **parts))
        offered = {"noisy": noisy}
        if whole:
            offered["exact"] = FitMode.by(
                "scaling.centred" if centred and clip is None else "scaling.standard",
                domain,
                distance,
                measures=measured_on({"scaling.std": StdMargin(s, norm, distance, per_column)}, columns),
                min_std=s,
                clip=clip,
                conditional=not floor,
                **asked,
                per_column=per_column,
            )
        if columns is None:
            facts: dict[str, Any] = {"centred": centred, "usual_norm": clip}
            offered = {name: way.behind(lambda after: after.as_scaled(**facts)) for name, way in offered.items()}
        return chosen(offered, self.fit_mode, self)

    def instead(self) -> Iterator[tuple[str, Any]]:
        if not self.use_floor:
            yield "use_floor=True", clone(self).set_params(use_floor=True, fit_mode="auto")
        else:
            yield from super().instead()

    def prepare(self, rows: Rows, way: FitMode, domain: Domain) -> Statistics:
        if way.name == "public":
            return {"mean": np.zeros(domain.d), "scale": np.ones(domain.d), "clip": None, "columns": []}
        return self._of_sums(self._sums(rows, domain), way, domain)

    def _sums(self, rows: Rows, domain: Domain) -> Array:
        entry = largest_entry(domain)
        return joint_sums(rows, [(None, entry), (np.square, entry**2)])

    def _of_sums(self, sums: Array, way: FitMode, domain: Domain) -> Statistics:
        columns = columns_of_way(way)
        mean, squares = sums / domain.n if columns is None else sums[:, columns] / domain.n
        variance = self._pooled(np.maximum(squares - mean**2, 0.0))
        if self.use_floor:
            scale = np.sqrt(np.maximum(variance, way.parameters["min_std"] ** 2))
        else:
            scale = np.where(variance > 0, np.sqrt(variance), 1.0)
        return self._statistics(mean, scale, way, domain.d)

    def _statistics(self, mean: Array, scale: Array, way: FitMode, d: int) -> Statistics:
        """What rows are mapped by; these are means and scales of the columns that are scaled."""
        columns = columns_of_way(way)
        mean = among_all(mean * bool(self.with_mean), d, columns, 0.0)
        fitted = {"mean": mean, "scale": among_all(scale, d, columns, 1.0), "columns": columns}
        return {**fitted, "clip": way.parameters["clip"]}

    def _pooled(self, variance: Array) -> Array:
        """What every column is divided by the root of."""
        return variance if self.per_column else np.full_like(variance, variance.sum())

    def read(self, values: Moments, way: FitMode, domain: Domain) -> Statistics:
        columns = columns_of_way(way)

        def among(of: Array) -> Array:
            return of if columns is None else of[columns]

        mean, squares = among(values.mean), among(values.squares)
        norm = float(entries_of(domain, columns).require("row_norm"))
        mean = mean * min(1.0, norm / max(float(np.linalg.norm(mean)), norm))
        variance = squares - mean**2 if values.spread is None else among(values.spread) ** 2
        variance = np.maximum(self._pooled(variance), way.parameters["min_std"] ** 2)
        return self._statistics(mean, np.sqrt(variance), way, domain.d)

    def carry(self, values: Moments, statistics: Statistics) -> Moments:
        scale = 1 / statistics["scale"]
        return values.affine(scale, -statistics["mean"] * scale)

    def units(self, columns: Columns) -> Columns:
        scaled = columns.scaled(self.scale_, self.mean_)
        what = "scaled rows" if self.columns_ is None else "what is scaled of a row"
        return scaled if self.clip_ is None else scaled.noted(f"{what} clipped to norm {self.clip_:.6g}")

    def map_rows(self, X: Array, statistics: Statistics) -> Array:
        columns, mean, scale = statistics["columns"], statistics["mean"], statistics["scale"]
        if columns is None:
            out = np.empty(X.shape)
            StandardScaler.map_into(self, X, statistics, out)  # a subclass whose map is another may call this one
            return out

        def scaled_part(part: Array) -> Array:
            scaled = (part - mean[columns]) / scale[columns]
            return clip_norms(scaled, statistics["clip"], out=scaled)

        return mapped_columns(X, columns, scaled_part)

    def map_into(self, X: Array, statistics: Statistics, out: Array) -> None:
        if statistics["columns"] is not None:
            super().map_into(X, statistics, out)
            return
        by_column(np.subtract, X, statistics["mean"], out)
        by_column(np.divide, out, statistics["scale"], out)
        clip_norms(out, statistics["clip"], out=out)


def usual_floor(domain: Domain, per_column: bool = True) -> float:
    """The usual floor of released standard deviations, in units of ``row_norm``.

    A quarter of the largest possible entry or, where that is less, the root of six standard errors of a released
    variance: of n rows with a twentieth of ``mu² = 0.2²``, that is at about epsilon = 1. It falls as ``n^-½``, as what
    the noise hides does.
    """
    d, norm = domain.d, float(domain.require("row_norm"))
    error = 2 * min(largest_entry(domain) ** 2 * math.sqrt(d) / BOX_WEIGHT, math.sqrt(2) * norm**2)
    error /= domain.n * _USUAL_MU * norm**2
    if not per_column:
        error *= math.sqrt(d)  # of a sum of so many variances
    return min(0.25 / math.sqrt(d) if per_column else 0.25, math.sqrt(_ERRORS * error))


def resolved(domain: Domain) -> bool:
    """Whether rows are enough to tell in which parts of their columns they lie."""
    return domain.n * _USUAL_MU >= _RESOLVED * math.sqrt(domain.d)


def usual_growth(n: int, d: int) -> float:
    """How many times ``2√d`` the usual clip of n scaled rows of d columns is, from 250 rows for each column on.

    It cuts off ever less of rows with long tails, and what noise it asks for still falls as ``n^-¾``.
    """
    return max(1.0, (n / (ROWS * d)) ** 0.25)


@dataclass(frozen=True, slots=True)
class StdMargin:
    """Margin of "every column has standard deviation at least ``s``", or of the root of the sum of their variances.

    The number of steps along neighbouring pairs after which the best window of a sorted column can
    have less variance: the exact Hamming distance on raw data, a lower bound with the shift property
    for a general distance and for the sum (``docs/theory/standard-scaling.md``).
    """

    s: float
    norm: float
    distance: Distance
    per_column: bool = True

    def __call__(self, rows: Rows, unit: float) -> float:
        n = rows.n
        rms = min(self.distance.radius, math.sqrt(self.distance.radius * self.distance.total / n))
        columns = np.sort(rows.X * (rows.weight > 0)[:, None], axis=0)
        zero = np.zeros((1, columns.shape[1]))
        first = np.concatenate([zero, np.cumsum(columns, axis=0)])
        second = np.concatenate([zero, np.cumsum(columns**2, axis=0)])
        summed = 1 if self.per_column else columns.shape[1]
        rounding = 4 * UNIT * n * n * self.norm**2 * summed / (math.sqrt(n) * self.s)  # of the root, at the threshold

        def fails(steps: int) -> bool:
            width = n - int(steps * unit)
            if width <= 1:
                return True
            sums = first[width:] - first[:-width]
            scatters = (second[width:] - second[:-width] - sums**2 / width).min(axis=0)
            scatter = scatters.min() if self.per_column else np.maximum(scatters, 0.0).sum()
            # twice the rounding for every step, so that one step of the data still moves the margin by at most 1
            room = math.sqrt(max(scatter, 0.0)) - steps * math.sqrt(n) * rms - (2 * steps + 1) * rounding
            return bool(room < math.sqrt(n) * self.s)

        if unit == 0 and rms == 0:  # neighbouring datasets are equal, and the condition fails on both or on none
            return 0.0 if fails(0) else math.inf
        low, high = 0, n + 1  # fails(high) is true: one neighbouring pair replaces or moves something
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if fails(middle) else (middle + 1, high)
        return float(low)
