"""Least squares from second moments and clipped gradients: ``docs/theory/second-moments.md``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ppdp.bounds.learning import squared_gradient
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import formula, sane
from ppdp.core.rounding import UNIT, inflate, product_error


def moments_width(domain: Domain, fit_intercept: bool) -> int:
    """Entries of a row with the constant and the target appended."""
    return domain.d + bool(fit_intercept) + 1


def gradient_weight(norm: float, gradient_clip: float) -> float:
    """By what a mean gradient is multiplied, so that it costs what the moments cost, for replaced rows."""
    return norm**2 / (math.sqrt(2) * gradient_clip)


def _shape(domain: Domain, *, norm: float, gradient_clip: float, fit_intercept: bool, **_: Any) -> tuple[int, float]:
    """Numbers in the triangle of the second moments, and the bound on each, or on those of a gradient."""
    width = moments_width(domain, fit_intercept)
    return width * (width + 1) // 2, max(norm**2, gradient_weight(norm, gradient_clip) * gradient_clip)


@formula(
    "learning.squared-moments",
    kind="mechanism",
    page="second-moments",
    predicts=True,
    used_by=("LinearRegression", "Ridge"),
    shape=_shape,
    steps=lambda domain, *, refinements, **_: 1 + refinements,
    # What is released is made from all answers: a model.
    arrays=lambda domain, steps, size, *, fit_intercept, **_: {"theta": [moments_width(domain, fit_intercept) - 1]},
)
def squared_moments(
    domain: Domain,
    distance: Distance,
    *,
    norm: float,
    constant: float,
    target_weight: float,
    gradient_clip: float,
    refinements: int,
    coef_norm: float,
    fit_intercept: bool,
    y_range: Sequence[float],
    block: int | None = None,
) -> float:
    """The larger of two sensitivities; for replaced rows they are equal.

    The first answer: triangle of the mean of ``w z zᵀ``, isometric to the matrix, z the row with ``constant`` and
    ``target_weight`` times the target appended, clipped at N = ``norm``: ``√2 N²/n`` for one replaced row, N²/n for a
    toggled one, 2N w/n for one that moved by w. The others: clipped mean gradients of half the squared error, times a
    public weight.
    """
    sane(norm > 0 and constant > 0 and target_weight > 0 and gradient_clip > 0)
    sane(type(refinements) is int and 0 <= refinements <= 100)
    rounded = replace(distance).jittered(16 * UNIT * domain.d * (norm + float(domain.require("row_norm"))))
    error = 2 * product_error(domain.n, norm)
    moments = (math.sqrt(2) * norm * rounded.moment_shift(norm) + error) / domain.n
    gradient = squared_gradient(
        domain, clip=gradient_clip, coef_norm=coef_norm, fit_intercept=fit_intercept, y_range=y_range, block=block
    ).mean_shift(domain.n, distance)
    return inflate(max(moments, gradient_weight(norm, gradient_clip) * gradient if refinements else 0.0))
