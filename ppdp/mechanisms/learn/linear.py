"""What linear models share: their question, their solvers, and scikit-learn's manners."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ppdp.bounds.learning import kept_steps
from ppdp.core.checks import choice, classes_of, flag, integer, number, pair, positive
from ppdp.core.domain import Domain
from ppdp.data.rows import Rows, encode_labels, encode_targets
from ppdp.data.summary import observed_domain
from ppdp.exceptions import InvalidParameter, InvalidValue, MissingBound
from ppdp.mechanisms.base import Question
from ppdp.mechanisms.learn.batches import batches, secret_one
from ppdp.mechanisms.learn.descent import ClippedGradient, descend, descend_faster, minimise, path, projected
from ppdp.mechanisms.learn.secants import Secants, clear
from ppdp.mechanisms.learn.solvers import SOLVERS, Training, question
from ppdp.privacy.noise.sampler import Noise

__all__ = ["LinearClassifier", "LinearModel", "LinearRegressor"]

Array = NDArray[np.float64]

ONE_MODEL = ("output", "hidden")  # solvers that release nothing but the last model


def is_auto(value: Any) -> bool:
    """Whether a parameter is left to its public rule."""
    return isinstance(value, str) and value == "auto"


def _has_path(model: Any) -> bool:
    """Whether the iterates are released, so that there are learning curves; for ``available_if``."""
    return model._staged and model.solver not in ONE_MODEL


class LinearModel:
    """Mixin for models with linear scores; it stands before :class:`Mechanism` among the bases.

    A model says what its loss is by `_formulas` and `_residuals`, and how answers are encoded by `_encode`.
    """

    needs_y = True
    predicts = True
    alpha: Any = 0.0
    batch_size: Any = "auto"
    _staged = False
    _solvers: tuple[str, ...] = tuple(name for name in SOLVERS if name != "output")
    _curvature = 1.0
    _usual_alpha = 0.0
    _usual_norm = 5.0

    def _formulas(self, domain: Domain) -> tuple[dict[str, str], dict[str, Any]]:
        """Ids of the sensitivities of "dpgd" and "output", and the parameters of the loss."""
        raise NotImplementedError

    def _residuals(self, scores: Array, y: Array) -> Array:
        """Derivative of every row's loss in its scores, both of shape (n_rows, n_scores)."""
        raise NotImplementedError

    def _encode(self, domain: Domain, y: Any) -> tuple[Domain, Array]:
        """For a model that is fitted alone: answers as rows hold them, and the domain with their classes or range."""
        raise NotImplementedError

    def question(self: Any, domain: Domain, mu: float | None = None) -> Question:
        domain.require("row_norm", type(self).__name__)
        formulas, own = self._formulas(domain)
        solver = choice("solver", self.solver, list(self._solvers), self)
        scores = own.get("n_classes", 1)
        gradient = {
            "clip": positive("clip", self.clip, self),
            "coef_norm": self._radius(domain) * math.sqrt(scores),
            "fit_intercept": flag("fit_intercept", self.fit_intercept, self),
            **own,
        }
        training = Training(
            type(self).__name__,
            formulas,
            gradient,
            alpha=None if is_auto(self.alpha) else number("alpha", self.alpha, self, least=0),
            max_iter=None if is_auto(self.max_iter) else integer("max_iter", self.max_iter, self),
            batch_size=None if is_auto(self.batch_size) else integer("batch_size", self.batch_size, self),
            step_size=self._step(domain, scores),
            usual_step=is_auto(self.step_size),
        )
        return question(solver, domain, training, mu)

    def _radius(self: Any, domain: Domain) -> float:
        """Longest coefficients of one score; shorter rows need longer ones."""
        if is_auto(self.coef_norm):
            return self._usual_norm * max(1.0, math.sqrt(domain.d) / float(domain.require("row_norm")))
        return positive("coef_norm", self.coef_norm, self)

    def _step(self: Any, domain: Domain, scores: int) -> float:
        """Length of a step: by default for entries of about 1 (less if rows are shorter) and an intercept."""
        if is_auto(self.step_size):
            spread = min(float(domain.require("row_norm")) ** 2, domain.d) / math.sqrt(domain.d)
            return 1.2 / (self._curvature * max(1.0, spread)) * max(1.0, scores / 3)
        return positive("step_size", self.step_size, self, most=1e6)

    def settle(self: Any, question: Question) -> None:
        parameters, steps = question.parameters, question.steps
        self.max_iter = 1 if self.solver == "hidden" else parameters.get("iterations", parameters.get("epochs", steps))
        for name in ("alpha", "batch_size"):
            if name in parameters:
                setattr(self, name, parameters[name])
        self.step_size = question.step_size or self.step_size
        self.coef_norm = parameters["coef_norm"] / math.sqrt(parameters.get("n_classes", 1))

    def release(self: Any, rows: Rows, question: Question, noise: Noise, noise_scale: float) -> dict[str, Array]:
        parameters, steps = question.parameters, question.steps
        radius, solver = parameters["coef_norm"], self.solver
        gradient = ClippedGradient.of(rows, self._residuals, parameters["clip"], parameters["fit_intercept"])
        width = gradient.width
        start = np.zeros((question.size // width, width))

        def answer(value: Array) -> Array:
            return noise.release(value.ravel(), noise_scale, question.bound).reshape(value.shape)

        if solver == "output":
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
        how = {"steps": steps, "step_size": question.step_size, "radius": radius, "penalty": penalty}
        if solver == "dpgd":
            faster = clear(noise_scale, parameters["clip"], question.size)
            secants = Secants(question.step_size, noise_scale) if faster else None
            iterates = descend_faster(gradient, answer, start, secants=secants, **how)
        else:
            size = parameters["batch_size"]
            gradients = (gradient.on(batch, size) for batch in batches(solver, noise, rows.n, size, steps))
            iterates = descend(gradients, answer, start, **how)
        if solver == "hidden":
            return {"theta": secret_one(noise, iterates, steps).ravel()}
        models = path(iterates, steps).reshape(-1, question.size)
        last = {"theta": models[-1].copy()}
        return {**last, "path": models} if self._staged else last

    def _scores(self: Any, released: Mapping[str, Array], domain: Domain, question: Question) -> tuple[Array, Array]:
        """Coefficients of shape (n_scores, n_features) and intercepts; remembers the number of steps."""
        self.n_iter_ = question.parameters.get("iterations", question.steps)
        for name in ("coef_path_", "intercept_path_", "path_steps_"):  # of an earlier fit by another solver
            vars(self).pop(name, None)
        return self._parts(released["theta"], domain)

    def _path(self: Any, released: Mapping[str, Array], domain: Domain) -> tuple[Array, Array]:
        """The same of the models on the path, along a first axis; remembers after how many steps they stood."""
        self.path_steps_ = np.array(kept_steps(self.n_iter_))
        return self._parts(released["path"], domain)

    def _parts(self: Any, thetas: Array, domain: Domain) -> tuple[Array, Array]:
        models = thetas.reshape(*thetas.shape[:-1], -1, domain.d + bool(self.fit_intercept))
        intercept = models[..., -1].copy() if self.fit_intercept else np.zeros(models.shape[:-1])
        return models[..., : domain.d].copy(), intercept

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
        scale = self.own_noise_scale()
        X, y = validate_data(self, X, y, dtype=np.float64)
        domain, codes = self._encode(observed_domain(X), y)
        question = self.question(domain)
        self.read(self.release(Rows.of(X, codes), question, Noise(self.random_state), scale), domain, question)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")


def _scores(X: Array, coef: Array, intercept: Array) -> Array:
    """One score per row, or one for each of several classes."""
    scores = X @ coef.T + intercept
    return np.asarray(scores[:, 0] if len(coef) == 1 else scores)


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

    def read(self: Any, released: Mapping[str, Array], domain: Domain, question: Question) -> None:
        self.classes_ = np.asarray(domain.require("classes", type(self).__name__))
        self.coef_, self.intercept_ = self._scores(released, domain, question)
        if "path" in released:
            self.coef_path_, self.intercept_path_ = self._path(released, domain)

    def _labels(self: Any, scores: Array) -> NDArray[Any]:
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[codes])

    def decision_function(self: Any, X: Any) -> Array:
        """Signed distance from the decision boundary, or the score of every class if there are several.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        """
        check_is_fitted(self)
        return _scores(validate_data(self, X, dtype=np.float64, reset=False), self.coef_, self.intercept_)

    def predict(self: Any, X: Any) -> NDArray[Any]:
        """Most likely label of each row."""
        return self._labels(self.decision_function(X))

    @available_if(_has_path)
    def staged_decision_function(self: Any, X: Any) -> Iterator[Array]:
        """Decision function of the model after the steps of ``path_steps_``; the last is that of the model.

        Made from released iterates only, so a learning curve on other rows costs nothing.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        """
        check_is_fitted(self, "coef_path_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        for coef, intercept in zip(self.coef_path_, self.intercept_path_):
            yield _scores(X, coef, intercept)

    @available_if(_has_path)
    def staged_predict(self: Any, X: Any) -> Iterator[NDArray[Any]]:
        """Labels that the model would predict after the steps of ``path_steps_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        """
        return map(self._labels, self.staged_decision_function(X))

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

    def read(self: Any, released: Mapping[str, Array], domain: Domain, question: Question) -> None:
        low, high = question.parameters["y_range"]
        coef, intercept = self._scores(released, domain, question)
        half, centre = high / 2 - low / 2, low / 2 + high / 2
        self.coef_, self.intercept_ = half * coef[0], float(centre + half * intercept[0])
        if "path" in released:
            coef, intercept = self._path(released, domain)
            self.coef_path_, self.intercept_path_ = half * coef[:, 0], centre + half * intercept[:, 0]

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

    @available_if(_has_path)
    def staged_predict(self: Any, X: Any) -> Iterator[Array]:
        """Targets that the model would predict after the steps of ``path_steps_``; the last are those of the model.

        Made from released iterates only, so a learning curve on other rows costs nothing.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        """
        check_is_fitted(self, "coef_path_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        for coef, intercept in zip(self.coef_path_, self.intercept_path_):
            yield np.asarray(X @ coef + intercept)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags
