"""Splines of columns, by public knots."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.preprocessing import SplineTransformer

from ppdp.core.checks import integer
from ppdp.data.rows import Array
from ppdp.transformers.columns.maps import ColumnFacts, PublicMap, few

MOST_KNOTS = 1000


@dataclass(frozen=True)
class Splines(PublicMap):
    """Splines of a public degree with equal steps between knots over the public range of each column.

    They are never negative, and those of a column add up to 1. Missing values stay missing in all of them.
    """

    n_knots: int = 5
    degree: int = 3
    include_bias: bool = True
    step: str = ""
    bounds = True
    sized = True

    def facts(self, given: ColumnFacts) -> ColumnFacts:
        knots = integer("n_knots", self.n_knots, self.step, least=2, most=MOST_KNOTS)
        own = knots - 2 + integer("degree", self.degree, self.step, least=0, most=10) + bool(self.include_bias)
        width = len(given.bounded(self.step).names)
        few(width * own, self.step)
        names = tuple(f"{name}_sp_{i}" for name in given.names for i in range(own))
        return ColumnFacts(names, np.tile([0.0, 1.0], (width * own, 1)), float(width))

    def apply(self, X: Array, given: ColumnFacts) -> Array:
        low, high = given.ranges.T
        made = SplineTransformer(n_knots=self.n_knots, degree=self.degree, include_bias=self.include_bias)
        made.fit(np.vstack([low, np.where(high > low, high, low + 1.0)]))
        gaps = np.isnan(X)
        splines = made.transform(np.where(gaps, low, X))
        return np.where(np.repeat(gaps, splines.shape[1] // X.shape[1], axis=1), np.nan, splines)
