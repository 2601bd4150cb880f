"""
Coefficients with and without privacy
=====================================

A linear regression on 5,000 made-up rows, fitted 12 times at each ε to show how much
its coefficients depend on the noise. The black bars are least squares without privacy.
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
places = np.arange(5)

plt.style.use("seaborn-v0_8-colorblind")
_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.hlines(exact, places - 0.4, places + 0.4, "black", label="without privacy")
with Ledger():
    for shift, epsilon, mark in ((-0.27, 0.1, "v"), (0, 1.0, "o"), (0.27, 10.0, "s")):
        pipe = make_pipeline(*steps, epsilon=epsilon, delta=1e-6, dataset="slopes")
        tables = [pipe.fit(X, y).release_.to_pandas() for _ in range(12)]
        found = [table["raw_value"][:5] for table in tables]  # in the units of X and y
        at = np.tile(places + shift, 12)
        ax.plot(at, np.ravel(found), mark, markersize=4, label=f"ε = {epsilon:g}")
ax.axhline(0, color="0.7", linewidth=0.8)
ax.set_xticks(places, [f"column {k}" for k in range(1, 6)])
ax.set(ylabel="coefficient", ylim=(-4, 7))
ax.legend(ncols=2, loc="upper right")
plt.show()
