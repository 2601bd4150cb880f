"""
Weights of classes, and probabilities that are right
====================================================

One in ten of 12,000 made-up people is ill. ``class_weight="balanced"`` makes a model
take them as seriously as all others, so that its probabilities are far too large.
``calibration="sigmoid"`` counts rows of each class by score, with noise, for a tenth of
the budget, and makes slope and offset of these counts a part of the model. Lines are
shares of ill among 8,000 other people with such a probability, of five releases each
at ε = 1.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import calibration_curve

from ppdp import Ledger, make_pipeline
from ppdp.mechanisms import LogisticRegression
from ppdp.transformers import MinMaxScaler

rng = np.random.default_rng(0)
X = rng.uniform(size=(20_000, 3))
ill = (rng.random(20_000) < 1 / (1 + np.exp(6.4 - 4 * X[:, 0] - 3 * X[:, 1]))).astype(
    int
)
train, other = slice(0, 12_000), slice(12_000, None)

plt.style.use("seaborn-v0_8-colorblind")
_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.plot([0, 1], [0, 1], color="0.6", linestyle=":", label="right")
with Ledger():
    for color, calibration in zip(("C1", "C0"), (None, "sigmoid")):
        for draw in range(5):
            model = LogisticRegression(
                classes=(0, 1), class_weight="balanced", calibration=calibration
            )
            pipe = make_pipeline(
                MinMaxScaler(ranges=(0, 1)), model, epsilon=1.0, dataset="ill"
            ).fit(X[train], ill[train])
            shares, told = calibration_curve(
                ill[other],
                pipe.predict_proba(X[other])[:, 1],
                n_bins=10,
                strategy="quantile",
            )
            label = None if draw else f"calibration={calibration!r}"
            ax.plot(told, shares, color=color, marker=".", label=label)
ax.set(xlabel="predicted probability", ylabel="share of ill", xlim=(0, 1), ylim=(0, 1))
ax.legend(frameon=False)
plt.show()
