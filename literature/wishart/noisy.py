"""Projections with noise: M(V + E), MV + E, and what is said to be gained."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.special import betaincc, log_ndtr, ndtr
from scipy.stats import chi2

from literature.claims import Comparison
from literature.wishart.laws import (
    average,
    beta_delta,
    epsilon_at,
    moved_delta,
    moved_too_far,
    normal_delta,
    vector_delta,
)
from literature.wishart.paper import HELPS, said
from literature.wishart.vectors import DELTA, later
from ppdp.privacy import NoisyProjectionLoss

__all__ = ["CLAIMS", "accounted", "correlated", "regression_attack", "small_rank", "two_sided"]


def two_sided(epsilon: float, m: float) -> float:
    """``Φ(m/2 − ε/m) + Φ(−m/2 − ε/m)``."""
    return float(ndtr(m / 2 - epsilon / m) + ndtr(-m / 2 - epsilon / m))


def small_rank(*, epsilon: float, mu: float, d: int, r: int, s: int = 1, kappa: float | None = None) -> float:
    """Theorem 5: ``Φ(m/2 − ε/m) + Φ(−m/2 − ε/m) + s(1 − I_κ)``, ``m = √κ μ``; κ the best one if it is not given."""
    if kappa is not None:
        return two_sided(epsilon, math.sqrt(kappa) * mu) + s * float(betaincc(r / 2, (d - r) / 2, kappa))
    return min(small_rank(epsilon=epsilon, mu=mu, d=d, r=r, s=s, kappa=at) for at in np.geomspace(r / d, 0.999, 300))


def baseline(*, epsilon: float, mu: float) -> float:
    """Corollary 1: more than the bound of Theorem 5, the two-sided tail at κ = 1."""
    return two_sided(epsilon, mu)


def accounted(*, epsilon: float, mu: float, d: int, r: int, steps: int, s: int = 1) -> float:
    """Appendix F.2: ``T s (1 − I_κ)`` and the Gaussian δ at ``√(Tκ) μ``, at the best κ."""

    def at(kappa: float) -> float:
        tail = steps * s * float(betaincc(r / 2, (d - r) / 2, kappa))
        return tail + float(normal_delta(epsilon, np.array(math.sqrt(steps * kappa) * mu)))

    return float(min(at(kappa) for kappa in np.geomspace(r / d, 0.999, 300)))


def captured_energy(*, energy: float, sigma: float) -> float:
    """Lemma 16: ``‖P_Z(V − V′)‖²/σ²``."""
    return energy / sigma**2


def haar_tail(*, kappa: float, d: int, r: int, s: int = 1) -> float:
    """Lemma 17: ``s(1 − I_κ(r/2, (d − r)/2))``."""
    return s * float(betaincc(r / 2, (d - r) / 2, kappa))


def split(*, exposed: float) -> float:
    """Lemma 12: ``M_∥V₋ⱼ = MV₋ⱼ``."""
    return exposed


def fresh(*, r: int, k: int) -> float:
    """Lemma 13: given the observed columns, M_⊥ is a Wishart matrix of r − k degrees."""
    return float(r - k)


def stretch(*, d: int, r: int, k: int, beta: float) -> float:
    """Lemma 14: ``(√d + √k + t)(√k + t)/r``, ``t = √(2 ln(2/β))``."""
    t = math.sqrt(2 * math.log(2 / beta))
    return (math.sqrt(d) + math.sqrt(k) + t) * (math.sqrt(k) + t) / r


def chance(*, beta: float) -> float:
    """Lemma 14: that is exceeded with at most β."""
    return beta


def correlated(*, d: int, r: int, k: int, beta: float, delta: float, epsilon: float, moved: float) -> float:
    """The σ with which (3), ``ε = S_k ‖v_j − v′_j‖ √(2 ln(1.25/δ))/σ``, gives ε."""
    return stretch(d=d, r=r, k=k, beta=beta) * moved * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def together(*, delta: float, beta: float, residual: float = 0.0) -> float:
    """Theorems 4 and 3, Lemma 15: ``δ_res + δ_cor + β``."""
    return residual + delta + beta


def regression_attack(epsilon: float, *, d: int, r: int, angle: float, sigma: float, draws: int = 200) -> float:
    """A δ that is attained against MV + E: the first of three columns is taken off the third, seen along the second.

    Columns 1 and 2 are orthonormal, 3 is the first one, or turned by ``angle`` towards the second. Given all but the
    noise of columns 1 and 3 the difference is normal, so only the rest is drawn.
    """
    rng = np.random.default_rng(0)
    one, other = rng.standard_normal((2, draws, r))
    squares, cross = (other**2).sum(axis=1), (one * other).sum(axis=1)
    alone = np.sqrt((one**2).sum(axis=1) - cross**2 / squares)
    along, across = rng.standard_normal((2, draws, d - 2))
    second = np.column_stack([cross, squares, along * np.sqrt(squares)[:, None]]) / r
    first = along * (cross / np.sqrt(squares))[:, None] + across * alone[:, None]
    first = np.column_stack([(one**2).sum(axis=1), cross, first]) / r
    seen = second + sigma * rng.standard_normal((draws, d))
    moved = (math.cos(angle) - 1) * first + math.sin(angle) * second
    shift = (seen * moved).sum(axis=1) / (math.sqrt(2) * sigma * np.linalg.norm(seen, axis=1))
    at = epsilon / shift.mean() + shift.mean() / 2
    return float(ndtr(shift - at).mean()) - math.exp(epsilon + float(log_ndtr(-at)))


def _residual() -> Comparison:
    d, r, rho = 50, 1000, 0.99
    found = epsilon_at(DELTA, lambda epsilon: vector_delta(epsilon, d=d, r=r, rho=rho))
    words = f"d = 51, r = 1001, one observed column, v_j orthogonal to it, ρ_⊥ = {rho}, δ = 10⁻⁵, no noise."
    return Comparison("ε", later(d=d, r=r, rho=rho, delta=DELTA), found, words)


def _columns() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """M, M_∥ and three columns, of which two are observed."""
    rng = np.random.default_rng(0)
    Z, V = rng.standard_normal((6, 4)) / 2, rng.standard_normal((6, 3))
    basis = np.linalg.qr(Z.T @ V[:, :2])[0]
    return Z @ Z.T, Z @ basis @ basis.T @ Z.T, V


def _split() -> Comparison:
    M, along, V = _columns()
    words = "d = 6, r = 4, a random Z, two of three columns observed."
    norms = [float(np.linalg.norm(each @ V[:, :2])) for each in (M, along)]
    return Comparison("‖MV₋ⱼ‖", split(exposed=norms[0]), norms[1], words)


def _fresh() -> Comparison:
    M, along, _ = _columns()
    words = "d = 6, r = 4, a random Z, two of three columns observed: the rank of M_⊥."
    return Comparison("rank of M_⊥", fresh(r=4, k=2), float(np.linalg.matrix_rank(M - along)), words)


def _stretch() -> Comparison:
    d, r, beta = 200, 100, 1e-3
    bound = stretch(d=d, r=r, k=1, beta=beta)
    words = f"d = {d}, r = {r}, one observed column, x the same: bound {bound:.3g}, ‖M_∥x‖ is 1.69 in the median."
    return Comparison("probability", chance(beta=beta), moved_too_far(bound, d=d, r=r), words)


def _correlated() -> Comparison:
    d, r, beta, delta = 200, 100, 1e-3, 1e-3
    sigma = correlated(d=d, r=r, k=1, beta=beta, delta=delta, epsilon=1.0, moved=1.0)
    words = f"d = {d}, r = {r}, one observed column, v_j − v′_j along it; ε = 1, δ_cor = β = 10⁻³."
    return Comparison("δ", together(delta=delta, beta=beta), moved_delta(1.0, 1 / sigma, d=d, r=r), words)


def _one_column() -> Comparison:
    d, angle, beta, delta = 600, 0.01, 1e-3, 1e-3
    moved = 2 * math.sin(angle / 2)
    sigma = correlated(d=d, r=d, k=2, beta=beta, delta=delta, epsilon=1.0, moved=moved)
    words = (
        f"d = r = {d}: two orthonormal columns are observed, v_j lies in their span (τ = 0, no residual) and turns by "
        f"{angle}; ε = 1, δ_cor = β = 10⁻³. Attack: the first column is subtracted from v_j's, along the second."
    )
    attained = regression_attack(1.0, d=d, r=d, angle=angle, sigma=sigma)
    return Comparison("δ", together(delta=delta, beta=beta), attained, words)


MU = 1 / 1.46


def _small_rank() -> Comparison:
    words = "d = 512, r = 16, ε = 1, one column, ‖V − V′‖ = σ/1.46; the best κ."
    printed = small_rank(epsilon=1.0, mu=MU, d=512, r=16)
    ours = NoisyProjectionLoss(512, 16, mu=MU, rank_one=True).delta(1.0)
    return Comparison("δ", printed, beta_delta(1.0, MU, d=512, r=16), words, ours)


def _baseline() -> Comparison:
    words = "d = 512, r = 16, ε = 1, one column, ‖V − V′‖ = σ/1.46; the best κ."
    return Comparison("δ", baseline(epsilon=1.0, mu=MU), small_rank(epsilon=1.0, mu=MU, d=512, r=16), words)


def _energy() -> Comparison:
    rng = np.random.default_rng(0)
    Z, change, sigma = rng.standard_normal((6, 2)), rng.standard_normal((6, 3)), 0.7
    M = Z @ Z.T
    exact = float(np.trace(change.T @ M @ np.linalg.pinv(sigma**2 * M @ M) @ M @ change))
    basis = np.linalg.qr(Z)[0]
    printed = captured_energy(energy=float(np.linalg.norm(basis.T @ change) ** 2), sigma=sigma)
    words = "d = 6, r = 2, a random Z and V − V′ of three columns, σ = 0.7."
    return Comparison("variance of the loss", printed, exact, words)


def _haar() -> Comparison:
    d, r, kappa = 20, 3, 0.4
    found = average(lambda w: chi2.sf(kappa / (1 - kappa) * w, r), d - r)
    words = f"d = {d}, r = {r}, κ = {kappa}, one column: a share U/(U + W) of two χ²."
    return Comparison("probability", haar_tail(kappa=kappa, d=d, r=r), found, words)


def _accounted() -> Comparison:
    words = "T = 2, d = 512, r = 16, ε = 1, one column, ‖V − V′‖ = 0.6 σ; the best κ."
    printed = accounted(epsilon=1.0, mu=0.6, d=512, r=16, steps=2)
    ours = NoisyProjectionLoss(512, 16, mu=0.6, steps=2, rank_one=True).delta(1.0)
    return Comparison("δ", printed, beta_delta(1.0, 0.6, d=512, r=16, steps=2), words, ours)


def _frozen() -> Comparison:
    rng, mu = np.random.default_rng(0), 0.6
    Z = rng.standard_normal((512, 16))
    first = Z @ (Z.T @ rng.standard_normal((512, 20)))  # released in step 1, of whatever was projected
    found = np.linalg.svd(first, full_matrices=False)[0][:, :16]
    change = found @ rng.standard_normal(16)
    share = float(np.linalg.norm(np.linalg.qr(Z)[0].T @ change) / np.linalg.norm(change))
    words = (
        "T = 2, d = 512, r = 16, ε = 1, ‖V − V′‖ = 0.6 σ, the same Z twice. The first output, of 20 columns, shows the "
        "range of Z; the second pair differs within it."
    )
    printed = accounted(epsilon=1.0, mu=mu, d=512, r=16, steps=2)
    return Comparison("δ", printed, float(normal_delta(1.0, np.array(mu * share))), words, data={"mu": mu})


_FLAW = "Q and S depend on Z: for x in the span of the observed columns Π_S Zᵀx = Zᵀx, of norm about √r and not √k. "

CLAIMS = (
    said(
        HELPS,
        "lemma-2",
        "Lemma 2",
        "what the observed columns do not show",
        "M_⊥v_j + noise is private with the ε and δ of Theorem 1 in d − dim V₋ⱼ dimensions, with r − k and ρ_⊥.",
        "ε of Theorem 1 at (d − dim span V₋ⱼ, r − k, ρ_⊥)",
        later,
        "ambiguous",
        "As Theorem 1: it needs r − k ≤ d_⊥ + 1 and the factor |d_⊥ + 1 − r + k|/2; and residuals of equal norm.",
        _residual,
        page="fresh-projections",
    ),
    said(
        HELPS,
        "lemma-12",
        "Lemma 12",
        "what the observed columns show",
        "M = M_∥ + M_⊥, and M_⊥V₋ⱼ = 0.",
        "M_∥V₋ⱼ = MV₋ⱼ",
        split,
        "holds",
        "Exact.",
        _split,
        page="fresh-projections",
    ),
    said(
        HELPS,
        "lemma-13",
        "Lemma 13",
        "what stays secret",
        "Given the observed columns, the rest of M is a Wishart matrix of r − k degrees of freedom.",
        "rank M_⊥ = r − k",
        fresh,
        "holds",
        "Independent of them, too.",
        _fresh,
        page="fresh-projections",
    ),
    said(
        HELPS,
        "lemma-14",
        "Lemma 14",
        "how far the observed part moves",
        "Given Z₋ⱼ, ‖M_∥x‖ ≤ S_k‖x‖ with at least 1 − β.",
        "S_k = (√d + √k + t)(√k + t)/r, t = √(2 ln(2/β))",
        chance,
        "ambiguous",
        _FLAW + "Right for x orthogonal to that span, or k = r. For all x: (√d + √r + t)((√r + t)‖x_∥‖ + (√k + "
        "t)‖x_⊥‖)/r, with at least 1 − 3e^(−t²/2).",
        _stretch,
        page="fresh-projections",
    ),
    said(
        HELPS,
        "lemma-15",
        "Lemma 15",
        "noise on the observed part",
        "Given M_∥, as its proof has it: M_∥v_j + E is (ε_cor, δ_cor + β)-DP.",
        "ε_cor = S_k ‖v_j − v′_j‖ √(2 ln(1.25/δ_cor))/σ",
        together,
        "ambiguous",
        _FLAW,
        _correlated,
        page="fresh-projections",
    ),
    said(
        HELPS,
        "thm-4",
        "Theorem 4",
        "MV + E, one column changes",
        "(M1) is (ε_res + ε_cor, δ_res + δ_cor + β)-DP under Definition 4.",
        "(ε_res + S_k ‖v_j − v′_j‖ √(2 ln(1.25/δ_cor))/σ, δ_res + δ_cor + β)",
        together,
        "ambiguous",
        _FLAW + "Exact for (Z, MV + E) and one column: the Gaussian δ, averaged over ‖M(v − v′)‖; never better than "
        "noise on V.",
        _one_column,
        page="fresh-projections",
    ),
    said(
        HELPS,
        "thm-5",
        "Theorem 5",
        "M(V + E)",
        "For every κ in (0, 1), (M2) is (ε, δ)-DP.",
        "δ = Φ(m/2 − ε/m) + Φ(−m/2 − ε/m) + s(1 − I_κ), m = √κ ‖V − V′‖/σ",
        small_rank,
        "loose",
        "True, if Z is drawn anew, secret before, and never used again. One column: exact is the Gaussian δ at √B ‖V − "
        "V′‖/σ, averaged over B ~ Beta(r/2, (d − r)/2). At (1, 10⁻⁵), d = 512, r = 16 this needs 0.76 for σ/‖V − V′‖ "
        "where Theorem 5 needs 1.46, with a one-sided tail 1.23, and noise on V 3.73.",
        _small_rank,
        page="fresh-projections",
    ),
    said(
        HELPS,
        "lemma-16",
        "Lemma 16",
        "the loss given Z",
        "Given Z the loss of (M2) is normal with mean half its variance.",
        "‖P_Z(V − V′)‖²/σ²",
        captured_energy,
        "holds",
        "Exact.",
        _energy,
        page="fresh-projections",
    ),
    said(
        HELPS,
        "lemma-17",
        "Lemma 17",
        "what a random subspace captures",
        "P(‖P_Z(V − V′)‖² ≥ κ‖V − V′‖²) for V − V′ of rank s is at most what is below.",
        "s(1 − I_κ(r/2, (d − r)/2))",
        haar_tail,
        "holds",
        "Attained for s = 1. For s > 1 the factor s can be replaced by a convex majorant.",
        _haar,
        page="fresh-projections",
    ),
    said(
        HELPS,
        "cor-1",
        "Corollary 1",
        "M(V + E) against noise on V",
        "For small r/d there is a κ for which the δ of Theorem 5 is below that of the Gaussian mechanism, (10).",
        "Φ(μ/2 − ε/μ) + Φ(−μ/2 − ε/μ), μ = ‖V − V′‖/σ",
        baseline,
        "loose",
        "Also against the exact Gaussian δ. The exact δ of (M2) is never above it, for any r ≤ d.",
        _baseline,
        page="fresh-projections",
    ),
    said(
        HELPS,
        "f2",
        "Appendix F.2",
        "M(V + E) in T steps",
        "Z is drawn anew in each step: T failures, and a Gaussian accountant with sensitivity √κ‖V − V′‖.",
        "δ = T s(1 − I_κ) + δ_Gauss(ε; √(Tκ) ‖V − V′‖/σ)",
        accounted,
        "loose",
        "Exact for one column: the Gaussian δ at the root of B₁ + … + B_T, averaged.",
        _accounted,
        page="fresh-projections",
    ),
    said(
        HELPS,
        "section-4.2",
        "Section 4.2.3 with Appendix E",
        "M(V + E) as a proxy for LoRA-FA",
        "Read so that Z stays what it is in all steps, as A does in LoRA-FA; accounted for as in Appendix F.2.",
        "δ = T s(1 − I_κ) + δ_Gauss(ε; √(Tκ) ‖V − V′‖/σ)",
        accounted,
        "ambiguous",
        "With a Z that is used again, known before, or drawn from a known seed nothing is gained over noise on V: the "
        "exact account of fresh Z says (1, 10⁻⁵) for μ = 0.989, and the second step alone reaches 0.123. Appendix F.2 "
        "draws anew. LoRA-FA with noise on clipped gradients of B has a right account of its own (Algorithm 2).",
        _frozen,
        page="fresh-projections",
    ),
)
_THEOREM_4 = next(found for found in CLAIMS if found.id == "helps-thm-4")
_THEOREM_3 = {"id": "helps-thm-3", "place": "Theorem 3", "subject": "MV + E, columns change in turn"}
_CHAIN = (
    "(M1) is private under a chain of changes of one column each, by group privacy over Theorem 4. One change here."
)
CLAIMS += (replace(_THEOREM_4, statement=_CHAIN, **_THEOREM_3),)  # type: ignore[arg-type]
"""All of the second paper."""
