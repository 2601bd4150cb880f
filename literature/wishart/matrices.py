"""Matrices under ZZᵀ without noise: Theorem 2, Proposition 2, and LoRA as it is trained."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from literature.claims import Comparison
from literature.wishart.laws import separated, vector_delta
from literature.wishart.paper import BEYOND, HELPS, said
from literature.wishart.vectors import any_delta

__all__ = ["CLAIMS", "bends", "head_gradients"]

Floats = NDArray[np.float64]


def _terms(k: int, r: int, d: int, t: float, eta: float, R: float, room: float, m: int) -> float:
    first = math.sqrt(k) - math.sqrt(r) - (math.sqrt(t) + eta)
    third = math.sqrt(R) - math.sqrt(d) - math.sqrt(r)
    second = room - math.sqrt(m) - math.sqrt(r)
    least, then, last = (math.exp(-(max(value, 0.0) ** 2) / 2) for value in (first, second, third))
    return least + 2 * then + 2 * last


def displayed(*, d: int, m: int, r: int, rho: float, t: float, eta: float, R: float) -> float:
    """Theorem 2's δ at k = m, ξ₁ = ξ_k = 1, c = 1/2: the second term has ``(ρ_k − 1)t``."""
    return _terms(m, r, d, t, eta, R, (rho - 1) * t / (math.sqrt(1 - rho**2) * R), m)


def proved(*, d: int, m: int, r: int, rho: float, t: float, eta: float, R: float) -> float:
    """The δ of its proof: the second term has ``ρ_k(√t + η)² − t``."""
    room = (rho * (math.sqrt(t) + eta) ** 2 - t) / (math.sqrt(1 - rho**2) * R)
    return _terms(m, r, d, t, eta, R, room, m)


def missing(*, dimensions: float = 0.0) -> float:
    """Lemma 16: a density, so no dimension is missing."""
    return dimensions


def subspaces(*, n: int, bound: float, floor: float) -> float:
    """``1 − ρ_k ≤ 4L²/(n²ξ_k²)``."""
    return 4 * bound**2 / (n * floor) ** 2


def overlap(*, share: float = 0.0) -> float:
    """Proposition 2: an event of probability 1 and 0, so no outcome is shared."""
    return share


def different(*, probability: float = 1.0) -> float:
    """Lemma 11: MV ≠ MV′ with probability 1."""
    return probability


def bends(V: Floats, r: int) -> float:
    """How many dimensions MV lacks: the rank of its derivative in Z against the entries of MV."""
    Z = np.random.default_rng(0).standard_normal((len(V), r))
    basis = np.eye(Z.size).reshape(-1, *Z.shape)
    moves = basis @ (Z.T @ V) + Z @ (basis.swapaxes(1, 2) @ V)
    return float(len(V) * V.shape[1] - np.linalg.matrix_rank(moves.reshape(len(basis), -1)))


