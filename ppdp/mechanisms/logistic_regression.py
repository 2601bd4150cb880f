"""Logistic regression by noisy gradient descent."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ppdp.bounds.learning import gradient_shape
from ppdp.checks import classes_of, integer, positive
from ppdp.domain import Domain
from ppdp.exceptions import InvalidParameter, InvalidValue
from ppdp.mechanisms.base import Mechanism, Question
from ppdp.privacy.noise import Noise
from ppdp.progress import progress
from ppdp.rows import Rows, encode_labels, observed_domain
from ppdp.statistics import row_norms

__all__ = ["LogisticRegression"]

Array = NDArray[np.float64]


class LogisticRegression(ClassifierMixin, Mechanism):
    """Binary logistic regression by full-batch noisy projected gradient descent.

    Every row's gradient is clipped, their sum is divided by the public number of rows, Gaussian noise is
    added, and the coefficients are projected on a ball. The released model is the average of the last
    half of the iterates.

    Parameters
    ----------
    classes : sequence of two labels, optional
        The public labels. If absent they are read from ``y``, and a pipeline's certificate is conditional.
    fit_intercept : bool, default=True
        Whether to learn an intercept (it is clipped, projected and accounted like a coefficient).
    max_iter : int or "auto", default="auto"
        Number of steps T. "auto": ``4 √(n μ / √d)``, between 10 and 400.
    clip : float, default=1.0
        Norm C at which the gradient of each row is clipped.
    coef_norm : float, default=5.0
        Radius D of the ball of coefficients, intercept included.
    step_size : float or "auto", default="auto"
        "auto": ``6 / √d``.
    noise_scale : float, optional
        Standard deviation of the noise on the mean gradient, per step; a pipeline sets it.
    random_state : int, RandomState instance or None, default=None
        For tests only: noise that can be predicted protects nobody.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels.
    coef_ : ndarray of shape (1, n_features)
        Coefficients.
    intercept_ : ndarray of shape (1,)
        Intercept.
    n_iter_ : int
        Number of steps.

    Notes
    -----
    **Guarantee** (``docs/theory/noisy-gradient-descent.md``): μ-GDP with
    ``μ = √T (C mass + min(L total, 2C moved)) / (n σ)``, L the Lipschitz constant of the row's gradient in the row.
    """

    needs_y = True
    predicts = True

    def __init__(
        self,
        classes: Sequence[Any] | None = None,
        *,
        fit_intercept: bool = True,
        max_iter: int | str = "auto",
        clip: float = 1.0,
        coef_norm: float = 5.0,
        step_size: float | str = "auto",
        noise_scale: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.classes = classes
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.clip = clip
        self.coef_norm = coef_norm
        self.step_size = step_size
        self.noise_scale = noise_scale
        self.random_state = random_state

    def _question(self, domain: Domain, mu: float | None = None) -> Question:
        if domain.classes is not None and len(domain.classes) != 2:
            raise InvalidParameter(
                f"the model is binary, {len(domain.classes)} classes are declared.",
                stage="LogisticRegression",
                fix="declare two classes.",
            )
        domain.require("row_norm", "LogisticRegression")
        self._step(domain.d)
        parameters: dict[str, Any] = {
            "clip": positive("clip", self.clip, self),
            "coef_norm": positive("coef_norm", self.coef_norm, self),
            "fit_intercept": bool(self.fit_intercept),
        }
        steps = self._steps(domain, mu)
        return Question("learning.logistic-gradient", parameters, steps, *gradient_shape(domain, **parameters))

    def _step(self, d: int) -> float:
        if isinstance(self.step_size, str) and self.step_size == "auto":
            return 6 / math.sqrt(d)
        return positive("step_size", self.step_size, self, most=1e6)

    def _steps(self, domain: Domain, mu: float | None) -> int:
        if not (isinstance(self.max_iter, str) and self.max_iter == "auto"):
            return integer("max_iter", self.max_iter, self)
        if mu is None:
            return 80
        return int(np.clip(4 * math.sqrt(domain.n * mu / math.sqrt(domain.d + 1)), 10, 400))

    def _fix(self, question: Question) -> None:
        self.max_iter = question.steps

    def _release(self, rows: Rows, question: Question, noise: Noise, noise_scale: float) -> dict[str, Array]:
        assert rows.y is not None
        X = np.column_stack([rows.X, np.ones(rows.n)]) if self.fit_intercept else rows.X
        step = self._step(rows.X.shape[1])
        radius, clip = float(self.coef_norm), question.bound
        norms = row_norms(X)
        theta, average = np.zeros(X.shape[1]), np.zeros(X.shape[1])
        tail = question.steps - question.steps // 2
        for t in progress(range(question.steps), "noisy gradient descent"):
            residual = expit(X @ theta) - rows.y
            size = np.abs(residual) * norms
            scale = np.minimum(1.0, np.divide(clip, size, out=np.ones_like(size), where=size > 0))
            gradient = (rows.weight * residual * scale) @ X / rows.n
            theta = theta - step * noise.release(gradient, noise_scale, clip)
            theta *= min(1.0, radius / max(float(np.linalg.norm(theta)), radius))
            if t >= question.steps - tail:
                average += theta / tail
        return {"theta": average}

    def _wear(self, released: Mapping[str, Array], domain: Domain, question: Question) -> None:
        theta = released["theta"]
        self.classes_ = np.asarray(domain.require("classes", "LogisticRegression"))
        self.n_iter_ = question.steps
        self.coef_ = theta[None, : domain.d].copy()
        self.intercept_ = theta[domain.d :].copy() if self.fit_intercept else np.zeros(1)

    def fit(self, X: Any, y: Any) -> LogisticRegression:
        """Train with the given ``noise_scale``; row norms and, if not declared, classes are read off the data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.

        Raises
        ------
        MissingBudget
            If ``noise_scale`` is not set.
        """
        scale = self._scale()
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        classes = np.unique(y).tolist() if self.classes is None else classes_of("classes", self.classes, self)
        if len(classes) != 2:
            raise InvalidParameter(
                f"Only binary classification is supported. The type of the target has {len(classes)} class(es).",
                stage="LogisticRegression",
            )
        domain = observed_domain(X).but(classes=tuple(classes))
        question = self._question(domain)
        codes = encode_labels(y, domain.classes or ())
        if np.isnan(codes).any():
            raise InvalidValue("a label is not one of the declared classes.", stage="LogisticRegression")
        self._wear(self._release(Rows.of(X, codes), question, Noise(self.random_state), scale), domain, question)
        return self

    def decision_function(self, X: Any) -> Array:
        """Signed distance from the decision boundary.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(X @ self.coef_[0] + self.intercept_[0])

    def predict(self, X: Any) -> NDArray[Any]:
        """Most likely label of each row."""
        positive_side = self.decision_function(X) > 0
        return np.asarray(self.classes_[positive_side.astype(int)])

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class, shape (n_samples, 2)."""
        p = expit(self.decision_function(X))
        return np.column_stack([1 - p, p])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True
        return tags
