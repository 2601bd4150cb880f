"""What scalers share that act on some of the columns: which ones, and how a condition of theirs is measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ppdp.core.checks import columns_of
from ppdp.core.domain import Domain
from ppdp.data.releases import of_columns
from ppdp.data.rows import Array, Rows
from ppdp.exceptions import InvalidParameter
from ppdp.transformers.way import Measure, Way

ALL = "all"


def scaled_columns(columns: Any, domain: Domain, stage: object) -> list[int] | None:
    """Positions of the columns that a scaler is for; None are all.

    Without a parameter these are all columns but those of 0 and 1 that stand for categories: divided by their deviation
    the rare ones would make rows long, for which every column pays.
    """
    if columns is None:
        kept = set(domain.indicators)
        return [column for column in range(domain.d) if column not in kept] if kept else None
    if isinstance(columns, str) and columns == ALL:
        return None
    listed = list(columns) if isinstance(columns, (list, tuple, np.ndarray)) else columns
    found = columns_of("columns", listed, domain.feature_names, domain.d, stage)
    if len(set(found)) < len(found):
        raise InvalidParameter("columns names a column twice.", stage=type(stage).__name__, fix="name it once.")
    return sorted(found) if len(found) < domain.d else None


def asked_for(columns: Sequence[int] | None) -> dict[str, Any]:
    """The parameter of a formula for these columns; none where it is for all."""
    return {} if columns is None else {"columns": list(columns)}


def columns_of_way(way: Way) -> list[int] | None:
    """The columns that a way is for; None are all."""
    columns = way.parameters.get("columns")
    return None if columns is None else list(columns)


def measured_on(measures: Mapping[str, Measure], columns: Sequence[int] | None) -> dict[str, Measure]:
    """The same measurements, of these columns of the rows."""
    if columns is None:
        return dict(measures)
    return {name: _OfColumns(measure, tuple(columns)) for name, measure in measures.items()}


def among_all(values: Array, d: int, columns: Sequence[int] | None, other: float) -> Array:
    """Values of these columns in their places among all, and another value in the other places."""
    if columns is None:
        return values
    found = np.full(d, other)
    found[list(columns)] = values
    return found


def mapped_columns(X: Array, columns: Sequence[int], function: Callable[[Array], Array]) -> Array:
    """The rows with these columns mapped by a function, and the others as they are."""
    out = X.copy()
    if columns:
        out[:, columns] = function(np.ascontiguousarray(X[:, columns]))
    return out


@dataclass(frozen=True, slots=True)
class _OfColumns:
    """A measurement of some columns of the rows."""

    measure: Measure
    columns: tuple[int, ...]

    def __call__(self, rows: Rows, unit: float) -> float:
        return self.measure(of_columns(rows, self.columns), unit)
