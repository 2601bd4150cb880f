"""
Centres of clusters
===================

The ages and free light chains of 7,874 people in six clusters, whose centres are
released at ε = 1. Dots are as large as the noisy number of rows around them, and bars
are two standard errors of the noise on the last step of each centre. Which centre is
nearest, ``predict`` says of every place of the picture; of the rows themselves no label
is released.
"""

import matplotlib.pyplot as plt
import numpy as np

from ppdp import make_pipeline
from ppdp.datasets import load_flchain
from ppdp.mechanisms import KMeans
from ppdp.transformers import MinMaxScaler

X, _, ranges = load_flchain()
columns = ["age", "log_kappa"]
scaler = MinMaxScaler(ranges={name: ranges[name] for name in columns})
pipe = make_pipeline(scaler, KMeans(6), epsilon=1.0, delta=1e-6, dataset="flchain")
told = pipe.fit(X[columns]).release_.to_pandas()
told = told[told["statistic"].str.startswith("center")]
x, y = (told[told["column"] == name] for name in columns)
places = np.meshgrid(np.linspace(50, 105, 221), np.linspace(-1, 1.477, 199))
regions = pipe.predict(np.column_stack([place.ravel() for place in places]))

plt.style.use("seaborn-v0_8-colorblind")
_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.pcolormesh(*places, regions.reshape(places[0].shape), cmap="Pastel1", vmax=8)
errors = (2 * axis["raw_standard_error"] for axis in (y, x))
ax.errorbar(x["raw_value"], y["raw_value"], *errors, fmt="none", ecolor="black")
ax.scatter(x["raw_value"], y["raw_value"], pipe[-1].counts_ / 20, zorder=3)
ax.set(xlabel="age in years", ylabel="logarithm of kappa (mg/dL)")
plt.show()
