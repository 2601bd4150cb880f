"""Tables in and out: pandas, polars, Arrow and NumPy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["arrow_table", "cells", "numbers", "readable"]


def readable(X: Any) -> Any:
    """The same table in a form that scikit-learn reads with column names and gaps in every supported version."""
    if type(X).__module__.startswith(("pyarrow", "polars")) and hasattr(X, "to_pandas"):
        return X.to_pandas()
    return X


def arrow_table(X: Any, names: Sequence[str]) -> Any:
    """An Arrow table of an array's columns."""
    import pyarrow as pa

    return pa.table([pa.array(column) for column in X.T], names=[str(name) for name in names])


def cells(y: Any) -> Any:
    """A column in a form whose type does not depend on what stands in single cells."""
    if type(y).__module__.startswith("polars"):
        y = y.to_arrow()
    if type(y).__module__.startswith("pyarrow"):
        y = y.to_pandas(integer_object_nulls=True)
    if hasattr(y, "iloc") and y.ndim == 2 and y.shape[1] == 1:
        y = y.iloc[:, 0]
    if hasattr(getattr(y, "dtype", None), "na_value"):  # pandas' own types, which scikit-learn would make floats
        return np.asarray(y, dtype=object)
    if isinstance(y, Sequence) and not hasattr(y, "__array__") and not isinstance(y, (str, bytes)):
        return np.fromiter((_inner(cell) for cell in y), dtype=object, count=len(y))
    return y


def _inner(cell: Any) -> Any:
    """What stands in a cell of a column that is written as a list of lists."""
    return cell[0] if isinstance(cell, (list, tuple)) and len(cell) == 1 else cell


def numbers(y: NDArray[Any]) -> tuple[NDArray[np.float64], bool]:
    """Every cell as float64, NaN where it holds no number, and whether every cell could be read."""
    try:
        return np.asarray(y, dtype=np.float64), True
    except Exception:  # a cell's own conversion may raise anything, and quotes it
        return np.frompyfunc(_number, 1, 1)(y).astype(np.float64), False


def _number(cell: Any) -> float:
    try:
        return float(np.asarray(cell, dtype=np.float64))
    except Exception:
        return math.nan
