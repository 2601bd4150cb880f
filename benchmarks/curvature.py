"""Curvature learnt from released gradients against steps of one length: scores of the same models with the same budget.

    python benchmarks/curvature.py

Rows are isotropic, away from zero in every column, or of columns whose scales fall like 1/j. Means of three seeds of
noise.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from ppdp import make_pipeline
from ppdp.mechanisms import LinearRegression, LinearSVC, LogisticRegression, PoissonRegressor, Ridge
from ppdp.mechanisms.learn.descent import noise_is_small
from ppdp.transformers import NormClipper

N, D = 24_000, 20
Array = NDArray[np.float64]

ROWS: dict[str, Callable[[np.random.Generator], Array]] = {
    "isotropic": lambda rng: rng.normal(size=(N + N // 4, D)),
    "away from zero": lambda rng: 1 + 0.5 * rng.normal(size=(N + N // 4, D)),
    "falling scales": lambda rng: 3 * rng.normal(size=(N + N // 4, D)) / np.arange(1, D + 1),
}
MODELS: dict[str, tuple[Any, Callable[[Array, np.random.Generator], Any]]] = {
    "logistic": (
        LogisticRegression((0, 1), solver="dpgd"),
        lambda s, rng: (s + 0.3 * rng.normal(size=s.size) > 0).astype(int),
    ),
    "softmax": (LogisticRegression((0, 1, 2), solver="dpgd"), lambda s, rng: np.digitize(s, [-0.5, 0.5])),
    "hinge": (LinearSVC((0, 1), solver="dpgd"), lambda s, rng: (s > 0).astype(int)),
    "squares": (LinearRegression((-4, 4), solver="dpgd"), lambda s, rng: s + 0.3 * rng.normal(size=s.size)),
    "ridge": (Ridge((-4, 4), solver="dpgd", alpha=10.0), lambda s, rng: s + 0.3 * rng.normal(size=s.size)),
    "Poisson": (PoissonRegressor((0, 20), solver="dpgd"), lambda s, rng: np.minimum(20.0, rng.poisson(np.exp(s / 2)))),
}


def score(model: Any, X: Array, y: Any, epsilon: float, learnt: bool) -> float:
    """Mean score on the last fifth of the rows."""
    found = []
    for seed in range(3):
        pipe = make_pipeline(NormClipper(D**0.5), model, epsilon=epsilon, delta=1e-6, random_state=seed)
        with patch(
            "ppdp.mechanisms.learn.gradient_solvers.noise_is_small", lambda *facts: learnt and noise_is_small(*facts)
        ):
            found.append(pipe.fit(X[:N], y[:N]).score(X[N:], y[N:]))
    return float(np.mean(found))


def main() -> None:
    """One line for each kind of rows and model."""
    warnings.simplefilter("ignore")
    print("score at epsilon 1 and 5, steps of one length > curvature learnt")
    for kind, draw in ROWS.items():
        rng = np.random.default_rng(0)
        X, direction = draw(rng), rng.normal(size=D)
        signal = (X - X.mean(axis=0)) @ direction
        for name, (model, answers) in MODELS.items():
            y = answers(signal / signal.std(), rng)
            pairs = [[score(model, X, y, epsilon, learnt) for learnt in (False, True)] for epsilon in (1.0, 5.0)]
            print(f"{kind:15} {name:9}", *(f"{fixed:7.3f} > {learnt:.3f}" for fixed, learnt in pairs), flush=True)


if __name__ == "__main__":
    main()
