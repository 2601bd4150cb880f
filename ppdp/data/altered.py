"""Which rows a fit alters before anything is learned of them: ``docs/theory/altered-shares.md``.

A row has a property (its label was repaired, its value in this column was clipped) by itself and by public facts, so
that the numbers of rows with each property can be released like any count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from ppdp.bounds.release import CELL, CLASS, KEPT, LABEL, OF_TARGETS, TINY_WEIGHT, WEIGHT
from ppdp.data.parallel import blocks, in_parallel, pieces
from ppdp.data.rows import Array, Rows
from ppdp.data.statistics import clip_norms
from ppdp.data.stream import Stream
from ppdp.data.summary import Counts, fold, truths

Marks = NDArray[np.bool_]

BESIDE = (LABEL, *OF_TARGETS, WEIGHT, TINY_WEIGHT, CLASS)
"""What is found of labels and weights, not of cells."""
_PART = 0.02  # of the width of a range
MOST_TINY = 16  # columns of a table up to which tiny values are counted: in wider ones some column always has some


@dataclass(frozen=True, slots=True)
class Property:
    """A property that a row may have; without a column it may be that of any of them."""

    kind: str
    column: str | None = None


@dataclass(frozen=True, slots=True)
class Marker:
    """Finds which properties every row has, each row by itself."""

    properties: tuple[Property, ...]  # of the entrance first, then of each stage
    counted: tuple[Property, ...]  # those that are counted: the same, or one in place of all of a kind
    entry_bound: float | None  # to which, as to the norm, rows are clipped at the entrance
    row_norm: float | None
    gaps: bool  # whether NaN is a declared gap there
    # Public maps of single rows from the first step on: statistics, None of a fitted step for other columns; domain.
    stages: tuple[tuple[Any, Any, Any], ...]

    def __call__(self, values: Any, X: Any, beside: Mapping[str, Marks]) -> Marks:
        """Marks of shape (n, counted), of ``values`` as they were read, ``X`` behind the entrance, and ``beside``."""
        found = np.zeros((X.shape[0], len(self.counted)), dtype=bool)

        def task(piece: slice) -> None:
            own = {kind: marks[piece].reshape(X[piece].shape[0], -1) for kind, marks in beside.items()}
            found[piece] = self._counted(self._marks(values[piece], X[piece], own))

        for _ in in_parallel(task, pieces(X.shape[0]), 0):
            pass
        return found

    def _marks(self, values: Any, X: Any, beside: Mapping[str, Marks]) -> list[Any]:
        """Blocks of marks, side by side as the properties are."""
        kinds, blocks = {one.kind for one in self.properties}, []
        with np.errstate(all="ignore"):
            for kind in (kind for kind in BESIDE if kind in kinds):
                width = sum(one.kind == kind for one in self.properties)
                blocks.append(beside.get(kind, np.zeros((X.shape[0], width), dtype=bool)))
            if KEPT in kinds:
                blocks.append(np.ones((X.shape[0], 1), dtype=bool))
            if CELL in kinds:
                blocks.append(_where(values, np.isinf if self.gaps else _not_finite))
            if self.entry_bound is not None:
                blocks.append(_where(values, self._beyond))
            if self.row_norm is not None:
                blocks.append(shortened(self._repaired(values), self.row_norm))
            for stage, statistics, domain in self.stages:
                if not kinds.isdisjoint(one.kind for one in stage.alters(domain)):
                    blocks.append(stage.altered(X, domain))
                X = X if statistics is None or stage is self.stages[-1][0] else stage.map_rows(X, statistics)
        return blocks

    def _beyond(self, values: Array) -> Marks:
        return np.asarray(np.isfinite(values) & (np.abs(values) > self.entry_bound))

    def _repaired(self, values: Any) -> Any:
        if issparse(values):
            return csr_array((self._repaired(values.data), values.indices, values.indptr), values.shape)
        values = np.where(np.isfinite(values), values, np.nan if self.gaps else 0.0)
        return values if self.entry_bound is None else np.clip(values, -self.entry_bound, self.entry_bound)

    def _counted(self, blocks: Sequence[Any]) -> Marks:
        if len(self.counted) == len(self.properties):
            return np.concatenate([one.toarray() if issparse(one) else one for one in blocks], axis=1)
        any_of = {one: np.zeros(blocks[0].shape[0], dtype=bool) for one in self.counted}
        start = 0
        for block in blocks:
            held = self.properties[start : start + block.shape[1]]
            counted = [one if one in any_of else Property(one.kind) for one in held]
            for key in dict.fromkeys(counted):
                own = block if len(set(counted)) == 1 else block[:, [i for i, one in enumerate(counted) if one == key]]
                any_of[key] |= np.asarray(own.sum(axis=1) > 0).ravel()
            start += len(held)
        return np.column_stack(list(any_of.values()))


def shortened(X: Any, norm: float) -> Marks:
    """Which rows a norm shortens, of shape (n, 1)."""
    clipped = clip_norms(X, norm)
    if clipped is X:
        return np.zeros((X.shape[0], 1), dtype=bool)
    if issparse(X):
        changed = csr_array((clipped.data != X.data, X.indices, X.indptr), X.shape)
        return np.asarray(changed.sum(axis=1) > 0).reshape(-1, 1)
    return np.asarray(((clipped != X) & ~np.isnan(X)).any(axis=1, keepdims=True))


def outside(X: Any, low: Array, high: Array) -> Any:
    """Which entries lie outside of the ranges of their columns; of a sparse array only those that it holds."""
    if issparse(X):
        data = (X.data < low[X.indices]) | (X.data > high[X.indices])
        return csr_array((data, X.indices, X.indptr), X.shape)
    low, high = alike(low), alike(high)
    found = np.empty(X.shape, dtype=bool)
    for part in blocks(*X.shape):
        np.greater(low, X[part], out=found[part])
        found[part] |= high < X[part]
    return found


def missing(X: Any) -> Any:
    """Which entries are missing; of a sparse array only those that it holds."""
    return _where(X, np.isnan)


def alike(values: Array) -> Any:
    """One number for all columns, with which NumPy takes half of the time, if it is the same for all of them."""
    return values[0] if values.size and (values == values[0]).all() else values


def beside_zero(low: Any, high: Any) -> Any:
    """Which ranges hold values that are tiny beside them."""
    return np.isfinite(high - low) & (low < _PART * (high - low)) & (high > -_PART * (high - low))


def tiny(X: Any, low: Array, high: Array) -> Any:
    """Which entries are not 0, and nearer to it than a fiftieth of their range is wide, as those of other units are."""
    if issparse(X):
        data = (X.data != 0) & (np.abs(X.data) < _PART * (high - low)[X.indices])
        return csr_array((data, X.indices, X.indptr), X.shape)
    return (X != 0) & (np.abs(X) < _PART * (high - low))


def _not_finite(values: Array) -> Marks:
    return np.asarray(~np.isfinite(values))


def _where(values: Any, test: Any) -> Any:
    """Which entries pass a test; of a sparse array only those that it holds."""
    return (
        csr_array((test(values.data), values.indices, values.indptr), values.shape)
        if issparse(values)
        else test(values)
    )


def subsample(rows: Rows | Stream, stride: int) -> Rows | Stream:
    """One of so many rows, by their public places, before anybody writes over them."""
    if isinstance(rows, Rows):
        return _strided(stride, rows)
    if not rows.maps and rows.source.keeps and (stride > 1 or rows.source.local):
        return rows.taken(np.arange(0, rows.n, stride))
    sample = replace(rows, beside=None).each(partial(_strided, stride), rows.d)
    return Rows.joined(list(sample.over(Rows.bare))) if rows.source.local else sample


def _strided(stride: int, rows: Rows) -> Rows:
    part = rows.part(slice(-rows.first % stride, None, stride))
    X: Any = part.X
    return replace(part, X=X.toarray() if issparse(X) else X.copy())


def counts_by_outcome(rows: Rows | Stream, model: Any) -> Array:
    """How many rows of each class the model predicts right, then how many of each wrong."""
    size = 2 * len(model.classes_)

    def outcomes(block: Rows) -> NDArray[Any]:
        if block.y is None or not block.n:
            return np.zeros(size)
        codes = block.y.astype(np.intp)
        found = [model.steady_labels(block.X[part]) for part in blocks(*block.X.shape)]
        wrong = np.concatenate(found) != model.classes_[codes]
        return np.bincount((codes + size // 2 * wrong)[block.weight > 0], minlength=size)

    return np.asarray(fold(Counts(size, outcomes), rows), dtype=np.float64)


def altered_counts(rows: Rows | Stream, size: int) -> Array:
    """How many rows have each property; 0 where nobody has looked."""
    if not size:
        return np.empty(0)
    if isinstance(rows, Rows):
        return np.asarray(marks_added(size, rows), dtype=np.float64)
    if rows.altered is not None:
        return rows.altered
    counted = [] if rows.beside is None else rows.beside[1]
    if counted and np.isfinite(known := np.sum(counted, axis=0)).all():
        return np.asarray(known, dtype=np.float64)
    return np.asarray(fold(Counts(size, partial(marks_added, size)), rows), dtype=np.float64)


def marks_on_the_way(size: int, block: Rows) -> NDArray[Any]:
    """The marks of a block, added up; no numbers if they were lost."""
    return np.full(size, np.nan) if block.marks is None else marks_added(size, block)


def marks_added(size: int, block: Rows) -> NDArray[Any]:
    """The marks of a block, added up; none where it has no rows."""
    return np.zeros(size) if block.marks is None else truths(block.marks)
