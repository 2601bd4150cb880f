"""AUC of a linear model behind bins and splines: of released quantiles, of exact ones, of PrivTree, of equal steps.

    python benchmarks/bins.py [--draws 5] [--rows 10000] [--epsilon 1]

Three columns of one law, labels that bend by their ranks; as many rows more are kept aside. Bins between exact
quantiles are taken for public, and so are those of PrivTree (Zhang, Xiao and Xie, 2016): its cells of at least
``LEAST`` rows or so are found with an epsilon of its own for each column, on top of that of the model, which is what it
could gain at most.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline as make_plain_pipeline
from sklearn.preprocessing import SplineTransformer as PlainSplines

from ppdp import Pipeline, make_pipeline
from ppdp.mechanisms import LogisticRegression
from ppdp.transformers import KBinsDiscretizer, MinMaxScaler, NormClipper, SplineTransformer

Array = NDArray[np.float64]
Cuts = Sequence[Sequence[float]]
BINS, KNOTS, DELTA = 10, 6, 1e-6
LEAST, TREE_EPSILON, DEEPEST = 1000.0, 0.3, 40
LAWS: dict[str, tuple[float, Callable[[np.random.Generator, int], Array]]] = {
    "log-normal": (20.0, lambda rng, n: rng.lognormal(size=(n, 3))),
    "beta(2, 5)": (1.0, lambda rng, n: rng.beta(2, 5, (n, 3))),
    "uniform": (1.0, lambda rng, n: rng.uniform(size=(n, 3))),
    "normal, sd a tenth of the range": (1.0, lambda rng, n: rng.normal(0.5, 0.1, (n, 3))),
    "Pareto, range 0 to 1000": (1000.0, lambda rng, n: rng.pareto(1.5, (n, 3))),
}


def drawn(law: str, n: int, seed: int) -> tuple[Array, NDArray[np.int64], float]:
    """Rows within 0 and the top of the public range, their labels, and that top."""
    top, law_of = LAWS[law]
    rng = np.random.default_rng(seed)
    X = np.clip(law_of(rng, n), 0, top)
    ranks = np.apply_along_axis(rankdata, 0, X) / n
    score = 3 * np.sin(3 * ranks[:, 0]) + 16 * (ranks[:, 1] - 0.5) ** 2 - 2 * ranks[:, 2]
    return X, (score - np.median(score) + 0.7 * rng.logistic(size=n) > 0).astype(int), top


def privtree(column: Array, top: float, rng: np.random.Generator) -> list[float]:
    """Cuts of halved cells, each of which has a noisy number of rows above a threshold, less a bias by its depth."""
    scale = 3 / TREE_EPSILON
    bias, cuts = scale * math.log(2), []
    cells = [(0.0, top * (1 + 1e-9), 0)]
    while cells:
        low, high, depth = cells.pop()
        count = ((column >= low) & (column < high)).sum()
        noisy = max(count - depth * bias, LEAST - bias) + rng.laplace(scale=scale)
        if noisy > LEAST and depth < DEEPEST:
            middle = (low + high) / 2
            cuts.append(middle)
            cells += [(low, middle, depth + 1), (middle, high, depth + 1)]
    return sorted(cuts)


def hot(X: Array, cuts: Cuts) -> Array:
    return np.hstack([np.eye(len(own) + 1)[np.searchsorted(own, column)] for column, own in zip(X.T, cuts)])


def private(*stages: object, epsilon: float, seed: int) -> Pipeline:
    model = LogisticRegression(classes=(0, 1))
    return make_pipeline(*stages, model, epsilon=epsilon, delta=DELTA, random_state=seed, dataset="benchmark")


def compare(law: str, n: int, epsilon: float, draws: int) -> None:
    found: dict[str, list[float]] = {}
    for seed in range(draws):
        X, y, top = drawn(law, 2 * n, seed)
        rng = np.random.default_rng(seed)

        def score(name: str, model: object, mapped: Array, y: NDArray[np.int64] = y) -> None:
            proba = model.fit(mapped[:n], y[:n]).predict_proba(mapped[n:])[:, 1]
            found.setdefault(name, []).append(roc_auc_score(y[n:], proba))

        scale = MinMaxScaler(ranges=(0, top), feature_range=(0, 1))
        clip = NormClipper(math.sqrt(X.shape[1]))
        score("released quantiles", private(scale, KBinsDiscretizer(BINS), epsilon=epsilon, seed=seed), X)
        exact = np.quantile(X[:n], np.arange(1, BINS) / BINS, axis=0).T
        score("exact quantiles", private(clip, epsilon=epsilon, seed=seed), hot(X, exact))
        cells = [privtree(column, top, rng) for column in X[:n].T]
        score("PrivTree", private(clip, epsilon=epsilon, seed=seed), hot(X, cells))
        score("splines, released", private(scale, SplineTransformer(KNOTS), epsilon=epsilon, seed=seed), X)
        even = PlainSplines(KNOTS).fit(np.array([[0.0] * 3, [top] * 3]))
        score("splines, equal steps", private(clip, epsilon=epsilon, seed=seed), even.transform(X))
        plain = make_plain_pipeline(PlainSplines(KNOTS, knots="quantile"), PlainLogisticRegression(max_iter=1000))
        score("splines, without noise", plain, X)
    print(f"{law:32}", *(f"{name} {np.mean(areas):.4f} " for name, areas in found.items()), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    for law in LAWS:
        compare(law, chosen.rows, chosen.epsilon, chosen.draws)


if __name__ == "__main__":
    main()
