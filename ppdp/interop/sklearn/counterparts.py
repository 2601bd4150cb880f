"""What stands for each class of scikit-learn: a public map of columns, a stage, or a model trained with noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any, NoReturn

import numpy as np
from sklearn.base import clone
from sklearn.preprocessing import MinMaxScaler

from ppdp.bounds.boosting import POWERS
from ppdp.exceptions import UnknownStage
from ppdp.interop.sklearn.column_maps import MAPS, fill_value, filled, most_frequent, with_missing
from ppdp.interop.sklearn.declared_facts import DeclaredFacts
from ppdp.interop.sklearn.leaks import leak_of, root_of
from ppdp.interop.sklearn.models import CLUSTERS, MODELS, cluster_distances
from ppdp.interop.sklearn.stages import FITTED, QUANTILES
from ppdp.interop.sklearn.steps import ENCODERS, TERMS, TEXTS, Step, is_word
from ppdp.interop.sklearn.trees import TREES, boosted
from ppdp.mechanisms.base import Mechanism
from ppdp.mechanisms.target_functions import FunctionOfTargets
from ppdp.transformers.base import Stage
from ppdp.transformers.columns.categories import Categorical, HashedCategories, ReleasedCategories, labels_only
from ppdp.transformers.columns.column_transformer import ColumnTransformer
from ppdp.transformers.columns.maps import PublicMap

COUNTERPARTS: dict[str, tuple[str, Callable[..., Any]]] = {
    **MAPS,
    **FITTED,
    **MODELS,
    **dict.fromkeys(sorted(TREES), ("model", boosted)),
}
"""By class: its role, and what makes its counterpart of a step and facts, and of columns if it is a public map."""

STAGES = ("imputer", "scaler", "quantiles", "components", "projection", "selector", "label means")
"""Roles of stages that see the rows or draw a map of all columns."""


def role_of(step: Step) -> str:
    """What becomes of its class, by :data:`COUNTERPARTS`; empty if nothing."""
    if step.encodes:
        return "map"
    if _by_quantiles(step):
        return "quantiles"
    return COUNTERPARTS[step.kind][0] if step.kind in COUNTERPARTS else ""


def _by_quantiles(step: Step) -> bool:
    """Whether edges or knots go by quantiles of the rows, which a stage releases."""
    if step.kind not in QUANTILES or is_word(step.given().get("extrapolation"), "periodic"):
        return False
    return is_word(step.given()[QUANTILES[step.kind][0]], "kmeans", "quantile")


def is_public(step: Step) -> bool:
    """Whether it becomes a public map of each row."""
    return _is_constant(step) or role_of(step).startswith("map")


def _is_constant(step: Step) -> bool:
    return step.fills_labels or (step.kind == "SimpleImputer" and is_word(step.given()["strategy"], "constant"))


def in_even_units(steps: list[Step]) -> list[Step]:
    """With columns scaled by their public ranges in front of a kernel whose width goes by the variance of the rows."""
    where = [i for i, step in enumerate(steps) if step.kind == "RBFSampler" and is_word(step.given()["gamma"], "scale")]
    if not where:
        return steps
    at, kinds = where[0], [step.kind for step in steps[: where[0]]]
    if any(kind in (*TEXTS, "Normalizer") for kind in kinds):
        steps[at].estimator.set_params(gamma=1.0)
        steps[at].changed.append("gamma='scale' became 1, as for rows of length 1")
    elif all(is_public(step) or role_of(step) == "imputer" for step in steps[:at]) and not {*kinds} & {*ENCODERS}:
        scaler = Step(f"{steps[at].name}-range", MinMaxScaler((-math.sqrt(3), math.sqrt(3))))
        steps[at].changed.append(
            "columns are scaled by public ranges in front: of rows that lie evenly they have variance 1"
        )
        return [*steps[:at], scaler, *steps[at:]]
    return steps


def public_maps(steps: list[Step], columns: Any, facts: DeclaredFacts) -> tuple[PublicMap, ...]:
    """The maps of some public steps, one after the other, for columns as in a ``ColumnTransformer``; None is all."""
    maps: list[PublicMap] = []
    constant: Step | None = None  # what stands behind it tells whether it is a label or a number
    for step, behind in zip_longest(steps, steps[1:]):
        if step.kind == "FunctionTransformer" and behind is not None and behind.kind in TEXTS:
            if step.given()["func"] in (np.ravel, np.squeeze):  # a column alone, which it is anyhow
                continue
            fix = _NO_FUNCTION.format(behind.kind) if behind.kind not in TERMS else _NO_RECORDS
            step.refuse(f"a function in front of {behind.name!r} has no counterpart.", fix)
        if step.encodes:
            maps += _encoders(step, columns, first=not maps and constant is None)
            continue
        with step.reading():
            if _is_constant(step):
                fill_value(step)
                constant = constant or step  # the first one leaves no missing value
                continue
            made = COUNTERPARTS[step.kind][1](step, facts, columns)
        if made is None:
            continue
        labels = isinstance(made, ReleasedCategories | HashedCategories) or _has_text(made)
        if (labels or made.takes_texts) and maps:
            what = f"its {'categories' if labels else 'cells'} are text, and what stands before it makes numbers."
            step.refuse(what, "put it first, or declare its categories as numbers." if labels else "put it first.")
        if made.takes_texts and constant is not None and fill_value(constant) != "":
            constant.refuse("a missing text is a row of zeros, as an empty one is.", "fill_value='', or leave it out.")
        constant = None if made.takes_texts else constant
        if constant is not None and constant.fills_labels:
            *front, made = most_frequent(made, constant, facts)
            maps += front
        elif constant is not None and labels:
            made = with_missing(made, constant, columns)
        elif constant is not None:
            maps.append(filled(constant))
        constant = None
        maps.append(made)
    return tuple(maps if constant is None else [*maps, filled(constant)])


_NO_FUNCTION = (
    "leave it out: cells are read as they are, and make_column_transformer(({}(...), 'column')) takes the column; what "
    "is done to each text is preprocessor=... of a vectorizer."
)

_NO_RECORDS = (
    "leave it out: dicts in a column are read as they are, and columns of a table by a ColumnTransformer, with "
    "OneHotEncoder() for text."
)


def _encoders(step: Step, columns: Any, *, first: bool) -> Sequence[PublicMap]:
    """The maps that an encoder of ppdp's is for named columns."""
    names = [columns] if isinstance(columns, str) else columns
    if not (first and isinstance(names, (list, tuple)) and all(isinstance(name, str) for name in names)):
        fix = f"put it first in a ColumnTransformer: ({type(step.estimator).__name__}(...), ['column'])."
        step.refuse("it reads cells of named columns.", fix)
    made: Sequence[PublicMap] = step.estimator.column_maps(list(names))
    return made


