"""Words as numbers, to compare records outside a pipeline."""

from __future__ import annotations

from typing import Any

import numpy as np

from ppdp.data.rows import Array


def words_as_numbers(X: Any) -> Any:
    """A table with a number for each word, in their order; as it is if it holds none.

    Examples
    --------
    >>> words_as_numbers(np.array([["b", 1.0], ["a", 2.0]], dtype=object))
    array([[1., 1.],
           [0., 2.]])
    """
    if hasattr(X, "select_dtypes"):
        named = X.select_dtypes(exclude=["number", "bool"]).columns
        return X.assign(**{name: _codes(X[name].to_numpy(object)) for name in named}) if len(named) else X
    if getattr(getattr(X, "dtype", None), "kind", "") not in ("O", "U", "S") or np.ndim(X) != 2:
        return X
    return np.column_stack([_codes(column) for column in np.asarray(X, dtype=object).T])


def _codes(column: Any) -> Array:
    """Numbers as they are if there is nothing else; else places of words in order. Gaps stay gaps."""
    import pandas as pd

    gaps = np.asarray(pd.isna(column), dtype=bool)
    try:
        return np.where(gaps, np.nan, column).astype(np.float64)
    except ValueError:
        pass
    codes, found = pd.factorize(column)
    order = sorted(range(len(found)), key=lambda i: (type(found[i]).__name__, found[i]))
    place = np.empty(len(found) + 1)
    place[order], place[-1] = np.arange(len(found)), np.nan
    return np.asarray(place[codes])
