"""Gradients of losses: ``docs/theory/noisy-gradient-descent.md``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import formula, sane
from ppdp.core.rounding import UNIT, inflate

__all__ = [
    "Gradient",
    "augmented_norm",
    "glm_smoothness",
    "gradient_shape",
    "hinge_gradient",
    "hinge_gradient_step",
    "kept_steps",
    "logistic_gradient",
    "logistic_gradient_norm",
    "logistic_smoothness",
    "noisy_gradient_step",
    "released_models",
    "softmax_gradient",
    "softmax_gradient_norm",
    "softmax_gradient_step",
    "squared_gradient",
    "squared_gradient_step",
]


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


def softmax_gradient_norm(row_norm: float, coef_norm: float, n_classes: int) -> float:
    """Frobenius norm of one row's softmax gradient when ``|x| <= row_norm`` and ``|Theta|_F <= coef_norm``.

    ``|p - e_y| <= √2 (1 - p_y)``, and two scores differ by at most ``√2 R D``.
    """
    rivals = math.log(n_classes - 1) + math.sqrt(2) * row_norm * coef_norm
    return math.sqrt(2) * row_norm / (1 + math.exp(-min(rivals, 700.0)))


def glm_smoothness(
    row_norm: float,
    coef_norm: float,
    *,
    slope: float,
    curvature: float,
    growth: float = 0.0,
    clip: float = math.inf,
    least_norm: float = 0.0,
) -> float:
    """Lipschitz constant in the row of a gradient ``phi'(score) x``, clipped at norm ``clip``.

    For ``|phi'| <= slope + growth |theta| |x|`` and ``|phi''| <= curvature``: the maximum of
    ``min(slope + growth D r, C / r) + curvature D r`` over ``least_norm <= r <= row_norm``. Without a clip that is
    ``slope + (growth + curvature) K``.
    """
    steeper = growth * coef_norm

    def at(norm: float) -> float:
        derivative = slope + steeper * norm
        return min(derivative, clip / norm if norm > 0 else math.inf) + curvature * coef_norm * norm

    # Up to where the clip begins to bind this grows; beyond it is convex.
    binds = 2 * clip / (slope + math.sqrt(slope**2 + 4 * steeper * clip)) if math.isfinite(clip) else math.inf
    return max(at(min(max(binds, least_norm), row_norm)), at(row_norm))


@dataclass(frozen=True, slots=True)
class Gradient:
    """What is known of one row's clipped gradient, at every theta in the ball.

    Attributes
    ----------
    size : int
        How many numbers it has.
    bound : float
        Its norm is at most this.
    lipschitz : float
        Its Lipschitz constant in the row.
    rounding : float
        What float64 makes of it is off by at most this.
    """

    size: int
    bound: float
    lipschitz: float
    rounding: float

    def sum_error(self, rows: int) -> float:
        """What float64 makes of the sum over at most so many rows, divided by a public number, is off by at most."""
        return rows * self.rounding + (rows + 2) * UNIT * rows * (self.bound + self.rounding)

    def mean_shift(self, n_rows: int, distance: Distance) -> float:
        """Most that the mean over the public n can change (Theorem E), rounding of rows and sum included."""
        return inflate((distance.shift(self.bound, self.lipschitz) + 2 * self.sum_error(n_rows)) / n_rows)


MOST_KEPT = 100


def kept_steps(steps: int) -> list[int]:
    """After which steps a model is kept for learning curves: at most 100, evenly spaced, the last one last."""
    kept = min(steps, MOST_KEPT)
    return [-(-steps * i // kept) for i in range(1, kept + 1)]


def released_models(steps: int, size: int) -> dict[str, list[int]]:
    """Shapes of what training releases besides its gradients, all made from them: the model, and those on its path."""
    return {"path": [len(kept_steps(steps)), size], "theta": [size]}


_gradient_step = partial(
    formula, kind="mechanism", page="noisy-gradient-descent", predicts=True, arrays=released_models
)


def _least(fit_intercept: bool) -> float:
    return 1.0 if fit_intercept else 0.0


def _rounding(numbers: int, norm: float, steepness: float) -> float:
    """A row's own gradient in float64, whatever its position; the score errs by (d + 3) 2^-53 |x| |theta|."""
    return (4 * numbers + 40) * UNIT * norm * steepness


def logistic_gradient(domain: Domain, *, clip: float, coef_norm: float, fit_intercept: bool) -> Gradient:
    """Gradient of ``log(1 + exp(score)) - y score``, y 0 or 1."""
    sane(clip > 0 and coef_norm > 0)
    norm = augmented_norm(float(domain.require("row_norm")), fit_intercept)
    bound = min(clip, logistic_gradient_norm(norm, coef_norm))
    return Gradient(
        domain.d + bool(fit_intercept),
        bound,
        logistic_smoothness(norm, coef_norm, bound, _least(fit_intercept)),
        _rounding(domain.d, norm, 1 + norm * coef_norm),
    )


