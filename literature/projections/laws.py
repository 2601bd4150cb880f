"""Exact laws of signs that are flipped: what counterexamples of this paper are computed with."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, log_ndtr
from scipy.stats import binom

__all__ = ["angle", "composed_delta", "gaussian_delta", "joint_delta", "loss", "needed_delta", "smooth"]

Floats = NDArray[np.float64]


def composed_delta(k: int, eta: float, epsilon: float) -> float:
    """The δ at ε of k signs that differ, each flipped with probability 1/(e^η + 1): exact, the same both ways."""
    i = np.arange(k + 1)
    log_mass = gammaln(k + 1) - gammaln(i + 1) - gammaln(k - i + 1) + (k - i) * eta - k * np.logaddexp(0, eta)
    excess = (k - 2 * i) * eta - epsilon
    more = excess > 0
    return float(np.sum(np.exp(log_mass[more]) * -np.expm1(-excess[more])))


def joint_delta(k: int, q: float, eta: float, epsilon: float) -> float:
    """The δ at ε of matrix and signs together, if every sign differs with probability q by itself."""
    mass = binom.pmf(np.arange(k + 1), k, q)
    return float(sum(p * composed_delta(s, eta, epsilon) for s, p in enumerate(mass) if p > 0 and s * eta > epsilon))


def angle(u: Floats, v: Floats) -> float:
    """Between two records, over π: how often a Gaussian column gives them different signs."""
    one, other = u / np.linalg.norm(u), v / np.linalg.norm(v)
    return 2 * math.atan2(float(np.linalg.norm(one - other)), float(np.linalg.norm(one + other))) / math.pi


def loss(one: Floats, other: Floats) -> float:
    """Largest log-ratio over all outputs; the arguments are the probabilities of + of every sign."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.abs([np.log(one) - np.log(other), np.log1p(-one) - np.log1p(-other)])
    return float(np.nan_to_num(ratios, nan=0.0, posinf=math.inf).max(axis=0).sum())


def needed_delta(one: Floats, other: Floats, epsilon: float) -> float:
    """Smallest δ at ε of two products of signs, in both directions; all outputs are listed."""
    k = len(one)
    plus = (np.arange(2**k)[:, None] >> np.arange(k)) & 1 == 1
    p, q = (np.where(plus, law, 1 - law).prod(axis=1) for law in (one, other))
    return float(max(np.maximum(a - math.exp(epsilon) * b, 0).sum() for a, b in ((p, q), (q, p))))


def smooth(x: Floats, unit: float | Floats, eta: float) -> Floats:
    """Probability of + if the sign of x is flipped with probability 1/(exp(η ⌈|x|/unit⌉) + 1)."""
    flipped = 1 / (np.exp(eta * np.ceil(np.abs(x) / unit)) + 1)
    return np.where(x < 0, flipped, 1 - flipped)


def gaussian_delta(shift: float, sigma: float, epsilon: float) -> float:
    """The δ at ε of two normal laws that are ``shift`` apart: the best test is a threshold."""
    a, b = shift / (2 * sigma), epsilon * sigma / shift
    return math.exp(log_ndtr(a - b)) - math.exp(epsilon + log_ndtr(-a - b))
