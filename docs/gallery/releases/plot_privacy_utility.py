"""
What privacy costs in accuracy
==============================

The pipeline of the first page, fitted five times for each ε and scored on rows that
were held out. From about ε = 0.3 on it is as good as the pipeline without privacy; at
0.03 and 0.1 the fits warn that released means are too noisy, as the curve shows. The
flchain data are public, so their scores may be shown: scores of private rows are
private themselves.
"""

import matplotlib.pyplot as plt
from sklearn import linear_model, preprocessing
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from ppdp import Ledger, Pipeline, plot
from ppdp.datasets import load_flchain
from ppdp.mechanisms import LogisticRegression
from ppdp.transformers import Deduplicator, MeanImputer, MinMaxScaler, StandardScaler

X, y, ranges = load_flchain()
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
steps = [
    ("range", MinMaxScaler(ranges=ranges)),
    ("dedup", Deduplicator()),
    ("impute", MeanImputer()),
    ("scale", StandardScaler()),
    ("model", LogisticRegression(classes=(0, 1))),
]
scaler, model = preprocessing.StandardScaler(), linear_model.LogisticRegression()
usual = make_pipeline(SimpleImputer(), scaler, model)
without = usual.fit(X_train, y_train).score(X_test, y_test)

results = []
with Ledger():  # counts all the fits in this block
    for epsilon in (0.03, 0.1, 0.3, 1.0, 3.0):
        pipe = Pipeline(steps, epsilon=epsilon, delta=1e-6, dataset="flchain")
        for _ in range(5):
            score = pipe.fit(X_train, y_train).score(X_test, y_test)
            results.append((epsilon, score))

_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
plot.privacy_utility(
    results, ax=ax, baseline=without, score="accuracy on held-out rows"
)
plt.show()
