"""LoRA as a sketch: the third paper."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.special import ndtr

from literature.claims import Comparison
from literature.wishart.laws import normal_grid, separated
from literature.wishart.paper import DESIGN, said
from ppdp.privacy import SketchLoss

__all__ = ["CLAIMS", "limit_distance", "product_kurtosis", "sketch_divergence"]

Floats = NDArray[np.float64]


def renyi(*, alpha: float, gamma: float, r: int, p: int) -> float:
    """Lemma 7.1: ``rp/(2(α − 1)) (α log(1 − 1/γ) − log(1 − α/γ))``, 1 < α < γ."""
    return r * p / (2 * (alpha - 1)) * (alpha * math.log1p(-1 / gamma) - math.log1p(-alpha / gamma))


def truncated(*, alpha: float, gamma: float, r: int, p: int) -> float:
    """Corollary 7.3: ``α rp/(2γ²)`` for ``α < γ/2``, as far as it can be read."""
    return alpha * r * p / (2 * gamma**2)


def products(*, norm: float, change: float) -> float:
    """Lemma A.1: 2CΔ."""
    return 2 * norm * change


def update(*, distance: float) -> float:
    """Lemma 5.1: ``W_T = W₀ − ηΣ∇L(W_t)A₀ᵀA₀``."""
    return distance


def variance(*, q: Floats, at: int, r: int) -> float:
    """Lemma 6.1: ``(‖q‖² + q_i²)/r``."""
    return float(q @ q + q[at] ** 2) / r


def covariance(*, between: float = 0.0) -> float:
    """Lemma 6.1: a diagonal covariance."""
    return between


def kurtosis(*, normal: float = 3.0) -> float:
    """Lemma 6.1: a normal law."""
    return normal


def distance_from_normal(*, limit: float = 0.0) -> float:
    """Lemma C.2, Lemma C.3: the distance tends to 0 as n grows."""
    return limit


def product_kurtosis(*, r: int, terms: int, entry: float = 9 / 5) -> float:
    """Kurtosis of an entry of ``qAᵀA`` where q is 0; q has ``terms`` equal ones, ``entry`` is that of entries of A."""
    return 3 + (entry * (3 + (entry - 3) / terms) - 3) / r


def limit_distance() -> float:
    """Total variation of a normal law and Laplace's of the same variance: that of the noise, for r = 2."""
    near, far = (math.sqrt(2) + sign * math.sqrt(2 - math.log(math.pi)) for sign in (-1, 1))
    inside = 1 - math.exp(-math.sqrt(2) * near) - (2 * float(ndtr(near)) - 1)
    return inside + math.exp(-math.sqrt(2) * far) - 2 * float(ndtr(-far))


def sketch_divergence(alpha: float, G: Floats, other: Floats, sigma: float, r: int) -> float:
    """``D_α(GS + σN || G′S + σN)``: exact, infinite if the order is too large."""
    noise = sigma**2 * np.eye(len(G))
    s = eigh(G @ G.T + noise, other @ other.T + noise, eigvals_only=True)
    inside = 1 - (alpha - 1) * (s - 1)
    if inside.min() <= 0:
        return math.inf
    return float(r * (-np.log(s) / 2 - np.log(inside) / (2 * (alpha - 1))).sum())


def noise_term(q: Floats, r: int) -> tuple[Floats, Floats]:
    """``q(AᵀA − I)`` at points, and their weights, that give its moments exactly."""
    points, weights = normal_grid(r * len(q))
    A = points.reshape(-1, r, len(q)) / math.sqrt(r)
    return (A @ q)[:, None] @ A - q, weights  # type: ignore[return-value]


def _pair() -> tuple[Floats, Floats]:
    G = np.eye(2, 6)
    other = G.copy()
    other[:, 0] *= 0.95
    return G, other


