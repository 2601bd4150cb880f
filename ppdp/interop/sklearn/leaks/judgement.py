"""What an estimator tells: by its class, its parameters, and the functions among them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ppdp.core.callables import calls_in
from ppdp.interop.sklearn.leak import UNKNOWN, Leak, worst
from ppdp.interop.sklearn.leaks.functions import leak_of_function
from ppdp.interop.sklearn.leaks.own import STRANGERS, leak_of_own, leak_of_pipeline
from ppdp.interop.sklearn.table import RESAMPLES, TABLE

__all__ = ["is_whole", "leak_of", "leak_of_container", "root_of"]

OF_ROWS = {"func", "inverse_func", "function", "utility"}
"""Parameters whose function takes a table of rows."""
WHOLE = {("sklearn", "FrozenEstimator"), ("ppdp", "Public"), ("ppdp", "Diffprivlib")}
"""Classes that say all about what they hold."""


def root_of(estimator: Any) -> str:
    """The library that its class is from."""
    return str(type(estimator).__module__).partition(".")[0]


def is_whole(estimator: Any) -> bool:
    """Whether what it holds is no stage of its own."""
    return (root_of(estimator), type(estimator).__name__) in WHOLE


def leak_of(estimator: Any, *, covered: bool = False) -> Leak:
    """What is known of an estimator, its parameters taken into account; nothing fitted is looked at.

    Functions among its parameters are looked into and run on made-up rows.

    Parameters
    ----------
    estimator : estimator
        Of scikit-learn, imbalanced-learn, ppdp or anybody.
    covered : bool, default=False
        Whether it stands in a ppdp pipeline.
    """
    kind, root = type(estimator), root_of(estimator)
    if root == "imblearn" and hasattr(kind, "fit_resample"):
        return RESAMPLES
    try:
        given = estimator.get_params(deep=False)
    except Exception:  # it is broken, or only looks like one of scikit-learn's
        return UNKNOWN
    if root == "ppdp":
        leak = leak_of_own(estimator, given, covered=covered)
    elif root == "sklearn" and kind.__name__ in TABLE:
        leak = TABLE[kind.__name__].leak_with(given)
    else:
        return STRANGERS if covered and _is_stage(estimator) else UNKNOWN
    if leak.severity == "high":
        return leak
    functions = [
        leak_of_function(function, of_rows=name in OF_ROWS)
        for name, function in calls_in(given, deep=is_whole(estimator))
    ]
    return worst([leak, *functions, *_no_functions(kind.__name__, given)])


def _no_functions(name: str, given: Mapping[str, Any]) -> list[Leak]:
    """A function that cannot be called cannot be judged."""
    func = given.get("func") if name == "FunctionTransformer" else None
    return [UNKNOWN] if func is not None and not callable(func) else []


def _is_stage(estimator: Any) -> bool:
    from ppdp.mechanisms.base import Mechanism
    from ppdp.transformers.base import Stage

    return isinstance(estimator, Stage | Mechanism)


def leak_of_container(estimator: Any) -> Leak | None:
    """What a container adds to what it holds; None if nothing.

    Parameters
    ----------
    estimator : estimator
        A pipeline, union or column transformer.
    """
    if root_of(estimator) != "ppdp":
        return None
    try:
        return leak_of_pipeline(estimator.get_params(deep=False))
    except Exception:  # its members will be reported as unreadable
        return None
