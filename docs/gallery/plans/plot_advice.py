"""
What other ways through the same stages would cost
==================================================

Each stage can be fitted in more than one way, and ``pipe.plan(domain)`` compares all
combinations before any data are read. Here the chosen route releases both the means and
the scales with noise. The routes below it would work too, with more noise on the
coefficients of the model.
"""

import matplotlib.pyplot as plt

from ppdp import Domain, Pipeline, plot
from ppdp.mechanisms import LogisticRegression
from ppdp.transformers import MeanImputer, MinMaxScaler, StandardScaler

steps = [
    ("range", MinMaxScaler(ranges=(0, 10))),
    ("impute", MeanImputer()),
    ("scale", StandardScaler()),
    ("model", LogisticRegression(classes=(0, 1))),
]
plan = Pipeline(steps, epsilon=1.0, delta=1e-6).plan(Domain(n_rows=6000, n_features=7))

_, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
plot.advice(plan, ax=ax)
plt.show()
