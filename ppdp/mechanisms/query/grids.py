"""Public grids of columns: edges of histograms and candidates for quantiles, in the forms that people write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ppdp.core.checks import integer, shown
from ppdp.core.domain import Domain
from ppdp.exceptions import InvalidParameter, MissingBound

MOST = 100_000


def public_grid(name: str, given: Any, domain: Domain, stage: object, *, edges: bool) -> dict[str, Any]:
    """Columns by position, and the ascending numbers of each, as parameters of a formula.

    Given are so many equal cells (``edges``) or points between the public bounds on entries, or the numbers themselves;
    a mapping chooses columns by name or position. In the result "columns" are positions, "sizes" how many numbers each
    has, and "edges" or "candidates" the numbers, one column behind the other.
    """
    if not isinstance(given, Mapping):
        given = dict.fromkeys(range(domain.d), given)
    if not given:
        raise InvalidParameter(
            f"{name} names no column.", stage=type(stage).__name__, fix="name one, or give a number."
        )
    grid = {_position(name, column, domain, stage): marks for column, marks in given.items()}
    if len(grid) < len(given):
        raise InvalidParameter(f"{name} names a column twice.", stage=type(stage).__name__)
    columns = sorted(grid)
    marks = [_marks(name, grid[column], domain, stage, edges) for column in columns]
    return {
        "columns": columns,
        "sizes": [len(one) for one in marks],
        "edges" if edges else "candidates": [mark for one in marks for mark in one],
    }


def _position(name: str, column: Any, domain: Domain, stage: object) -> int:
    names = domain.feature_names or ()
    if isinstance(column, str) and column in names:
        return names.index(column)
    if isinstance(column, (int, np.integer)) and not isinstance(column, bool) and 0 <= column < domain.d:
        return int(column)
    raise InvalidParameter(
        f"{name} names the column {shown(column)}, which is not there.",
        stage=type(stage).__name__,
        fix="name columns of the rows at this step, or count them from 0.",
    )


def _marks(name: str, given: Any, domain: Domain, stage: object, edges: bool) -> list[float]:
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        number = integer(name, given, stage, least=1 if edges else 2, most=MOST) + edges
        bound = domain.entry_bound or domain.row_norm
        if bound is None:
            raise MissingBound(
                f"{name} is a number, and no bound on entries is declared.",
                stage=type(stage).__name__,
                fix=f"give {name} as ascending numbers, or add NormClipper(...) first.",
            )
        return [float(mark) for mark in np.linspace(-bound, bound, number)]
    try:
        marks = np.asarray(given, dtype=np.float64)
    except Exception:  # an integer beyond float64; a class of the user's own
        marks = np.empty(0)
    finite = marks.ndim == 1 and 2 <= marks.size <= MOST and np.isfinite(marks).all()
    if not (finite and (marks[:-1] < marks[1:]).all()):
        raise InvalidParameter(
            f"{name} must be a number, or at least two finite ascending numbers, or such for every column.",
            stage=type(stage).__name__,
            fix="choose them from public knowledge, not from the data.",
        )
    return [float(mark) for mark in marks]
