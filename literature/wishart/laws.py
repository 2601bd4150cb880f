"""Exact laws of projections by ZZᵀ, Z of independent normal entries: what counterexamples are computed with."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import gammainc, gammaincc, log_ndtr, roots_jacobi, roots_legendre
from scipy.stats import chi2, t

from ppdp.audit import symmetry_attack

__all__ = [
    "average",
    "beta_delta",
    "captured",
    "epsilon_at",
    "moved_delta",
    "moved_too_far",
    "normal_delta",
    "normal_grid",
    "separated",
    "support",
    "vector_delta",
]

Floats = NDArray[np.float64]


def support(r: int, rho: float) -> float:
    """Probability that y = ZZᵀv has v′·y ≤ 0, which cannot be under v′."""
    return float(t.cdf(-rho * math.sqrt(r / (1 - rho**2)), r))


def vector_delta(epsilon: float, *, d: int, r: int, rho: float) -> float:
    """The δ at ε of ZZᵀv and ZZᵀv′, unit vectors of cosine ρ: one integral over Student's t."""
    s = math.sqrt((1 - rho**2) / r)
    tails = np.concatenate([np.logspace(-100, -20, 24), np.logspace(-19, -2, 35), np.linspace(0.02, 0.5, 25)])
    edges = np.concatenate([t.ppf(tails, r), t.isf(tails[-2::-1], r)])
    edges = np.concatenate([[-rho / s], edges[edges > -rho / s]])
    x, weights = roots_legendre(12)
    low, half = edges[:-1, None], np.diff(edges)[:, None] / 2
    at = (low + half * (x + 1)).ravel()
    mass = (half * weights).ravel() * t.pdf(at, r)
    a, k = np.maximum(rho + s * at, 1e-300), (d + r - 1) / 2
    with np.errstate(all="ignore"):
        start = (epsilon - (d + 1 - r) / 2 * np.log(a)) / (1 / a - 1)  # half of the B at which the loss is ε
        tail = np.where(a < 1, gammaincc(k, np.maximum(start, 0)), gammainc(k, np.maximum(start, 0)))
        other = np.where(a < 1, gammaincc(k, np.maximum(start / a, 0)), gammainc(k, np.maximum(start / a, 0)))
        excess = tail - np.where(other > 0, np.exp(epsilon + (r - 1) * np.log(a) + np.log(other)), 0.0)
    return support(r, rho) + float(mass @ np.clip(np.nan_to_num(excess), 0, 1))


def epsilon_at(delta: float, law: Callable[[float], float]) -> float:
    """The ε at which the δ is that, at most 1000."""
    return float(brentq(lambda epsilon: law(epsilon) - delta, 0.0, 1000.0, xtol=1e-9)) if law(0.0) > delta else 0.0


def normal_delta(epsilon: float, shift: Floats) -> Floats:
    """The δ at ε of unit normal laws that are ``shift`` > 0 apart."""
    return np.exp(log_ndtr(shift / 2 - epsilon / shift)) - np.exp(epsilon + log_ndtr(-shift / 2 - epsilon / shift))


def captured(d: int, r: int, nodes: int = 60) -> tuple[Floats, Floats]:
    """Nodes and weights of the share of a fixed direction that a random subspace captures, Beta(r/2, (d − r)/2)."""
    x, weights = roots_jacobi(nodes, (d - r) / 2 - 1, r / 2 - 1)
    return (1 + x) / 2, weights / weights.sum()


def beta_delta(epsilon: float, mu: float, *, d: int, r: int, steps: int = 1) -> float:
    """The δ at ε of one or two steps of (Z, M(V + E)) with fresh Z, V of one column: exact."""
    share, weights = captured(d, r)
    if steps == 2:
        share, weights = np.add.outer(share, share).ravel(), np.outer(weights, weights).ravel()
    return float(weights @ normal_delta(epsilon, mu * np.sqrt(share)))


def average(values: Callable[[Floats], Floats], degrees: int, panels: int = 200) -> float:
    """``E values(U)``, U of the χ² law, but for the outermost 2·10⁻⁹ of its mass."""
    edges = chi2.ppf(np.linspace(1e-9, 1 - 1e-9, panels), degrees)
    x, weights = roots_legendre(8)
    low, half = edges[:-1, None], np.diff(edges)[:, None] / 2
    u = (low + half * (x + 1)).ravel()
    return float(((half * weights).ravel() * chi2.pdf(u, degrees)) @ values(u))


def moved_too_far(bound: float, *, d: int, r: int) -> float:
    """Probability that ‖ZZᵀx‖/r > ``bound``, x of norm 1: ‖·‖² is U(U + W)/r², U of r and W of d − 1 degrees."""
    return average(lambda u: chi2.sf((bound * r) ** 2 / u - u, d - 1), r)


def moved_delta(epsilon: float, mu: float, *, d: int, r: int) -> float:
    """The δ at ε of (Z, ZZᵀv/r + E), where v moves by ``mu`` standard deviations of E."""

    def given(u: float) -> float:
        return average(lambda w: normal_delta(epsilon, mu * np.sqrt(u * (u + w)) / r), d - 1, panels=12)

    return average(np.vectorize(given), r, panels=12)


def separated(V: Floats, other: Floats, r: int, draws: int = 20) -> float:
    """Share of draws of MV and MV′ that the asymmetry tells apart: the δ, at every ε."""
    rng = np.random.default_rng(0)
    told = []
    for _ in range(draws):
        Z = rng.standard_normal((len(V), r))
        told.append(symmetry_attack(V, Z @ (Z.T @ V)) < 1e-9 < symmetry_attack(V, Z @ (Z.T @ other)))
    return float(np.mean(told))


def normal_grid(count: int) -> tuple[Floats, Floats]:
    """Points and weights that give every moment of ``count`` normal entries exactly, up to the fifth of each."""
    nodes, weights = np.array([-math.sqrt(3), 0.0, math.sqrt(3)]), np.array([1 / 6, 2 / 3, 1 / 6])
    places = np.array(list(product(range(3), repeat=count)))
    return nodes[places], weights[places].prod(axis=1)
