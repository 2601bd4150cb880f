"""DP-RP and DP-OPORP: projections with Gaussian noise (Theorems 3.1 and 3.2, equation (3), Algorithms 9 and 10)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from literature.claims import Claim, Comparison
from literature.projections.laws import gaussian_delta
from literature.projections.paper import PAPER
from ppdp.bounds.projection import Matrix
from ppdp.bounds.random_matrix import draw
from ppdp.privacy.gaussian import gaussian_delta as certified_delta
from ppdp.privacy.gaussian import gaussian_mu

__all__ = ["CLAIMS", "dwork_roth", "kenthapadi", "record_with_a_change"]

Floats = NDArray[np.float64]
DELTA = 1e-6


def target(*, delta: float) -> float:
    """Theorems 3.1 and 3.2: the δ that noise was made for."""
    return delta


def largest_row(*, beta: float, norms: Floats, k: int) -> float:
    """Equation (3): ``β max_i ‖W_i‖ / √k``."""
    return float(beta * np.max(norms) / math.sqrt(k))


def change_itself(*, beta: float) -> float:
    """Algorithms 9 and 10: ``Δ₂ = β``."""
    return beta


def dwork_roth(shift: float, epsilon: float, delta: float) -> float:
    """σ of Dwork and Roth, ``Δ₂ √(2 log(1.25/δ)) / ε``; proved for ε < 1."""
    return shift * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def kenthapadi(shift: float, epsilon: float, delta: float) -> float:
    """σ of Kenthapadi et al., ``Δ₂ √(2 (log(1/(2δ)) + ε)) / ε``; true for every ε."""
    return shift * math.sqrt(2 * (math.log(1 / (2 * delta)) + epsilon)) / epsilon


def record_with_a_change(p: int, beta: float, column: int = 0) -> tuple[Floats, Floats]:
    """A record of zeros but for one coordinate, ±β/2; one row each."""
    left, right = np.zeros((1, p)), np.zeros((1, p))
    left[0, column], right[0, column] = beta / 2, -beta / 2
    return left, right


def _classical() -> Comparison:
    epsilon, beta, k = 20.0, 1.0, 4
    left, right = record_with_a_change(8, beta)
    A = draw("rademacher", k, 8, seed=0)
    shift = float(np.linalg.norm(A @ (left - right)[0]))
    sigma = dwork_roth(beta, epsilon, DELTA)
    return Comparison(
        "δ that is needed",
        target(delta=DELTA),
        gaussian_delta(shift, sigma, epsilon),
        f"Rademacher W, k = {k}; ε = {epsilon:g}, β = 1: a coordinate is 1/2 or -1/2, all others 0. At ε = 10 the "
        f"figure is {gaussian_delta(shift, dwork_roth(beta, 10.0, DELTA), 10.0) / DELTA:.3g}·10⁻⁶.",
        certified_delta(beta / sigma, epsilon),
        {"left": left, "right": right, "beta": beta, "epsilon": epsilon, "shift": shift},
    )


def _optimal() -> Comparison:
    epsilon, beta = 1.0, 1.0
    left, right = record_with_a_change(8, beta)
    sigma = beta / gaussian_mu(epsilon, DELTA)
    return Comparison(
        "δ that is needed",
        target(delta=DELTA),
        gaussian_delta(1.0, sigma, epsilon),
        f"Rademacher W, ε = 1, β = 1: a coordinate is 1/2 or -1/2; σ = {sigma:.4g}.",
        certified_delta(beta / sigma, epsilon),
        {"left": left, "right": right, "beta": beta},
    )


def _of_matrix(family: str, words: str) -> Comparison:
    p, k, beta, seed = 784, 64, 1.0, 0
    A = draw(family, k, p, seed)
    lengths = np.linalg.norm(A if family != "oporp" else A.toarray(), axis=0)
    column = int(lengths.argmax())
    left, right = record_with_a_change(p, beta, column)
    printed = change_itself(beta=beta)
    if family == "gaussian":
        printed = largest_row(beta=beta, norms=lengths * math.sqrt(k), k=k)
    return Comparison(
        "change of the projected record",
        printed,
        float(np.linalg.norm(A @ left[0] - A @ right[0])),
        f"{words}, p = {p}, k = {k}, one draw: the coordinate with the longest row of W is 1/2 or -1/2, all others 0.",
        Matrix(family, k, p, seed).change(coordinate=beta, count=1).l2,
        {"left": left, "right": right, "beta": beta},
    )


def raw_precision(*, sigma: float) -> float:
    """Appendix C: ``σ < 0.1`` needs ε > 100, so that at ε = 100 ``1/σ`` is at most 10."""
    return 1 / sigma


def _hundred() -> Comparison:
    needed = 96.72
    return Comparison(
        "1/σ at ε = 100",
        raw_precision(sigma=0.1),
        gaussian_mu(100.0, DELTA),
        f"Δ₂ = 1, δ = 10⁻⁶. At σ = 0.1 and ε = {needed} what is needed is δ = "
        f"{gaussian_delta(1, 0.1, needed) / DELTA:.4g}·10⁻⁶.",
        gaussian_mu(100.0, DELTA),
        {},
    )


_PAGE = ("random-projection", ("projection.drawn",))

CLAIMS = (
    Claim(
        "sign-thm-3.1",
        PAPER,
        "Theorem 3.1",
        "DP-RP-G",
        "Wᵀu/√k with Gaussian noise of the classical σ is (ε, δ)-DP. The theorem itself is not in the text that was "
        "checked. Read here with the σ of Dwork and Roth, and for every ε, as the experiments go up to 20.",
        "σ = Δ₂ √(2 log(1.25/δ)) / ε",
        target,
        "ambiguous",
        "That σ is proved for ε < 1 only, and with it δ is exceeded for large ε. True for every ε: σ = Δ₂ √(2 "
        "(log(1/(2δ)) + ε))/ε (Kenthapadi et al., whose mechanism this is); Theorem 3.2 needs less noise.",
        _classical,
        *_PAGE,
    ),
    Claim(
        "sign-thm-3.2",
        PAPER,
        "Theorem 3.2, equation (4)",
        "DP-RP-G-OPT",
        "Noise of the smallest σ that solves (4) is (ε, δ)-DP (Balle and Wang 2018); read off its uses.",
        "Φ(Δ/2σ − εσ/Δ) − e^ε Φ(−Δ/2σ − εσ/Δ) ≤ δ",
        target,
        "holds",
        "Attained by every pair at distance Δ₂.",
        _optimal,
        *_PAGE,
    ),
    Claim(
        "sign-eq-3",
        PAPER,
        "Equation (3)",
        "Δ₂ of DP-RP",
        "One coordinate changes by at most β; W is public and any matrix.",
        "Δ₂ = β max_i ‖W_i‖ / √k",
        largest_row,
        "holds",
        "Computed of the W that was drawn, so nothing is said over W. Appendix A.2, step 2, leaves out 1/√k.",
        lambda: _of_matrix("gaussian", "Gaussian W"),
        *_PAGE,
    ),
    Claim(
        "sign-b1",
        PAPER,
        "Appendix B.1, Algorithm 9",
        "Δ₂ with Rademacher W",
        "If W is ±1, Δ₂ does not depend on p.",
        "Δ₂ = β",
        change_itself,
        "holds",
        "Also for changes with ‖u − u′‖₁ ≤ β. If a whole record of norm R is replaced it is 2R‖W‖/√k instead, about "
        "2R(1 + √(p/k)).",
        lambda: _of_matrix("rademacher", "Rademacher W"),
        *_PAGE,
    ),
    Claim(
        "sign-alg-10",
        PAPER,
        "Algorithm 10",
        "Δ₂ of DP-OPORP",
        "One coordinate changes one bin.",
        "Δ₂ = β",
        change_itself,
        "holds",
        "The sum of absolute changes is β as well: Laplace noise of scale β/ε then is private with δ = 0, and smaller. "
        "At ε = 5, δ = 10⁻⁶ its variance is 0.08β² where (4) gives 0.96β².",
        lambda: _of_matrix("oporp", "OPORP"),
        *_PAGE,
    ),
    Claim(
        "sign-c-raw",
        PAPER,
        "Appendix C, below (16)",
        "noise on raw data",
        "“In order for σ < 0.1 at Δ₂ = β = 1, we need ε > 100” (δ = 10⁻⁶, Figure 12).",
        "σ ≥ 0.1 for ε ≤ 100",
        raw_precision,
        "ambiguous",
        "ε > 96.72 is enough. Read off Figure 12, as the paper does, to one digit it is right. Nothing rests on it.",
        _hundred,
        *_PAGE,
    ),
)
