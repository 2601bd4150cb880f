"""Lemma 4.2, Proposition 4.4 and DP-SignRP-RR: how many signs can differ, and the privacy that is derived from it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import binom

from literature.claims import Claim, Comparison
from literature.projections.laws import angle, composed_delta, joint_delta
from literature.projections.paper import PAPER

__all__ = ["CLAIMS", "count", "flat_pair", "independent", "normal_share", "null_space_pair", "two_entries"]

Floats = NDArray[np.float64]
DELTA = 1e-6


def independent(*, p: int, r: float) -> float:
    """Lemma 4.2, (5), (11), (21): ``F = ∫₀^∞ 2p [2Φ(t) − 1]^{p−1} [2Φ(rt) − 1] φ(t) dt``."""

    def density(t: float) -> float:
        normal = math.exp(-(t**2) / 2) / math.sqrt(2 * math.pi)
        return float(2 * p * (2 * ndtr(t) - 1) ** (p - 1) * (2 * ndtr(r * t) - 1) * normal)

    return float(quad(density, 0, 12, points=[2.0, 4.0], limit=200, epsabs=1e-13)[0])


def normal_share(*, beta: float, norm: float) -> float:
    """(10): ``2Φ(β/‖u‖) − 1``."""
    return float(2 * ndtr(beta / norm) - 1)


def count(share: float, k: int, delta: float) -> float:
    """Proposition 4.4: ``N₊ = min(k, Fk + (log(1/δ) + √(log²(1/δ) + 8Fk log(1/δ)))/2)``."""
    log = math.log(1 / delta)
    return min(k, share * k + (log + math.sqrt(log**2 + 8 * share * k * log)) / 2)


def target(*, delta: float) -> float:
    """Algorithm 3, Proposition 4.4: the δ that N₊ was made for."""
    return delta


def l1_change(*, beta: float, largest: float) -> float:
    """Appendix E.2: ``|wᵀ(u − u′)| ≤ β max_i |w_i|`` for ``‖u − u′‖₁ ≤ β``."""
    return beta * largest


def two_entries(r: float) -> float:
    """How often ``β max |w_i| ≥ |wᵀu|`` if p = 2 and both entries of u are equal, w normal; 1/√2 <= r < √2.

    The entries of w have different signs half of the time: their difference over √2 is below the larger one. Else
    their sum over √2 is below r times the larger one if their ratio is at most r√2 − 1.
    """
    return 0.5 + 2 / math.pi * math.atan(r * math.sqrt(2) - 1)


def flat_pair(p: int, beta: float) -> tuple[Floats, Floats]:
    """Records (1/2, 1/2 ∓ β/2, 0, …, 0)."""
    left, right = np.zeros((1, p)), np.zeros((1, p))
    left[0, :2], right[0, :2] = (0.5, 0.5 - beta / 2), (0.5, 0.5 + beta / 2)
    return left, right


def null_space_pair(W: Floats, beta: float) -> tuple[Floats, Floats]:
    """Two records inside the box, one coordinate β apart, of which all signs under W differ."""
    p = len(W)
    basis = np.linalg.qr(W)[0]
    start = np.sign(np.random.default_rng(1).standard_normal(p))
    for _ in range(30):  # nearly all entries ±1: projected on the null space, clipped, again
        start = np.clip(start - basis @ (basis.T @ start), -0.9, 0.9) * 1.02
    u = start - basis @ (basis.T @ start)
    u *= 0.9 / np.abs(u).max()
    column = int(np.abs(W).min(axis=1).argmax())
    step = np.zeros(p)
    step[column] = beta / 2
    return (u - step)[None], (u + step)[None]


def _two_entries_of(r: float, words: str) -> Comparison:
    u = np.full((1, 2), 0.5)
    return Comparison(
        "probability",
        independent(p=2, r=r),
        two_entries(r),
        words,
        data={"u": u, "beta": r * float(np.linalg.norm(u))},
    )


def _lemma() -> Comparison:
    return _two_entries_of(0.9, "p = 2, r = 0.9; Y = (X₁ + X₂)/(r√2). By angles in the plane, exactly.")


def _proposition_share() -> Comparison:
    return _two_entries_of(0.9, "p = 2, u = (1/2, 1/2), β = 0.9‖u‖. By angles in the plane, exactly.")


def _proposition() -> Comparison:
    k, r = 4096, 0.9
    allowed = count(independent(p=2, r=r), k, DELTA)
    return Comparison(
        "probability",
        target(delta=DELTA),
        float(binom.sf(math.floor(allowed), k, two_entries(r))),
        f"p = 2, u = (1/2, 1/2), β = 0.9‖u‖, k = {k}: N₊ = {allowed:.0f}; {k * two_entries(r):.0f} signs on average "
        "can change.",
        data={"u": np.full((1, 2), 0.5), "beta": r * math.sqrt(0.5), "k": k},
    )


def _l1() -> Comparison:
    w = np.array([0.3, -1.2, 0.7, 0.1])
    left, right = np.array([[0.5, 0.5, 0.0, 0.0]]), np.array([[0.5, -0.5, 0.0, 0.0]])
    return Comparison(
        "change of wᵀu",
        l1_change(beta=1.0, largest=1.2),
        float(abs(w @ (left - right)[0])),
        f"w = {tuple(w.tolist())}; all of the change, 1, is in the second coordinate.",
        data={"left": left, "right": right, "beta": 1.0},
    )


def _gaussian() -> Comparison:
    k, p, beta, norm, epsilon = 256, 784, 1.0, 9.0, 10.0
    height = math.sqrt(norm**2 - beta**2 / 4) / math.sqrt(p - 1)
    left, right = np.full((1, p), height), np.full((1, p), height)
    left[0, 0], right[0, 0] = beta / 2, -beta / 2
    allowed = count(independent(p=p, r=beta / norm), k, DELTA)
    found = angle(left[0], right[0])
    return Comparison(
        "δ that is needed",
        target(delta=DELTA),
        joint_delta(k, found, epsilon / allowed, epsilon),
        f"p = {p}, k = {k}, β = 1, ε = {epsilon:g}, m = {norm:g}: N₊ = {allowed:.4g}. Two records of norm m at the "
        f"largest angle; each sign differs with probability {found:.4f}, {k * found:.3g} on average.",
        data={"left": left, "right": right, "beta": beta},
    )


def _given() -> Comparison:
    k, p, beta, norm, epsilon = 64, 784, 0.1, 5.0, 20.0
    W = np.random.default_rng(0).standard_normal((p, k))
    left, right = null_space_pair(W, beta)
    differ = int(((left @ W > 0) != (right @ W > 0)).sum())
    allowed = count(independent(p=p, r=beta / norm), k, DELTA)
    return Comparison(
        "δ that is needed, given W",
        target(delta=DELTA),
        composed_delta(differ, epsilon / allowed, epsilon),
        f"p = {p}, k = {k}, β = {beta}, ε = {epsilon:g}, m = {norm:g}: N₊ = {allowed:.4g}. u is orthogonal to all "
        f"columns of the W that was drawn, of norm {np.linalg.norm(left):.3g}; moved by ±β/2 along one axis, "
        f"{differ} of {k} signs differ.",
        data={"left": left, "right": right, "beta": beta, "W": W, "eta": epsilon / allowed, "epsilon": epsilon},
    )


def _rademacher(epsilon: float) -> tuple[float, float]:
    beta, k = 0.01, 256
    left, _ = flat_pair(784, beta)
    allowed = count(normal_share(beta=beta, norm=float(np.linalg.norm(left))), k, DELTA)
    return allowed, joint_delta(k, 0.5, epsilon / allowed, epsilon)


def _concentrated() -> Comparison:
    beta = 0.01
    left, right = flat_pair(784, beta)
    signs = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    return Comparison(
        "probability",
        normal_share(beta=beta, norm=float(np.linalg.norm(left))),
        float((np.abs(signs @ left[0, :2]) <= beta).mean()),
        f"p = 784, β = {beta}: u = (0.5, {left[0, 1]:g}, 0, …, 0). wᵀu is ±β/2 half of the time.",
        data={"left": left, "right": right, "beta": beta},
    )


def _normal_count() -> Comparison:
    left, right = flat_pair(784, 0.01)
    (allowed, attained), ten = _rademacher(1.0), _rademacher(10.0)[1]
    return Comparison(
        "δ that is needed, W drawn afresh",
        target(delta=DELTA),
        attained,
        f"p = 784, k = 256, β = 0.01, ε = 1: u = (0.5, {left[0, 1]:g}, 0, …, 0), u′ = (0.5, {right[0, 1]:g}, 0, …, 0); "
        f"N₊ = {allowed:.3g}. Each sign differs with probability 1/2, whatever β and p. At ε = 10 it is {ten:.2g}.",
        data={"left": left, "right": right, "beta": 0.01},
    )


_PAGE = "random-projection"
_FALSE_SHARE = (
    "The events |X_i| < |Y| share Y, so their probabilities do not multiply, and independence of Y from every X_i is "
    "not the worst case: in Proposition 4.4 it cannot even be had, as the squares of the correlations add up to 1. "
)

CLAIMS = (
    Claim(
        "sign-lemma-4.2",
        PAPER,
        "Lemma 4.2 (Appendix E.1)",
        "the largest of p normal numbers against another",
        "X₁, …, X_p are independent normal numbers, Y a normal number, jointly normal, r = σ_x/σ_y ≤ 1: max |X_i| > "
        "|Y| has at most the probability F of independent numbers.",
        "F = ∫₀^∞ 2p [2Φ(t) − 1]^{p−1} [2Φ(rt) − 1] φ(t) dt",
        independent,
        "false",
        _FALSE_SHARE + "For p = 50, r = 0.7 a flat record has 0.9147 where F is 0.9086 (two million draws, 30 standard "
        "errors); for r ≤ 0.3 no case is known. Privacy needs less: that the signs of two fixed records differ, "
        "which has probability angle/π ≤ (2/π) sin⁻¹(r/2) ≤ F.",
        _lemma,
        _PAGE,
    ),
    Claim(
        "sign-eq-21",
        PAPER,
        "Proposition 4.4, (5), (11), (21)",
        "how often a sign can change",
        "Gaussian w, β ≤ ‖u‖: some neighbour of u has another sign with probability at most F.",
        "Pr(β max_i |w_i| ≥ |wᵀu|) ≤ F",
        independent,
        "false",
        _FALSE_SHARE + "Figure 8 has a random u of many small entries, where the two are close.",
        _proposition_share,
        _PAGE,
    ),
    Claim(
        "sign-prop-4.4",
        PAPER,
        "Proposition 4.4, N₊",
        "how many signs can change",
        "With probability 1 − δ over Gaussian W at most N₊ signs of u can be changed by any neighbour.",
        "N₊ = Fk + (log(1/δ) + √(log²(1/δ) + 8Fk log(1/δ)))/2",
        target,
        "false",
        "By (21), where k is large; below about 3,000 Chernoff's bound covers the difference at p = 2. True for one "
        "neighbour that was fixed before W was drawn, see Algorithm 3.",
        _proposition,
        _PAGE,
    ),
    Claim(
        "sign-prop-4.4-l1",
        PAPER,
        "Appendix E.2",
        "changes of several coordinates",
        "What is said of one coordinate holds for ‖u − u′‖₁ ≤ β.",
        "|wᵀ(u − u′)| ≤ β max_i |w_i|",
        l1_change,
        "holds",
        "For dense W. Behind OPORP the number of signs that change is no longer one, see Section 4.3.",
        _l1,
        _PAGE,
    ),
    Claim(
        "sign-alg-3",
        PAPER,
        "Algorithm 3",
        "DP-SignRP-RR with Gaussian W",
        "Signs are flipped with probability 1/(e^{ε/N₊} + 1); all norms are at least m ≥ β. The result is (ε, δ)-DP.",
        "(ε, δ)",
        target,
        "loose",
        "True, though not by its proof, for records that were fixed before W was drawn, δ over W and flips together: "
        "signs differ independently with probability q = angle/π ≤ F, and δ is exactly Σ Bin(k, q)(s) δ_s(ε), δ_s "
        "that of s flips. N₊ and basic composition waste most of it. m must be public and enforced.",
        _gaussian,
        _PAGE,
    ),
    Claim(
        "sign-alg-3-given-w",
        PAPER,
        "Algorithm 3, W public",
        "DP-SignRP-RR given W",
        "The same. Read here: given the W that was published, for all neighbours.",
        "(ε, δ)",
        target,
        "ambiguous",
        "δ covers the draw of W. Records may be chosen, or arrive, after W is known, and then all signs can differ: "
        "with p > k, no data-independent N₊ below k is true for a dense W. Jointly over W the same pair needs no δ "
        "that could be noticed.",
        _given,
        _PAGE,
    ),
    Claim(
        "sign-eq-10",
        PAPER,
        "Equation (10)",
        "how often a sign can change, Rademacher w",
        "“Accurate unless p is very small”.",
        "Pr(β ≥ |wᵀu|) ≈ 2Φ(β/‖u‖) − 1",
        normal_share,
        "false",
        "For every p, if u has a few large entries: p is not what the central limit theorem asks for. The simulation "
        "(Figure 8) has entries of one size.",
        _concentrated,
        _PAGE,
    ),
    Claim(
        "sign-alg-3-rademacher",
        PAPER,
        "Algorithm 3 with (10), Appendix B.2",
        "DP-SignRP-RR with Rademacher W",
        "Rademacher W with (10) for F leads to a smaller N₊, hence to fewer flips.",
        "(ε, δ)",
        target,
        "false",
        "The probability that a sign differs does not go to 0 with β/‖u‖, so no bound of this form is true without "
        "more being known of u. True: N₊ = k, then for every W. ppdp takes no N₊ from (10).",
        _normal_count,
        _PAGE,
    ),
)
