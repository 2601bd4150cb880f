"""What stands for scikit-learn's models: one that is trained with noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sized
from numbers import Real
from typing import Any

from ppdp import mechanisms
from ppdp.core.checks import number, shown
from ppdp.interop.sklearn.declared_facts import DeclaredFacts
from ppdp.interop.sklearn.steps import Step, is_word
from ppdp.transformers import ClusterDistances

_PENALTY = "penalty='l2', or none."
_DENSE = "a squared penalty instead of one that makes coefficients 0: none of them will be, also for the noise in each"
_FIXES = {
    "penalty": _PENALTY,
    "multi_class": "leave it at its default: several classes are learned together.",
    "positive": "leave it out; coefficients of either sign are learned.",
}
_NO_PENALTY = "leave it out: this model has no penalty."
_KERNEL = "break_ties cache_size coef0 decision_function_shape degree gamma shrinking"
_SEARCHED = (
    "Cs alpha_per_target alphas cv gcv_mode refit scoring store_cv_results store_cv_values use_legacy_attributes"
)
CLUSTERS = ("BisectingKMeans", "KMeans", "MiniBatchKMeans")
_OF_CLUSTERS = "batch_size bisecting_strategy compute_labels init_size max_no_improvement reassignment_ratio"
"""How clusters are looked for."""
_PRIORS = "alpha_1 alpha_2 alpha_init compute_score lambda_1 lambda_2 lambda_init threshold_lambda"
"""What says how a penalty is looked for."""
_PATHS = "criterion eps fit_path jitter max_n_alphas n_alphas n_nonzero_coefs noise_variance precompute selection"
"""How coefficients of 0 are looked for."""
_CONSENSUS = (
    "is_data_valid is_model_valid max_skips max_subpopulation max_trials min_samples n_subsamples residual_threshold "
    "stop_n_inliers stop_probability stop_score"
)
"""How rows are looked for that are no outliers."""
_CLIPPED = "squared error: outliers are clipped to the public range of the targets"
_USUAL_ALPHA = 1e-4


def _penalised(step: Step, given: dict[str, Any]) -> bool:
    """Whether there is a squared penalty."""
    if not is_word(given["penalty"], "l1", "l2", "elasticnet", "deprecated", None, "none"):
        step.refuse(f"penalty={shown(given['penalty'])} has no counterpart.", _PENALTY)
    sparse = given["penalty"] == "deprecated" and isinstance(given.get("l1_ratio"), Real) and given["l1_ratio"] > 0
    if sparse or is_word(given["penalty"], "l1", "elasticnet"):
        step.changed.append(_DENSE)
    return given["penalty"] not in (None, "none")


def _classifier(
    step: Step, kind: Any, facts: DeclaredFacts, given: dict[str, Any], *, alpha: float | str | None = None
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


def _several(facts: DeclaredFacts) -> bool:
    """Whether more than two classes are declared."""
    classes = facts.domain.classes if facts.classes is None else facts.classes
    return isinstance(classes, Sized) and len(classes) > 2


def _margins(
    step: Step, facts: DeclaredFacts, given: dict[str, Any], loss: str, *, alpha: Any = 0.0, probabilities: bool = False
) -> Any:
    """By a smooth hinge loss; by log loss for several classes, probabilities, or a penalty that is worth its name."""
    reasons = {
        "which learns all classes together": _several(facts),
        "which gives probabilities": probabilities or step.calibrated,
        "which has a penalty": alpha != 0,
    }
    for why, holds in reasons.items():
        if holds:
            step.changed.append(f"log loss, {why}, instead of {loss}")
            return _classifier(step, mechanisms.LogisticRegression, facts, given, alpha=alpha)
    step.changed.append(f"a smooth hinge loss instead of {loss}")
    return _classifier(step, mechanisms.LinearSVC, facts, given)


def _inverse_strength(step: Step) -> float:
    """The weight of the penalty beside the sum of losses; 0 for one no stronger than scikit-learn's default."""
    given = step.given()["C"]
    strength = math.inf if given == math.inf else number("C", given, step.name, above=0)
    if strength < 1:
        step.changed.append(f"C={strength:g} became alpha={1 / strength:g}")
        return 1 / strength
    if strength > 1:
        step.changed.append(f"C={strength:g} has no effect: there is no penalty")
    return 0.0


