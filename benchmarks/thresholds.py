"""Thresholds by released counts, against scikit-learn's TunedThresholdClassifierCV.

    python benchmarks/thresholds.py

randhie of statsmodels: who saw a doctor (69 %), and whose health is fair or poor (9 %); and a made-up table with a rare
class (3 %). 14,000 rows are trained on, as many as are left are tested on; means of five splits, epsilon = 1,
delta = 1e-6. In brackets a threshold of a half, private.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets, ensemble, linear_model, metrics, model_selection, pipeline, preprocessing

from ppdp import Pipeline
from ppdp.datasets import load_randhie
from ppdp.mechanisms import GradientBoostingClassifier, LogisticRegression
from ppdp.mechanisms.thresholds import SCORES
from ppdp.transformers import MinMaxScaler, StandardScaler

TRAINED, SPLITS = 14_000, 5
HEALTH = ["hlthg", "hlthf", "hlthp"]


def tables() -> Iterator[tuple[str, pd.DataFrame, Any, Any]]:
    """Name, table, labels and public ranges."""
    X, y, ranges = load_randhie()
    yield "saw a doctor", X, y.astype(int).to_numpy(), ranges
    poor = (X["hlthf"] + X["hlthp"] > 0).astype(int).to_numpy()
    yield "poor health", X.drop(columns=HEALTH), poor, {k: v for k, v in ranges.items() if k not in HEALTH}
    X, y = datasets.make_classification(20_000, 8, n_informative=5, weights=[0.97], class_sep=0.8, random_state=1)
    yield "rare class", pd.DataFrame(X.clip(-6, 6)).add_prefix("x"), y, (-6, 6)


def private(kind: Any, ranges: Any, **given: Any) -> Any:
    """A private model."""
    scaler = [("scale", StandardScaler())] if kind is LogisticRegression else []
    model = ("model", kind(classes=(0, 1), **given))
    return Pipeline([("range", MinMaxScaler(ranges)), *scaler, model], epsilon=1.0, delta=1e-6)


def main() -> None:
    """Print a line for every table and score."""
    warnings.simplefilter("ignore")
    plain = pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression(max_iter=500))
    pairs = ((LogisticRegression, plain), (GradientBoostingClassifier, ensemble.HistGradientBoostingClassifier()))
    for name, X, y, ranges in tables():
        for scoring in SCORES:
            line = [f"{name} ({100 * y.mean():.0f} %), {scoring}"]
            score = getattr(metrics, "f1_score" if scoring == "f1" else f"{scoring}_score")
            for kind, twin in pairs:
                found = []
                for split in range(SPLITS):
                    A, B, a, b = model_selection.train_test_split(
                        X, y, train_size=TRAINED, stratify=y, random_state=split
                    )
                    tuned = model_selection.TunedThresholdClassifierCV(twin, scoring=scoring, cv=3)
                    models = tuned, private(kind, ranges, threshold=scoring), private(kind, ranges)
                    found.append([score(b, model.fit(A, a).predict(B)) for model in models])
                theirs, ours, half = np.mean(found, axis=0)
                line.append(f"{kind.__name__}: {theirs:.3f}, private {ours:.3f} ({half:.3f})")
            print("; ".join(line), flush=True)


if __name__ == "__main__":
    main()
