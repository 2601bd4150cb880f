"""Figure 2: what quantization, mean imputation and PCA cost before a Gaussian mechanism, against group privacy.

    python reproductions/figure_2.py

**The paper** plots the overall epsilon of M_G, an output f that is 1-Lipschitz and has global sensitivity 1, by group
privacy and by Theorem 2 (Table 2): (a) quantization, good clusters of 50 to 100 rows, eta = 0.01 and 0.1; (b) mean
imputation, 10 to 50 missing values, n = 100 and 53 (the axis reads "size of the dataset"); (c) PCA of rank k, n = 100
to 500, eigengap 0.15 and 0.07. The base epsilon and delta are not printed: here the mechanism alone is (1,
1e-6)-private.

**Here**: rows of norm at most 1; f is the sum of h(x) over the rows, h with values in [-1/2, 1/2] and 1-Lipschitz. Four
lines each: group privacy (exact for Gaussian noise, so more favourable than the usual rule), the printed bound, our
stability map with exact accounting, and the worst pair of neighbours that we can write down, whose loss is exact:
the distance of its two noiseless answers over the noise. A pair above the printed line refutes it.

Quantization stands twice. Proposition 3 assumes that good clusters have at most B rows, and is false under it: of two
rows each can spoil several clusters to which it does not belong (in three columns five, in more columns more). Ours
assumes that at most B rows crowd within 8 eta, where the count is right but a row may move by 2 eta.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial.distance import cdist

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import printed
from _page import Section, run, shown
from neighbours import Chain, Pair
from printed import DELTA
from worst_cases import rotation

from ppdp.distance import Distance
from ppdp.domain import Domain
from ppdp.mechanisms import GaussianMechanism
from ppdp.plot.canvas import BROKEN, FAINT, OURS, plain
from ppdp.privacy.gaussian import gaussian_epsilon, gaussian_mu
from ppdp.transformers import PCA, ClusterQuantizer, MeanImputer, RowMap

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = np.ndarray[Any, Any]
BASE = gaussian_mu(1.0, DELTA)
MECHANISM = GaussianMechanism("sum", noise_scale=1 / BASE)
HALF = [(-0.5, 0.5)]
FIRST = RowMap(lambda X: X[:, :1], out_ranges=HALF, lipschitz=1.0)
"""h for quantization and imputation: the first column."""
BOTH = RowMap(lambda X: np.minimum(X[:, :1], np.maximum(0.4 - X[:, :1], X[:, 1:2])), out_ranges=HALF, lipschitz=1.0)
"""h for PCA: the second column of rows near (1, 0), the first column of rows near 0. Both change most there."""
INSIDE = 1 - 1e-9  # so that rounding leaves rows within eta of each other
RING = 2.7  # distance of a spoiled cluster from the row that spoils it, in units of eta; must be below √8


@dataclass(frozen=True)
class Point:
    """One setting: epsilons, and the shares of our bound that the worst pair reaches."""

    x: int
    setting: str
    group: float
    printed: float
    ours: float
    worst: float
    share: float

    @property
    def cells(self) -> tuple[object, ...]:
        """A line of the table."""
        refuted = " **exceeds it**" if self.worst > self.printed else ""
        return self.setting, self.x, self.group, self.printed, shown(self.worst) + refuted, self.ours, self.share


def measured(
    x: int, setting: str, claimed: float, group: int, stages: list[Any], pair: Pair, max_missing: int = 0
) -> Point:
    """Everything about one setting: the printed epsilon, and how many further rows may change."""
    n, d = pair.left.X.shape
    domain = Domain(n_rows=n, n_features=d, row_norm=1.0, max_missing=max_missing)
    chain = Chain.of(stages, domain, Distance.neighbours())
    loss = MECHANISM.privacy_map(chain.domain, chain.distance)
    apart = np.linalg.norm(chain.run(pair.left).X.sum(axis=0) - chain.run(pair.right).X.sum(axis=0)) * BASE
    return Point(
        x,
        setting,
        MECHANISM.privacy_map(chain.domain, Distance.neighbours(1 + group)).epsilon(DELTA),
        claimed,
        loss.epsilon(DELTA),
        gaussian_epsilon(float(apart), DELTA),
        float(apart) / loss.mu,
    )


def crowd(eta: float, size: int) -> Pair:
    """At most ``size`` rows within 8 eta: around each of the two replaced rows a cluster, of which it is the centre."""
    eta *= INSIDE
    here, there = [0.5, 0.0, 0.0], [-0.5, 0.0, 0.0]
    around = [[0.5 - eta, 0.0, 0.0]] * (size - 2) + [[0.5, eta, 0.0]] + [[eta - 0.5, 0.0, 0.0]] * (size - 1)
    return Pair.of([here, *around], [there, *around])


def spoilers(eta: float, size: int) -> Pair:
    """Good clusters of ``size`` rows, five around each of the two replaced rows, which is between eta and 3 eta off.

    All but the centre of a cluster lie on that side of it which f rewards; by one row they are no good centre.
    """
    eta *= INSIDE
    turn = 2 * np.pi * np.arange(5) / 5
    ring = RING * eta * np.column_stack([np.zeros(5), np.cos(turn), np.sin(turn)])
    e = np.array([eta, 0.0, 0.0])
    high, low = ring + np.array([0.5, 0, 0]), ring - np.array([0.5, 0, 0])
    rows = [*np.repeat(high, size - 1, axis=0), *(high - e), *np.repeat(low, size - 2, axis=0), *(low + e)]
    return Pair.of([[0.5, 0, 0], *rows, *(low + 2 * e)], [[-0.5, 0, 0], *rows, *(low + 2 * e)])


def largest_good_cluster(X: Array, eta: float) -> int:
    """The paper's |B|: rows within eta of a row that has none between eta and 3 eta."""
    apart = cdist(X, X)
    near = (apart <= eta * (1 + 1e-9)).sum(axis=1)
    return int(near[near == (apart <= 3 * eta).sum(axis=1)].max(initial=0))


