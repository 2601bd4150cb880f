"""Test accuracy of certified pipelines against diffprivlib, against no pre-processing and against no privacy.

    python benchmarks/utility.py [--data NAME ...] [--seeds 10] [--epsilon 0.1 0.5 ...] [--fresh]

Needs scikit-learn < 1.8 and diffprivlib (``pip install "ppdp[diffprivlib,demo]"``). A seed decides the split and all
noise, so the figures can be reproduced. Every finished fit is appended to ``benchmarks/utility.csv`` and not repeated
by the next run. Differences are printed last, in points of accuracy; the picture is ``benchmarks/utility.png``.

Ours protects one replaced row with delta = 1e-6. Of diffprivlib its parameter epsilon is taken, with delta = 0: it does
not say for which neighbours, and with the default intercept of its logistic regression no epsilon holds
(``docs/theory/diffprivlib.md``).
"""

from __future__ import annotations

import argparse
import csv
import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _competitors import DATA, Data, diffprivlib, ours, repaired_bingham, without_privacy
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from ppdp.exceptions import ImpossibleBudget, NoRoute

HERE = Path(__file__).parent
CSV, PICTURE = HERE / "utility.csv", HERE / "utility.png"
FIELDS = ("data", "competitor", "epsilon", "seed", "accuracy", "seconds", "note")
EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0)


@dataclass(frozen=True, slots=True)
class Competitor:
    """How a pipeline is made of data, epsilon and seed, and how its line looks."""

    label: str
    make: Callable[[Data, float, int], Any]
    colour: str
    dashed: bool = False
    private: bool = True
    foreign: bool = False


COMPETITORS = {
    "ours_pca": Competitor("ours: scaler, PCA", partial(ours, scale=True, components=True), "#0072B2"),
    "ours_scaler": Competitor("ours: scaler", partial(ours, scale=True, components=False), "#56B4E9"),
    "ours_plain": Competitor("ours: model only", partial(ours, scale=False, components=False), "#009E73"),
    "diffprivlib_pca": Competitor(
        "diffprivlib: scaler, PCA", partial(diffprivlib, components=True), "#D55E00", foreign=True
    ),
    "diffprivlib_scaler": Competitor(
        "diffprivlib: scaler", partial(diffprivlib, components=False), "#E69F00", foreign=True
    ),
    "plain_pca": Competitor(
        "no privacy: scaler, PCA",
        lambda data, _, seed: without_privacy(data, seed, components=True),
        "#000000",
        dashed=True,
        private=False,
    ),
    "plain_scaler": Competitor(
        "no privacy: scaler",
        lambda data, _, seed: without_privacy(data, seed, components=False),
        "#999999",
        dashed=True,
        private=False,
    ),
}
#: What is subtracted from what.
DIFFERENCES = {
    "PCA: ours - diffprivlib": ("ours_pca", "diffprivlib_pca"),
    "scaler: ours - diffprivlib": ("ours_scaler", "diffprivlib_scaler"),
    "ours: PCA - model only": ("ours_pca", "ours_plain"),
    "ours: scaler - model only": ("ours_scaler", "ours_plain"),
    "scaler: ours - no privacy": ("ours_scaler", "plain_scaler"),
}

Key = tuple[str, str, float, int]
Results = dict[Key, tuple[float, str]]


def finished() -> Results:
    """What earlier runs have written; the accuracy of a refusal is NaN, with the reason beside it."""
    if not CSV.exists():
        return {}
    with CSV.open(newline="") as file:
        return {
            (line["data"], line["competitor"], float(line["epsilon"]), int(line["seed"])): (
                float(line["accuracy"] or "nan"),
                line["note"],
            )
            for line in csv.DictReader(file)
        }


