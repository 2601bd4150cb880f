"""What stands beside a table: labels, ids and weights of rows, in arrays or as columns of it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ppdp.core.boundary import outside, suppressed
from ppdp.core.checks import length, number
from ppdp.core.domain import Domain
from ppdp.core.keywords import instead_of
from ppdp.data.cells import numbers, plain_labels
from ppdp.data.column_types import kind_of, type_of_values
from ppdp.data.deferred_input import DeferredTable
from ppdp.data.frames import cells, column
from ppdp.data.rows import Array, Rows
from ppdp.exceptions import (
    DiagnosticWarning,
    InvalidInput,
    InvalidParameter,
    InvalidValue,
    PpdpError,
    UnknownParameter,
    UnsupportedOrder,
)


def weights_of(params: Mapping[str, Any], steps: Any) -> Any:
    """The weights among further parameters of a fit, by their name alone or with that of the last of the steps."""
    named = isinstance(steps, (list, tuple)) and steps and isinstance(steps[-1], (list, tuple)) and len(steps[-1]) == 2
    names = ["sample_weight", *([f"{steps[-1][0]}__sample_weight"] if named else [])]
    for name in params:
        if name not in names:
            known = {"X", "y", "groups", "sample_weight"} - {name}  # a search has no groups
            fix = instead_of(name.rpartition("__")[2], known)
            raise UnknownParameter(f"fit has no parameter {name!r}.", fix=fix)
    found = [value for value in params.values() if value is not None]
    if len(found) > 1:
        raise UnknownParameter("fit has two parameters of weights.", fix="sample_weight=... alone.")
    return found[0] if found else None


def heaviest(domain: Domain | None, X: Any) -> Array | None:
    """The largest weight for each row; None where rows have no weights."""
    if domain is None or domain.max_weight is None:
        return None
    return np.full(X.shape[0] if hasattr(X, "shape") else len(X), domain.max_weight)


def check_weights(X: Any, weights: Any, domain: Domain) -> Any:
    """One weight per row of ``X`` where a largest one is declared, and none elsewhere: a column, by its form alone."""
    if weights is None:
        if domain.max_weight is not None:
            what = "max_weight is declared, and no row has a weight."
            raise InvalidInput(what, fix="fit(X, y, sample_weight=...), or no max_weight.")
        return None
    domain.require("max_weight", "sample_weight")
    try:
        found = X.empty(weights) if isinstance(X, DeferredTable) else column(weights)
        kind, sized = found.dtype, found.ndim == 1 and not issparse(found)
        matched = isinstance(X, DeferredTable) or len(found) == np.shape(X)[0]
    except PpdpError:
        raise
    except Exception:  # of a container that does not keep to its own form
        kind, sized, matched = None, False, False
    if not sized:
        raise InvalidInput("sample_weight must be a column of weights.", fix="one number for every row of X.")
    if getattr(kind, "kind", "O") in "cmMV" or kind_of(type_of_values(kind)) == "none":
        raise InvalidInput("sample_weight must hold real numbers.", fix="a column of numbers.")
    if not matched:
        raise InvalidInput("sample_weight must have one weight for every row of X.", fix="weights of the same rows.")
    return found


def check_weighing(domain: Domain, stages: Sequence[tuple[str, Any]], mechanism: tuple[str, Any] | None) -> None:
    """Refuse weights of rows that the last step does not know, and stages by which a row would get another's."""
    if domain.max_weight is None:
        return
    if mechanism is None or not mechanism[1].weighs:
        what = "rows have weights, and the last step takes none."
        fix = "a linear model of ppdp.mechanisms as the last step, or no max_weight and sample_weight."
        raise UnsupportedOrder(what, stage=None if mechanism is None else mechanism[0], fix=fix)
    for name, stage in stages:
        if stage.compares:
            what = "it compares rows without their weights, so which weight stays would be anybody's."
            raise UnsupportedOrder(what, stage=name, fix="leave it out, or sample_weight.")


def read_weights(weights: Any, most: float, invalid: str) -> tuple[Array, NDArray[np.bool_]]:
    """Weights as parts of the largest one, and which were clipped or repaired; an error does not say where."""
    read = numbers(weights)
    values = read.values.ravel()
    proper = np.isfinite(values) & (values >= 0) & ~read.improper.ravel()
    if invalid == "error" and not proper.all():
        what = "a weight in sample_weight is missing, negative, infinite or no number."
        fix = "weights of at least 0 by a public rule; on_invalid='repair' leaves such rows out of the loss."
        raise InvalidValue(what, fix=fix, parameter="sample_weight")
    kept = np.where(proper, values, 0.0)
    return np.minimum(kept / most, 1.0), ~proper | (kept > most)


