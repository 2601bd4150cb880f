"""Linear support vector classification."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.core.checks import number
from ppdp.core.domain import Domain
from ppdp.mechanisms.base import Mechanism
from ppdp.mechanisms.learn.linear import LinearClassifier

__all__ = ["LinearSVC"]

Array = NDArray[np.float64]


class LinearSVC(LinearClassifier, Mechanism):
    """Linear support vector machine of two classes by noisy projected gradient descent.

    The hinge loss is made smooth: quadratic where the margin is within ``smoothing`` of 1. Every row's gradient is
    clipped, their sum is divided by the public number of rows, Gaussian noise is added, and the coefficients are
    projected on a ball. The released model is the average of the last half of the iterates.

    Parameters
    ----------
    classes : sequence of two labels, optional
        The public labels. If absent they are read from ``y``, and a pipeline's certificate is conditional.
    smoothing : float, default=0.5
        Half the width h of the quadratic part, at most 1.
    solver : {"dpgd", "poisson", "fixed-size", "epochs", "hidden"}, default="dpgd"
        Noisy projected gradient descent on all rows or on batches.
        Under "poisson" every step takes each row by a secret coin of probability B/n, under "fixed-size" B secret rows
        without replacement, under "epochs" disjoint batches, in whole passes over the rows, shuffled once. "hidden",
        experimental, is one such pass of which only one iterate, at a secret time, is released.
    fit_intercept : bool, default=True
        Whether to learn an intercept (it is clipped, projected and accounted like a coefficient).
    max_iter : int or "auto", default="auto"
        Number of steps T, or of passes over the rows under "epochs"; "hidden" makes one pass. "auto":
        ``6 (n μ / √d)^0.275``, between 10 and 80; where batches are sampled ``4 √(n μ / √d)``, between 10 and 400,
        and at least ``(0.4 n / B)²``, up to 1000; under "epochs"
        1 to 10 passes.
    batch_size : int or "auto", default="auto"
        Rows in a batch B, their expected number under "poisson"; of no effect under "dpgd". "auto": the larger of 256
        and ``n / 50`` where batches are sampled; under "epochs" ``√(n μ / √d) / 2`` batches hold all rows, 4 to 100;
        under "hidden" 100 do.
    clip : float, default=1.0
        Norm C at which the gradient of each row is clipped.
    coef_norm : float or "auto", default="auto"
        Radius D of the ball of coefficients, intercept included.
        "auto": ``5 max(1, √d / R)``, R the norm of the rows.
    step_size : float or "auto", default="auto"
        Of the first step under "dpgd": where noise is small, later ones are longer if released gradients show that the
        loss is flat.
        "auto": ``2.4 / max(1, min(R², d) / √d)``; under "hidden" at most 1 / smoothness.
    noise_scale : float, optional
        Standard deviation of the noise on the mean gradient (of a batch, over B), per step; a pipeline sets it.
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

    Under "poisson", "fixed-size" and "epochs" (``docs/theory/subsampling.md``): exact distributions of the privacy
    loss, and ``μ = √E (C mass + √(M S)) / (B σ)`` for E passes. Under "hidden", experimental, the Rényi curve of
    ``docs/theory/renyi.md``; convex losses and steps of at most 2 / smoothness are demanded when planning.
    """

    _several = False
    _curvature = 0.5
    _staged = True

    def __init__(
        self,
        classes: Sequence[Any] | None = None,
        *,
        smoothing: float = 0.5,
        solver: str = "dpgd",
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
        self.smoothing = smoothing
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.clip = clip
        self.coef_norm = coef_norm
        self.step_size = step_size
        self.noise_scale = noise_scale
        self.random_state = random_state

    def _formulas(self, domain: Domain) -> tuple[dict[str, str], dict[str, Any]]:
        self._n_classes(domain)
        smoothing = number("smoothing", self.smoothing, self, least=1e-6, most=1)
        return {"dpgd": "learning.hinge-gradient"}, {"smoothing": smoothing}

    def _residuals(self, scores: Array, y: Array) -> Array:
        side = 2 * y[:, None] - 1
        return -side * np.clip((1 + self.smoothing - side * scores) / (2 * self.smoothing), 0.0, 1.0)
