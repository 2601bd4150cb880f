"""What stands for each class of scikit-learn: a public map of columns, a stage, or a model trained with noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Any, NoReturn

from sklearn.base import clone
from sklearn.random_projection import johnson_lindenstrauss_min_dim

from ppdp import mechanisms, transformers
from ppdp.core.checks import flag, integer, number
from ppdp.exceptions import InvalidParameter, UnknownStage
from ppdp.interop.sklearn.column_maps import MAPS, fill_value, filled, read_imputer, with_missing
from ppdp.interop.sklearn.declared_facts import DeclaredFacts
from ppdp.interop.sklearn.leaks import leak_of, root_of
from ppdp.interop.sklearn.steps import Step, is_word
from ppdp.interop.sklearn.trees import TREES, boosted
from ppdp.mechanisms.base import Mechanism
from ppdp.transformers.base import Stage
from ppdp.transformers.columns.categories import Categorical, ReleasedCategories, labels_only
from ppdp.transformers.columns.maps import PublicMap


def imputer(step: Step, facts: DeclaredFacts) -> Any:
    """A mean, or a trimmed mean in place of a median."""
    given = read_imputer(step)
    if is_word(given["strategy"], "mean"):
        return transformers.MeanImputer()
    if is_word(given["strategy"], "median"):
        step.changed.append("a trimmed mean instead of the median, whose release would drown in noise")
        return transformers.TrimmedMeanImputer()
    step.refuse(
        f"strategy={given['strategy']!r} has no counterpart: one row can decide it.",
        "strategy='constant' with a public fill_value, for text a category of its own; or 'mean' or 'median'.",
    )


def standard(step: Step, facts: DeclaredFacts) -> Any:
    """By released or exact moments."""
    given = step.read("with_mean", "with_std")
    if not flag("with_std", given["with_std"], step.name):
        step.refuse("with_std=False has no counterpart.", "leave the step out: models learn an intercept.")
    step.changed.append("a floor under the standard deviation, and a public clip of scaled rows")
    return transformers.StandardScaler(with_mean=flag("with_mean", given["with_mean"], step.name))


def robust(step: Step, facts: DeclaredFacts) -> Any:
    """By quantiles behind a condition."""
    given = step.read("quantile_range")
    step.changed.append("quantiles rest on a tested condition; StandardScaler() is far cheaper")
    return transformers.RobustScaler(quantile_range=given["quantile_range"])


def _components(step: Step, value: Any) -> int:
    try:
        return integer("n_components", value, step.name)
    except InvalidParameter:
        step.refuse(f"n_components={value!r} is decided by the rows.", "a number, such as n_components=5.")


def pca(step: Step, facts: DeclaredFacts) -> Any:
    """The projection on the components."""
    whiten = {"whiten": "leave it out, and put StandardScaler before it."}
    rank = _components(step, step.read("n_components", fixes=whiten)["n_components"])
    return transformers.PCA(rank, with_mean=step.kind == "PCA")


def projection(step: Step, facts: DeclaredFacts) -> Any:
    """A random projection with a public seed."""
    given = step.read("n_components", "eps", "random_state", "density")
    components = given["n_components"]
    if is_word(components, "auto"):
        if facts.domain.n_rows is None:
            step.refuse(
                "n_components='auto' needs the public number of rows.",
                "domain=Domain(n_rows=...), or a number of components.",
            )
        eps = number("eps", given["eps"], step.name, above=0, most=1 - 1e-9)
        components = int(johnson_lindenstrauss_min_dim(facts.domain.n_rows, eps=eps))
        step.changed.append(f"n_components='auto' became {components}, from the public number of rows and eps")
    seed = given["random_state"]
    if seed is None or isinstance(seed, bool) or not isinstance(seed, int):
        seed = 0
        step.changed.append("drawn from the public seed 0")
    else:
        step.changed.append(f"random_state={seed} became the public seed={seed}")
    family, s = "gaussian", None
    if step.kind == "SparseRandomProjection":
        family, density, fix = "sparse", given["density"], "density='auto', or a share of at most 1."
        s = None if is_word(density, "auto") else 1 / number("density", density, step.name, least=1e-7, most=1, fix=fix)
    return transformers.RandomProjection(_components(step, components), family=family, seed=seed, s=s)


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


COUNTERPARTS: dict[str, tuple[str, Callable[..., Any]]] = {
    **MAPS,
    "SimpleImputer": ("imputer", imputer),
    "StandardScaler": ("scaler", standard),
    "RobustScaler": ("scaler", robust),
    "PCA": ("components", pca),
    "TruncatedSVD": ("components", pca),
    "GaussianRandomProjection": ("projection", projection),
    "SparseRandomProjection": ("projection", projection),
    "LogisticRegression": ("model", logistic),
    "LinearSVC": ("model", support),
    "SGDClassifier": ("model", descent_classifier),
    "LinearRegression": ("model", least_squares),
    "SGDRegressor": ("model", descent_regressor),
    "Ridge": ("model", ridge),
    "PoissonRegressor": ("model", log_link),
    "GammaRegressor": ("model", log_link),
    "TweedieRegressor": ("model", log_link),
    **dict.fromkeys(sorted(TREES), ("model", boosted)),
}
"""By class: its role, and what makes its counterpart of a step and facts, and of columns if it is a public map."""

STAGES = ("imputer", "scaler", "components", "projection")
"""Roles of stages that see the rows or draw a map of all columns."""


def role_of(step: Step) -> str:
    """What becomes of its class, by :data:`COUNTERPARTS`; empty if nothing."""
    return COUNTERPARTS[step.kind][0] if step.kind in COUNTERPARTS else ""


def is_public(step: Step) -> bool:
    """Whether it becomes a public map of each row."""
    return _is_constant(step) or role_of(step).startswith("map")


def _is_constant(step: Step) -> bool:
    return step.kind == "SimpleImputer" and is_word(step.given()["strategy"], "constant")


def public_maps(steps: list[Step], columns: Any, facts: DeclaredFacts) -> tuple[PublicMap, ...]:
    """The maps of some public steps, one after the other, for columns as in a ``ColumnTransformer``; None is all."""
    maps: list[PublicMap] = []
    constant: Step | None = None  # what stands behind it tells whether it is a label or a number
    for step in steps:
        with step.reading():
            if _is_constant(step):
                fill_value(step)
                constant = constant or step  # the first one leaves no missing value
                continue
            made = COUNTERPARTS[step.kind][1](step, facts, columns)
        if made is None:
            continue
        if isinstance(made, ReleasedCategories) or _has_text(made):
            if maps:
                step.refuse(
                    "its categories are text, and what stands before it makes numbers.",
                    "put it first, or declare its categories as numbers.",
                )
            made = made if constant is None else with_missing(made, constant, columns)
        elif constant is not None:
            maps.append(filled(constant))
        constant = None
        maps.append(made)
    return tuple(maps if constant is None else [*maps, filled(constant)])


def _has_text(made: PublicMap) -> bool:
    """Whether some of its categories are text."""
    lists = made.categories if isinstance(made, Categorical) else ()
    return any(isinstance(label, str) for labels in lists for label in labels_only(labels))


def counterpart(step: Step, facts: DeclaredFacts, *, last: bool) -> Any:
    """What stands for a step that is no public map: a stage, or a mechanism that learns what the model learns."""
    role = role_of(step)
    if isinstance(step.estimator, (Stage, Mechanism)):
        return clone(step.estimator)  # what it was fitted to stays behind
    if role == "model" and not last:
        step.refuse("a model must be the last step.", "move it to the end.")
    if role in (*STAGES, "model"):
        with step.reading():
            counterpart = COUNTERPARTS[step.kind][1](step, facts)
        if role == "model":
            _check_answers(step, counterpart, facts)
        return counterpart
    if step.kind == "FeatureUnion":
        step.refuse(
            "a FeatureUnion has no counterpart behind a stage that looks at the rows.",
            "put that stage behind the FeatureUnion, for all columns, or give its columns to one stage only.",
        )
    if step.kind == "ColumnTransformer":
        step.refuse(
            f"a {step.kind} has no counterpart here.", "a ColumnTransformer with named columns, as the first step."
        )
    refuse_unknown(step)


def _check_answers(step: Step, counterpart: Any, facts: DeclaredFacts) -> None:
    """Labels may be read from y, but a regressor's targets need a public range."""
    if hasattr(counterpart, "classes") and facts.classes is None and facts.domain.classes is None:
        facts.read.add("classes")
        step.changed.append("labels will be read from y: CONDITIONAL; pass classes=(...)")
    if getattr(counterpart, "y_range", ()) is None and facts.domain.y_range is None:
        facts.lack("y_range", {"": "(low, high)"}, "the public range of the targets is not declared.", step.name)


def refuse_unknown(step: Step) -> NoReturn:
    """Say that the class has no counterpart, what it would leak, and what to do."""
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
    raise UnknownStage(f"{kind} has no counterpart here.{leaks}", stage=step.name, fix=leak.fix)
