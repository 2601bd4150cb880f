"""
How many rows does a mean need?
===============================

Each line is the standard deviation of the noise on the released means of five columns
with values from 0 to 10. Ten times the rows need a tenth of the noise; an ε that is ten
times as large needs about an eighth. Choose the error that you can live with on the
left axis, go to the line of your ε, and read below how many rows that takes. Only plans
are made: no data are read.
"""

import matplotlib.pyplot as plt

from ppdp import Domain, make_pipeline
from ppdp.mechanisms import GaussianMechanism
from ppdp.transformers import MinMaxScaler

sizes = [100, 1000, 10_000, 100_000]
steps = MinMaxScaler(ranges=(0, 10)), GaussianMechanism("mean")

plt.style.use("seaborn-v0_8-colorblind")
_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for epsilon, style in ((0.1, "s-"), (1.0, "o--"), (10.0, "^:")):
    pipe = make_pipeline(*steps, epsilon=epsilon, delta=1e-6)
    plans = [pipe.plan(Domain(n_rows=n, n_features=5)) for n in sizes]
    # The scaler maps 0 ... 10 to -1 ... 1, so that a unit behind it is 5 before it.
    noises = [10 / 2 * plan.mechanism.noise_scale for plan in plans]
    ax.loglog(sizes, noises, style, label=f"ε = {epsilon:g}")
ax.set(xlabel="rows", ylabel="noise of each mean (columns from 0 to 10)")
ax.legend()
ax.grid(alpha=0.3)
plt.show()
