"""Linear models beside scikit-learn's on tables made up with long tails, zeros, clusters and gaps, in ranges too wide.

    python benchmarks/long_tails.py [--epsilon 1] [--draws 10] [--rows 5000 20000] [--only NAME ...]

Three columns of the named kind, three normal ones and two of 0 and 1; declared ranges are 1, 10 and 100 times what 99 %
of the first three need. A line for each table has the score of scikit-learn's pipeline on held-out rows (AUC, or R²)
and for each width of ranges how far ours is behind, with the standard error of that.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ppdp import Pipeline

NEW, TIMES = 20_000, (1, 10, 100)


@dataclass(frozen=True)
class Made:
    """How three columns are drawn, and what they do: in full, or by their logarithms."""

    draw: Callable[[np.random.Generator, tuple[int, int]], Any]
    linear: bool = False
    squares: bool = False  # least squares, else two classes
    rare: float = 0.0  # added to the intercept
    gaps: float = 0.0
    low: float = 0.0  # where ranges begin, times how much too wide they are


TABLES: Mapping[str, Made] = {
    "log-normal": Made(lambda rng, size: rng.lognormal(size=size)),
    "log-normal, rare class": Made(lambda rng, size: rng.lognormal(size=size), rare=-3.5),
    "log-normal, 15 % missing": Made(lambda rng, size: rng.lognormal(size=size), gaps=0.15),
    "Pareto": Made(lambda rng, size: rng.pareto(2.5, size)),
    "zeros but for 15 %": Made(lambda rng, size: rng.lognormal(size=size) * (rng.random(size) < 0.15)),
    "a cluster of 3 % far away": Made(lambda rng, size: rng.normal(3 + 17 * (rng.random(size) < 0.03)), linear=True),
    "normal, off the middle": Made(lambda rng, size: rng.normal(5, 1, size), linear=True, low=-10),
    "least squares, normal": Made(lambda rng, size: rng.normal(5, 1, size), linear=True, squares=True, low=-10),
    "least squares, very long tails": Made(lambda rng, size: rng.lognormal(0, 1.6, size), linear=True, squares=True),
}


def drawn(table: Made, n: int, times: float, seed: int) -> tuple[Any, Any, list[tuple[float, float]], dict[str, Any]]:
    """Rows clipped to their ranges, labels or targets, ranges, and what is known of the labels."""
    rng, size = np.random.default_rng(seed), n + NEW
    T = table.draw(rng, (size, 3))
    X = np.column_stack([T, rng.normal(size=(size, 3)), rng.random((size, 2)) < 0.3])
    effect = T if table.linear else np.log1p(T)
    shown = np.column_stack([(effect - effect.mean(axis=0)) / effect.std(axis=0), X[:, 3:]])
    score = shown @ [0.8, -0.5, 0.3, 0.5, 0.0, -0.4, 0.6, -0.3]
    most = times * np.quantile(T, 0.99, axis=0)
    ranges = (
        [(min(table.low * times, float(T.min())), float(one)) for one in most] + [(-5.0, 5.0)] * 3 + [(0.0, 1.0)] * 2
    )
    X = np.clip(X, *np.transpose(ranges))
    X[rng.random(X.shape) < table.gaps] = np.nan
    if table.squares:
        y = score + rng.normal(0, 0.7, size)
        return X, y, ranges, {"y_range": (float(y.min()), float(y.max()))}
    return X, (rng.random(size) < 1 / (1 + np.exp(-score - table.rare))).astype(int), ranges, {"classes": (0, 1)}


def behind(table: Made, n: int, times: float, epsilon: float, seed: int) -> tuple[float, float]:
    """Score of scikit-learn's pipeline, and how much better ours is."""
    X, y, ranges, known = drawn(table, n, times, seed)
    model = Ridge() if table.squares else LogisticRegression(max_iter=1000)
    plain = make_pipeline(*[SimpleImputer()] * (table.gaps > 0), StandardScaler(), model)
    ours = Pipeline.from_sklearn(clone(plain), ranges=ranges, epsilon=epsilon, delta=1e-6, random_state=seed, **known)
    scores = [
        r2_score(y[n:], one.predict(X[n:])) if table.squares else roc_auc_score(y[n:], one.predict_proba(X[n:])[:, 1])
        for one in (plain.fit(X[:n], y[:n]), ours.fit(X[:n], y[:n]))
    ]
    return scores[0], scores[1] - scores[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--rows", type=int, nargs="+", default=[5_000, 20_000])
    parser.add_argument("--only", nargs="+", default=list(TABLES), choices=list(TABLES), metavar="NAME")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    for n in chosen.rows:
        for name in chosen.only:
            cells = []
            for times in TIMES:
                found = [behind(TABLES[name], n, times, chosen.epsilon, seed) for seed in range(chosen.draws)]
                plain, apart = np.transpose(found)
                cells.append(f"{plain.mean():.4f} {apart.mean():+.4f} ± {apart.std() / chosen.draws**0.5:.4f}")
            print(f"| {n:,} | {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
