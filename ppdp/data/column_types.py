"""What the type of a column says of its cells; it is public, so that no cell is looked at."""

from __future__ import annotations

import re
from typing import Any


def kind_of(dtype: Any) -> str:
    """What the type of a column says of its cells: "number", "boolean", "date", "text", "unknown" or "none" of these.

    Examples
    --------
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
