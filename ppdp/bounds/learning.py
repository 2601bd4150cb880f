"""Gradients and minimisers of losses: ``docs/theory/noisy-gradient-descent.md`` and ``output-perturbation.md``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import formula, sane
from ppdp.core.rounding import BLOCK, UNIT, inflate


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
    """What is known of one row's clipped gradient, at every theta in the ball."""

    size: int  # how many numbers it has
    bound: float  # its norm is at most this
    lipschitz: float  # its Lipschitz constant in the row
    rounding: float  # what float64 makes of it is off by at most this
    block: int | None = None  # rows that are added in float64; sums of blocks are whole numbers. None: all of them
    sharper: float = math.inf  # bound on the rounding of a row for documents that speak of blocks

    def sum_error(self, rows: int) -> float:
        """What float64 makes of the sum over at most so many rows, divided by a public number, is off by at most."""
        grid = 8 + math.sqrt(self.size) / 32
        roundings = rows + 2 if self.block is None else min(rows, self.block) + grid
        return rows * self.rounding + roundings * UNIT * rows * (self.bound + self.rounding)

    def mean_shift(self, n_rows: int, distance: Distance) -> float:
        """Most that the mean over the public n can change (Theorem E), rounding of rows and sum included."""
        return inflate((distance.shift(self.bound, self.lipschitz) + 2 * self.sum_error(n_rows)) / n_rows)


MOST_KEPT = 100


