"""How long fitted stages take on a million rows, against the twin that people use today, and how much memory.

    python benchmarks/throughput.py            # every case
    python benchmarks/throughput.py PCA        # the cases whose name contains a word

Both sides run in this process, in turn, best of three (the main job: of five); the ratio is ours over the twin's.
Memory is the peak of a fresh process above what it held before, over the size of the input.
"""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.spatial import cKDTree
from scipy.special import ndtr
from sklearn import decomposition, impute, linear_model, pipeline, preprocessing

from ppdp import Pipeline
from ppdp.exceptions import CompositionWarning
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.transformers import (
    PCA,
    ClusterDeduplicator,
    Deduplicator,
    GridDeduplicator,
    LSHDeduplicator,
    MeanImputer,
    MinMaxScaler,
    StandardScaler,
)

ROWS = 1_000_000


@dataclass(frozen=True)
class Case:
    """One line: data, our side, the twin, and the ratio that is aimed at."""

    name: str
    data: Callable[[], Any]
    ours: Callable[[Any], Any]
    twin: Callable[[Any], Any] | None
    aim: float | None
    score: Callable[[Any], float] | None = None  # of what was fitted, on other rows
    repeats: int = 3


def numbers(n: int = ROWS, d: int = 50) -> np.ndarray:
    """Rows of a table without gaps, made in place."""
    X = np.empty((n, d))
    np.random.default_rng(0).standard_normal(out=X)
    X[:, :10] *= 3
    return X


