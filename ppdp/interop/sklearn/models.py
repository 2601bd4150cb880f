"""Twins of scikit-learn's models, given public labels and the public range of targets."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from ppdp import mechanisms
from ppdp.interop.sklearn.facts import Facts
from ppdp.interop.sklearn.parameters import Step, is_word

_TRAINED = "trained with noise"
_WEIGHTS = {
    "penalty": "penalty='l2', or none; a sparse model has no twin.",
    "multi_class": "leave it at its default: several classes are learned together.",
    "positive": "leave it out; coefficients of either sign are learned.",
}


def _penalty(step: Step, given: dict[str, Any]) -> bool:
    """Whether there is a squared penalty."""
    if not is_word(given["penalty"], "l2", "deprecated", None, "none"):
        step.refuse(f"penalty={given['penalty']!r} has no twin.", _WEIGHTS["penalty"])
    if given["penalty"] == "deprecated" and given.get("l1_ratio"):
        step.refuse("l1_ratio has no twin.", "leave it at 0; a sparse model has no twin.")
    return given["penalty"] not in (None, "none")


def logistic(step: Step, facts: Facts) -> Any:
    """With a squared penalty, or none."""
    given = step.read("C", "penalty", "l1_ratio", "fit_intercept", "class_weight", fixes=_WEIGHTS)
    if isinstance(given["C"], bool) or not isinstance(given["C"], Real) or not float(given["C"]) > 0:
        step.refuse(f"C={given['C']!r} is no positive number.", "C=1.0, which becomes alpha=1/C.")
    inverse = float(given["C"])
    strength = 1 / inverse if _penalty(step, given) and math.isfinite(inverse) else 0.0
    step.changed.append(f"C={inverse:g} became alpha={strength:g}" if strength else "no penalty became alpha=0")
    step.changed.append(_TRAINED)
    return mechanisms.LogisticRegression(facts.classes, alpha=strength, **_learned(step, given))


def _learned(step: Step, given: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a classifier that mean the same; weights are public, or follow from released numbers of rows."""
    weights = given["class_weight"]
    if is_word(weights, "balanced"):
        step.changed.append("class_weight='balanced' goes by noisy numbers of rows of each class")
    return {"fit_intercept": given["fit_intercept"], "class_weight": weights}


def support(step: Step, facts: Facts) -> Any:
    """With a smooth hinge loss."""
    fixes = {"C": "leave it out: this model has no penalty.", **_WEIGHTS}
    given = step.read("loss", "fit_intercept", "class_weight", fixes=fixes)
    step.changed.append(f"{_TRAINED}, without a penalty; a smooth hinge loss instead of {given['loss']}")
    return mechanisms.LinearSVC(facts.classes, **_learned(step, given))


_STEPS = {"alpha": "LogisticRegression(C=...) or Ridge(alpha=...): this penalty depends on the number of rows."}


def descent_classifier(step: Step, facts: Facts) -> Any:
    """By its loss."""
    given = step.read("loss", "penalty", "fit_intercept", "class_weight", fixes=_WEIGHTS | _STEPS)
    _penalty(step, given)
    step.changed.append(f"{_TRAINED}, without a penalty")
    if is_word(given["loss"], "log_loss"):
        return mechanisms.LogisticRegression(facts.classes, alpha=0.0, **_learned(step, given))
    if is_word(given["loss"], "hinge"):
        return mechanisms.LinearSVC(facts.classes, **_learned(step, given))
    step.refuse(f"loss={given['loss']!r} has no twin.", "loss='log_loss' or loss='hinge'.")


def descent_regressor(step: Step, facts: Facts) -> Any:
    """Least squares."""
    given = step.read("penalty", "fit_intercept", fixes=_STEPS | {"loss": "loss='squared_error'."})
    _penalty(step, given)
    step.changed.append(f"{_TRAINED}, without a penalty")
    return mechanisms.LinearRegression(facts.y_range, fit_intercept=given["fit_intercept"])


def least_squares(step: Step, facts: Facts) -> Any:
    """Least squares."""
    given = step.read("fit_intercept", fixes=_WEIGHTS)
    step.changed.append(_TRAINED)
    return mechanisms.LinearRegression(facts.y_range, fit_intercept=given["fit_intercept"])


def ridge(step: Step, facts: Facts) -> Any:
    """Least squares with a squared penalty."""
    given = step.read("alpha", "fit_intercept", fixes=_WEIGHTS)
    if isinstance(given["alpha"], bool) or not isinstance(given["alpha"], (int, float)):
        step.refuse("alpha must be one number.", "one penalty for all columns.")
    step.changed.append(_TRAINED)
    return mechanisms.Ridge(facts.y_range, alpha=float(given["alpha"]), fit_intercept=given["fit_intercept"])


def log_link(step: Step, facts: Facts) -> Any:
    """Counts and amounts, with a logarithm as link."""
    fixes = {"alpha": "leave it out: this model has no penalty.", "link": "leave it out: the link is the logarithm."}
    tweedie = step.kind == "TweedieRegressor"
    given = step.read(*(["power", "link"] if tweedie else []), "fit_intercept", fixes=fixes)
    step.changed.append(f"{_TRAINED}, without a penalty")
    if not tweedie:
        return getattr(mechanisms, step.kind)(facts.y_range, fit_intercept=given["fit_intercept"])
    power = given["power"]
    if not is_word(given["link"], "auto", "log") or not (isinstance(power, (int, float)) and 1 <= power <= 2):
        step.refuse(
            "only powers of 1 to 2 with the logarithm as link have a twin.", "power=1.5, or Ridge() for power=0."
        )
    return mechanisms.TweedieRegressor(facts.y_range, power=float(power), fit_intercept=given["fit_intercept"])