def quantization(sizes: list[int]) -> Iterator[Point]:
    """Panel a; the condition of each line is in its name."""
    for few, eta, size in product((False, True), (0.01, 0.1), sizes):
        facts = printed.clusters(eta, size)
        claimed = printed.table_two("gaussian", "quantization", BASE, **facts)
        pair = spoilers(eta, size) if few else crowd(eta, size)
        if few:  # then the pair is one of the paper's
            assert all(largest_good_cluster(rows.X, eta) == size for rows in (pair.left, pair.right))
        stages = [ClusterQuantizer(eta, max_cluster=size, low_dimension=few), FIRST]
        yield measured(size, f"η = {eta:g}, B within {2 if few else 8}η", claimed, int(facts["p"]), stages, pair)


def imputation(counts: list[int]) -> Iterator[Point]:
    """Panel b: the replaced row goes from 1 to -1, all others are 0 or missing."""
    for n, p in product((100, 53), counts):
        claimed = printed.table_two("gaussian", "mean-imputation", BASE, n=n, p=p)
        rest = [[0.0]] * (n - p - 1) + [[np.nan]] * p
        pair = Pair.of([[1.0], *rest], [[-1.0], *rest])
        stages = [MeanImputer(min_observed=n - p, max_missing=p, statistics="exact"), FIRST]
        yield measured(p, f"n = {n}", claimed, p, stages, pair, max_missing=n)


def projection(sizes: list[int]) -> Iterator[Point]:
    """Panel c: the replaced row is reflected in the leading axis, which turns; all rows are on the unit circle."""
    for gap, n in product((0.15, 0.07), sizes):
        case = rotation(n, gap, everywhere=True)
        claimed = printed.table_two("gaussian", "pca", BASE, gap=case.stage.min_gap)
        stages = [PCA(1, min_gap=case.stage.min_gap, statistics="exact"), BOTH]
        yield measured(n, f"gap ≈ {gap:g}", claimed, n - 1, stages, case.pair)


