"""How long random projections take against scikit-learn's, and on sparse rows against a product with a dense matrix.

    python benchmarks/projection.py

Both sides run in this process, in turn, best of five; a ratio is ours over theirs, for sparse rows theirs over ours.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.sparse import random_array
from sklearn.random_projection import GaussianRandomProjection

from ppdp.transformers import RandomProjection

FAMILIES = {
    "gaussian": {"family": "gaussian"},
    "uniform": {"family": "uniform"},
    "rademacher": {"family": "rademacher"},
    "sparse, s = √d": {"family": "sparse"},
    "sparse, s = 3": {"family": "sparse", "s": 3.0},
    **{f"oporp, {bins}": {"family": "oporp", "bins": bins} for bins in ("balanced", "fixed", "variable")},
}


def seconds(*sides: Callable[[], object], rounds: int = 5) -> list[float]:
    """Shortest time of every side."""
    best = [np.inf] * len(sides)
    for _ in range(rounds):
        for i, side in enumerate(sides):
            start = time.perf_counter()
            side()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def dense(n: int = 100_000, d: int = 784, k: int = 256) -> None:
    """Dense rows."""
    X = np.random.default_rng(0).uniform(size=(n, d))
    twin = GaussianRandomProjection(k, random_state=0).fit(X[:2])
    print(f"{n:,} x {d} dense to {k}: transform over scikit-learn's GaussianRandomProjection.transform")
    for name, chosen in FAMILIES.items():
        stage = RandomProjection(k, **chosen).fit(X[:2])
        ours, theirs = seconds(partial(stage.transform, X), partial(twin.transform, X))
        print(f"  {name:<18} {ours:6.2f} s / {theirs:6.2f} s = {ours / theirs:5.2f}")


def sparse(n: int, d: int = 65_536, k: int = 256, density: float = 1e-3) -> None:
    """Sparse rows."""
    X = random_array((n, d), density=density, format="csr", rng=np.random.default_rng(0))
    A = np.random.default_rng(1).standard_normal((d, k))
    print(f"{n:,} x {d} at {density:.1%} to {k}: X @ dense over transform")
    for name in ("gaussian", "sparse, s = √d", "oporp, balanced", "oporp, fixed", "oporp, variable"):
        stage = RandomProjection(k, **FAMILIES[name]).fit(X[:2])
        ours, theirs = seconds(partial(stage.transform, X), partial(operator.matmul, X, A))
        print(f"  {name:<18} {1e3 * theirs:7.1f} ms / {1e3 * ours:7.1f} ms = {theirs / ours:5.1f}")


if __name__ == "__main__":
    sparse(2_000)
    sparse(20_000)
    dense()
