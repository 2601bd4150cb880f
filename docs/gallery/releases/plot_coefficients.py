"""
Coefficients with and without privacy
=====================================

A linear regression on 5,000 made-up rows, fitted 20 times at each ε to show how much
its coefficients depend on the noise. The black lines are least squares without privacy.
At ε = 10 the fits agree with them. At ε = 0.1 small coefficients change their sign from
fit to fit: to interpret coefficients takes a larger ε than to predict.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn import linear_model

from ppdp import Ledger, make_pipeline
from ppdp.mechanisms import LinearRegression
from ppdp.transformers import MinMaxScaler

rng = np.random.default_rng(0)
X = rng.uniform(0, 10, (5000, 5))
y = X @ [3.0, 2.0, 1.0, 0.5, -1.0] + rng.normal(0, 5, 5000)
exact = linear_model.LinearRegression().fit(X, y).coef_
steps = MinMaxScaler(ranges=(0, 10)), LinearRegression(y_range=(-20, 80))

_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.hlines(
    exact,
    np.arange(5) - 0.42,
    np.arange(5) + 0.42,
    color="black",
    linewidth=1.5,
    label="without privacy",
)
with Ledger():
    for place, (epsilon, color, mark) in enumerate(
        [(0.1, "#d08a4e", "v"), (1.0, "#2f7f79", "o"), (10.0, "#3b6690", "s")]
    ):
        pipe = make_pipeline(
            *steps, epsilon=epsilon, delta=1e-6, dataset="coefficients"
        )
        for _ in range(20):
            coefficients = pipe.fit(X, y).release_.to_pandas()["raw_value"][
                :5
            ]  # in the units of the table
            at = np.arange(5) + 0.28 * (place - 1)
            ax.plot(at, coefficients, mark, color=color, markersize=4, alpha=0.5)
        ax.plot([], [], mark, color=color, label=f"ε = {epsilon:g}")
ax.axhline(0, color="0.7", linewidth=0.8, zorder=0)
ax.set(
    xticks=range(5),
    xticklabels=[f"column {k}" for k in range(1, 6)],
    ylabel="coefficient",
    ylim=(-4, 6),
)
ax.legend(frameon=False, ncols=2)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
