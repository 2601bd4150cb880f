"""The door between a user's data and private rows: public form first, then values.

Errors about the public form (shape, schema, kind of column) come first and cost nothing. What values are is
looked at last, and never shows in an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import check_consistent_length
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from ppdp.domain import Domain
from ppdp.exceptions import InvalidInput, InvalidParameter, InvalidValue, NonNumericData
from ppdp.frames import cells, numbers, readable
from ppdp.rows import encode_labels, encode_targets
from ppdp.statistics import clip_norms

__all__ = ["check_features", "check_labels", "read_classes", "repaired_labels", "repaired_targets", "repaired_values"]

Array = NDArray[np.float64]


# How scikit-learn's messages begin that speak of shapes and columns only.
_PUBLIC_MESSAGES = (
    "Complex data",
    "Found array",
    "Expected 2D",
    "X has",
    "Found input",
    "Unable",
    "Number of",
    "y should be a 1d array",
    "Sparse data",
    "Input should have",
)


def check_features(estimator: Any, X: Any, *, reset: bool) -> Array:
    """Float64 matrix from arrays, pandas, polars or Arrow; remembers columns if ``reset``.

    Raises
    ------
    NonNumericData
        If a column does not hold numbers.
    InvalidInput
        If shape or columns are wrong.
    """
    X = readable(X)
    if issparse(X):
        raise InvalidInput("Sparse data was passed, but sparse X is not supported: pass a dense array or frame.")
    if hasattr(X, "columns"):
        _check_names(list(X.columns))
    if hasattr(X, "columns") and hasattr(X, "notna") and "object" in [str(kind) for kind in X.dtypes]:
        X = X.where(X.notna(), np.nan)  # pandas' own missing value in a column of objects
    result = (
        None
        if _holds_times(X)
        else _quietly(lambda: validate_data(estimator, X, dtype=np.float64, ensure_all_finite=False, reset=reset))
    )
    if isinstance(result, np.ndarray):
        return result
    if result is not None:
        raise InvalidInput(result)
    names = [str(name) for name in getattr(X, "columns", ()) if not _is_numeric(X[name])]
    where = f"the column(s) {', '.join(names)} do" if names else "X does"
    raise NonNumericData(
        f"{where} not hold numbers; each argument must be a string or a number that float() reads.",
        fix="encode them by a public rule first, or leave them out.",
    )


def _check_names(names: list[Any]) -> None:
    """Names of columns are public, and all columns have one or none has."""
    if len(set(names)) < len(names):
        again = sorted({str(name) for name in names if names.count(name) > 1})
        raise InvalidInput(f"several columns have the same name: {', '.join(again)}.", fix="rename them.")
    if len({isinstance(name, str) for name in names}) > 1:
        raise InvalidInput(
            "some columns are named by strings and some are not.", fix="X.columns = X.columns.astype(str)."
        )


def _quietly(check: Callable[[], Array]) -> Array | str | None:
    """Run scikit-learn's check; its errors may quote a value, so they are not chained.

    Returns the array, a message in public words, or None if something is not a number.
    """
    try:
        return check()
    except Exception as error:  # a cell's own conversion may raise anything
        message = str(error)
    if message.startswith("The feature names"):
        return message
    first = message.splitlines()[0].rstrip(":")  # what follows quotes the data
    if first.startswith("Expected 2D array"):
        return f"{first}. Reshape your data."
    return first if first.startswith(_PUBLIC_MESSAGES) else None


def _holds_times(X: Any) -> bool:
    """Whether a column holds dates or durations, which would silently become numbers."""
    kinds = list(X.dtypes) if hasattr(X, "columns") else [getattr(X, "dtype", "")]
    return any(str(kind).lower().startswith(("date", "time", "duration", "period", "<m8")) for kind in kinds)


def _is_numeric(column: Any) -> bool:
    if _holds_times(column):
        return False
    try:
        np.asarray(column, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        return False
    return True


def check_labels(X: Array, y: Any, estimator: Any) -> NDArray[Any]:
    """One label per row.

    Every label is read by itself: what type NumPy would give a list, or Arrow and polars a column with gaps, depends
    on all of them.

    Raises
    ------
    InvalidInput
        If y is missing or has another length or shape.
    """
    if y is None:
        raise InvalidInput(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is None."
        )
    try:
        y = column_or_1d(cells(y), warn=True)
        check_consistent_length(X, y)
    except Exception as error:
        message = str(error).splitlines()[0].rstrip(":")  # what follows quotes the data
    else:
        return np.asarray(y)
    raise InvalidInput(message if message.startswith(_PUBLIC_MESSAGES) else "y must be a column of labels.")


def read_classes(y: NDArray[Any]) -> tuple[Any, ...]:
    """Labels found in y: private, so the certificate becomes conditional.

    Raises
    ------
    InvalidInput
        If y does not hold classes.
    """
    message = None
    try:
        y = np.asarray(y.tolist()) if y.dtype == object else y
        classes = np.unique(y)
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            message = "Input y contains NaN or infinity."
        else:
            check_classification_targets(y)
    except (ValueError, TypeError):
        message = "Unknown label type: y must hold classes of one kind, not a continuous target."
    if message is not None:
        raise InvalidInput(message)
    if len(classes) < 2:
        raise InvalidParameter(
            "y must hold at least two classes, not one class.", fix="pass classes=(a, b) to the model."
        )
    return tuple(classes.tolist())


def repaired_values(X: Array, domain: Domain, *, gaps: bool, invalid: str) -> Array:
    """Check values, or repair them row by row; then clip rows to what is declared.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Values.
    domain : Domain
        Facts at the entrance.
    gaps : bool
        Whether NaN is a declared gap.
    invalid : {"error", "repair"}
        What to do with other values.

    Raises
    ------
    InvalidValue
        Under "error", without saying where.
    """
    if invalid == "error":
        if np.isinf(X).any():
            raise InvalidValue("Input X contains infinity.", fix="remove it by a public rule, or use invalid='repair'.")
        if not gaps and np.isnan(X).any():
            raise InvalidValue(
                "Input X contains NaN, and no step fills gaps.", fix="add MeanImputer(), or use invalid='repair'."
            )
    else:
        X = np.where(np.isinf(X), np.nan if gaps else 0.0, X)
        if not gaps:
            X = np.where(np.isnan(X), 0.0, X)
    if domain.entry_bound is not None:
        X = np.clip(X, -domain.entry_bound, domain.entry_bound)
    return np.ascontiguousarray(clip_norms(X, domain.row_norm))


def repaired_labels(y: NDArray[Any], classes: tuple[Any, ...], invalid: str) -> Array:
    """Codes of the labels; any other label is an error, or counts as the first class.

    Raises
    ------
    InvalidInput
        If y holds another kind of labels altogether: text and not numbers, or numbers and not text.
    InvalidValue
        Under "error", without saying which.
    """
    text = {isinstance(label, str) for label in classes}
    if len(text) == 1 and y.dtype.kind != "O" and (y.dtype.kind in "US") not in text:
        wanted = "text" if True in text else "numbers"
        raise InvalidInput(
            f"y must hold {wanted}, as the declared classes do.", fix="convert y, or declare its classes."
        )
    codes = encode_labels(y, classes)
    unknown = np.isnan(codes)
    if unknown.any():
        if invalid == "error":
            raise InvalidValue(
                "a label is not one of the declared classes.", fix="declare all classes, or use invalid='repair'."
            )
        codes[unknown] = 0.0
    return codes


def repaired_targets(y: NDArray[Any], y_range: tuple[float, float], invalid: str) -> Array:
    """Targets clipped to their public range, as :func:`ppdp.rows.encode_targets` has them.

    NaN and infinity are an error, or count as the centre of the range.

    Raises
    ------
    InvalidInput
        If y does not hold numbers.
    InvalidValue
        Under "error", without saying where.
    """
    if y.dtype.kind in "mM":
        raise InvalidInput("y must hold numbers, not dates.")
    targets, readable = numbers(y)
    if invalid == "error" and not readable:
        raise InvalidInput("y must hold numbers, to learn a regression.")
    finite = np.isfinite(targets)
    if invalid == "error" and not finite.all():
        raise InvalidValue(
            "Input y contains NaN or infinity.", fix="remove it by a public rule, or use invalid='repair'."
        )
    return encode_targets(np.where(finite, targets, np.nan), y_range)
