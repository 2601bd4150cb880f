"""Logistic regression of two or more classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from ppdp.core.domain import Domain
from ppdp.mechanisms.base import Mechanism
from ppdp.mechanisms.learn.linear import LinearClassifier
from ppdp.mechanisms.learn.solvers import SOLVERS

__all__ = ["LogisticRegression"]

Array = NDArray[np.float64]


class LogisticRegression(LinearClassifier, Mechanism):
    """Logistic regression by noisy projected gradient descent, or by noise on the exact model.

    ``solver="dpgd"``: every row's gradient is clipped, their sum is divided by the public number of rows, Gaussian
    noise is added, and the coefficients are projected on a ball. The released model is the average of the last half
    of the iterates. Of more than two classes all are learned together (softmax).

    ``solver="output"``: the penalised loss is minimised over the ball without noise, and Gaussian noise is added to
    the minimiser, once; for two classes.

    Parameters
    ----------
    classes : sequence of labels, optional
        The public labels, two or more. If absent they are read from ``y``, and a pipeline's certificate is conditional.
    solver : {"dpgd", "poisson", "fixed-size", "epochs", "hidden", "output"}, default="dpgd"
        Noisy projected gradient descent on all rows or on batches, or output perturbation.
        Under "poisson" every step takes each row by a secret coin of probability B/n, under "fixed-size" B secret rows
        without replacement, under "epochs" disjoint batches, in whole passes over the rows, shuffled once. "hidden",
        experimental, is one such pass of which only one iterate, at a secret time, is released.
    alpha : float or "auto", default="auto"
        Weight of the penalty ``alpha/2 |coef|²`` beside the sum of all rows' losses. "auto": none; under
        "output", where it penalises the intercept too and must be positive, what balances its bias with the noise.
    fit_intercept : bool, default=True
        Whether to learn an intercept (it is clipped, projected and accounted like a coefficient).
    max_iter : int or "auto", default="auto"
        Number of steps T, or of passes over the rows under "epochs"; "hidden" makes one pass. "auto":
        ``6 (n μ / √d)^0.275``, between 10 and 80; where batches are sampled ``4 √(n μ / √d)``, between 10 and 400,
        and at least ``(0.4 n / B)²``, up to 1000; under "epochs"
        1 to 10 passes; under "output" as many as leave an error that is small beside what one row does (the
        sensitivity is that of the last iterate, however far it is).
    batch_size : int or "auto", default="auto"
        Rows in a batch B, their expected number under "poisson"; of no effect under "dpgd" and "output". "auto": the
        larger of 256 and ``n / 50`` where batches are sampled; under "epochs" ``√(n μ / √d) / 2`` batches hold all
        rows, 4 to 100; under "hidden" 100 do.
    clip : float, default=1.0
        Norm C at which the gradient of each row is clipped.
    coef_norm : float or "auto", default="auto"
        Radius D of the ball of coefficients, intercept included; of k > 2 classes all together, ``D √k``.
        "auto": ``5 max(1, √d / R)``, R the norm of the rows.
    step_size : float or "auto", default="auto"
        Of the first step under "dpgd": where noise is small, later ones are longer if released gradients show that the
        loss is flat.
        "auto": ``4.8 / max(1, min(R², d) / √d)``, k / 3 times that for k > 3 classes; under "hidden" at most 1 /
        smoothness; of no effect under "output".
    noise_scale : float, optional
        Standard deviation of the noise: on the mean gradient (of a batch, over B), per step; under "output" on the
        coefficients. A pipeline sets it.
    random_state : int, RandomState instance or None, default=None
        For tests only: noise that can be predicted protects nobody.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients; one line for two classes.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercept.
    coef_path_, intercept_path_ : ndarray
        The same of up to 100 models on the way, along a first axis, where the solver releases its iterates.
    path_steps_ : ndarray of shape (n_models,)
        After how many steps these stood.
    n_iter_ : int
        Number of steps.

    Notes
    -----
    **Guarantee** (``docs/theory/noisy-gradient-descent.md``): μ-GDP with
    ``μ = √T (C mass + min(L total, 2C moved)) / (n σ)``, L the Lipschitz constant of the row's gradient in the row.
    Under "output" (``docs/theory/output-perturbation.md``): ``μ = (C mass + min(L total, 2C moved)) / (alpha σ)``.

    Under "poisson", "fixed-size" and "epochs" (``docs/theory/subsampling.md``): exact distributions of the privacy
    loss, and ``μ = √E (C mass + √(M S)) / (B σ)`` for E passes. Under "hidden", experimental, the Rényi curve of
    ``docs/theory/renyi.md``; convex losses and steps of at most 2 / smoothness are demanded when planning.
    """

    _solvers = SOLVERS
    _curvature = 0.25
    _staged = True

    def __init__(
        self,
        classes: Sequence[Any] | None = None,
        *,
        solver: str = "dpgd",
        alpha: float | str = "auto",
        fit_intercept: bool = True,
        max_iter: int | str = "auto",
        batch_size: int | str = "auto",
        clip: float = 1.0,
        coef_norm: float | str = "auto",
        step_size: float | str = "auto",
        noise_scale: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.classes = classes
        self.solver = solver
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.clip = clip
        self.coef_norm = coef_norm
        self.step_size = step_size
        self.noise_scale = noise_scale
        self.random_state = random_state

    @property
    def _several(self) -> bool:  # type: ignore[override]
        return self.solver != "output"

    def _formulas(self, domain: Domain) -> tuple[dict[str, str], dict[str, Any]]:
        count = self._n_classes(domain)
        if count == 2:
            return {"dpgd": "learning.logistic-gradient", "output": "learning.logistic-minimiser"}, {}
        return {"dpgd": "learning.softmax-gradient"}, {"n_classes": count}

    def _residuals(self, scores: Array, y: Array) -> Array:
        if scores.shape[1] == 1:
            return np.asarray(expit(scores) - y[:, None])
        residuals: Array = softmax(scores, axis=1)
        residuals[np.arange(len(y)), y.astype(np.intp)] -= 1.0
        return residuals

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class, shape (n_samples, n_classes)."""
        scores = self.decision_function(X)
        if scores.ndim > 1:
            return np.asarray(softmax(scores, axis=1))
        p = expit(scores)
        return np.column_stack([1 - p, p])
