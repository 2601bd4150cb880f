"""What a ``ColumnTransformer`` is in a plan: a public split into groups of columns, and stages for one of them each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, groupby, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ppdp.bounds.column_groups import distance_of, domain_of, longest_of, span_of
from ppdp.core.checks import columns_of
from ppdp.core.declared import Value
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import AT
from ppdp.core.rounding import inflate
from ppdp.data.altered import Property
from ppdp.data.noisy_statistics import rows_of_group
from ppdp.data.rows import Array, Rows
from ppdp.data.statistics import Moments, clip_norms
from ppdp.data.unit_conversion import Columns
from ppdp.exceptions import InvalidParameter, UnknownStage, UnsupportedOrder
from ppdp.transformers.base import RowWiseTransformer, Statistics, Transformer, hold
from ppdp.transformers.fit_mode import FitMode, Measure

NOTHING = "column-groups.none"
Layout = Sequence[tuple[str, Sequence[str | int] | None]]


@dataclass(eq=False, repr=False)
class ColumnSplit(RowWiseTransformer):
    """Columns in the order of their groups, so that stages behind it may take one group each.

    :class:`~ppdp.ColumnTransformer` makes it, of names of groups with names or positions of columns; None are those of
    no other group, or those that a public map in front of it has made for the group. ``dropped`` ones are left out,
    though there is a group of those of no other.

    **Guarantee** (``docs/theory/column-groups.md``): row-wise, moves nothing.
    """

    groups: Layout = (("columns", None),)
    dropped: Sequence[str | int] = ()

    statistic_names = ("order", "widths", "norms", "filled")

    def fit_modes(self, domain: Domain, distance: Distance) -> tuple[FitMode, ...]:
        made = {name: list(parts) for name, parts in groupby(domain.layout, key=lambda part: part.name)}
        names = [name for name, _ in self.groups if not domain.layout or name in made]
        if domain.layout:
            widths = [sum(part.width for part in made[name]) for name in names]
            order = list(range(domain.d))
            norms = [
                _together(domain, [part.row_norm for part in made[name]], width) for name, width in zip(names, widths)
            ]
            filled = [name for name in names if all(part.complete for part in made[name])]
        else:
            own = self._positions(domain)
            names = [name for name in names if own[name]]
            order = [column for name in names for column in own[name]]
            widths, norms = [len(own[name]) for name in names], [0.0] * len(names)
            filled = [name for name in names if set(own[name]) <= set(domain.indicators)]
        if not names:
            raise InvalidParameter("no column is left.", stage="ColumnTransformer", fix="give some columns that exist.")
        way = FitMode.by(
            "column-groups.split",
            domain,
            distance,
            columns=order,
            groups=names,
            widths=widths,
            norms=norms,
            filled=filled,
        )
        hot = [at for at, column in enumerate(order) if column in set(domain.indicators)]
        return (replace(way, domain=way.domain.with_indicators(tuple(hot))),)

    def _positions(self, domain: Domain) -> dict[str, list[int]]:
        """Where the columns of every group are; refuses a column of two groups."""
        where = domain.feature_names, domain.d, "ColumnTransformer"
        found: dict[str, list[int]] = {}
        rest = [name for name, columns in self.groups if columns is None]
        for name, columns in self.groups:
            if columns is not None:
                found[name] = columns_of("columns", list(columns), *where) if columns else []
        listed = [column for own in found.values() for column in own]
        listed += columns_of("columns", list(self.dropped), *where) if self.dropped else []
        twice = next((column for column in listed if listed.count(column) > 1), None)
        if twice is not None:
            label = twice if domain.feature_names is None else domain.feature_names[twice]
            fix = "name it once, or begin its transformers with a public stage, which copies it."
            raise InvalidParameter(f"the column {label!r} is named twice.", stage="ColumnTransformer", fix=fix)
        taken = set(listed)
        for name in rest:
            found[name] = [column for column in range(domain.d) if column not in taken]
        return found

    def named_columns(self) -> tuple[str, ...] | None:
        """Names of the columns, for a plan without data; None if not all are named."""
        listed = [*(columns for _, columns in self.groups), self.dropped]
        if None in listed or any(not isinstance(one, str) for columns in listed for one in columns or ()):
            return None
        return tuple(str(one) for columns in listed for one in columns or ())

    def declared(self, domain: Domain) -> tuple[Value, ...]:
        """Nothing: which columns stand in which group is no claim about rows."""
        return ()

    def prepare(self, rows: Rows, way: FitMode, domain: Domain) -> Statistics:
        asked = way.parameters
        filled = [name in asked["filled"] for name in asked["groups"]]
        return {name: list(asked[key]) for name, key in _RECORDED.items()} | {"filled": filled}

    def map_rows(self, X: Array, statistics: Statistics) -> Array:
        out = X[:, statistics["order"]]
        ends = [0, *accumulate(statistics["widths"])]
        for (start, stop), norm, fill in zip(pairwise(ends), statistics["norms"], statistics["filled"]):
            own = out[:, start:stop]
            if fill and np.isnan(own).any():
                out[:, start:stop] = own = np.where(np.isnan(own), 0.0, own)
            if norm:
                out[:, start:stop] = clip_norms(np.ascontiguousarray(own), norm)
        return out

    def units(self, columns: Columns) -> Columns:
        return columns.at(self.order_)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the output columns."""
        return np.asarray(super().get_feature_names_out(input_features)[self.order_], dtype=object)