def squared_gradient(
    domain: Domain, *, clip: float, coef_norm: float, fit_intercept: bool, y_range: Sequence[float]
) -> Gradient:
    """Gradient of ``(score - t)² / 2``, t the target as a share of half its range about the centre: -1 to 1."""
    sane(clip > 0 and coef_norm > 0 and y_range[0] < y_range[1])
    sane(domain.y_range is None or tuple(domain.y_range) == tuple(y_range))
    norm = augmented_norm(float(domain.require("row_norm")), fit_intercept)
    steepness = 1 + norm * coef_norm
    bound = min(clip, norm * steepness)
    smoothness = glm_smoothness(
        norm, coef_norm, slope=1.0, curvature=1.0, growth=1.0, clip=bound, least_norm=_least(fit_intercept)
    )
    return Gradient(domain.d + bool(fit_intercept), bound, smoothness, _rounding(domain.d, norm, steepness))


def hinge_gradient(domain: Domain, *, clip: float, coef_norm: float, fit_intercept: bool, smoothing: float) -> Gradient:
    """Gradient of the hinge loss, quadratic where the margin is within ``smoothing`` of 1."""
    sane(clip > 0 and coef_norm > 0 and 0 < smoothing <= 1)
    norm = augmented_norm(float(domain.require("row_norm")), fit_intercept)
    bound, curvature = min(clip, norm), 1 / (2 * smoothing)
    smoothness = glm_smoothness(
        norm, coef_norm, slope=1.0, curvature=curvature, clip=bound, least_norm=_least(fit_intercept)
    )
    steepness = 1 + (1 + norm * coef_norm) / smoothing
    return Gradient(domain.d + bool(fit_intercept), bound, smoothness, _rounding(domain.d, norm, steepness))


def softmax_gradient(domain: Domain, *, clip: float, coef_norm: float, fit_intercept: bool, n_classes: int) -> Gradient:
    """Gradient of ``log Σ exp(scores) - score_y``, all classes together in the Frobenius norm."""
    sane(clip > 0 and coef_norm > 0 and n_classes >= 2)
    sane(domain.classes is None or len(domain.classes) == n_classes)
    norm = augmented_norm(float(domain.require("row_norm")), fit_intercept)
    bound = min(clip, softmax_gradient_norm(norm, coef_norm, n_classes))
    smoothness = glm_smoothness(
        norm, coef_norm, slope=math.sqrt(2), curvature=0.5, clip=bound, least_norm=_least(fit_intercept)
    )
    size = n_classes * (domain.d + bool(fit_intercept))
    return Gradient(size, bound, smoothness, _rounding(domain.d + n_classes, norm, 1 + norm * coef_norm))


def _shape(gradient: Callable[..., Gradient]) -> Callable[..., tuple[int, float]]:
    """Numbers in a mean gradient, and the bound on each: the clip, or the largest gradient if that is less."""

    def shape(domain: Domain, **parameters: object) -> tuple[int, float]:
        """Size and bound of an answer."""
        found = gradient(domain, **parameters)
        return found.size, found.bound

    return shape


gradient_shape = _shape(logistic_gradient)


@_gradient_step("learning.logistic-gradient", used_by=("LogisticRegression",), shape=gradient_shape)
def noisy_gradient_step(
    domain: Domain, distance: Distance, *, clip: float, coef_norm: float, fit_intercept: bool
) -> float:
    """L2 sensitivity of the mean clipped logistic gradient, for every theta in the ball.

    ``(C mass + min(L total, 2C moved)) / n``, L of the clipped gradient. Rounding of the
    float64 sum and of each row's own gradient is charged.
    """
    found = logistic_gradient(domain, clip=clip, coef_norm=coef_norm, fit_intercept=fit_intercept)
    return found.mean_shift(domain.n, distance)


@_gradient_step("learning.squared-gradient", used_by=("LinearRegression", "Ridge"), shape=_shape(squared_gradient))
def squared_gradient_step(
    domain: Domain,
    distance: Distance,
    *,
    clip: float,
    coef_norm: float,
    fit_intercept: bool,
    y_range: Sequence[float],
) -> float:
    """The same for the squared loss; targets are clipped to a public range and rescaled to [-1, 1]."""
    found = squared_gradient(domain, clip=clip, coef_norm=coef_norm, fit_intercept=fit_intercept, y_range=y_range)
    return found.mean_shift(domain.n, distance)


@_gradient_step("learning.hinge-gradient", used_by=("LinearSVC",), shape=_shape(hinge_gradient))
def hinge_gradient_step(
    domain: Domain, distance: Distance, *, clip: float, coef_norm: float, fit_intercept: bool, smoothing: float
) -> float:
    """The same for the Huberised hinge loss."""
    found = hinge_gradient(domain, clip=clip, coef_norm=coef_norm, fit_intercept=fit_intercept, smoothing=smoothing)
    return found.mean_shift(domain.n, distance)


@_gradient_step("learning.softmax-gradient", used_by=("LogisticRegression",), shape=_shape(softmax_gradient))
def softmax_gradient_step(
    domain: Domain, distance: Distance, *, clip: float, coef_norm: float, fit_intercept: bool, n_classes: int
) -> float:
    """The same for the softmax loss of several classes, in the Frobenius norm."""
    found = softmax_gradient(domain, clip=clip, coef_norm=coef_norm, fit_intercept=fit_intercept, n_classes=n_classes)
    return found.mean_shift(domain.n, distance)
