"""Share of right predictions of naive Bayes: ours, diffprivlib's, and scikit-learn's without noise.

    python benchmarks/naive_bayes.py [--draws 20] [--only NAME ...]

In an environment of diffprivlib. Both sides know the same ranges (of scikit-learn's tables those that are printed with
them, else what columns mean) and see the same three quarters of the rows; theirs has delta = 0.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable

import numpy as np
from boosting import archived
from diffprivlib.models import GaussianNB as Diffprivlib
from kmeans import REAL
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB as PlainGaussianNB

from ppdp import make_pipeline
from ppdp.mechanisms import GaussianNB
from ppdp.transformers import MinMaxScaler

Array = NDArray[np.float64]
Table = tuple[Array, NDArray[np.int64]]  # columns within -1 to 1, labels 0, 1, ...
EPSILONS, DELTA = (0.3, 1.0, 3.0), 1e-6


def bundled(load: Callable[..., tuple[Array, NDArray[np.int64]]]) -> Table:
    """Public ranges are those that the table is described by, which are its smallest and largest values."""
    X, y = load(return_X_y=True)
    low, high = X.min(axis=0), X.max(axis=0)
    return 2 * (X - low) / np.where(high > low, high - low, 1) - 1, y


def real(name: str, label: str, one: object, columns: dict[str, tuple[float, float]] | None = None) -> Table:
    """A table in its public ranges; the label is whether a column is as said."""
    member, ranges = REAL.get(name, (name, columns))
    rows = archived(member).dropna(subset=[*ranges, label])
    low, high = np.array([ends for column, ends in ranges.items() if column != label]).T
    X = rows[[column for column in ranges if column != label]].to_numpy(dtype=np.float64)
    y = rows[label] > one if isinstance(one, float) else rows[label] == one
    return np.clip(2 * (X - low) / (high - low) - 1, -1, 1), y.to_numpy().astype(int)


def blobs(n: int, d: int, classes: int) -> Table:
    X, y = datasets.make_blobs(n, d, centers=classes, cluster_std=0.3, center_box=(-0.4, 0.4), random_state=0)
    return np.clip(X, -1, 1), y


LIGHT_CHAINS = {"age": (50, 105), "kappa": (0, 30), "lambda": (0, 30)}
TABLES: dict[str, Callable[[], Table]] = {
    "iris": lambda: bundled(datasets.load_iris),
    "wine": lambda: bundled(datasets.load_wine),
    "breast cancer": lambda: bundled(datasets.load_breast_cancer),
    "digits": lambda: bundled(datasets.load_digits),
    "flchain": lambda: real("survival/flchain", "death", 1, LIGHT_CHAINS),
    "wives": lambda: real("wives", "whi", "yes"),
    "Vietnam": lambda: real("Vietnam", "illness", 0.0),
    "diamonds": lambda: real("diamonds", "price", 2500.0),
    "three blobs": lambda: blobs(2_000, 5, 3),
    "two blobs": lambda: blobs(10_000, 10, 2),
}


def share(model: object, learned: Table, test: Table) -> float:
    return float(np.mean(model.fit(*learned).predict(test[0]) == test[1]))


def compare(name: str, draws: int) -> None:
    X, y = TABLES[name]()
    d, classes = X.shape[1], np.unique(y)
    found: dict[str, list[float]] = {}
    for seed in range(draws):
        X_learned, X_test, y_learned, y_test = train_test_split(X, y, test_size=0.25, random_state=seed)
        sides = (X_learned, y_learned), (X_test, y_test)
        found.setdefault("scikit-learn", []).append(share(PlainGaussianNB(), *sides))
        for epsilon in EPSILONS:
            scale = MinMaxScaler(ranges=(-1, 1), feature_range=(-1, 1))
            budget = {"epsilon": epsilon, "delta": DELTA, "random_state": seed, "dataset": "benchmark"}
            ours = make_pipeline(scale, GaussianNB(tuple(classes)), **budget)
            theirs = Diffprivlib(epsilon=epsilon, bounds=(-np.ones(d), np.ones(d)), random_state=seed)
            found.setdefault(f"ours, {epsilon}", []).append(share(ours, *sides))
            found.setdefault(f"diffprivlib, {epsilon}", []).append(share(theirs, *sides))
    figures = "  ".join(f"{what} {np.mean(shares):.4f}" for what, shares in found.items())
    print(f"{name:14} n = {len(X):6} d = {d:2} classes = {len(classes):2}  {figures}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--only", nargs="+", default=list(TABLES), choices=list(TABLES), metavar="NAME")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in chosen.only:
        compare(name, chosen.draws)


if __name__ == "__main__":
    main()
