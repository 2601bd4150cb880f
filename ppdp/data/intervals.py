"""Intervals around released numbers: ``docs/theory/intervals.md``."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from ppdp.core.domain import Domain
from ppdp.data.rows import Array

FIGURES = ("value", "standard_error", "lower", "upper", "sampling_error", "population_lower", "population_upper")
Law = Literal["gaussian", "laplace", "whole"]  # the last is Laplace noise in whole numbers


def rows_are_a_sample(domain: Domain) -> bool:
    """Whether rows count alike and are those of so many persons, so that one may think of them as drawn one by one."""
    return domain.adjacency.one_row and domain.max_weight is None


def half_width(law: Law, error: ArrayLike, alpha: float) -> Array:
    """What noise of this standard deviation exceeds with probability ``alpha`` at most."""
    error = np.asarray(error, dtype=np.float64)
    if law == "gaussian":
        return np.asarray(-ndtri(alpha / 2) * error)
    if law == "laplace":
        return np.asarray(-math.log(alpha) / math.sqrt(2) * error)
    square = np.maximum(error, 1e-150) ** 2  # = 2 q / (1 - q)², where P(|Z| > k) = 2 q^(k + 1) / (1 + q)
    q = square / (square + 1 + np.sqrt(2 * square + 1))
    return np.asarray(np.maximum(np.ceil(np.log(alpha * (1 + q) / 2) / np.log(q) - 1 - 1e-9), 0.0) + 0 * error)


def gaussian_ends(value: Array, error: Array, alpha: float) -> tuple[Array, Array]:
    """Ends of an interval for numbers with Gaussian noise; NaN where their error is."""
    half = half_width("gaussian", error, alpha)
    return value - half, value + half


def no_ends(value: Array, alpha: float) -> tuple[Array, Array]:
    """No interval: noise has chosen what is told, or has moved it further than is known."""
    return np.full_like(value, np.nan), np.full_like(value, np.nan)


def quotient_ends(
    total: Array, share: float, noise: float, unsure: float, law: Law, alpha: float
) -> tuple[Array, Array]:
    """Ends of an interval for a quotient of two numbers with noise (Fieller's); infinite where the second may be 0."""
    if not unsure:
        half = half_width(law, noise, alpha) / share
        return total / share - half, total / share + half
    factor = max(half_width("gaussian", 1.0, alpha), half_width(law, 1.0, alpha))  # nothing between them is longer
    a, b = share**2 - (factor * unsure) ** 2, total * share
    if a <= 0 or share <= 0:
        return np.full_like(total, -math.inf), np.full_like(total, math.inf)
    root = np.sqrt(np.maximum(b**2 - a * (total**2 - (factor * noise) ** 2), 0.0))
    return (b - root) / a, (b + root) / a


def both(low: Array, high: Array, error: Array, sampling: Array, alpha: float) -> tuple[Array, Array]:
    """Ends of an interval that covers noise, which alone has these ends, and sampling."""
    factor, half = -ndtri(alpha / 2), (high - low) / 2
    wide = np.maximum(np.hypot(half, factor * sampling), factor * np.hypot(error, sampling))
    return (low + high) / 2 - wide, (low + high) / 2 + wide
