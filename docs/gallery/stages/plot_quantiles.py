"""
Quartiles of a heavy-tailed column
==================================

Made-up incomes of 2,000 people, a few of them very large, within a public range from 0
to a million. Each dot is one of 12 releases at ε = 0.1, the black lines are the exact
values. The noise on the mean is that of the whole range. A quantile misses by a few
ranks only, and its dots lie close together where many people are.
"""

import matplotlib.pyplot as plt
import numpy as np

from ppdp import Ledger, make_pipeline
from ppdp.mechanisms import ExponentialMechanism, GaussianMechanism
from ppdp.transformers import MinMaxScaler

incomes = np.random.default_rng(0).lognormal(10.3, 0.8, (2000, 1))
names = ["lower quartile", "median", "upper quartile", "mean"]
exact = [*np.quantile(incomes, (0.25, 0.5, 0.75)), incomes.mean()]
mechanisms = [ExponentialMechanism(q=q, candidates=1001) for q in (0.25, 0.5, 0.75)]
scaler = MinMaxScaler(ranges=(0, 1e6))

plt.style.use("seaborn-v0_8-colorblind")
_, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
with Ledger(accounting="gaussian"):
    for row, last in enumerate([*mechanisms, GaussianMechanism("mean")]):
        pipe = make_pipeline(scaler, last, epsilon=0.1, delta=1e-6, dataset="quartiles")
        tables = [pipe.fit(incomes).release_.to_pandas() for _ in range(12)]
        released = [table["raw_value"][0] for table in tables]
        ax.plot(released, [row] * 12, "C0o", alpha=0.4)
ax.plot(exact, range(4), "k|", markersize=30, markeredgewidth=2)
ax.set_yticks(range(4), names)
ax.set_ylim(3.5, -0.5)
ax.xaxis.set_major_formatter("{x:,.0f}")
ax.set(xlabel="income in dollars", xlim=(0, 80_000))
plt.show()
