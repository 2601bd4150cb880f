"""What the second paper says of its noisy projections beside others: Lemma 7, (4) to (8), and Appendix E.1."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincc

from literature.claims import Comparison
from literature.wishart.laws import moved_delta
from literature.wishart.paper import HELPS, said

__all__ = ["CLAIMS", "capture", "columns_apart", "gain_of", "outside_of_spectrum"]

Floats = NDArray[np.float64]


def capture(*, d: int, r: int, beta: float) -> float:
    """Lemma 7: ``κ = U/(U + W)``, ``U = r + 2√(rt) + 2t``, ``W = d − r − 2√((d − r)t)``, ``t = ln(2/β)``."""
    t = math.log(2 / beta)
    upper, lower = r + 2 * math.sqrt(r * t) + 2 * t, d - r - 2 * math.sqrt((d - r) * t)
    return upper / (upper + lower) if lower > 0 else 1.0


def chance(*, beta: float) -> float:
    """Lemma 7: that is exceeded with at most β."""
    return beta


def columns_apart(*, m: int, rho: float) -> float:
    """(4): ``‖V − V′‖_F ≤ √(2m(1 − ρ))``."""
    return math.sqrt(2 * m * (1 - rho))


def classical(*, delta: float, beta: float) -> float:
    """(5): ``δ + β``, with ``ε = (√d + √r + t)²/r · ‖V − V′‖ √(2 ln(1.25/δ))/σ``."""
    return delta + beta


def improved(*, ratio: float = 1.0) -> float:
    """(8): the ε of Theorem 3 is at most that of (5)."""
    return ratio


def spectral(*, t: float) -> float:
    """Appendix E.1: RDPs differ by no more than ``(1 ± η)²``, ``η = √(r/n) + t/√n``, but with ``2 exp(−t²/2)``."""
    return 2 * math.exp(-(t**2) / 2)


def gain_of(*, d: int, r: int, m: int, t: float) -> float:
    """The ε of (6) over that of (5): m columns one after the other, r ≤ m − 1, residuals left out."""
    return math.sqrt(m) * (math.sqrt(r) + t) / (math.sqrt(d) + math.sqrt(r) + t)


def outside_of_spectrum(*, n: int, r: int, t: float, draws: int) -> float:
    """Share of A, r × n of entries of variance 1/n, for which an eigenvalue of AAᵀ is not within ``(1 ± η)²``."""
    A = np.random.default_rng(0).standard_normal((draws, r, n)) / math.sqrt(n)
    values = np.linalg.eigvalsh(A @ A.swapaxes(1, 2))
    eta = math.sqrt(r / n) + t / math.sqrt(n)
    return float(((values[:, 0] < max(0.0, 1 - eta) ** 2) | (values[:, -1] > (1 + eta) ** 2)).mean())


def _capture() -> Comparison:
    d, r, beta = 512, 16, 0.05
    kappa = capture(d=d, r=r, beta=beta)
    words = f"d = {d}, r = {r}, δ = {beta}: κ = {kappa:.3g}. The law of the share is Beta(r/2, (d − r)/2)."
    return Comparison("probability", chance(beta=beta), float(betaincc(r / 2, (d - r) / 2, kappa)), words)


def _apart() -> Comparison:
    m, rho = 3, 0.9
    V, other = np.vstack([np.eye(m), np.zeros((m, m))]), np.vstack([rho * np.eye(m), math.sqrt(1 - rho**2) * np.eye(m)])
    words = f"m = {m} orthonormal columns, each turned by the same angle, ρ = {rho}."
    return Comparison("‖V − V′‖", columns_apart(m=m, rho=rho), float(np.linalg.norm(V - other)), words)


def _classical() -> Comparison:
    d, r, beta, delta = 200, 100, 1e-3, 1e-3
    t = math.sqrt(2 * math.log(2 / beta))
    sigma = (math.sqrt(d) + math.sqrt(r) + t) ** 2 / r * math.sqrt(2 * math.log(1.25 / delta))
    words = f"d = {d}, r = {r}, one column that moves by 1, ε = 1, δ = β = 10⁻³: σ = {sigma:.3g}."
    return Comparison("δ", classical(delta=delta, beta=beta), moved_delta(1.0, 1 / sigma, d=d, r=r), words)


def _improved() -> Comparison:
    d, r, m, t = 100, 100, 101, math.sqrt(2 * math.log(2e3))
    words = f"d = r = {d}, m = {m} columns, all of which move by as much, β = 10⁻³; residuals are left out."
    data = {"d": d, "r": r, "t": t}
    return Comparison("ε of (6) over that of (5)", improved(), gain_of(d=d, r=r, m=m, t=t), words, data=data)


def _spectral() -> Comparison:
    n, r, t = 64, 4, 1.5
    words = f"n = {n}, r = {r}, t = {t}; 1000 draws of A."
    return Comparison("probability", spectral(t=t), outside_of_spectrum(n=n, r=r, t=t, draws=1000), words)


CLAIMS = (
    said(
        HELPS,
        "lemma-7",
        "Lemma 7",
        "what a random subspace captures",
        "B has the law Beta(r/2, (d − r)/2). B > κ with at most δ.",
        "κ = U/(U + W), U = r + 2√(rt) + 2t, W = d − r − 2√((d − r)t), t = ln(2/δ)",
        chance,
        "loose",
        "Of the proof the two deviations are left, of numbers of χ²: this is the least κ that they give. Exact is the "
        "quantile of B.",
        _capture,
        page="fresh-projections",
    ),
    said(
        HELPS,
        "eq-4",
        "(4), Section 4.1.3",
        "how far m columns move",
        "Columns are of norm 1, and v_j · v′_j ≥ ρ for all j.",
        "‖V − V′‖ ≤ √(2m(1 − ρ))",
        columns_apart,
        "holds",
        "Attained by equal angles.",
        _apart,
        page="fresh-projections",
    ),
    said(
        HELPS,
        "eq-5",
        "(5), Section 4.1.3",
        "MV + E as a Gaussian mechanism",
        "‖M‖ is bounded with at least 1 − β, and M is taken to be known.",
        "ε = (√d + √r + t)²/r · ‖V − V′‖ √(2 ln(1.25/δ))/σ, at δ + β",
        classical,
        "loose",
        "True for ε ≤ 1. It multiplies the noise of V by ‖M‖, which is above 1.",
        _classical,
        page="fresh-projections",
    ),
    said(
        HELPS,
        "eq-8",
        "(6) to (8), Section 4.1.3",
        "MV + E against a Gaussian mechanism",
        "If r ≤ dim V₋ⱼ and the residual part is small, the coefficient of Theorem 3 is smaller by a factor, “so our "
        "bound improves on the classical baseline”.",
        "(√d + √r + t)(√r + t)/r against (√d + √r + t)²/r",
        improved,
        "ambiguous",
        "For one column it does. If m columns change in turn, as (6) has it, their ε add up, while (5) has the root of "
        "the sum of squares: √m more, and m > r. Neither is better than noise on V.",
        _improved,
        page="fresh-projections",
    ),
    said(
        HELPS,
        "e1",
        "Appendix E.1",
        "noise on gradients of B against M(V + E)",
        "One step, A given. The noise of (M2) has the covariance AAᵀ, that of DP-LoRA-FA the identity: at the same "
        "clip their RDPs differ by a factor within what is below.",
        "(1 ± η)², η = √(r/n) + t/√n ≤ 1, with at least 1 − 2 exp(−t²/2)",
        spectral,
        "loose",
        "True of two mechanisms that both show A, and so of neither's gain from a secret projection. That clips can be "
        "chosen to be alike rests on Lemma 18, which asks for r ≥ 8 ln(N)/η² for N gradients, more than a small rank "
        "has; and a clip that is seldom reached bounds nothing.",
        _spectral,
        page="fresh-projections",
    ),
)
"""All of them are reconstructed: the text prints none of these formulas."""
