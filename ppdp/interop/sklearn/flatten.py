"""Pipelines inside pipelines as one list of steps."""

from __future__ import annotations

from typing import Any

from ppdp.exceptions import InvalidParameter
from ppdp.interop.sklearn.parameters import Step

__all__ = ["DEEPEST", "flattened", "named_parts"]

DEEPEST = 50  # pipelines inside pipelines


def flattened(name: str, estimator: Any, depth: int = 0) -> list[Step]:
    """The steps of a pipeline of scikit-learn or imbalanced-learn, also in it; steps that only pass are gone.

    Raises
    ------
    InvalidParameter
        If steps are no list of (name, estimator), or nested without end.
    """
    if estimator is None or (isinstance(estimator, str) and estimator == "passthrough"):
        return []
    if type(estimator).__name__ == "Pipeline" and type(estimator).__module__.startswith(("sklearn.", "imblearn.")):
        if depth > DEEPEST:
            raise InvalidParameter("a pipeline contains itself, or too many others.", fix="one list of steps.")
        inner = named_parts(name, "steps", estimator.get_params(deep=False)["steps"], "(name, estimator)")
        return [
            step for label, one in inner for step in flattened(f"{name}-{label}" if name else label, one, depth + 1)
        ]
    return [Step((name or type(estimator).__name__.lower()).replace(".", "-").replace("__", "-"), estimator)]


def named_parts(name: str, parameter: str, parts: Any, form: str) -> list[Any]:
    """What a container of scikit-learn holds.

    Raises
    ------
    InvalidParameter
        If it is no list of tuples of this form with a string in front.
    """
    size = form.count(",") + 1
    listed = list(parts) if isinstance(parts, (list, tuple)) else [None]
    if all(isinstance(part, (list, tuple)) and len(part) == size and isinstance(part[0], str) for part in listed):
        return listed
    raise InvalidParameter(f"{parameter} must be a list of {form}.", stage=name or None, fix="names are strings.")
