"""Linear regression, plain and with a penalty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.core.domain import Domain
from ppdp.mechanisms.base import Mechanism
from ppdp.mechanisms.learn.linear import LinearRegressor
from ppdp.mechanisms.learn.solvers import SOLVERS

__all__ = ["LinearRegression", "Ridge"]

Array = NDArray[np.float64]


class LinearRegression(LinearRegressor, Mechanism):
    """Least squares by noisy projected gradient descent.

    Targets are clipped to a public range and rescaled to [-1, 1]; every row's gradient is clipped, their sum is
    divided by the public number of rows, Gaussian noise is added, and the coefficients are projected on a ball. The
    released model is the average of the last half of the iterates, in the units of the targets.

    Parameters
    ----------
    y_range : tuple of two floats, optional
        Public range of the targets, here or in the pipeline's domain; targets outside are clipped.
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
        Norm C at which the gradient of each row is clipped, targets being rescaled.
    coef_norm : float or "auto", default="auto"
        Radius D of the ball of coefficients, intercept included, targets being rescaled.
        "auto": ``2 max(1, √d / R)``, R the norm of the rows.
    step_size : float or "auto", default="auto"
        Of the first step under "dpgd": where noise is small, later ones are longer if released gradients show that the
        loss is flat.
        "auto": ``1.2 / max(1, min(R², d) / √d)``; under "hidden" at most 1 / smoothness.
    noise_scale : float, optional
        Standard deviation of the noise on the mean gradient (of a batch, over B), per step, targets being rescaled; a
        pipeline sets it.
    random_state : int, RandomState instance or None, default=None
        For tests only: noise that can be predicted protects nobody.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients, in units of the targets.
    intercept_ : float
        Intercept; the centre of the range if none is learned.
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

    _usual_norm = 2.0
    _staged = True

    def __init__(
        self,
        y_range: Sequence[float] | None = None,
        *,
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
        self.y_range = y_range
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
        formulas = {"dpgd": "learning.squared-gradient", "output": "learning.squared-minimiser"}
        return formulas, {"y_range": self._range(domain)}

    def _residuals(self, scores: Array, y: Array) -> Array:
        return scores - y[:, None]


class Ridge(LinearRegression):
    """Least squares with a squared penalty, by noisy gradient descent or by noise on the exact model.

    ``solver="dpgd"`` is that of :class:`LinearRegression`; the penalty acts on released coefficients only.
    ``solver="output"``: the penalised loss is minimised over the ball without noise, every row's gradient clipped
    (which makes it Huber's loss), and Gaussian noise is added to the minimiser, once.

    Parameters
    ----------
    y_range : tuple of two floats, optional
        Public range of the targets, here or in the pipeline's domain; targets outside are clipped.
    alpha : float or "auto", default="auto"
        Weight of the penalty ``alpha/2 |coef|²`` beside half the sum of squares, as scikit-learn's. "auto": 1; under
        "output", where it penalises the intercept too and must be positive, what balances its bias with
        the noise.
    solver : {"dpgd", "poisson", "fixed-size", "epochs", "hidden", "output"}, default="dpgd"
        Noisy projected gradient descent on all rows or on batches, or output perturbation.
        Under "poisson" every step takes each row by a secret coin of probability B/n, under "fixed-size" B secret rows
        without replacement, under "epochs" disjoint batches, in whole passes over the rows, shuffled once. "hidden",
        experimental, is one such pass of which only one iterate, at a secret time, is released.
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
        Norm C at which the gradient of each row is clipped, targets being rescaled.
    coef_norm : float or "auto", default="auto"
        Radius D of the ball of coefficients, intercept included, targets being rescaled.
        "auto": ``2 max(1, √d / R)``, R the norm of the rows.
    step_size : float or "auto", default="auto"
        Of the first step under "dpgd": where noise is small, later ones are longer if released gradients show that the
        loss is flat.
        "auto": ``1.2 / max(1, min(R², d) / √d)``; under "hidden" at most 1 / smoothness; of no effect under "output".
    noise_scale : float, optional
        Standard deviation of the noise, targets being rescaled: on the mean gradient (of a batch, over B), per step;
        under "output" on the coefficients. A pipeline sets it.
    random_state : int, RandomState instance or None, default=None
        For tests only: noise that can be predicted protects nobody.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients, in units of the targets.
    intercept_ : float
        Intercept; the centre of the range if none is learned.
    coef_path_, intercept_path_ : ndarray
        The same of up to 100 models on the way, along a first axis, where the solver releases its iterates.
    path_steps_ : ndarray of shape (n_models,)
        After how many steps these stood.
    n_iter_ : int
        Number of steps.

    Notes
    -----
    **Guarantee** (``docs/theory/noisy-gradient-descent.md``, ``docs/theory/output-perturbation.md``): as
    :class:`LinearRegression`; under "output" ``μ = (C mass + min(L total, 2C moved)) / (alpha σ)``.
    """

    _solvers = SOLVERS
    _usual_alpha = 1.0

    def __init__(
        self,
        y_range: Sequence[float] | None = None,
        *,
        alpha: float | str = "auto",
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
        super().__init__(
            y_range,
            solver=solver,
            fit_intercept=fit_intercept,
            max_iter=max_iter,
            batch_size=batch_size,
            clip=clip,
            coef_norm=coef_norm,
            step_size=step_size,
            noise_scale=noise_scale,
            random_state=random_state,
        )
        self.alpha = alpha
