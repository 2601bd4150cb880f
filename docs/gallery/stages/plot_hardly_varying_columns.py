"""
Columns that hardly vary
========================

``VarianceThreshold`` sets columns to 0 whose variance is small, by means and mean
squares that are released at ε = 3, and from which the ``StandardScaler`` behind it is
fitted at no further cost. A bar is the released variance of a column that its public
range has scaled to [-1, 1], a short line that of the 7,874 rows themselves, and the
dotted line the threshold. Narrow bars are set to 0, and the table keeps its width.
"""

import matplotlib.pyplot as plt
import numpy as np

from ppdp import make_pipeline
from ppdp.datasets import load_flchain
from ppdp.mechanisms import LogisticRegression
from ppdp.transformers import (
    MeanImputer,
    MinMaxScaler,
    StandardScaler,
    VarianceThreshold,
)

X, y, ranges = load_flchain()
scaler = MinMaxScaler(ranges=ranges, feature_range=(-1, 1))
stages = [scaler, MeanImputer(), VarianceThreshold(0.02), StandardScaler()]
model = LogisticRegression(classes=(0, 1))
pipe = make_pipeline(*stages, model, epsilon=3.0, delta=1e-6, dataset="flchain").fit(
    X, y
)
chosen = pipe["variancethreshold"]
exact = pipe[:2].transform(X).var(axis=0)

plt.style.use("seaborn-v0_8-colorblind")
_, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
places, kept = np.arange(X.shape[1]), chosen.get_support()
ax.barh(
    places,
    np.maximum(chosen.variances_, 1e-3),
    np.where(kept, 0.8, 0.3),
    color=np.where(kept, "C0", "0.7"),
)
ax.scatter(exact, places, 250, marker="|", color="black", zorder=3)
ax.axvline(chosen.threshold, color="black", linestyle=":")
ax.set_yticks(places, X.columns)
ax.invert_yaxis()
ax.set(xscale="log", xlabel="variance")
plt.show()
