"""How long planning, verifying, importing, drawing noise and one fit take.

Run ``python benchmarks/speed.py``; the figures come last, medians of repeated runs.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from ppdp import Certificate, Domain, Pipeline
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.privacy.noise.laplace import laplace_release
from ppdp.privacy.noise.sampler import Noise
from ppdp.transformers import PCA, Deduplicator, MeanImputer, MinMaxScaler, StandardScaler

PROCESSES = 10
PIECES = "import sklearn.base, sklearn.pipeline, sklearn.metrics, sklearn.linear_model"

ADDED = """
import time
{first}
start = time.perf_counter()
import ppdp
print(time.perf_counter() - start)
"""
VERIFIED = """
import sys, time
from ppdp import Certificate
text = sys.stdin.read()
start = time.perf_counter()
assert Certificate.from_json(text).verify()
print(time.perf_counter() - start)
"""


def median_seconds(action: Callable[[], object], repeats: int) -> float:
    """Median time of a call in this process, after one call to warm up."""
    action()
    return statistics.median(_timed(action) for _ in range(repeats))


def fresh_seconds(script: str, text: str = "") -> float:
    """Median of what a script prints, in fresh processes."""
    command = [sys.executable, "-c", script]
    return statistics.median(
        float(subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout)
        for _ in range(PROCESSES)
    )


def _timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def data(n: int = 5905, d: int = 7) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the size of flchain's training part, a sixth of them with a gap."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(n, d)), rng.integers(2, size=n)
    X[: n // 6, 4] = np.nan
    return X, y


def pipelines() -> dict[str, Pipeline]:
    """The main job, and a pipeline of Gaussian releases with a choice at every stage."""
    clean = [("range", MinMaxScaler(ranges=(0, 1))), ("dedup", Deduplicator()), ("impute", MeanImputer())]
    model = ("model", LogisticRegression(classes=(0, 1)))
    return {
        "main job": Pipeline([*clean, ("scale", StandardScaler()), model]),
        "sixteen routes": Pipeline(
            [
                *clean,
                ("scale", StandardScaler(clip=None)),
                ("pca", PCA(5)),
                ("again", StandardScaler()),
                ("mean", GaussianMechanism()),
            ],
            epsilon=3.0,
        ),
    }


def main() -> None:
    """Measure, then print."""
    X, y = data()
    domain = Domain(n_rows=X.shape[0], n_features=X.shape[1])
    lines = []
    for name, pipe in pipelines().items():
        lines.append(f"plan, {name}: {1e3 * median_seconds(lambda p=pipe: p.plan(domain), 50):.2f} ms (goal 20)")
    pipe = pipelines()["main job"]
    lines.append(f"fit, main job, {X.shape[0]} x {X.shape[1]}: {median_seconds(lambda: pipe.fit(X, y), 5):.3f} s")
    text = pipe.certificate_.to_json()
    certificate = Certificate.from_json(text)
    lines.append(f"verify, warm: {1e3 * median_seconds(certificate.verify, 50):.2f} ms (goal 50)")
    lines.append(f"verify, first call in a fresh process: {1e3 * fresh_seconds(VERIFIED, text):.1f} ms")
    for first in ("", "import sklearn", PIECES):
        words = {"": "alone", PIECES: "over sklearn.base, pipeline, metrics, linear_model"}.get(first, "over sklearn")
        goal = " (goal 0.3)" if first == PIECES else ""
        lines.append(f"import ppdp, {words}: {fresh_seconds(ADDED.format(first=first)):.3f} s{goal}")
    noise, draws = Noise(), 10**6
    lines.append(f"noise: {draws / median_seconds(lambda: noise.standard_lattice(draws), 5) / 1e6:.2f} million draws/s")
    zeros = np.zeros(draws)
    for whole in (False, True):
        seconds = median_seconds(lambda whole=whole: laplace_release(noise, zeros, 1.0, 1.0, whole=whole), 5)
        law = "whole Laplace" if whole else "Laplace"
        lines.append(f"noise, {law}: {draws / seconds / 1e6:.2f} million draws/s (goal 5)")
    value = np.zeros(8)
    lines.append(f"noise, 8 numbers: {1e6 * median_seconds(lambda: noise.release(value, 1.0, 1.0), 2000):.0f} us")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
