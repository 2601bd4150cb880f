"""
Searching in private sketches
=============================

Every image of a digit becomes a short sketch with noise, which protects how far one
pixel is off. The lines show how many of the ten nearest neighbours of a new image are
found in the released table. Sketches of 64 numbers need an ε of 5 to 10 to be searched
well. 64 random signs take 8 bytes instead of 512, and find a third of the neighbours at
most.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from ppdp import Adjacency, Ledger, Pipeline
from ppdp.mechanisms import LaplaceMechanism, SignMechanism
from ppdp.transformers import MinMaxScaler, RandomProjection

images = load_digits().data.repeat(4, axis=1)
private, new = images[:1500], images[1500:1600]
steps = [
    ("range", MinMaxScaler(ranges=(0, 16))),
    ("project", RandomProjection(64, family="oporp", seed=7)),
]
pixel = Adjacency.change(coordinate=16.0)


def found(mechanism, epsilon):
    pipe = Pipeline(
        [*steps, ("rows", mechanism)],
        adjacency=pixel,
        epsilon=epsilon,
        delta=0,
        dataset="sketches",
    ).fit(private)
    queries = pipe.project(new)
    _, places = pipe.release_.table.kneighbors(queries, n_neighbors=10)
    exact = np.argsort(-(queries @ pipe.project(private).T), axis=1)[:, :10]
    return np.mean(
        [np.isin(mine, theirs).mean() for mine, theirs in zip(places, exact)]
    )


epsilons = [1, 2, 5, 10, 20]
_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
with Ledger():
    numbers = [found(LaplaceMechanism("rows"), epsilon) for epsilon in epsilons]
    signs = [found(SignMechanism(), epsilon) for epsilon in epsilons]
ax.semilogx(
    epsilons, numbers, "o-", color="#3b6690", label="64 numbers with Laplace noise"
)
ax.semilogx(epsilons, signs, "s--", color="#d08a4e", label="64 random signs")
ax.set(
    xlabel="ε (one pixel of one image)",
    ylabel="share of the 10 nearest found",
    ylim=(0, 1),
)
ax.set_xticks(epsilons, epsilons)
ax.minorticks_off()
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