def gappy() -> np.ndarray:
    """The same with one entry in fifty missing."""
    X = numbers()
    rng = np.random.default_rng(1)
    for column in X.T:
        column[rng.integers(len(X), size=len(X) // 50)] = np.nan
    return X


def repeated() -> np.ndarray:
    """Rows of 16 columns, a fifth of them copies of others."""
    X = numbers(d=16)
    rng = np.random.default_rng(1)
    X[rng.integers(len(X), size=len(X) // 5)] = X[rng.integers(len(X), size=len(X) // 5)]
    return X


def near_copies() -> np.ndarray:
    """Uniform rows of 4 columns, a tenth of them within 1e-3 of another."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200_000, 4))
    X[:20_000] = X[20_000:40_000] + rng.uniform(-2.5e-4, 2.5e-4, size=(20_000, 4))
    return X


def texts(n: int = 100_000, words: int = 100) -> list[str]:
    """Texts of 100 words; the first tenth are copies of later ones with three words changed (Jaccard at least 0.8)."""
    rng = np.random.default_rng(0)
    vocabulary = np.array([f"w{i}" for i in range(20_000)])
    table = rng.integers(len(vocabulary), size=(n, words))
    copies = n // 10
    table[:copies] = table[copies : 2 * copies]
    table[:copies, :3] = rng.integers(len(vocabulary), size=(copies, 3))
    return [" ".join(line) for line in vocabulary[table]]


def chained(*stages: Any) -> Callable[[Any], Any]:
    """Fit and map through several stages."""
    return lambda X: pipeline.make_pipeline(*stages).fit_transform(X)


def certified(X: Any) -> Any:
    """The three in one pipeline, with a certificate."""
    steps = [
        ("range", MinMaxScaler(ranges=(-20.0, 20.0))),
        ("impute", MeanImputer()),
        ("scale", StandardScaler()),
        ("pca", PCA(10)),
        ("mean", GaussianMechanism()),
    ]
    return Pipeline(steps, epsilon=1.0, delta=1e-8).fit(X)


def labelled(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of 20 columns, correlated in pairs, one entry in fifty missing, one row in a hundred a copy; two classes."""
    rng = np.random.default_rng(seed)
    X = np.random.default_rng(seed + 1).standard_normal((n, 20))
    X[:, 1::2] = 0.6 * X[:, ::2] + 0.8 * X[:, 1::2]
    X = 24 * ndtr(X) - 12
    scores = X @ np.linspace(-1, 1, 20)
    y = (scores / scores.std() + 0.25 * rng.logistic(size=n) > 0).astype(int)
    X.ravel()[rng.integers(X.size, size=X.size // 50)] = np.nan
    X[: n // 100], y[: n // 100] = X[n // 100 : 2 * (n // 100)], y[n // 100 : 2 * (n // 100)]
    return X, y


def main_job(rows: tuple[np.ndarray, np.ndarray]) -> Any:
    """Ranges, deduplication, imputation, scaling and a model."""
    steps = [
        ("range", MinMaxScaler(ranges=(-12.0, 12.0))),
        ("deduplicate", Deduplicator()),
        ("impute", MeanImputer()),
        ("scale", StandardScaler()),
        ("model", LogisticRegression(classes=(0, 1))),
    ]
    with warnings.catch_warnings(action="ignore", category=CompositionWarning):  # the rows are generated
        return Pipeline(steps, epsilon=1.0, delta=1e-8).fit(*rows)


def plain_job(rows: tuple[np.ndarray, np.ndarray]) -> Any:
    """The same without privacy, and without deduplication."""
    steps = (impute.SimpleImputer(), preprocessing.StandardScaler(), linear_model.LogisticRegression())
    return pipeline.make_pipeline(*steps).fit(*rows)


def distinct(stage: Any) -> Callable[[Any], Any]:
    """The rows that a deduplicator keeps."""
    return lambda X: stage.fit_resample(X)


CASES = (
    Case(
        "StandardScaler, 50 columns",
        numbers,
        lambda X: StandardScaler().fit_transform(X),
        lambda X: preprocessing.StandardScaler().fit_transform(X),
        0.8,
    ),
    Case(
        "MeanImputer, 50 columns",
        gappy,
        lambda X: MeanImputer().fit_transform(X),
        lambda X: impute.SimpleImputer().fit_transform(X),
        0.8,
    ),
    Case(
        "PCA(10, output='projected'), 50 columns",
        numbers,
        lambda X: PCA(10, output="projected").fit_transform(X),
        lambda X: decomposition.PCA(10).fit_transform(X),
        0.8,
    ),
    Case(
        "the three chained",
        gappy,
        chained(MeanImputer(), StandardScaler(), PCA(10, output="projected")),
        chained(impute.SimpleImputer(), preprocessing.StandardScaler(), decomposition.PCA(10)),
        0.8,
    ),
    Case("the three in a certified Pipeline", gappy, certified, None, None),
    Case(
        "Deduplicator, 16 columns",
        repeated,
        distinct(Deduplicator()),
        lambda X: pd.DataFrame(X).drop_duplicates(),
        1.5,
    ),
    Case(
        "GridDeduplicator, 16 columns",
        repeated,
        distinct(GridDeduplicator(cell_width=0.5)),
        lambda X: pd.DataFrame(X).drop_duplicates(),
        1.5,
    ),
    Case(
        "ClusterDeduplicator, 200,000 x 4",
        near_copies,
        distinct(ClusterDeduplicator(radius=1e-3)),
        lambda X: cKDTree(X).query_pairs(3e-3, output_type="ndarray"),
        3.0,
    ),
    Case("LSHDeduplicator, 100,000 texts", texts, distinct(LSHDeduplicator(mode="minhash")), None, None),
    *(
        Case(
            f"main job, {n:,} x 20",
            lambda n=n: labelled(n),
            main_job,
            plain_job,
            0.75,
            lambda fitted: float(fitted.score(*labelled(100_000, seed=7))),
            5,
        )
        for n in (100_000, 1_000_000, 3_000_000)
    ),
)


def seconds(action: Callable[[Any], Any], data: Any) -> float:
    """Seconds of one call. Threads of linear algebra go on spinning for a while: neither side pays for the other's."""
    time.sleep(0.2)
    start = time.perf_counter()
    action(data)
    return time.perf_counter() - start


def peak_bytes() -> int:
    """Largest resident size of this process so far (Linux; getrusage would count the parent's)."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def memory(case: Case) -> None:
    """Print the peak of our side above the data, over the size of the data; run in a fresh process."""
    data = case.data()
    size = data.nbytes if isinstance(data, np.ndarray) else sum(map(sys.getsizeof, data))
    before = peak_bytes()
    case.ours(data)
    print(1 + (peak_bytes() - before) / size)


def main(word: str) -> None:
    """Print the table."""
    print(f"{'case':<42}{'ours':>9}{'twin':>9}{'ratio':>8}{'aim':>6}{'memory':>9}")
    for position, case in enumerate(CASES):
        if word.lower() not in case.name.lower():
            continue
        data = case.data()
        ours, twin = [], []
        for _ in range(case.repeats):
            ours.append(seconds(case.ours, data))
            if case.twin is not None:
                twin.append(seconds(case.twin, data))
        if case.score is not None and case.twin is not None:
            scores = [case.score(fit(data)) for fit in (case.ours, case.twin)]
            print("accuracy {:.4f}, without privacy {:.4f}".format(*scores))
        del data
        command = [sys.executable, __file__, "--memory", str(position)]
        used = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        line = f"{case.name:<42}{min(ours):>8.2f}s"
        if twin:
            line += f"{min(twin):>8.2f}s{min(ours) / min(twin):>8.2f}{case.aim:>6}"
        else:
            line += " " * 23
        print(f"{line}{used:>8.2f}x", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--memory"]:
        memory(CASES[int(sys.argv[2])])
    else:
        main(sys.argv[1] if len(sys.argv) > 1 else "")
