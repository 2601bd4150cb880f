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

from ppdp import Adjacency, Ledger, make_pipeline
from ppdp.mechanisms import LaplaceMechanism, SignMechanism
from ppdp.transformers import MinMaxScaler, RandomProjection

images = load_digits().data.repeat(4, axis=1)
private, new = images[:1500], images[1500:1600]
pixel = Adjacency.change(coordinate=16.0)


def found(mechanism, epsilon):
    stages = MinMaxScaler(ranges=(0, 16)), RandomProjection(64, "oporp", seed=7)
    budget = {"epsilon": epsilon, "delta": 0, "adjacency": pixel}
    pipe = make_pipeline(*stages, mechanism, **budget, dataset="digits").fit(private)
    queries = pipe.project(new)
    _, places = pipe.release_.table.kneighbors(queries, n_neighbors=10)
    exact = np.argsort(-(queries @ pipe.project(private).T), axis=1)[:, :10]
    return np.mean([np.isin(mine, true).mean() for mine, true in zip(places, exact)])


epsilons = [1, 2, 5, 10, 20]
with Ledger():
    numbers = [found(LaplaceMechanism("rows"), epsilon) for epsilon in epsilons]
    signs = [found(SignMechanism(), epsilon) for epsilon in epsilons]

plt.style.use("seaborn-v0_8-colorblind")
_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.plot(epsilons, numbers, "o-", label="64 numbers with Laplace noise")
ax.plot(epsilons, signs, "s--", label="64 random signs")
ax.set(xlabel="ε (one pixel of one image)", ylabel="share of the 10 nearest found")
ax.set(xticks=epsilons, ylim=(0, 1))
ax.legend()
plt.show()
