"""Lemma E.1: two normal numbers, and the larger of them."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.integrate import quad
from scipy.special import ndtr

from literature.claims import Claim, Comparison
from literature.projections.paper import PAPER

__all__ = ["CLAIMS", "moment", "probability"]


def larger(*, r: float, rho: float) -> float:
    """Lemma E.1, 1: ``(tan⁻¹((r − ρ)/√(1 − ρ²)) + tan⁻¹((r + ρ)/√(1 − ρ²))) / π``."""
    rest = math.sqrt(1 - rho**2)
    return (math.atan((r - rho) / rest) + math.atan((r + rho) / rest)) / math.pi


def maximum(*, r: float) -> float:
    """Lemma E.1, 1, its maximum over ρ for r ≤ 1: ``(2/π) tan⁻¹(r)``."""
    return 2 / math.pi * math.atan(r)


def conditional(*, r: float, rho: float, sigma: float = 1.0) -> float:
    """Lemma E.1, 2: the conditional expectation of |X|."""
    ends = sum((r + s * rho) / math.sqrt(1 + r**2 + 2 * s * r * rho) for s in (-1, 1))
    return sigma * math.sqrt(math.pi / 2) * ends / (math.pi * larger(r=r, rho=rho))


def tail(*, t: float, sigma: float = 1.0) -> float:
    """Lemma E.1, 3: ``exp(−t²/(2σ_x²))``."""
    return math.exp(-(t**2) / (2 * sigma**2))


def moment(weight: Callable[[float], float], r: float, rho: float, least: float = 0.0) -> float:
    """The expectation of weight(|X|) over |X| > max(|Y|, least), by quadrature; X has variance 1, Y 1/r²."""
    rest = math.sqrt(1 - rho**2)

    def density(x: float) -> float:
        inside = ndtr((r - rho) * x / rest) - ndtr(-(r + rho) * x / rest)
        return float(2 * math.exp(-(x**2) / 2) / math.sqrt(2 * math.pi) * inside * weight(x))

    return float(quad(density, least, least + 12, epsabs=0, epsrel=1e-12, limit=200)[0])


def probability(r: float, rho: float, least: float = 0.0) -> float:
    """That |X| > |Y| and |X| > least."""
    return moment(lambda x: 1.0, r, rho, least)


R, RHO = 0.5, 0.3


def _larger() -> Comparison:
    words = f"r = {R}, ρ = {RHO}; by quadrature."
    return Comparison("probability", larger(r=R, rho=RHO), probability(R, RHO), words)


def _maximum() -> Comparison:
    rho = 0.99
    words = (
        f"r = {R}, ρ = {rho}: the probability that |X| < |Y|. That |X| > |Y| is at most {maximum(r=R):.4g}, at ρ = 0."
    )
    return Comparison("probability", maximum(r=R), 1 - probability(R, rho), words, data={"r": R})


def _conditional() -> Comparison:
    found = moment(lambda x: x, R, RHO) / probability(R, RHO)
    printed = conditional(r=R, rho=RHO)
    return Comparison("conditional expectation", printed, found, f"r = {R}, ρ = {RHO}; by quadrature.")


def _tail() -> Comparison:
    r, t = 0.01, 1.0
    found = probability(r, 0.0, t) / probability(r, 0.0)
    return Comparison("conditional probability", tail(t=t), found, f"t = {t:g}, ρ = 0, r = {r}; by quadrature.")


_PAGE = "random-projection"
_SETTING = "(X, Y) is normal with mean 0, r = σ_x/σ_y and correlation ρ."

CLAIMS = (
    Claim(
        "sign-lemma-e1-probability",
        PAPER,
        "Lemma E.1, 1",
        "the larger of two normal numbers",
        f"{_SETTING} How often |X| > |Y|.",
        "(tan⁻¹((r − ρ)/√(1 − ρ²)) + tan⁻¹((r + ρ)/√(1 − ρ²))) / π",
        larger,
        "holds",
        "Its derivative, as printed in the proof, has lost the factor 1/π; only the sign is used.",
        _larger,
        _PAGE,
    ),
    Claim(
        "sign-lemma-e1-maximum",
        PAPER,
        "Lemma E.1, 1, maximum",
        "the larger of two normal numbers",
        f"{_SETTING} For r ≤ 1 the maximum over ρ of how often |X| < |Y|.",
        "max_ρ Pr(|X| < |Y|) = (2/π) tan⁻¹(r)",
        maximum,
        "misprint",
        "The maximum is of Pr(|X| > |Y|), as its proof says.",
        _maximum,
        _PAGE,
    ),
    Claim(
        "sign-lemma-e1-expectation",
        PAPER,
        "Lemma E.1, 2",
        "the larger of two normal numbers",
        f"{_SETTING} The expectation of |X| if |X| > |Y|.",
        "σ_x √(π/2) ((r − ρ)/√(1 + r² − 2rρ) + (r + ρ)/√(1 + r² + 2rρ)) / (π Pr(|X| > |Y|))",
        conditional,
        "holds",
        "Equation (19) over (20).",
        _conditional,
        _PAGE,
    ),
    Claim(
        "sign-lemma-e1-tail",
        PAPER,
        "Lemma E.1, 3",
        "the larger of two normal numbers",
        f"{_SETTING} How often |X| > t if |X| > |Y|.",
        "exp(−t²/(2σ_x²))",
        tail,
        "holds",
        "Attained for ρ = 0 and r → 0: |X| then has the law of the length of a normal vector in the plane.",
        _tail,
        _PAGE,
    ),
)
