"""
Gaussian or Laplace noise?
==========================

Laplace noise needs no δ. Its size grows with the number of columns, that of Gaussian
noise only with the square root of that number. For the means of 10,000 rows Laplace
noise is the smaller one up to about ten columns; from there on it pays to allow a δ of
one in a million.
"""

import matplotlib.pyplot as plt
import numpy as np

from ppdp import Domain, make_pipeline
from ppdp.mechanisms import GaussianMechanism, LaplaceMechanism
from ppdp.transformers import MinMaxScaler


def noise(mechanism, delta, columns):
    stage = MinMaxScaler(ranges=(0, 10))
    plan = make_pipeline(stage, mechanism, epsilon=1.0, delta=delta).plan(
        Domain(n_rows=10_000, n_features=columns)
    )
    return 10 / 2 * plan.mechanism.noise_scale  # the scaler maps 0 ... 10 to -1 ... 1


columns = [1, 2, 5, 10, 20, 50, 100, 200]
gauss = [noise(GaussianMechanism("mean"), 1e-6, count) for count in columns]
scales = [noise(LaplaceMechanism("mean"), 0.0, count) for count in columns]
laplace = np.sqrt(2) * np.array(scales)  # its standard deviation

plt.style.use("seaborn-v0_8-colorblind")
_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.loglog(columns, laplace, "s--", label="Laplace, (ε, δ) = (1, 0)")
ax.loglog(columns, gauss, "o-", label="Gaussian, (ε, δ) = (1, 10⁻⁶)")
ax.set_xlabel("number of columns")
ax.set_ylabel("standard deviation of the noise\n(means of columns from 0 to 10)")
ax.legend()
ax.grid(alpha=0.3)
plt.show()
