"""Vectors of norm 1 under ZZᵀ: Theorem 1 of both papers, alignment, and gradient descent with one projection."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.special import gammainc, ndtr
from scipy.stats import chi2, t

from literature.claims import Comparison
from literature.wishart.laws import average, epsilon_at, support, vector_delta
from literature.wishart.paper import BEYOND, HELPS, said
from ppdp.privacy import WishartLoss

__all__ = ["CLAIMS", "both_sides", "gradient_delta", "later", "not_grown", "ratio_tail"]

DELTA = 1e-5


def failure(*, d: int, r: int, rho: float, t: float, eta: float, R: float) -> float:
    """Theorem 1: ``1 − Φ̄((t(1 − ρ) − ρη)/√((1 − ρ²)(t + η))) P(χ²_r > t + η) + 2 exp(−c(√R − √d − √r)²)``, c = 1/2."""
    room = (t * (1 - rho) - rho * eta) / math.sqrt((1 - rho**2) * (t + eta))
    spectral = 2 * math.exp(-((math.sqrt(R) - math.sqrt(d) - math.sqrt(r)) ** 2) / 2)
    return 1 - float(ndtr(-room) * chi2.sf(t + eta, r)) + spectral


def earlier(*, d: int, r: int, rho: float, t: float, R: float) -> float:
    """Theorem 1: ``|d − r − 1|/2 log(ρ + √(1 − ρ²) √(R²/t² − 1)) + R³ √(2(1 − ρ))/(2t²)``."""
    ratio = rho + math.sqrt((1 - rho**2) * (R**2 / t**2 - 1))
    return abs(d - r - 1) / 2 * math.log(ratio) + R**3 * math.sqrt(2 * (1 - rho)) / (2 * t**2)


def later(*, d: int, r: int, rho: float, delta: float, coefficient: float | None = None) -> float:
    """Theorem 1: ``(d + r − 1)/2 ln(ρ + K) + (1 − ρ + K) χ²_{d+r−1}(1 − δ′)/(2(ρ − K))``, or with that coefficient."""
    slack = (delta - support(r, rho)) / 3
    K = math.sqrt((1 - rho**2) / r) * float(t.isf(slack, r))
    factor = (d + r - 1) / 2 if coefficient is None else coefficient
    return factor * math.log(rho + K) + (1 - rho + K) * float(chi2.isf(slack, d + r - 1)) / (2 * (rho - K))


def both_sides(*, d: int, r: int, rho: float, delta: float) -> float:
    """Theorem 1 with ``|d + 1 − r|/2`` and the larger of ``ln(ρ + K)`` and ``−ln(ρ − K)``: true for every rank."""
    slack = (delta - support(r, rho)) / 3
    K = math.sqrt((1 - rho**2) / r) * float(t.isf(slack, r))
    steep = max(math.log(rho + K), -math.log(rho - K))
    return abs(d + 1 - r) / 2 * steep + (1 - rho + K) * float(chi2.isf(slack, d + r - 1)) / (2 * (rho - K))


def absolute(*, r: int) -> float:
    """Corollary 1: any ``δ > 2e^(−cr)``; c = 1/2."""
    return 2 * math.exp(-r / 2)


def alignment(*, n: int, bound: float, floor: float) -> float:
    """``1 − ρ ≤ 8L²/(c₀²n²)``."""
    return 8 * bound**2 / (floor * n) ** 2


def falls(*, d: int, small: int, large: int, rho: float) -> float:
    """The larger rank costs at most what the smaller one does."""
    assert small < large
    return epsilon_at(DELTA, partial(_exact, d, small, rho))


def gained(*, rho: float, gamma: float, tau: float) -> float:
    """Lemma 4: ``1 − ρ − s``, ``s = ((1 − ρ)γ² − 4γτ)/(1 + γ² + 2γτ)``, ``τ = √(2 ln(8/δ)/d)``."""
    return 1 - rho - ((1 - rho) * gamma**2 - 4 * gamma * tau) / (1 + gamma**2 + 2 * gamma * tau)


def grows(*, delta: float) -> float:
    """Lemma 4: with at least 1 − δ the cosine grows if ``γ > (1 − ρ)/(1 + ρ) τ``."""
    return delta


def descent(*, rho: float, r: int, C: float = 1.0) -> float:
    """Theorem 3: ``C r √(1 − ρ)/ρ``; and ``δ ≥ exp(−r/16)``."""
    return C * r * math.sqrt(1 - rho) / rho


def rate(*, smoothness: float, away: float, steps: int) -> float:
    """Theorem 3: ``β‖w₀ − w*‖/(2T)``, with constant 1."""
    return smoothness * away / (2 * steps)


def any_delta(*, delta: float) -> float:
    """Some δ below 1."""
    return delta


def flipped(*, r: int, rho: float) -> float:
    """Lemma 8: ``P(a ≤ 0) = P(t_r ≤ −ρ√r/√(1 − ρ²))``."""
    return float(t.cdf(-rho * math.sqrt(r / (1 - rho**2)), r))


def gradient_delta(epsilon: float, *, ratio: float, d: int, r: int) -> float:
    """The δ at ε of Mg and ratio·Mg, ``ratio`` > 1: two gamma laws of ‖y‖²/v·y, of d + r − 1 degrees."""
    k = (d + r - 1) / 2
    at = (k * math.log(ratio) - epsilon) / (1 - 1 / ratio)
    return float(gammainc(k, at) - math.exp(epsilon) * gammainc(k, at / ratio)) if at > 0 else 0.0


def ratio_tail(*, r: int, rho: float) -> float:
    """``E_{x ~ χ²_r} Φ(−ρ√x/√(1 − ρ²))`` by quadrature over x."""
    return average(lambda x: ndtr(-rho * np.sqrt(x / (1 - rho**2))), r)


def _exact(d: int, r: int, rho: float, epsilon: float) -> float:
    return vector_delta(epsilon, d=d, r=r, rho=rho)


def _earlier() -> Comparison:
    d, r, rho, at, eta = 200, 200, 1 - 1e-8, 100.0, 0.01
    R = (math.sqrt(d) + math.sqrt(r) + 5) ** 2
    delta = failure(d=d, r=r, rho=rho, t=at, eta=eta, R=R)
    found = epsilon_at(delta, partial(_exact, d, r, rho))
    words = f"d = r = {d}, 1 − ρ = 10⁻⁸, t = {at:g}, η = {eta}, √R = √d + √r + 5, so that δ_ρ = {1e6 * delta:.2g}·10⁻⁶."
    ours = WishartLoss(d, r, rho).epsilon(delta)
    return Comparison("ε at δ_ρ", earlier(d=d, r=r, rho=rho, t=at, R=R), found, words, ours)


def _falls() -> Comparison:
    d, rho = 200, 0.999
    words = f"d = {d}, ρ = {rho}, δ = 10⁻⁵: at r = 20 (printed), and at r = 200 (attained)."
    printed = falls(d=d, small=20, large=200, rho=rho)
    ours = WishartLoss(d, 200, rho).epsilon(DELTA)
    return Comparison("ε", printed, epsilon_at(DELTA, partial(_exact, d, 200, rho)), words, ours)


def _absolute() -> Comparison:
    words = "d = r = 1000, ρ = 0.05: the outputs that v′ cannot have."
    ours = WishartLoss(1000, 1000, 0.05).delta(1e6)
    return Comparison("δ, at every ε", absolute(r=1000), support(1000, 0.05), words, ours)


def _alignment() -> Comparison:
    n, floor = 100, 0.5
    angle = math.asin(1 / (n * floor))
    one, other = (floor / math.cos(angle) * np.array([math.cos(angle), sign * math.sin(angle)]) for sign in (1, -1))
    cosine = float(one @ other) / float(one @ one)
    words = f"L = 1, n = {n}, c₀ = {floor}: two means that are 2L/n apart, symmetrical about a vector of norm c₀/cos."
    return Comparison("1 − ρ", alignment(n=n, bound=1.0, floor=floor), 1 - cosine, words)


def _later() -> Comparison:
    d, r, rho = 50, 1000, 0.99
    found = epsilon_at(DELTA, partial(_exact, d, r, rho))
    words = f"d = {d}, r = {r}, ρ = {rho}, δ = 10⁻⁵."
    ours = WishartLoss(d, r, rho).epsilon(DELTA)
    return Comparison("ε", later(d=d, r=r, rho=rho, delta=DELTA), found, words, ours)


def _ratio() -> Comparison:
    r, rho = 6, 0.3
    words = f"r = {r}, ρ = {rho}: P(a ≤ 0) under the law of the lemma, and over χ²_r, from the proof of Theorem 1."
    return Comparison("probability", flipped(r=r, rho=rho), ratio_tail(r=r, rho=rho), words)


def _gained() -> Comparison:
    rho, gamma, tau = 0.5, 3.0, 0.1
    worst = 0.0
    for a in np.linspace(-tau, tau, 9):
        for b in np.linspace(-tau, tau, 9):
            lengths = math.sqrt((1 + gamma**2 + 2 * gamma * a) * (1 + gamma**2 + 2 * gamma * b))
            worst = max(worst, 1 - (rho + gamma**2 + gamma * (a + b)) / lengths)
    words = f"ρ = {rho}, γ = {gamma:g}, τ = {tau}: the worst ⟨v, u⟩ and ⟨v′, u⟩ in [−τ, τ]."
    return Comparison("1 − cosine", gained(rho=rho, gamma=gamma, tau=tau), worst, words)


def not_grown(gamma: float, *, d: int = 1000, rho: float = 0.5, draws: int = 4000) -> float:
    """Share of draws of z in which noise of length γ leaves the cosine at ρ or below."""
    u = np.random.default_rng(0).standard_normal((draws, 3))
    rest = np.random.default_rng(1).chisquare(d - 2, draws)
    u = u[:, :2] / np.sqrt((u[:, :2] ** 2).sum(axis=1) + rest)[:, None]
    one, other = np.array([1.0, 0.0]), np.array([rho, math.sqrt(1 - rho**2)])
    a, b = u @ one, u @ other
    lengths = np.sqrt((1 + gamma**2 + 2 * gamma * a) * (1 + gamma**2 + 2 * gamma * b))
    return float(((rho + gamma**2 + gamma * (a + b)) / lengths <= rho).mean())


def _grows() -> Comparison:
    d, rho, delta, draws = 1000, 0.5, 0.05, 4000
    gamma = 1.01 * (1 - rho) / (1 + rho) * math.sqrt(2 / d * math.log(8 / delta))
    words = f"d = {d}, ρ = {rho}, δ = {delta}, γ 1 % above the condition; {draws} draws of z."
    found = not_grown(gamma, d=d, rho=rho, draws=draws)
    return Comparison("probability that the cosine does not grow", grows(delta=delta), found, words)


def _descent() -> Comparison:
    d, r, ratio = 750, 1000, 1.1
    words = f"T = 1, d = {d}, r = {r}: parallel gradients, so ρ = 1 and ε = 0, whose norms are as 1 to {ratio}."
    return Comparison("δ at ε = 0", math.exp(-r / 16), gradient_delta(0.0, ratio=ratio, d=d, r=r), words)


def _any_descent() -> Comparison:
    words = "T = 1, d = 750, r = 1000, ε = 10: parallel gradients whose norms are as 1 to 2."
    return Comparison("δ", any_delta(delta=0.99), gradient_delta(10.0, ratio=2.0, d=750, r=1000), words)


def _rate() -> Comparison:
    away, smoothness = 1e3, 1.0
    after = away * (1 - 1 / 2)  # M is a number, the step is η = 1/(2βM)
    words = (
        "d = 1, L(w) = w²/2, T = 1, w₀ = 1000, the step of the proof. At other w₀ the ratio is as large as one likes."
    )
    data = {"away": away, "smoothness": smoothness}
    printed = rate(smoothness=smoothness, away=away, steps=1)
    return Comparison("L(w_T) − L*", printed, smoothness * after**2 / 2, words, data=data)


CLAIMS = (
    said(
        BEYOND,
        "thm-1",
        "Theorem 1",
        "vectors of norm 1",
        "If ρ > 0, then for all R > (√d + √r)², t > 0, η > 0 the mechanism Mv is (ε_ρ, δ_ρ)-DP.",
        "ε_ρ = |d − r − 1|/2 log(ρ + √(1 − ρ²) √(R²/t² − 1)) + R³ √(2(1 − ρ))/(2t²)",
        earlier,
        "loose",
        "True in all that was tried, with c = 1/2, and of no use: the best t, η and R give an ε that is 100 times to a "
        "million times the exact one. The proof has |d + 1 − r|/2, and no proof for the printed factor is known.",
        _earlier,
        page="wishart",
    ),
    said(
        BEYOND,
        "rank",
        "Section 3.1",
        "which rank is private",
        "Increasing r improves both ε_ρ and δ_ρ.",
        "ε(r₂) ≤ ε(r₁) for r₂ ≥ r₁",
        falls,
        "false",
        "At the same δ the exact ε falls with r while r is small, and then grows like √r: Mv is v with less noise. The "
        "later version says so.",
        _falls,
        page="wishart",
    ),
    said(
        BEYOND,
        "cor-1",
        "Corollary 1",
        "one formula for ε",
        "For r ≤ d and δ > 2e^(−cr), c an absolute constant, Mv is (ε_ρ, δ)-DP with an ε_ρ that has no δ in it.",
        "δ > 2e^(−cr)",
        absolute,
        "false",
        "With probability P(t_r < −ρ√r/√(1 − ρ²)), about (1 − ρ²)^(r/2), the output is one that v′ cannot have, and no "
        "ε helps. Whatever c is, that is more than 2e^(−cr) for a small ρ. Here c = 1/2.",
        _absolute,
        page="wishart",
    ),
    said(
        BEYOND,
        "rho",
        "Section 3.1, ρ and n",
        "how ρ depends on n",
        "f is a mean of vectors of norm at most L, of norm at least c₀, normalised.",
        "ρ ≥ 1 − 8L²/(c₀²n²)",
        alignment,
        "loose",
        "Sharp is 1 − ρ ≤ D²/(2c₀²) for vectors that are D apart: 2L²/(c₀²n²).",
        _alignment,
        page="wishart",
    ),
    said(
        BEYOND,
        "lemma-4-gain",
        "Lemma 4, first part",
        "noise for alignment",
        "With at least 1 − δ the cosine of v + γz/‖z‖ and v′ + γz/‖z‖ is at least ρ + s.",
        "s = ((1 − ρ)γ² − 4γτ)/(1 + γ² + 2γτ), τ = √(2 ln(8/δ)/d)",
        gained,
        "loose",
        "The two are no longer of the same norm, so Theorem 1 does not apply to them.",
        _gained,
        page="wishart",
    ),
    said(
        BEYOND,
        "lemma-4",
        "Lemma 4",
        "noise for alignment",
        "If γ is larger than below, then with at least 1 − δ the cosine is larger than ρ.",
        "γ > (1 − ρ)/(1 + ρ) τ",
        grows,
        "false",
        "It has to be γ > 2τ(1 + ρ)/(1 − ρ); s > 0 needs γ > 4τ/(1 − ρ). At the printed condition s is negative.",
        _grows,
        page="wishart",
    ),
    said(
        BEYOND,
        "thm-3",
        "Theorem 3, privacy",
        "gradient descent with one projection (RP-GD)",
        "M is drawn once, w_{t+1} = w_t − ηM∇L(w_t), d ≤ 3r/4, r ≥ 16 log(1/δ), ρ the alignment of Σ∇L(w_t). It is "
        "(ε_ρ, δ)-DP.",
        "ε_ρ = C r √(1 − ρ)/ρ",
        descent,
        "false",
        "Theorem 1 is about vectors of norm 1, but norms of gradients differ, and show. After the first step gradients "
        "depend on M, so the sum is no query. DP-GD is better wherever this can be repaired.",
        _descent,
        page="wishart",
    ),
    said(
        BEYOND,
        "thm-3-rate",
        "Theorem 3, convergence",
        "gradient descent with one projection (RP-GD)",
        "L is convex and β-smooth. With at least 1 − 2δ the excess is of the order below.",
        "O(β‖w₀ − w*‖/(2T))",
        rate,
        "misprint",
        "‖w₀ − w*‖², as some lines of the proof have it. The step there depends on λ_max(M).",
        _rate,
        page="wishart",
    ),
    said(
        HELPS,
        "thm-1",
        "Theorem 1",
        "vectors of norm 1",
        "If ρ > K, then Mv is (ε, δ)-DP with δ = E Φ(−ρ√(χ²_r)/√(1 − ρ²)) + 3δ′ and the ε below, for every rank.",
        "ε = (d + r − 1)/2 ln(ρ + K) + (1 − ρ + K) χ²_{d+r−1}(1 − δ′)/(2(ρ − K)), K = √((1 − ρ²)/r) t_r(1 − δ′)",
        later,
        "ambiguous",
        "The proof has the factor (d + 1 − r)/2. With |d + 1 − r|/2 it is true for r ≤ d + 1, and exceeded beyond "
        "(24.56 here), where log a has to be bounded from below. Lemma 9 may assume r ≤ d; then only the factor is "
        "wrong, and it matters if ρ + K < 1. True for every rank: |d + 1 − r|/2 times the larger of "
        "ln(ρ + K) and −ln(ρ − K).",
        _later,
        page="wishart",
    ),
    said(
        HELPS,
        "lemma-8",
        "Lemma 8",
        "the law of the output",
        "a = ρ + √((1 − ρ²)/r) t_r and b ~ χ²_{d+r−1}, independent.",
        "P(a ≤ 0) = P(t_r ≤ −ρ√r/√(1 − ρ²))",
        flipped,
        "holds",
        "For every r ≥ 1. It gives the exact δ(ε) as one integral.",
        _ratio,
        page="wishart",
    ),
    said(
        HELPS,
        "b2",
        "Appendix B.2",
        "gradient descent with one projection (RP-GD)",
        "M is drawn once; w_{t+1} = w_t − ηM∇L(w_t) is private.",
        "(ε, δ)-DP for some δ < 1",
        any_delta,
        "false",
        "As Theorem 3 of the earlier version. It is private if gradients are normalised, bounded from below behind a "
        "gate, and M is drawn anew in each step; DP-GD is better.",
        _any_descent,
        page="wishart",
    ),
)
CLAIMS += (
    replace(CLAIMS[5], id="helps-lemma-10", paper=HELPS, place="Lemma 10", status="ambiguous", reconstructed=True),
)
"""Of the first paper, then of the second."""