def _constants(G: Floats, other: Floats, sigma: float) -> tuple[float, int]:
    least = min(np.linalg.eigvalsh(each @ each.T)[0] for each in (G, other))
    norm = max(np.linalg.norm(G), np.linalg.norm(other))
    rank = int(np.linalg.matrix_rank(G @ G.T - other @ other.T))
    return float((least + sigma**2) / (2 * norm * np.linalg.norm(G - other))), rank


def _renyi() -> Comparison:
    G, other = _pair()
    gamma, p = _constants(G, other, 0.0)
    found = max(sketch_divergence(2.0, *pair, 0.0, 4) for pair in ((G, other), (other, G)))
    words = f"m = 2, n = 6, orthonormal rows, the first entry is 0.95 instead: γ = {gamma:.3g}, r = 4, σ = 0, α = 2."
    ours = SketchLoss(rank=4, shift=0.05, floor=0.95**2).renyi(2.0)
    return Comparison("Rényi divergence", renyi(alpha=2.0, gamma=gamma, r=4, p=p), found, words, ours)


def _tight() -> Comparison:
    G = np.diag([1.0, 2.0])[:, [0, 1, 0]] * [0.9, 1.0, math.sqrt(1 - 0.81)]
    other = G * [1.0, 1.0, 0.0]
    gamma = 1.0 / (1 - 0.81)
    found = sketch_divergence(3.0, G, other, 0.0, 4)
    words = "m = 2, n = 3, r = 4, σ = 0, α = 3: the third column is zeroed, an eigenvector of the least eigenvalue 1."
    ours = SketchLoss(rank=4, change=0.19, rows=1, floor=0.81).renyi(3.0)
    return Comparison("Rényi divergence", renyi(alpha=3.0, gamma=gamma, r=4, p=1), found, words, ours)


def _released() -> tuple[float, float, int]:
    """The divergence of W₁ − W₀ under the pair above (infinite: told apart), γ and p."""
    G, other = _pair()
    other = other + 0.05 * np.eye(2, 6, 2)
    told = separated(G.T, other.T, 4)
    return (math.inf if told == 1.0 else 0.0), *_constants(G, other, 0.0)


_STEP = "T = 1, m = 2, n = 6, r = 4, σ = 0: a gradient of orthonormal rows, of which the neighbour has others; λ = 1. "


def _lora() -> Comparison:
    found, gamma, p = _released()
    words = f"{_STEP}W₁ is released, γ = {gamma:.3g}, α = 2: told apart by symmetry in all of 20 draws."
    return Comparison("Rényi divergence", renyi(alpha=2.0, gamma=gamma, r=4, p=p), found, words)


def _tcdp() -> Comparison:
    found, gamma, p = _released()
    words = f"{_STEP}W₁ is released, γ = {gamma:.3g}, α = 2: told apart by symmetry in all of 20 draws."
    return Comparison("Rényi divergence", truncated(alpha=2.0, gamma=gamma, r=4, p=p), found, words)


def _products() -> Comparison:
    norm, change = 1.0, 1e-3
    words = "G = 1 and G′ = 0.999, m = n = 1; attained as Δ → 0."
    return Comparison("‖GGᵀ − G′G′ᵀ‖", products(norm=norm, change=change), norm**2 - (norm - change) ** 2, words)


def _update() -> Comparison:
    rng = np.random.default_rng(0)
    W, A, X, y = (rng.standard_normal(shape) for shape in ((3, 5), (2, 5), (5, 8), (3, 8)))
    B, total = np.zeros((3, 2)), np.zeros((3, 5))
    for _ in range(3):
        gradient = ((W + B @ A) @ X - y) @ X.T
        total += gradient
        B -= 0.01 * gradient @ A.T
    words = "Three steps of least squares, A frozen, r = 2."
    printed = update(distance=float(np.linalg.norm(0.01 * total @ A.T @ A)))
    return Comparison("‖W_T − W₀‖", printed, float(np.linalg.norm(B @ A)), words)


Q = np.array([1.0, 2.0, -0.5])


