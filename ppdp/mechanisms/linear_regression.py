"""Linear regression, plain and with a penalty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.domain import Domain
from ppdp.mechanisms.base import Mechanism
from ppdp.mechanisms.linear import LinearRegressor

__all__ = ["LinearRegression", "Ridge"]

Array = NDArray[np.float64]


class LinearRegression(LinearRegressor, Mechanism):
    """Least squares by full-batch noisy projected gradient descent.

    Targets are clipped to a public range and rescaled to [-1, 1]; every row's gradient is clipped, their sum is
    divided by the public number of rows, Gaussian noise is added, and the coefficients are projected on a ball. The
    released model is the average of the last half of the iterates, in the units of the targets.

    Parameters
    ----------
    y_range : tuple of two floats, optional
        Public range of the targets, here or in the pipeline's domain; targets outside are clipped.
    solver : {"dpgd"}, default="dpgd"
        Noisy projected gradient descent.
    fit_intercept : bool, default=True
        Whether to learn an intercept (it is clipped, projected and accounted like a coefficient).
    max_iter : int or "auto", default="auto"
        Number of steps T. "auto": ``4 √(n μ / √d)``, between 10 and 400.
    clip : float, default=1.0
        Norm C at which the gradient of each row is clipped, targets being rescaled.
    coef_norm : float, default=2.0
        Radius D of the ball of coefficients, intercept included, targets being rescaled.
    step_size : float or "auto", default="auto"
        "auto": ``1.5 / √d``.
    noise_scale : float, optional
        Standard deviation of the noise on the mean gradient, per step, targets being rescaled; a pipeline sets it.
    random_state : int, RandomState instance or None, default=None
        For tests only: noise that can be predicted protects nobody.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients, in units of the targets.
    intercept_ : float
        Intercept; the centre of the range if none is learned.
    n_iter_ : int
        Number of steps.

    Notes
    -----
    **Guarantee** (``docs/theory/noisy-gradient-descent.md``): μ-GDP with
    ``μ = √T (C mass + min(L total, 2C moved)) / (n σ)``, L the Lipschitz constant of the row's gradient in the row.
    """

    def __init__(
        self,
        y_range: Sequence[float] | None = None,
        *,
        solver: str = "dpgd",
        fit_intercept: bool = True,
        max_iter: int | str = "auto",
        clip: float = 1.0,
        coef_norm: float = 2.0,
        step_size: float | str = "auto",
        noise_scale: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.y_range = y_range
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
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
        Weight of the penalty ``alpha/2 |coef|²`` beside half the sum of squares, as scikit-learn's. "auto": 1 under
        "dpgd"; under "output", where it penalises the intercept too and must be positive, what balances its bias with
        the noise.
    solver : {"dpgd", "output"}, default="dpgd"
        Noisy projected gradient descent, or output perturbation.
    fit_intercept : bool, default=True
        Whether to learn an intercept (it is clipped, projected and accounted like a coefficient).
    max_iter : int or "auto", default="auto"
        Number of steps T. "auto": ``4 √(n μ / √d)``, between 10 and 400; under "output" as many as leave an error that
        is small beside what one row does (the sensitivity is that of the last iterate, however far it is).
    clip : float, default=1.0
        Norm C at which the gradient of each row is clipped, targets being rescaled.
    coef_norm : float, default=2.0
        Radius D of the ball of coefficients, intercept included, targets being rescaled.
    step_size : float or "auto", default="auto"
        "auto": ``1.5 / √d``; of no effect under "output".
    noise_scale : float, optional
        Standard deviation of the noise, targets being rescaled: under "dpgd" on the mean gradient, per step, under
        "output" on the coefficients; a pipeline sets it.
    random_state : int, RandomState instance or None, default=None
        For tests only: noise that can be predicted protects nobody.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients, in units of the targets.
    intercept_ : float
        Intercept; the centre of the range if none is learned.
    n_iter_ : int
        Number of steps.

    Notes
    -----
    **Guarantee** (``docs/theory/noisy-gradient-descent.md``, ``docs/theory/output-perturbation.md``): as
    :class:`LinearRegression`; under "output" ``μ = (C mass + min(L total, 2C moved)) / (alpha σ)``.
    """

    _solvers = ("dpgd", "output")
    _usual_alpha = 1.0

    def __init__(
        self,
        y_range: Sequence[float] | None = None,
        *,
        alpha: float | str = "auto",
        solver: str = "dpgd",
        fit_intercept: bool = True,
        max_iter: int | str = "auto",
        clip: float = 1.0,
        coef_norm: float = 2.0,
        step_size: float | str = "auto",
        noise_scale: float | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            y_range,
            solver=solver,
            fit_intercept=fit_intercept,
            max_iter=max_iter,
            clip=clip,
            coef_norm=coef_norm,
            step_size=step_size,
            noise_scale=noise_scale,
            random_state=random_state,
        )
        self.alpha = alpha
