"""What "Provable privacy with non-private pre-processing" prints, as epsilons and moves.

The formulas are those of literature.
"""

from __future__ import annotations

import math

from literature import claim
from ppdp.privacy.renyi import ORDERS, gaussian_curve, linear_weak_triangle, renyi_epsilon_classic

DELTA = 1e-6
ALPHAS = tuple(order for order in ORDERS if order >= 11)
"""Table 2 holds for alpha >= 11 only."""


def table_two(mechanism: str, stage: str, base: float, largest: float = math.inf, **facts: float) -> float:
    """An entry of Table 2 as an epsilon at DELTA, by Lemma M; that of Laplace and exponential noise at delta 0.

    Parameters
    ----------
    mechanism, stage : str
        As in the ids of ``literature``: "gaussian", "descent", "pure", "samples", "iteration"; "quantization",
        "mean-imputation", "pca", "standard-scaling".
    base : float
        The epsilon that the formula starts from.
    largest : float
        Largest order that the mechanism allows.
    facts : float
        Of the stage.
    """
    entry = claim(f"table-2-{mechanism}-{stage}").bound
    if mechanism == "pure":
        return entry(alpha=11.0, epsilon=base, **facts)
    orders = [alpha for alpha in ALPHAS if alpha <= largest]
    return renyi_epsilon_classic(lambda alpha: entry(alpha=alpha, epsilon=base, **facts), DELTA, orders)


def theorem_two(base: float, total: float, c: float | None = None) -> float:
    """Theorem 2 for M_G as an epsilon at DELTA, by Lemma M at the best order.

    Parameters
    ----------
    base : float
        The epsilon of M_G in Table 1, ``alpha eps² / 2``.
    total : float
        ``Δ₂ Δ_∞``, as printed for a stage.
    c : float, optional
        Both ``c₁`` and ``c₂``. Default: the best of each.
    """
    moved, replaced = gaussian_curve(base * total), gaussian_curve(base)
    if c is None:
        best = linear_weak_triangle((base * total) ** 2 / 2, base**2 / 2)
        return renyi_epsilon_classic(best, DELTA)

    def larger(alpha: float) -> float:
        share, other = (alpha * c - 1) / (c * (alpha - 1)), (c * alpha - 1) / (c - 1)
        return max(share * moved(alpha * c) + replaced(other), share * replaced(alpha * c) + moved(other))

    return renyi_epsilon_classic(larger, DELTA)


def status(*names: str) -> str:
    """What ``docs/errata.md`` says of these claims."""
    found = [claim(name) for name in names]
    places = [f"Table 2, {c.subject}" if c.place.startswith("Table 2") else c.place for c in found]
    return "; ".join(f"{place}: {c.status}" for place, c in zip(places, found))


def moves(stage: str, **facts: float) -> float:
    """What Table 2 takes ``Δ₂ Δ_∞`` to be: ``1.05 alpha eps² (1 + moves²)`` is its entry for M_G."""
    entry = claim(f"table-2-gaussian-{stage}").bound(alpha=1.0, epsilon=1.0, **facts)
    return math.sqrt(entry / 1.05 - 1)


def clusters(eta: float, largest: int) -> dict[str, float]:
    """Proposition 3 for good clusters of at most so many rows."""
    return {"p": claim("prop-3-count").bound(largest=largest), "eta": claim("prop-3-distance").bound(eta=eta)}
