"""
Quartiles of a heavy-tailed column
==================================

Made-up incomes of 2,000 people, a few of them very large, within a public range from 0
to a million. Each dot is one of 20 releases at ε = 0.1, the black lines are the exact
values. The noise on the mean is that of the whole range. A quantile misses by a few
ranks only, and its dots lie close together where many people are.
"""

import matplotlib.pyplot as plt
import numpy as np

from ppdp import Ledger, make_pipeline
from ppdp.mechanisms import ExponentialMechanism, GaussianMechanism
from ppdp.transformers import MinMaxScaler

incomes = np.random.default_rng(0).lognormal(10.3, 0.8, (2000, 1))
answers = {
    "lower quartile": (
        ExponentialMechanism(q=0.25, candidates=1001),
        np.quantile(incomes, 0.25),
    ),
    "median": (ExponentialMechanism(q=0.5, candidates=1001), np.median(incomes)),
    "upper quartile": (
        ExponentialMechanism(q=0.75, candidates=1001),
        np.quantile(incomes, 0.75),
    ),
    "mean": (GaussianMechanism("mean"), incomes.mean()),
}

_, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
with Ledger(accounting="gaussian"):
    for row, (mechanism, exact) in enumerate(answers.values()):
        pipe = make_pipeline(
            MinMaxScaler(ranges=(0, 1e6)),
            mechanism,
            epsilon=0.1,
            delta=1e-6,
            dataset="quartiles",
        )
        released = [
            pipe.fit(incomes).release_.to_pandas()["raw_value"][0] for _ in range(20)
        ]
        ax.plot(np.divide(released, 1000), [row] * 20, "o", color="#3b6690", alpha=0.4)
        ax.plot([exact / 1000] * 2, [row - 0.3, row + 0.3], color="black", linewidth=2)
ax.set_yticks(range(4), answers)
ax.invert_yaxis()
ax.set(xlabel="income in thousand dollars", xlim=(0, 80))
ax.spines[["top", "right"]].set_visible(False)
plt.show()
