"""Labels, ids and weights beside a table: whether they are a column of it, or in another order."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ppdp.core.boundary import outside
from ppdp.data.frames import cells
from ppdp.exceptions import DiagnosticWarning

OTHERS = 0.1  # of the labels
MOST = 8  # classes in one line
_ORDER = (
    "the index of {0} is not that of X, and rows are taken by their places. Fix: {0}.loc[X.index], for the order of X;"
    " or {0}.to_numpy(), if that is their order."
)
_NAME = (
    "{0} is called {1!r}, as a column of X is, which stays among the features. Fix: X.drop(columns={1!r}), or another"
    " name for one of them."
)


def warn_of_names(X: Any, steps: Sequence[Any], beside: Mapping[str, Any]) -> None:
    """Warn of labels, ids and weights that are called as a feature is; names are public."""
    try:
        taken = getattr(steps[0][1], "named_columns", lambda: None)()
        features = set(X.columns if taken is None else taken)
        called = {which: _name(column) for which, column in beside.items()}
        found = [(which, name) for which, name in called.items() if isinstance(name, str) and name in features]
    except Exception:  # of what has no columns, or does not keep to its own form
        return
    for which, name in found:
        warnings.warn(_NAME.format(which, name), DiagnosticWarning, stacklevel=outside())


def warn_of_order(X: Any, invalid: str, beside: Mapping[str, Any]) -> None:
    """Warn of another index than that of the table, behind a fit.

    An index is a part of the rows: one that is wrong in few of them may tell of these, as an error does. So where
    invalid values are repaired, nobody looks at it.
    """
    import pandas as pd

    index = getattr(X, "index", None)
    for which, column in beside.items() if invalid == "error" and isinstance(index, pd.Index) else ():
        own = getattr(column, "index", None)
        if isinstance(own, pd.Index) and not _same(index, own):
            warnings.warn(_ORDER.format(which), DiagnosticWarning, stacklevel=outside())


def _same(index: Any, own: Any) -> bool:
    try:
        return bool(index.equals(own))
    except Exception:  # a label's own code may raise anything
        return True


def _name(column: Any) -> Any:
    """The name of a column of pandas or polars, or of the only one in a frame."""
    columns = getattr(column, "columns", None)
    return getattr(column, "name", None) if columns is None or len(columns) != 1 else next(iter(columns))


def plain(y: Any) -> Any:
    """Labels as an array of their own type, where a list or objects hold labels of one type."""
    found = cells(y)
    try:
        if found.dtype == object and len({isinstance(label, str) for label in found}) == 1:
            return np.asarray(found.tolist())
    except Exception:  # a label's own code may raise anything
        pass
    return found


def warn_of_others(y: Any, classes: Any) -> None:
    """Warn of labels, to be compared with predictions, of which a tenth or more are none of the classes."""
    try:
        others = float(np.mean(~np.isin(y, classes)))
    except Exception:  # which is refused when they are compared
        return
    if others >= OTHERS:
        fix = f"labels among {', '.join(map(repr, classes.tolist()[:MOST]))}, as the model was fitted."
        told = f"{100 * others:.0f} % of the labels are none of the classes, which no prediction can be. Fix: {fix}"
        warnings.warn(told, DiagnosticWarning, stacklevel=outside())
