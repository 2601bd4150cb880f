"""
Where ordinary cleaning pushes datasets apart
=============================================

Two datasets that differ in one row enter the pipeline. Fitted without noise, the
imputer and the scaler move every other row as well, so that behind the scaler the
datasets are as far apart as if dozens of rows had been replaced. On the route that
``ppdp`` chooses, both are fitted from noisy statistics, and the datasets stay one row
apart.

The noise that the model needs grows with the last bar. No data are read for this
picture, only the plan.
"""

import matplotlib.pyplot as plt

from ppdp import Domain, Pipeline, plot
from ppdp.mechanisms import LogisticRegression
from ppdp.transformers import Deduplicator, MeanImputer, MinMaxScaler, StandardScaler


def plan(statistics):
    steps = [
        ("range", MinMaxScaler(ranges=(0, 10))),
        ("dedup", Deduplicator()),
        ("impute", MeanImputer(fit_mode=statistics)),
        ("scale", StandardScaler(fit_mode=statistics)),
        ("model", LogisticRegression(classes=(0, 1))),
    ]
    return Pipeline(steps, epsilon=1.0, delta=1e-6).plan(
        Domain(n_rows=6000, n_features=7)
    )


_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
plot.distance(
    [("chosen by ppdp", plan("auto")), ("fitted without noise", plan("exact"))], ax=ax
)
plt.show()
