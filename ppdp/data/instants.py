"""Columns whose type is one of dates, as microseconds and seconds since 1970."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_SECONDS = {"Y": 366 * 86_400, "M": 31 * 86_400, "W": 604_800, "D": 86_400, "h": 3_600, "m": 60, "s": 1, "ms": 1e-3}
_LAST = 9.2e12  # seconds between 1970 and what 64 bits of microseconds can hold, a little less


def seconds_of_instants(column: Any) -> tuple[Array, Mask]:
    """Instants of a column of dates in seconds since 1970, those with a zone in UTC; and which are too far away.

    These are infinite; a missing one is NaN.
    """
    kind = column.dtype
    if hasattr(kind, "pyarrow_dtype"):
        import pyarrow as pa

        held = pa.chunked_array(pa.array(column))
        instants = (held.cast(pa.timestamp(held.type.unit)) if pa.types.is_timestamp(held.type) else held).to_numpy()
    elif hasattr(column, "dt"):
        instants = (column if isinstance(kind, np.dtype) else column.dt.tz_convert(None)).to_numpy()
    else:
        instants = np.where(np.ma.getmaskarray(column), np.datetime64("NaT"), np.ma.getdata(column))
    held, improper = microseconds(instants)
    seconds = np.where(np.isnat(held), np.nan, held.astype(np.int64) / 1e6)
    return np.where(improper, np.inf, seconds), improper


def microseconds(instants: NDArray[np.datetime64]) -> tuple[NDArray[np.datetime64], Mask]:
    """Instants in microseconds, and which of them are too far away, where NumPy and Arrow would go round."""
    unit, step = np.datetime_data(instants.dtype)
    farthest = _LAST / (_SECONDS.get(unit, 0.0) * step) if unit in _SECONDS else math.inf
    far = ~np.isnat(instants) & (np.abs(instants.astype(np.int64).astype(np.float64)) > farthest)
    return np.where(far, np.datetime64("NaT"), instants).astype("datetime64[us]"), far
