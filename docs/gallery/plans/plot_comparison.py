"""
What the usual claim is worth
=============================

The usual practice cleans the data first and accounts for the model alone. Its bar is
hatched because the claim is false: for that noise, the ε that can be proved is the
larger number behind the bar. Group privacy is true, and drowns the model in noise. The
route that ``ppdp`` chooses needs some twice the noise of the false claim, and its ε
holds for the whole pipeline.
"""

import matplotlib.pyplot as plt

from ppdp import Domain, Pipeline, plot
from ppdp.mechanisms import LogisticRegression
from ppdp.transformers import Deduplicator, MeanImputer, MinMaxScaler, StandardScaler

steps = [
    ("range", MinMaxScaler(ranges=(0, 10))),
    ("dedup", Deduplicator()),
    ("impute", MeanImputer()),
    ("scale", StandardScaler()),
    ("model", LogisticRegression(classes=(0, 1))),
]
comparison = Pipeline(steps, epsilon=1.0, delta=1e-6).compare(
    Domain(n_rows=6000, n_features=7)
)

_, ax = plt.subplots(figsize=(6.8, 3.2), layout="constrained")
plot.comparison(comparison, ax=ax)  # the same as comparison.plot(ax)
plt.show()
