"""Pipelines inside pipelines as lists of steps, and unions as branches that all take the same columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ppdp.core.checks import shown
from ppdp.exceptions import InvalidParameter, UnknownStage
from ppdp.interop.sklearn.parameters import Step

DEEPEST = 50  # pipelines inside pipelines
WEIGHTS = {"transformer_weights": "leave it out, and use feature_range of a MinMaxScaler."}


def flattened(name: str, estimator: Any, depth: int = 0) -> list[Step]:
    """The steps of a pipeline of scikit-learn or imbalanced-learn, also in it; steps that only pass are gone."""
    if estimator is None or (isinstance(estimator, str) and estimator == "passthrough"):
        return []
    if type(estimator).__name__ == "Pipeline" and type(estimator).__module__.startswith(("sklearn.", "imblearn.")):
        if depth > DEEPEST:
            raise InvalidParameter("a pipeline contains itself, or too many others.", fix="one list of steps.")
        inner = named_parts(name, "steps", estimator.get_params(deep=False)["steps"], "(name, estimator)")
        return [
            step for label, one in inner for step in flattened(f"{name}-{label}" if name else label, one, depth + 1)
        ]
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise UnknownStage(
            f"an estimator is needed, got {shown(estimator)}.", stage=name or None, fix="an instance of its class."
        )
    return [Step((name or type(estimator).__name__.lower()).replace(".", "-").replace("__", "-"), estimator)]


def named_parts(name: str, parameter: str, parts: Any, form: str) -> list[Any]:
    """What a container of scikit-learn holds: a list of tuples of this form, with a string in front."""
    listed = list(parts) if isinstance(parts, (list, tuple)) else [None]
    if all(is_named(part, form.count(",") + 1) for part in listed):
        return listed
    raise InvalidParameter(
        f"{parameter} must be a list of {form}.", stage=name or None, fix="names are strings.", parameter=parameter
    )


def is_named(part: Any, size: int) -> bool:
    """Whether it is a tuple of this size with a string in front; somebody else's class is not asked what it is."""
    return issubclass(type(part), list | tuple) and len(part) == size and issubclass(type(part[0]), str)


def branches(prefix: str, steps: list[Step], depth: int = 0) -> Iterator[tuple[str, list[Step]]]:
    """Chains of steps without a union in them, whose results side by side are that of these steps.

    What stands in front of a union stands in front of each of its parts. The prefix is put before the names of what
    comes out.
    """
    at = next((i for i, step in enumerate(steps) if step.kind == "FeatureUnion"), None)
    if at is None:
        yield prefix, steps
        return
    union, front, behind = steps[at], steps[:at], steps[at + 1 :]
    if depth > DEEPEST:
        raise InvalidParameter("a FeatureUnion contains itself, or too many others.", fix="one list of transformers.")
    if behind:
        union.refuse(
            f"{behind[0].name!r} stands behind it, and not behind all columns.",
            "put that into each part of the FeatureUnion, or behind everything.",
        )
    given = union.read("transformer_list", "verbose_feature_names_out", fixes=WEIGHTS)
    for name, one in named_parts(union.name, "transformer_list", given["transformer_list"], "(name, transformer)"):
        if isinstance(one, str) and one == "drop":
            continue
        own = f"{prefix}{name}__" if given["verbose_feature_names_out"] is True else prefix
        yield from branches(own, [*front, *flattened(name, one)], depth + 1)
