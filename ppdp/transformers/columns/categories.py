"""Public maps of columns that hold one of a few public categories."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.data.rows import Array
from ppdp.data.units import Columns
from ppdp.exceptions import InvalidParameter
from ppdp.transformers.columns.maps import ColumnFacts, PublicMap


def labels_only(categories: Sequence[Any]) -> tuple[Any, ...]:
    """Categories without the one that stands for a gap."""
    return tuple(c for c in categories if not is_gap(c))


def is_gap(category: Any) -> bool:
    """Whether a category stands for a gap."""
    return category is None or (isinstance(category, float) and math.isnan(category))


def _targets(categories: Sequence[Any]) -> list[float]:
    """The number by which each category is known: itself, or its position among labels that are no numbers."""
    labels = labels_only(categories)
    numeric = all(isinstance(c, (bool, int, float, np.number)) for c in labels)
    known = {c: float(c) if numeric else float(i) for i, c in enumerate(labels)}
    return [math.nan if is_gap(c) else known[c] for c in categories]


@dataclass(frozen=True)
class Categorical(PublicMap):
    """Public categories, a tuple for every column; gaps count as ``gap`` if that is one of them."""

    categories: tuple[tuple[Any, ...], ...]
    gap: Any = None
    expects: bool = False
    step: str = ""
    bounds = True

    def _of(self, given: ColumnFacts) -> tuple[tuple[Any, ...], ...]:
        if len(self.categories) != len(given.names):
            raise InvalidParameter(
                f"categories of {len(self.categories)} columns are declared for {len(given.names)} columns.",
                stage=self.step,
            )
        for categories in self.categories:
            self._check_distinct(categories)
        return self.categories

    def _check_distinct(self, categories: Sequence[Any]) -> None:
        """Refuse categories that repeat or are the same float: an entry is one of them at most."""
        try:
            known = [target for target in _targets(categories) if not math.isnan(target)]
            distinct = len(set(known)) == len(known)
        except (TypeError, OverflowError):  # what is no plain label, or larger than any float
            distinct = False
        if not distinct or sum(self._is_fallback(c) for c in categories) > 1:
            raise InvalidParameter(
                "categories must be distinct, whole numbers also as floats, and at most one stands for gaps.",
                stage=self.step,
                fix="name every category once, larger numbers than 2**53 as text.",
            )

    def _is_fallback(self, category: Any) -> bool:
        """Whether gaps count as it."""
        return is_gap(category) or (self.gap is not None and bool(category == self.gap))

    def _same(self, column: Array, categories: Sequence[Any]) -> NDArray[np.bool_]:
        """Which category every entry is, as an array of shape (n, n_categories)."""
        targets = np.array(_targets(categories))
        where = column[:, None] == targets
        fallback = [self._is_fallback(c) for c in categories]
        return np.where(np.isnan(column)[:, None], fallback, where)


@dataclass(frozen=True)
class OneHot(Categorical):
    """A column for every category but the dropped ones; anything else is a row of zeros."""

    dropped: tuple[Any, ...] = ()
    fills = True

    def _kept(self, position: int) -> list[int]:
        categories = self.categories[position]
        gone = self.dropped[position] if self.dropped else None
        return [i for i in range(len(categories)) if i != gone]

    def facts(self, given: ColumnFacts) -> ColumnFacts:
        self._of(given)
        names = [f"{name}_{self.categories[j][i]}" for j, name in enumerate(given.names) for i in self._kept(j)]
        return ColumnFacts(tuple(names), np.tile([0.0, 1.0], (len(names), 1)), float(len(given.names)))

    def units(self, columns: Columns, given: ColumnFacts, out: ColumnFacts) -> Columns:
        return Columns.raw(out.names, "1 for this category")

    def apply(self, X: Array, given: ColumnFacts) -> Array:
        parts = [self._same(column, c)[:, self._kept(j)] for j, (column, c) in enumerate(zip(X.T, self._of(given)))]
        return np.concatenate(parts, axis=1).astype(np.float64)


@dataclass(frozen=True)
class Encoded(Categorical):
    """The position of the category; ``unknown`` for anything else, and ``missing`` for gaps if it is no NaN."""

    unknown: float = 0.0
    missing: float = math.nan

    @property
    def fills(self) -> bool:  # type: ignore[override]
        """Whether gaps become something."""
        named = all(any(map(is_gap, categories)) for categories in self.categories)
        return named or self.gap is not None or not math.isnan(self.missing)

    def facts(self, given: ColumnFacts) -> ColumnFacts:
        extra = [self.unknown, *([] if math.isnan(self.missing) else [self.missing])]
        ends = [(min(0.0, *extra), max(len(c) - 1.0, *extra)) for c in self._of(given)]
        return ColumnFacts.within(given.names, np.array(ends))

    def units(self, columns: Columns, given: ColumnFacts, out: ColumnFacts) -> Columns:
        return Columns.raw(out.names, "codes of categories")

    def apply(self, X: Array, given: ColumnFacts) -> Array:
        out = []
        for column, categories in zip(X.T, self._of(given)):
            same = self._same(column, categories)
            code = np.where(same.any(axis=1), same.argmax(axis=1), self.unknown)
            out.append(np.where(np.isnan(column) & ~same.any(axis=1), self.missing, code))
        return np.column_stack(out)
