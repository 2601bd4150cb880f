"""What every stage costs, from public facts alone: the table and picture of the guide "Which transformer?".

    python benchmarks/cost.py            # print the table
    python benchmarks/cost.py --write    # put table and picture into the guide

The unit is replaced rows: how often as much as one replaced row the stage lets a sum of its output rows change. Noise
on a mean grows by that factor, and by that of the norm of the rows. No data are needed.
"""

from __future__ import annotations

import math
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ppdp import Adjacency, Domain
from ppdp.certificate.pages.derivation import Point
from ppdp.exceptions import PpdpError
from ppdp.mechanisms import LogisticRegression
from ppdp.transformers import (
    PCA,
    ClusterDeduplicator,
    ClusterQuantizer,
    Deduplicator,
    GridDeduplicator,
    GridQuantizer,
    LSHDeduplicator,
    MeanImputer,
    MedianImputer,
    MinMaxScaler,
    NormClipper,
    RandomProjection,
    RegressionImputer,
    RobustScaler,
    RowMap,
    SoftPCA,
    StandardScaler,
    TrimmedMeanImputer,
)

ONE = Adjacency.replace().distance

GUIDE = Path(__file__).parents[1] / "docs" / "guides" / "which-transformer.md"
PICTURE = GUIDE.parents[1] / "images" / "cost.png"
BEGIN, END = "<!-- costs: printed by benchmarks/cost.py -->", "<!-- end of costs -->"
MODELS, MODELS_END = "<!-- models: printed by benchmarks/cost.py -->", "<!-- end of models -->"

SIZES = ((1_000, 5), (10_000, 20), (100_000, 50))
GAPPY = 0.1  # share of the rows that may have gaps

STAGES: tuple[tuple[str, Callable[[], Any], bool], ...] = (
    ("MinMaxScaler(ranges=...)", lambda: MinMaxScaler((-1, 1)), False),
    ('MinMaxScaler(ranges="private")', lambda: MinMaxScaler("private"), False),
    ("NormClipper()", NormClipper, False),
    ("RowMap(f, out_ranges=...)", lambda: RowMap(out_ranges=(-1, 1)), False),
    ("RandomProjection(10)", lambda: RandomProjection(10), False),
    ("GridQuantizer()", GridQuantizer, False),
    ("Deduplicator()", Deduplicator, False),
    ("Deduplicator(label_rule='unanimous')", lambda: Deduplicator(label_rule="unanimous"), False),
    ("Deduplicator(subset=[0])", lambda: Deduplicator([0]), False),
    ("GridDeduplicator()", GridDeduplicator, False),
    ("GridDeduplicator(keep='soft')", lambda: GridDeduplicator(keep="soft"), False),
    ("GridDeduplicator(keep='first')", lambda: GridDeduplicator(keep="first"), False),
    ("LSHDeduplicator(bands=4)", lambda: LSHDeduplicator(bands=4, mode="simhash"), False),
    ("ClusterDeduplicator()", ClusterDeduplicator, False),
    ("ClusterQuantizer()", ClusterQuantizer, False),
    ("MeanImputer()", lambda: MeanImputer(max_missing=GAPPY), True),
    ("TrimmedMeanImputer()", lambda: TrimmedMeanImputer(max_missing=GAPPY), True),
    ("MedianImputer()", lambda: MedianImputer(max_missing=GAPPY), True),
    ("RegressionImputer()", lambda: RegressionImputer(max_missing=GAPPY), True),
    ("StandardScaler()", StandardScaler, False),
    ("StandardScaler(per_column=False)", lambda: StandardScaler(per_column=False), False),
    ("RobustScaler()", RobustScaler, False),
    ("MinMaxScaler(quantiles=...)", lambda: MinMaxScaler(quantiles=(0.05, 0.95)), False),
    ("PCA(3)", lambda: PCA(3), False),
    ("PCA(3, output='projected')", lambda: PCA(3, output="projected"), False),
    ("PCA(3, output='aligned')", lambda: PCA(3, output="aligned"), False),
    ("SoftPCA()", SoftPCA, False),
)


def facts(n: int, d: int, gaps: bool) -> Domain:
    """Rows whose entries lie in [-1, 1] by public ranges."""
    return Domain(
        n_rows=n,
        n_features=d,
        row_norm=math.sqrt(d),
        entry_bound=1.0,
        min_present=n,
        max_missing=None if gaps else 0,
    )


