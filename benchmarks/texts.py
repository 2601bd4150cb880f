"""Models of generated texts by their hashed words, with noise and without, and what the norm of a text is worth.

A text is 30 words by Zipf's law; one in five is of the topic that the label says, of 200 words each.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.feature_extraction import text
from sklearn.linear_model import LogisticRegression as Plain
from sklearn.metrics import roc_auc_score

from ppdp import Pipeline
from ppdp.mechanisms import GaussianNB, LogisticRegression
from ppdp.transformers import HashingVectorizer, MinMaxScaler

WORDS, TOPIC, LENGTH = 3000, 200, 30


def texts(n: int, rng: np.random.Generator) -> tuple[list[str], np.ndarray]:
    """Texts and their labels."""
    y = rng.integers(2, size=n)
    ranks = np.minimum(rng.zipf(1.3, (n, LENGTH)), WORDS) + 2 * TOPIC
    topical = rng.integers(TOPIC, size=(n, LENGTH)) + TOPIC * y[:, None]
    ranks = np.where(rng.random((n, LENGTH)) < 0.2, topical, ranks)
    return [" ".join(f"word{i}" for i in row) for row in ranks], y


def area(
    first: object, model: object, rows: object, y: np.ndarray, fresh: object, truth: np.ndarray, epsilon: float
) -> str:
    """AUC on other texts."""
    pipe = Pipeline([("words", first), ("model", model)], epsilon=epsilon, delta=1e-6).fit(rows, y)
    return f"{roc_auc_score(truth, pipe.predict_proba(fresh)[:, 1]):.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    n = parser.parse_args().rows
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    (rows, y), (fresh, truth) = texts(n, rng), texts(n, rng)
    linear, bayes = LogisticRegression(classes=(0, 1)), GaussianNB(classes=(0, 1))
    print("| columns | exact | eps = 1 | eps = 4 | naive Bayes, eps = 4 | the same of free columns |")
    print("|---|---|---|---|---|---|")
    for width in (64, 256, 1024):
        hashed, own = text.HashingVectorizer(n_features=width), HashingVectorizer(width)
        X, Z = (hashed.transform(given).toarray() for given in (rows, fresh))
        exact = roc_auc_score(truth, Plain(max_iter=300).fit(X, y).decision_function(Z))
        found = [
            area(own, model, rows, y, fresh, truth, e) for model, e in ((linear, 1.0), (linear, 4.0), (bayes, 4.0))
        ]
        found.append(area(MinMaxScaler((-1, 1)), bayes, X, y, Z, truth, 4.0))
        print(f"| {width} | {exact:.3f} | {' | '.join(found)} |")


if __name__ == "__main__":
    main()
