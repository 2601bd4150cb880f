"""How many of scikit-learn's choice of columns SelectKBest finds, and what a model behind it gains.

python benchmarks/column_choice.py
"""

import warnings

import numpy as np
from sklearn import feature_selection

from ppdp import make_pipeline
from ppdp.mechanisms import LogisticRegression
from ppdp.transformers import MinMaxScaler, SelectKBest

COLUMNS, KEPT, DRAWS = 60, 5, 10
EFFECTS = {1: 1.0, 4: 0.7, 9: 0.5, 12: 2.0, 30: 1.5}


def table(n, rng):
    """Columns of which every third is narrow, and classes that five of them tell."""
    X = rng.uniform(-1, 1, (n, COLUMNS))
    X[:, ::3] *= 0.3
    score = sum(effect * X[:, column] for column, effect in EFFECTS.items())
    return X, (score + 0.3 * rng.standard_normal(n) > 0).astype(int)


def main():
    warnings.simplefilter("ignore")
    print("n, epsilon: of five columns found; right predictions with the five and with all columns")
    for n in (2_000, 10_000, 50_000):
        for epsilon in (0.3, 1.0, 3.0):
            found, right = [], []
            for draw in range(DRAWS):
                rng = np.random.default_rng(draw)
                (X, y), (new, labels) = table(n, rng), table(5_000, rng)
                theirs = feature_selection.SelectKBest(k=KEPT).fit(X, y).get_support()
                box, model = MinMaxScaler(ranges=(-1, 1)), LogisticRegression((0, 1))
                pipes = [make_pipeline(box, *stage, model, epsilon=epsilon) for stage in ([SelectKBest(KEPT)], [])]
                right.append([pipe.fit(X, y).score(new, labels) for pipe in pipes])
                found.append((pipes[0]["selectkbest"].get_support() & theirs).sum())
            print(f"{n:>7,} {epsilon:>4} {np.mean(found):5.1f}  {np.round(np.mean(right, axis=0), 3)}")


if __name__ == "__main__":
    main()
