"""Table 1 and Theorems 10 to 12: Gaussian, Laplace and exponential mechanisms."""

from __future__ import annotations

import math

import numpy as np

from literature.claims import Claim, Comparison
from literature.divergence import gaussian_divergence
from literature.preprocessing.paper import PAPER
from ppdp.privacy.renyi import bounded_range_curve, gaussian_curve, laplace_curve

__all__ = ["CLAIMS", "gaussian_smooth", "pure_smooth", "theorem_10"]


def theorem_10(*, alpha: float, lipschitz: float, tau: float, epsilon: float) -> float:
    """Theorem 10, smooth RDP of the Gaussian mechanism: ``α L² τ² ε² / 2``."""
    return alpha * lipschitz**2 * tau**2 * epsilon**2 / 2


def gaussian_smooth(*, alpha: float, lipschitz: float, tau: float, epsilon: float, sensitivity: float) -> float:
    """Table 1, smooth RDP of the Gaussian mechanism: ``α L² τ² ε² / (2 Δ_f²)``; Lτ = Δ_f gives its RDP."""
    return alpha * lipschitz**2 * tau**2 * epsilon**2 / (2 * sensitivity**2)


def pure_smooth(*, alpha: float, lipschitz: float, tau: float, epsilon: float, sensitivity: float) -> float:
    """Theorems 11 and 12, Table 1: ``(L τ / Δ) ε`` at every order ``alpha``; Lτ = Δ gives the RDP."""
    return lipschitz * tau / sensitivity * epsilon


def _small_sensitivity() -> Comparison:
    alpha, epsilon, one, other = 2.0, 1.0, 0.0, 0.5
    answers = [float(np.clip(x, 0, 0.5)) for x in (one, other)]
    sensitivity, tau = 0.5, abs(one - other)
    shift = answers[1] - answers[0]
    return Comparison(
        "Rényi divergence of order 2",
        theorem_10(alpha=alpha, lipschitz=1.0, tau=tau, epsilon=epsilon),
        gaussian_divergence(alpha, shift, sensitivity / epsilon),
        "One row, 0 or 1/2; f(x) = clip(x, 0, 1/2) has L = 1 and Δ_f = 1/2; noise N(0, Δ_f²/ε²), τ = 1/2, ε = 1.",
        gaussian_curve(shift * epsilon / sensitivity)(alpha),
        {"left": one, "right": other, "alpha": alpha, "epsilon": epsilon},
    )


def _moved_sum() -> Comparison:
    alpha, epsilon, rows = 3.0, 0.5, np.linspace(-0.5, 0.4, 8)
    moved = rows + 0.1
    tau, shift = np.abs(moved - rows).sum(), moved.sum() - rows.sum()
    return Comparison(
        "Rényi divergence of order 3",
        gaussian_smooth(alpha=alpha, lipschitz=1.0, tau=tau, epsilon=epsilon, sensitivity=1.0),
        gaussian_divergence(alpha, shift, 1.0 / epsilon),
        "Eight rows in [-1/2, 1/2] all move up by 0.1; f is their sum (L = 1 in the distance d₁₂, Δ_f = 1), ε = 1/2.",
        gaussian_curve(tau * epsilon)(alpha),
        {"left": rows, "right": moved, "alpha": alpha, "epsilon": epsilon},
    )


def _laplace() -> Comparison:
    alpha, epsilon = math.inf, 0.1
    return Comparison(
        "Rényi divergence of order ∞",
        pure_smooth(alpha=alpha, lipschitz=1.0, tau=1.0, epsilon=epsilon, sensitivity=1.0),
        laplace_curve(epsilon)(alpha),
        "One row goes from -1/2 to 1/2; the sum with Laplace noise of scale 1/ε, ε = 0.1. At order 2 it is "
        f"{laplace_curve(epsilon)(2.0):.4g}.",
        laplace_curve(epsilon)(alpha),
        {"left": -0.5, "right": 0.5, "alpha": alpha, "epsilon": epsilon},
    )


