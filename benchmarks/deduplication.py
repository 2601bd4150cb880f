"""Time and peak memory of deduplication out of core against the number of rows, beside polars streaming.

    python benchmarks/deduplication.py [rows ...]

n x 4 rows in Parquet, of which one in a hundred stands twice, anywhere. Ours: declared ranges, deduplication and a
noisy number of what is left. polars: how many rows are unique, streaming. Every run is a process of its own on the
same cores, one after the other; memory is the peak of the process, without the pages that the system keeps of files.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

D, PART = 4, 2**20

JOB = """
import sys, time, warnings
from pathlib import Path
warnings.simplefilter("ignore")
path, who = sys.argv[1:]
if who == "polars":
    import polars as pl
    job = lambda: pl.scan_parquet(path).unique().select(pl.len()).collect(engine="streaming").item()
else:
    from ppdp import make_pipeline
    from ppdp.mechanisms import GaussianMechanism
    from ppdp.transformers import Deduplicator, MinMaxScaler
    steps = MinMaxScaler(ranges=(0, 1)), Deduplicator(), GaussianMechanism("count")
    pipe = make_pipeline(*steps, epsilon=1.0, delta=1e-10)
    job = lambda: pipe.fit(path)[-1].count_
started = time.perf_counter()
found = float(job())
spent = time.perf_counter() - started
print(found, spent, int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) / 1024)
"""


def write(path: Path, n: int) -> int:
    """Rows of which some stand in the first part and again in a later one; how many are different."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, writer, first, left = np.random.default_rng(0), None, None, n
    for start in range(0, n, PART):
        X = rng.random((min(PART, n - start), D))
        first = X.copy() if first is None else first
        again = rng.choice(len(X), len(X) // 100, replace=False)
        X[again] = first[again]
        left -= len(again) if start else 0
        table = pa.table({f"x{i}": X[:, i] for i in range(D)})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()
    return left


def main(sizes: list[int]) -> None:
    """Print a row for every size."""
    print("| rows | ours | polars | ratio | MiB, ours / polars | left, ours (with noise) / polars / known |")
    print("|---|---|---|---|---|---|")
    for n in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.parquet"
            known = write(path, n)
            found = {}
            for who in ("ours", "polars"):
                run = [sys.executable, "-c", JOB, str(path), who]
                found[who] = list(
                    map(float, subprocess.run(run, capture_output=True, text=True, check=True).stdout.split())
                )
        (left, seconds, memory), (other_left, other_seconds, other_memory) = found["ours"], found["polars"]
        ratio = f"{seconds:.1f} s | {other_seconds:.1f} s | {seconds / other_seconds:.2f}"
        sizes_left = f"{left:.0f} / {other_left:.0f} / {known}"
        print(f"| {n} | {ratio} | {memory:.0f} / {other_memory:.0f} | {sizes_left} |", flush=True)


if __name__ == "__main__":
    main([int(float(size)) for size in sys.argv[1:]] or [1_000_000, 10_000_000])
