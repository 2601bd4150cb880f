"""
Distances to clusters in front of a model
=========================================

Three of six groups of 10,000 made-up people bought something. No straight line tells
them from the others, so a linear model of the two columns knows nothing. Its columns
may be distances to centres that are released for a part of ε = 1: then it learns which
groups they are. Shades are the probability that it gives, crosses the centres.
"""

import matplotlib.pyplot as plt
import numpy as np

from ppdp import make_pipeline
from ppdp.mechanisms import LogisticRegression
from ppdp.transformers import ClusterDistances, MinMaxScaler, StandardScaler

rng = np.random.default_rng(0)
angles = np.pi * np.arange(6) / 3
group = rng.integers(6, size=10_000)
X = 0.6 * np.column_stack([np.cos(angles), np.sin(angles)])[group]
X = np.clip(X + 0.12 * rng.normal(size=X.shape), -1, 1)
bought = group % 2
scaler = MinMaxScaler(ranges=(-1, 1))
stages = {
    "columns as they are": [scaler],
    "distances to centres": [scaler, ClusterDistances(6), StandardScaler()],
}

plt.style.use("seaborn-v0_8-colorblind")
_, axes = plt.subplots(1, 2, figsize=(6.8, 3.4), layout="constrained", sharey=True)
x, z = np.meshgrid(*[np.linspace(-1, 1, 80)] * 2)
for ax, (words, first) in zip(axes, stages.items()):
    model = LogisticRegression(classes=(0, 1))
    pipe = make_pipeline(*first, model, epsilon=1.0, delta=1e-6, dataset=words)
    right = pipe.fit(X, bought).score(X, bought)
    shown = pipe.predict_proba(np.column_stack([x.ravel(), z.ravel()]))[:, 1]
    ax.contourf(x, z, shown.reshape(x.shape), 10, cmap="Greys", vmin=0, vmax=1.3)
    ax.scatter(*X[:600].T, 4, [f"C{2 * one}" for one in bought[:600]], alpha=0.6)
    ax.set_title(f"{words}: {right:.0%} right", fontsize=10)
    ax.set(xlim=(-1, 1), ylim=(-1, 1), aspect="equal")
axes[1].plot(*pipe["clusterdistances"].cluster_centers_.T, "kx", markersize=9)
plt.show()
