"""
From which probability on?
==========================

One in ten of 12,000 made-up people is ill, so that a model hardly ever says so at a
half. ``threshold="f1"`` chooses the probability from which on it does, by noisy numbers
of rows of each class by score, for a tenth of the budget. The line is the F1 score on
8,000 other people; ticks are the thresholds of ten releases at ε = 1.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import f1_score

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
_, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
levels = np.linspace(0.02, 0.6, 59)
with Ledger():
    for draw in range(10):
        model = LogisticRegression(classes=(0, 1), threshold="f1")
        pipe = make_pipeline(
            MinMaxScaler(ranges=(0, 1)), model, epsilon=1.0, dataset="ill"
        ).fit(X[train], ill[train])
        chosen = pipe[-1].threshold_
        ax.axvline(chosen, 0, 0.06, color="C2", label=None if draw else "ten releases")
        if draw == 0:
            shares = pipe.predict_proba(X[other])[:, 1]
            scores = [f1_score(ill[other], shares >= level) for level in levels]
            ax.plot(levels, scores, label="of the first model")
ax.axvline(0.5, color="0.6", linestyle=":", label="a half")
ax.set(xlabel="threshold", ylabel="F1 score", ylim=(0, None))
ax.legend(frameon=False)
plt.show()
