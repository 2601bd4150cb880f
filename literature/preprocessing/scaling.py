"""Proposition 6: standard scaling."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from literature.claims import Claim, Comparison
from literature.preprocessing.paper import PAPER
from ppdp.bounds import lookup
from ppdp.core.adjacency import Adjacency
from ppdp.core.domain import Domain

__all__ = ["CLAIMS", "scaled", "standard_scaling"]

Rows = NDArray[np.float64]
ONE = Adjacency.replace().distance


def standard_scaling(*, rows: int, deviation: float) -> float:
    """Proposition 6, L2 sensitivity: ``2/(σ_min³ n) + 2/(n σ_min)``."""
    return 2 / (deviation**3 * rows) + 2 / (rows * deviation)


def scaled_rows(*, rows: int) -> float:
    """Proposition 6, L∞ sensitivity: n."""
    return float(rows)


def unit_ball() -> float:
    """Definition 4: pre-processed rows are in the unit ball again."""
    return 1.0


def scaled(X: Rows) -> Rows:
    """Standard scaling, with the deviation over n."""
    return (X - X.mean(axis=0)) / X.std(axis=0)


def _poles(n: int, few: int) -> tuple[Rows, Rows]:
    """Rows at 1 but for ``few`` at -1; the replaced row joins those."""
    left = np.ones(n)
    left[1 : 1 + few] = -1
    right = left.copy()
    right[0] = -1
    return left, right


def _move(left: Rows, right: Rows) -> tuple[float, float]:
    """Longest move of a common row, and the printed bound, with the kind of deviation for which that is larger."""
    moved = float(np.abs(scaled(left) - scaled(right))[1:].max())
    least = min(min(X.std(ddof=ddof) for X in (left, right)) for ddof in (0, 1))
    return moved, standard_scaling(rows=len(left), deviation=least)


def _first_exceeded() -> int:
    """Fewest rows for which such a pair exceeds the bound."""
    return next(n for n in range(3, 100) if any(a > b for a, b in (_move(*_poles(n, k)) for k in range(1, n // 2))))


def _few_rows_below() -> Comparison:
    left, right = _poles(100, 2)
    moved, printed = _move(left, right)
    domain = Domain(n_rows=100, n_features=1, row_norm=1.0)
    least = float(min(left.std(), right.std()))
    formula = lookup("scaling.standard", "stability")
    certified = formula(domain, ONE, min_std=least, conditional=True, clip=None)[1]
    return Comparison(
        "move of a scaled row",
        printed,
        moved,
        f"100 rows: 98 at 1, two at -1, and one goes from 1 to -1; σ_min = {least:.4g}. The row that moves most is "
        f"one at -1. Such pairs exceed the bound from {_first_exceeded()} rows on.",
        certified.radius,
        {"left": left, "right": right},
    )


def _all_move() -> Comparison:
    left, right = _poles(100, 2)
    moved = int((scaled(left) != scaled(right))[1:].sum())
    domain = Domain(n_rows=100, n_features=1, row_norm=1.0)
    formula = lookup("scaling.standard", "stability")
    certified = formula(domain, ONE, min_std=0.1, conditional=True, clip=None)[1]
    return Comparison(
        "rows that move",
        scaled_rows(rows=100),
        float(moved),
        "The same 100 rows: all but the replaced one move.",
        float(certified.moved),
        {"left": left, "right": right},
    )


def _out_of_the_ball() -> Comparison:
    left, _ = _poles(100, 2)
    domain = Domain(n_rows=100, n_features=1, row_norm=1.0)
    formula = lookup("scaling.standard", "stability")
    image = formula(domain, ONE, min_std=float(left.std()), conditional=True, clip=None)[0]
    return Comparison(
        "norm of a row",
        unit_ball(),
        float(np.abs(scaled(left)).max()),
        "98 rows at 1 and two at -1, scaled.",
        image.row_norm,
        {"rows": left},
    )


CLAIMS = (
    Claim(
        "prop-6",
        PAPER,
        "Proposition 6, Δ₂",
        "standard scaling",
        "Rows have norm at most 1, and σ_min is the smallest standard deviation of a column in any dataset of L.",
        "Δ₂ = 2/(σ_min³ n) + 2/(n σ_min)",
        standard_scaling,
        "false",
        "The variance of a column in [-1, 1] changes by up to 4(n − 1)/n², not 2/n. The leading constant is "
        "(1 + √(1 − σ²))³/2, up to 4, not 2. For min-max scaling the paper gives Δ_∞ only, without a Δ₂; so there is "
        "nothing to compare it with.",
        _few_rows_below,
        "standard-scaling",
        ("scaling.standard",),
    ),
    Claim(
        "prop-6-count",
        PAPER,
        "Proposition 6, Δ_∞",
        "standard and min-max scaling",
        "At most n rows move.",
        "Δ_∞ = n",
        scaled_rows,
        "holds",
        "Trivially; n − 1 are attained.",
        _all_move,
        "standard-scaling",
        ("scaling.standard",),
    ),
    Claim(
        "def-4",
        PAPER,
        "Section 3.2, as used in Section 4",
        "pre-processed rows",
        "By Definition 4 a pre-processing function maps the space of rows, the unit ball, into itself or drops a row. "
        "Section 4 takes standard scaling and mean imputation for such functions.",
        "π_S : X → X ∪ ∅",
        unit_ball,
        "false",
        "The use is false, not the definition: scaling is no such function, nor is imputation by column means, whose "
        "vector has norm up to √d. So a mechanism whose L, μ and Δ_f are those on the unit ball is not covered behind "
        "them. A public clip repairs it; a mechanism whose constants hold for all rows, as clipped gradients do, is "
        "not affected.",
        _out_of_the_ball,
        "standard-scaling",
        ("scaling.standard",),
    ),
)
