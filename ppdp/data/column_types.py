"""What the type of a column says of its cells, which is public; and columns of dates as seconds since 1970."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_SECONDS = {"Y": 366 * 86_400, "M": 31 * 86_400, "W": 604_800, "D": 86_400, "h": 3_600, "m": 60, "s": 1, "ms": 1e-3}
NESTED = ("fixed_size_list", "large_list", "list", "map", "struct")
"""Types of Arrow whose cells hold several values."""
_PER_MICROSECOND = {"ns": 10**3, "ps": 10**6, "fs": 10**9, "as": 10**12}
_LAST = 9.2e12  # seconds between 1970 and what 64 bits of microseconds can hold, a little less


def kind_of(dtype: Any) -> str:
    """What the type of a column says of its cells: "number", "boolean", "date", "text", "unknown" or "none" of these.

    >>> import numpy as np
    >>> [kind_of(np.dtype(name)) for name in ("int8", "bool", "datetime64[s]", "O", "complex64")]
    ['number', 'boolean', 'date', 'unknown', 'none']
    """
    name, kind = str(dtype).lower(), getattr(dtype, "kind", "O")
    if kind == "b":
        return "boolean"
    if kind in "iuf" or name.startswith("decimal"):
        return "number"
    if name.startswith(("datetime", "timestamp", "date32", "date64")) or kind == "M":
        return "date"
    if name == "str" or name.startswith(("string", "large_string", "category", "dictionary")) or kind == "U":
        return "text"
    return "unknown" if name == "object" else "none"


def is_of_a_library(dtype: Any) -> bool:
    """Whether a type is of NumPy or pandas, and not of a user, whose arrays hold any objects."""
    return dtype is None or isinstance(dtype, np.dtype) or type(dtype).__module__.partition(".")[0] == "pandas"


def type_of_values(dtype: Any) -> Any:
    """The type of the categories of a column of categories; that of any other column itself."""
    stored = getattr(getattr(dtype, "pyarrow_dtype", None), "value_type", None)
    if stored is not None and str(dtype).startswith("dictionary"):
        import pandas as pd

        return pd.ArrowDtype(stored)
    return getattr(getattr(dtype, "categories", None), "dtype", dtype)


def described(dtype: Any) -> str:
    """A type in a few letters: one of categories would list them, one of bytes tells how long the longest is."""
    return re.sub(r"^([SUV])\d+$", r"\1", re.split(r"[\[<]", str(dtype).lstrip("<|>="))[0])


def chunks_of(column: Any) -> list[Any]:
    """The parts of a column of Arrow in pandas' hands."""
    import pyarrow as pa

    held = pa.array(column)  # older versions give chunks, of which there may be none
    return held.chunks if isinstance(held, pa.ChunkedArray) else [held]


def seconds_of_instants(column: Any) -> tuple[Array, Mask]:
    """Instants in seconds since 1970, those with a zone in UTC, NaN if missing; and which are too far away."""
    kind = column.dtype
    if hasattr(kind, "pyarrow_dtype"):
        import pyarrow as pa

        held = pa.chunked_array(chunks_of(column), kind.pyarrow_dtype)
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
    if unit in _PER_MICROSECOND:  # NumPy's way to microseconds goes round at the first ones
        steps, parts = instants.astype(np.int64), _PER_MICROSECOND[unit]
        whole = (steps // parts * step + steps % parts * step // parts).astype("datetime64[us]")
        return np.where(np.isnat(instants), np.datetime64("NaT"), whole), np.zeros(instants.shape, dtype=np.bool_)
    farthest = _LAST / (_SECONDS.get(unit, 0.0) * step) if unit in _SECONDS else math.inf
    far = ~np.isnat(instants) & (np.abs(instants.astype(np.int64).astype(np.float64)) > farthest)
    return np.where(far, np.datetime64("NaT"), instants).astype("datetime64[us]"), far
