"""
A released correlation matrix
=============================

``GaussianMechanism("covariance")`` releases the means and all covariances of the
columns at once, and whatever is computed from them costs nothing more. On the left are
the correlations of five columns of the flchain data, on the right those of the release
at ε = 3: large correlations can be trusted, small ones may be noise.
"""

import matplotlib.pyplot as plt
import numpy as np

from ppdp import make_pipeline
from ppdp.datasets import load_flchain
from ppdp.mechanisms import GaussianMechanism
from ppdp.transformers import MinMaxScaler

X, _, ranges = load_flchain()
names = ["age", "sex", "log_kappa", "log_lambda", "flc.grp"]
steps = (
    MinMaxScaler(ranges={name: ranges[name] for name in names}),
    GaussianMechanism("covariance"),
)
pipe = make_pipeline(*steps, epsilon=3.0, delta=1e-6, dataset="correlations").fit(
    X[names]
)
covariance = pipe[-1].covariance_
deviations = np.sqrt(np.diag(covariance))
matrices = {
    "without privacy": X[names].corr().to_numpy(),
    "ε = 3": covariance / np.outer(deviations, deviations),
}

_, axes = plt.subplots(1, 2, figsize=(6.8, 3.4), layout="constrained", sharey=True)
for ax, (title, matrix) in zip(axes, matrices.items()):
    shown = ax.imshow(matrix, cmap="RdBu_r", vmin=-1, vmax=1)
    ax.set_title(title)
    ax.set_xticks(range(5), names, rotation=40, ha="right")
    ax.set_yticks(range(5), names)
    for (row, column), value in np.ndenumerate(matrix):
        ax.text(
            column,
            row,
            f"{value:.2f}",
            ha="center",
            va="center",
            color="white" if abs(value) > 0.6 else "black",
        )
plt.colorbar(shown, ax=axes, label="correlation")
plt.show()