def _variance() -> Comparison:
    values, weights = noise_term(Q, 1)
    words = "q = (1, 2, -1/2), r = 1, the second entry; moments by nodes that are exact for them."
    return Comparison("variance", variance(q=Q, at=1, r=1), float(weights @ values[..., 1].ravel() ** 2), words)


def _covariance() -> Comparison:
    values, weights = noise_term(Q, 1)
    found = float(weights @ (values[..., 0] * values[..., 1]).ravel())
    words = "q = (1, 2, -1/2), r = 1, the first two entries; further entries of q, all 0, change nothing."
    return Comparison("covariance", covariance(), found, words)


def _kurtosis() -> Comparison:
    values, weights = noise_term(np.array([1.0, 0.0]), 2)
    x = values[..., 1].ravel()
    words = "q = (1, 0, …, 0), r = 2, an entry where q is 0; the same for every n."
    return Comparison("kurtosis", kurtosis(), float(weights @ x**4) / float(weights @ x**2) ** 2, words)


def _kaiming() -> Comparison:
    words = "r = 2, A uniform, q of 1000 equal entries and one 0: the entry there. By cumulants, exactly."
    return Comparison("kurtosis", kurtosis(), product_kurtosis(r=2, terms=1000), words)


def _distance() -> Comparison:
    words = (
        "r = 2, q = (1, 0, …, 0), an entry where q is 0: the law is Laplace's for every n. The densities cross twice "
        "on each side of 0."
    )
    return Comparison("total variation", distance_from_normal(), limit_distance(), words)


_VOID = (
    "W_T − W₀ is the sketch times A, the same A that is the sketch's secret: that is no post-processing. Symmetry of "
    "the product tells neighbours apart, for every r. Released adapters hold A itself. Beyond the first step gradients "
    "depend on A; and λ > 0 fails for a softmax head and for small batches. "
)