def _strength_of_descent(step: Step) -> float | str:
    """The same, of a penalty that grows with the number of rows."""
    alpha = number("alpha", step.given()["alpha"], step.name, least=0)
    if alpha <= _USUAL_ALPHA:
        return 0.0
    step.changed.append(f"alpha={alpha:g}, which counts for every row, became alpha='auto'")
    return "auto"


def support(step: Step, facts: DeclaredFacts) -> Any:
    """Support vectors of a linear kernel, with a smooth hinge loss."""
    given = step.read("C loss fit_intercept class_weight", fixes=_FIXES)
    if step.kind != "LinearSVC":
        return _margins(step, facts, given, "the perceptron's")
    return _margins(step, facts, given, given["loss"], alpha=_inverse_strength(step))


def kernel_support(step: Step, facts: DeclaredFacts) -> Any:
    """Support vectors, of a radial kernel behind features of it."""
    given = step.read("C", "kernel", "nu", "probability", "class_weight", _KERNEL)
    if not is_word(given["kernel"], "linear", "poly", "rbf"):
        step.refuse(f"kernel={shown(given['kernel'])} has no counterpart.", "kernel='rbf', 'poly' or 'linear'.")
    alpha = _inverse_strength(step) if "C" in given else 0.0
    probabilities, given = given["probability"] is True, {**given, "fit_intercept": True}
    return _margins(step, facts, given, "hinge loss", alpha=alpha, probabilities=probabilities)


def descent_classifier(step: Step, facts: DeclaredFacts) -> Any:
    """By its loss."""
    given = step.read("loss", "penalty", "alpha", "fit_intercept", "class_weight", fixes=_FIXES)
    alpha = _strength_of_descent(step) if _penalised(step, given) else 0.0
    if is_word(given["loss"], "log_loss"):
        return _classifier(step, mechanisms.LogisticRegression, facts, given, alpha=alpha)
    if is_word(given["loss"], "hinge", "squared_hinge", "modified_huber", "perceptron"):
        probabilities = given["loss"] == "modified_huber"
        return _margins(step, facts, given, f"the {given['loss']} loss", alpha=alpha, probabilities=probabilities)
    step.refuse(f"loss={given['loss']!r} has no counterpart.", "loss='log_loss' or loss='hinge'.")


def ridge_classifier(step: Step, facts: DeclaredFacts) -> Any:
    """Log loss in place of squares, with the same penalty."""
    given = step.read("alpha", "fit_intercept", "class_weight", fixes=_FIXES)
    alpha = number("alpha", given["alpha"], step.name, least=0)
    step.changed.append(f"log loss instead of squares, with a penalty of alpha={alpha:g}")
    return _classifier(step, mechanisms.LogisticRegression, facts, given, alpha=alpha)


def other_law(step: Step, facts: DeclaredFacts) -> Any:
    """A model whose log-odds are of the same shape, or are compared by distances whose differences are."""
    shares = "leave it out: shares of classes are learned."
    fixes = {
        **dict.fromkeys(("class_prior", "fit_prior", "priors"), shares),
        "binarize": "Binarizer(threshold=...) in front.",
        "metric": "metric='euclidean', whose boundaries are straight.",
        "shrink_threshold": "leave it out: no column is dropped.",
    }
    given = step.read(_OF_LAWS, fixes=fixes)
    if given.get("shrinkage") is not None:
        step.changed.append("shrinkage has no effect: no covariance is inverted")
    shape = "quadratic" if step.kind == "QuadraticDiscriminantAnalysis" else "linear"
    step.changed.append(f"log loss instead of {_LAWS[step.kind]}: in both, log-odds are {shape}")
    if step.kind == "BernoulliNB":
        step.changed.append("columns of 0 and 1 are taken as they are, and others are not cut at 0: Binarizer() does")
    given = {"fit_intercept": True, "class_weight": None}
    return _classifier(step, mechanisms.LogisticRegression, facts, given, alpha=0.0)


_OF_LAWS = "alpha covariance_estimator force_alpha n_components norm reg_param shrinkage solver store_covariance tol"
_LAWS = {
    "BernoulliNB": "a law of each column of 0 and 1 in each class",
    "ComplementNB": "a law of counts of all other classes",
    "LinearDiscriminantAnalysis": "a normal law of each class",
    "MultinomialNB": "a law of counts of each class",
    "NearestCentroid": "distances to the mean of each class",
    "QuadraticDiscriminantAnalysis": "a normal law of each class",
}