def append(key: Key, accuracy: float, seconds: float, note: str) -> None:
    new = not CSV.exists()
    with CSV.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(FIELDS)
        name, competitor, epsilon, seed = key
        shown = "" if math.isnan(accuracy) else f"{accuracy:.5f}"
        writer.writerow((name, competitor, f"{epsilon:g}", seed, shown, f"{seconds:.2f}", note))


def wanted(names: Sequence[str], epsilons: Sequence[float], seeds: int, foreign: bool) -> Iterator[Key]:
    """Every fit, those on the same split together; without privacy epsilon is infinite."""
    for name in names:
        for seed in range(seeds):
            for key, competitor in COMPETITORS.items():
                if competitor.foreign and not foreign:
                    continue
                for epsilon in epsilons if competitor.private else (math.inf,):
                    yield name, key, float(epsilon), seed


def fit(data: Data, split: Sequence[Any], key: Key) -> tuple[float, str]:
    """Accuracy on the test rows, or why there is none."""
    _, name, epsilon, seed = key
    competitor = COMPETITORS[name]
    train, test, y_train, y_test = split
    with repaired_bingham() if competitor.foreign else nullcontext():
        try:
            model = competitor.make(data, epsilon, seed).fit(train, y_train)
        except (NoRoute, ImpossibleBudget) as error:
            return math.nan, type(error).__name__
        return float(np.mean(model.predict(test) == y_test)), ""


