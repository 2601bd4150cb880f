"""What stands for a step, by the table of classes: a public map, a stage or a model; else it is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn

from sklearn.base import clone

from ppdp.exceptions import UnknownStage
from ppdp.interop.sklearn.facts import Facts
from ppdp.interop.sklearn.leaks.judgement import leak_of, root_of
from ppdp.interop.sklearn.parameters import Step, is_word
from ppdp.interop.sklearn.public_maps import Constant, constant
from ppdp.interop.sklearn.table import TABLE
from ppdp.mechanisms.base import Mechanism
from ppdp.transformers.base import Stage
from ppdp.transformers.columns.categories import Categorical, labels_only
from ppdp.transformers.columns.maps import PublicMap
from ppdp.transformers.columns.unlisted import Unlisted

STAGES = ("imputer", "scaler", "components", "projection")
"""Roles of stages that see the rows or draw a map of all columns."""


def role_of(step: Step) -> str:
    """What becomes of its class: see :class:`~ppdp.interop.sklearn.leak.Known`."""
    return TABLE[step.kind].role if step.kind in TABLE else ""


def is_public(step: Step) -> bool:
    """Whether it becomes a public map of each row."""
    return _is_constant(step) or role_of(step).startswith("map")


def _is_constant(step: Step) -> bool:
    return step.kind == "SimpleImputer" and is_word(step.given()["strategy"], "constant")


def _maker(step: Step) -> Callable[..., Any]:
    """What makes its twin."""
    make = constant if _is_constant(step) else TABLE[step.kind].make
    assert make is not None
    return make


def public_map(steps: list[Step], columns: Any, facts: Facts) -> tuple[PublicMap, ...]:
    """The maps of some public steps, one after the other, for columns as in a ``ColumnTransformer``; None is all."""
    maps: list[PublicMap] = []
    waiting: Constant | None = None  # what stands behind it tells whether gaps are among labels or among numbers
    for step in steps:
        with step.reading():
            made = _maker(step)(step, facts, columns)
        if made is None or (isinstance(made, Constant) and waiting is not None):  # the first one leaves no gap
            continue
        if isinstance(made, Constant):
            waiting = made
            continue
        if isinstance(made, Unlisted) or _has_labels(made):
            if maps:
                step.refuse(
                    "its categories are text, and what stands before it makes numbers.",
                    "put it first, or declare its categories as numbers.",
                )
            made = made if waiting is None else _with_gaps(made, waiting)
        elif waiting is not None:
            maps.append(waiting.of_numbers())
        waiting = None
        maps.append(made)
    return tuple(maps if waiting is None else [*maps, waiting.of_numbers()])


def _has_labels(made: PublicMap) -> bool:
    """Whether it has categories of which some are text."""
    lists = made.categories if isinstance(made, Categorical) else ()
    return any(isinstance(label, str) for one in lists for label in labels_only(one))


def _with_gaps(made: PublicMap, constant: Constant) -> PublicMap:
    """An encoder behind what puts a constant for gaps, which is one of its categories."""
    if isinstance(made, Unlisted):
        return replace(made, missing=constant.named())
    assert isinstance(made, Categorical)
    return replace(made, gap=constant.label(made), expects=True)


def twin_of(step: Step, facts: Facts, *, last: bool) -> Any:
    """What stands for a step that is no public map: a stage, or a mechanism that learns what the model learns."""
    role = role_of(step)
    if isinstance(step.estimator, (Stage, Mechanism)):
        return clone(step.estimator)  # what it was fitted to stays behind
    if role == "model" and not last:
        step.refuse("a model must be the last step.", "move it to the end.")
    if role in (*STAGES, "model"):
        with step.reading():
            twin = _maker(step)(step, facts)
        if role == "model":
            _check_answers(step, twin, facts)
        return twin
    if step.kind == "FeatureUnion":
        step.refuse(
            "a FeatureUnion has no twin behind a stage that looks at the rows.",
            "put that stage behind the FeatureUnion, for all columns, or give its columns to one stage only.",
        )
    if step.kind == "ColumnTransformer":
        step.refuse(f"a {step.kind} has no twin here.", "a ColumnTransformer with named columns, as the first step.")
    refuse_unknown(step)


def _check_answers(step: Step, twin: Any, facts: Facts) -> None:
    """Labels may be read from y, but a regressor's targets need a public range."""
    if hasattr(twin, "classes") and facts.classes is None and facts.domain.classes is None:
        facts.read.add("classes")
        step.changed.append("labels will be read from y: CONDITIONAL; pass classes=(...)")
    if getattr(twin, "y_range", ()) is None and facts.domain.y_range is None:
        facts.lack("y_range", {"": "(low, high)"}, "the public range of the targets is not declared.", step.name)


def refuse_unknown(step: Step) -> NoReturn:
    """Say that the class has no twin, what it would leak, and what to do."""
    with step.reading():
        inside = [one for one in step.given().values() if hasattr(one, "get_params")]
    leak, kind = leak_of(step.estimator), type(step.estimator).__name__
    if root_of(step.estimator) == "ppdp":
        fix = f"scikit-learn's {kind} here, or ppdp.Pipeline with steps of ppdp's, each of which sees all columns."
        if hasattr(step.estimator, "column_maps"):
            fix = "ppdp.make_column_map((stage, columns), ...) of ppdp's stages, instead of the ColumnTransformer."
        raise UnknownStage(
            f"this {kind} is already ppdp's class; from_sklearn takes scikit-learn's here.",
            stage=step.name,
            fix="use it as it is: pipe.fit(X, y)." if hasattr(step.estimator, "plan") else fix,
        )
    leaks = f" Fitted without noise it leaks {leak.leaks}." if leak.severity != "none" else ""
    if not leaks and inside:
        leaks = f" The {type(inside[0]).__name__} in it is fitted to the rows."
    raise UnknownStage(f"{kind} has no twin here.{leaks}", stage=step.name, fix=leak.fix)