def check_some_weight(rows: Rows, invalid: str) -> Rows:
    """The rows, of which some weigh something; else nothing is learned, which is an error unless it is repaired."""
    if invalid == "error" and rows.factor is not None and rows.n and not rows.factor.any():
        what = "all weights in sample_weight are 0."
        raise InvalidValue(what, fix="weights above 0 for the rows to learn from.", parameter="sample_weight")
    return rows


def class_factors(class_weight: Any, classes: Sequence[Any], stage: str) -> tuple[tuple[float, ...], float]:
    """Public weights as parts of the largest one, in the order of the classes, 1 where none is named; and that one."""
    if not isinstance(class_weight, Mapping):
        what = "class_weight must be a mapping of labels to weights, 'balanced' or None."
        fix = "class_weight={'a': 1.0, 'b': 5.0}, or 'balanced'."
        raise InvalidParameter(what, stage=stage, fix=fix, parameter="class_weight")
    if any(label not in classes for label in class_weight):
        what = "class_weight names a label that is none of the classes."
        fix = f"labels among {', '.join(map(repr, classes))}."
        raise InvalidParameter(what, stage=stage, fix=fix, parameter="class_weight")
    weights = [number("class_weight", class_weight.get(label, 1.0), stage, least=0, most=1e100) for label in classes]
    largest = length("the largest of class_weight", max(weights), stage)
    if sum(weight > 0 for weight in weights) < 2:
        what = "class_weight leaves one class with a weight above 0, and nothing is learned of the others."
        fix = "weights above 0, for at least two classes."
        raise InvalidParameter(what, stage=stage, fix=fix, parameter="class_weight")
    return tuple(one / largest for one in weights), largest


def balanced_factors(counts: Array, error: float) -> tuple[tuple[float, ...], float]:
    """The same from released numbers of rows of each class, of this standard error: ``n / (k count)``.

    A class of fewer rows than their noise counts as if it had so many: what is noise makes no class heavy.
    """
    counts = np.maximum(counts, max(error, 1.0))
    weights = counts.sum() / (len(counts) * counts)
    return tuple((weights / weights.max()).tolist()), float(weights.max())


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
    for which, given in beside.items() if invalid == "error" and isinstance(index, pd.Index) else ():
        own = getattr(given, "index", None)
        if isinstance(own, pd.Index) and not _same(index, own):
            warnings.warn(_ORDER.format(which), DiagnosticWarning, stacklevel=outside())


def _same(index: Any, own: Any) -> bool:
    try:
        return bool(index.equals(own))
    except Exception:  # a label's own code may raise anything
        return True


def _name(column: Any) -> Any:
    """The name of a column of pandas or polars, or of the only one in a frame."""
    columns = column.columns if hasattr(type(column), "columns") else None  # pandas looks other names up in the index
    return getattr(column, "name", None) if columns is None or len(columns) != 1 else next(iter(columns))


def plain(y: Any) -> Any:
    """Labels as an array of their own type, where a list or objects hold labels of one type."""
    found = cells(y)
    if found.dtype != object:
        return found
    labels = plain_labels(found)
    with suppressed():  # a number beyond those of NumPy
        if len({type(label) is str for label in labels}) == 1:
            return np.asarray(labels.tolist())
    return labels


def warn_of_others(y: Any, classes: Any) -> None:
    """Warn of labels, to be compared with predictions, of which a tenth or more are none of the classes.

    Where one of both is text or bytes and the other is not, they are refused.
    """
    others, made, told = 0.0, classes.dtype.kind, ", ".join(map(repr, classes.tolist()[:MOST]))
    given, words = y.dtype.kind, {"U": "text", "S": "bytes"}
    if given != "O" and words.get(given) != words.get(made):
        what = f"y holds {words.get(given, 'numbers')}, which cannot be compared with the classes {told}."
        cast = f"y.astype({type(classes[0].item()).__name__}), or labels spelled as these."
        fix = "y == '...', with the text that stands for True." if made == "b" else cast
        fix = "[label.decode() for label in y], and labels spelled as these." if given == "S" else fix
        raise InvalidInput(what, fix=fix)
    with suppressed():  # what cannot be compared is refused later
        others = float(np.mean(~np.isin(y, classes)))
    if others >= OTHERS:
        fix = f"labels among {told}, as the model was fitted."
        what = f"{100 * others:.0f} % of the labels are none of the classes, which no prediction can be. Fix: {fix}"
        warnings.warn(what, DiagnosticWarning, stacklevel=outside())
