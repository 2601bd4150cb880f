"""
Ranges that nobody knows
========================

The mean of 5,000 made-up incomes at ε = 1. A range that is declared far too wide, to be
safe, makes the noise as wide. With ``ranges="private"`` the range is found with noise,
and the noise of the mean is about as small as with a good guess. Where the largest
incomes are clipped the mean is a little too low. Whiskers are two standard errors of
the noise; the dashed line is the true mean.
"""

import matplotlib.pyplot as plt
import numpy as np

from ppdp import Ledger, make_pipeline
from ppdp.mechanisms import GaussianMechanism
from ppdp.transformers import MinMaxScaler

incomes = np.random.default_rng(0).lognormal(10.3, 0.6, (5000, 1))
choices = {
    'ranges="private"': "private",
    "0 to 100,000": (0, 1e5),
    "0 to 1 million": (0, 1e6),
    "0 to 10 million": (0, 1e7),
}

plt.style.use("seaborn-v0_8-colorblind")
_, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
with Ledger():
    for row, ranges in enumerate(choices.values()):
        steps = MinMaxScaler(ranges=ranges), GaussianMechanism("mean")
        pipe = make_pipeline(*steps, epsilon=1.0, delta=1e-6, dataset="incomes")
        mean = pipe.fit(incomes).release_.to_pandas().iloc[-1]
        error = 2 * mean["raw_standard_error"]
        ax.errorbar(mean["raw_value"], row, xerr=error, fmt="C0o", capsize=5)
ax.axvline(incomes.mean(), color="black", linestyle="--", linewidth=1)
ax.set_yticks(range(4), choices)
ax.set_ylim(3.5, -0.5)
ax.xaxis.set_major_formatter("{x:,.0f}")
ax.set_xlabel("released mean of the incomes, in dollars")
plt.show()
