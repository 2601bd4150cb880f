"""Gradients of losses: ``docs/theory/noisy-gradient-descent.md``."""

from __future__ import annotations

import math

from ppdp.bounds.formula import formula
from ppdp.bounds.rounding import UNIT, inflate
from ppdp.distance import Distance
from ppdp.domain import Domain

__all__ = ["augmented_norm", "logistic_gradient_norm", "logistic_smoothness", "noisy_gradient_step"]


def augmented_norm(row_norm: float, intercept: bool) -> float:
    """Norm of a row with the constant feature of the intercept appended."""
    return math.hypot(row_norm, 1.0) if intercept else row_norm


def logistic_gradient_norm(row_norm: float, coef_norm: float) -> float:
    """Norm of one row's logistic gradient when ``|x| <= row_norm`` and ``|theta| <= coef_norm``."""
    return row_norm / (1 + math.exp(-min(row_norm * coef_norm, 700.0)))


def logistic_smoothness(row_norm: float, coef_norm: float) -> float:
    """Lipschitz constant in the row of the logistic gradient.

    ``max_{u <= s(K)} u (1 + K (1 - u))`` with ``K = row_norm * coef_norm`` and s the logistic function;
    at most ``1 + K/4``. Exact for K <= 1.
    """
    k = row_norm * coef_norm
    u = 1 / (1 + math.exp(-min(k, 700.0)))
    if k > 0:
        u = min(u, (1 + k) / (2 * k))
    return u * (1 + k * (1 - u))


@formula("learning.logistic-gradient", kind="mechanism", page="noisy-gradient-descent")
def noisy_gradient_step(
    domain: Domain, distance: Distance, *, clip: float, coef_norm: float, fit_intercept: bool
) -> float:
    """L2 sensitivity of the mean clipped logistic gradient, for every theta in the ball.

    ``(C mass + min(L total, 2C moved)) / n``. Clipping is a projection, hence keeps L. Rounding of the
    float64 sum and of each row's own gradient is charged.
    """
    n = domain.n
    norm = augmented_norm(float(domain.require("row_norm")), fit_intercept)
    clip = min(clip, logistic_gradient_norm(norm, coef_norm))
    base = distance.shift(clip, logistic_smoothness(norm, coef_norm))
    # A row's own gradient in float64, whatever its position; the margin errs by (d + 3) 2^-53 |x| |theta|.
    own = (4 * domain.d + 40) * UNIT * norm * (1 + norm * coef_norm)
    summing = (n + 2) * UNIT * n * (clip + own)
    return inflate((base + 2 * n * own + 2 * summing) / n)
