"""What stands for a step, by the table of classes: a public map, a stage or a model; else it is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn

from ppdp.core.domain import Domain
from ppdp.exceptions import MissingBound, UnknownStage
from ppdp.interop.sklearn.leaks import leak_of
from ppdp.interop.sklearn.parameters import Step, is_word
from ppdp.interop.sklearn.public_maps import Constant, Declared
from ppdp.interop.sklearn.public_maps import constant as constant_of
from ppdp.interop.sklearn.table import TABLE
from ppdp.transformers.columns.categories import Categorical, labels_only
from ppdp.transformers.columns.maps import PublicMap

__all__ = ["STAGES", "is_public", "model_twin", "public_map", "refuse_unknown", "role_of", "stage_twin"]

STAGES = ("imputer", "scaler", "components", "projection")
"""Roles of stages that see the rows or draw a map of all columns."""


def role_of(step: Step) -> str:
    """What becomes of its class: see :class:`~ppdp.interop.sklearn.leak.Known`."""
    return TABLE[step.kind].role if step.kind in TABLE else ""


def _twin_of(step: Step) -> Callable[..., Any]:
    twin = TABLE[step.kind].twin
    assert twin is not None
    return twin


def is_public(step: Step) -> bool:
    """Whether it becomes a public map of each row."""
    constant = step.kind == "SimpleImputer" and is_word(step.given()["strategy"], "constant")
    return constant or role_of(step).startswith("map")


def public_map(steps: list[Step], columns: Any, declared: Declared) -> tuple[PublicMap, ...]:
    """The maps of some public steps, one after the other.

    Parameters
    ----------
    steps : list of Step
        Of which :func:`is_public` holds.
    columns : object
        The columns to which they apply, as in a ``ColumnTransformer``; None is all.
    declared : Declared
        What the user declares.

    Raises
    ------
    InvalidParameter
        If a parameter has no twin.
    """
    maps: list[PublicMap] = []
    constant: Constant | None = None  # what stands behind it tells whether gaps are among labels or among numbers
    for step in steps:
        made = (
            constant_of(step, columns, declared)
            if step.kind == "SimpleImputer"
            else _twin_of(step)(step, columns, declared)
        )
        if made is None or (isinstance(made, Constant) and constant is not None):  # the first one leaves no gap
            continue
        if isinstance(made, Constant):
            constant = made
            continue
        if isinstance(made, Categorical) and _has_labels(made):
            if maps:
                step.refuse(
                    "its categories are text, and what stands before it makes numbers.",
                    "put it first, or declare its categories as numbers.",
                )
            made = made if constant is None else replace(made, gap=constant.label(made), expects=True)
        elif constant is not None:
            maps.append(constant.of_numbers())
        constant = None
        maps.append(made)
    return tuple(maps if constant is None else [*maps, constant.of_numbers()])


def _has_labels(encoder: Categorical) -> bool:
    """Whether some of its categories are text."""
    return any(isinstance(label, str) for one in encoder.categories for label in labels_only(one))


def stage_twin(step: Step, n_rows: int | None) -> Any:
    """The stage that stands for a transformer that is fitted to rows."""
    return _twin_of(step)(step, n_rows)


def model_twin(step: Step, domain: Domain, classes: Any, y_range: Any) -> Any:
    """The mechanism that learns what a model of scikit-learn learns.

    Parameters
    ----------
    step : Step
        The model.
    domain : Domain
        What is declared elsewhere.
    classes : sequence of labels or None
        Public labels, for classifiers.
    y_range : pair or None
        Public range of the targets, for regressors.

    Raises
    ------
    InvalidParameter
        If a parameter has no twin.
    MissingBound
        If a regressor's targets have no public range.
    """
    twin = _twin_of(step)(step, classes, y_range)
    if hasattr(twin, "classes") and classes is None and domain.classes is None:
        step.changed.append("labels will be read from y: CONDITIONAL; pass classes=(...)")
    if getattr(twin, "y_range", ()) is None and domain.y_range is None:
        raise MissingBound(
            "the public range of the targets is not declared.",
            stage=step.name,
            fix="Pipeline.from_sklearn(pipe, y_range=(low, high), ...).",
        )
    return twin


def refuse_unknown(step: Step) -> NoReturn:
    """Say that the class has no twin, what it would leak, and what to do."""
    leak, kind = leak_of(step.estimator), type(step.estimator).__name__
    if type(step.estimator).__module__.partition(".")[0] == "ppdp":
        fix = f"scikit-learn's {kind} here, or ppdp.Pipeline with steps of ppdp's, each of which sees all columns."
        raise UnknownStage(
            f"this {kind} is already ppdp's class; from_sklearn takes scikit-learn's here.",
            stage=step.name,
            fix="use it as it is: pipe.fit(X, y)." if hasattr(step.estimator, "plan") else fix,
        )
    inside = [one for one in step.estimator.get_params().values() if hasattr(one, "get_params")]
    leaks = f" Fitted without noise it leaks {leak.leaks}." if leak.severity != "none" else ""
    if not leaks and inside:
        leaks = f" The {type(inside[0]).__name__} in it is fitted to the rows."
    raise UnknownStage(f"{kind} has no twin here.{leaks}", stage=step.name, fix=leak.fix)
