"""
Ranks in place of amounts
=========================

Made-up spendings of 10,000 people, most below 100 and a few near the end of the public
range, 1,000. ``QuantileTransformer`` maps each to its share of smaller ones, by 21
quantiles that are released at ε = 1: dots lie near the curve of the rows themselves.
The scaled amount, which a model would see otherwise, tells most people hardly apart.
"""

import matplotlib.pyplot as plt
import numpy as np

from ppdp import make_pipeline
from ppdp.mechanisms import LogisticRegression
from ppdp.transformers import MinMaxScaler, QuantileTransformer

rng = np.random.default_rng(0)
spent = np.minimum(rng.lognormal(3.5, 1.0, (10_000, 1)), 1000)
again = rng.random(10_000) < 0.2 + 0.6 * (spent[:, 0] > 33)
steps = MinMaxScaler(ranges=(0, 1000)), QuantileTransformer(20)
pipe = make_pipeline(
    *steps, LogisticRegression(classes=(False, True)), epsilon=1.0, dataset="spent"
).fit(spent, again)

grid = np.geomspace(1, 1000, 60)[:, None]
exact = np.searchsorted(np.sort(spent[:, 0]), grid[:, 0]) / len(spent)
ranks = pipe[:-1].transform(grid)[:, 0]

plt.style.use("seaborn-v0_8-colorblind")
_, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
ax.plot(grid, exact, "k", label="share of smaller ones")
ax.plot(grid, ranks, "C0o", markersize=4, label="by released quantiles")
ax.plot(grid, grid / 1000, "C2", label="scaled by its range")
ax.set(xscale="log", xlabel="spent", ylabel="what a model sees")
ax.legend()
plt.show()