def _exponential() -> Comparison:
    alpha, epsilon, others = math.inf, 0.1, 9999
    candidates = np.repeat([1.0, -1.0], [1, others])
    laws = []
    for row in (-0.5, 0.5):
        weights = np.exp(candidates * row * epsilon / 2)  # Q(c, S) = c row: Δ_Q = L = 1
        laws.append(weights / weights.sum())
    return Comparison(
        "Rényi divergence of order ∞",
        pure_smooth(alpha=alpha, lipschitz=1.0, tau=1.0, epsilon=epsilon, sensitivity=1.0),
        float(np.abs(np.log(laws[0] / laws[1])).max()),
        f"One row, -1/2 or 1/2; a candidate whose score is the row, and {others} whose score is its negative (Δ_Q = L "
        "= 1), ε = 0.1.",
        bounded_range_curve(epsilon)(alpha),
        {"left": -0.5, "right": 0.5, "alpha": alpha, "epsilon": epsilon},
    )


CLAIMS = (
    Claim(
        "thm-10",
        PAPER,
        "Theorem 10, smooth RDP",
        "Gaussian mechanism",
        "f(S) + N(0, Δ_f²/ε²) of an L-Lipschitz f is (α, αL²τ²ε²/2)-smooth RDP.",
        "α L² τ² ε² / 2",
        theorem_10,
        "misprint",
        "The division by Δ_f² is missing; the theorem's own proof and Table 1 have it. Exceeded whenever Δ_f < 1.",
        _small_sensitivity,
        "renyi",
    ),
    Claim(
        "table-1-gaussian",
        PAPER,
        "Table 1, M_G",
        "Gaussian mechanism",
        "f(S) + N(0, Δ_f²/ε²) of an L-Lipschitz f is (α, αε²/2)-RDP and (α, αL²τ²ε²/(2Δ_f²))-smooth RDP.",
        "α ε² / 2;  α L² τ² ε² / (2 Δ_f²)",
        gaussian_smooth,
        "holds",
        "True and attained if L is the constant for d₁₂, the sum of the moves. The proof takes f to be L-Lipschitz "
        "in the Frobenius norm, which is more than it uses. A moved row never costs more than a replaced one: "
        "min(Lτ, Δ_∞Δ_f) may stand for Lτ.",
        _moved_sum,
        "accounting",
    ),
    Claim(
        "thm-11",
        PAPER,
        "Theorem 11, Table 1, M_L",
        "Laplace mechanism",
        "f(S) + Lap(Δ_f/ε) of an L-Lipschitz f is (α, ε)-RDP and (α, Lτε/Δ_f)-smooth RDP for every α ≥ 1.",
        "ε;  L τ ε / Δ_f",
        pure_smooth,
        "holds",
        "True for one number, and attained as α → ∞; at finite orders the loss is quadratic in ε for small ε. For "
        "vectors Δ_f and L must be those into the L1 norm, up to √d times larger than the Euclidean ones.",
        _laplace,
        "laplace",
        ("laplace.sum", "laplace.mean"),
    ),
    Claim(
        "thm-12",
        PAPER,
        "Theorem 12, Table 1, M_E",
        "exponential mechanism",
        "The exponential mechanism with weights exp(εQ/(2Δ_Q)) and an L-Lipschitz score is (α, ε)-RDP and "
        "(α, Lτε/Δ_Q)-smooth RDP for every α ≥ 1.",
        "ε;  L τ ε / Δ_Q",
        pure_smooth,
        "holds",
        "True, and attained as α → ∞ with ever more candidates; at finite orders never more than αε²/8. Scores such "
        "as ranks are not Lipschitz: a row that moves then costs what a replaced one does.",
        _exponential,
        "exponential",
        ("exponential.utility", "exponential.quantile"),
    ),
)
