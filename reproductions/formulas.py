"""Figures that need no data: what formulas and drawn matrices give.

    python reproductions/formulas.py

**The papers** (see errata): Figure 1 of "Beyond additive noise"; Figures 1 and 2 of "LoRA and privacy"; Figures 7 to 12
of "Differential privacy with random projections and sign random projections"; Figure 2 of "LoRA provides differential
privacy by design".

**Here** each is a table, at parameters of our choice where the paper's are not in the text that was checked. Printed
bounds are those of ``literature``; where the text has no formula they are reconstructed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from _page import Section, run
from numpy.typing import NDArray

from literature.projections.joint import independent, normal_share
from literature.wishart.laws import beta_delta, epsilon_at, normal_delta, support, vector_delta
from literature.wishart.noisy import small_rank
from literature.wishart.vectors import both_sides, earlier, failure, later
from ppdp.privacy.gaussian import gaussian_mu

Array = NDArray[np.float64]
D = 200
FAMILIES = {"Gaussian": 0, "±1": 1, "s = 3": 3, "s = 10": 10}
"""Matrices of independent entries: of s > 0 one entry in s is ±√s, the others are 0."""


def drawn(rng: np.random.Generator, family: int, shape: tuple[int, ...]) -> Array:
    """A matrix of a family."""
    if not family:
        return rng.standard_normal(shape)
    signs = 1.0 - 2.0 * rng.integers(0, 2, shape)
    return signs * math.sqrt(family) * (rng.random(shape) < 1 / family)


def best(r: int, rho: float, delta: float) -> float:
    """The least ε of Theorem 1 of the earlier version over its parameters, at δ or less."""
    found = math.inf
    for t in np.linspace(0.02, 1.2, 30) * r:
        for spread in (4.0, 5.0):
            R = (math.sqrt(D) + math.sqrt(r) + spread) ** 2
            if min(failure(d=D, r=r, rho=rho, t=t, eta=eta, R=R) for eta in np.geomspace(0.01, 50, 12)) < delta:
                found = min(found, earlier(d=D, r=r, rho=rho, t=t, R=R))
    return found


def vectors(section: Section, settings: Sequence[tuple[int, float]]) -> None:
    """ε of vectors, exact and printed, at δ = 0.1 as in the earlier version and at 10⁻⁵."""
    rows: list[list[Any]] = []
    for r, rho in settings:
        exact = [epsilon_at(delta, partial(vector_delta, d=D, r=r, rho=rho)) for delta in (0.1, 1e-5)]
        sizes = {"d": D, "r": r, "rho": rho, "delta": 1e-5}
        printed = (later(**sizes), both_sides(**sizes)) if support(r, rho) < 1e-5 else (math.inf, math.inf)
        rows.append([r, f"{1 - rho:.0e}", exact[0], best(r, rho, 0.1), exact[1], *printed])
    section.text(
        f"**ZZᵀv, figures 1 of both versions.** d = {D}. Theorem 1 of the earlier version at the best of its "
        "parameters, δ = 0.1; that of the later one (reconstructed) at δ = 10⁻⁵, as it stands and with log a bounded "
        "on both sides. The exact ε falls with r and then grows."
    )
    head = ["r", "1 − ρ", "exact, 0.1", "earlier", "exact, 10⁻⁵", "later", "both sides"]
    section.table(head, rows)


def projections(section: Section) -> None:
    """δ of M(V + E), printed and exact, beside noise alone."""
    rows = []
    for r in (4, 16, 64, 256):
        noise, printed = float(normal_delta(1.0, np.array(0.8))), small_rank(epsilon=1.0, mu=0.8, d=512, r=r)
        rows.append([r, noise, printed, beta_delta(1.0, 0.8, d=512, r=r)])
    section.text("**M(V + E), figure 2 of the later version.** d = 512, ‖V − V′‖ = 0.8 σ, one column, δ at ε = 1.")
    section.table(["r", "noise alone", "Theorem 5 (reconstructed)", "exact"], rows)


def sensitivities(section: Section, rng: np.random.Generator, sizes: Sequence[int]) -> None:
    """The largest row of matrices, over √k."""
    k, rows = 256, []
    for p in sizes:
        lengths = [np.linalg.norm(drawn(rng, family, (p, k)), axis=1) / math.sqrt(k) for family in FAMILIES.values()]
        rows.append([p, *(float(length.max()) for length in lengths), 1.0])
    section.text("**Δ₂, figure 7 of the paper on signs.** β = 1, k = 256, one draw of W; OPORP has β itself.")
    section.table(["p", *FAMILIES, "OPORP"], rows)


def changing_signs(section: Section, rng: np.random.Generator, draws: int) -> None:
    """How often a sign can change, for a record of many entries and for one of two large ones."""
    p, beta, rows = 1000, 0.5, []
    many, few = rng.uniform(-1, 1, p), np.zeros(p)
    few[:2] = 0.5, 0.495
    for name, u, change in (("1000 entries", many, beta), ("two of 1/2", few, 0.01)):
        ratio = change / float(np.linalg.norm(u))
        shares, levels = [], []
        for family in FAMILIES.values():
            W = drawn(rng, family, (draws, p))
            image = np.abs(W @ u)
            shares.append(float((image <= change).mean()))
            levels.append(float((np.ceil(image / (change * np.abs(W).max(axis=1))) <= 1).mean()))
        rows.append([name, "(10)", normal_share(beta=change, norm=float(np.linalg.norm(u))), *shares])
        rows.append([name, "(11), L_j = 1", independent(p=p, r=ratio), *levels])
    section.text(
        f"**Signs that can change, figures 8 to 10.** Shares of {draws:,} columns w of p = {p} entries: |wᵀu| ≤ β, "
        "beside (10), and |wᵀu| ≤ β max|w_i|, beside (11) for Gaussian w, which is also L_j ≤ 1. β = 0.5 for a record "
        "of uniform entries, as in the paper, where the formulas are close. For one of two large entries (β = 0.01) "
        "(10) is far off unless w is Gaussian: for w = ±1 the sum is ±0.005 half of the time."
    )
    section.table(["u", "formula", "value", *FAMILIES], rows)


def raw_data(section: Section) -> None:
    """The ratio of variances, and the optimal noise."""
    p, rows = 1000, []
    for sigma in (0.03, 0.1, 1.0, 10.0):
        gains = [(2 + p * sigma**2) / (2 + k * sigma**2 + 1 / (k * sigma**2)) for k in (10, 50, 100, 500)]
        rows.append([sigma, *gains])
    section.text("**R of (16), figure 11.** p = 1000, at the same σ for both.")
    section.table(["σ", *(f"k = {k}" for k in (10, 50, 100, 500))], rows)
    section.text("**The optimal σ, figure 12.** δ = 10⁻⁶; in proportion to Δ₂.")
    budgets = (0.5, 1.0, 5.0, 10.0, 20.0, 100.0)
    section.table(["ε", *map(str, budgets)], [["σ/Δ₂", *(1 / gaussian_mu(epsilon, 1e-6) for epsilon in budgets)]])


def gradients(section: Section) -> None:
    """Bias and size of what A adds to one gradient."""
    n, rows = 768, []
    for r in (4, 16, 64, 256):
        rows.append([r, math.sqrt((n + 1) / r), 1.0, math.sqrt((n + 1) * r) / n, r / n])
    section.text(
        f"**The noise of one gradient, figure 2 of the paper on sketches.** n = {n}: the root mean square of ‖G AᵀA − "
        "E G AᵀA‖ over ‖G‖, and the share of G that is left on average. Both are exact (Lemma 6.1)."
    )
    head = ["r", "noise, variance 1/r", "left, variance 1/r", "noise, variance 1/n", "left, variance 1/n"]
    section.table(head, rows)


def build(section: Section) -> None:
    """All tables."""
    rng = np.random.default_rng(0)
    ranks, cosines = ((20, 200), (0.999,)) if section.quick else ((20, 50, 100, 200, 500, 2000), (0.99, 0.9999))
    vectors(section, [*((r, 0.999) for r in ranks), *((200, rho) for rho in cosines if rho != 0.999)])
    projections(section)
    sensitivities(section, rng, (100, 1000) if section.quick else (100, 1000, 10_000))
    changing_signs(section, rng, 2000 if section.quick else 20_000)
    raw_data(section)
    gradients(section)


def main(arguments: Sequence[str] | None = None) -> str:
    """Run the command."""
    return run("formulas", __doc__, build, arguments)


if __name__ == "__main__":
    main()