def _has_text(made: PublicMap) -> bool:
    """Whether some of its categories are text."""
    lists = made.categories if isinstance(made, Categorical) else ()
    return any(isinstance(label, str) for labels in lists for label in labels_only(labels))


def counterpart(step: Step, facts: DeclaredFacts, *, last: bool) -> Any:
    """What stands for a step that is no public map: a stage, or a mechanism that learns what the model learns."""
    role = role_of(step)
    if isinstance(step.estimator, (Stage, Mechanism, ColumnTransformer)):
        return clone(step.estimator)  # what it was fitted to stays behind
    if step.kind in CLUSTERS and not last:
        with step.reading():
            return cluster_distances(step)
    if role == "model" and not last:
        step.refuse("a model must be the last step.", "move it to the end.")
    if role in (*STAGES, "model"):
        with step.reading():
            counterpart = (QUANTILES if _by_quantiles(step) else COUNTERPARTS)[step.kind][1](step, facts)
        if role == "model":
            if step.target_func is not None:
                _learn_function(step, counterpart)
            if step.threshold is not None:
                _set_threshold(step, counterpart)
            if step.calibrated and getattr(counterpart, "class_weight", None) is not None:
                _unweigh(step, counterpart, "probabilities would be those of other shares of classes")
            _check_answers(step, counterpart, facts)
        return counterpart
    if step.kind == "FeatureUnion":
        step.refuse(
            "a FeatureUnion has no counterpart behind a stage that looks at the rows.",
            "put that stage behind the FeatureUnion, for all columns, or give its columns to one stage only.",
        )
    if step.kind == "ColumnTransformer":
        what = f"a {step.kind} has no counterpart here."
        step.refuse(what, "a ColumnTransformer with named columns, as the first step.")
    refuse_unknown(step)


