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
names = ["age", "sex", "log_kappa", "log_lambda", "mgus"]
scaler = MinMaxScaler(ranges={name: ranges[name] for name in names})
mechanism = GaussianMechanism("covariance")
pipe = make_pipeline(scaler, mechanism, epsilon=3.0, delta=1e-6, dataset="five columns")
covariance = pipe.fit(X[names])[-1].covariance_
deviations = np.sqrt(np.diag(covariance))
released = covariance / np.outer(deviations, deviations)

_, axes = plt.subplots(1, 2, figsize=(6.8, 3.4), layout="constrained", sharey=True)
for ax, matrix in zip(axes, (X[names].corr().to_numpy(), released)):
    shown = ax.imshow(matrix, cmap="RdBu_r", vmin=-1, vmax=1)
    ax.set_xticks(range(5), names, rotation=40, ha="right")
    ax.set_yticks(range(5), names)
    for (row, column), value in np.ndenumerate(matrix):
        color = "white" if abs(value) > 0.6 else "black"
        ax.text(column, row, f"{value:.2f}", ha="center", va="center", color=color)
axes[0].set_title("without privacy")
axes[1].set_title("ε = 3")
plt.colorbar(shown, ax=axes, label="correlation")
plt.show()
