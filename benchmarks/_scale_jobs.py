"""What ``scale.py`` measures: rows that are generated, and ways to do one job with them, ours and those of others.

Run as a script, a way prints its seconds and processor seconds (the smallest of three runs, of fewer if they are long),
the peak memory of the process in MiB, and a figure by which ways can be told to have done the same job. Only the
library of that way is imported.
"""

from __future__ import annotations

import atexit
import contextlib
import math
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

GROUP, BOUND, LONG = 2**17, 4.0, 10.0  # rows of a row group; of an entry; seconds after which two runs do
HELD = 2e8  # entries that fit memory several times
Job = tuple[Callable[[], Any], Callable[[Any], float]]  # what is timed, and the figure of what it returns


class Way(NamedTuple):
    """How one library does a job: of the path of the rows, needing what, put beside whom, of how many entries."""

    name: str
    of: Callable[[Path], Job]
    needs: str = "ppdp"
    beside: tuple[str, ...] = ()
    most: float = math.inf  # of entries, where they are held in memory


def labelled(rng: np.random.Generator, n: int, d: int) -> tuple[Any, Any]:
    """Rows that lack one entry in a hundred, and labels that hang on a few columns."""
    X = rng.standard_normal((n, d))
    y = (X[:, :5].sum(axis=1) + rng.standard_normal(n) > 0).astype(np.int64)
    X[rng.random(X.shape) < 0.01] = np.nan
    return X, y


def write_labelled(path: Path, n: int, d: int) -> None:
    """Such rows in a file, in row groups."""
    rng = np.random.default_rng(0)
    _write(path, (labelled(rng, min(GROUP, n - start), d) for start in range(0, n, GROUP)))


