"""Gradients of losses: ``docs/theory/noisy-gradient-descent.md``."""

from __future__ import annotations

import math

from ppdp.bounds.formula import formula, sane
from ppdp.bounds.rounding import UNIT, inflate
from ppdp.distance import Distance
from ppdp.domain import Domain

__all__ = ["augmented_norm", "gradient_shape", "logistic_gradient_norm", "logistic_smoothness", "noisy_gradient_step"]


def augmented_norm(row_norm: float, intercept: bool) -> float:
    """Norm of a row with the constant feature of the intercept appended."""
    return math.hypot(row_norm, 1.0) if intercept else row_norm


def logistic_gradient_norm(row_norm: float, coef_norm: float) -> float:
    """Norm of one row's logistic gradient when ``|x| <= row_norm`` and ``|theta| <= coef_norm``."""
    return row_norm / (1 + math.exp(-min(row_norm * coef_norm, 700.0)))


def logistic_smoothness(row_norm: float, coef_norm: float, clip: float = math.inf, least_norm: float = 0.0) -> float:
    """Lipschitz constant in the row of the logistic gradient, clipped at norm ``clip``.

    ``max_{u <= s(K)} u + (1 - u) D min(C, u R)`` with ``K = R D`` and s the logistic function. Where the gradient is
    clipped only its direction moves, so the growth with R stops at C. Rows of norm at least ``least_norm`` (1 with an
    intercept) are clipped wherever ``u > C / least_norm``. Without a clip at most ``1 + K/4``, and exact for K <= 1.
    """
    k = row_norm * coef_norm
    top = 1 / (1 + math.exp(-min(k, 700.0)))
    if least_norm > 0:
        top = min(top, clip / least_norm)

    def slope(u: float) -> float:
        return u + (1 - u) * coef_norm * min(clip, u * row_norm)

    peak = min(top, (1 + k) / (2 * k)) if k > 0 else top
    return max(slope(min(peak, clip / row_norm)), slope(top))


def gradient_shape(domain: Domain, *, clip: float, coef_norm: float, fit_intercept: bool) -> tuple[int, float]:
    """Numbers in a mean gradient, and the bound on each: the clip, or the largest gradient if that is less."""
    norm = augmented_norm(float(domain.require("row_norm")), fit_intercept)
    return domain.d + bool(fit_intercept), min(clip, logistic_gradient_norm(norm, coef_norm))


@formula(
    "learning.logistic-gradient",
    kind="mechanism",
    page="noisy-gradient-descent",
    used_by=("LogisticRegression",),
    shape=gradient_shape,
)
def noisy_gradient_step(
    domain: Domain, distance: Distance, *, clip: float, coef_norm: float, fit_intercept: bool
) -> float:
    """L2 sensitivity of the mean clipped logistic gradient, for every theta in the ball.

    ``(C mass + min(L total, 2C moved)) / n``, L of the clipped gradient. Rounding of the
    float64 sum and of each row's own gradient is charged.
    """
    n = domain.n
    sane(clip > 0 and coef_norm > 0)
    norm = augmented_norm(float(domain.require("row_norm")), fit_intercept)
    clip = min(clip, logistic_gradient_norm(norm, coef_norm))
    base = distance.shift(clip, logistic_smoothness(norm, coef_norm, clip, 1.0 if fit_intercept else 0.0))
    # A row's own gradient in float64, whatever its position; the margin errs by (d + 3) 2^-53 |x| |theta|.
    own = (4 * domain.d + 40) * UNIT * norm * (1 + norm * coef_norm)
    summing = (n + 2) * UNIT * n * (clip + own)
    return inflate((base + 2 * n * own + 2 * summing) / n)
