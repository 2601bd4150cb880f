"""Table 4: clipping rows before they are projected, in the repaired form.

    python reproductions/table_4.py

**The paper** (Appendix F.2) fits PCA on the rows as they are, with norms up to R, clips the rows to C = 0.1, 0.7 and
0.99 R, projects the clipped rows, and reports that this cuts the sensitivity from 12 R / (n gap) to 12 C / (n gap). R
is the largest norm in the data. Its numbers are called excess empirical loss, but grow with epsilon and lie between
0.84 and 0.90, as accuracies do.

**Repaired**: R is public, here 1. A projector that is fitted on rows of norm R turns by R² / (n gap), so clipped rows
move by C R² / (n gap): with the gap of these rows the printed bound is exceeded where R² > 12, shown here by a pair;
with that of the rows over R, or on the unit ball, it holds. Better is to clip first and to fit PCA on what is left: C³
/ (n gap of the clipped rows). Both behind a gate, told the largest bound on the eigengap
that it lets pass, with rows as in figure_3.py, but for norms that spread (median 0.5). Every C has the same balls and
steps to choose from; the best setting in hindsight, shown by fresh runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from _learning import Array, Data, classification, projector
from _page import Section, run, shown
from _ways import ENDLESS, RANK, Grid, Learner, Variants, best, calibrated, plan, planned, tested
from figure_3 import COLUMNS, FRESH, TAIL, cell, mean_and_spread, survives
from printed import DELTA
from threadpoolctl import threadpool_limits

from literature import claim
from ppdp.core.adjacency import Adjacency
from ppdp.core.distance import Distance
from ppdp.privacy.gate import Gate
from ppdp.privacy.gaussian import gaussian_mu
from ppdp.transformers import PCA, NormClipper

CLIPS, EPSILONS = (0.1, 0.7, 0.99), (1.0, 2.0, 5.0)
ACCURACIES = {1.0: (0.84, 0.89, 0.88, 0.89), 2.0: (0.84, 0.89, 0.89, 0.89), 5.0: (0.85, 0.90, 0.90, 0.90)}
"""Table 4 as printed; the last column is without a clip."""
GATE_SHARE = 0.05
FREE = Grid((*(4.0**i for i in range(-1, 9)), ENDLESS), (10.0, *(40.0 * 2**i for i in range(7)), ENDLESS))
SMOOTH = Grid((*(4.0**i for i in range(-4, 6)), ENDLESS), tuple(2.0**i for i in range(10)))
"""The same for every clip, so as wide as the shortest and the longest need; see _ways.py."""


def spread_out(data: Data, seed: int) -> Data:
    """The same rows with norms of their own, at most 1."""
    norms = np.minimum(1 - 1e-6, 0.5 * np.exp(0.35 * np.random.default_rng(seed).standard_normal(len(data.X))))
    return replace(data, X=data.X * norms[:, None].astype(np.float32))


def clipped(data: Data, norm: float) -> Data:
    """Rows clipped to a norm."""
    longest = np.linalg.norm(data.X, axis=1, keepdims=True)
    return replace(data, X=data.X * np.minimum(1, (norm * (1 - 1e-6)) / np.maximum(longest, 1e-9)))


def after(data: Data, norm: float, epsilon: float) -> Variants:
    """PCA fitted on rows of norm 1, applied to clipped ones."""
    mu = gaussian_mu(epsilon, DELTA)
    gate = Gate.of_budget(mu * math.sqrt(GATE_SHARE), DELTA, adding=False, n_rows=len(data.X))
    min_gap = tested(gate, data.eigengap(RANK), len(data.X))
    if min_gap <= 0:
        return []
    turned = PCA(RANK, with_mean=False, min_gap=min_gap, fit_mode="exact").stability_map(
        data.domain, Adjacency.replace().distance
    )[1]
    moves = Distance(replaced=1, moved=turned.moved, radius=norm * turned.radius)
    domain, left = data.domain.but(row_norm=norm), mu * math.sqrt(1 - GATE_SHARE)

    def noise(radius: float) -> float:
        return calibrated(domain, moves, left, radius)

    X = clipped(data, norm).X @ projector(data.moment, RANK).astype(np.float32)
    return [Learner(X, data.X, data.y, data.columns, noise, SMOOTH)]


def before(data: Data, norm: float, epsilon: float) -> Variants:
    """PCA fitted on the clipped rows: a plan of ppdp."""
    short, clip = clipped(data, norm), ("shorten", NormClipper(norm))
    gate = plan(data.domain, epsilon, 1.0, clip, ("pca", PCA(RANK, with_mean=False, fit_mode="exact"))).gate
    min_gap = tested(gate, short.eigengap(RANK) / norm**2, len(data.X))
    if min_gap <= 0:
        return []
    noise = planned(data.domain, epsilon, clip, ("pca", PCA(RANK, with_mean=False, min_gap=min_gap, fit_mode="exact")))
    X = short.X @ projector(short.moment, RANK).astype(np.float32)
    return [Learner(X, data.X, data.y, data.columns, noise, SMOOTH)]


def bare(data: Data, norm: float, epsilon: float) -> Variants:
    """No PCA at all."""
    mu = gaussian_mu(epsilon, DELTA)

    def noise(radius: float) -> float:
        return calibrated(data.domain.but(row_norm=norm), Adjacency.replace().distance, mu, radius)

    return [Learner(clipped(data, norm).X, data.X, data.y, data.columns, noise, FREE)]


FORMS: dict[str, Callable[[Data, float, float], Variants]] = {
    "clip, then fit": before,
    "fit, then clip": after,
    "clip, no PCA": bare,
}


@dataclass(frozen=True)
class Risks:
    """Excess risks: (rows, form, epsilon, clip) -> risk of every data set, NaN where the gate refuses."""

    found: dict[tuple[int, str, float, float], Array]

    def ahead(self, one: tuple[int, str, float, float], other: tuple[int, str, float, float]) -> bool:
        """Whether one is lower than another by more than the standard deviation of the difference."""
        mean, spread = mean_and_spread(self.found[other] - self.found[one])
        return mean > spread


def measured(sets: dict[int, list[Data]], epsilons: tuple[float, ...]) -> Risks:
    """Excess risks of the best setting for the mean over the data sets."""
    risks = Risks({})
    for (n, data), form, epsilon, norm in product(sets.items(), FORMS, epsilons, (*CLIPS, 1.0)):
        variants = [FORMS[form](one, norm, epsilon) for one in data]
        where = f"{form}, n = {n}, epsilon = {epsilon}, C = {norm}" if len(data) > 1 else ""
        risks.found[n, form, epsilon, norm] = best(data, variants, 4 if where and n < 10_000 else 1, FRESH, where)
    return risks


def attained() -> tuple[float, float, float]:
    """How far a projector fitted on rows of norm 10 turns, what is printed for rows clipped to 1, and ours."""
    n, R = 2000, 10.0
    X = np.zeros((n, 2))
    X[:30, 0], X[30:58, 1] = R, R
    Y = X.copy()
    X[-1], Y[-1] = [R / math.sqrt(2), R / math.sqrt(2)], [R / math.sqrt(2), -R / math.sqrt(2)]
    gap = min(float(np.ptp(np.linalg.eigvalsh(rows.T @ rows / n))) for rows in (X, Y))
    turned: Array = np.subtract(*(projector(rows.T @ rows / n, 1) for rows in (X, Y)))
    return float(np.linalg.norm(turned, 2)), claim("appendix-f2").bound(rows=n, gap=gap, clip=1.0), R**2 / (n * gap)


def moves(data: Data) -> Iterator[tuple[object, ...]]:
    """What all rows together move by, in units of C, at half of the true gap."""
    for norm in (*CLIPS, 1.0):
        short, n = clipped(data, norm), len(data.X)
        gaps = data.eigengap(RANK), short.eigengap(RANK)
        told = n * claim("appendix-f2").bound(rows=n, gap=gaps[0] / 2, clip=norm) / norm
        yield norm, *gaps, told, 2 / gaps[0], 2 * norm**2 / gaps[1]


def build(section: Section) -> None:
    """Moves, then risks."""
    sizes, epsilons, seeds = ((1000,), EPSILONS[:1], 1) if section.quick else ((1000, 100_000), EPSILONS, 3)
    sets = {n: [spread_out(classification(n, COLUMNS, RANK, TAIL, seed), seed) for seed in range(seeds)] for n in sizes}
    reached, told, ours = attained()
    assert reached > told, "the pair does not exceed what is printed"
    section.text(
        f"R = 10, rows clipped to 1 behind a projector of unclipped rows: a pair moves a row by {shown(reached)}, "
        f"printed {shown(told)}, true bound {shown(ours)}. **The printed sensitivity depends on the reading**: with "
        "the gap of these rows it is exceeded, with that of the rows over R it holds. From here on R = 1: both "
        "readings are one, and its factor of 12 covers the difference."
    )
    section.text("All rows together, in units of C, at half of the eigengap.")
    header = ("C", "gap before", "gap behind the clip", "printed", "fit, then clip", "clip, then fit")
    section.table(header, moves(sets[sizes[-1]][0]))
    zero = [f"{cell(np.array([one.zero_risk for one in data]))} with {n:,} rows" for n, data in sets.items()]
    section.text(
        f"Excess empirical risk, certified, mean ± standard deviation of {seeds} data sets of ours (norms with median "
        f"0.5, else as in Figure 3), not the paper's experiment. The model 0 has {' and '.join(zero)}. The setting of "
        f"every cell is the best in hindsight, of the same {FREE.size} ({SMOOTH.size} with PCA) for every C, shown by "
        "fresh runs; no best one lies on an edge beyond which a better one could be, where it gains more than 0.02 on "
        "the model 0. The gate is told the largest bound on the eigengap that it lets pass 99 times in 100. In "
        "brackets, at its order and 1,000 rows, what Table 4 prints: captioned excess empirical loss, but the figures "
        "rise with ε, and the text speaks of accuracy."
    )
    with threadpool_limits(1):  # small products wait for each other's threads
        risks = measured(sets, epsilons)
    section.table(("rows", "order", "ε", *(f"C = {c:g}" for c in CLIPS), "no clip"), table(risks))
    for n, data in sets.items():
        section.text(verdict(risks, n, data, epsilons))


def table(risks: Risks) -> Iterator[list[str]]:
    """A row for every number of rows, order and epsilon."""
    for n, form, epsilon in dict.fromkeys(key[:3] for key in risks.found):
        cells = [cell(risks.found[n, form, epsilon, norm]) for norm in (*CLIPS, 1.0)]
        if n == 1000 and form == "fit, then clip":
            cells = [f"{found} ({printed:.2f})" for found, printed in zip(cells, ACCURACIES[epsilon])]
        yield [f"{n:,}", form, f"{epsilon:g}", *cells]


def verdict(risks: Risks, n: int, data: list[Data], epsilons: tuple[float, ...]) -> str:
    """What the figures say of clips and of PCA, with so many rows."""
    orders = [form for form in FORMS if form != "clip, no PCA"]
    cells = list(product(orders, epsilons, (*CLIPS, 1.0)))
    passed = [place for place in cells if not np.isnan(risks.found[(n, *place)]).any()]
    words = f"With {n:,} rows the gate refuses in {len(cells) - len(passed)} of {len(cells)} cells. "
    if not passed:
        gaps = [clipped(one, norm).eigengap(RANK) / norm**2 for one in data for norm in (*CLIPS, 1.0)]
        share = gaussian_mu(epsilons[-1], DELTA) * math.sqrt(GATE_SHARE)
        needed = Gate.of_budget(share, DELTA, adding=False, n_rows=n).needed_margin()
        return words + (
            f"So **on these rows no certified pipeline with PCA releases anything**: the eigengap is at most "
            f"{shown(max(gaps))} C², a margin of {shown(n * max(gaps) / 2)} rows, as a replaced one takes up to 2 C²/n "
            f"of it, and the gate asks for {shown(needed)} even at ε = {epsilons[-1]:g}."
        )
    behind = [p for p in passed if risks.ahead((n, "clip, no PCA", *p[1:]), (n, *p))]
    helps = {form: [e for e in epsilons if risks.ahead((n, form, e, CLIPS[0]), (n, form, e, 1.0))] for form in FORMS}
    first = [e for e in epsilons if risks.ahead((n, orders[0], e, CLIPS[0]), (n, orders[1], e, CLIPS[0]))]
    gap, wide = (clipped(data[0], norm).eigengap(RANK) / norm**2 for norm in (1.0, CLIPS[0]))
    return words + (
        "*Ahead* and *behind* mean by more than the standard deviation of the difference. "
        f"PCA is behind the same clip without PCA in {len(behind)} of {len(passed)}. "
        f"**{survives(len(helps[orders[1]]), len(epsilons))}: that a short clip helps behind PCA.** C = {CLIPS[0]} is "
        f"ahead of no clip {at(helps[orders[1]])} in the paper's order, {at(helps[orders[0]])} if clipped first, "
        f"{at(helps['clip, no PCA'])} without PCA. Clipping first is ahead of clipping last {at(first)}: in units of "
        f"C², rows of more equal length have a gap of {shown(wide)} where the others have {shown(gap)}."
    )


def at(epsilons: list[float]) -> str:
    """Epsilons in words."""
    return "at ε = " + ", ".join(f"{e:g}" for e in epsilons) if epsilons else "nowhere"


def main(arguments: list[str] | None = None) -> str:
    """Run the command."""
    return run("table_4", __doc__, build, arguments)


if __name__ == "__main__":
    main()
