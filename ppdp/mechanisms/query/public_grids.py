"""Public grids of columns: edges of histograms and candidates for quantiles, in the forms that people write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ppdp.core.checks import integer, shown
from ppdp.core.domain import Domain
from ppdp.core.names import nearest
from ppdp.data.unit_conversion import Codes, Columns, Dates
from ppdp.exceptions import InvalidParameter, MissingBound

MOST = 100_000
NUDGE = 1e-14  # of a grid, by which inner edges are lower
NARROW = 1 / 50  # of a range: marks that were meant for another column


def public_grid(name: str, given: Any, domain: Domain, stage: object, *, edges: bool) -> dict[str, Any]:
    """Columns by position, and the ascending numbers of each, as parameters of a formula.

    Given are so many equal cells (``edges``) or points between the public bounds on entries, or the numbers themselves;
    a mapping chooses columns by name or position. In the result "columns" are positions, "sizes" how many numbers each
    has, and "edges" or "candidates" the numbers, one column behind the other.
    """
    if not isinstance(given, Mapping):
        given = dict.fromkeys(range(domain.d), given)
    if not given:
        what = f"{name} names no column."
        raise InvalidParameter(what, stage=type(stage).__name__, fix="name one, or give a number.", parameter=name)
    grid = {position_of(name, column, domain, stage): marks for column, marks in given.items()}
    if len(grid) < len(given):
        what = f"{name} names a column twice."
        raise InvalidParameter(what, stage=type(stage).__name__, fix="name it once.", parameter=name)
    columns = sorted(grid)
    marks = [_marks(name, grid[column], domain, stage, edges) for column in columns]
    return {
        "columns": columns,
        "sizes": [len(column_marks) for column_marks in marks],
        "edges" if edges else "candidates": [mark for column_marks in marks for mark in column_marks],
    }


def grid_in_units(name: str, given: Any, columns: Columns, stage: object, *, edges: bool) -> dict[int, Any]:
    """The same grid by position in the units of rows, where a user writes raw numbers, or dates.

    A number of cells becomes cells between the public ends of a column, or one for every category. Where no map leads
    back to raw units, numbers are in those of the rows. What no row can reach is refused: candidates, and edges that
    have cells on both sides, beyond the public range of their column. So are numbers for all of several columns that
    are next to nothing of the range of one of them.
    """
    shared = not isinstance(given, Mapping) and len(columns.names) > 1
    domain = Domain(n_features=len(columns.names), feature_names=columns.names)
    if not isinstance(given, Mapping):
        given = dict.fromkeys(range(domain.d), given)
    listed = [(i, marks) for column, marks in given.items() for i in positions_of(name, column, columns, domain, stage)]
    grid = dict(listed)
    if len(grid) < len(listed):
        what = f"{name} names a column twice."
        raise InvalidParameter(what, stage=type(stage).__name__, fix="name it once.", parameter=name)
    converted = {i: _converted(name, marks, columns, i, stage, edges) for i, marks in grid.items()}
    for i, marks in converted.items() if shared else ():
        width = np.ptp(columns.ranges[i])
        if np.ndim(marks) and np.isfinite(width) and np.ptp(marks) < NARROW * width:
            what = f"{name} cover next to nothing of the public range of {columns.names[i]!r}."
            fix = f"{name}={{column: ...}}, for each column its own."
            raise InvalidParameter(what, stage=type(stage).__name__, fix=fix, parameter=name)
    return converted


def positions_of(name: str, column: Any, columns: Columns, domain: Domain, stage: object) -> list[int]:
    """Where a column is, or the columns of 0 and 1 that a column of categories became."""
    kinds = enumerate(columns.kinds)
    coded = [i for i, kind in kinds if isinstance(column, str) and isinstance(kind, Codes) and kind.column == column]
    return coded if coded and column not in columns.names else [position_of(name, column, domain, stage)]


def _converted(name: str, given: Any, columns: Columns, i: int, stage: object, edges: bool) -> Any:
    kind, raw_units = columns.kinds[i], columns.has_units(i)
    ends = columns.ranges[i]
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        count = integer(name, given, stage, least=1 if edges else 2, most=MOST) + edges
        if isinstance(kind, Codes) and raw_units and len(kind.values) > 1:
            return columns.present(i, np.array(kind.edges if edges else kind.values))
        bounded = np.isfinite(ends).all() and ends[0] < ends[1]
        return np.linspace(ends[0], ends[1], count) if bounded else given
    if isinstance(kind, Dates):
        given = _dates(name, given, kind, stage)
    marks = np.array(_marks(name, given, Domain(n_features=1), stage, edges))
    raw = np.sort(columns.raw_value(i, ends)) if raw_units else ends
    inner = marks[1:-1] if edges and len(marks) > 2 else marks
    beyond = (inner < raw[0]) | (inner > raw[1])  # NaN ends are beyond nothing
    if beyond.all() if edges and len(marks) == 2 else beyond.any():
        low, high = (kind.text(end) if isinstance(kind, Dates) else f"{end:.6g}" for end in raw)
        whose = "the units of the table" if raw_units else "the units of this step, as no public map leads to others"
        what = f"{name} lie outside the public range of {columns.names[i]!r}, {low} to {high}, in {whose}."
        fix = f"{name} within it, or {name}={{column: ...}} for each column its own."
        raise InvalidParameter(what, stage=type(stage).__name__, fix=fix, parameter=name)
    if not raw_units:
        return marks
    present = columns.present(i, marks)
    if edges:  # a value that is an edge is in the cell above it, however both are rounded where they are scaled
        present[1:-1] -= NUDGE * np.ptp(present)
    return present


def _dates(name: str, given: Any, kind: Dates, stage: object) -> Any:
    """Dates as raw numbers; numbers are such already."""
    try:
        numbers = [mark if isinstance(mark, (int, float, np.number)) else kind.number(mark) for mark in given]
    except TypeError:  # nothing that holds any
        return given
    if not np.isfinite(np.array(numbers, dtype=np.float64)).all():
        fix = 'dates, or text such as "2001-12-31".'
        raise InvalidParameter(f"{name} hold what is no date.", stage=type(stage).__name__, fix=fix, parameter=name)
    return numbers


def position_of(name: str, column: Any, domain: Domain, stage: object) -> int:
    """Position of a column that the parameter ``name`` names, or counts from 0."""
    names = domain.feature_names or ()
    if isinstance(column, str) and column in names:
        return names.index(column)
    if isinstance(column, (int, np.integer)) and not isinstance(column, bool) and 0 <= column < domain.d:
        return int(column)
    what = f"{name} names the column {shown(column)}, which is not there."
    meant = nearest(column, names) if isinstance(column, str) else None
    fix = f"did you mean {meant!r}?" if meant else "name columns of the rows at this step, or count them from 0."
    raise InvalidParameter(what, stage=type(stage).__name__, fix=fix, parameter=name)


def _marks(name: str, given: Any, domain: Domain, stage: object, edges: bool) -> list[float]:
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        number = integer(name, given, stage, least=1 if edges else 2, most=MOST) + edges
        bound = domain.entry_bound or domain.row_norm
        if bound is None:
            what = f"{name} is a number, and no bound on entries is declared."
            fix = f"give {name} as ascending numbers, or add NormClipper(...) first."
            raise MissingBound(what, stage=type(stage).__name__, fix=fix, parameter=name)
        return [float(mark) for mark in np.linspace(-bound, bound, number)]
    if not edges and isinstance(given, tuple) and len(given) == 2:
        what = f"{name}={shown(given)} reads as a range, and would be two numbers to choose from."
        fix = f"{name}=100 for so many points of the public range, or {name}={shown(list(given))} for these two."
        raise InvalidParameter(what, stage=type(stage).__name__, fix=fix, parameter=name)
    try:
        marks = np.asarray(given, dtype=np.float64)
    except Exception:  # an integer beyond float64; a class of the user's own
        marks = np.empty(0)
    finite = marks.ndim == 1 and 2 <= marks.size <= MOST and np.isfinite(marks).all()
    if not (finite and (marks[:-1] < marks[1:]).all()):
        what = f"{name} must be a number, or at least two finite ascending numbers, or such for every column."
        fix = f"{name}=10 without a point, or {name}=[0, 50, 100], at most {MOST:,}; never read off the data."
        raise InvalidParameter(what, stage=type(stage).__name__, fix=fix, parameter=name)
    return [float(mark) for mark in marks]
