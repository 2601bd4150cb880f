"""What linear models share: their question, their solvers, and scikit-learn's manners."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ppdp.bounds import lookup
from ppdp.bounds.minimiser import loss_smoothness, solver_rate
from ppdp.checks import choice, classes_of, integer, number, pair, positive
from ppdp.domain import Domain
from ppdp.exceptions import InvalidParameter, InvalidValue, MissingBound
from ppdp.mechanisms.base import Question
from ppdp.mechanisms.descent import ClippedGradient, descend, minimise, projected
from ppdp.privacy.noise import Noise
from ppdp.rows import Rows, encode_labels, encode_targets, observed_domain

__all__ = ["LinearClassifier", "LinearModel", "LinearRegressor"]

Array = NDArray[np.float64]

SOLVED = 0.1  # error of the solver, as a share of what one replaced row does: far below the noise
MOST_ITERATIONS = 1000  # stopping earlier only regularises more, and costs less
USUAL_MU = 0.2


def is_auto(value: Any) -> bool:
    """Whether a parameter is left to its public rule."""
    return isinstance(value, str) and value == "auto"


class LinearModel:
    """Mixin for models with linear scores; it stands before :class:`Mechanism` among the bases.

    A model says what its loss is by `_formulas` and `_residuals`, and how answers are encoded by `_encode`.
    """

    needs_y = True
    predicts = True
    alpha: Any = 0.0
    _solvers: tuple[str, ...] = ("dpgd",)
    _curvature = 1.0
    _usual_alpha = 0.0

    def _formulas(self, domain: Domain) -> tuple[dict[str, str], dict[str, Any]]:
        """For every solver the id of its sensitivity, and the parameters of the loss."""
        raise NotImplementedError

    def _residuals(self, scores: Array, y: Array) -> Array:
        """Derivative of every row's loss in its scores, both of shape (n_rows, n_scores)."""
        raise NotImplementedError

    def _encode(self, domain: Domain, y: Any) -> tuple[Domain, Array]:
        """For a model that is fitted alone: answers as rows hold them, and the domain with their classes or range."""
        raise NotImplementedError

    def _question(self: Any, domain: Domain, mu: float | None = None) -> Question:
        domain.require("row_norm", type(self).__name__)
        formulas, own = self._formulas(domain)
        solver = choice("solver", self.solver, list(self._solvers), self)
        scores = own.get("n_classes", 1)
        self._step(domain.d, scores)
        parameters: dict[str, Any] = {
            "clip": positive("clip", self.clip, self),
            "coef_norm": positive("coef_norm", self.coef_norm, self) * math.sqrt(scores),
            "fit_intercept": bool(self.fit_intercept),
            **own,
        }
        alpha = None if is_auto(self.alpha) else number("alpha", self.alpha, self, least=0)
        steps = None if is_auto(self.max_iter) else integer("max_iter", self.max_iter, self)
        if solver == "output":
            parameters |= self._minimiser(domain, alpha, steps, mu)
            steps = 1
        shape = lookup(formulas[solver], "mechanism").shape
        assert shape is not None
        size, bound = shape(domain, **parameters)
        return Question(formulas[solver], parameters, steps or self._steps(domain, size, mu), size, bound)

    def _step(self: Any, d: int, scores: int) -> float:
        if is_auto(self.step_size):
            return 1.5 / (self._curvature * math.sqrt(d)) * max(1.0, scores / 2)
        return positive("step_size", self.step_size, self, most=1e6)

    def _steps(self: Any, domain: Domain, size: int, mu: float | None) -> int:
        if mu is None:
            return 80
        numbers = size if self.fit_intercept else size + size // domain.d
        return int(np.clip(4 * math.sqrt(domain.n * mu / math.sqrt(numbers)), 10, 400))

    def _minimiser(
        self: Any, domain: Domain, alpha: float | None, steps: int | None, mu: float | None
    ) -> dict[str, Any]:
        """Penalty and number of iterations: by default a penalty whose own bias is about that of the noise."""
        smoothness = loss_smoothness(domain, self._curvature, self.fit_intercept)
        if alpha is None:
            signal = domain.n * (mu or USUAL_MU) * self.coef_norm / (8 * self._curvature * self.clip)
            alpha = domain.n * (8 * self._curvature * domain.d / signal**2) ** (1 / 3)
        if alpha == 0:
            raise InvalidParameter("alpha must be positive for solver='output'.", stage=type(self).__name__)
        if steps is None:
            wanted = SOLVED * min(1.0, 2 * self.clip / (alpha * self.coef_norm))
            steps = math.ceil(min(math.log(wanted) / solver_rate(smoothness, alpha / domain.n), MOST_ITERATIONS))
        return {"alpha": alpha, "smoothness": smoothness, "iterations": steps}

    def _fix(self: Any, question: Question) -> None:
        self.max_iter = question.parameters.get("iterations", question.steps)
        if "alpha" in question.parameters:
            self.alpha = question.parameters["alpha"]

    def _release(self: Any, rows: Rows, question: Question, noise: Noise, noise_scale: float) -> dict[str, Array]:
        parameters, radius = question.parameters, question.parameters["coef_norm"]
        clip = parameters["clip"] if self.solver == "output" else question.bound
        gradient = ClippedGradient.of(rows, self._residuals, clip, parameters["fit_intercept"])
        width = gradient.X.shape[1]
        start = np.zeros((question.size // width, width))

        def answer(value: Array) -> Array:
            return noise.release(value.ravel(), noise_scale, question.bound).reshape(value.shape)

        if self.solver == "output":
            theta = minimise(
                gradient,
                start,
                iterations=parameters["iterations"],
                smoothness=parameters["smoothness"],
                strength=parameters["alpha"] / rows.n,
                radius=radius,
            )
            return {"theta": projected(answer(theta), radius).ravel()}
        d = rows.X.shape[1]
        penalty = np.zeros(width)  # the intercept is free
        penalty[:d] = (self._usual_alpha if is_auto(self.alpha) else self.alpha) / rows.n
        steps, step = question.steps, self._step(d, len(start))
        theta = descend(gradient, answer, start, steps=steps, step_size=step, radius=radius, penalty=penalty)
        return {"theta": theta.ravel()}

    def _scores(self: Any, released: Mapping[str, Array], domain: Domain, question: Question) -> tuple[Array, Array]:
        """Coefficients of shape (n_scores, n_features) and intercepts; remembers the number of steps."""
        self.n_iter_ = question.parameters.get("iterations", question.steps)
        theta = released["theta"].reshape(-1, domain.d + bool(self.fit_intercept))
        intercept = theta[:, -1].copy() if self.fit_intercept else np.zeros(len(theta))
        return theta[:, : domain.d].copy(), intercept

    def fit(self: Any, X: Any, y: Any) -> Any:
        """Train with the given ``noise_scale``; bounds that are not declared are read off the data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels or targets.

        Raises
        ------
        MissingBudget
            If ``noise_scale`` is not set.
        """
        scale = self._scale()
        X, y = validate_data(self, X, y, dtype=np.float64)
        domain, codes = self._encode(observed_domain(X), y)
        question = self._question(domain)
        self._wear(self._release(Rows.of(X, codes), question, Noise(self.random_state), scale), domain, question)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")


class LinearClassifier(LinearModel, ClassifierMixin):
    """Mixin for linear models of public classes."""

    classes: Any
    _several = True

    def _n_classes(self: Any, domain: Domain) -> int:
        """Number of classes; two where nothing is known yet."""
        known = domain.classes if self.classes is None else classes_of("classes", self.classes, self)
        count = 2 if known is None else len(known)
        if count < 2 or (count > 2 and not self._several):
            binary = "Only binary classification is supported. It needs exactly two classes, not one class or several."
            raise InvalidParameter(
                "it needs at least two classes, not one class." if self._several else binary,
                stage=type(self).__name__,
                fix="pass classes=(...) to the model.",
            )
        return count

    def _encode(self: Any, domain: Domain, y: Any) -> tuple[Domain, Array]:
        check_classification_targets(y)
        classes = np.unique(y).tolist() if self.classes is None else classes_of("classes", self.classes, self)
        domain = domain.but(classes=tuple(classes))
        self._n_classes(domain)
        codes = encode_labels(y, domain.classes or ())
        if np.isnan(codes).any():
            raise InvalidValue("a label is not one of the declared classes.", stage=type(self).__name__)
        return domain, codes

    def _wear(self: Any, released: Mapping[str, Array], domain: Domain, question: Question) -> None:
        self.classes_ = np.asarray(domain.require("classes", type(self).__name__))
        self.coef_, self.intercept_ = self._scores(released, domain, question)

    def decision_function(self: Any, X: Any) -> Array:
        """Signed distance from the decision boundary, or the score of every class if there are several.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        scores = X @ self.coef_.T + self.intercept_
        return np.asarray(scores[:, 0] if len(self.coef_) == 1 else scores)

    def predict(self: Any, X: Any) -> NDArray[Any]:
        """Most likely label of each row."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[codes])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._several
        tags.classifier_tags.poor_score = True
        return tags


class LinearRegressor(LinearModel, RegressorMixin):
    """Mixin for linear models of targets in a public range."""

    y_range: Any

    def _range(self: Any, domain: Domain) -> tuple[float, float]:
        """The public range of the targets."""
        known = domain.y_range if self.y_range is None else pair("y_range", self.y_range, self)
        if known is None:
            raise MissingBound(
                "the public range of the targets is not declared.",
                stage=type(self).__name__,
                fix="pass y_range=(low, high) to the model or Domain(y_range=...).",
            )
        return known

    def _encode(self: Any, domain: Domain, y: Any) -> tuple[Domain, Array]:
        y = np.asarray(y, dtype=np.float64)
        low, high = float(y.min()), float(y.max())
        if self.y_range is None:
            domain = domain.but(y_range=(low, high) if low < high else (low - 1.0, low + 1.0))
        return domain, encode_targets(y, self._range(domain))

    def _wear(self: Any, released: Mapping[str, Array], domain: Domain, question: Question) -> None:
        low, high = question.parameters["y_range"]
        coef, intercept = self._scores(released, domain, question)
        half = high / 2 - low / 2
        self.coef_, self.intercept_ = half * coef[0], float(low / 2 + high / 2 + half * intercept[0])

    def predict(self: Any, X: Any) -> Array:
        """Predicted target of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(X @ self.coef_ + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags
