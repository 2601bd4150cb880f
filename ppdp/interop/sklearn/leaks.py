"""What an estimator tells about the rows: by its class, its parameters, and the functions among them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ppdp.core.closure_inspection import captured_by, declared_of, functions_in, library_name
from ppdp.interop.sklearn.known_estimators import KNOWN, NOTHING, RESAMPLES, SEVERITIES, UNKNOWN, Given, Leak
from ppdp.mechanisms.base import Mechanism
from ppdp.transformers.base import Stage
from ppdp.transformers.rowwise.probe import made_up_rows, quiet

OF_ROWS = {"func", "inverse_func", "function", "utility"}  # parameters whose function takes a table of rows
WHOLE = {("sklearn", "FrozenEstimator"), ("ppdp", "Public"), ("ppdp", "Diffprivlib")}
"""Classes that say all about what they hold."""
FITS = {
    "scale": "StandardScaler",
    "zscore": "StandardScaler",
    "minmax_scale": "MinMaxScaler",
    "maxabs_scale": "MaxAbsScaler",
    "robust_scale": "RobustScaler",
    "quantile_transform": "QuantileTransformer",
    "power_transform": "PowerTransformer",
    "label_binarize": "LabelBinarizer",
    "get_dummies": "OneHotEncoder",
    "factorize": "OrdinalEncoder",
}
"""Functions that do what a class of scikit-learn does when it is fitted."""
_BY_LABELS = {"label_binarize", "get_dummies", "factorize"}  # of which numbers show nothing

_CARRIED = Leak(
    "high",
    "whatever the estimator in its function was fitted on",
    "Public",
    "Public(transformer) if those were public data.",
)
_MIXED = Leak(
    "high",
    "other rows: a made-up row came out differently among them, or when it was mapped again",
    fix="a function of one row at a time, without memory and random numbers; for means, ranges or categories the stage "
    "that reads them: StandardScaler, MinMaxScaler(ranges=...), OneHotEncoder(categories=...).",
)
_ROW_WISE = Leak("none", NOTHING, "RowMap", "RowMap(function, out_ranges=...).")

_COVERED = Leak("none", "nothing that its certificate does not cover")
_INTO = "put it into ppdp.Pipeline(..., epsilon=..., delta=...): alone it is exact, and no certificate covers it."
_LAST = "make it the last step of ppdp.Pipeline(..., epsilon=..., delta=...), which sets the noise and accounts for it."
_SEEDED = Leak(
    "high",
    "what its noise is to hide: the noise comes from a seed, and anyone who knows the seed takes it away",
    fix="random_state=None.",
)
_UNTESTED = Leak(
    "declared",
    "nothing, if what its bounds assume of the rows holds: gate=None, so it is not tested",
    fix="leave gate out, and it is tested.",
)
_PERSONS = Leak(
    "declared",
    "nothing, if rows of one id are one person's, and splits for training and testing keep persons whole",
    fix="GroupKFold or another group-wise splitter, with the ids as groups of splits and fits.",
)
_DIFFPRIVLIB = Leak(
    "declared",
    "nothing, if diffprivlib's model does what it says: not checked, and the certificate is CONDITIONAL",
    fix="one of ppdp.mechanisms.",
)
_STRANGERS = Leak(
    "declared",
    "nothing, if the bound that its author has registered is right: not checked",
    fix="ppdp.testing tries to exceed it.",
)


def root_of(estimator: Any) -> str:
    """The library that its class is from."""
    return str(type(estimator).__module__).partition(".")[0]


def is_whole(estimator: Any) -> bool:
    """Whether what it holds is no stage of its own."""
    return (root_of(estimator), type(estimator).__name__) in WHOLE


def leak_of(estimator: Any, *, covered: bool = False) -> Leak:
    """What is known of an estimator by its parameters, functions run on made-up rows; ``covered`` by a certificate."""
    kind, root = type(estimator), root_of(estimator)
    if root == "imblearn" and hasattr(kind, "fit_resample"):
        return RESAMPLES
    try:
        given = estimator.get_params(deep=False)
    except Exception:  # it is broken, or only looks like one of scikit-learn's
        return UNKNOWN
    if root == "ppdp":
        leak = _leak_of_own(estimator, given, covered)
    elif root == "sklearn" and kind.__name__ in KNOWN:
        try:
            leak = KNOWN[kind.__name__].leak_with(given)
        except Exception:  # a parameter of a type that scikit-learn does not take
            return UNKNOWN
    else:
        return _STRANGERS if covered and isinstance(estimator, Stage | Mechanism) else UNKNOWN
    if leak.severity == "high":
        return leak
    functions = [
        leak_of_function(function, of_rows=name in OF_ROWS)
        for name, function in functions_in(given, deep=is_whole(estimator))
    ]
    func = given.get("func") if kind.__name__ == "FunctionTransformer" else None
    unread = [UNKNOWN] if func is not None and not callable(func) else []
    return max([leak, *functions, *unread], key=lambda leak: SEVERITIES.index(leak.severity))


def leak_of_function(function: Callable[..., Any], *, of_rows: bool) -> Leak:
    """What a user's function tells, arguments as ``partial(function, ...)``; one of a table is run on made-up rows."""
    if captured_by(function).estimator is not None:
        return _CARRIED
    name = library_name(getattr(function, "func", function)).rpartition(".")[2]
    mixes = _mixes_rows(function) if of_rows else None
    if of_rows and name in FITS and (mixes is not False or name in _BY_LABELS):
        known = KNOWN[FITS[name]].leak
        return replace(known, leaks=f"{known.leaks}, by {name}", fix=f"{known.fix.rstrip('.')}, in place of {name}.")
    if mixes:
        return _MIXED
    held = declared_of(function)
    if held is None and mixes is False:
        return _ROW_WISE
    unless = [*([held] if held else []), *(["its function treats rows one by one"] if of_rows else [])]
    if not unless:
        return _ROW_WISE
    return Leak(
        "declared",
        f"nothing, if {' and '.join(unless)}: not checked",
        "RowMap",
        "make sure of it; in a ppdp pipeline the certificate says that you declared it.",
    )


