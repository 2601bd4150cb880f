"""What stands for scikit-learn's models: one that is trained with noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Any

from ppdp import mechanisms
from ppdp.interop.sklearn.declared_facts import DeclaredFacts
from ppdp.interop.sklearn.steps import Step, is_word

_PENALTY = "penalty='l2', or none; a sparse model has no counterpart."
_FIXES = {
    "penalty": _PENALTY,
    "multi_class": "leave it at its default: several classes are learned together.",
    "positive": "leave it out; coefficients of either sign are learned.",
}
_NO_PENALTY = "leave it out: this model has no penalty."
_DESCENT = {"alpha": "LogisticRegression(C=...) or Ridge(alpha=...): this penalty depends on the number of rows."}


def _penalised(step: Step, given: dict[str, Any]) -> bool:
    """Whether there is a squared penalty."""
    if not is_word(given["penalty"], "l2", "deprecated", None, "none"):
        step.refuse(f"penalty={given['penalty']!r} has no counterpart.", _PENALTY)
    if given["penalty"] == "deprecated" and given.get("l1_ratio"):
        step.refuse("l1_ratio has no counterpart.", "leave it at 0; a sparse model has no counterpart.")
    return given["penalty"] not in (None, "none")


def _classifier(
    step: Step, kind: Any, facts: DeclaredFacts, given: dict[str, Any], *, alpha: float | None = None
) -> Any:
    """A classifier; weights of classes are public, or follow from released numbers of rows."""
    step.changed.append("trained with noise" if alpha else "trained with noise, without a penalty")
    if is_word(given["class_weight"], "balanced"):
        step.changed.append("class_weight='balanced' goes by noisy numbers of rows of each class")
    penalty = {} if alpha is None else {"alpha": alpha}
    return kind(facts.classes, fit_intercept=given["fit_intercept"], class_weight=given["class_weight"], **penalty)


def logistic(step: Step, facts: DeclaredFacts) -> Any:
    """With a squared penalty, or none."""
    given = step.read("C", "penalty", "l1_ratio", "fit_intercept", "class_weight", fixes=_FIXES)
    if isinstance(given["C"], bool) or not isinstance(given["C"], Real) or not float(given["C"]) > 0:
        step.refuse(f"C={given['C']!r} is no positive number.", "C=1.0, which becomes alpha=1/C.")
    inverse = float(given["C"])
    alpha = 1 / inverse if _penalised(step, given) and math.isfinite(inverse) else 0.0
    step.changed.append(f"C={inverse:g} became alpha={alpha:g}" if alpha else "no penalty became alpha=0")
    return _classifier(step, mechanisms.LogisticRegression, facts, given, alpha=alpha)


def support(step: Step, facts: DeclaredFacts) -> Any:
    """With a smooth hinge loss."""
    given = step.read("loss", "fit_intercept", "class_weight", fixes={"C": _NO_PENALTY, **_FIXES})
    step.changed.append(f"a smooth hinge loss instead of {given['loss']}")
    return _classifier(step, mechanisms.LinearSVC, facts, given)


def descent_classifier(step: Step, facts: DeclaredFacts) -> Any:
    """By its loss."""
    given = step.read("loss", "penalty", "fit_intercept", "class_weight", fixes=_FIXES | _DESCENT)
    _penalised(step, given)
    if is_word(given["loss"], "log_loss"):
        return _classifier(step, mechanisms.LogisticRegression, facts, given, alpha=0.0)
    if is_word(given["loss"], "hinge"):
        return _classifier(step, mechanisms.LinearSVC, facts, given)
    step.refuse(f"loss={given['loss']!r} has no counterpart.", "loss='log_loss' or loss='hinge'.")


def _regressor(step: Step, kind: Any, facts: DeclaredFacts, given: dict[str, Any], **parameters: Any) -> Any:
    penalty = step.kind in ("Ridge", "LinearRegression")
    step.changed.append("trained with noise" if penalty else "trained with noise, without a penalty")
    return kind(facts.y_range, fit_intercept=given["fit_intercept"], **parameters)


def descent_regressor(step: Step, facts: DeclaredFacts) -> Any:
    """Least squares."""
    given = step.read("penalty", "fit_intercept", fixes=_DESCENT | {"loss": "loss='squared_error'."})
    _penalised(step, given)
    return _regressor(step, mechanisms.LinearRegression, facts, given)


def least_squares(step: Step, facts: DeclaredFacts) -> Any:
    """Least squares."""
    return _regressor(step, mechanisms.LinearRegression, facts, step.read("fit_intercept", fixes=_FIXES))


def ridge(step: Step, facts: DeclaredFacts) -> Any:
    """Least squares with a squared penalty."""
    given = step.read("alpha", "fit_intercept", fixes=_FIXES)
    if isinstance(given["alpha"], bool) or not isinstance(given["alpha"], (int, float)):
        step.refuse("alpha must be one number.", "one penalty for all columns.")
    return _regressor(step, mechanisms.Ridge, facts, given, alpha=float(given["alpha"]))


def log_link(step: Step, facts: DeclaredFacts) -> Any:
    """Counts and amounts, with a logarithm as link."""
    fixes = {"alpha": _NO_PENALTY, "link": "leave it out: the link is the logarithm."}
    if step.kind != "TweedieRegressor":
        return _regressor(step, getattr(mechanisms, step.kind), facts, step.read("fit_intercept", fixes=fixes))
    given = step.read("power", "link", "fit_intercept", fixes=fixes)
    power = given["power"]
    if not is_word(given["link"], "auto", "log") or not (isinstance(power, (int, float)) and 1 <= power <= 2):
        step.refuse("only powers of 1 to 2 with a logarithm as link are known.", "power=1.5, or Ridge() for power=0.")
    return _regressor(step, mechanisms.TweedieRegressor, facts, given, power=float(power))


MODELS: dict[str, tuple[str, Callable[..., Any]]] = {
    "LogisticRegression": ("model", logistic),
    "LinearSVC": ("model", support),
    "SGDClassifier": ("model", descent_classifier),
    "LinearRegression": ("model", least_squares),
    "SGDRegressor": ("model", descent_regressor),
    "Ridge": ("model", ridge),
    "PoissonRegressor": ("model", log_link),
    "GammaRegressor": ("model", log_link),
    "TweedieRegressor": ("model", log_link),
}
"""By class: its role, and what makes its counterpart of a step and facts."""
