"""What imputers of one value per column share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.core.checks import number
from ppdp.core.domain import Domain
from ppdp.data.rows import Rows
from ppdp.data.statistics import clip_norms
from ppdp.data.summary import incomplete

__all__ = ["MissingMargin", "fill", "missing_limit"]

Array = NDArray[np.float64]


def missing_limit(max_missing: Any, domain: Domain, stage: object) -> int:
    """Most rows that may have gaps: the smaller of what the imputer and the domain declare."""
    if max_missing is None:
        return domain.missing_rows
    number("max_missing", max_missing, stage, least=0)
    return min(domain.missing_rows, domain.but(max_missing=max_missing).missing_rows)


def fill(X: Array, values: Array, norm: float | None) -> Array:
    """Put one value per column into gaps, and clip rows to their norm."""
    if not np.isnan(X.sum()):
        return X
    filled = np.where(np.isnan(X), values, X)
    return clip_norms(filled, norm, out=filled)


@dataclass(frozen=True, slots=True)
class MissingMargin:
    """Margin of "at most ``limit`` rows have gaps"."""

    limit: int

    def __call__(self, rows: Rows, unit: float) -> float:
        room = self.limit + 1 - incomplete(rows)
        if unit == 0:  # neighbouring datasets have as many, too many or not
            return math.inf if room > 0 else 0.0
        return room / unit
