"""What the first paper cites, and its law of Mv."""

from __future__ import annotations

import math

import numpy as np
from scipy.integrate import quad
from scipy.special import gamma

from literature.claims import Comparison
from literature.projections.laws import composed_delta, gaussian_delta
from literature.wishart.laws import epsilon_at, normal_grid, support
from literature.wishart.paper import BEYOND, said

__all__ = ["CLAIMS", "total_mass"]


def target(*, delta: float) -> float:
    """Lemma 1: δ, of noise with ``σ² = 2Δ² log(2/δ)/ε²``."""
    return delta


def sampled(*, epsilon: float, q: float) -> float:
    """Lemma 3: ``log(1 + q(e^ε − 1))``."""
    return math.log1p(q * math.expm1(epsilon))


def second_moment(*, d: int, r: int, sigma: float) -> float:
    """Lemma 12: ``σ⁴ r (r + d + 1)``."""
    return sigma**4 * r * (r + d + 1)


def composed(*, times: int, epsilon: float, slack: float) -> float:
    """Lemma 13: ``ε √(2k ln(1/δ′)) + kε e^(ε − 1)/(e^ε + 1)``."""
    steep = math.exp(epsilon - 1) / (math.exp(epsilon) + 1)
    return epsilon * math.sqrt(2 * times * math.log(1 / slack)) + times * epsilon * steep


def outside(*, r: int, rho: float) -> float:
    """Lemma 14: ``(1 − ρ²)^(r/2)``."""
    return float((1 - rho**2) ** (r / 2))


def total_mass(*, sigma: float, r: int, power: int) -> float:
    """Mass of Lemma 15's density with ``σ^power`` in the denominator of its constant; d = 1."""
    constant = 1 / (2 ** (r / 2) * gamma(r / 2) * sigma**power)
    tail = 60 * r * sigma**2
    return float(quad(lambda y: constant * y ** ((r - 2) / 2) * math.exp(-y / (2 * sigma**2)), 0, tail, limit=200)[0])


def density(*, mass: float = 1.0) -> float:
    """Lemma 15: a density has mass 1."""
    return mass


def _gaussian() -> Comparison:
    epsilon, delta = 30.0, 1e-5
    sigma = math.sqrt(2 * math.log(2 / delta)) / epsilon
    words = f"ε = {epsilon:g}, Δ = 1, δ = 10⁻⁵."
    return Comparison("δ", target(delta=delta), gaussian_delta(1.0, sigma, epsilon), words)


def _sampled() -> Comparison:
    q, keep = 0.1, math.e / (1 + math.e)
    left, right = (np.array([1 - q, q * one, q * (1 - one)]) for one in (keep, 1 - keep))
    return Comparison(
        "loss",
        sampled(epsilon=1.0, q=q),
        float(np.abs(np.log(left / right)).max()),
        "One row, a bit; q = 0.1. A says that there is no row, or the bit, flipped with probability 1/(1 + e).",
    )


def _second_moment() -> Comparison:
    points, weights = normal_grid(4)
    Z = points.reshape(-1, 2, 2)
    image = Z @ Z.swapaxes(1, 2) @ np.array([0.6, 0.8])
    words = "d = r = 2, σ = 1, g = (0.6, 0.8); moments by nodes that are exact for them."
    return Comparison("E‖Wg‖²", second_moment(d=2, r=2, sigma=1.0), float(weights @ (image**2).sum(axis=1)), words)


def _composed() -> Comparison:
    times, epsilon, slack = 300, 2.0, 1e-6
    return Comparison(
        "ε at δ′ = 10⁻⁶",
        composed(times=times, epsilon=epsilon, slack=slack),
        epsilon_at(slack, lambda most: composed_delta(times, epsilon, most)),
        f"{times} bits, each flipped with probability 1/(e² + 1): ε = 2, δ = 0.",
        data={"times": times, "epsilon": epsilon, "slack": slack},
    )


def _outside() -> Comparison:
    words = "r = 5, ρ = 0.5; exactly the distribution of Student's t."
    return Comparison("probability", outside(r=5, rho=0.5), support(5, 0.5), words)


def _density() -> Comparison:
    words = "d = r = 1, σ = 2."
    return Comparison("mass", density(), total_mass(sigma=2.0, r=1, power=-1), words, data={"sigma": 2.0, "r": 1})


CLAIMS = (
    said(
        BEYOND,
        "lemma-1",
        "Lemma 1",
        "the Gaussian mechanism",
        "Gaussian noise of the variance below is (ε, δ)-DP.",
        "σ² = 2 Δ² log(2/δ) / ε²",
        target,
        "false",
        "True for ε ≤ 1; at a large ε the noise is too small. Exact is the analytic Gaussian mechanism.",
        _gaussian,
    ),
    said(
        BEYOND,
        "lemma-3",
        "Lemma 3",
        "amplification by Poisson samples",
        "A is (ε, δ)-DP, and neighbours are of the same size. A on a Poisson sample of rate q is (ε′, qδ)-DP.",
        "ε′ = log(1 + q(e^ε − 1))",
        sampled,
        "false",
        "True if A is (ε, δ)-DP for rows that are added or removed. Under Definition 2 A may show how many rows there "
        "are, so that the row that was replaced is known to be sampled: ε stays.",
        _sampled,
    ),
    said(
        BEYOND,
        "lemma-12",
        "Lemma 12",
        "second moment of a Wishart matrix",
        "W = ZZᵀ with entries of variance σ², ‖g‖ = 1. E gᵀWWᵀg is what is below.",
        "σ⁴ r (r + d + 1)",
        second_moment,
        "holds",
        "The proof has lost a factor r in E(W)E(W)ᵀ = σ⁴r²I on the way.",
        _second_moment,
    ),
    said(
        BEYOND,
        "lemma-13",
        "Lemma 13",
        "advanced composition",
        "k mechanisms that are (ε, δ)-DP are (ε̃, kδ + δ′)-DP together.",
        "ε̃ = ε √(2k ln(1/δ′)) + kε e^(ε − 1)/(e^ε + 1)",
        composed,
        "misprint",
        "In the source it is e^ε − 1, not e^(ε − 1); perhaps the transcriber's.",
        _composed,
    ),
    said(
        BEYOND,
        "lemma-14",
        "Lemma 14",
        "outputs that v′ cannot have",
        "P(Σ X_i Y_i < 0) for r pairs of correlation ρ > 0 is at most what is below.",
        "(1 − ρ²)^(r/2)",
        outside,
        "loose",
        "Exact is P(t_r < −ρ√r/√(1 − ρ²)). Below this δ the mechanism has no ε at all.",
        _outside,
        page="wishart",
    ),
    said(
        BEYOND,
        "lemma-15",
        "Lemma 15",
        "density of Mv",
        "y = Mv has the density below where v·y > 0; d ≥ r.",
        "C (v·y)^((r − d − 1)/2) exp(−‖y‖²/(2σ² v·y)), C = 1/(2^(r/2) Γ(r/2) σ^(d − r − 1) (2π)^((d − 1)/2))",
        density,
        "misprint",
        "σ^(d + r − 1); d ≥ r is not needed. (14) and (17) have r − d + 1 for r − d − 1, and (16) mixes two scales. "
        "All of it cancels in ratios.",
        _density,
        page="wishart",
    ),
)
"""In the order of the first paper."""
