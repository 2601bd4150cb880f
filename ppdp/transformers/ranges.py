"""Public ranges of columns, in the forms that people write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.exceptions import DomainMismatch, InvalidParameter, MissingBound

__all__ = ["resolve_ranges"]


def resolve_ranges(
    ranges: Any, n_features: int, names: tuple[str, ...] | None, stage: str, parameter: str = "ranges"
) -> NDArray[np.float64]:
    """Array of shape (n_features, 2) from a mapping by column, one pair for all, or a pair per column.

    Raises
    ------
    MissingBound
        If no ranges are given.
    InvalidParameter
        If a range is empty, infinite or not a pair.
    DomainMismatch
        If columns lack a range or are unknown.
    """
    if ranges is None:
        raise MissingBound(
            f"{parameter} is not declared.",
            stage=stage,
            fix=f"{parameter}={{column: (low, high)}} from public knowledge, not from the data.",
        )
    if isinstance(ranges, Mapping):
        if names is None and not set(ranges) <= set(range(n_features)):
            raise DomainMismatch(
                f"{parameter} goes by column names, and the data have none.",
                stage=stage,
                fix="pass a frame, or a pair per column.",
            )
        named = {str(key): value for key, value in ranges.items()}
        names = names or tuple(str(position) for position in range(n_features))
        missing = [name for name in names if name not in named]
        if missing or len(names) != n_features:
            raise DomainMismatch(
                f"{parameter} lacks the columns {missing or 'of unnamed data'}.",
                stage=stage,
                fix="give every column a range.",
            )
        ranges = [named[name] for name in names]
    try:
        table = np.asarray(ranges, dtype=np.float64)
    except (TypeError, ValueError):
        table = np.empty(0)
    if table.shape == (2,):
        table = np.tile(table, (n_features, 1))
    if table.ndim != 2 or table.shape[1:] != (2,):
        raise InvalidParameter(f"{parameter} must hold (low, high) pairs.", stage=stage)
    if table.shape[0] != n_features:
        raise DomainMismatch(
            f"{parameter} has {table.shape[0]} pairs for {n_features} columns.",
            stage=stage,
            fix="one pair per column.",
        )
    with np.errstate(all="ignore"):
        widths = table[:, 1] - table[:, 0]
    if not (np.isfinite(table).all() and np.isfinite(widths).all() and (widths > 0).all()):
        raise InvalidParameter(f"every pair of {parameter} must be finite with low < high.", stage=stage)
    return table
