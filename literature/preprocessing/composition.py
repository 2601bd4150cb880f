"""Theorem 2: what a mechanism costs behind a stage, from its cost for replaced and for moved rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from literature.claims import Claim, Comparison
from literature.divergence import gaussian_divergence
from literature.preprocessing.clusters import deduplicated
from literature.preprocessing.noise import gaussian_smooth
from literature.preprocessing.paper import PAPER
from ppdp.core.distance import Distance
from ppdp.privacy.renyi import linear_weak_triangle

__all__ = ["CLAIMS", "theorem_2"]

Rows = NDArray[np.float64]
Curve = Callable[[float], float]


def theorem_2(*, alpha: float, rdp: Curve, smooth: Curve, c_1: float = 2.0, c_2: float = 2.0) -> float:
    """Theorem 2, equation (3), with ``rdp(o)`` for ε(o) and ``smooth(o)`` for ε̃(o, Δ₂Δ_∞)."""

    def hybrid(c: float, first: Curve, second: Curve) -> float:
        order = math.inf if c == 1 else (c * alpha - 1) / (c - 1)
        return (alpha * c - 1) / (c * (alpha - 1)) * first(alpha * c) + second(order)

    return max(hybrid(c_1, smooth, rdp), hybrid(c_2, rdp, smooth))


def _shifted(X: Rows) -> Rows:
    """A stage that adds a tenth of the mean to every row, within [-1, 1]."""
    return np.clip(X + X.mean() / 10, -1, 1)


def _outside_of_class() -> Comparison:
    one, other, alpha = np.array([1.0, 0.0]), np.array([-1.0, 0.0]), 2.0
    inputs, outputs = (one, other), (_shifted(one), _shifted(other))
    shift = abs(outputs[0][1] - outputs[1][1])  # Δ₂, with one common row: Δ_∞ = 1

    def centre(X: Rows) -> float:
        """The mechanism's centre: no secret on the class of the theorem, the sum of the rows elsewhere."""
        return 0.0 if any(np.array_equal(X, known) for known in inputs) else float(X.sum())

    def cost(collection: Sequence[Rows], close: Callable[[Rows, Rows], bool]) -> float:
        """What a hypothesis says on a collection: the largest divergence of two members that are close."""
        return max(
            gaussian_divergence(alpha, centre(a) - centre(b), 1.0)
            for a in collection
            for b in collection
            if close(a, b) or a is b
        )

    def neighbours(a: Rows, b: Rows) -> bool:
        return int((a != b).sum()) == 1

    def near(a: Rows, b: Rows) -> bool:
        return float(np.abs(a - b).sum()) <= shift

    def claimed(collection: Sequence[Rows]) -> float:
        replaced, moved = cost(collection, neighbours), cost(collection, near)
        return theorem_2(alpha=alpha, rdp=lambda _: replaced, smooth=lambda _: moved)

    return Comparison(
        "Rényi divergence of order 2",
        max(claimed(inputs), claimed(outputs)),
        gaussian_divergence(alpha, centre(outputs[0]) - centre(outputs[1]), 1.0),
        f"Rows (1, 0) and (-1, 0); the stage adds a tenth of the mean and clips to [-1, 1], so the common row moves by "
        f"{shift:.4g}. The "
        "mechanism adds N(0, 1) to the sum of the rows, or to 0 on these two datasets. On L = {(1, 0), (-1, 0)} its "
        "outputs are equal. With L read as the two processed datasets both hypotheses are empty: they differ in two "
        f"rows, by {np.abs(outputs[0] - outputs[1]).sum():.4g} in all.",
        data={"left": one, "right": other, "alpha": alpha},
    )


def _gaussian_sum() -> Comparison:
    alpha, moved = 11.0, 10
    one, other = np.full(moved + 1, -0.5), np.full(moved + 1, 0.5)
    total = np.abs(one - other)[1:].sum()
    a, b = total**2 / 2, 0.5
    best = [1 + (alpha - 1) / alpha * math.sqrt(y / x) for x, y in ((a, b), (b, a))]
    printed = theorem_2(alpha=alpha, rdp=lambda o: b * o, smooth=lambda o: a * o, c_1=best[0], c_2=best[1])
    at_two = theorem_2(alpha=alpha, rdp=lambda o: b * o, smooth=lambda o: a * o)
    return Comparison(
        "Rényi divergence of order 11",
        printed,
        gaussian_divergence(alpha, one.sum() - other.sum(), 1.0),
        f"{moved + 1} rows go from -1/2 to 1/2, one of them as the replaced row; their sum plus N(0, 1). With the best "
        f"c the bound is attained; with c = 2, as in the tables, it is {at_two:.5g}.",
        linear_weak_triangle(a, b)(alpha),
        {"left": one, "right": other, "alpha": alpha, "c": best},
    )