def _mixes_rows(function: Callable[..., Any]) -> bool | None:
    """Whether a made-up row comes out differently alone than among others; None if no made-up row is taken."""
    with quiet():
        for width in (3, 2, 1):
            rows = made_up_rows(width, gaps=False)
            try:
                tried = copy.deepcopy(function)  # so that an object with a memory stays as it is
                together = _as_table(tried(rows.copy()))
                if len(together) != len(rows):
                    return True
                alone = [_as_table(tried(row[None, :].copy())) for row in rows]
            except (Exception, SystemExit):  # a user's function may raise anything
                continue
            return [len(one) for one in alone] != [1] * len(rows) or not _agree(together, np.concatenate(alone))
    return None


def _as_table(out: Any) -> Any:
    out = np.asarray(out.toarray() if hasattr(out, "toarray") else out)
    return out.reshape(len(out), -1) if out.ndim else out.reshape(1, 1)


def _agree(together: Any, alone: Any) -> bool:
    """Whether results are the same, up to the rounding of sums in another order."""
    if together.shape != alone.shape or not np.issubdtype(together.dtype, np.number):
        return bool(np.array_equal(together.astype(str), alone.astype(str)))
    size = np.nan_to_num(np.abs(together), nan=0.0, posinf=0.0).max(axis=1, keepdims=True, initial=0.0)
    return bool(np.isclose(together, alone, rtol=0.0, atol=1e-9 * size, equal_nan=True).all())


def _leak_of_own(estimator: Any, given: Given, covered: bool) -> Leak:
    """What is known of a stage, a mechanism or a search of ppdp."""
    name = type(estimator).__name__
    if name == "Public":
        inner = given.get("transformer")
        inner = getattr(inner, "estimator", inner) if type(inner).__name__ == "FrozenEstimator" else inner
        told = f"nothing, if its {type(inner).__name__} was fitted on public data: not checked"
        return Leak("declared", told, fix="make sure of it; the certificate says that you declared it.")
    if "noise_scale" in given:
        return _mechanism(name, given, covered)
    if name == "PrivateSearchCV":
        return _SEEDED if given.get("random_state") is not None else _COVERED
    if covered:
        return _COVERED
    severity, leaks = getattr(estimator, "leakage", (UNKNOWN.severity, UNKNOWN.leaks))
    if severity == "none":
        return Leak(severity, leaks)
    return Leak(severity, f"{leaks}; without noise, outside a ppdp.Pipeline", name, _INTO)


def _mechanism(name: str, given: Given, covered: bool) -> Leak:
    """A pipeline sets the noise and draws it itself; alone, a mechanism takes what its parameters say."""
    if covered:
        known = _DIFFPRIVLIB if name == "Diffprivlib" else _COVERED
        unused = [word for word in ("noise_scale", "random_state") if given.get(word) is not None]
        return replace(known, leaks=f"{known.leaks}; not used here: {', '.join(unused)}") if unused else known
    if given.get("random_state") is not None:
        return replace(_SEEDED, counterpart=name, fix=f"random_state=None, and {_LAST}")
    scale = given.get("noise_scale")
    noise = "noise of a size that is not set" if scale is None else f"noise of size {scale!r}, which you chose"
    return Leak("high", f"its answer with {noise}: not accounted for outside a ppdp.Pipeline", name, _LAST)


def leak_of_container(estimator: Any) -> Leak | None:
    """What a pipeline, union or column transformer adds to what it holds; None if nothing."""
    if root_of(estimator) != "ppdp":
        return None
    try:
        given = estimator.get_params(deep=False)
    except Exception:  # its members will be reported as unreadable
        return None
    if given.get("random_state") is not None:
        return _SEEDED
    if given.get("gate", "auto") is None:
        return _UNTESTED
    facts = (given.get(name) for name in ("adjacency", "domain"))
    persons = (getattr(getattr(said, "adjacency", said), "bounds_contributions", False) for said in facts)
    return _PERSONS if any(persons) else None
