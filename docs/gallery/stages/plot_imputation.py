"""
Filling missing values privately
================================

A tenth of 5,000 made-up weights is missing. Filled with the released mean they are all
the same; filled by regression on the height, from a released second moment, they follow
the true weights. Each of the two costs (ε, δ) = (1, 10⁻⁶), and replacing one row moves
no other.
"""

import matplotlib.pyplot as plt
import numpy as np

from ppdp import Ledger, make_pipeline
from ppdp.transformers import MeanImputer, MinMaxScaler, RegressionImputer

rng = np.random.default_rng(0)
height = rng.normal(170, 10, 5000)
weight = 80 + 1.2 * (height - 170) + rng.normal(0, 5, 5000)
missing = rng.random(5000) < 0.1
table = np.column_stack([height, np.where(missing, np.nan, weight)])
scaler = MinMaxScaler(ranges=[(130, 210), (30, 130)])
stages = RegressionImputer(0.002, fit_mode="noisy"), MeanImputer(fit_mode="noisy")

plt.style.use("seaborn-v0_8-colorblind")
_, ax = plt.subplots(figsize=(5.4, 4.2), layout="constrained")
with Ledger():
    for stage in stages:
        pipe = make_pipeline(scaler, stage, epsilon=1.0, delta=1e-6, dataset="weights")
        filled = pipe.fit(table).transform(table)[missing, 1]
        kilograms = 80 + 50 * filled  # the scaler maps 30 ... 130 to -1 ... 1
        ax.plot(weight[missing], kilograms, ".", label=type(stage).__name__)
ax.plot([50, 110], [50, 110], color="0.6", label="no error")
ax.set(xlabel="true weight in kg", ylabel="filled in, in kg")
ax.legend()
plt.show()
