"""Gaps that become the category that most rows hold, by noisy counts: ``docs/theory/released-modes.md``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ppdp.data.rows import Array
from ppdp.data.unit_conversion import Columns
from ppdp.transformers.columns.categories import Categorical, OrdinalCodes, targets_of
from ppdp.transformers.columns.maps import ColumnFacts, PublicMap


@dataclass(frozen=True)
class FillMode(PublicMap):
    """A gap becomes the category that most rows of its column hold; an encoder of the categories stands behind it."""

    values: tuple[tuple[float, ...], ...]  # the categories of every column as the numbers that its cells become
    modes: tuple[float, ...] | None = None  # those that were released; the first category until then
    fills = True
    expects = True

    @classmethod
    def before(cls, encoder: Categorical | OrdinalCodes) -> FillMode:
        """What stands in front of an encoder of public categories."""
        lists = encoder.categories if isinstance(encoder, Categorical) else encoder.labels
        found = ([value for value in targets_of(categories) if not math.isnan(value)] for categories in lists)
        return cls(tuple(tuple(sorted(values)) for values in found))

    def knowing(self, modes: Sequence[float | None]) -> FillMode:
        """The same with the modes of its columns; None where none was released."""
        found = (own[0] if mode is None else mode for own, mode in zip(self.values, modes))
        return FillMode(self.values, tuple(found))

    def facts(self, given: ColumnFacts) -> ColumnFacts:
        return given

    def units(self, columns: Columns, given: ColumnFacts, out: ColumnFacts) -> Columns:
        return columns

    def apply(self, X: Array, given: ColumnFacts) -> Array:
        modes = [own[0] for own in self.values] if self.modes is None else self.modes
        return np.where(np.isnan(X), modes, X)