PANELS = (
    ("(a) quantization", "largest cluster B"),
    ("(b) mean imputation", "missing values"),
    ("(c) PCA, rank reduction", "rows n"),
)


def draw(ax: Axes, points: list[Point], title: str, label: str) -> None:
    """One panel; solid lines for the first parameter, dashed for the second."""
    settings = list(dict.fromkeys(p.setting for p in points))
    for k, setting in enumerate(settings):
        mine = [p for p in points if p.setting == setting]
        xs, dashes = [p.x for p in mine], ("-", "--")[k % 2]
        if k < 2:
            parameter = setting.partition(",")[0]
            ax.plot(xs, [p.printed for p in mine], color=BROKEN, linestyle=dashes, label=f"printed, {parameter}")
            ax.plot(xs, [p.ours for p in mine], color=OURS, linestyle=dashes, label=f"ours, {setting}")
        ax.plot(xs, [p.worst for p in mine], "x" if k < 2 else "^", color="black" if k < 2 else BROKEN, markersize=4)
    group = {p.x: p.group for p in points}
    ax.plot(list(group), list(group.values()), color=FAINT, linestyle=":", label="group privacy")
    ax.plot([], [], "x", color="black", markersize=4, label="worst pair for ours, exact")
    if len(settings) > 2:
        ax.plot([], [], "^", color=BROKEN, markersize=4, label="a pair of the printed condition, exact")
    ax.set_yscale("log")
    ax.set_title(title, fontsize=10)
    ax.set_xlabel(label)
    ax.legend(frameon=False, fontsize=6.5, loc="upper left")
    low, high = ax.get_ylim()
    ax.set_ylim(low, high * 30)  # room for the legend
    plain(ax)


def build(section: Section) -> None:
    """Compute the three panels."""
    from matplotlib.figure import Figure

    quick = section.quick
    panels = (
        list(quantization([50, 100] if quick else list(range(50, 101, 10)))),
        list(imputation([10, 50] if quick else list(range(10, 51, 5)))),
        list(projection([101, 500] if quick else [101, 150, 200, 250, 300, 350, 400, 450, 500])),
    )
    figure = Figure(figsize=(13, 4.8), layout="constrained")
    for ax, points, words in zip(figure.subplots(1, 3), panels, PANELS):
        draw(ax, points, *words)
        ax.set_ylabel("ε at δ = 10⁻⁶, base ε = 1" if ax.get_subplotspec().is_first_col() else "")
    section.text(
        "The mechanism alone is (1, 10⁻⁶)-private. *Share* is what the worst pair written down reaches of our μ; "
        "its ε is exact."
    )
    section.picture(figure, "overall epsilon by group privacy, as printed, ours, and of the worst pair")
    ends = [p for points in panels for p in points if p.x in (50, 100, 10, 101, 500) or quick]
    section.table(
        ("setting", "B, missing or n", "group privacy", "printed", "worst pair", "ours", "share"),
        [p.cells for p in ends],
    )
    refuted = [p for points in panels for p in points if p.worst > p.printed]
    section.text(
        "**Does not survive: panel (a).** Proposition 3 is false: pairs whose good clusters have at most B rows "
        f"exceed it in {len(refuted)} settings, because a row spoils clusters that it is no part of. If instead at "
        "most B rows crowd within 8η, as many move as printed, and we need no more than printed, without its losses "
        "in accounting. **Panel (b) survives** for one column (in several, gaps that change refute Corollary 4, see "
        "Table 2), **and panel (c)**, where 12.2 should read 1. That PCA costs a constant is true, but the "
        "constant is 1 + 1/gap, and the gap of k components is at most 1/k."
    )


def main(arguments: list[str] | None = None) -> str:
    """Run the command."""
    return run("figure_2", __doc__, build, arguments)


if __name__ == "__main__":
    main()
