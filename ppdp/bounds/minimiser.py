"""Minimisers of regularised losses: ``docs/theory/output-perturbation.md``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from ppdp.bounds.learning import Gradient, augmented_norm, logistic_gradient, squared_gradient
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import formula, sane
from ppdp.core.rounding import UNIT, inflate

__all__ = [
    "LOGISTIC_CURVATURE",
    "SQUARED_CURVATURE",
    "logistic_minimiser",
    "loss_smoothness",
    "minimiser_shift",
    "solver_rate",
    "squared_minimiser",
]

_minimiser = partial(formula, kind="mechanism", page="output-perturbation", predicts=True)

LOGISTIC_CURVATURE, SQUARED_CURVATURE = 0.25, 1.0


def loss_smoothness(domain: Domain, curvature: float, fit_intercept: bool) -> float:
    """Lipschitz constant in theta of every row's gradient: the curvature of the loss times the square of the norm."""
    return curvature * augmented_norm(float(domain.require("row_norm")), fit_intercept) ** 2


def solver_rate(smoothness: float, strength: float) -> float:
    """Logarithm of the factor by which a step of projected gradient descent comes closer to the minimiser.

    The factor is ``(β - λ)/(β + λ)`` for a λ-strongly convex function with β-Lipschitz gradient and steps of
    ``2/(β + λ)``; here ``β = smoothness + λ``.
    """
    return math.log1p(-2 * strength / (smoothness + 2 * strength))


def minimiser_shift(
    domain: Domain,
    distance: Distance,
    gradient: Gradient,
    alpha: float,
    smoothness: float,
    iterations: int,
    coef_norm: float,
) -> float:
    """L2 sensitivity of the last iterate, converged or not.

    ``(1 - rate^T) S/λ`` with ``λ = alpha/n``, where the mean gradient changes by at most S: for many iterations that of
    the minimiser, S/λ. Rounding is charged.
    """
    strength = alpha / domain.n
    reached = -math.expm1(iterations * solver_rate(smoothness, strength))
    rounding = (2 * gradient.size + 40) * UNIT * (coef_norm * (1 + smoothness / strength) + gradient.bound / strength)
    return inflate(reached * gradient.mean_shift(domain.n, distance) / strength + 2 * rounding)


def _shape(gradient: Callable[..., Gradient]) -> Callable[..., tuple[int, float]]:
    """Numbers in a minimiser, and the bound on each: the radius of the ball."""

    def shape(
        domain: Domain, *, alpha: float, smoothness: float, iterations: int, coef_norm: float, **parameters: object
    ) -> tuple[int, float]:
        """Size and bound of the answer."""
        return gradient(domain, coef_norm=coef_norm, **parameters).size, coef_norm

    return shape


@_minimiser("learning.logistic-minimiser", used_by=("LogisticRegression",), shape=_shape(logistic_gradient))
def logistic_minimiser(
    domain: Domain,
    distance: Distance,
    *,
    clip: float,
    coef_norm: float,
    fit_intercept: bool,
    alpha: float,
    smoothness: float,
    iterations: int,
) -> float:
    """L2 sensitivity of the minimiser in the ball of the mean clipped logistic loss plus ``alpha/(2n) |theta|²``.

    ``(C mass + min(L total, 2C moved)) / alpha``, 2C/alpha for one replaced row; less after few iterations.
    """
    least = loss_smoothness(domain, LOGISTIC_CURVATURE, fit_intercept)
    sane(alpha > 0 and iterations >= 1 and smoothness >= least * (1 - 1e-9))
    found = logistic_gradient(domain, clip=clip, coef_norm=coef_norm, fit_intercept=fit_intercept)
    return minimiser_shift(domain, distance, found, alpha, smoothness, iterations, coef_norm)


@_minimiser("learning.squared-minimiser", used_by=("Ridge",), shape=_shape(squared_gradient))
def squared_minimiser(
    domain: Domain,
    distance: Distance,
    *,
    clip: float,
    coef_norm: float,
    fit_intercept: bool,
    y_range: Sequence[float],
    alpha: float,
    smoothness: float,
    iterations: int,
) -> float:
    """The same for the squared loss, which clipping turns into Huber's; targets are rescaled to [-1, 1]."""
    least = loss_smoothness(domain, SQUARED_CURVATURE, fit_intercept)
    sane(alpha > 0 and iterations >= 1 and smoothness >= least * (1 - 1e-9))
    found = squared_gradient(domain, clip=clip, coef_norm=coef_norm, fit_intercept=fit_intercept, y_range=y_range)
    return minimiser_shift(domain, distance, found, alpha, smoothness, iterations, coef_norm)