def kept_steps(steps: int) -> list[int]:
    """After which steps a model is kept for learning curves: at most 100, evenly spaced, the last one last."""
    kept = min(steps, MOST_KEPT)
    return [-(-steps * i // kept) for i in range(1, kept + 1)]


def released_models(domain: Domain, steps: int, size: int, /, **_: Any) -> dict[str, list[int]]:
    """Shapes of what training releases besides its gradients, all made from them: the model, and those on its path."""
    return {"path": [len(kept_steps(steps)), size], "theta": [size]}


def mean_gradient(
    name: str, page: str = "noisy-gradient-descent", **facts: Any
) -> Callable[[Callable[..., Gradient]], Callable[..., Gradient]]:
    """Register the L2 sensitivity of the mean of these gradients over the public n, for every theta in the ball.

    ``(C mass + min(L total, 2C moved)) / n``, C the largest norm of a clipped gradient and L its Lipschitz constant.
    Rounding of the float64 sum and of each row's own gradient is charged; documents of more than :data:`BLOCK` rows
    say that they are added in blocks (``docs/theory/rounding.md``), but older ones do not.
    """

    def register(gradient: Callable[..., Gradient]) -> Callable[..., Gradient]:
        """Enter the sensitivity; the gradient also takes the size of a block."""

        @wraps(gradient)
        def added(domain: Domain, *, block: int | None = None, **parameters: Any) -> Gradient:
            sane(block in (None, BLOCK))
            result = gradient(domain, **parameters)
            return replace(result, block=block, rounding=min(result.rounding, result.sharper)) if block else result

        @wraps(gradient)
        def sensitivity(domain: Domain, distance: Distance, **parameters: Any) -> float:
            return added(domain, **parameters).mean_shift(domain.n, distance)

        def shape(domain: Domain, **parameters: Any) -> tuple[int, float]:
            """Numbers in a mean, and the bound on each: the clip, or the largest gradient if that is less."""
            result = added(domain, **parameters)
            return result.size, result.bound

        formula(name, kind="mechanism", page=page, predicts=True, shape=shape, **facts)(sensitivity)
        return added

    return register


def _norm_of(domain: Domain, clip: float, coef_norm: float, fit_intercept: bool) -> float:
    """Largest norm of a row, intercept included."""
    sane(clip > 0 and coef_norm > 0)
    return augmented_norm(float(domain.require("row_norm")), fit_intercept)


def _rounding(numbers: int, norm: float, steepness: float) -> float:
    """A row's own gradient in float64, whatever its position; the score errs by (d + 3) 2^-53 |x| |theta|."""
    return (4 * numbers + 40) * UNIT * norm * steepness


@mean_gradient("learning.logistic-gradient", used_by=("LogisticRegression",), arrays=released_models)
def logistic_gradient(domain: Domain, *, clip: float, coef_norm: float, fit_intercept: bool) -> Gradient:
    """Gradient of ``log(1 + exp(score)) - y score``, y 0 or 1."""
    norm = _norm_of(domain, clip, coef_norm, fit_intercept)
    bound = min(clip, logistic_gradient_norm(norm, coef_norm))
    smoothness = logistic_smoothness(norm, coef_norm, bound, float(bool(fit_intercept)))
    rounding = _rounding(domain.d, norm, 1 + norm * coef_norm)
    sharper = (domain.d / 2 + 16 + (domain.d + 4) * norm * coef_norm / 4) * UNIT * norm
    return Gradient(domain.d + bool(fit_intercept), bound, smoothness, rounding, sharper=sharper)


@mean_gradient("learning.squared-gradient", used_by=("LinearRegression", "Ridge"), arrays=released_models)
def squared_gradient(
    domain: Domain, *, clip: float, coef_norm: float, fit_intercept: bool, y_range: Sequence[float]
) -> Gradient:
    """Gradient of ``(score - t)² / 2``, t the target as a share of half its range about the centre: -1 to 1."""
    sane(y_range[0] < y_range[1])
    sane(domain.y_range is None or tuple(domain.y_range) == tuple(y_range))
    norm = _norm_of(domain, clip, coef_norm, fit_intercept)
    steepness = 1 + norm * coef_norm
    bound = min(clip, norm * steepness)
    smoothness = glm_smoothness(
        norm, coef_norm, slope=1.0, curvature=1.0, growth=1.0, clip=bound, least_norm=float(bool(fit_intercept))
    )
    return Gradient(domain.d + bool(fit_intercept), bound, smoothness, _rounding(domain.d, norm, steepness))


@mean_gradient("learning.hinge-gradient", used_by=("LinearSVC",), arrays=released_models)
def hinge_gradient(domain: Domain, *, clip: float, coef_norm: float, fit_intercept: bool, smoothing: float) -> Gradient:
    """Gradient of the hinge loss, quadratic where the margin is within ``smoothing`` of 1."""
    sane(0 < smoothing <= 1)
    norm = _norm_of(domain, clip, coef_norm, fit_intercept)
    bound, curvature = min(clip, norm), 1 / (2 * smoothing)
    smoothness = glm_smoothness(
        norm, coef_norm, slope=1.0, curvature=curvature, clip=bound, least_norm=float(bool(fit_intercept))
    )
    steepness = 1 + (1 + norm * coef_norm) / smoothing
    return Gradient(domain.d + bool(fit_intercept), bound, smoothness, _rounding(domain.d, norm, steepness))


@mean_gradient("learning.softmax-gradient", used_by=("LogisticRegression",), arrays=released_models)
def softmax_gradient(domain: Domain, *, clip: float, coef_norm: float, fit_intercept: bool, n_classes: int) -> Gradient:
    """Gradient of ``log Σ exp(scores) - score_y``, all classes together in the Frobenius norm."""
    sane(n_classes >= 2 and (domain.classes is None or len(domain.classes) == n_classes))
    norm = _norm_of(domain, clip, coef_norm, fit_intercept)
    bound = min(clip, softmax_gradient_norm(norm, coef_norm, n_classes))
    smoothness = glm_smoothness(
        norm, coef_norm, slope=math.sqrt(2), curvature=0.5, clip=bound, least_norm=float(bool(fit_intercept))
    )
    size = n_classes * (domain.d + bool(fit_intercept))
    return Gradient(size, bound, smoothness, _rounding(domain.d + n_classes, norm, 1 + norm * coef_norm))


def loss_smoothness(domain: Domain, curvature: float, fit_intercept: bool) -> float:
    """Lipschitz constant in theta of every row's gradient: the curvature of the loss times the square of the norm."""
    return curvature * augmented_norm(float(domain.require("row_norm")), fit_intercept) ** 2


def solver_rate(smoothness: float, strength: float) -> float:
    """Logarithm of the factor by which a step of projected gradient descent comes closer to the minimiser.

    The factor is ``(β - λ)/(β + λ)`` for a λ-strongly convex function with β-Lipschitz gradient and steps of
    ``2/(β + λ)``; here ``β = smoothness + λ``.
    """
    return math.log1p(-2 * strength / (smoothness + 2 * strength))


def _minimiser(name: str, gradient: Callable[..., Gradient], curvature: float, used_by: tuple[str, ...]) -> None:
    """Register the sensitivity of the minimiser of a loss with this gradient."""

    def shape(
        domain: Domain, *, alpha: float, smoothness: float, iterations: int, coef_norm: float, **kwargs: Any
    ) -> tuple[int, float]:
        """Numbers in a minimiser, and the bound on each: the radius of the ball."""
        return gradient(domain, coef_norm=coef_norm, **kwargs).size, coef_norm

    @formula(name, kind="mechanism", page="output-perturbation", predicts=True, used_by=used_by, shape=shape)
    def sensitivity(
        domain: Domain,
        distance: Distance,
        *,
        coef_norm: float,
        fit_intercept: bool,
        alpha: float,
        smoothness: float,
        iterations: int,
        **kwargs: Any,
    ) -> float:
        """L2 sensitivity, in the ball, of the minimiser of the mean clipped loss plus ``alpha/(2n) |theta|²``.

        More exactly of the last iterate, converged or not: ``(1 - rate^T) S/λ`` with ``λ = alpha/n``, where the mean
        gradient changes by at most S. For many iterations that is ``(C mass + min(L total, 2C moved)) / alpha``,
        2C/alpha for one replaced row. Rounding is charged. (A squared loss is turned into Huber's by clipping.)
        """
        sane(alpha > 0 and iterations >= 1)
        sane(smoothness >= loss_smoothness(domain, curvature, fit_intercept) * (1 - 1e-9))
        result = gradient(domain, coef_norm=coef_norm, fit_intercept=fit_intercept, **kwargs)
        strength = alpha / domain.n
        reached = -math.expm1(iterations * solver_rate(smoothness, strength))
        rounding = (2 * result.size + 40) * UNIT * (coef_norm * (1 + smoothness / strength) + result.bound / strength)
        return inflate(reached * result.mean_shift(domain.n, distance) / strength + 2 * rounding)


_minimiser("learning.logistic-minimiser", logistic_gradient, 0.25, ("LogisticRegression",))
_minimiser("learning.squared-minimiser", squared_gradient, 1.0, ("Ridge",))

LARGEST_SCORE = 500.0  # scores beyond count as this; no gradient gets larger by it
LARGEST_SHARE = 8.0


def target_unit(y_range: Sequence[float]) -> float:
    """What a score of 0 predicts, from the public range of the targets: its lower end, or an eighth of the upper."""
    return max(float(y_range[0]), float(y_range[1]) / LARGEST_SHARE)


def target_shares(y_range: Sequence[float]) -> tuple[float, float]:
    """The range of the targets over their unit: at most 8."""
    unit = target_unit(y_range)
    return float(y_range[0]) / unit, float(y_range[1]) / unit


def tweedie_slope(score: float, shares: tuple[float, float], power: float) -> float:
    """Largest ``|phi'|`` of a score of at most this size: ``phi' = exp((2 - p) v) - t exp((1 - p) v)``.

    It increases in v and decreases in t, so it is largest at one of two corners.
    """
    low, high = shares
    v = min(score, LARGEST_SCORE)
    rising, falling = 2 - power, power - 1
    above = math.exp(rising * v) - low * math.exp(-falling * v)
    below = high * math.exp(falling * v) - math.exp(-rising * v)
    return max(above, below)


def tweedie_smoothness(
    row_norm: float, coef_norm: float, *, power: float, shares: tuple[float, float], clip: float, least_norm: float
) -> float:
    """Lipschitz constant in the row of the gradient ``phi'(score) x``, clipped at norm ``clip``.

    The maximum over ``least_norm <= r <= row_norm`` of ``min(A(r), C/r) + r D min(t^a + max(a, b) C/r, B(r))`` with
    ``a = 2 - p``, ``b = p - 1``, t the largest target, A the largest ``|phi'|`` and ``B = a exp(a r D) + b t exp(b r
    D)`` no less than any ``phi''``. Where the gradient is not clipped, ``|phi'| <= C/r`` keeps ``phi''`` small too.
    """
    rising, falling, high = 2 - power, power - 1, shares[1]
    steep, steeper = high**rising, max(rising, falling)

    def slope(r: float) -> float:
        return tweedie_slope(r * coef_norm, shares, power)

    def curvature(r: float) -> float:
        v = min(r * coef_norm, LARGEST_SCORE)
        return rising * math.exp(rising * v) + falling * high * math.exp(falling * v)

    def at(r: float) -> float:
        return min(slope(r) * r, clip) / r + coef_norm * min(steep * r + steeper * clip, curvature(r) * r)

    # It increases until the clip begins to bind; beyond it is convex on either side of where the minimum changes over.
    least = max(least_norm, 1e-9 * row_norm)
    sure = {"xtol": 1e-15 * row_norm, "rtol": 1e-14}
    binds = root_of(lambda r: slope(r) * r - clip, least, row_norm, **sure)
    changes = root_of(lambda r: curvature(r) * r - steep * r - steeper * clip, least, row_norm, **sure)
    return max(at(r) for r in (binds, max(binds, changes), row_norm))


def root_of(increasing: Callable[[float], float], low: float, high: float, **tolerance: float) -> float:
    """Where a function becomes positive, or the end at which it is closest to that."""
    if increasing(low) >= 0:
        return low
    if increasing(high) <= 0:
        return high
    from scipy.optimize import brentq  # not above: every certificate would wait for it

    return float(brentq(increasing, low, high, **tolerance))


@mean_gradient(
    "learning.glm-gradient",
    "generalized-linear-models",
    used_by=("GammaRegressor", "PoissonRegressor", "TweedieRegressor"),
)
def glm_gradient(
    domain: Domain, *, clip: float, coef_norm: float, fit_intercept: bool, y_range: Sequence[float], power: float
) -> Gradient:
    """Gradient of half the Tweedie deviance of power 1 (Poisson) to 2 (gamma), log link.

    Targets, clipped to a public range, and predictions are shares of their unit.
    """
    sane(clip > 0 and coef_norm > 0 and 1 <= power <= 2)
    sane(0 <= y_range[0] < y_range[1] and 1e-100 <= y_range[1] <= 1e100)
    sane(domain.y_range is None or tuple(domain.y_range) == tuple(y_range))
    norm = augmented_norm(float(domain.require("row_norm")), fit_intercept)
    shares = target_shares(y_range)
    bound = min(clip, norm * tweedie_slope(norm * coef_norm, shares, power))
    least = 1.0 if fit_intercept else 0.0
    smoothness = tweedie_smoothness(norm, coef_norm, power=power, shares=shares, clip=bound, least_norm=least)
    # Where a row is not far beyond its clip, both terms of phi' are below 4 t^a + 2 C/r; where it is, it stays clipped.
    steepness = (4 * shares[1] ** (2 - power) * norm + 2 * bound) * (1 + min(norm * coef_norm, LARGEST_SCORE))
    return Gradient(domain.d + bool(fit_intercept), bound, smoothness, (8 * domain.d + 80) * UNIT * steepness)