CLAIMS = (
    said(
        DESIGN,
        "lemma-5.1",
        "Lemma 5.1",
        "LoRA as gradient descent",
        "B starts at 0. After T steps W_T is what is below; exactly so if A is frozen.",
        "W_T = W₀ − ηΣ∇L(W_t)A₀ᵀA₀",
        update,
        "holds",
        "The gradients are those at the adapted W_t, so they depend on A₀ from the second step on.",
        _update,
    ),
    said(
        DESIGN,
        "lemma-6.1",
        "Lemma 6.1, variance",
        "noise of one entry",
        "Entries of q(AᵀA − I) have mean 0 and the variance below.",
        "(‖q‖² + q_i²)/r",
        variance,
        "holds",
        "For every n.",
        _variance,
    ),
    said(
        DESIGN,
        "lemma-6.1-diagonal",
        "Lemma 6.1, covariance",
        "noise of two entries",
        "The covariance tends to a diagonal matrix as n grows.",
        "Cov = 0 for i ≠ j",
        covariance,
        "false",
        "It is (‖q‖²I + qqᵀ)/r for every n; the second part does not vanish while q has large entries.",
        _covariance,
    ),
    said(
        DESIGN,
        "lemma-6.1-law",
        "Lemma 6.1, law",
        "noise of one entry",
        "q(AᵀA − I) tends to a normal law as n grows.",
        "kurtosis 3",
        kurtosis,
        "false",
        "For r fixed the limit is a variance-gamma law of kurtosis 3 + 6/r. The terms of the sum are uncorrelated, not "
        "independent. It is normal as r grows. Noise that depends on a secret A that is released says nothing about "
        "privacy.",
        _kurtosis,
    ),
    said(
        DESIGN,
        "lemma-a1",
        "Lemma A.1",
        "products of two matrices",
        "‖GGᵀ − G′G′ᵀ‖ for norms of at most C and a distance of at most Δ.",
        "2CΔ",
        products,
        "holds",
        "Attained as Δ → 0.",
        _products,
        page="gaussian-sketch",
    ),
    said(
        DESIGN,
        "lemma-7.1",
        "Lemma 7.1",
        "the sketch GS + σN",
        "‖G‖ ≤ C, ‖G − G′‖ ≤ Δ, λ_min(GGᵀ) ≥ λ for all datasets. The sketch is (α, ε(α))-RDP for 1 < α < γ.",
        "ε(α) = rp/(2(α − 1)) (α log(1 − 1/γ) − log(1 − α/γ)), γ = (λ + σ²)/(2CΔ)",
        renyi,
        "loose",
        "True, and mostly infinite: C ≥ √(mλ), so γ < 1 unless Δ is small. A bound without C and p, which is attained "
        "for λ ≥ σ², is −r/2 (log(1 + x) + log(1 − (α − 1)x)/(α − 1)), x = κΔ + Δ²/(λ + σ²), with κ = 2√λ/(λ + σ²), "
        "or √(2/(λ + σ²)) for λ < σ².",
        _renyi,
        page="gaussian-sketch",
    ),
    said(
        DESIGN,
        "lemma-7.1-tight",
        "Lemma 7.1, remark",
        "a column that is zeroed",
        "The bound is attained for a column of norm c along the eigenvector of the least eigenvalue, with p = 1 and c² "
        "for 2CΔ.",
        "ε(α) at γ = (λ + σ²)/c², p = 1",
        renyi,
        "holds",
        "λ is that of the matrix with the column; the other one has a smaller eigenvalue.",
        _tight,
        page="gaussian-sketch",
    ),
    said(
        DESIGN,
        "lemma-7.2",
        "Lemma 7.2",
        "LoRA by design",
        "Only the final model is released, A is frozen. With λ for cumulative gradients, LoRA is (α, ε(α))-RDP, also "
        "without noise.",
        "ε(α) of Lemma 7.1 with the constants of the cumulative gradient",
        renyi,
        "false",
        _VOID + "No finite ε(α) is right: the formula, which is a reading, decides nothing. What survives: the sketch "
        "alone, with S secret, fresh and independent of G.",
        _lora,
    ),
    said(
        DESIGN,
        "cor-7.3",
        "Corollary 7.3",
        "LoRA by design",
        "If γ is large enough, LoRA is tCDP.",
        "(rp/(2γ²), γ/2)-tCDP",
        truncated,
        "false",
        "As Lemma 7.2. The constants are a reading; no others would help.",
        _tcdp,
    ),
    said(
        DESIGN,
        "lemma-b1",
        "Lemma B.1",
        "noise of one entry, Kaiming-uniform A",
        "A has uniform entries. For a fixed q, qAᵀA tends to a normal law as n grows.",
        "kurtosis 3",
        kurtosis,
        "false",
        "As Lemma 6.1: for r fixed terms share the entries of A that q does not weigh, and the limit has kurtosis 3 + "
        "12/(5r). It is normal as r grows.",
        _kaiming,
    ),
    said(
        DESIGN,
        "lemma-c2",
        "Lemma C.2",
        "noise of one entry, and a normal law",
        "Appendix C.1 is for “limited values” of n, where Lemma 6.1 has its limit: the distance of the noise from the "
        "normal law of its variance falls to 0. Read here with n alone, r fixed.",
        "total variation → 0 as n → ∞",
        distance_from_normal,
        "ambiguous",
        "Refuted for a fixed r: where q is 0 the law is a variance-gamma one, of kurtosis 3 + 6/r, and does not depend "
        "on n at all. Read with r growing, as the r independent terms of the proof have it, it is true, O(1/√r). The "
        "last remark of the proof, O(1/√(nr)) if all terms were independent, does not apply: they are not.",
        _distance,
    ),
)
CLAIMS += (
    replace(
        CLAIMS[-1],
        id="design-lemma-c3",
        place="Lemma C.3",
        subject="a coupling with a normal number",
        statement="By the coupling that attains the distance, the entry is a normal number but with the probability of "
        "Lemma C.2. Read as there.",
        formula="P(e ≠ ẽ) → 0 as n → ∞",
    ),
)
"""In the order of the paper, but for the appendices, which are last."""
