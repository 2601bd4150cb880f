"""What is released goes to what scikit-learn computes as rows grow: errors against rows, at epsilon = 1.

    python benchmarks/consistency.py [--rows 1000 4000 ...] [--draws 2] [--only NAME ...]

For every registered class and some pipelines of them (``tests/helpers/limits.py``), on generated tables that are mild,
skewed, with heavy tails, one-hot, collinear and of a rare class. Prints a table of the worst error of each, and of what
it goes to where that is not scikit-learn's; the picture is ``docs/images/consistency.png``.
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from ppdp.exceptions import NoRoute, PrivacyRefusal

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))
from growing_tables import FAMILIES, Table
from limits import ENTRIES, Entry

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "consistency.png"
COLOURS = dict(zip(FAMILIES, ("#0072B2", "#56B4E9", "#D55E00", "#009E73", "#CC79A7", "#000000")))
LEAST = 1e-5  # errors are drawn from here on


def error(entry: Entry, name: str, n: int, draws: int) -> float:
    """Mean error of some draws; NaN where no route can be certified."""
    try:
        return float(np.mean([entry.error(Table(name, n, seed)) for seed in range(draws)]))
    except (NoRoute, PrivacyRefusal):
        return math.nan


def picture(errors: dict[tuple[str, str], list[float]], rows: Sequence[int]) -> None:
    """One panel for each entry that is fitted; dotted what noise alone would leave."""
    from matplotlib.figure import Figure

    drawn = [
        entry
        for entry in ENTRIES
        if not (entry.fixed and entry.most <= 0.1) and (entry.name, entry.tables[0]) in errors
    ]
    lines = math.ceil(len(drawn) / 6)
    figure = Figure(figsize=(15, 2.1 * lines + 0.8), layout="constrained")
    panels = figure.subplots(lines, 6, squeeze=False, sharex=True, sharey=True).ravel()
    for panel, entry in zip(panels, drawn):
        for name in entry.tables:
            values = np.maximum(errors[entry.name, name], LEAST)
            panel.plot(rows, values, color=COLOURS[name], marker="o", markersize=2.5, linewidth=1, label=name)
        panel.plot(rows, [rows[0] / n for n in rows], color="#999999", linestyle=":", linewidth=1)
        panel.set(xscale="log", yscale="log", ylim=(LEAST, 20))
        panel.set_title(entry.name.replace(", ", ",\n") + (" *" if entry.instead else ""), fontsize=8)
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    for panel in panels[len(drawn) :]:
        panel.set_axis_off()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False)
    title = "Relative error against rows at ε = 1, δ = 10⁻⁷; dotted 1/n; * goes to something else than scikit-learn's"
    figure.suptitle(title, fontsize=10)
    figure.savefig(PICTURE, dpi=75)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", type=int, default=[1_000, 4_000, 16_000, 64_000, 250_000, 1_000_000])
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=[entry.name for entry in ENTRIES])
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # few rows are noisy, which is what is shown
    errors: dict[tuple[str, str], list[float]] = {}
    print(f"{'':<38}{'worst table':<13}" + "".join(f"{n:>11,}" for n in options.rows))
    with threadpool_limits(1):
        for entry in ENTRIES:
            if options.only and entry.name not in options.only:
                continue
            for name in entry.tables:
                errors[entry.name, name] = [error(entry, name, n, options.draws) for n in options.rows]
            worst = max(entry.tables, key=lambda name: np.nan_to_num(errors[entry.name, name][-1]))
            told = "".join(f"{value:>11.4f}" for value in errors[entry.name, worst])
            print(f"{entry.name:<38}{worst:<13}{told}  {entry.instead}", flush=True)
    if not options.only:
        picture(errors, options.rows)


if __name__ == "__main__":
    main()
