"""Linear models of public classes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from ppdp.core.checks import number
from ppdp.core.domain import Domain
from ppdp.data.exact_matmul import steady
from ppdp.data.rows import Array
from ppdp.exceptions import InvalidParameter
from ppdp.mechanisms.base import Mechanism, QuerySpec
from ppdp.mechanisms.learn.linear import DESCENT, BatchModel, has_path, solver_of
from ppdp.mechanisms.learn.whitened import TrainingLoss, of_two
from ppdp.mechanisms.outcomes import ClassModel
from ppdp.mechanisms.thresholds import WIDE_OFFSET, TunedByCounts


@dataclass(eq=False, repr=False)
class LinearClassifier(TunedByCounts, ClassModel, BatchModel, ClassifierMixin):
    """Mixin for linear models of public classes.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients; one line for two classes.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercept.
    """

    def _factors(self, domain: Domain) -> tuple[tuple[float, ...], float]:
        if self.balances and not solver_of(self).balances:
            what = "class_weight='balanced' follows from released numbers, and the bound of solver='output' must not."
            fix = "class_weight={...}, or another solver."
            raise InvalidParameter(what, stage=type(self).__name__, fix=fix, parameter="class_weight")
        return super()._factors(domain)

    @available_if(has_path)
    def staged_decision_function(self, X: Any) -> Iterator[Array]:
        """Decision function of the model after the steps of ``path_steps_``; the last is that of the model.

        Made from released iterates only, so a learning curve on other rows costs nothing.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        """
        return self._staged_scores(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class &= self._several
        tags.classifier_tags.poor_score = True
        return tags

    def _in_units(self, coef: Array, intercept: Array, question: QuerySpec) -> tuple[Array, Array]:
        slope, offset = self.calibration_
        return slope * coef, slope * intercept + offset

    def _probabilities(self, scores: Array) -> Array:
        if scores.ndim > 1:
            return np.asarray(softmax(scores, axis=1))
        p = expit(scores)
        return np.column_stack([1 - p, p])

    def steady_scores(self, X: Array) -> Array:
        scores = steady(X, self.coef_).T + self.intercept_
        return np.asarray(scores if len(self.coef_) > 1 else scores[:, 0])


@dataclass(eq=False, repr=False)
class LogisticRegression(LinearClassifier, Mechanism):
    """Logistic regression by noisy Newton steps, by noisy gradient descent, or by noise on the exact model.

    The first are the default (``docs/theory/newton.md``). Of more than two classes all are learned together (softmax).

    Parameters
    ----------
    solver : str, default="auto"
        As for :class:`LinearSVC`; also "output" perturbation, or training of which few dimensions are seen ("m2",
        "lora-fa").
    rank : int or "auto", default="auto"
        How many dimensions are seen under "m2" and "lora-fa", less than there are. "auto": an eighth of them.
    alpha : float or "auto", default="auto"
        Weight of the penalty ``alpha/2 |coef|²`` beside the sum of all rows' losses, scikit-learn's ``1 / C``. "auto":
        1 under "newton", none under gradient descent; under "output", where it penalises the intercept too and must be
        positive, what balances its bias with the noise.

    Notes
    -----
    Under "output" (``docs/theory/output-perturbation.md``), for two classes, Gaussian noise is added, once, to the
    minimiser of the penalised loss over the ball, after ``max_iter`` iterations, or as many as leave an error far below
    the noise.

    Under "m2" every step shows what a random subspace, drawn for it alone, has of the mean gradient, with noise on that
    (``docs/theory/fresh-projections.md``), on all rows or, with a ``batch_size``, on Poisson samples, for rows that
    come or go. A seed is refused. Under "lora-fa" rows are projected on a subspace that is the same for everybody.
    """

    _: KW_ONLY
    alpha: float | str = "auto"
    rank: int | str = "auto"

    noise_borne = 0.11  # at 0.12 one fit in five scored below the larger class, at 0.10 one in a dozen
    _solvers = (*DESCENT, "output", "m2", "lora-fa", "auto")
    _curvature = 0.25
    _newton_alpha = 1.0

    @property
    def _several(self) -> bool:  # type: ignore[override]
        return solver_of(self).multiclass

    def assumptions(self) -> tuple[tuple[str, str], ...]:
        return solver_of(self).assumptions()

    def _formulas(self, domain: Domain) -> tuple[dict[str, str], dict[str, Any]]:
        count = self._n_classes(domain)
        if count == 2:
            return {"dpgd": "learning.logistic-gradient", "output": "learning.logistic-minimiser"}, {}
        return {"dpgd": "learning.softmax-gradient"}, {"n_classes": count}

    def _residuals(self, scores: Array, y: Array) -> Array:
        if scores.shape[1] == 1:
            residuals = np.negative(scores)  # what follows is expit(scores) - y, which several processors do faster so
            with np.errstate(over="ignore"):  # 1 over infinity is the 0 that is meant
                np.exp(residuals, out=residuals)
            residuals += 1.0
            np.divide(1.0, residuals, out=residuals)
            residuals -= y[:, None]
            return residuals
        residuals = softmax(scores, axis=1)
        residuals[np.arange(len(y)), y.astype(np.intp)] -= 1.0
        return residuals

    def _loss(self, question: QuerySpec) -> TrainingLoss:
        count = question.parameters.get("n_classes", 2)

        def curvatures(scores: Array, y: Array | None = None) -> Array:
            if scores.shape[1] == 1:
                p = self._residuals(scores, np.zeros(len(scores)))
                return np.asarray(p * (1 - p))
            p = softmax(scores, axis=1)  # of each score by itself, and enough for all together
            return np.asarray(scores.shape[1] / (scores.shape[1] - 1) * p * (1 - p))

        def targets(y: Array) -> Array:
            return 2 * y[:, None] - 1 if count == 2 else np.eye(count)[y.astype(np.intp)]

        def link(scores: Array) -> Array:
            return np.asarray(2 * expit(scores) - 1)

        chances = of_two(link) if count == 2 else partial(softmax, axis=1)
        lowest = -1.0 if count == 2 else 0.0
        return TrainingLoss(
            self._residuals, curvatures, curvatures, targets, link, 1.0, lowest_target=lowest, chances=chances
        )

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of the probability of each class, also where the probability is 0.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        scores = self.decision_function(X)
        if scores.ndim > 1:
            return np.asarray(log_softmax(scores, axis=1))
        return np.column_stack([log_expit(-scores), log_expit(scores)])


@dataclass(eq=False, repr=False)
class LinearSVC(LinearClassifier, Mechanism):
    """Linear support vector machine of two classes by noisy Newton steps or noisy gradient descent.

    The hinge loss is made smooth: quadratic where the margin is within ``smoothing`` of 1, where scikit-learn's default
    is the squared hinge. It is minimised as that of
    :class:`LogisticRegression`, without a penalty. With ``calibration="sigmoid"`` scores are log-odds, and there are
    ``predict_proba`` and ``threshold``.

    Parameters
    ----------
    classes : sequence of two labels, optional
        The public labels. If absent they are read from ``y``, and a pipeline's certificate is conditional.
    smoothing : float, default=0.5
        Half the width h of the quadratic part, at most 1.
    """

    _: KW_ONLY
    smoothing: float = 0.5

    _several = False
    _curvature = 0.5

    @property
    def _probable(self) -> bool:
        return self.calibration is not None

    @property
    def _unsure(self) -> tuple[float, float]:
        return 3.0, WIDE_OFFSET  # margins are no log-odds

    def _formulas(self, domain: Domain) -> tuple[dict[str, str], dict[str, Any]]:
        self._n_classes(domain)
        smoothing = number("smoothing", self.smoothing, self, least=1e-6, most=1)
        return {"dpgd": "learning.hinge-gradient"}, {"smoothing": smoothing}

    def _residuals(self, scores: Array, y: Array) -> Array:
        side = 2 * y[:, None] - 1
        return -side * np.clip((1 + self.smoothing - side * scores) / (2 * self.smoothing), 0.0, 1.0)

    def _loss(self, question: QuerySpec) -> TrainingLoss:
        def curvatures(scores: Array, y: Array) -> Array:
            return (np.abs((2 * y[:, None] - 1) * scores - 1) < self.smoothing) / (2 * self.smoothing)

        def usual_curvatures(scores: Array) -> Array:  # there is little next to the margin, and none far from it
            return np.asarray(0.5 * np.exp(-((np.abs(scores) - 1) ** 2)))

        return TrainingLoss(
            self._residuals,
            curvatures,
            usual_curvatures,
            lambda y: 2 * y[:, None] - 1,
            np.tanh,
            chances=of_two(np.tanh),
        )
