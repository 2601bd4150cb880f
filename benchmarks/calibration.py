"""Probabilities of private classifiers with and without ``calibration="sigmoid"``, and of scikit-learn's calibrated.

    python benchmarks/calibration.py

A made-up table of ten columns and a rarer class (15 %), whose log-odds are no line, epsilon = 1, delta = 1e-6; 50,000
further rows are predicted. Of each model log loss, and how far the mean probability of a tenth of the rows, by
probability, is from the share of the second class among them, on average: means of ten draws, standard deviations in
brackets.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn import calibration, ensemble, linear_model, metrics, svm

from ppdp import Pipeline
from ppdp.mechanisms import GradientBoostingClassifier, LinearSVC, LogisticRegression
from ppdp.transformers import MinMaxScaler

COLUMNS, LIMIT, TESTED, DRAWS = 10, 3.0, 50_000, 10
WEIGHED = {"class_weight": "balanced"}
PRIVATE: dict[str, tuple[Any, dict[str, Any]]] = {
    "logistic regression": (LogisticRegression, {}),
    "logistic regression, balanced": (LogisticRegression, WEIGHED),
    "boosting": (GradientBoostingClassifier, {}),
    "boosting, balanced": (GradientBoostingClassifier, WEIGHED),
    "support vectors": (LinearSVC, {}),
}
THEIRS = {
    "logistic regression": linear_model.LogisticRegression(),
    "logistic regression, balanced": linear_model.LogisticRegression(**WEIGHED),
    "boosting": ensemble.HistGradientBoostingClassifier(),
    "boosting, balanced": ensemble.HistGradientBoostingClassifier(**WEIGHED),
    "support vectors": svm.LinearSVC(),
}


def table(rows: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Rows and labels."""
    X = rng.normal(size=(rows, COLUMNS)).clip(-LIMIT, LIMIT)
    odds = X[:, :4] @ [1.2, -0.8, 0.6, 0.4] + 0.5 * X[:, 0] * X[:, 4] + 0.4 * np.abs(X[:, 5]) - 2.8
    return X, (rng.random(rows) < expit(odds)).astype(int)


def scores(model: Any, X: Any, y: Any) -> list[float]:
    """Log loss, and how far probabilities are off by tenths of the rows."""
    p = model.predict_proba(X)[:, 1]
    tenths = np.array_split(np.argsort(p), 10)
    return [metrics.log_loss(y, p), float(np.mean([abs(p[rows].mean() - y[rows].mean()) for rows in tenths]))]


def private(kind: Any, given: dict[str, Any], how: str | None) -> Any:
    """A private model."""
    model = kind(classes=(0, 1), calibration=how, **given)
    return Pipeline([("range", MinMaxScaler((-LIMIT, LIMIT))), ("model", model)], epsilon=1.0, delta=1e-6)


def main() -> None:
    """Print a line for every number of rows and model."""
    warnings.simplefilter("ignore")
    for rows in (2_000, 6_000, 30_000):
        found: dict[str, list[list[float]]] = {}
        for draw in range(DRAWS):
            rng = np.random.default_rng(draw)
            (X, y), (A, b) = table(rows, rng), table(TESTED, rng)
            models = {f"{name}, calibrated by scikit-learn": one for name, one in THEIRS.items()}
            models = {name: calibration.CalibratedClassifierCV(one) for name, one in models.items()}
            for name, (kind, given) in PRIVATE.items():
                if kind is not LinearSVC:
                    models |= {f"private {name}": private(kind, given, None)}
                models |= {f"private {name}, calibrated": private(kind, given, "sigmoid")}
            for name, model in models.items():
                found.setdefault(name, []).append(scores(model.fit(X, y), A, b))
        for name, each in found.items():
            (loss, off), (of_loss, of_off) = np.mean(each, axis=0), np.std(each, axis=0)
            print(f"{rows} rows, {name}: log loss {loss:.4f} ({of_loss:.4f}), off {off:.4f} ({of_off:.4f})", flush=True)


if __name__ == "__main__":
    main()