def write_repeated(path: Path, n: int, d: int) -> None:
    """Rows of which one in a hundred stands in the first row group and in a later one."""
    rng = np.random.default_rng(0)

    def parts() -> Any:
        first = None
        for start in range(0, n, GROUP):
            X = rng.random((min(GROUP, n - start), d))
            first = X.copy() if first is None else first
            again = rng.choice(len(X), len(X) // 100, replace=False)
            X[again] = first[again]
            yield X, None

    _write(path, parts())


def write_size(path: Path, n: int, d: int) -> None:
    """How many rows are to be generated while they are read."""
    path.write_text(f"{n} {d}", encoding="utf-8")


def _write(path: Path, parts: Any) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    for X, y in parts:
        columns = {f"x{i}": column for i, column in enumerate(X.T)}
        table = pa.table(columns if y is None else {**columns, "y": y})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def held(path: Path) -> tuple[Any, Any]:
    """The rows as arrays."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    return table.drop_columns(["y"]).to_pandas().to_numpy(), table["y"].to_numpy()


def columns_of(path: Path) -> int:
    """How many columns a file has beside the labels."""
    from pyarrow.parquet import read_schema

    return len({*read_schema(path).names} - {"y"})


def by(engine: str, way: Callable[[Path], Job]) -> Callable[[Path], Job]:
    """The same by the processes of a cluster, one for every core."""

    def of(path: Path) -> Job:
        import ppdp

        until_the_end = contextlib.ExitStack()
        until_the_end.enter_context(ppdp.engine(engine))
        atexit.register(until_the_end.close)
        return way(path)

    return of


# The main job: fill gaps, scale, logistic regression; ours deduplicate first. The figure is accuracy on other rows.


def _accuracy(d: int) -> Callable[[Any], float]:
    return lambda model: float(model.score(*labelled(np.random.default_rng(1), 100_000, d)))


def main_sklearn(path: Path) -> Job:
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = held(path)
    pipe = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression())
    return lambda: pipe.fit(X, y), _accuracy(X.shape[1])


def main_diffprivlib(path: Path) -> Job:
    """Pure privacy, and the same public facts; its scaler takes no gaps, which the middle of the range fills."""
    from diffprivlib import models
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline

    (X, y), d = held(path), columns_of(path)
    filled = SimpleImputer(strategy="constant", fill_value=0.0)
    scaled = models.StandardScaler(epsilon=0.5, bounds=(np.full(d, -BOUND), np.full(d, BOUND)))
    pipe = make_pipeline(filled, scaled, models.LogisticRegression(epsilon=0.5, data_norm=math.sqrt(d)))
    return lambda: pipe.fit(X, y), _accuracy(d)


def _main(delta: float = 1e-9, *, deduplicated: bool = True) -> Any:
    from ppdp import make_pipeline
    from ppdp.mechanisms import LogisticRegression
    from ppdp.transformers import Deduplicator, MeanImputer, MinMaxScaler, StandardScaler

    first = [MinMaxScaler(ranges=(-BOUND, BOUND)), Deduplicator()][: 1 + deduplicated]
    steps = *first, MeanImputer(), StandardScaler(), LogisticRegression(classes=(0, 1))
    return make_pipeline(*steps, epsilon=1.0, delta=delta)


def main_held(path: Path) -> Job:
    pipe, (X, y) = _main(), held(path)
    return lambda: pipe.fit(X, y), _accuracy(X.shape[1])


def main_streamed(path: Path) -> Job:
    pipe = _main()
    return lambda: pipe.fit(path, "y"), _accuracy(columns_of(path))


# A billion rows, generated while they are read. The figure is the seconds of a processor that generating took.


def many_generated(path: Path) -> Job:
    import pyarrow as pa

    from ppdp.data.engine.source import BlockSource

    spent: list[float] = []

    class Generated(BlockSource):
        """Rows that are nowhere: every row group has a seed."""

        def __init__(self, n: int, d: int) -> None:
            self.n, self.d = n, d
            self.schema = pa.schema([*((f"x{i}", pa.float64()) for i in range(d)), ("y", pa.int64())])

        def tables(self, names: Any) -> Any:
            for start in range(0, self.n, GROUP // 4):
                began = time.thread_time()
                X, y = labelled(np.random.default_rng(start), min(GROUP // 4, self.n - start), self.d)
                table = pa.table([*X.T.copy(), y], schema=self.schema)
                spent.append(time.thread_time() - began)
                yield table.select(list(names))

    rows = Generated(*map(int, path.read_text(encoding="utf-8").split()))
    return lambda: spent.clear() or _main(1e-11, deduplicated=False).fit(rows, "y"), lambda fitted: sum(spent)


def many_streamed(path: Path) -> Job:
    return lambda: _main(1e-11, deduplicated=False).fit(path, "y"), _accuracy(columns_of(path))


# Sums over pairs of columns where both are there, and how many are. The figure is the sum of all of them.


def moments_polars(path: Path) -> Job:
    """As many expressions over one scan, gaps marked in front of them."""
    import polars as pl

    columns = [pl.col(f"x{i}") for i in range(columns_of(path))]
    pairs = [columns[i] * columns[j] for i, j in zip(*np.triu_indices(len(columns)))]
    asked = [of.alias(str(i)) for i, of in enumerate([*(pair.sum() for pair in pairs), *(p.count() for p in pairs)])]
    marked = [column.fill_nan(None) for column in columns]

    def action() -> Any:
        return pl.scan_parquet(path).select(marked).select(asked).collect(engine="streaming").to_numpy()

    return action, lambda found: found.sum()


def moments_dask(path: Path) -> Job:
    """The products of Dask's arrays, on threads, a task for every row group."""
    import dask
    import dask.array as da
    import dask.dataframe as dd

    def action() -> Any:
        X = dd.read_parquet(path, split_row_groups=True).drop(columns="y").to_dask_array()
        there = (~da.isnan(X)).astype(float)
        X = da.nan_to_num(X)
        return dask.compute(X.T @ X, there.T @ there)

    return action, lambda found: float(sum(part[np.triu_indices(len(part))].sum() for part in found))


def moments_streamed(path: Path) -> Job:
    """Whole numbers of a fixed grid, with the same bits for every partition."""
    from ppdp.core.domain import Domain
    from ppdp.data.deferred_input import resolve_inputs
    from ppdp.data.summary import SecondMoment, Summary, fold
    from ppdp.data.validation import Reader

    class Pairs(Summary[Any]):
        """Products, and how many there are, in one pass."""

        def __init__(self, d: int) -> None:
            self.d, self.products = d, SecondMoment(d, 2 * BOUND)

        def zero(self) -> Any:
            return self.products.zero(), np.zeros((self.d, self.d), dtype=np.int64)

        def add(self, total: Any, block: Any) -> Any:
            there = np.isfinite(block.X).astype(np.float64)
            filled = block.with_X(np.nan_to_num(block.X, copy=False))
            return self.products.add(total[0], filled), total[1] + (there.T @ there).astype(np.int64)

        def merge(self, one: Any, other: Any) -> Any:
            return self.products.merge(one[0], other[0]), one[1] + other[1]

        def finish(self, total: Any) -> Any:
            return self.products.finish(total[0]), total[1]

    d = columns_of(path)

    def action() -> Any:
        with resolve_inputs(str(path), "y", None) as (given, *_):
            read = Reader(Domain(n_rows=given.source.n, n_features=d, classes=(0, 1)), None, True, "error")
            return fold(Pairs(d), given.stream(read, as_numbers=True))

    return action, lambda found: float(sum(part[np.triu_indices(d)].sum() for part in found))


# How many rows are different, which is the figure; ours deduplicate and release it with noise.


def distinct_polars(path: Path) -> Job:
    import polars as pl

    return lambda: pl.scan_parquet(path).unique().select(pl.len()).collect(engine="streaming").item(), float


def distinct_pandas(path: Path) -> Job:
    """Reading included, as for the others."""
    import pandas as pd

    return lambda: len(pd.read_parquet(path).drop_duplicates()), float


def distinct_dask(path: Path) -> Job:
    import dask.dataframe as dd

    return lambda: len(dd.read_parquet(path, split_row_groups=True).drop_duplicates(split_out=8)), float


def distinct_streamed(path: Path) -> Job:
    from ppdp import make_pipeline
    from ppdp.mechanisms import GaussianMechanism
    from ppdp.transformers import Deduplicator, MinMaxScaler

    steps = MinMaxScaler(ranges=(0, 1)), Deduplicator(), GaussianMechanism("count")
    pipe = make_pipeline(*steps, epsilon=1.0, delta=1e-10)
    return lambda: pipe.fit(path)[-1].count_, float


# Private means of all columns with declared ranges, gaps counting as zero. The figure is the largest error.


def _filled(path: Path) -> tuple[Any, Callable[[Any], float]]:
    X = np.nan_to_num(held(path)[0])
    true = np.clip(X, -BOUND, BOUND).mean(axis=0)
    return X, lambda found: float(np.abs(np.asarray(found) - true).max())


def means_opendp(path: Path) -> Job:
    """Clamped means with Gaussian noise, column by column."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    X, error = _filled(path)
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=len(X)), dp.symmetric_distance()
    mean = space >> dp.t.then_clamp((-BOUND, BOUND)) >> dp.t.then_mean()
    release = mean >> dp.m.then_gaussian(4 * mean.map(2) * math.sqrt(X.shape[1]))
    columns = X.T.copy()
    return lambda: [release(column) for column in columns], error


def means_diffprivlib(path: Path) -> Job:
    from diffprivlib import tools

    X, error = _filled(path)
    return lambda: tools.mean(X, epsilon=1.0, bounds=(-BOUND, BOUND), axis=0), error


def means_held(path: Path) -> Job:
    from ppdp import make_pipeline
    from ppdp.mechanisms import GaussianMechanism
    from ppdp.transformers import MinMaxScaler

    X, error = _filled(path)
    pipe = make_pipeline(MinMaxScaler(ranges=(-BOUND, BOUND)), GaussianMechanism("mean"), epsilon=1.0, delta=1e-9)
    return lambda: pipe.fit(X), lambda fitted: error(fitted[-1].mean_ * BOUND)


JOBS: dict[str, tuple[Callable[[Path, int, int], None], tuple[Way, ...]]] = {
    "main": (
        write_labelled,
        (
            Way("scikit-learn", main_sklearn, "sklearn", most=HELD),
            Way("diffprivlib", main_diffprivlib, "diffprivlib", most=HELD / 2),
            Way("in memory", main_held, beside=("scikit-learn", "diffprivlib"), most=HELD),
            Way("from Parquet", main_streamed, beside=("scikit-learn", "in memory")),
            Way("by Dask", by("dask", main_streamed), beside=("scikit-learn", "from Parquet")),
            Way("by Ray", by("ray", main_streamed), "ray", beside=("from Parquet", "by Dask")),
        ),
    ),
    "many": (write_labelled, (Way("from Parquet", many_streamed),)),
    "generated": (write_size, (Way("while they are read", many_generated),)),
    "moments": (
        write_labelled,
        (
            Way("polars", moments_polars, "polars"),
            Way("Dask", moments_dask, "dask", most=HELD),
            Way("from Parquet", moments_streamed, beside=("polars", "Dask")),
            Way("by Dask", by("dask", moments_streamed), beside=("Dask", "from Parquet")),
            Way("by Ray", by("ray", moments_streamed), "ray", beside=("from Parquet", "by Dask")),
        ),
    ),
    "distinct": (
        write_repeated,
        (
            Way("polars", distinct_polars, "polars"),
            Way("pandas", distinct_pandas, "pandas", most=HELD),
            Way("Dask", distinct_dask, "dask", most=HELD),
            Way("from Parquet", distinct_streamed, beside=("polars", "pandas", "Dask")),
        ),
    ),
    "means": (
        write_labelled,
        (
            Way("OpenDP", means_opendp, "opendp", most=HELD),
            Way("diffprivlib", means_diffprivlib, "diffprivlib", most=HELD),
            Way("in memory", means_held, beside=("OpenDP", "diffprivlib"), most=HELD),
        ),
    ),
}


def main(job: str, name: str, path: Path) -> None:
    """Do a job in one way."""
    warnings.simplefilter("ignore")
    action, figure = next(way.of for way in JOBS[job][1] if way.name == name)(path)
    spent, worked = np.empty((2, 0))
    while len(spent) < 1 or (len(spent) < 2 and sum(spent) < 6 * LONG) or (len(spent) < 3 and sum(spent) < LONG):
        time.sleep(0.2)  # threads of linear algebra go on spinning for a while
        started, before = time.perf_counter(), time.process_time()
        found = action()
        spent, worked = np.r_[spent, time.perf_counter() - started], np.r_[worked, time.process_time() - before]
    memory = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) / 1024
    print(min(spent), min(worked), memory, figure(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
