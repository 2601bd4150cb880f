"""Clipping rows to a public norm."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ppdp.bounds.release import SHORTENED
from ppdp.core.checks import length
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.altered import Property, shortened
from ppdp.data.rows import Rows
from ppdp.data.statistics import clip_norms
from ppdp.data.unit_conversion import Columns
from ppdp.transformers.base import RowWiseTransformer, Statistics
from ppdp.transformers.fit_mode import FitMode


@dataclass(eq=False, repr=False)
class NormClipper(RowWiseTransformer):
    """Project every row on a ball of public radius. Bounds the rows; costs nothing.

    Parameters
    ----------
    max_norm : float, default=1.0
        Largest norm of a row, over its observed entries.

    Attributes
    ----------
    max_norm_ : float
        The parameter, checked.

    Notes
    -----
    **Guarantee** (``docs/theory/row-wise.md``): 1-Lipschitz, moves nothing.

    Examples
    --------
    >>> import numpy as np
    >>> NormClipper(max_norm=5.0).fit_transform(np.array([[6.0, 8.0], [1.0, 0.0]])).round(6)
    array([[3., 4.],
           [1., 0.]])
    """

    max_norm: float = 1.0

    bounds_rows = True
    takes_sparse = "keeps"
    keeps_columns = True
    statistic_names = ("max_norm",)

    def fit_modes(self, domain: Domain, distance: Distance) -> tuple[FitMode, ...]:
        norm = length("max_norm", self.max_norm, self)
        return (FitMode.by("row-wise.norm-clip", domain, distance, max_norm=norm),)

    def prepare(self, rows: Rows, way: FitMode, domain: Domain) -> Statistics:
        return {"max_norm": way.parameters["max_norm"]}

    def alters(self, domain: Domain) -> tuple[Property, ...]:
        bounded = domain.row_norm is not None and domain.row_norm <= self.max_norm * (1 + 1e-9)
        return () if bounded else (Property(SHORTENED),)

    def altered(self, X: Any, domain: Domain) -> Any:
        return shortened(X, self.max_norm)

    def simulated(self, n: int, domain: Domain, rng: np.random.Generator) -> Any:
        return rng.standard_normal((n, domain.d)) * (0.7 * self.max_norm / math.sqrt(domain.d))

    def units(self, columns: Columns) -> Columns:
        return columns.noted(f"rows clipped to norm {self.max_norm_:.6g}")

    def map_rows(self, X: Any, statistics: Statistics) -> Any:
        return clip_norms(X, statistics["max_norm"])
