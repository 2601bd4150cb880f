"""Stages for one group of columns, beside others: ``docs/theory/column-groups.md``.

A public split names groups of neighbouring columns. A stage for one of them sees the columns of its group alone: it is
proved there by the formula that it has for all columns, and its output is joined with the columns that it leaves. So
``"scaling.standard@numbers"`` is the formula ``"scaling.standard"`` for the group ``"numbers"``; in the same way
statistics are released, and margins measured, of the columns of a group.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache, wraps
from itertools import accumulate, pairwise
from typing import Any

from ppdp.core.distance import Distance, GroupMoves, Moves
from ppdp.core.domain import ColumnBounds, Domain
from ppdp.core.formula import AT, FORMULAS, Formula, Margin, Release, Stability, formula, sane, whole
from ppdp.core.rounding import apply_error, inflate

StabilityMap = Callable[..., tuple[Domain, Distance]]


def entries_of(domain: Domain, columns: Sequence[int] | None) -> Domain:
    """The domain of some entries of every row, of norm ``min(R, b √c)``; None are all columns."""
    if columns is None:
        return domain
    sane(len(set(columns)) == len(columns) >= 1 and all(whole(c) and 0 <= c < domain.d for c in columns))
    return domain.but(n_features=len(columns), feature_names=None, row_norm=_share_of(domain, len(columns)))


def _share_of(domain: Domain, count: int) -> float:
    """Most that so many entries of a row can be long."""
    norm = float(domain.require("row_norm"))
    return min(norm, (domain.entry_bound or norm) * math.sqrt(count))


def for_columns(function: StabilityMap) -> StabilityMap:
    """Stability of a stage that may act on ``columns`` alone, from its stability on all of them.

    Rows are matched as before. What moves in the columns and what had moved beside them are orthogonal.
    """

    @wraps(function)
    def joined(
        domain: Domain, distance: Distance, *, columns: Sequence[int] | None = None, **parameters: Any
    ) -> tuple[Domain, Distance]:
        if columns is None:
            return function(domain, distance, **parameters)
        made, far = function(entries_of(domain, columns), distance, **parameters)
        beside, within = _share_of(domain, domain.d - len(columns)), float(made.require("row_norm"))
        norm = inflate(math.hypot(within, beside))
        entry = None if made.entry_bound is None else max(made.entry_bound, min(domain.entry_bound or beside, beside))
        radius = min(inflate(math.hypot(far.radius, distance.radius)), 2 * norm)
        total = min(inflate(far.total + distance.total), far.moved * radius)
        return domain.but(row_norm=norm, entry_bound=entry), replace(far, radius=radius, total=total)

    return joined


def release_of_columns(function: Callable[..., float]) -> Callable[..., float]:
    """Sensitivity of statistics of ``columns`` alone, from that of statistics of all of them."""

    @wraps(function)
    def restricted(
        domain: Domain, distance: Distance, *, columns: Sequence[int] | None = None, **parameters: Any
    ) -> float:
        return function(entries_of(domain, columns), distance, **parameters)

    return restricted


Point = tuple[Domain, Distance]


def span_of(domain: Domain, group: str) -> tuple[int, int, int]:
    """Which group it is, and the first of its columns and of those behind it."""
    names = [one.name for one in domain.groups]
    sane(group in names and sum(one.width for one in domain.groups) == domain.d)
    at = names.index(group)
    ends = [0, *accumulate(one.width for one in domain.groups)]
    return at, ends[at], ends[at + 1]


def domain_of(domain: Domain, group: str) -> Domain:
    """What is known of the columns of a group, as of rows that have no others."""
    return _domain_of(domain, group, domain.indicators, domain.scaled_groups)


@lru_cache(maxsize=1024)  # planning asks thousands of times for the same ones
def _domain_of(domain: Domain, group: str, indicators: tuple[int, ...], scaled: Sequence[Any]) -> Domain:
    at, start, stop = span_of(domain, group)
    known, width = domain.groups[at], stop - start
    norm, entry = _bounds(domain, known)
    found = domain.but(
        n_features=width,
        feature_names=None if domain.feature_names is None else domain.feature_names[start:stop],
        row_norm=norm,
        entry_bound=entry,
        max_missing=0 if known.complete else domain.max_missing,
    )
    hot = tuple(column - start for column in indicators if start <= column < stop)
    for centred, usual_norm in (facts for name, *facts in scaled if name == group):
        found = found.as_scaled(centred=centred, usual_norm=usual_norm)
    return found.with_indicators(hot) if hot else found


def _bounds(domain: Domain, known: ColumnBounds) -> tuple[float | None, float | None]:
    """Norm of a row and largest entry in the columns of a group; None where there is none."""
    norm, entry = _least(domain.row_norm, known.row_norm), _least(domain.entry_bound, known.entry_bound)
    return norm if entry is None else _least(norm, inflate(entry * math.sqrt(known.width))), entry


def distance_of(domain: Domain, distance: Distance, group: str) -> Distance:
    """How far apart neighbouring datasets are in the columns of a group: as many rows are replaced, its own move."""
    at, start, stop = span_of(domain, group)
    sane(not distance.groups or len(distance.groups) == len(domain.groups))
    moved, radius, total = distance.moved, distance.radius, distance.total
    if distance.groups:
        own = distance.groups[at]
        moved, radius, total = min(moved, own.moved), min(radius, own.radius), min(total, own.total)
    found = replace(distance, moved=moved, radius=radius, total=min(total, moved * radius))
    known = distance.moves
    if known is None or not moved:
        return found
    linf = known.linf[start:stop] if isinstance(known.linf, tuple) else known.linf
    return found.moving(Moves(linf, known.l1, min(known.columns, stop - start)))


def joined(before: Point, group: str, after: Point, way: str) -> Point:
    """Rows of which the columns of one group went through a stage, and the others stay as they are.

    ``after`` is domain and distance of the group behind the stage. Replaced, toggled and reweighted rows are the same
    in all groups. Where statistics are no others on the other side a row that was equal stays equal, up to the rounding
    that the stage charges; else rows that move in the group stand beside those that move in the others.
    """
    (domain, distance), (made, far) = before, after
    at, start, stop = span_of(domain, group)
    moves = list(distance.groups) or [_moved(distance)] * len(domain.groups)
    others = [one for i, one in enumerate(moves) if i != at]
    bounds = [_bounds(domain, one) for one in domain.groups]
    bounds[at] = made.row_norm, made.entry_bound
    beside = _norm([length for i, (length, _) in enumerate(bounds) if i != at])
    norm = _norm([made.row_norm, _least(domain.row_norm, beside)])
    n, rest = domain.n, min(distance.moved, sum(one.moved for one in others))
    moved = far.moved + rest
    if way != "exact":
        moved = min(moved, distance.moved + max(0.0, far.moved - min(distance.moved, moves[at].moved)))
    moved = min(moved, n - min(far.replaced, n))
    apart = min(distance.radius, math.hypot(*(one.radius for one in others)))
    radius = min(inflate(math.hypot(far.radius, apart)), math.inf if norm is None else 2 * norm)
    total = inflate(far.total + min(distance.total, math.fsum(one.total for one in others)))
    complete = made.max_missing == 0
    groups = [replace(one) for one in domain.groups]
    groups[at] = ColumnBounds(group, made.d, made.row_norm, made.entry_bound, complete)
    moves[at] = _moved(far)
    entries = [_least(length, entry) for length, entry in bounds]
    out = domain.but(
        n_features=domain.d - (stop - start) + made.d,
        feature_names=_names(domain, group, start, stop, made),
        row_norm=norm,
        entry_bound=None if None in entries else max(entry for entry in entries if entry is not None),
        max_missing=0 if all(one.complete for one in groups) else domain.max_missing,
    )
    behind = replace(far, moved=moved, radius=radius, total=min(total, moved * radius))
    return out.in_groups(groups), behind.in_groups(moves)


def _least(one: float | None, other: float | None) -> float | None:
    return min((value for value in (one, other) if value is not None), default=None)


def _norm(parts: Sequence[float | None]) -> float | None:
    """Of rows whose parts have these norms; None if one of them has none."""
    known = [part for part in parts if part is not None]
    return inflate(math.hypot(*known)) if len(known) == len(parts) else None


def _moved(distance: Distance) -> GroupMoves:
    return GroupMoves(distance.moved, distance.radius, distance.total)


def _names(domain: Domain, group: str, start: int, stop: int, made: Domain) -> tuple[str, ...] | None:
    """Names of all columns; those that a stage has made without names are called by their group."""
    if domain.feature_names is None:
        return None
    own = made.feature_names or tuple(f"{group}{i}" for i in range(made.d))
    names = (*domain.feature_names[:start], *own, *domain.feature_names[stop:])
    return names if len(set(names)) == len(names) else None


def longest_of(domain: Domain, width: int) -> float | None:
    """Most that so many entries of a row can be long; None if they have no bound."""
    entry = domain.entry_bound
    return _least(domain.row_norm, None if entry is None else inflate(entry * math.sqrt(width)))


@formula(
    "column-groups.split", kind="stability", page="column-groups", used_by=("ColumnSplit",), gaps=True, entrywise=True
)
def split(
    domain: Domain,
    distance: Distance,
    *,
    columns: Sequence[int],
    groups: Sequence[str],
    widths: Sequence[int],
    norms: Sequence[float],
    filled: Sequence[str],
) -> Point:
    """Columns in the order of their groups, each in one of them; those of no group are left out.

    In groups that are ``filled`` gaps become 0. Where the norm of a group is not 0 rows are clipped to it there, which
    is shorter than what follows from the domain: 1-Lipschitz.
    """
    sane(whole(*columns, *widths) and len(set(columns)) == len(columns) == sum(widths))
    sane(all(0 <= column < domain.d for column in columns) and min(widths) >= 1)
    sane(len(set(groups)) == len(groups) == len(widths) == len(norms) and set(filled) <= set(groups))
    sane(all(name and AT not in name for name in groups) and min(norms) >= 0)
    starts = [0, *accumulate(widths)]
    own = [list(columns[start:stop]) for start, stop in pairwise(starts)]
    bounds = []
    for name, width, norm in zip(groups, widths, norms):
        known = longest_of(domain, width)
        sane(not norm or known is None or norm < known)
        known = norm or known
        bounds.append(ColumnBounds(name, width, known, _least(domain.entry_bound, known), name in filled))
    longest = _least(domain.row_norm, _norm([one.row_norm for one in bounds]))
    out = domain.but(
        n_features=len(columns),
        feature_names=None if domain.feature_names is None else tuple(domain.feature_names[i] for i in columns),
        row_norm=longest,
        max_missing=0 if set(filled) == set(groups) else domain.max_missing,
    )
    error = sum(apply_error(width, norm) for width, norm in zip(widths, norms) if norm)
    far = distance.stretched(1.0, math.inf if longest is None else 2 * longest).jittered(error)
    linf = None if distance.moves is None else distance.moves.linf
    moves = [_within(far, None if not isinstance(linf, tuple) else [linf[i] for i in part], error) for part in own]
    return out.in_groups(bounds), far.in_groups(moves)


def _within(distance: Distance, entries: Sequence[float] | None, error: float) -> GroupMoves:
    """How rows move in some columns, of which an entry changes by so much at most."""
    if entries is None:
        return _moved(distance)
    if not any(entries):
        return GroupMoves(0.0, 0.0, 0.0)
    radius = min(distance.radius, inflate(math.hypot(*entries)) + 2 * error)
    return GroupMoves(distance.moved, radius, min(distance.total, distance.moved * radius))


@dataclass(frozen=True, slots=True)
class OfGroup(Stability):
    """A stability formula for one group of columns."""

    inner: Stability = None  # type: ignore[assignment]  # given by what makes it
    group: str = ""

    def __call__(self, domain: Domain, distance: Distance, **parameters: Any) -> Any:
        """Compute the bound for the columns of the group, and join it with the others."""
        sane(self.inner.row_by_row)
        here = domain_of(domain, self.group), distance_of(domain, distance, self.group)
        return joined((domain, distance), self.group, self.inner(*here, **parameters), self.way)

    def takes_gaps(self, domain: Domain) -> bool:
        """Whether the columns of the group have no more gaps here than the stage takes."""
        return self.inner.takes_gaps(domain_of(domain, self.group))


@dataclass(frozen=True, slots=True)
class OfNothing(Stability):
    """What a stage is for a group that has no columns: everything that is known stays."""

    def __call__(self, domain: Domain, distance: Distance, **parameters: Any) -> Any:
        """Domain and distance as they are."""
        sane(bool(domain.groups) and not parameters)
        return domain, distance


def nothing(domain: Domain, distance: Distance) -> Point:
    """No column is there: rows stay as they are, and so does all that is known of groups."""
    return domain, distance


FORMULAS["column-groups.none"] = OfNothing("column-groups.none", "column-groups", nothing, ("ColumnSubset",), gaps=True)


@lru_cache(maxsize=1024)
def formula_of_group(known: Formula, group: str) -> Formula:
    """The same formula for one group of columns."""
    name = f"{known.id}{AT}{group}"

    def seen(function: Callable[..., Any] | None) -> Any:
        """A function of a domain, for that of the group."""
        return None if function is None else lambda domain, *a, **p: function(domain_of(domain, group), *a, **p)

    def at(function: Callable[..., Any] | None) -> Any:
        """The same of a domain and a distance."""
        if function is None:
            return None
        return lambda domain, distance, *a, **p: function(
            domain_of(domain, group), distance_of(domain, distance, group), *a, **p
        )

    if isinstance(known, Stability):
        given = {one.name: getattr(known, one.name) for one in fields(known)}
        given |= {"id": name, "releases": tuple(f"{one}{AT}{group}" for one in known.releases)}
        assumes = known.assumes
        given["assumes"] = lambda domain, **p: {f"{one}{AT}{group}" for one in assumes(domain_of(domain, group), **p)}
        return OfGroup(**given, inner=known, group=group)
    if isinstance(known, Release):
        return replace(known, id=name, function=at(known.function), failure=at(known.failure))
    if isinstance(known, Margin):
        statement = known.statement
        told = (
            None
            if statement is None
            else (lambda domain, **p: f"{statement(domain_of(domain, group), **p)} (in the group {group!r})")
        )
        own = {"largest": seen(known.largest), "level": seen(known.level), "statement": told}
        return replace(known, id=name, function=at(known.function), **own)
    raise KeyError(name)


FORMULAS.of_group = formula_of_group
