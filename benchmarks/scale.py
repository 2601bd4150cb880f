"""Time and peak memory of jobs on many rows, beside those of other libraries: ``_scale_jobs.py`` says which.

    python benchmarks/scale.py [job:ROWSxCOLUMNS ...] [--python PATH ...]

as in ``main:1e6x20``; with no size the usual ones of the job or of all jobs. Every run is a process of its own on the
same cores, and ways take turns; time is the smallest of two or three runs in each of two processes, reading from
Parquet included where that is the way, memory the peak of the process that asks; workers are left out of processor
seconds and memory. Libraries that this environment lacks are looked for in those named by ``--python`` (diffprivlib
needs an older scikit-learn). Figures are added to ``scale.csv``; the main job is drawn when it was run for three
numbers of rows and three of columns.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import os
import platform
import subprocess
import sys
import tempfile
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import _scale_jobs
from _scale_jobs import JOBS

import ppdp

HISTORY = Path(__file__).with_name("scale.csv")
PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "scale.png"
FIELDS = "date", "version", "job", "rows", "columns", "way", "seconds", "MiB", "figure", "processor seconds", "machine"
RUNS, ROWS, COLUMNS = 2, 300_000, 20
USUAL = {
    "main": [(100_000, 20), (1_000_000, 20), (3_000_000, 20), *((ROWS, d) for d in (5, 10, 20, 40, 80, 160))],
    "moments": [(2_000_000, 20)],
    "distinct": [(1_000_000, 4), (10_000_000, 4)],
    "means": [(1_000_000, 20)],
    "many": [(10_000_000, 20)],
    "generated": [(100_000_000, 20)],
}
Of = dict[str, tuple[float, float, float, float]]  # seconds, of processors too, MiB and the figure, by way
Found = dict[tuple[int, int], Of]  # by size


@cache
def python_with(library: str, others: tuple[str, ...]) -> str | None:
    """The first interpreter that has a library."""
    script = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({library!r}) is None)"
    return next((one for one in (sys.executable, *others) if not subprocess.run([one, "-c", script]).returncode), None)


def once(command: list[str]) -> tuple[float, ...]:
    """What a process prints."""
    return tuple(map(float, subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()))


def machine() -> str:
    """Which processors there are, and how many may be used."""
    known = Path("/proc/cpuinfo")
    lines = known.read_text().splitlines() if known.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{len(os.sched_getaffinity(0))} x {models[0] if models else platform.processor() or platform.machine()}"


def measured(job: str, n: int, d: int, others: tuple[str, ...]) -> Of:
    """What every way takes for which there are a library and room."""
    write, ways = JOBS[job]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write(path, n, d)
        commands = {
            way.name: [python, _scale_jobs.__file__, job, way.name, str(path)]
            for way in ways
            if n * d <= way.most and (python := python_with(way.needs, others))
        }
        turns = [{name: once(command) for name, command in commands.items()} for _ in range(RUNS)]
    found: Of = {}
    for name in commands:
        seconds, worked, memory, figures = zip(*(turn[name] for turn in turns))
        found[name] = min(seconds), min(worked), min(memory), figures[0]
    return found


def table(job: str, n: int, d: int, found: Of) -> None:
    """Print a line for every way, with its time as a share of those that it is put beside, of wall and processor."""
    for way in JOBS[job][1]:
        if way.name not in found:
            print(f"| {job} | {n} x {d} | {way.name} | {'not installed' if n * d <= way.most else 'too many'} | | | |")
            continue
        own = seconds, worked, memory, figure = found[way.name]
        pairs = {
            one: [mine / theirs for mine, theirs in zip(own[:2], found[one])] for one in way.beside if one in found
        }
        shares = ", ".join(f"{wall:.2f} ({busy:.2f}) of {one}" for one, (wall, busy) in pairs.items())
        line = f"{way.name} | {seconds:.3f} s ({worked:.3f}) | {shares} | {memory:.0f} | {figure:.7g}"
        print(f"| {job} | {n} x {d} | {line} |", flush=True)


def keep(job: str, n: int, d: int, found: Of) -> None:
    """Add the figures to those of earlier days."""
    new = not HISTORY.exists()
    with HISTORY.open("a", encoding="utf-8", newline="") as file:
        line = csv.writer(file, lineterminator="\n").writerow
        if new:
            line(FIELDS)
        for name, (seconds, worked, memory, figure) in found.items():
            own = datetime.date.today(), ppdp.__version__, job, n, d, name
            line([*own, f"{seconds:.3f}", f"{memory:.0f}", f"{figure:.7g}", f"{worked:.3f}", machine()])


def draw(found: Found) -> None:
    """Time and memory against rows and columns; of four sizes or more the slope of time is that from the second on."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    import numpy as np

    swept = [sorted(size for size in found if size[1] == COLUMNS and size[0] != ROWS)]
    swept.append(sorted(size for size in found if size[0] == ROWS))
    if min(map(len, swept)) < 3:
        return
    figure, axes = plt.subplots(2, 2, figsize=(10, 7.5), layout="constrained")
    words = f"rows of {COLUMNS} columns", f"columns of {ROWS:,} rows"
    for (left, right), sizes, which, word in zip(axes, swept, (0, 1), words):
        for number, way in enumerate(JOBS["main"][1]):
            own = [size for size in sizes if way.name in found[size]]
            if len(own) < 3:
                continue
            at = np.array([size[which] for size in own])
            seconds, _, memory, _ = np.array([found[size][way.name] for size in own]).T
            later = slice(len(own) > 3, None)
            slope = np.polyfit(np.log(at[later]), np.log(seconds[later]), 1)[0]
            print(f"{way.name}: slope of time against {word.partition(' ')[0]} {slope:.2f}")
            drawn: dict[str, Any] = {"marker": "ovsd^P"[number], "color": f"C{number}"}
            left.loglog(at, seconds, label=f"{way.name} (slope {slope:.2f})", **drawn)
            if not way.name.startswith("by "):  # a cluster, of which most is with the workers
                right.loglog(at, memory, label=way.name, **drawn)
        left.set(xlabel=word, ylabel="seconds", title="Time of a fit")
        right.set(xlabel=word, ylabel="MiB", title="Peak memory of the process")
        for axis in (left, right):
            axis.margins(y=0.2)
            axis.legend(frameon=False, fontsize="small")
            axis.grid(alpha=0.3)
    figure.savefig(PICTURE, dpi=130)


