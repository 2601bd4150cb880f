"""Stages that act on some of the columns and leave the others as they are: ``docs/theory/standard-scaling.md``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any

from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import sane, whole
from ppdp.core.rounding import inflate

StabilityMap = Callable[..., tuple[Domain, Distance]]


def entries_of(domain: Domain, columns: Sequence[int] | None) -> Domain:
    """The domain of some entries of every row, of norm ``min(R, b √c)``; None are all columns."""
    if columns is None:
        return domain
    sane(len(set(columns)) == len(columns) >= 1 and all(whole(c) and 0 <= c < domain.d for c in columns))
    return domain.but(n_features=len(columns), feature_names=None, row_norm=_norm(domain, len(columns)))


def _norm(domain: Domain, count: int) -> float:
    """Most that so many entries of a row can be long."""
    norm = float(domain.require("row_norm"))
    return min(norm, (domain.entry_bound or norm) * math.sqrt(count))


def for_columns(function: StabilityMap) -> StabilityMap:
    """Stability of a stage that may act on ``columns`` alone, from its stability on all of them.

    Rows are matched as before. What moves in the columns and what had moved beside them are orthogonal.
    """

    @wraps(function)
    def joined(
        domain: Domain, distance: Distance, *, columns: Sequence[int] | None = None, **parameters: Any
    ) -> tuple[Domain, Distance]:
        if columns is None:
            return function(domain, distance, **parameters)
        made, far = function(entries_of(domain, columns), distance, **parameters)
        beside, within = _norm(domain, domain.d - len(columns)), float(made.require("row_norm"))
        norm = inflate(math.hypot(within, beside))
        entry = None if made.entry_bound is None else max(made.entry_bound, min(domain.entry_bound or beside, beside))
        radius = min(inflate(math.hypot(far.radius, distance.radius)), 2 * norm)
        total = min(inflate(far.total + distance.total), far.moved * radius)
        return domain.but(row_norm=norm, entry_bound=entry), replace(far, radius=radius, total=total)

    return joined


def release_of_columns(function: Callable[..., float]) -> Callable[..., float]:
    """Sensitivity of statistics of ``columns`` alone, from that of statistics of all of them."""

    @wraps(function)
    def restricted(
        domain: Domain, distance: Distance, *, columns: Sequence[int] | None = None, **parameters: Any
    ) -> float:
        return function(entries_of(domain, columns), distance, **parameters)

    return restricted
