"""Table 1, Theorems 13 and 14, Lemma 3: noisy gradient descent on all rows and on samples."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from literature.claims import Claim, Comparison
from literature.divergence import Mixture, gaussian_divergence, renyi_divergence
from literature.preprocessing.paper import PAPER
from ppdp.core.adjacency import Adjacency
from ppdp.core.distance import Distance
from ppdp.privacy.renyi import gaussian_curve

__all__ = ["CLAIMS", "descent_rdp", "descent_smooth", "lemma_3", "sampled_rdp", "sampled_smooth", "theorem_13"]

Floats = NDArray[np.float64]


def theorem_13(*, alpha: float, epsilon: float) -> float:
    """Theorem 13, RDP of DP-GD with ``σ = L√T/(εn)``: ``α ε² / 2``."""
    return alpha * epsilon**2 / 2


def descent_rdp(*, alpha: float, epsilon: float) -> float:
    """Table 1, RDP of DP-GD with ``σ = L√T/(εn)``: ``2 α ε²``."""
    return 2 * alpha * epsilon**2


def descent_smooth(*, alpha: float, epsilon: float, smoothness: float, tau: float, lipschitz: float) -> float:
    """Theorem 13 and Table 1, smooth RDP of DP-GD: ``α μ² τ² ε² / (2 L²)``."""
    return alpha * smoothness**2 * tau**2 * epsilon**2 / (2 * lipschitz**2)


def sampled_rdp(*, alpha: float, epsilon: float) -> float:
    """Theorem 14 and Table 1, RDP of DP-SGD with subsampling: ``α² ε² / 2``."""
    return alpha**2 * epsilon**2 / 2


def sampled_smooth(
    *, alpha: float, epsilon: float, smoothness: float, tau: float, lipschitz: float, gamma: float
) -> float:
    """Theorem 14 and Table 1, smooth RDP of DP-SGD with subsampling: ``α μ² τ² ε² γ² / (2 L²)``."""
    return alpha * smoothness**2 * tau**2 * epsilon**2 * gamma**2 / (2 * lipschitz**2)


def lemma_3(*, rows: int, batch: int, k: int, whole: float, part: float) -> float:
    """Lemma 3: ``2 (1 - (kB - 1)/n)^B ε(α, τ/k) + 2 (1 - (1 - (kB - 1)/n)^B) ε(α, τ)``.

    ``whole`` is ε(α, τ), ``part`` is ε(α, τ/k).
    """
    inside = (1 - (k * batch - 1) / rows) ** batch
    return 2 * inside * part + 2 * (1 - inside) * whole


_LINEAR = "The loss θx of a row x in [-1, 1] (its gradient is x: L = μ = 1)"


def _one_step(quantity: str, printed: float) -> Comparison:
    """One step of DP-GD on one row, whose gradient goes from 1 to -1: the output is -η (x + Z)."""
    alpha, epsilon, lipschitz, steps, n = 3.0, 0.5, 1.0, 1, 1
    one, other = np.array([1.0]), np.array([-1.0])
    scale = lipschitz * math.sqrt(steps) / (epsilon * n)
    shift = Adjacency.replace().distance.shift(lipschitz, 1.0) / n
    return Comparison(
        quantity,
        printed,
        renyi_divergence(alpha, Mixture.of(one.mean(), scale), Mixture.of(other.mean(), scale)),
        f"{_LINEAR}, one row that goes from 1 to -1, one step, σ = L√T/(εn), ε = 1/2; the output of the algorithm.",
        gaussian_curve(shift / scale)(alpha),
        {"left": one, "right": other, "alpha": alpha, "epsilon": epsilon},
    )


def _theorem_13() -> Comparison:
    return _one_step("Rényi divergence of order 3", theorem_13(alpha=3.0, epsilon=0.5))


def _table_1() -> Comparison:
    return _one_step("Rényi divergence of order 3", descent_rdp(alpha=3.0, epsilon=0.5))


def _all_rows_move() -> Comparison:
    alpha, epsilon, n = 3.0, 0.5, 10
    one = np.linspace(-0.5, 0.4, n)
    other = one + 0.1
    scale, tau = 1 / (epsilon * n), np.abs(one - other).sum()
    return Comparison(
        "Rényi divergence of order 3",
        descent_smooth(alpha=alpha, epsilon=epsilon, smoothness=1.0, tau=tau, lipschitz=1.0),
        renyi_divergence(alpha, Mixture.of(one.mean(), scale), Mixture.of(other.mean(), scale)),
        f"{_LINEAR}, {n} rows that move by 0.1, one step, ε = 1/2.",
        gaussian_curve(Distance(moved=n, radius=0.1).shift(1.0, 1.0) / n / scale)(alpha),
        {"left": one, "right": other, "alpha": alpha, "epsilon": epsilon},
    )


def _one_draw(alpha: float, n: int, scale: float) -> float:
    """One step on one row drawn out of n, of which one goes from gradient -1 to 1 and the others have -1."""
    return renyi_divergence(
        alpha, Mixture.of(np.full(n, -1.0), scale), Mixture.of(np.append(1.0, np.full(n - 1, -1.0)), scale)
    )


def _rare_row() -> Comparison:
    alpha, n, epsilon, steps = 4.0, 1000, 1e-3, 1
    scale = math.sqrt(steps) / (epsilon * n)
    printed = sampled_rdp(alpha=alpha, epsilon=epsilon)
    most = min(math.sqrt(steps) / epsilon, scale**2 * math.log(n / scale))
    enough = brentq(lambda c: _one_draw(alpha, n, scale * math.sqrt(c)) - printed, 1.0, 20.0, rtol=1e-6)
    return Comparison(
        "Rényi divergence of order 4",
        printed,
        _one_draw(alpha, n, scale),
        f"{_LINEAR}, {n} rows -1, of which one becomes 1; one step on one row drawn, ε = 0.001 and σ = L√T/(εn) = "
        f"{scale:g}; orders up to {most:.3g} are allowed. The bound holds here from σ² = {enough:.3g} L²T/(εn)² on.",
        data={"n": n, "alpha": alpha, "epsilon": epsilon},
    )


def _equal_moves() -> Comparison:
    alpha, epsilon, n = 2.0, 0.1, 10
    one = np.zeros(n)
    other = one + 0.1
    scale, tau = 1 / (epsilon * n), np.abs(one - other).sum()
    gamma = n / math.floor(tau / np.abs(one - other).max() + 1e-9)
    return Comparison(
        "Rényi divergence of order 2",
        sampled_smooth(alpha=alpha, epsilon=epsilon, smoothness=1.0, tau=tau, lipschitz=1.0, gamma=gamma),
        renyi_divergence(alpha, Mixture.of(one, scale), Mixture.of(other, scale)),
        f"{_LINEAR}, {n} rows that all go from 0 to 0.1 (γ = 1), one step on one row drawn, ε = 0.1; orders up to 2.3 "
        "are allowed.",
        gaussian_curve(0.1 / scale)(alpha),
        {"left": one, "right": other, "alpha": alpha, "epsilon": epsilon},
    )


def sampled_with_replacement(left: Floats, right: Floats, batch: int, scale: float, alpha: float) -> float:
    """Divergence of the sum of rows drawn with replacement plus N(0, scale²), by going through all draws."""

    def law(rows: Floats) -> Mixture:
        return Mixture.of([sum(draw) for draw in itertools.product(rows.tolist(), repeat=batch)], scale)

    return renyi_divergence(alpha, law(left), law(right))


def _drawn_twice() -> Comparison:
    n, batch, k, alpha, tau = 4, 3, 1, 2.0, 1e-3
    left, right = np.append(1.0 - tau, np.zeros(n - 1)), np.append(1.0, np.zeros(n - 1))
    cost = gaussian_divergence(alpha, tau, tau)
    return Comparison(
        "Rényi divergence of order 2",
        lemma_3(rows=n, batch=batch, k=k, whole=cost, part=cost),
        sampled_with_replacement(left, right, batch, tau, alpha),
        f"{n} rows, three at 0 and one that moves from 1 − τ to 1, τ = {tau:g}; {batch} draws with replacement; A adds "
        f"N(0, τ²) to the sum of the rows drawn, so (α − 1) ε(α, τ) = {(alpha - 1) * cost:g}: the lemma's limit.",
        data={"left": left, "right": right, "batch": batch, "alpha": alpha, "noise": tau},
    )


CLAIMS = (
    Claim(
        "thm-13",
        PAPER,
        "Theorem 13, RDP",
        "gradient descent (DP-GD)",
        "DP-GD on an L-Lipschitz, μ-smooth loss with noise σ = L√T/(εn) on the mean gradient is (α, αε²/2)-RDP.",
        "α ε² / 2",
        theorem_13,
        "misprint",
        "Too small by 4: replacing a row changes the mean gradient by up to 2L/n, not L/n. The proof, and Table 1, end "
        "with 2αε².",
        _theorem_13,
        "noisy-gradient-descent",
        ("learning.logistic-gradient", "learning.squared-gradient"),
    ),
    Claim(
        "table-1-descent",
        PAPER,
        "Table 1, A_GD, RDP",
        "gradient descent (DP-GD)",
        "The same algorithm is (α, 2αε²)-RDP.",
        "2 α ε²",
        descent_rdp,
        "holds",
        "True, and attained after one step; composition over steps must be the adaptive one, which the paper's Lemma 1 "
        "does not prove but which holds.",
        _table_1,
        "noisy-gradient-descent",
        ("learning.logistic-gradient", "learning.squared-gradient"),
    ),
    Claim(
        "table-1-descent-smooth",
        PAPER,
        "Theorem 13 and Table 1, A_GD, smooth RDP",
        "gradient descent (DP-GD)",
        "The same algorithm is (α, αμ²τ²ε²/(2L²))-smooth RDP.",
        "α μ² τ² ε² / (2 L²)",
        descent_smooth,
        "holds",
        "True, and attained after one step. A moved row never costs more than a replaced one, 2L.",
        _all_rows_move,
        "noisy-gradient-descent",
        ("learning.logistic-gradient", "learning.squared-gradient"),
    ),
    Claim(
        "thm-14",
        PAPER,
        "Theorem 14 and Table 1, A_SGD-samp, RDP",
        "stochastic gradient descent on samples",
        "With σ = Ω(L√T/(εn)), 1 ≤ α ≤ min{√T/ε, L²T/(ε²n²) log(n²ε/(L√T))} and one row drawn in each step, DP-SGD is "
        "(α, α²ε²/2)-RDP.",
        "α² ε² / 2",
        sampled_rdp,
        "ambiguous",
        "Ω leaves the constant open. With constant 1 the bound is exceeded by orders of magnitude. With σ² = 64 "
        "L²T/(εn)² and σ ≥ 1, as the lemma behind it assumes, these data and their like reach 0.083 of it at most, and"
        " no dataset is known to exceed it. The lemma behind it is on log-moments of Poisson samples when a row is "
        "added or deleted, with an unspecified remainder; here samples have fixed size and a row is replaced. ppdp "
        "composes exact profiles of both kinds of samples.",
        _rare_row,
        "subsampling",
        ("learning.poisson", "learning.fixed-size"),
    ),
    Claim(
        "thm-14-smooth",
        PAPER,
        "Theorem 14 and Table 1, A_SGD-samp, smooth RDP",
        "stochastic gradient descent on samples",
        "The same algorithm is (α, αμ²τ²ε²γ²/(2L²))-smooth RDP, n/γ being the largest k such that no row of a pair "
        "of L moves by more than d₁₂/k.",
        "α μ² τ² ε² γ² / (2 L²)",
        sampled_smooth,
        "holds",
        "True with constant 1 in σ, and attained if all rows move equally far. But γ ranges over all pairs of L: it "
        "is n as soon as two datasets of L differ in one row. What is used of it is the longest single move.",
        _equal_moves,
        "subsampling",
        ("learning.poisson", "learning.fixed-size"),
    ),
    Claim(
        "lemma-3",
        PAPER,
        "Lemma 3",
        "sampling with replacement",
        "If A is (α, ε(α, τ))-smooth RDP with ε(α, τ) ≤ 1/(α − 1), then A on B rows drawn with replacement has the "
        "bound below for every integer k between 1/B and (n − 1)/B.",
        "2 (1 − (kB − 1)/n)^B ε(α, τ/k) + 2 (1 − (1 − (kB − 1)/n)^B) ε(α, τ)",
        lemma_3,
        "false",
        "For B ≥ 2 the same row may be drawn up to B times, so that the two samples are Bτ apart, not τ. True for B "
        "= 1, and with ε(α, Bτ) in the second term if that is at most 1/(α − 1).",
        _drawn_twice,
        "subsampling",
        ("learning.poisson", "learning.fixed-size"),
    ),
)