def sizes(word: str) -> list[tuple[str, int, int]]:
    """A job with its size, or with its usual ones."""
    job, _, size = word.partition(":")
    try:
        if not size:
            return [(job, n, d) for n, d in USUAL[job]]
        n, d = (int(float(part)) for part in size.split("x"))
        if min(n, d) < 1:
            raise ValueError
        return [(JOBS[job] and job, n, d)]
    except (KeyError, ValueError):
        raise argparse.ArgumentTypeError(f"{word!r} is none of {', '.join(JOBS)}, nor one as in main:1e6x20") from None


def main() -> None:
    """Print a table, keep the figures, and draw those of the main job."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="*", type=sizes, metavar="job:ROWSxCOLUMNS")
    parser.add_argument("--python", action="append", default=[], metavar="PATH")
    options = parser.parse_args()
    print("| job | size | way | time (processor) | shares | MiB | figure |\n|---|---|---|---|---|---|---|")
    main_job: Found = {}
    for job, n, d in chain.from_iterable(options.jobs or map(sizes, USUAL)):
        found = measured(job, n, d, tuple(options.python))
        table(job, n, d, found)
        keep(job, n, d, found)
        if job == "main":
            main_job[n, d] = found
    draw(main_job)


if __name__ == "__main__":
    main()
