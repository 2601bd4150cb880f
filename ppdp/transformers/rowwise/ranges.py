"""Public ranges of columns, in the forms that people write them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ppdp.core.declared import PRIVATE
from ppdp.core.domain import Domain
from ppdp.core.names import alike, unquoted
from ppdp.data.rows import Array
from ppdp.exceptions import DomainMismatch, InvalidParameter, MissingBound

RISING: tuple[Callable[..., Any], ...] = (
    *(np.sqrt, np.cbrt, np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p, np.tanh, np.arctan),
    *(np.sinh, np.arcsinh, np.floor, np.ceil, np.rint, np.deg2rad, np.rad2deg),
)
"""Functions of numbers that never fall, so that the ends of a range become those of another."""

_UNDECLARED = "a range for every column of numbers, (0, 1) for truth values; for text the steps of ppdp.declare(X)."
_REACHED = 0.02  # share of a public range that values must be able to reach: less is a slip of units
LEAST_WIDTH = 1e-300  # of a public range: what is divided by it is to be finite


def with_private(ranges: Any, n_features: int, names: tuple[str, ...] | None, stage: str) -> tuple[Array, list[int]]:
    """The table of :func:`resolve_ranges`, and the positions of columns whose range is ``"private"``, 0 to 1 in it."""
    if isinstance(ranges, str):
        if ranges != PRIVATE:
            what = 'ranges must hold (low, high) pairs, or be "private".'
            raise InvalidParameter(what, stage=stage, fix="ranges={column: (0, 10)}.", parameter="ranges")
        ranges = [PRIVATE] * n_features
    if not has_private(ranges):
        return resolve_ranges(ranges, n_features, names, stage), []
    if isinstance(ranges, Mapping):
        ranges = _by_column(ranges, n_features, names, stage, "ranges")
    public = [(0.0, 1.0) if _private(value) else value for value in ranges]
    columns = [position for position, value in enumerate(ranges) if _private(value)]
    return resolve_ranges(public, n_features, names, stage), columns


def has_private(ranges: Any) -> bool:
    """Whether the range of some column is ``"private"``."""
    several = ranges.values() if isinstance(ranges, Mapping) else ranges if isinstance(ranges, list | tuple) else ()
    return _private(ranges) or any(map(_private, several))


def _private(value: Any) -> bool:
    return isinstance(value, str) and value == PRIVATE


def resolve_ranges(
    ranges: Any, n_features: int, names: tuple[str, ...] | None, stage: str, parameter: str = "ranges"
) -> Array:
    """Array of shape (n_features, 2) from a mapping by column, one pair for all, or a pair per column."""
    if ranges is None:
        fix = f"{parameter}={{column: (low, high)}} from public knowledge, not from the data."
        raise MissingBound(f"{parameter} is not declared.", stage=stage, fix=fix, parameter=parameter)
    if hasattr(ranges, "columns"):
        what = f"{parameter} is a table, whose lines may lie in another order than the columns."
        fix = f"{parameter}={{name: (low, high) for name, low, high in table.itertuples()}}, public ones."
        raise InvalidParameter(what, stage=stage, fix=fix, parameter=parameter)
    by_column = isinstance(ranges, Mapping)
    if isinstance(ranges, Mapping):
        ranges = _by_column(ranges, n_features, names, stage, parameter)
    try:
        table = np.asarray([] if _words(ranges) else ranges, dtype=np.float64)
    except Exception:  # an integer beyond float64; a class of the user's own
        table = np.empty(0)
    if by_column and n_features == 0:
        table = np.empty((0, 2))
    if table.shape == (2,) and not by_column:
        table = np.tile(table, (n_features, 1))
    if table.ndim != 2 or table.shape[1:] != (2,):
        what = f"{parameter} must hold (low, high) pairs of numbers."
        fix = f"{parameter}=(0, 10) for all columns, or {parameter}={{column: (0, 10)}}."
        fix = f"{fix[:-1]}; of dates DateEncoder({{column: (first, last)}})." if _words(ranges) else fix
        raise InvalidParameter(what, stage=stage, fix=fix, parameter=parameter)
    if table.shape[0] != n_features:
        what = f"{parameter} has {table.shape[0]} pairs for {n_features} columns."
        fix = f"{parameter}={{column: (low, high), ...}} for those of numbers, or one pair per column."
        raise DomainMismatch(what, stage=stage, fix=fix, parameter=parameter)
    with np.errstate(all="ignore"):
        widths = table[:, 1] - table[:, 0]
    if (wrong := ~(np.isfinite(table).all(axis=1) & np.isfinite(widths) & (widths > LEAST_WIDTH))).any():
        labels = names or range(n_features)
        which = ", ".join(repr(labels[i]) for i in np.flatnonzero(wrong))
        what = f"{parameter} of {which} must be finite with low < high."
        fix = f"{parameter}={{column: (0, 10)}}, two finite numbers for each column, the lower one first"
        tiny = (np.isfinite(widths[wrong]) & (widths[wrong] > 0)).any()
        fix = f"{fix}; ends closer than {LEAST_WIDTH} in another unit." if tiny else f"{fix}."
        raise InvalidParameter(what, stage=stage, fix=fix, parameter=parameter)
    return table


def check_reached(table: Array, domain: Domain, stage: str, parameter: str = "ranges") -> None:
    """Refuse ranges of which rows reach nearly nothing by the public bounds in front: all values would be the same."""
    bound = min(domain.row_norm or math.inf, domain.entry_bound or math.inf)
    low, high = table.T
    beyond = np.flatnonzero(np.minimum(high, bound) - np.maximum(low, -bound) < _REACHED * (high - low))
    if beyond.size == 0:
        return
    names = domain.feature_names or tuple(f"x{i}" for i in range(len(table)))
    which = ", ".join(repr(names[i]) for i in beyond)
    raise InvalidParameter(
        f"{parameter} of {which} lie outside of the bound on what comes in, or nearly so: all values would become the"
        " same.",
        stage=stage,
        fix=f"{parameter} in the units of the rows at this step; put the stage in front of what scales them.",
        parameter=parameter,
    )


def _words(ranges: Any) -> bool:
    """Whether text or truth values stand where numbers should."""
    if isinstance(ranges, (list, tuple)):
        return any(map(_words, ranges))
    return isinstance(ranges, (str, bytes, bool, np.bool_))


def _by_column(
    ranges: Mapping[Any, Any], n_features: int, names: tuple[str, ...] | None, stage: str, parameter: str
) -> list[Any]:
    """The ranges of a mapping, in the order of the columns."""
    try:
        named = {str(key): value for key, value in ranges.items()}
        unnamed = set(ranges) <= set(range(n_features))
    except Exception:  # of a class of the user's own
        named, unnamed = {}, False
    if len(named) < len(ranges):
        what = f"{parameter} must go by names or positions of columns, once each."
        raise InvalidParameter(what, stage=stage, fix="names, as X.columns has them.", parameter=parameter)
    if names is None and not unnamed:
        what = f"{parameter} goes by column names, and the data have none, or none that are text."
        fix = unquoted(parameter, ranges, range(n_features)) or "pass a frame whose X.columns are text, not X.T."
        raise DomainMismatch(what, stage=stage, fix=fix, parameter=parameter)
    names = names or tuple(str(position) for position in range(n_features))
    missing = [name for name in names if name not in named]
    if missing or len(names) != n_features:
        others = [name for name in named if name not in names]
        indexed = any(name.startswith("__index_level_") for name in missing)
        placed = bool(missing) and bool(others) and all(map(str.isdigit, missing)) and not any(map(str.isdigit, others))
        raise DomainMismatch(
            f"{parameter} lacks the columns {missing or 'of unnamed data'}.",
            stage=stage,
            fix=f"columns by name: {others}."
            if placed
            else "an index is among the columns: X.to_parquet(path, index=False)."
            if indexed
            else alike(others, missing) or _UNDECLARED,
            parameter=parameter,
        )
    return [named[name] for name in names]
