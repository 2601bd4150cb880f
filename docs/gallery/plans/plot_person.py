"""
When one person has several rows
================================

To protect all rows of a person, a fit keeps at most so many of everybody's, and the
noise grows in proportion. Where the rows of one person resemble each other, keeping one
or two of them is therefore better than keeping all. Noise is shown for the mean of
three columns with values from 0 to 10 and a cap of 5,000 kept rows.
"""

import matplotlib.pyplot as plt

from ppdp import Adjacency, Domain, Pipeline
from ppdp.mechanisms import GaussianMechanism
from ppdp.transformers import MinMaxScaler

steps = [("range", MinMaxScaler(ranges=(0, 10))), ("mean", GaussianMechanism("mean"))]
kept = [1, 2, 3, 5, 10, 20]
_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for epsilon, color, style in (
    (0.5, "#d08a4e", "-"),
    (1.0, "#3b6690", "--"),
    (3.0, "#2f7f79", ":"),
):
    plans = []
    for rows in kept:
        pipe = Pipeline(
            steps, epsilon=epsilon, delta=1e-6, adjacency=Adjacency.person(rows=rows)
        )
        plans.append(pipe.plan(Domain(n_rows=5000, n_features=3)))
    noises = [
        10 / 2 * plan.mechanism.noise_scale for plan in plans
    ]  # the scaler maps 0 ... 10 to -1 ... 1
    ax.plot(kept, noises, style, color=color, marker="o", label=f"ε = {epsilon:g}")
ax.set(
    xlabel="rows kept of every person",
    ylabel="noise of each mean (columns from 0 to 10)",
    xticks=kept,
    ylim=(0, None),
)
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
