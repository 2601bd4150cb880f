"""Low-rank private training against full private training: scores of the same model with the same budget.

    python benchmarks/low_rank.py

Rows of norm one, isotropic or near a plane of 8 dimensions. Means of twenty fits, each on rows of its own, on as many
rows that were not trained on, and their standard errors.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp import make_pipeline
from ppdp.mechanisms import LogisticRegression
from ppdp.transformers import NormClipper

FITS = 20
Array = NDArray[np.float64]
TASKS = [
    ("isotropic", 4000, 256, 0.3),
    ("isotropic", 4000, 64, 1.0),
    ("isotropic", 1000, 256, 1.0),
    ("plane", 4000, 64, 1.0),
]
SOLVERS: dict[str, dict[str, Any]] = {  # of "rank" the share of the dimensions
    "dpgd": {},
    "dpgd, 10 steps": {"max_iter": 10},
    "m2, d/8": {"solver": "m2", "rank": 8},
    "m2, d/8, 80 steps": {"solver": "m2", "rank": 8, "max_iter": 80},
    "lora-fa, d/2": {"solver": "lora-fa", "rank": 2},
}


def rows(kind: str, n: int, d: int, rng: np.random.Generator) -> tuple[Array, NDArray[np.intp]]:
    """Rows of norm one, and labels with a little noise."""
    X, along = rng.normal(size=(n, d)), rng.normal(size=d)
    if kind == "plane":
        X = rng.normal(size=(n, 8)) @ rng.normal(size=(8, d)) + 0.1 * X
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    scores = X @ along
    return X, (scores + 0.1 * scores.std() * rng.normal(size=n) > 0).astype(int)


def scores(kind: str, n: int, d: int, epsilon: float, parameters: dict[str, Any]) -> str:
    """Mean score on as many other rows, and its standard error in thousandths."""
    found = []
    if "rank" in parameters:
        parameters = {**parameters, "rank": d // parameters["rank"]}
    for seed in range(FITS):
        X, y = rows(kind, 2 * n, d, np.random.default_rng(seed))
        model = LogisticRegression((0, 1), fit_intercept=False, **{"solver": "dpgd", **parameters})
        pipe = make_pipeline(NormClipper(1.0), model, epsilon=epsilon, delta=1e-5).fit(X[:n], y[:n])
        found.append(pipe.score(X[n:], y[n:]))
    return f"{np.mean(found):.3f} ({1000 * np.std(found) / FITS**0.5:.0f})"


def main() -> None:
    """One line for each task, one column for each solver."""
    warnings.simplefilter("ignore")
    print(f"{'':36}" + " ".join(f"{name:>18}" for name in SOLVERS))
    for kind, n, d, epsilon in TASKS:
        line = (f"{scores(kind, n, d, epsilon, parameters):>18}" for parameters in SOLVERS.values())
        print(f"{kind:14} n={n:5} d={d:3} eps={epsilon:3}  " + " ".join(line), flush=True)


if __name__ == "__main__":
    main()