_RECORDED = {"order": "columns", "widths": "widths", "norms": "norms"}


def _together(domain: Domain, norms: Sequence[float | None], width: int) -> float:
    """The norm of rows whose parts have these, if it is shorter than what is known of so many columns; else 0."""
    known, longest = [norm for norm in norms if norm is not None], longest_of(domain, width)
    norm = inflate(math.hypot(*known)) if len(known) == len(norms) else 0.0
    return norm if longest is None or norm < longest * (1 - 1e-6) else 0.0


def _of_stage(name: str, **default: Any) -> Any:
    """What the stage says of itself."""
    return property(lambda self: getattr(self.stage, name, *default.values()), doc="That of the stage.")


@dataclass(eq=False, repr=False)
class ColumnSubset(Transformer):
    """A stage for one group of columns, that of a :class:`ColumnSplit` in front of it; the others stay as they are.

    :class:`~ppdp.ColumnTransformer` makes it of any stage that maps every row by itself, once its statistics are known.

    **Guarantee** (``docs/theory/column-groups.md``): that of the stage for the columns of the group, beside what had
    moved in the others.
    """

    stage: Any
    group: str

    allows_gaps = True
    keeps_columns = False  # it says itself what becomes of indicators
    statistic_names = ("start", "behind", "names", "inner")
    fills_gaps = _of_stage("fills_gaps")
    in_memory = _of_stage("in_memory")
    relief = _of_stage("relief")
    needs_y = _of_stage("needs_y")
    multiplies_columns = _of_stage("multiplies_columns")
    passes = _of_stage("passes")
    leakage = _of_stage("leakage")
    chooses = _of_stage("chooses")
    reads_cells = _of_stage("reads_cells", default=False)

    def fit_modes(self, domain: Domain, distance: Distance) -> tuple[FitMode, ...]:
        if not isinstance(self.stage, Transformer):
            what = f"{type(self.stage).__name__} acts on whole rows, and stands in a group of columns."
            fix = "put it in front of the ColumnTransformer, or behind it."
            raise UnknownStage(what, stage=type(self.stage).__name__, fix=fix)
        if not domain.groups:
            raise UnknownStage(f"no group of columns is called {self.group!r} here.", fix="a ColumnTransformer.")
        if all(one.name != self.group for one in domain.groups):  # it has no columns, so that nothing is to be done
            return (FitMode.by(NOTHING, domain, distance),)
        here = domain_of(domain, self.group)
        if here.missing_rows and not self.stage.allows_gaps:
            what = "rows may have missing values in its columns."
            fix = "an imputer in front of it there: MeanImputer(max_missing=0) where no value is missing."
            raise UnsupportedOrder(what, stage=type(self.stage).__name__, fix=fix)
        ways = self.stage.fit_modes(here, distance_of(domain, distance, self.group))
        return tuple(self._outer(way, domain, distance) for way in ways)

    def _outer(self, way: FitMode, domain: Domain, distance: Distance) -> FitMode:
        """A way of the stage, as one of all columns."""
        if not way.record.row_by_row:
            what = f"{way.formula} is not proved for a group of columns."
            own = "" if way.record.shipped else " (row_by_row=True in its @formula, if each row is mapped by itself)"
            fix = f"put it in front of the ColumnTransformer, or behind it{own}."
            raise UnknownStage(what, stage=type(self.stage).__name__, fix=fix)
        _, start, stop = span_of(domain, self.group)
        measures: dict[str, Measure] = {
            f"{one.formula}{AT}{self.group}": partial(_of_columns, one.measure, domain, self.group)
            for one in way.conditions
        }
        request = way.request
        if request is not None:
            request = replace(request, statistic=f"{request.statistic}{AT}{self.group}")
        found = FitMode.by(
            f"{way.formula}{AT}{self.group}", domain, distance, measures=measures, request=request, **way.parameters
        )
        made, shift = way.domain, way.domain.d - (stop - start)
        kept = way.domain.indicators
        if not kept and self.stage.keeps_columns:
            kept = domain_of(domain, self.group).indicators
        hot = [column for column in domain.indicators if column < start]
        hot += [start + column for column in kept]
        hot += [column + shift for column in domain.indicators if column >= stop]
        out = found.domain.with_indicators(tuple(hot)).with_scaled_group(domain, self.group, made)
        if made.usual_norm is not None and made.row_norm is not None and out.row_norm is not None:
            beside = math.sqrt(max(0.0, out.row_norm**2 - made.row_norm**2))
            out = out.as_scaled(centred=False, usual_norm=math.hypot(made.usual_norm, beside))
        return replace(found, domain=out, longer=way.longer and self._outer(way.longer, domain, distance))

    def _inner(self, way: FitMode) -> FitMode:
        """The way of the stage that a way of all columns stands for."""
        request = way.request
        if request is not None:
            request = replace(request, statistic=request.statistic.partition(AT)[0])
        made = domain_of(way.domain, self.group)
        return FitMode(way.formula.partition(AT)[0], way.parameters, made, way.distance, (), request)

    def _fitted(self, statistics: Statistics, way: FitMode, here: Domain) -> Statistics:
        """Statistics of the stage, where its columns begin, how many stand behind them, and names of new ones."""
        _, start, stop = span_of(way.domain, self.group)
        names = way.domain.feature_names
        names = None if names is None or stop - start == here.d else names[start:stop]
        return {"start": start, "behind": way.domain.d - stop, "names": names, "inner": statistics, "here": here}

    def prepare(self, rows: Rows, way: FitMode, domain: Domain) -> Statistics:
        if way.formula == NOTHING:
            return {"start": 0, "behind": None, "names": None, "inner": None, "here": None}
        here = domain_of(domain, self.group)
        own = Rows.of(np.empty((0, here.d))) if way.name == "public" else rows_of_group(rows, domain, self.group)
        return self._fitted(self.stage.prepare(own, self._inner(way), here), way, here)

    def read(self, values: Any, way: FitMode, domain: Domain) -> Statistics:
        here = domain_of(domain, self.group)
        return self._fitted(self.stage.read(values, self._inner(way), here), way, here)

    def carry(self, values: Moments, statistics: Statistics) -> Moments:
        moments: Moments = self.stage.carry(values, statistics["inner"])
        return moments

    def apply(self, rows: Rows, statistics: Statistics) -> Rows:
        if statistics["behind"] is None:
            return rows
        start, stop = statistics["start"], rows.d - statistics["behind"]
        # A copy, also of a group of all columns: the stage may write over its rows, and not over those in front of it.
        own = replace(rows.with_X(rows.X[:, start:stop].copy()), ours=True)
        made = self.stage.apply(own, statistics["inner"]).X
        if rows.ours and made.shape == own.X.shape:  # nobody else holds the rows
            rows.X[:, start:stop] = made
            return rows.with_X(rows.X)
        return rows.with_X(np.concatenate([rows.X[:, :start], made, rows.X[:, stop:]], axis=1))

    def map_rows(self, X: Array, statistics: Statistics) -> Array:
        if statistics["behind"] is None:
            return X
        start, stop = statistics["start"], X.shape[1] - statistics["behind"]
        own = np.ascontiguousarray(X[:, start:stop])
        made = self.stage.map_rows(own, statistics["inner"])
        return np.concatenate([X[:, :start], made, X[:, stop:]], axis=1)

    def hold(self, statistics: Statistics) -> None:
        given = dict(statistics)
        here = given.pop("here")
        super().hold(given)
        if here is not None:
            self.bounds_ = here.row_norm, here.entry_bound
            self.stage = hold(clone(self.stage), given["inner"], here)

    def without_release(self, way: FitMode) -> Statistics:
        found = self.stage.without_release(self._inner(way))
        return self._fitted(found, way, domain_of(way.domain, self.group)) if found else {}

    def declarations(self) -> tuple[str, ...]:
        return tuple(self.stage.declarations())

    def declared(self, domain: Domain) -> tuple[Value, ...]:
        if all(one.name != self.group for one in domain.groups):
            return ()
        return tuple(self.stage.declared(domain_of(domain, self.group)))

    def alters(self, domain: Domain) -> tuple[Property, ...]:
        """What the stage may do to columns that have names."""
        named = domain.feature_names is not None and any(one.name == self.group for one in domain.groups)
        return self.stage.alters(domain_of(domain, self.group)) if named else ()

    def altered(self, X: Any, domain: Domain) -> Any:
        _, start, stop = span_of(domain, self.group)
        return self.stage.altered(X[:, start:stop], domain_of(domain, self.group))

    def instead(self) -> Iterator[tuple[str, Any]]:
        for words, stage in self.stage.instead():
            yield words, ColumnSubset(stage, self.group)

    def units(self, columns: Columns) -> Columns | None:
        if self.behind_ is None:
            return columns
        made = self.stage.units(columns.at(self._own(len(columns.names))))
        return self._beside(columns, made)

    def public_units(self, columns: Columns, way: FitMode, domain: Domain) -> Columns | None:
        if way.formula == NOTHING:
            return columns
        _, start, stop = span_of(domain, self.group)
        here = domain_of(domain, self.group)
        made = self.stage.public_units(columns.at(range(start, stop)), self._inner(way), here)
        if made is None:
            made = Columns.lost([""] * domain_of(way.domain, self.group).d, "no public scale and shift leads back")
        return Columns.beside([columns.at(range(start)), made, columns.at(range(stop, domain.d))])

    def _own(self, width: int) -> range:
        """Positions of the columns of the group, among so many."""
        return range(self.start_, 0 if self.behind_ is None else width - self.behind_)

    def _beside(self, columns: Columns, made: Columns | None) -> Columns | None:
        if made is None:
            return None
        own, width = self._own(len(columns.names)), len(columns.names)
        return Columns.beside([columns.at(range(own.start)), made, columns.at(range(own.stop, width))])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the output columns."""
        names = super().get_feature_names_out(input_features)
        own = self._own(len(names))
        made = names[own.start : own.stop]
        width = len(made) if self.names_ is None else len(self.names_)
        if width != len(made):
            made = np.asarray(self.names_, dtype=object)
        return np.concatenate([names[: own.start], made, names[own.stop :]])


def bounded_by(step: Any, formula: str) -> Any:
    """The stage whose bound a formula is: that inside a step of one group of columns, or the step itself."""
    return getattr(step, "stage", step) if AT in formula else step


def class_of(step: Any, formula: str) -> str:
    """The class that a certificate names beside a formula."""
    return type(bounded_by(step, formula)).__name__


def _of_columns(measure: Measure, domain: Domain, group: str, rows: Any, unit: float) -> float:
    return measure(rows_of_group(rows, domain, group), unit)
