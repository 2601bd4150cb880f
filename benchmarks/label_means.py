"""Mean labels of one column with many categories, against one column of 0 and 1 for each of them.

    python benchmarks/label_means.py

Rows have one of so many categories, the k-th in proportion to 1/k, each with an effect of its own (normal, standard
deviation 1.2), and four numbers. Area under the curve on as many fresh rows; private fits are means of three draws at
delta = 1e-6. scikit-learn's TargetEncoder fits across folds and without privacy.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn import compose, linear_model, metrics, pipeline, preprocessing

from ppdp import Pipeline, make_column_map
from ppdp.mechanisms import LogisticRegression
from ppdp.transformers import CategoryEncoder, MinMaxScaler, TargetMeanEncoder

SIZES = ((10_000, 50), (20_000, 500), (50_000, 2_000))
EPSILONS = (1.0, 3.0)
NUMBERS = list("abcd")
MOST_COLUMNS = 500  # of 0 and 1, beyond which training takes minutes


def rows(n: int, k: int, rng: np.random.Generator) -> tuple[pd.DataFrame, Any, list[str]]:
    """A table, labels, and the names of all categories."""
    effect, share, names = 1.2 * rng.normal(size=k), 1 / np.arange(1, k + 1), [f"c{i}" for i in range(k)]
    category, X = rng.choice(k, size=n, p=share / share.sum()), rng.uniform(-1, 1, (n, 4))
    y = (rng.random(n) < 1 / (1 + np.exp(-(effect[category] + X @ [1, -1, 0.5, 0])))).astype(int)
    return pd.DataFrame(X, columns=NUMBERS).assign(ward=np.array(names)[category]), y, names


def areas(n: int, k: int) -> dict[str, float]:
    """The areas of all models at one size."""
    X, y, names = rows(2 * n, k, np.random.default_rng(1))

    def area(model: Any) -> float:
        return float(metrics.roc_auc_score(y[n:], model.fit(X[:n], y[:n]).predict_proba(X[n:])[:, 1]))

    def plain(encoder: Any) -> float:
        columns = compose.make_column_transformer((encoder, ["ward"]), ("passthrough", NUMBERS))
        return area(pipeline.make_pipeline(columns, linear_model.LogisticRegression(max_iter=500)))

    def private(epsilon: float, encoding: str, *behind: Any) -> float:
        columns = (CategoryEncoder(names, encoding=encoding), ["ward"]), (MinMaxScaler(ranges=(-1, 1)), NUMBERS)
        steps = [("columns", make_column_map(*columns)), *behind, ("model", LogisticRegression((0, 1)))]
        return float(np.mean([area(Pipeline(steps, epsilon=epsilon, delta=1e-6)) for _ in range(3)]))

    found = {"one-hot": plain(preprocessing.OneHotEncoder(handle_unknown="ignore"))}
    found["TargetEncoder"] = plain(preprocessing.TargetEncoder(random_state=0))
    found["numbers alone"] = plain("drop")
    for epsilon in EPSILONS:
        means = private(epsilon, "ordinal", ("means", TargetMeanEncoder(["ward"])))
        found[f"private one-hot, {epsilon:g}"] = private(epsilon, "onehot") if k <= MOST_COLUMNS else np.nan
        found[f"TargetMeanEncoder, {epsilon:g}"] = means
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of fits that are not added up, and of categories that a half does not have
    print(pd.DataFrame({f"n = {n:,}, {k} categories": areas(n, k) for n, k in SIZES}).round(3).to_string())
