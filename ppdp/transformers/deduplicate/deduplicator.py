"""Exact deduplication, of numbers and, outside a pipeline, of words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.core.checks import choice, columns_of
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.rows import Array, Rows
from ppdp.exceptions import InvalidParameter
from ppdp.transformers.base import Statistics
from ppdp.transformers.deduplicate.base import RowSelector
from ppdp.transformers.deduplicate.records import Bits, firsts, grouped, hashes_of, present, smallest
from ppdp.transformers.fit_mode import FitMode

FORMULAS = {"record": "whole-record", "unanimous": "unanimous", "first": "keep-first"}


@dataclass(eq=False, repr=False)
class Deduplicator(RowSelector):
    """Keep one copy of every record.

    In a pipeline, deleted rows keep their slot with weight 0: how many there were stays private. Missing
    values equal each other, and -0 equals 0. Outside a pipeline records may hold words.

    Parameters
    ----------
    subset : sequence of column names or positions, optional
        Records that agree in these columns are duplicates; the lexicographically smallest record of each group is kept.
        Default: all columns.
    label_rule : {"record", "unanimous", "first"}, default="record"
        "record": records with different labels are no duplicates. "unanimous": the label is not compared, but a group
        whose labels disagree is deleted as a whole. "first": the label is not compared; the smallest is kept.
    compare : {"current", "raw"}, default="current"
        Which rows are compared: as they are, or as they came into the first stage that is fitted. "raw" allows to
        stand behind stages that move rows, and takes no ``subset``.

    Notes
    -----
    **Guarantee** (``docs/theory/deduplication.md``): unconditional. Whole records: nothing moves, a
    replaced record stays one replaced record, so it costs nothing. With a key, or with ``label_rule="first"``: at most
    two further rows are switched on or off; with "unanimous" one. A stage before it that moved rows makes them count as
    replaced.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 2.0], [1.0, 2.0], [3.0, 4.0]])
    >>> Deduplicator().fit_resample(X, np.array([0, 0, 1]))
    (array([[1., 2.], [3., 4.]]), array([0, 1]))
    >>> Deduplicator(label_rule="unanimous").fit_resample(X, np.array([0, 1, 1]))
    (array([[3., 4.]]), array([1]))
    """

    subset: Sequence[str | int] | None = None
    label_rule: str = "record"
    compare: str = "current"

    in_memory = False

    def fit_modes(self, domain: Domain, distance: Distance) -> tuple[FitMode, ...]:
        formula = FORMULAS[choice("label_rule", self.label_rule, FORMULAS, self)]
        columns = self._columns(domain)
        raw = self.takes_raw_keys(domain, distance)
        if raw and columns is not None:
            what = "compare='raw' compares whole rows."
            fix = "leave subset out, or put it first."
            raise InvalidParameter(what, stage="Deduplicator", fix=fix, parameter="compare")
        parameters: dict[str, Any] = {"raw": raw}
        if columns is not None:
            formula, parameters = "keep-first", {"raw": raw, "labels": self.label_rule}
        return (FitMode.by(f"deduplication.{formula}", domain, distance, **parameters),)

    def _columns(self, domain: Domain) -> list[int] | None:
        if self.subset is None:
            return None
        return columns_of("subset", self.subset, domain.feature_names, domain.d, self)

    def prepare(self, rows: Rows, way: FitMode, domain: Domain) -> Statistics:
        return self._decided(rows, {"columns": self._columns(domain)})

    def _values(self, X: Any) -> Array:
        return super()._values(words_as_numbers(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        return tags

    def _words(self, rows: Rows, statistics: Statistics) -> Bits:
        return hashes_of(*key_of(rows.X, rows.y, statistics["columns"], self.label_rule))[:, None]

    def _weight(self, rows: Rows, statistics: Statistics) -> Array:
        slots, X, y = present(rows, self.compare)
        weight = np.zeros(rows.n)
        stay = kept(X, y, statistics["columns"], self.label_rule)
        weight[stay if len(slots) == rows.n else slots[stay]] = 1.0
        return weight


def kept(X: Array, y: Array | None, columns: list[int] | None = None, labels: str = "record") -> NDArray[np.intp]:
    """Positions of the rows that stay: one of each group of rows with equal keys, or none."""
    key = key_of(X, y, columns, labels)
    if columns is None and (labels == "record" or y is None):
        return firsts(*key)
    groups = grouped(*key)
    same = columns is None and labels != "first"  # then all rows of a group that is kept are equal
    chosen = groups.first if same else smallest(X if y is None else np.column_stack([X, y]), groups)
    return chosen[groups.constant(y)] if labels == "unanimous" and y is not None else chosen


def key_of(X: Array, y: Array | None, columns: list[int] | None, labels: str) -> tuple[Array, ...]:
    """The tables in which duplicates agree."""
    key = X if columns is None else X[:, columns]
    return (key, y) if labels == "record" and y is not None else (key,)


def words_as_numbers(X: Any) -> Any:
    """A table with a number for each word, in their order; as it is if it holds none.

    >>> words_as_numbers(np.array([["b", 1.0], ["a", 2.0]], dtype=object))
    array([[1., 1.],
           [0., 2.]])
    """
    if hasattr(X, "select_dtypes"):
        named = X.select_dtypes(exclude=["number", "bool"]).columns
        return X.assign(**{name: _codes(X[name].to_numpy(object)) for name in named}) if len(named) else X
    if getattr(getattr(X, "dtype", None), "kind", "") not in ("O", "U", "S") or np.ndim(X) != 2:
        return X
    return np.column_stack([_codes(column) for column in np.asarray(X, dtype=object).T])


def _codes(column: Any) -> Array:
    """Numbers as they are if there is nothing else; else places of words in order. Missing values stay missing."""
    import pandas as pd

    gaps = np.asarray(pd.isna(column), dtype=bool)
    try:
        return np.where(gaps, np.nan, column).astype(np.float64)
    except ValueError:
        pass
    codes, words = pd.factorize(column)
    order = sorted(range(len(words)), key=lambda i: (type(words[i]).__name__, words[i]))
    place = np.empty(len(words) + 1)
    place[order], place[-1] = np.arange(len(words)), np.nan
    return np.asarray(place[codes])
