"""What processes leave behind that are killed with SIGKILL at random moments.

    python benchmarks/kills.py [number of kills]

By turns they fit with one shared ledger, rows in memory or in files, and export to new names and in the place of an
earlier export. Afterwards every export that stands there must load, and the ledger must hold every fit that looked at
rows: each spend that was acknowledged, and at most the one per process that it was killed in the middle of. The figures
come last.
"""

from __future__ import annotations

import math
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import ppdp
from ppdp import Ledger, Pipeline
from ppdp.exceptions import CompositionWarning
from ppdp.mechanisms import LogisticRegression
from ppdp.transformers import MinMaxScaler, StandardScaler

CURRENT = "current.zip"
HERE = ".private"  # rows in files, and what fits write beside them
LONGEST = 0.3  # seconds


class Figures(NamedTuple):
    """What stands there after all kills."""

    kills: int
    begun: int
    acknowledged: int
    recorded: int
    settled: int
    exports: int
    unfinished: int
    mu_together: float
    mu_spent: float


class Announcing(Ledger):
    """A ledger that tells another process of every reservation, before and after."""

    writer = -1

    def reserve(self, **spend: Any) -> int:
        """Reserve, and say so."""
        os.write(self.writer, b"b")
        number = super().reserve(**spend)
        os.write(self.writer, b"a")
        return number


def fitted(ledger: Ledger, rows: Path | None = None) -> Pipeline:
    """A model of made-up people, or of those in a file."""
    rng = np.random.default_rng()
    steps = [("box", MinMaxScaler(ranges=(-1, 1))), ("scale", StandardScaler()), ("model", LogisticRegression((0, 1)))]
    pipe = Pipeline(steps, epsilon=1.0, delta=1e-6, ledger=ledger, dataset="people")
    if rows is not None:
        return pipe.fit(rows, "y")
    return pipe.fit(rng.uniform(-1, 1, (200, 3)), rng.integers(2, size=200))


def write_rows(path: Path) -> None:
    """People for several blocks, in row groups of other lengths."""
    rng = np.random.default_rng()
    columns = [*rng.uniform(-1, 1, (3, 80_000)), rng.integers(2, size=80_000)]
    pq.write_table(pa.table(columns, ["a", "b", "c", "y"]), path, row_group_size=9999)


def keep_fitting(folder: Path, writer: int, rows: Path | None = None) -> None:
    """Until killed."""
    tempfile.tempdir = str(folder / HERE)
    ledger = Announcing(folder / "ledger")
    ledger.writer = writer
    warnings.simplefilter("ignore", CompositionWarning)
    while True:
        fitted(ledger, rows)


def keep_exporting(folder: Path, writer: int, pipe: Pipeline) -> None:
    """Until killed."""
    for turn in count():
        pipe.export(folder / f"{os.getpid()}-{turn}")
        os.write(writer, b"." * (not turn))  # however slow the machine is, something is exported
        pipe.export(folder / f"{os.getpid()}-{turn}.zip")
        pipe.export(folder / CURRENT, overwrite=True)


def killed(work: Callable[[int], None], delay: float) -> tuple[int, int]:
    """One process, killed once it has begun; how many fits it began, and how many of its spends were acknowledged."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            work(writer)
        finally:
            os._exit(1)
    os.close(writer)
    with open(reader, "rb", buffering=0) as announcements:
        first = announcements.read(1)
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
        said = first + announcements.readall()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status != -signal.SIGKILL:
        raise RuntimeError(f"the process ended by itself: {status}")
    return said.count(b"b"), said.count(b"a")


def main(kills: int, folder: Path) -> Figures:
    """Kill so many processes that work in a folder, and look at what they left.

    Raises
    ------
    RuntimeError
        If an export is damaged, or the ledger does not hold what it should.
    """
    ledger, draw = Ledger(folder / "ledger"), random.Random()
    pipe = fitted(Ledger())  # which imports what every process would import by itself
    begun, acknowledged, rows = 0, 0, folder / HERE / "rows.parquet"
    rows.parent.mkdir()
    write_rows(rows)
    for life in range(kills):
        before = len(ledger)
        works = partial(keep_fitting, folder), partial(keep_exporting, folder, pipe=pipe)
        work = (*works, partial(keep_fitting, folder, rows=rows))[life % 3]
        one, two = killed(work, draw.uniform(0, LONGEST))
        if not two <= len(ledger) - before <= one <= two + 1:
            raise RuntimeError(f"{one} fits began, {two} were acknowledged, {len(ledger) - before} are recorded.")
        begun, acknowledged = begun + one, acknowledged + two
    visible = [path for path in folder.iterdir() if not path.name.startswith((".", "ledger"))]
    for path in visible:
        release = ppdp.load(path)
        release.predict(np.zeros((1, 3)))
    entries = ledger.entries()
    return Figures(
        kills=kills,
        begun=begun,
        acknowledged=acknowledged,
        recorded=len(entries),
        settled=sum(entry.status == "released" for entry in entries),
        exports=len(visible),
        unfinished=sum(path.name.startswith(".") and path.name != HERE for path in folder.iterdir()),
        mu_together=math.hypot(*(entry.mu for entry in entries)),
        mu_spent=ledger.spent("people").mu,
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        f = main(int(sys.argv[1]) if sys.argv[1:] else 200, Path(place))
    print(f"{f.kills} kills; {f.begun} fits began, {f.acknowledged} were acknowledged, {f.recorded} are in the ledger,")
    print(f"{f.settled} of them settled; all {f.exports} exports load; {f.unfinished} hidden unfinished files;")
    print(f"spent mu {f.mu_spent:.6f}; those of all entries come to {f.mu_together:.6f} together")
