"""
Curves by kernels
=================

10,000 made-up rows in two rings, which no line parts. ``RBFSampler`` and ``Nystroem``
of scikit-learn become public maps: waves that a public seed draws, and similarity to
landmarks from a public law in place of rows. They look at no row, so that they cost
nothing. Shades are probabilities of the outer ring at ε = 1, by logistic regression of
the two columns and of 50 features; dots are some of the rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_circles
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ppdp import Ledger, Pipeline

X, y = make_circles(10_000, noise=0.15, factor=0.45, random_state=0)
places = np.stack(np.meshgrid(*2 * [np.linspace(-1.5, 1.5, 80)]), axis=-1)
kernels = {
    "two columns": [],
    "50 waves": [RBFSampler(gamma=0.5, n_components=50, random_state=0)],
    "50 landmarks": [Nystroem(gamma=0.5, n_components=50, random_state=0)],
}

_, axes = plt.subplots(1, 3, figsize=(8.0, 3.0), layout="constrained", sharey=True)
with Ledger():
    for ax, (name, kernel) in zip(axes, kernels.items()):
        steps = make_pipeline(StandardScaler(), *kernel, LogisticRegression())
        pipe = Pipeline.from_sklearn(
            steps, ranges=(-1.5, 1.5), classes=(0, 1), epsilon=1.0, dataset="rings"
        ).fit(X, y)
        outer = 1 - pipe.predict_proba(places.reshape(-1, 2))[:, 1]
        shades = outer.reshape(80, 80), np.linspace(0, 1, 11)
        ax.contourf(*np.moveaxis(places, -1, 0), *shades, cmap="Greys")
        for label, color in ((0, "#d55e00"), (1, "#0072b2")):
            ax.scatter(*X[:400][y[:400] == label].T, s=4, color=color)
        right = np.mean(pipe.predict(X) == y)
        ax.set(title=f"{name}: {right:.0%} right", xlim=(-1.5, 1.5), ylim=(-1.5, 1.5))
plt.show()
