"""Time and peak memory of the main job against the number of rows, in memory and from Parquet, beside scikit-learn.

    python benchmarks/scale.py [rows ...]

The job: gaps filled, columns scaled, logistic regression, with (1, 1e-9) to spend, on n x 20 rows lacking 1 % of cells.
Every run is a process of its own on the same cores; time is that of ``fit`` alone, the smallest of two in each of two
processes (the first one also imports what it needs), memory the peak of the process (scikit-learn / in memory / from
Parquet). All but scikit-learn deduplicate the rows as well. Dask has a worker process for every core. Figures are added
to ``scale.csv``; three sizes or more are drawn.
"""

from __future__ import annotations

import datetime
import subprocess
import sys
import tempfile
from pathlib import Path

import ppdp

D, RUNS = 20, 2
HISTORY = Path(__file__).with_name("scale.csv")
PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "scale.png"

JOB = """
import contextlib, sys, time, warnings
from pathlib import Path
warnings.simplefilter("ignore")
import pyarrow.parquet as pq
path, who = sys.argv[1:]
table = None if who in ("streamed", "dask") else pq.read_table(path)
if who == "scikit-learn":
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    pipe = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression())
    given = table.drop_columns(["y"]).to_pandas().to_numpy(), table["y"].to_numpy()
else:
    import ppdp
    from ppdp import make_pipeline
    from ppdp.mechanisms import LogisticRegression
    from ppdp.transformers import Deduplicator, MeanImputer, MinMaxScaler, StandardScaler
    steps = MinMaxScaler(ranges=(-4, 4)), Deduplicator(), MeanImputer(), StandardScaler()
    pipe = make_pipeline(*steps, LogisticRegression(classes=(0, 1)), epsilon=1.0, delta=1e-9)
    whole = table is not None
    given = (table.drop_columns(["y"]).to_pandas().to_numpy(), table["y"].to_numpy()) if whole else (path, "y")
with ppdp.engine("dask") if who == "dask" else contextlib.nullcontext():
    spent = []
    for _ in range(2):
        time.sleep(0.2)  # threads of linear algebra go on spinning for a while
        started = time.perf_counter()
        pipe.fit(*given)
        spent.append(time.perf_counter() - started)
print(min(spent), int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) / 1024)
"""


def write(path: Path, n: int) -> None:
    """Rows whose label depends on a few columns, in row groups of 2^17."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, writer = np.random.default_rng(0), None
    for start in range(0, n, 2**17):
        X = rng.standard_normal((min(2**17, n - start), D))
        y = (X[:, :5].sum(axis=1) + rng.standard_normal(len(X)) > 0).astype(np.int64)
        X[rng.random(X.shape) < 0.01] = np.nan
        table = pa.table({**{f"x{i}": X[:, i] for i in range(D)}, "y": y})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def measured(path: Path, who: str) -> tuple[float, float]:
    """Seconds and MiB of one way to fit."""
    runs = []
    for _ in range(RUNS):
        done = subprocess.run([sys.executable, "-c", JOB, str(path), who], capture_output=True, text=True, check=True)
        runs.append(tuple(map(float, done.stdout.split())))
    return min(time for time, _ in runs), min(memory for _, memory in runs)


WAYS = {"scikit-learn": "scikit-learn", "held": "in memory", "streamed": "from Parquet", "dask": "by Dask"}


def main(sizes: list[int]) -> None:
    """Print a row for every size, keep the figures, and draw them."""
    print("| rows | scikit-learn | in memory | ratio | from Parquet | of in memory | by Dask | of from Parquet | MiB |")
    print("|---|---|---|---|---|---|---|---|---|")
    found: dict[str, list[tuple[float, float]]] = {who: [] for who in WAYS}
    for n in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.parquet"
            write(path, n)
            for who, runs in found.items():
                runs.append(measured(path, who))
        other, held, streamed, spread = (runs[-1] for runs in found.values())
        ratios = f"{held[0] / other[0]:.2f} | {streamed[0]:.2f} s | {streamed[0] / held[0]:.2f}"
        ratios += f" | {spread[0]:.2f} s | {spread[0] / streamed[0]:.2f}"
        memory = f"{other[1]:.0f} / {held[1]:.0f} / {streamed[1]:.0f}"
        print(f"| {n} | {other[0]:.2f} s | {held[0]:.2f} s | {ratios} | {memory} |", flush=True)
    keep(sizes, found)
    if len(sizes) > 2:
        draw(sizes, found)


def keep(sizes: list[int], found: dict[str, list[tuple[float, float]]]) -> None:
    """Add the figures to those of earlier days."""
    new = not HISTORY.exists()
    with HISTORY.open("a", encoding="utf-8") as file:
        if new:
            file.write("date,version,rows,way,seconds,MiB\n")
        for who, runs in found.items():
            for n, (seconds, memory) in zip(sizes, runs):
                today = datetime.date.today()
                file.write(f"{today},{ppdp.__version__},{n},{WAYS[who]},{seconds:.3f},{memory:.0f}\n")


def draw(sizes: list[int], found: dict[str, list[tuple[float, float]]]) -> None:
    """Time and memory against the number of rows; the slope of time from the second size on stands in the legend."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    import numpy as np

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for (who, runs), marker in zip(found.items(), "osd^"):
        seconds, memory = np.array(runs).T
        slope = np.polyfit(np.log(sizes[1:]), np.log(seconds[1:]), 1)[0]
        print(f"{WAYS[who]}: slope of time {slope:.2f}")
        left.loglog(sizes, seconds, marker=marker, label=f"{WAYS[who]} (slope {slope:.2f})")
        if who != "dask":  # of which most is with the workers
            right.loglog(sizes, memory, marker=marker, label=WAYS[who])
    left.set(xlabel=f"rows of {D} columns", ylabel="seconds", title="Time of a fit")
    right.set(xlabel=f"rows of {D} columns", ylabel="MiB", title="Peak memory of the process")
    for axis in (left, right):
        axis.legend(frameon=False)
        axis.grid(alpha=0.3)
    figure.savefig(PICTURE, dpi=130)


if __name__ == "__main__":
    main([int(float(size)) for size in sys.argv[1:]] or [100_000, 1_000_000, 3_000_000])