def quantile(step: Step, facts: DeclaredFacts) -> Any:
    """A quantile of the targets by shapes of columns."""
    given = step.read("quantile", "alpha", "solver_options", "fit_intercept", fixes=_FIXES)
    level = number("quantile", given["quantile"], step.name, above=0, most=1 - 1e-9)
    step.changed.append("boosted shapes of columns instead of a straight line; no penalty")
    return mechanisms.GradientBoostingRegressor(facts.y_range, loss="quantile", quantile=level)


def _unsearched(step: Step, name: str) -> None:
    step.changed.append(
        f"{name} is not searched for: alpha='auto'; ppdp.PrivateSearchCV(pipe, {{'{step.name}__alpha': [0.1, 1, 10]}}) "
        "charges a search"
    )


def naive_bayes(step: Step, facts: DeclaredFacts) -> Any:
    """From released moments of every class."""
    fixes = {"priors": "leave it out: shares of classes are released."}
    given = step.read("var_smoothing", fixes=fixes)
    if step.calibrated:
        return _margins(step, facts, {"fit_intercept": True, "class_weight": None}, "means and variances of classes")
    step.changed.append("means and variances of every class are released with noise")
    return mechanisms.GaussianNB(facts.classes, var_smoothing=given["var_smoothing"])


def clusters(step: Step, facts: DeclaredFacts) -> Any:
    """Around centres that are released."""
    count = _n_clusters(step)
    step.changed.append("centres are released with noise; labels_ and inertia_, which are the rows' own, are not")
    return mechanisms.KMeans(count)


def cluster_distances(step: Step) -> Any:
    """Distances from released centres, in front of a model."""
    count = _n_clusters(step)
    step.changed.append("distances are those from centres that are released with noise")
    return ClusterDistances(count)


def _n_clusters(step: Step) -> Any:
    given = step.read("n_clusters", "init", "n_init", _OF_CLUSTERS)
    if not is_word(given["init"], "k-means++", "random"):
        step.refuse("init has no counterpart.", "leave it out: first centres are made of noisy weights of cells.")
    return given["n_clusters"]


def logistic_cv(step: Step, facts: DeclaredFacts) -> Any:
    """Without the search."""
    given = step.read("penalty", "fit_intercept", "class_weight", _SEARCHED, fixes=_FIXES | {"l1_ratios": _PENALTY})
    if step.kind == "RidgeClassifierCV":
        step.changed.append("log loss instead of squares")
    else:
        _penalised(step, given)
    _unsearched(step, "C" if "Cs" in given else "alpha")
    return _classifier(step, mechanisms.LogisticRegression, facts, given, alpha="auto")


def sparse(step: Step, facts: DeclaredFacts) -> Any:
    """Ridge in place of a model with coefficients of 0."""
    given = step.read("alpha", "l1_ratio", _PATHS, _SEARCHED, "fit_intercept")
    step.changed += [_DENSE, "the weight of its penalty is alpha='auto'"]
    return _regressor(step, mechanisms.Ridge, facts, given)


def robust(step: Step, facts: DeclaredFacts) -> Any:
    """Least squares of targets in their range."""
    given = step.read("epsilon alpha estimator loss fit_intercept", _CONSENSUS, fixes=_FIXES)
    step.changed.append(_CLIPPED)
    return _regressor(step, mechanisms.LinearRegression, facts, {"fit_intercept": True, **given})


def few_directions(step: Step, facts: DeclaredFacts) -> Any:
    """Ridge, which holds back the directions that partial least squares leaves out."""
    step.read("n_components", "scale")
    step.changed.append("a squared penalty of alpha='auto' instead of few directions: both hold coefficients back")
    return _regressor(step, mechanisms.Ridge, facts, {"fit_intercept": True})


def ridge_auto(step: Step, facts: DeclaredFacts) -> Any:
    """Ridge whose penalty follows from no search, or from no prior."""
    given = step.read("fit_intercept", _SEARCHED, _PRIORS)
    if step.kind == "RidgeCV":
        _unsearched(step, "alpha")
    else:
        step.changed.append("a penalty of alpha='auto' instead of one that is learned from the rows")
    return _regressor(step, mechanisms.Ridge, facts, given)


def kernel_regressor(step: Step, facts: DeclaredFacts) -> Any:
    """Squared error, of a radial kernel behind features of it."""
    given = step.read("C alpha epsilon kernel kernel_params loss nu fit_intercept", _KERNEL)
    if not is_word(given.get("kernel"), None, "linear", "poly", "rbf"):
        step.refuse(f"kernel={shown(given['kernel'])} has no counterpart.", "kernel='rbf', 'poly' or 'linear'.")
    instead = f"alpha={shown(given['alpha'])}" if step.kind == "KernelRidge" else "an error that counts beyond epsilon"
    step.changed.append(f"squared error with a penalty of alpha='auto' instead of {instead}")
    return _regressor(step, mechanisms.Ridge, facts, {"fit_intercept": True, **given})