def head_gradients() -> tuple[Floats, Floats]:
    """Gradients of a softmax head of 3 classes on 12 rows of 10 features, before and after one row is replaced."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((12, 10)), rng.integers(0, 3, 12)
    other = X.copy()
    other[0] = rng.standard_normal(10)
    return X.T @ (1 / 3 - np.eye(3)[y]), other.T @ (1 / 3 - np.eye(3)[y])


SIZES = {"d": 400, "m": 400, "r": 4, "rho": 1 - 1e-7, "t": 4.0, "eta": 3.0, "R": 900.0}


def _turned() -> tuple[Floats, Floats]:
    """Two bases of ℝ⁴⁰⁰ that one rotation by arccos ρ separates."""
    V, other = np.eye(400), np.eye(400)
    cosine = float(SIZES["rho"])
    other[:2, :2] = [[cosine, -math.sqrt(1 - cosine**2)], [math.sqrt(1 - cosine**2), cosine]]
    return V, other


_SIZES = (
    "d = m = k = 400, r = 4, t = 4, η = 3, R = 900; orthonormal columns, two of them turned by arccos ρ_k, 1 − ρ_k = "
    "10⁻⁷: told apart by symmetry."
)


def _displayed() -> Comparison:
    found = separated(*_turned(), 4, draws=2)
    return Comparison("δ, at every ε", displayed(**SIZES), found, _SIZES)  # type: ignore[arg-type]


def _proved() -> Comparison:
    found = separated(*_turned(), 4, draws=2)
    return Comparison("δ, at every ε", proved(**SIZES), found, _SIZES)  # type: ignore[arg-type]


def _missing() -> Comparison:
    V = np.random.default_rng(1).standard_normal((6, 3))
    words = "d = 6, m = k = 3, r = 2, a random V: the rank of the derivative of MV in Z is counted."
    return Comparison("dimensions that MV lacks", missing(), bends(V, 2), words)


def _subspaces() -> Comparison:
    n, floor = 100, 0.5
    sine = 2 / (n * floor)
    words = f"L = 1, n = {n}, ξ_k = {floor}: two planes at the angle whose sine is 2L/(nξ_k)."
    return Comparison("1 − ρ_k", subspaces(n=n, bound=1.0, floor=floor), 1 - math.sqrt(1 - sine**2), words)


def _trained() -> Comparison:
    words = "A softmax head of 3 classes and 10 features, 12 rows, one of them replaced; one step from B = 0, r = 1."
    return Comparison("δ, at every ε", any_delta(delta=0.99), separated(*head_gradients(), 1), words)


def _overlap() -> Comparison:
    d, r, rho = 50, 20, 0.999
    words = f"V = (v, v), V′ = (v′, v′), cosine {rho}, d = {d}, r = {r}: MV shows no more than Mv."
    data = {"reading": head_gradients()}
    return Comparison("overlap of the two laws", overlap(), 1 - vector_delta(0.0, d=d, r=r, rho=rho), words, data=data)


def _different() -> Comparison:
    V, other = head_gradients()
    Z = np.random.default_rng(0).standard_normal((100, len(V), 2))
    apart = np.abs(Z @ (Z.swapaxes(1, 2) @ (V - other))).max(axis=(1, 2)) > 0
    return Comparison(
        "probability", different(), float(apart.mean()), "The two gradients of a softmax head, 100 draws."
    )


_SUPPORT = (
    "VᵀMV is symmetric, VᵀMV′ is not: the two have no outcome in common, and no (ε, δ) with δ < 1 holds, for any r. "
)

CLAIMS = (
    said(
        BEYOND,
        "thm-2",
        "Theorem 2",
        "matrices, as displayed",
        "Under (A1) and (A2), for all t and R > ξ₁(√d + √r)², MV is (ε, δ)-DP with this δ.",
        "δ = e^(−(√k − √r − (√t + η)/ξ_k)₊²/2) + 2e^(−((ρ_k − 1)t/(√(1 − ρ_k²)R) − √m − √r)₊²/2) + 2e^(−c(√(R/ξ₁) − √d "
        "− √r)₊²)",
        displayed,
        "loose",
        "Vacuous: (ρ_k − 1)t ≤ 0, so the second term is 2 and δ ≥ 2. What the proof has instead follows.",
        _displayed,
    ),
    said(
        BEYOND,
        "thm-2-proof",
        "Theorem 2, in its proof",
        "matrices, as proved",
        "The same, with ρ_k(√t + η)² − t for (ρ_k − 1)t: below 1 for ρ_k near 1.",
        "second term: 2e^(−((ρ_k(√t + η)² − t)/(√(1 − ρ_k²)R) − √m − √r)₊²/2)",
        proved,
        "false",
        _SUPPORT + "The likelihood ratio is taken on a set that has probability 0 under both. Withdrawn in the later "
        "version. Whatever ε is.",
        _proved,
    ),
    said(
        BEYOND,
        "lemma-16",
        "Lemma 16",
        "density of MV",
        "MV has a density on ℝ^(d × m), for r ≤ k ≤ min(m, d).",
        "C |VᵀV|₊^((m − r)/2) |S|₊^((r − d − 1)/2) exp(−r Tr(S†YᵀY)/2), S = VᵀY",
        missing,
        "false",
        "MV lies in a set of lower dimension, if m > 1, which depends on V: VᵀY is symmetric and of rank r. At most it "
        "is a density on that set.",
        _missing,
    ),
    said(
        BEYOND,
        "rho-k",
        "Section 4.1, ρ_k and n",
        "how ρ_k depends on n",
        "f is a mean of matrices of norm at most L, of rank k and k-th singular value at least ξ_k.",
        "ρ_k ≥ 1 − 4L²/(n²ξ_k²)",
        subspaces,
        "loose",
        "Sharp is √(1 − 4L²/(n²ξ_k²)).",
        _subspaces,
    ),
    said(
        BEYOND,
        "lora",
        "Section 4.2",
        "LoRA with a frozen A",
        "W_T = W₀ − ηΣG_tAᵀA is a projection of the gradients, so it inherits the guarantee of Theorem 2.",
        "(ε, δ)-DP for some δ < 1",
        any_delta,
        "false",
        "It is a projection, which is why it is not private. " + _SUPPORT + "Neither A nor the model is needed.",
        _trained,
    ),
    said(
        BEYOND,
        "alg-2",
        "Algorithm 2",
        "LoRA with A drawn anew",
        "A is drawn anew every τ steps, at the price of composition over the restarts.",
        "(ε, δ)-DP for some δ < 1",
        any_delta,
        "false",
        "The first restart is not private (τ = T = 1). With noise on B, steps cost what those of DP-SGD cost.",
        _trained,
    ),
    said(
        HELPS,
        "prop-2",
        "Proposition 2",
        "matrices without noise",
        "f is non-trivial and has matrices as values. Neighbours and an event exist with P(MV ∈ E) = 1 and P(MV′ ∈ E) "
        "= 0, so that MV is not (ε, δ)-DP for any δ < 1.",
        "P(MV ∈ E) = 1, P(MV′ ∈ E) = 0",
        overlap,
        "ambiguous",
        "True unless for all neighbours one of V, V′ is a multiple of the other, or V = vaᵀ and V′ = v′aᵀ: then it is "
        "the mechanism on vectors, or on a scale. So “non-trivial” cannot mean “not constant”. The proof shows that MV "
        "≠ MV′ for the same M, which is so for vectors, too, and does not give E. Right is E = {Y: VᵀY is symmetric}.",
        _overlap,
    ),
    said(
        HELPS,
        "lemma-11",
        "Lemma 11",
        "images of two matrices",
        "MV ≠ MV′ with probability 1 if V ≠ V′.",
        "P(MV ≠ MV′) = 1",
        different,
        "holds",
        "Nothing about privacy follows: adding noise has the same property.",
        _different,
    ),
    said(
        HELPS,
        "c1",
        "Appendix C.1",
        "LoRA in full",
        "Its first step from B = 0 is the projection of a gradient, so LoRA is not private without noise.",
        "δ = 1 at every ε",
        different,
        "holds",
        "For gradients outside of the exceptions of Proposition 2, as of a softmax head.",
        lambda: replace(_trained(), printed=1.0),
    ),
)
"""Of the first paper, then of the second."""
