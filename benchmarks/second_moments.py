"""Second moments of rows with gaps, from Parquet: sums over pairs of columns where both are there, and how many are.

    python benchmarks/second_moments.py [rows]

Ours are whole numbers of a fixed grid, with the same bits for every partition, streaming here or by the two workers of
a Dask cluster on the same cores; polars sums floats, streaming. Times are minima of runs in one process, one after the
other; memory is the peak of a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scale

import ppdp

D, RUNS, BOUND = scale.D, 3, 8.0
ALONE = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[3:]
import second_moments
getattr(second_moments, sys.argv[1])(sys.argv[2])
print(int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) / 1024)
"""


def ours(path: str) -> np.ndarray:
    """Sums of products above the diagonal, then counts."""
    from ppdp.core.domain import Domain
    from ppdp.data.delivered import delivered
    from ppdp.data.intake import Reader
    from ppdp.data.rows import Rows
    from ppdp.data.summary import second_moment

    def masked(rows: Rows) -> Rows:
        values = np.empty((rows.n, 2 * D))
        np.isnan(rows.X, out=values[:, D:], casting="unsafe")
        np.clip(rows.X, -BOUND, BOUND, out=values[:, :D])
        np.nan_to_num(values, copy=False)
        np.subtract(1.0, values[:, D:], out=values[:, D:])
        return rows.with_X(values)

    with delivered(path, "y", None) as (given, *_):
        read = Reader(Domain(n_rows=given.source.n, n_features=D, classes=(0, 1)), None, True, "error")
        moment = second_moment(given.stream(read, as_numbers=True).each(masked, 2 * D), BOUND)
    upper = np.triu_indices(D)
    return np.concatenate([moment[:D, :D][upper], moment[D:, D:][upper]])


def polars(path: str) -> np.ndarray:
    """The same in 420 expressions over one scan."""
    import polars as pl

    columns = [pl.col(f"x{i}").fill_nan(None) for i in range(D)]
    pairs = [columns[i] * columns[j] for i, j in zip(*np.triu_indices(D))]
    asked = [
        expression.alias(str(number))
        for number, expression in enumerate([*(pair.sum() for pair in pairs), *(pair.count() for pair in pairs)])
    ]
    return pl.scan_parquet(path).select(asked).collect(engine="streaming").to_numpy().ravel()


WAYS = {"ours": ours, "polars": polars}


def timed(way: Callable[[str], np.ndarray], path: str) -> float:
    """Seconds that one way takes."""
    started = time.perf_counter()
    way(path)
    return time.perf_counter() - started


def main(n: int) -> None:
    """Print both, and how they compare."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "rows.parquet")
        scale.write(Path(path), n)
        found = ours(path)
        assert np.allclose(found, polars(path), rtol=1e-9)
        best = dict.fromkeys(WAYS, np.inf)
        for _ in range(RUNS):
            for name, way in WAYS.items():
                best[name] = min(best[name], timed(way, path))
        with ppdp.engine("dask"):
            assert np.array_equal(ours(path), found)  # workers have imported what they need
            spread = min(timed(ours, path) for _ in range(RUNS))
        memory = {
            name: float(
                subprocess.run(
                    [sys.executable, "-c", ALONE, name, path, *sys.path], capture_output=True, text=True, check=True
                ).stdout
            )
            for name in best
        }
    print(
        f"{n} x {D}: {best['ours']:.2f} s and {memory['ours']:.0f} MiB; polars {best['polars']:.2f} s and "
        f"{memory['polars']:.0f} MiB; ratio {best['ours'] / best['polars']:.2f}; by Dask {spread:.2f} s, "
        f"{spread / best['ours']:.2f} of the stream"
    )


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 2_000_000)
