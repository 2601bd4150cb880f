"""Table 2 and Theorem 17: additive noise and gradient descent behind a stage."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from literature.claims import Claim, Comparison, Status
from literature.divergence import gaussian_divergence
from literature.preprocessing.pairs import Strained, counted, filled, quantized_heights, rotated, stretched
from literature.preprocessing.paper import PAPER
from ppdp.privacy.renyi import laplace_curve

__all__ = ["CLAIMS"]


def gaussian_deduplication(*, alpha: float, epsilon: float, p: float) -> float:
    """Theorem 17 (i): ``1.05 α ε² (1 + p²)``."""
    return 1.05 * alpha * epsilon**2 * (1 + p**2)


def gaussian_quantization(*, alpha: float, epsilon: float, p: float, eta: float) -> float:
    """Table 2: ``1.05 α ε² (1 + η² p²)``."""
    return 1.05 * alpha * epsilon**2 * (1 + eta**2 * p**2)


def gaussian_imputation(*, alpha: float, epsilon: float, p: float, n: float) -> float:
    """Table 2: ``1.05 α ε² (1 + 4p²/(n - p)²)``."""
    return 1.05 * alpha * epsilon**2 * (1 + 4 * p**2 / (n - p) ** 2)


def gaussian_components(*, alpha: float, epsilon: float, gap: float) -> float:
    """Table 2: ``1.05 α ε² (1 + 12.2²/δ_min²)``."""
    return 1.05 * alpha * epsilon**2 * (1 + 12.2**2 / gap**2)


def gaussian_scaling(*, alpha: float, epsilon: float, deviation: float) -> float:
    """Table 2: ``1.05 α ε² (1 + 4/σ_min³)``."""
    return 1.05 * alpha * epsilon**2 * (1 + 4 / deviation**3)


def descent_deduplication(*, alpha: float, epsilon: float, p: float) -> float:
    """Table 2 and its caption: ``1.05 α ε² (4 + p²)``, quantization with η = 1."""
    return 1.05 * alpha * epsilon**2 * (4 + p**2)


def descent_quantization(*, alpha: float, epsilon: float, p: float, eta: float) -> float:
    """Table 2: ``1.05 α ε² (4 + η² p²)``."""
    return 1.05 * alpha * epsilon**2 * (4 + eta**2 * p**2)


def descent_imputation(*, alpha: float, epsilon: float, p: float, n: float) -> float:
    """Table 2: ``4.2 α ε² (1 + p²/(n - p)²)``."""
    return 4.2 * alpha * epsilon**2 * (1 + p**2 / (n - p) ** 2)


def descent_components(*, alpha: float, epsilon: float, gap: float) -> float:
    """Table 2: ``1.05 α ε² (4 + 12.2²/δ_min²)``."""
    return 1.05 * alpha * epsilon**2 * (4 + 12.2**2 / gap**2)


def descent_scaling(*, alpha: float, epsilon: float, deviation: float) -> float:
    """Table 2: ``4.2 α ε² (1 + 1/σ_min³)``."""
    return 4.2 * alpha * epsilon**2 * (1 + 1 / deviation**3)


def pure_deduplication(*, alpha: float, epsilon: float, p: float) -> float:
    """Theorem 17 (ii): ``ε (1 + p)`` at every order."""
    return epsilon * (1 + p)


def pure_quantization(*, alpha: float, epsilon: float, p: float, eta: float) -> float:
    """Table 2: ``ε (1 + ηp)`` at every order."""
    return epsilon * (1 + eta * p)


def pure_imputation(*, alpha: float, epsilon: float, p: float, n: float) -> float:
    """Table 2: ``ε (1 + 2p/(n - p))`` at every order."""
    return epsilon * (1 + 2 * p / (n - p))


def pure_components(*, alpha: float, epsilon: float, gap: float) -> float:
    """Table 2: ``ε (1 + 12.2/δ_min)`` at every order."""
    return epsilon * (1 + 12.2 / gap)


def pure_scaling(*, alpha: float, epsilon: float, deviation: float) -> float:
    """Table 2: ``ε (1 + 4/σ_min³)`` at every order."""
    return epsilon * (1 + 4 / deviation**3)


def pure_scaling_in_theorem_17(*, alpha: float, epsilon: float, deviation: float) -> float:
    """Theorem 17 (ii), standard scaling: ``4.2 α ε² (1 + 1/σ_min³)``."""
    return 4.2 * alpha * epsilon**2 * (1 + 1 / deviation**3)


def _gaussian(alpha: float, epsilon: float, change: float) -> float:
    """What noise N(0, 1/ε²) leaves of a change of the sum; the same for one step of DP-GD with σ = 1/(εn)."""
    return gaussian_divergence(alpha, change, 1 / epsilon)


def _laplace(alpha: float, epsilon: float, change: float) -> float:
    """What Laplace noise of scale 1/ε leaves of a change of the sum."""
    return laplace_curve(change * epsilon)(alpha)


@dataclass(frozen=True, slots=True)
class _Row:
    """A mechanism of Table 2: its id, its words, its exact divergence, and what the order and ε are."""

    id: str
    name: str
    words: str
    divergence: Callable[[float, float, float], float]
    width: float = 1.0


ROWS = {
    "M_G": _Row("gaussian", "M_G", "the Gaussian mechanism N(0, Δ_f²/ε²)", _gaussian),
    "A_GD": _Row("descent", "A_GD", "gradient descent with σ = L√T/(εn)", _gaussian, 2.0),
    "M_L, M_E": _Row("pure", "M_L, M_E", "Laplace noise of scale Δ_f/ε, or the exponential mechanism", _laplace),
}

_STAGES: dict[str, tuple[Callable[[], Strained], tuple[str, ...]]] = {
    "deduplication": (counted, ("clusters.deduplicate", "deduplication.whole-record")),
    "quantization": (quantized_heights, ("clusters.quantize", "quantization.hard")),
    "mean imputation": (filled, ("imputation.mean",)),
    "PCA": (rotated, ("pca.rank",)),
    "standard scaling": (stretched, ("scaling.standard",)),
}


def _cell(
    row: str,
    stage: str,
    formula: str,
    bound: Callable[..., float],
    status: Status,
    erratum: str,
    *,
    place: str = "Table 2",
    name: str = "",
    alpha: float = 11.0,
    epsilon: float = 1.0,
) -> Claim:
    """The claim of one cell; its evidence strains the stage and looks at the sum of h through the mechanism."""
    mechanism = ROWS[row]
    pair, corrected = _STAGES[stage]

    def evidence() -> Comparison:
        strained = filled(mechanism.width) if stage == "mean imputation" else pair()
        order = "∞" if math.isinf(alpha) else f"{alpha:g}"
        statistic = "h is the gradient of a row, in one step" if row == "A_GD" else "the statistic is the sum of h"
        return Comparison(
            f"Rényi divergence of order {order}",
            bound(alpha=alpha, epsilon=epsilon, **strained.public),
            mechanism.divergence(alpha, epsilon, strained.change),
            f"{strained.setting}; {statistic}. That sum changes by {strained.change:.4g}; ε = {epsilon:g}.",
            mechanism.divergence(alpha, epsilon, strained.ours),
            {"left": strained.left, "right": strained.right, "alpha": alpha, "epsilon": epsilon},
        )

    return Claim(
        name or f"table-2-{mechanism.id}-{stage.replace(' ', '-').lower()}",
        PAPER,
        f"{place}, {mechanism.name}",
        f"{mechanism.name} behind {stage}",
        f"L = μ = Δ = 1, α ≥ 11. Behind {stage}, {mechanism.words} is Rényi private with the bound below.",
        formula,
        bound,
        status,
        erratum,
        evidence,
        {"M_L, M_E": "laplace", "A_GD": "noisy-gradient-descent"}.get(row, "accounting"),
        corrected,
    )


_DROPPED = (
    "p is the L∞ sensitivity itself, however large. With it, and with dropped rows at distance 1 for f as well "
    "(footnote 2), true: {step}. False if Proposition 3's value 2 max|B| is put for p: on its two pentagons {wrong}."
)
_MOVES = (
    "Rows move by up to 2η, not η (Proposition 3). p is the L∞ sensitivity itself; with Proposition 3's value for it, "
    "which may be up to K_d times too small, more is missing."
)
_COUNTED = (
    "Table 2 takes p for the L∞ sensitivity, Corollary 4 for the number of missing values. True if p counts gaps: all "
    "of them together move by at most 2p/(n − p). False if p counts rows with gaps, and more so if those that move: a "
    "row of several gaps moves further than Corollary 4 says."
)
_SQUARE = (
    "(Δ₂Δ_∞)² is up to 16/σ⁶; the square was dropped, in Table 2 and in Theorem 17. The proof, which puts Proposition "
    "6 into (45), and A_SGD-samp in the same table have it. True with 16/σ⁶ for 4/σ³"
)
_WIDE = "True, and far too large: Proposition 5's constant, and c = 2 in Theorem 2."
_CURVE = "At finite orders the loss of Laplace noise is smaller."

CLAIMS = (
    _cell(
        "M_G",
        "deduplication",
        "1.05 α ε² (1 + p²)",
        gaussian_deduplication,
        "loose",
        _DROPPED.format(step="(1 + p)²/2 ≤ 1 + p²", wrong="462,000 would be printed and 1,353,000 is attained"),
        place="Theorem 17 (i)",
    ),
    _cell("M_G", "quantization", "1.05 α ε² (1 + η²p²)", gaussian_quantization, "false", _MOVES),
    _cell(
        "M_G",
        "mean imputation",
        "1.05 α ε² (1 + 4p²/(n − p)²)",
        gaussian_imputation,
        "ambiguous",
        f"{_COUNTED} Exact is αε²(1 + τ)²/2 for a total τ of moves.",
    ),
    _cell("M_G", "PCA", "1.05 α ε² (1 + 12.2²/δ_min²)", gaussian_components, "loose", _WIDE),
    _cell("M_G", "standard scaling", "1.05 α ε² (1 + 4/σ_min³)", gaussian_scaling, "misprint", f"{_SQUARE}."),
    _cell(
        "A_GD",
        "deduplication",
        "1.05 α ε² (4 + p²)",
        descent_deduplication,
        "loose",
        _DROPPED.format(step="(2 + p)²/2 ≤ 4 + p²", wrong="462,000 would be printed and 1,353,000 is attained")
        + " The mean gradient and σ are over the n rows before deduplication here; over the rows that are left, whose "
        "number differs, two datasets may be infinitely far apart.",
        place="Table 2 (caption)",
    ),
    _cell("A_GD", "quantization", "1.05 α ε² (4 + η²p²)", descent_quantization, "false", _MOVES),
    _cell(
        "A_GD",
        "mean imputation",
        "4.2 α ε² (1 + p²/(n − p)²)",
        descent_imputation,
        "ambiguous",
        f"{_COUNTED} Exact is αε²(2 + τ)²/2 for a total τ of moves.",
    ),
    _cell("A_GD", "PCA", "1.05 α ε² (4 + 12.2²/δ_min²)", descent_components, "loose", _WIDE),
    _cell(
        "A_GD",
        "standard scaling",
        "4.2 α ε² (1 + 1/σ_min³)",
        descent_scaling,
        "misprint",
        f"{_SQUARE}, 4/σ⁶ for 1/σ³ here.",
    ),
    _cell(
        "M_L, M_E",
        "deduplication",
        "ε (1 + p)",
        pure_deduplication,
        "holds",
        _DROPPED.format(
            step="a sum changes by at most 1 + p, and here by that; the bound is attained as α → ∞",
            wrong="201 would be printed and 495.9 is attained",
        ),
        place="Theorem 17 (ii)",
    ),
    _cell("M_L, M_E", "quantization", "ε (1 + ηp)", pure_quantization, "false", _MOVES),
    _cell(
        "M_L, M_E",
        "mean imputation",
        "ε (1 + 2p/(n − p))",
        pure_imputation,
        "ambiguous",
        f"{_COUNTED} Exact is ε(1 + τ) for a total τ of moves. Theorem 17 (ii), which lists five stages, has lost this "
        "entry.",
        alpha=math.inf,
    ),
    _cell("M_L, M_E", "PCA", "ε (1 + 12.2/δ_min)", pure_components, "loose", _WIDE),
    _cell(
        "M_L, M_E",
        "standard scaling",
        "ε (1 + 4/σ_min³)",
        pure_scaling,
        "loose",
        "True although Proposition 6, from which it is derived, is false: rows cannot all move that far. Together "
        f"they move by at most √((2.09/σ²)² + (2/σ)²). {_CURVE}",
    ),
    _cell(
        "M_L, M_E",
        "standard scaling",
        "4.2 α ε² (1 + 1/σ_min³)",
        pure_scaling_in_theorem_17,
        "misprint",
        "Copied from gradient descent; Table 2 has ε(1 + 4/σ³). Quadratic in ε, hence exceeded for every small ε.",
        place="Theorem 17 (ii)",
        name="thm-17-ii-scaling",
        epsilon=1e-4,
    ),
)
