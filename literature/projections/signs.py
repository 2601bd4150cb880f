"""Theorem 4.6 and Section 4.3: signs whose flips get rarer away from 0, dense and behind OPORP."""

from __future__ import annotations

import math

import numpy as np

from literature.claims import Claim, Comparison
from literature.projections.laws import loss, smooth
from literature.projections.paper import PAPER
from ppdp.bounds import lookup
from ppdp.bounds.signs import widest_change
from ppdp.core.adjacency import Adjacency
from ppdp.core.domain import Domain
from ppdp.transformers import RandomProjection

__all__ = ["CLAIMS", "small_record"]


def pure(*, epsilon: float) -> float:
    """Theorem 4.6, Section 4.3: ε."""
    return epsilon


def small_record(k: int) -> tuple[np.ndarray, np.ndarray]:
    """One small entry in every bin, and its opposite."""
    left = np.full((1, k), 1e-6)
    return left, -left


def certified(family: str, k: int, p: int, adjacency: Adjacency, eta: float) -> float:
    """What ppdp certifies of one record in [-1, 1]^p, projected, and its smoothly flipped signs."""
    domain = Domain(n_rows=1, n_features=p, row_norm=math.sqrt(p), entry_bound=1.0, max_missing=0)
    behind, distance = RandomProjection(k, family=family).stability_map(domain, adjacency.entrance_distance(p))
    unit = widest_change(behind, distance)
    return float(lookup("signs.smooth", "privacy")(behind, distance, noise_scale=1 / eta, unit=unit).epsilon(0.0))


def _dense() -> Comparison:
    k, epsilon = 8, 1.0
    W = 1.0 - 2.0 * np.random.default_rng(0).integers(0, 2, (3, k))
    left, right = np.array([[0.5, 0.0, 0.0]]), np.array([[-0.5, 0.0, 0.0]])
    one, other = (smooth((u @ W)[0], 1.0, epsilon / k) for u in (left, right))
    return Comparison(
        "loss over all outputs",
        pure(epsilon=epsilon),
        loss(one, other),
        f"Rademacher W, k = {k}, β = 1, ε = 1: u = (±1/2, 0, 0). All signs differ, all L_j are 1.",
        certified("rademacher", k, 3, Adjacency.change(coordinate=1.0), epsilon / k),
        data={"left": left, "right": right, "beta": 1.0},
    )


def _binned() -> Comparison:
    left, right = np.array([[0.5, 0.3]]), np.array([[-0.5, 0.3]])
    one, other = (smooth(u[0], 1.0, 1.0) for u in (left, right))
    return Comparison(
        "loss over all outputs",
        pure(epsilon=1.0),
        loss(one, other),
        "Two bins of one coordinate, β = 1, ε = 1: u = (±1/2, 0.3). One sign differs.",
        certified("oporp", 2, 2, Adjacency.change(coordinate=1.0), 1.0),
        data={"left": left, "right": right, "beta": 1.0},
    )


def _binned_l1() -> Comparison:
    k = 8
    left, right = small_record(k)
    one, other = (smooth(u[0], 1.0, 1.0) for u in (left, right))
    return Comparison(
        "loss over all outputs",
        pure(epsilon=1.0),
        loss(one, other),
        f"{k} bins of one coordinate, β = 1, ε = 1: all coordinates are 10⁻⁶ or all are −10⁻⁶, in the "
        f"sum {1e6 * np.abs(left - right).sum():.2g}·10⁻⁶ apart.",
        certified("oporp", k, k, Adjacency.change(l1=1.0), 1.0),
        data={"left": left, "right": right, "beta": 1.0, "k": k},
    )


_PAGE = ("signs", ("signs.smooth", "signs.randomized-response", "signs.staircase"))
_BODY = "Algorithm 5 is not in the text that was checked. "

CLAIMS = (
    Claim(
        "sign-thm-4.6",
        PAPER,
        "Theorem 4.6",
        "DP-SignRP-RR-smooth",
        "The sign of x_j is flipped with probability 1/(exp(L_j ε/k) + 1), L_j = ⌈|x_j|/(β max_i |W_ij|)⌉; for every "
        "W the result is ε-DP.",
        "ε",
        pure,
        "holds",
        "The proof leaves out x_j = 0, where a fair coin is thrown and the loss is no larger. In float64 exp(L_j "
        "ε/k) may leave a flip no probability, and ⌈·⌉ may jump by two levels: a floor for flips and a guard band "
        "are needed.",
        _dense,
        *_PAGE,
    ),
    Claim(
        "sign-section-4.3",
        PAPER,
        "Section 4.3",
        "DP-SignOPORP-RR and -smooth",
        f"{_BODY}Read here: flips with probability 1/(e^ε + 1), or 1/(exp(⌈|x_j|/β⌉ ε) + 1). If one coordinate "
        "changes, the result is ε-DP.",
        "ε",
        pure,
        "holds",
        "ε and not ε/k, since one bin changes; empty bins throw a fair coin.",
        _binned,
        *_PAGE,
    ),
    Claim(
        "sign-section-4.3-l1",
        PAPER,
        "Section 4.3 with Appendix E.2's neighbours",
        "DP-SignOPORP-RR and -smooth",
        "The same, read with neighbours at ‖u − u′‖₁ ≤ β, “more generally” allowed in Appendix E.2.",
        "ε",
        pure,
        "ambiguous",
        "All k bins may change at an arbitrarily small distance: the loss is kε, under L2 as well. True is kε, or ε "
        "for one coordinate. Laplace noise of scale β/ε on x before signs are taken costs ε under L1, too.",
        _binned_l1,
        *_PAGE,
    ),
)