def _regressor(step: Step, kind: Any, facts: DeclaredFacts, given: dict[str, Any], **parameters: Any) -> Any:
    as_given = kind is mechanisms.Ridge or step.kind == "LinearRegression"
    step.changed.append("trained with noise" if as_given else "trained with noise, without a penalty")
    return kind(facts.y_range, fit_intercept=given["fit_intercept"], **parameters)


def descent_regressor(step: Step, facts: DeclaredFacts) -> Any:
    """Least squares."""
    given = step.read("penalty", "alpha", "loss", "fit_intercept")
    if not is_word(given["loss"], "squared_error", "huber", "epsilon_insensitive", "squared_epsilon_insensitive"):
        step.refuse(f"loss={shown(given['loss'])} has no counterpart.", "loss='squared_error'.")
    if given["loss"] != "squared_error":
        step.changed.append(_CLIPPED)
    if _penalised(step, given) and _strength_of_descent(step):
        return _regressor(step, mechanisms.Ridge, facts, given)
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


def _check_penalty(step: Step) -> None:
    """A penalty that is no stronger than scikit-learn's default is left out, a stronger one is refused."""
    alpha = number("alpha", step.given()["alpha"], step.name, least=0)
    if alpha > 1:
        step.refuse(f"alpha={alpha:g} has no counterpart and would change the result.", _NO_PENALTY)
    if alpha != 1:
        step.changed.append(f"alpha={alpha:g} has no effect: there is no penalty")


def log_link(step: Step, facts: DeclaredFacts) -> Any:
    """Counts and amounts, with a logarithm as link."""
    fixes = {"link": "leave it out: the link is the logarithm."}
    if (
        step.kind == "TweedieRegressor"
        and step.given()["power"] == 0
        and is_word(step.given()["link"], "auto", "identity")
    ):
        step.changed.append("power=0 is squared error; the weight of its penalty is alpha='auto'")
        return _regressor(step, mechanisms.Ridge, facts, step.read("alpha power link fit_intercept"))
    _check_penalty(step)
    if step.kind != "TweedieRegressor":
        return _regressor(step, getattr(mechanisms, step.kind), facts, step.read("alpha", "fit_intercept", fixes=fixes))
    given = step.read("alpha", "power", "link", "fit_intercept", fixes=fixes)
    power = given["power"]
    if not is_word(given["link"], "auto", "log") or not (isinstance(power, (int, float)) and 1 <= power <= 2):
        step.refuse("only powers of 1 to 2 with a logarithm as link are known.", "power=1.5, or Ridge() for power=0.")
    return _regressor(step, mechanisms.TweedieRegressor, facts, given, power=float(power))


_MAKERS: dict[str, Callable[..., Any]] = {
    "LogisticRegression": logistic,
    "LogisticRegressionCV RidgeClassifierCV": logistic_cv,
    "GaussianNB": naive_bayes,
    " ".join(CLUSTERS): clusters,
    "LinearSVC PassiveAggressiveClassifier Perceptron": support,
    "NuSVC SVC": kernel_support,
    "RidgeClassifier": ridge_classifier,
    " ".join(_LAWS): other_law,
    "QuantileRegressor": quantile,
    "SGDClassifier": descent_classifier,
    "LinearRegression": least_squares,
    "SGDRegressor": descent_regressor,
    "ElasticNet ElasticNetCV Lars LarsCV Lasso LassoCV LassoLars LassoLarsCV LassoLarsIC": sparse,
    "OrthogonalMatchingPursuit OrthogonalMatchingPursuitCV": sparse,
    "HuberRegressor RANSACRegressor TheilSenRegressor": robust,
    "KernelRidge LinearSVR NuSVR SVR": kernel_regressor,
    "Ridge": ridge,
    "ARDRegression BayesianRidge RidgeCV": ridge_auto,
    "PLSRegression": few_directions,
    "GammaRegressor PoissonRegressor TweedieRegressor": log_link,
}
MODELS = {name: ("model", make) for names, make in _MAKERS.items() for name in names.split()}
"""By class: its role, and what makes its counterpart of a step and facts."""
