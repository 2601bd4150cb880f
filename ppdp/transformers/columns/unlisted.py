"""Columns of categories that nobody declared: how wide they become is public, which ones there are is released."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ppdp.data.categories import MISSING
from ppdp.data.rows import Array
from ppdp.data.unit_conversion import Codes, Columns
from ppdp.transformers.columns.categories import beside
from ppdp.transformers.columns.cell_parsers import TextParser
from ppdp.transformers.columns.maps import ColumnFacts, PublicMap

FOUND = "found in the rows, with noise"


@dataclass(frozen=True)
class Unlisted(PublicMap):
    """A column of 0 and 1 for each of up to ``most`` categories, or their positions; anything else is a further one.

    Until categories are released they are called by numbers, and columns that no category needs are 0.
    """

    most: int
    hot: bool = True
    other: str | None = None  # name of the category that anything else is
    missing: str | None = None  # name of the category of missing values
    found: tuple[tuple[str, ...], ...] | None = None  # the categories of every column
    bounds = True
    fills = True
    reads = True
    reads_cells = True

    def reading(self, position: int) -> TextParser:
        return TextParser(self.most, self.other, self.missing, () if self.found is None else self.found[position])

    @property
    def _further(self) -> list[str]:
        return [name for name in (self.other, self.missing) if name is not None]

    def told(self, names: Sequence[str]) -> Iterable[tuple[str, str]]:
        return [(f"most categories of {name}", str(self.most)) for name in names]

    def _labels(self, position: int) -> Iterator[str]:
        """Names of the categories of one column, and of places that none has."""
        if self.found is None:
            own = [f"{i}" for i in range(1, self.most + 1)]
        else:
            own = [*self.found[position], *(f"unused_{i}" for i in range(len(self.found[position]) + 1, self.most + 1))]
        used: set[str] = set()
        for label in [*own, *self._further]:
            while label in used or (label in self._further and len(used) < self.most):
                label += "_"
            used.add(label)
            yield label

    def facts(self, given: ColumnFacts) -> ColumnFacts:
        if not self.hot:
            most = self.most + len(self._further) - 1.0
            return ColumnFacts.within(given.names, np.array([(-1.0, max(1.0, most))] * len(given.names)))
        names = [f"{name}_{label}" for i, name in enumerate(given.names) for label in self._labels(i)]
        return ColumnFacts(tuple(names), np.tile([0.0, 1.0], (len(names), 1)), float(len(given.names)), indicators=True)

    def units(self, columns: Columns, given: ColumnFacts, out: ColumnFacts) -> Columns:
        labels = [list(self._labels(i)) for i in range(len(given.names))]
        if self.hot:
            kinds = [Codes.indicator(label, name) for own, name in zip(labels, given.names) for label in own]
            return Columns.raw(out.names, "1 for this category", out.ranges, kinds)
        used = [self.most if self.found is None else len(found) for found in self.found or [()] * len(labels)]
        kinds = [Codes.of(own, **beside(self.other, self.missing)) for own in labels]
        kinds = [kind.without(range(count, self.most)) for kind, count in zip(kinds, used)]
        return Columns.raw(out.names, "codes of categories", out.ranges, kinds)

    def apply(self, X: Array, given: ColumnFacts) -> Array:
        other = -1.0 if self.other is None else float(self.most)
        gap = -1.0 if self.missing is None else float(self.most + (self.other is not None))
        codes = np.where(np.isnan(X) | (MISSING == X), gap, np.where((X < 0) | (self.most <= X), other, X))
        if not self.hot:
            return codes
        hot = codes[:, :, None] == np.arange(self.most + len(self._further))
        return hot.reshape(len(X), -1).astype(np.float64)