def lines() -> list[tuple[str, str, str, list[float]]]:
    """Stage, way, what else the way needs, and its cost at every size."""
    found = []
    for title, make, gaps in STAGES:
        costs: dict[str, tuple[str, list[float]]] = {}
        for n, d in SIZES:
            try:
                ways = make().fit_modes(facts(n, d, gaps), ONE)
            except PpdpError:
                ways = ()
            for way in ways:
                needs = [condition.name for condition in way.conditions]
                extra = f"gate on {' and '.join(needs)}" if needs else "release" if way.name == "noisy" else ""
                _, column = costs.setdefault(way.name, (extra, []))
                column.append(Point("", way.distance, way.domain.row_norm).rows)
        found += [(title, way, extra, column) for way, (extra, column) in costs.items()]
    return found


def before_a_model(title: str) -> list[float]:
    """What the exact way costs in front of a model, as a multiple of its price, at every size."""
    (make, gaps), found = next((make, gaps) for name, make, gaps in STAGES if name == title), []
    for n, d in SIZES:
        domain = facts(n, d, gaps)
        (way,) = (way for way in make().fit_modes(domain, ONE) if way.name == "exact")
        alone, behind = (
            LogisticRegression((0, 1), solver="dpgd").query_spec(where).sensitivity(where, distance)
            for where, distance in (
                (domain.but(max_missing=0, classes=(0, 1)), ONE),
                (way.domain.but(max_missing=0, classes=(0, 1)), way.distance),
            )
        )
        found.append(behind / alone / Point("", way.distance, way.domain.row_norm).rows)
    return found


def models() -> str:
    """The sentence of the guide on what a model pays."""
    shown = {title: before_a_model(title) for title in ("StandardScaler()", "PCA(3)", "SoftPCA()", "MeanImputer()")}
    first, *rest = (f"`{title}` {{}}{number(min(many))} to {number(max(many))}" for title, many in shown.items())
    words = ", ".join([first.format("costs "), *(one.format("") for one in rest)])
    return textwrap.fill(f"an exact {words} times what the table says.", 120, break_on_hyphens=False)


def number(cost: float) -> str:
    """Two or three digits."""
    return f"{cost:,.0f}" if cost >= 100 else f"{cost:.3g}"


def table() -> str:
    """The table of the guide."""
    sizes = " | ".join(f"n = {n:,}, d = {d}" for n, d in SIZES)
    rows = [f"| stage | way | needs | {sizes} |", "|---|---|---|" + "---:|" * len(SIZES)]
    for title, way, extra, column in lines():
        rows.append(f"| `{title}` | {way} | {extra} | {' | '.join(map(number, column))} |")
    return "\n".join(rows)


def draw() -> None:
    """Bars of the cost at the middle size."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown = [(f"{title}  {way}", column[1]) for title, way, _, column in lines() if way != "public"][::-1]
    colours = ["#2f7f79" if cost <= 1.01 else "#d08a4e" if cost <= 50 else "#a3465a" for _, cost in shown]
    _, ax = plt.subplots(figsize=(9, 0.27 * len(shown) + 1), layout="constrained")
    ax.barh([name for name, _ in shown], [cost for _, cost in shown], color=colours)
    ax.set_xscale("log")
    ax.set_xlim(0.8, None)
    ax.axvline(1, color="#7c8a97", linewidth=0.8)
    for position, (_, cost) in enumerate(shown):
        ax.annotate(f" {number(cost)}", (cost, position), va="center", fontsize=8)
    n, d = SIZES[1]
    ax.set_xlabel(f"how far a sum of the rows can change, in replaced rows (n = {n:,}, d = {d})")
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(axis="y", labelsize=8)
    ax.figure.savefig(PICTURE, dpi=130)


def main(write: bool) -> None:
    """Print the table and the sentence, or put them into the guide."""
    if not write:
        print(table(), models(), sep="\n\n")
        return
    text = GUIDE.read_text("utf-8")
    for begin, words, end in ((BEGIN, table(), END), (MODELS, models(), MODELS_END)):
        head, rest = text.split(begin)
        text = f"{head}{begin}\n\n{words}\n\n{end}{rest.split(end)[1]}"
    GUIDE.write_text(text, "utf-8")
    draw()


if __name__ == "__main__":
    main("--write" in sys.argv[1:])