def _absent_rows() -> Comparison:
    eta, alpha, epsilon = 0.1, 2.0, 1.0
    piles = np.repeat([[0.09], [-0.09]], 2, axis=0)
    one, other = np.vstack([[0.0], piles]), np.vstack([[0.9], piles])
    gone = int((deduplicated(other, eta)[1:] != deduplicated(one, eta)[1:]).sum())

    def answer(X: Rows) -> float:
        kept = X[1:][deduplicated(X, eta)[1:]]
        return float((5 + np.clip(kept, -0.5, 0.5)).sum())

    distance = Distance(toggled=gone)
    return Comparison(
        "Rényi divergence of order 2",
        gaussian_smooth(alpha=alpha, lipschitz=1.0, tau=gone * 1.0, epsilon=epsilon, sensitivity=1.0),
        gaussian_divergence(alpha, answer(one) - answer(other), 1.0 / epsilon),
        f"Two rows at 0.09, two at -0.09, and one at 0 or 0.9; with the one at 0 deduplication (η = 0.1) drops {gone} "
        "others. f is the sum of 5 + clip(x, -1/2, 1/2) over those others that are kept: 1-Lipschitz, changed by at "
        "most 1 if a row is replaced; noise N(0, 1), ε = 1.",
        gaussian_divergence(alpha, distance.shift(5.5, 1.0), 1.0 / epsilon),
        {"left": one, "right": other, "eta": eta, "alpha": alpha},
    )


CLAIMS = (
    Claim(
        "thm-2",
        PAPER,
        "Theorem 2, hypotheses over L",
        "privacy behind pre-processing",
        "If A is (α, ε(α))-RDP and (α, ε̃(α, τ))-smooth RDP over a set of datasets L, then A after pre-processing is "
        "(α, ε̂)-RDP over L.",
        "ε̂ ≤ max{ (αc₁ − 1)/(c₁(α − 1)) ε̃(αc₁, Δ₂Δ_∞) + ε((c₁α − 1)/(c₁ − 1)), "
        "(αc₂ − 1)/(c₂(α − 1)) ε(αc₂) + ε̃((c₂α − 1)/(c₂ − 1), Δ₂Δ_∞) }",
        theorem_2,
        "false",
        "The proof uses the hypotheses at the processed datasets and at a hybrid of the two, none of which need be "
        "in L. They must hold on every dataset of the mechanism's domain; L may only restrict the pair before the "
        "stage. M_G, M_L, M_E and A_GD satisfy that, so their entries of Table 2 are not affected. The smooth RDP of "
        "A_SGD-samp and A_SGD-iter depends on L, through γ and κ, which are properties of L, while the hybrid lies "
        "outside it: one row of n = 1000 that moves by 1/2 costs A_SGD-samp (ε = 0.002, L = μ = 1) 1.72·10⁻⁶ at order "
        "2, where Table 1 with γ = 1 has 10⁻⁶.",
        _outside_of_class,
        "renyi",
    ),
    Claim(
        "thm-2-everywhere",
        PAPER,
        "Theorem 2, hypotheses on all datasets",
        "privacy behind pre-processing",
        "The same bound, if the hypotheses hold on all datasets and no row is dropped.",
        "the same",
        theorem_2,
        "holds",
        "True for every c₁, c₂ > 1, and with the best ones attained by Gaussian noise. Not the maximum but the "
        "minimum of the two terms is enough, and α = 1 must be excluded. The tables take c = 2 and a common factor, "
        "which costs up to 2.1.",
        _gaussian_sum,
        "renyi",
    ),
    Claim(
        "footnote-2",
        PAPER,
        "Footnote 2 (Definition 4)",
        "rows that are dropped",
        "If one of π₁(x), π₂(x) is empty, their distance is 1. Read here: the smooth RDP of Table 1 then covers rows "
        "that are dropped. No sentence of the paper says so, but Theorem 17 applies it to deduplication.",
        "‖π₁(x) − π₂(x)‖₂ = 1, hence α L² τ² ε² / (2 Δ_f²) with τ = Δ_∞",
        gaussian_smooth,
        "ambiguous",
        "The convention alone claims nothing. It is enough if Lipschitz constants are taken for the extended distance,"
        " which the paper does not ask of f; on rows alone such a constant and a replace-one sensitivity say nothing "
        "about a row that is not there. With rows of norm at most C behind f the sum is max(L, C)-Lipschitz for the "
        "extended distance; statistics that divide by the number of rows kept are not covered at all. ppdp gives a "
        "dropped row weight 0 and charges C.",
        _absent_rows,
        "distance",
        ("deduplication.whole-record", "clusters.deduplicate"),
    ),
)
