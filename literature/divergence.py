"""Rényi divergences of the outputs that counterexamples have, by quadrature."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

__all__ = ["Mixture", "gaussian_divergence", "renyi_divergence"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Mixture:
    """A mixture of normal distributions in one dimension."""

    weights: Floats
    centres: Floats
    scales: Floats

    @classmethod
    def of(cls, centres: ArrayLike, scales: ArrayLike = 1.0) -> Mixture:
        """All centres with the same weight; ``scales`` are standard deviations, one or one each."""
        each = np.atleast_1d(np.asarray(centres, float))
        pairs = np.column_stack([each, np.broadcast_to(np.asarray(scales, float), each.shape)])
        distinct, counts = np.unique(pairs, axis=0, return_counts=True)
        return cls(counts / len(each), distinct[:, 0], distinct[:, 1])

    def log_density(self, x: Floats) -> Floats:
        """Logarithm of the density."""
        z = (x[:, None] - self.centres) / self.scales
        return np.asarray(logsumexp(-(z**2) / 2 - np.log(self.scales * math.sqrt(2 * math.pi)), b=self.weights, axis=1))


def renyi_divergence(alpha: float, one: Mixture, other: Mixture) -> float:
    """The larger of ``D_alpha(one || other)`` and ``D_alpha(other || one)``, by the trapezoid rule."""
    centres = np.concatenate([one.centres, other.centres])
    scales = np.concatenate([one.scales, other.scales])
    reach = 14 * scales.max() + alpha * float(np.ptp(centres))
    x = np.arange(centres.min() - reach, centres.max() + reach, scales.min() / 20)
    p, q = one.log_density(x), other.log_density(x)
    step = math.log(x[1] - x[0])
    return max(float(logsumexp(alpha * a - (alpha - 1) * b) + step) / (alpha - 1) for a, b in ((p, q), (q, p)))


def gaussian_divergence(alpha: float, shift: float, scale: float) -> float:
    """``alpha shift² / (2 scale²)``: normal distributions of standard deviation ``scale``, exactly."""
    return alpha * shift**2 / (2 * scale**2)
