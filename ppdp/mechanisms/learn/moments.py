"""Least squares from noisy second moments, refined by noisy gradients, or from those of a sketch of the rows:
``docs/theory/second-moments.md``, ``docs/theory/gaussian-sketch.md``.

Everything but the two sums over rows is made from released numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ppdp.bounds.moments import gradient_weight, moments_width
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.rounding import BLOCK
from ppdp.data.rows import Array, Rows
from ppdp.data.stream import Stream
from ppdp.data.summary import second_moment, symmetric, upper_triangle
from ppdp.exceptions import InvalidParameter
from ppdp.mechanisms.base import QuerySpec
from ppdp.mechanisms.learn.descent import projected
from ppdp.mechanisms.learn.solvers import MOST_NUMBERS, USUAL_MU, Solver, TrainingConfig, TrainingRun
from ppdp.mechanisms.query.random_matrices import sketched, usual_noise

CLIPPED = 0.2  # square of the norm at which rows are clipped, over the largest: noise falls with it, bias grows slowly
TARGET = 0.25  # square of the weight of targets, over that
GRADIENT = 0.08  # norm at which gradients are clipped, over the largest norm of a row
REFINEMENTS = 4  # gradients, each as dear as the moments; none where all would be noise
EXPLAINED = 0.125  # mean square of what coefficients predict, at most, in units of half the range
FEW = 200.0  # `n mu / numbers`, from which on steps are better, whatever the columns
LARGEST = 2**20  # entries of a sketch that nobody gave a rank
_ROUNDS = 200  # of the fixed point
OF_LOSS = ("coef_norm", "fit_intercept", "y_range")  # parameters of a gradient that the formulas take, too


class SecondMoments(Solver):
    """Second moments once, then a few gradients."""

    name = "moments"
    releases_path = False

    def query_spec(self, domain: Domain, config: TrainingConfig, mu: float | None) -> QuerySpec:
        gradient = config.gradient
        usual = 1 + REFINEMENTS if domain.n * (mu or USUAL_MU) >= domain.d else 1
        steps = config.max_iter or usual
        parameters = {
            **_usual_norms(domain, gradient),
            "gradient_clip": GRADIENT * _longest(domain, gradient),
            "refinements": steps - 1,
            **{name: gradient[name] for name in (*OF_LOSS, "block") if name in gradient},
        }
        return QuerySpec.asked(config.formulas["moments"], "mechanism", domain, parameters, steps)

    @staticmethod
    def pays(domain: Domain, distance: Distance, config: TrainingConfig, mu: float | None) -> bool:
        """Whether it is for these targets, and better than steps: of columns of 0 and 1, which have no tails to cut."""
        width = moments_width(domain, config.gradient["fit_intercept"])
        few = domain.n * (mu or USUAL_MU) < FEW * (width - 1) and width * (width + 1) / 2 <= MOST_NUMBERS
        asked = "moments" in config.formulas and config.max_iter is None and not distance.moved
        return asked and few and 2 * len(domain.indicators) >= domain.d

    def release(self, run: TrainingRun) -> dict[str, Array]:
        """The first guess solves the noisy normal equations, every direction damped by what is noise in it; then every
        noisy gradient moves the coefficients by as much as it is more certain than what is known.
        """
        parameters, scale, penalty, gradient = run.parameters, run.noise_scale, run.mean_penalty(0.0), run.gradient()
        released, radius = run.add_noise(mean_moments(run.rows, parameters)), parameters["coef_norm"]
        coef, values, vectors, units, unsure = _solved(released, gradient.width, scale, penalty, parameters)
        weight = gradient_weight(parameters["norm"], parameters["gradient_clip"])
        noise, error = (scale / weight) ** 2, scale * math.sqrt(gradient.width / 2)
        most = 1 / (_steepness(released, gradient.width, parameters) * (values + error))
        for _ in range(parameters["refinements"]):
            padded = np.pad(weight * gradient(coef[None])[0], (0, released.size - coef.size))  # answers have one size
            downhill = -run.add_noise(padded)[: coef.size] / weight - penalty * coef / units**2
            step = np.minimum(values * unsure / (values**2 * unsure + noise), most)
            coef = projected(coef + units * (vectors @ (step * (vectors.T @ (units * downhill)))), radius)
            unsure = (1 - step * values) ** 2 * unsure + step**2 * noise
        return {"theta": coef}


class SketchedMoments(Solver):
    """Second moments of one sketch of rows and targets, by default so long that noise exceeds what sampling loses."""

    name = "sketch"
    in_memory = True
    releases_path = False

    def query_spec(self, domain: Domain, config: TrainingConfig, mu: float | None) -> QuerySpec:
        width = moments_width(domain, config.gradient["fit_intercept"])
        if config.rank is not None and config.rank < width:
            what = f"rank = {config.rank} rows of a sketch do not determine {width - 1} coefficients."
            fix = f"rank={10 * width}, or rank='auto'."
            raise InvalidParameter(what, stage=config.stage, fix=fix, parameter="rank")
        parameters = _usual_norms(domain, config.gradient) | {name: config.gradient[name] for name in OF_LOSS}
        most, n_mu = max(LARGEST // width, 4 * width), domain.n * (mu or USUAL_MU)
        parameters["rank"] = config.rank or math.ceil(min(max((2 * n_mu / width) ** 2, 64 * width), most))
        start = usual_noise(parameters["norm"], parameters["rank"], mu)
        return QuerySpec.asked(config.formulas["sketch"], "privacy", domain, parameters, start=start)

    def release(self, run: TrainingRun) -> dict[str, Array]:
        """The first guess of :class:`SecondMoments` alone."""
        rank, scale, n = run.parameters["rank"], run.noise_scale, run.rows.n
        assert isinstance(run.rows, Rows)
        value = sketched(_clipped(run.rows, run.parameters), run.rows.weight, rank, run.noise)
        Y = run.noise.release(value, scale, run.question.bound)
        moment = (Y.T @ Y / rank - scale**2 * np.eye(Y.shape[1])) / n
        error = math.sqrt(2 / rank) * scale**2 / n
        return {
            "theta": _solved(upper_triangle(moment), Y.shape[1] - 1, error, run.mean_penalty(0.0), run.parameters)[0]
        }


def _usual_norms(domain: Domain, gradient: Mapping[str, Any]) -> dict[str, Any]:
    """A constant as large as a typical entry, and norms relative to the longest row."""
    norm = math.sqrt(CLIPPED) * _longest(domain, gradient)
    return {
        "norm": norm,
        "constant": float(domain.require("row_norm")) / math.sqrt(domain.d),
        "target_weight": math.sqrt(TARGET) * norm,
    }


def _longest(domain: Domain, gradient: Mapping[str, Any]) -> float:
    """Largest norm of a row with its constant."""
    longest = float(domain.require("row_norm"))
    return math.hypot(longest, longest / math.sqrt(domain.d)) if gradient["fit_intercept"] else longest


def _clipped(rows: Rows, parameters: Mapping[str, Any]) -> Array:
    """Rows with constant and target, clipped."""
    assert rows.y is not None
    constant = [np.full(rows.n, parameters["constant"])] * bool(parameters["fit_intercept"])
    Z = np.column_stack([rows.X, *constant, parameters["target_weight"] * rows.y])
    for start in range(0, rows.n, BLOCK):
        part = Z[start : start + BLOCK]
        norms = np.sqrt(np.einsum("ij,ij->i", part, part))
        part *= np.minimum(1.0, parameters["norm"] / np.maximum(norms, parameters["norm"]))[:, None]
    return Z


def mean_moments(rows: Rows | Stream, parameters: Mapping[str, Any]) -> Array:
    """Triangle of the mean of ``w z zᵀ``: z a row with constant and target, clipped."""

    def extended(block: Rows) -> Rows:
        return Rows(_clipped(block, parameters), None, block.weight)

    width = rows.d + bool(parameters["fit_intercept"]) + 1
    return upper_triangle(second_moment(rows.each(extended, width), parameters["norm"]) / rows.n)


def _solved(
    released: Array, width: int, noise_scale: float, penalty: float, parameters: Mapping[str, Any]
) -> tuple[Array, Array, Array, Array, Array]:
    """Coefficients, eigenvalues and eigenvectors of the moments of rows, units of columns, and what is left unsure."""
    units, radius, weight = np.ones(width), parameters["coef_norm"], parameters["target_weight"]
    if parameters["fit_intercept"]:
        units[-1] = parameters["constant"]
    values, vectors, cross, of_targets = _directions(released, width, weight, noise_scale)
    spread = max(float(values.sum()), 1e-300)  # all may be 0
    most = min(radius**2, width * min(of_targets, EXPLAINED) / spread)  # no more than targets can follow
    values = values + penalty
    theta, unsure = _damped(values, cross, noise_scale / math.sqrt(2), weight, most)
    return projected(units * (vectors @ theta), radius), values, vectors, units, unsure


def _steepness(released: Array, width: int, parameters: Mapping[str, Any]) -> float:
    """Curvature of gradients, at most, over that of the moments, whose rows are clipped otherwise.

    What clipped rows have left of squares is told by that of the constant (too little where rows weigh less than 1, and
    steps are shorter then), and which gradients are clipped by targets.
    """
    if not parameters["fit_intercept"]:
        return 1.0
    moment, constant, weight = symmetric(released, width + 1), parameters["constant"], parameters["target_weight"]
    left = float(np.clip(moment[-2, -2] / constant**2, CLIPPED, 1.0))
    mean, square = moment[-2, -1] / (constant * weight * left), moment[-1, -1] / (weight**2 * left)
    of_rows, of_targets = max(float(np.trace(moment[:-1, :-1])) / left, 1e-12), max(square - mean**2, 1e-12)
    return max(1.0, math.erf(parameters["gradient_clip"] / math.sqrt(2 * of_rows * of_targets)) / left)


def _directions(released: Array, width: int, weight: float, noise_scale: float) -> tuple[Array, Array, Array, float]:
    """Eigenvalues and eigenvectors of the released moments of rows, moments with the target, and of the target alone.

    Eigenvalues are drawn towards their mean by as much of their spread as is noise.
    """
    moment = symmetric(released, width + 1)
    values, vectors = np.linalg.eigh(moment[:width, :width])
    mean = max(float(values.mean()), 1e-9 * float(np.abs(values).max()))
    spread = float(((values - mean) ** 2).sum())
    noisy = min(1.0, noise_scale**2 * width * (width + 1) / 2 / max(spread, 1e-300))
    values = noisy * mean + (1 - noisy) * np.maximum(values, 0.0)
    of_targets = (max(float(moment[width, width]), 0.0) + noise_scale) / weight**2
    return values, vectors, vectors.T @ moment[:width, width] / weight, of_targets


def _damped(values: Array, cross: Array, noise: float, weight: float, most: float) -> tuple[Array, Array]:
    """Coefficients in every direction, and the variance that is left in it.

    The normal equations have noise of variance ``noise² (1/weight² + |theta|²)``, coefficients a prior variance that is
    as large as they turn out to be, up to ``most`` together: a fixed point.
    """
    square, squares = most, values**2
    for _ in range(_ROUNDS):
        error = noise**2 * (1 / weight**2 + square)
        prior = max(square / len(values), 1e-12 * most)
        certain = squares * prior + error
        theta = values * prior / certain * cross
        unsure = prior * error / certain
        before, square = square, min(float((theta**2 + unsure).sum()), most)
        if square == before:
            break
    return theta, unsure
