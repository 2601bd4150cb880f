"""Changing the sign of every number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.transformers.base import RowWiseTransformer, Statistics
from ppdp.transformers.fit_mode import FitMode


@dataclass(eq=False, repr=False)
class Negator(RowWiseTransformer):
    """Change the sign of every number. Costs nothing.

    Notes
    -----
    **Guarantee** (``docs/theory/negation.md``): moves nothing.

    Examples
    --------
    >>> import numpy as np
    >>> Negator().fit_transform(np.array([[6.0, -8.0]]))
    array([[-6.,  8.]])
    """

    keeps_columns = True

    def fit_modes(self, domain: Domain, distance: Distance) -> tuple[FitMode, ...]:
        return (FitMode.by("negation.rows", domain, distance),)

    def map_rows(self, X: Any, statistics: Statistics) -> Any:
        return -X
