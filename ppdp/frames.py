"""Tables in and out: pandas, polars, Arrow and NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["arrow_table", "readable"]


def readable(X: Any) -> Any:
    """The same table in a form that scikit-learn reads with column names and gaps in every supported version."""
    if type(X).__module__.startswith(("pyarrow", "polars")) and hasattr(X, "to_pandas"):
        return X.to_pandas()
    return X


def arrow_table(X: Any, names: Sequence[str]) -> Any:
    """An Arrow table of an array's columns."""
    import pyarrow as pa

    return pa.table([pa.array(column) for column in X.T], names=[str(name) for name in names])
