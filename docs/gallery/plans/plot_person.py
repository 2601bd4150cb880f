"""
When one person has several rows
================================

To protect all rows of a person, a fit keeps at most so many of everybody's, and the
noise grows in proportion. Where the rows of one person resemble each other, keeping one
or two of them is therefore better than keeping all. Noise is shown for the mean of
three columns with values from 0 to 10 and a cap of 5,000 kept rows.
"""

import matplotlib.pyplot as plt

from ppdp import Adjacency, Domain, make_pipeline
from ppdp.mechanisms import GaussianMechanism
from ppdp.transformers import MinMaxScaler

stage, mechanism = MinMaxScaler(ranges=(0, 10)), GaussianMechanism("mean")
kept = [1, 2, 3, 5, 10, 20]


def noise(epsilon, rows):
    person = Adjacency.user_level(max_rows=rows)
    pipe = make_pipeline(
        stage, mechanism, epsilon=epsilon, delta=1e-6, adjacency=person
    )
    plan = pipe.plan(Domain(n_rows=5000, n_features=3))
    return 10 / 2 * plan.mechanism.noise_scale  # the scaler maps 0 ... 10 to -1 ... 1


plt.style.use("seaborn-v0_8-colorblind")
_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for epsilon, style in ((0.5, "s-"), (1.0, "o--"), (3.0, "^:")):
    noises = [noise(epsilon, rows) for rows in kept]
    ax.plot(kept, noises, style, label=f"ε = {epsilon:g}")
ax.set(xlabel="rows kept of every person", xticks=kept, ylim=(0, None))
ax.set_ylabel("noise of each mean (columns from 0 to 10)")
ax.legend()
plt.show()