def _check_answers(step: Step, counterpart: Any, facts: DeclaredFacts) -> None:
    """Labels may be read from y, but a regressor's targets need a public range; neither is declared of the other."""
    for name, other, kind in (("classes", "y_range", "classifier"), ("y_range", "classes", "regressor")):
        if getattr(facts, name) is not None and hasattr(counterpart, other):
            step.refuse(f"{name} is declared, and it is no {kind}.", f"leave it out, or a {kind} in its place.")
    if hasattr(counterpart, "classes") and facts.classes is None and facts.domain.classes is None:
        facts.read.add("classes")
        step.changed.append("labels will be read from y: CONDITIONAL; pass classes=(...)")
    if getattr(counterpart, "y_range", ()) is None and facts.domain.y_range is None:
        facts.lack("y_range", {"": "(low, high)"}, "the public range of the targets is not declared.", step.name)


def _learn_function(step: Step, counterpart: Any) -> None:
    """Tell a model of which function of the targets its error is taken."""
    if not isinstance(counterpart, FunctionOfTargets) or getattr(counterpart, "loss", "squared_error") in POWERS:
        step.refuse("its error is not that of a function of the targets.", "Ridge(), LinearRegression() or trees.")
    counterpart.target_func = step.target_func
    step.changed.append(f"TransformedTargetRegressor became target_func={step.target_func!r}")


def _unweigh(step: Step, counterpart: Any, why: str) -> None:
    """Leave out weights of classes, and what was said of them."""
    counterpart.class_weight = None
    step.changed[:] = [words for words in step.changed if not words.startswith("class_weight")]
    step.changed.append(f"class_weight is left out: {why}")


def _set_threshold(step: Step, counterpart: Any) -> None:
    """Tell a classifier its threshold; one that has none weighs classes where that does the same."""
    if hasattr(counterpart, "threshold") and hasattr(counterpart, "predict_proba"):
        counterpart.threshold = step.threshold
        if isinstance(step.threshold, str) and counterpart.class_weight is not None:
            _unweigh(step, counterpart, "the threshold, which is found behind it, does what it did")
    elif step.threshold == "balanced_accuracy" and hasattr(counterpart, "class_weight"):
        counterpart.class_weight = "balanced"
        step.changed.append("class_weight='balanced' does what a threshold does for balanced accuracy")
    else:
        what = "its counterpart has no threshold."
        step.refuse(what, "LogisticRegression() or trees, or scoring='balanced_accuracy'.")


def refuse_unknown(step: Step) -> NoReturn:
    """Say that the class has no counterpart, what it would leak, and what to do."""
    with step.reading():
        inside = [one for one in step.given().values() if hasattr(one, "get_params")]
    leak, kind = leak_of(step.estimator), type(step.estimator).__name__
    ours = root_of(step.estimator) == "ppdp"
    if ours or isinstance(step.estimator, Stage):
        what = f"this {kind} is already ppdp's class; from_sklearn takes scikit-learn's here."
        what = what if ours else f"{kind} is a stage of a class of your own; from_sklearn takes scikit-learn's here."
        fix = f"scikit-learn's {kind} here, or " if ours else ""
        fix += "ppdp.ColumnTransformer, which takes ppdp's stages."
        fix = "use it as it is: pipe.fit(X, y)." if hasattr(step.estimator, "plan") else fix
        raise UnknownStage(what, stage=step.name, fix=fix)
    if kind == "ColumnTransformer":
        what = (
            "a ColumnTransformer behind steps that look at the rows, in a FeatureUnion, or that is inside another and "
        )
        what += "does not name its columns, has no counterpart here."
        fix = "one ColumnTransformer in front, in which columns may occur several times."
        raise UnknownStage(what, stage=step.name, fix=fix)
    leaks = f" Fitted without noise it leaks {leak.leaks}." if leak.severity != "none" else ""
    if not leaks and inside:
        leaks = f" The {type(inside[0]).__name__} in it is fitted to the rows."
    raise UnknownStage(f"{kind} has no counterpart here.{leaks}", stage=step.name, fix=leak.fix)