def run(todo: Sequence[Key], results: Results, console: Console) -> None:
    """Fit what is missing."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=len(todo))
        loaded: tuple[str, int] = ("", -1)
        for key in todo:
            name, competitor, epsilon, seed = key
            progress.update(task, description=f"{name}, seed {seed}, {COMPETITORS[competitor].label}, {epsilon:g}")
            if loaded[0] != name:
                data = DATA[name][1]()
            if loaded != (name, seed):
                split = train_test_split(data.X, data.y, random_state=seed)
                loaded = name, seed
            started = time.perf_counter()
            accuracy, note = fit(data, split, key)
            append(key, accuracy, time.perf_counter() - started, note)
            results[key] = accuracy, note
            progress.advance(task)


def accuracies(results: Results, name: str, competitor: str, epsilon: float, seeds: int) -> np.ndarray:
    """One accuracy for each seed; NaN where there is none."""
    at = epsilon if COMPETITORS[competitor].private else math.inf
    return np.array([results.get((name, competitor, at, seed), (math.nan, ""))[0] for seed in range(seeds)])


def shown(values: np.ndarray, refusal: str) -> str:
    """Mean and standard deviation; the refusal where there is none, as it is public and so the same for all seeds."""
    if np.isnan(values).any():
        return refusal or "-"
    return f"{100 * values.mean():.1f} ± {100 * values.std(ddof=1) if len(values) > 1 else 0:.1f}"


def difference(ours: np.ndarray, theirs: np.ndarray) -> str:
    """Mean of the paired differences in points; red where it is below 0, faint within two standard errors."""
    pairs = 100 * (ours - theirs)
    if np.isnan(pairs).any():
        return "-"
    noise = 2 * pairs.std(ddof=1) / math.sqrt(len(pairs)) if len(pairs) > 1 else math.inf
    style = "dim" if abs(pairs.mean()) <= noise else "red" if pairs.mean() < 0 else "green"
    return f"[{style}]{pairs.mean():+.1f}[/]"


def table(results: Results, name: str, epsilons: Sequence[float], seeds: int) -> Table:
    """Means and standard deviations over the seeds, in percent."""
    without = "; ".join(
        f"{competitor.label} {shown(accuracies(results, name, key, math.inf, seeds), '')}"
        for key, competitor in COMPETITORS.items()
        if not competitor.private
    )
    title = f"[bold]{DATA[name][0]}[/]: test accuracy in percent, {seeds} seeds; {without}"
    sheet = Table(title=title, title_justify="left", title_style="")
    sheet.add_column("ε")
    shown_here = [key for key, it in COMPETITORS.items() if it.private and any(k[:2] == (name, key) for k in results)]
    for key in shown_here:
        sheet.add_column(COMPETITORS[key].label, justify="right")
    for header in DIFFERENCES:
        sheet.add_column(header, justify="right")
    for epsilon in epsilons:
        cells = {key: accuracies(results, name, key, epsilon, seeds) for key in COMPETITORS}
        notes = [results.get((name, key, epsilon, 0), (math.nan, ""))[1] for key in shown_here]
        sheet.add_row(
            f"{epsilon:g}",
            *(shown(cells[key], note) for key, note in zip(shown_here, notes)),
            *(difference(cells[left], cells[right]) for left, right in DIFFERENCES.values()),
        )
    return sheet


def picture(results: Results, names: Sequence[str], epsilons: Sequence[float], seeds: int) -> None:
    """One panel for each data set."""
    from matplotlib.figure import Figure

    rows = math.ceil(len(names) / 3)
    figure = Figure(figsize=(12, 3.6 * rows + 0.7), layout="constrained")
    panels = figure.subplots(rows, min(3, len(names)), squeeze=False).ravel()
    for panel, name in zip(panels, names):
        for key, competitor in COMPETITORS.items():
            values = np.array([accuracies(results, name, key, epsilon, seeds) for epsilon in epsilons])
            if np.isnan(values).all():
                continue
            mean, spread = 100 * values.mean(axis=1), 100 * values.std(axis=1)
            style = {"linestyle": "--", "linewidth": 1.2} if competitor.dashed else {"marker": "o", "markersize": 3.5}
            panel.plot(epsilons, mean, color=competitor.colour, label=competitor.label, **style)
            if competitor.private:
                panel.fill_between(epsilons, mean - spread, mean + spread, color=competitor.colour, alpha=0.15, lw=0)
        panel.set_title(DATA[name][0], fontsize=10)
        panel.set_xscale("log")
        panel.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
        panel.minorticks_off()
        panel.set_xlabel("ε")
        panel.set_ylabel("test accuracy, %")
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    for panel in panels[len(names) :]:
        panel.set_axis_off()
    handles, labels = max((panel.get_legend_handles_labels() for panel in panels), key=lambda found: len(found[1]))
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    title = f"Test accuracy, mean and standard deviation of {seeds} seeds; no point where no route can be certified"
    figure.suptitle(title, fontsize=11)
    figure.savefig(PICTURE, dpi=130)


def diffprivlib_is_there(console: Console) -> bool:
    """Whether it can be imported; if so, whatever it would read off private rows becomes an error."""
    try:
        import diffprivlib.models  # noqa: F401
        from diffprivlib.utils import PrivacyLeakWarning
    except ImportError as error:
        console.print(
            f"diffprivlib cannot be imported ({error}), so its columns are left out. It needs: "
            "pip install diffprivlib 'scikit-learn<1.8'",
            style="yellow",
        )
        return False
    warnings.filterwarnings("error", category=PrivacyLeakWarning)
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", choices=list(DATA), default=list(DATA))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epsilon", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--fresh", action="store_true", help="forget what earlier runs have written")
    options = parser.parse_args()
    console = Console(width=160)
    warnings.filterwarnings("ignore")  # deprecations inside diffprivlib
    foreign = diffprivlib_is_there(console)
    if options.fresh:
        CSV.unlink(missing_ok=True)
    results = finished()
    todo = [k for k in wanted(options.data, options.epsilon, options.seeds, foreign) if k not in results]
    with threadpool_limits(1):  # small products wait for each other's threads
        run(todo, results, console)
    picture(results, options.data, sorted(options.epsilon), options.seeds)
    for name in options.data:
        console.print(table(results, name, sorted(options.epsilon), options.seeds))
    console.print(
        "Differences in points of accuracy, seed by seed: green ahead, red behind, faint within two standard errors.",
        style="dim",
    )


if __name__ == "__main__":
    main()
