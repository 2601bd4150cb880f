"""Public facts about the rows at one point of a pipeline."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

from ppdp.core.adjacency import Adjacency
from ppdp.core.checks import classes_of, integer, labels, length, number, pair
from ppdp.core.distance import Distance
from ppdp.core.rounding import MOST_ROWS, apply_error
from ppdp.exceptions import InvalidParameter, MissingBound


@dataclass(frozen=True, slots=True)
class ColumnBounds:
    """What is publicly known of one group of neighbouring columns, under a name by which stages take it."""

    name: str
    width: int  # number of columns
    row_norm: float | None = None
    entry_bound: float | None = None
    complete: bool = False  # whether no row has a gap there


@dataclass(frozen=True, slots=True)
class Domain:
    """What is publicly known of every dataset that could stand at this point.

    Nothing here is ever read off the private rows, and nothing depends on a released value: the
    whole plan exists before the data. A field that is ``None`` is not declared (yet).

    Parameters
    ----------
    n_rows : int, optional
        Number of rows, at most 2^40; public and fixed where neighbouring datasets differ by *replaced* rows. Under
        ``Adjacency.add_remove`` and ``Adjacency.user_level`` it is a cap, under the latter on the rows that are kept:
        there may be fewer, and how many is private.
    n_features : int, optional
        Number of columns; a plan counts ``feature_names`` where it is not declared.
    feature_names : tuple of str, optional
        Column names.
    row_norm : float, optional
        Every row has Euclidean norm at most this (over its observed entries).
    entry_bound : float, optional
        Every entry has absolute value at most this.
    max_missing : int or float, optional
        At most this many rows have gaps: a count, or a fraction of ``n_rows`` if it is a float
        of at most 1. ``None``: any row may have gaps.
    min_present : int, default=0
        Public floor on the number of rows with weight; refused where ``n_rows`` is a cap, which knows none.
    classes : tuple, optional
        Every label is one of these.
    y_range : tuple of two floats, optional
        Every regression target lies in this interval.
    rows_per_unit : int, optional
        Rows that one person may own; neighbours start with that many replaced. Left out it is 1, and a certificate says
        that this was assumed and declared by nobody: ``unit_declared`` is False.
    adjacency : Adjacency, optional
        Which datasets are neighbours, where they do not differ by replaced rows: :meth:`Adjacency.add_remove`,
        :meth:`Adjacency.user_level`, :meth:`Adjacency.change`.
    max_weight : float, optional
        The largest ``sample_weight`` of a row; larger ones are clipped.

    Examples
    --------
    >>> Domain(n_rows=100, n_features=3, row_norm=1.0).describe()
    '100 rows x 3 columns, row norm <= 1'
    """

    n_rows: int | None = None
    n_features: int | None = None
    feature_names: tuple[str, ...] | None = None
    row_norm: float | None = None
    entry_bound: float | None = None
    max_missing: int | float | None = None
    min_present: int = 0
    classes: tuple[Any, ...] | None = None
    y_range: tuple[float, float] | None = None
    rows_per_unit: int = None  # type: ignore[assignment]  # an int from __post_init__ on
    adjacency: Adjacency = None  # type: ignore[assignment]  # an Adjacency from __post_init__ on
    max_weight: float | None = None
    unit_declared: bool = field(init=False, repr=False, compare=False)
    # Positions of columns that stand for categories or words. No bound rests on it: it decides what is scaled unless
    # somebody says otherwise. Whatever changes a domain forgets it.
    indicators: tuple[int, ...] = field(init=False, repr=False, compare=False)
    # Whether every column has mean 0, up to noise and clips. No bound rests on it; it is forgotten likewise.
    centred: bool = field(init=False, repr=False, compare=False)
    # Norm that few rows exceed, where the clip is further out. No bound rests on it; it is forgotten likewise.
    usual_norm: float | None = field(init=False, repr=False, compare=False)
    # Both of groups of columns, by their names. No bound rests on it; it is forgotten likewise.
    scaled_groups: tuple[tuple[str, bool, float | None], ...] = field(init=False, repr=False, compare=False)
    # Groups of columns, which are all columns in their order; empty where rows are taken as a whole. Bounds rest on it,
    # so that only stages for one group pass it on.
    groups: tuple[ColumnBounds, ...] = field(init=False, repr=False)
    # What a public map of columns has made for each group. No bound rests on it; it is forgotten likewise.
    layout: tuple[ColumnBounds, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        given = self.rows_per_unit is not None, self.adjacency is not None
        object.__setattr__(self, "unit_declared", any(given))
        object.__setattr__(self, "groups", ())
        for name, nothing in _HINTS.items():
            object.__setattr__(self, name, nothing)
        self._settle("n_rows", partial(integer, most=MOST_ROWS))
        for name in ("n_features", "rows_per_unit"):
            self._settle(name, integer)
        if given[1] and not isinstance(self.adjacency, Adjacency):
            what = "Domain.adjacency must be an Adjacency."
            raise InvalidParameter(what, fix="Adjacency.change(coordinate=...).", parameter="adjacency")
        if all(given) and self.adjacency.rows != self.rows_per_unit:
            what = "rows_per_unit and adjacency say different things."
            raise InvalidParameter(what, fix="leave out rows_per_unit.", parameter="rows_per_unit")
        if not given[1]:
            object.__setattr__(self, "adjacency", Adjacency.replace(self.rows_per_unit or 1))
        object.__setattr__(self, "rows_per_unit", self.adjacency.rows)
        for name in ("row_norm", "entry_bound", "max_weight"):
            self._settle(name, length)
        if self.max_missing is not None:
            number("Domain.max_missing", self.max_missing, least=0)
        if integer("Domain.min_present", self.min_present, least=0) and self.adjacency.unbounded:
            what = "Domain.min_present tells of the number of rows, which is private."
            raise InvalidParameter(what, fix="leave min_present out.", parameter="min_present")
        self._settle("y_range", pair)
        self._settle("classes", classes_of)
        self._settle("feature_names", labels)
        if self.feature_names is not None and self.n_features not in (None, len(self.feature_names)):
            what = f"Domain.feature_names has {len(self.feature_names)} names for {self.n_features} columns."
            raise InvalidParameter(what, parameter="feature_names")

    def _settle(self, name: str, check: Callable[[str, Any], Any]) -> None:
        value = getattr(self, name)
        if value is not None:
            object.__setattr__(self, name, check(f"Domain.{name}", value))

    @property
    def neighbours(self) -> Distance:
        """How far apart neighbouring datasets are at the entrance, behind its clip to a declared ``row_norm``."""
        distance = self.adjacency.entrance_distance(self.n_features, self.feature_names)
        if self.row_norm is None or not distance.moved:
            return distance
        return distance.stretched(1.0, 2 * self.row_norm).jittered(apply_error(self.d, self.row_norm))

    @property
    def n(self) -> int:
        """Number of rows; raises :class:`MissingBound` if it is not declared."""
        return int(self.require("n_rows"))

    @property
    def d(self) -> int:
        """Number of columns; raises :class:`MissingBound` if it is not declared."""
        return int(self.require("n_features"))

    @property
    def missing_rows(self) -> int:
        """Most rows that may have gaps, as a count."""
        if self.max_missing is None:
            return self.n
        if isinstance(self.max_missing, float) and 0 < self.max_missing <= 1:
            return min(self.n, math.ceil(self.max_missing * self.n))
        return min(self.n, int(self.max_missing))

    def require(self, name: str, stage: str | None = None) -> Any:
        """Return a declared fact or say how to declare it."""
        value = getattr(self, name)
        if value is None:
            what = f"the public fact {name!r} is not declared."
            raise MissingBound(what, stage=stage, fix=_FIX.get(name, f"pass Domain({name}=...)."))
        return value

    def but(self, **changes: Any) -> Domain:
        """Return this domain with some facts changed; ``unit_declared`` among them says who declared the unit."""
        units = changes.keys() & {"rows_per_unit", "adjacency"}
        declared = changes.pop("unit_declared", self.unit_declared or bool(units))
        if units == {"rows_per_unit"}:
            changes["adjacency"] = None
        elif units == {"adjacency"}:
            changes["rows_per_unit"] = None
        if self.feature_names is not None and changes.get("n_features") not in (None, len(self.feature_names)):
            changes.setdefault("feature_names", None)  # other columns have other names
        found = replace(self, **changes)
        object.__setattr__(found, "unit_declared", declared)
        return found

    def with_indicators(self, indicators: tuple[int, ...]) -> Domain:
        """Return this domain with the positions of the columns that stand for categories or words."""
        return self._hinted(indicators=indicators)

    def _hinted(self, **hints: Any) -> Domain:
        """Return this domain with some facts that no bound rests on; the others stay."""
        found = self.in_groups(self.groups)
        for name in _HINTS:
            object.__setattr__(found, name, hints.get(name, getattr(self, name)))
        return found

    def in_groups(self, groups: Sequence[ColumnBounds]) -> Domain:
        """Return this domain with what is known of every group of its columns."""
        found = self.but()
        object.__setattr__(found, "groups", tuple(groups))
        return found

    def laid_out(self, layout: Sequence[ColumnBounds]) -> Domain:
        """Return this domain with what a public map has made for each group of columns."""
        return self._hinted(layout=tuple(layout))

    def as_scaled(self, *, centred: bool, usual_norm: float | None) -> Domain:
        """Return this domain with whether every column has mean 0, and with the norm that few rows exceed."""
        return self._hinted(centred=centred, usual_norm=usual_norm)

    def with_scaled_group(self, before: Domain, group: str, made: Domain) -> Domain:
        """Return this domain with the same of every group, one of which a stage has made, the others before it."""
        others = [one for one in before.scaled_groups if one[0] != group]
        own = [(group, made.centred, made.usual_norm)] * (made.centred or made.usual_norm is not None)
        return self._hinted(scaled_groups=(*others, *own))

    def describe(self) -> str:
        """One line for tables."""
        most = "at most " if self.adjacency.unbounded else ""
        parts = [f"{most}{self.n_rows} rows x {self.n_features} columns"]
        if self.row_norm is not None:
            parts.append(f"row norm <= {self.row_norm:.4g}")
        if self.max_missing:
            parts.append(f"gaps in at most {self.missing_rows} rows")
        if self.classes is not None:
            parts.append(f"{len(self.classes)} classes")
        if self.adjacency != Adjacency.replace():
            parts.append(f"protects {self.adjacency.unit}")
        return ", ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """JSON form: only what is declared."""
        empty = Domain()
        found = {name: getattr(self, name) for name in _DECLARABLE if name != "adjacency"}
        plain = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in found.items()
            if value is not None and (value != getattr(empty, name) or name == "rows_per_unit")
        }
        if self.groups:
            plain["groups"] = [_known(group) for group in self.groups]
        return plain if self.adjacency.bounded else {**plain, "adjacency": self.adjacency.to_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Domain:
        """Inverse of :meth:`to_dict`."""
        if unknown := sorted(set(data) - {*_DECLARABLE, "groups"}):
            raise InvalidParameter(f"unknown domain facts: {unknown}.")
        plain: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}
        groups = [ColumnBounds(**group) for group in plain.pop("groups", ())]
        if "adjacency" in plain:
            plain["adjacency"] = Adjacency.from_dict(plain["adjacency"])
        found = cls(**plain)
        return found.in_groups(groups) if groups else found


def _known(group: ColumnBounds) -> dict[str, Any]:
    """A group in JSON: only what is known."""
    found = {one.name: getattr(group, one.name) for one in fields(group)}
    return {name: value for name, value in found.items() if value is not None and value is not False}


def largest_entry(domain: Domain) -> float:
    """Public bound on the size of every entry of a row."""
    norm = float(domain.require("row_norm"))
    return min(domain.entry_bound or norm, norm)


def check_domain(value: Any) -> None:
    """A domain, or None where none is declared; the error for a table says what to declare instead."""
    if value is None or isinstance(value, Domain):
        return
    fix = "pass Domain(n_rows=..., n_features=...)."
    known = set(dir(type(value)))  # of a table, which is not asked itself
    named = next((name for name in ("column_names", "columns") if name in known), None)
    if named is not None:
        fix = f"pass Domain(n_rows=len(X), feature_names=tuple(X.{named}))."
    elif type(value) is int and value > 0:
        fix = f"pass Domain(n_rows={value}), with n_features=... where the pipeline does not name all columns."
    elif "shape" in known:
        fix = "pass Domain(n_rows=len(X), n_features=X.shape[1])."
    raise InvalidParameter(f"domain must be a Domain or None, got {type(value).__name__}.", fix=fix, parameter="domain")


_HINTS = {"indicators": (), "centred": False, "usual_norm": None, "scaled_groups": (), "layout": ()}
_DECLARABLE = tuple(one.name for one in fields(Domain) if one.init)
_FIX = {
    "row_norm": "add MinMaxScaler(ranges=...) or NormClipper(...) as a first step, or pass Domain(row_norm=...).",
    "classes": "pass classes=(...) to the model, to from_sklearn or to Domain.",
    "max_weight": "pass Domain(max_weight=...), the largest weight that there may be, never the largest in the rows.",
    "n_rows": "pass Domain(n_rows=..., n_features=...) to plan(), or call fit(X, y).",
    "n_features": "pass Domain(n_rows=..., n_features=...) to plan(), or call fit(X, y).",
}
