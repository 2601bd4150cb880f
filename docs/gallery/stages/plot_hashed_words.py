"""
Words in buckets
================

``HashingVectorizer`` puts the words of a text into buckets by a public hash. 6,000
made-up texts of 30 words each, one word in five of the topic that the label says: few
buckets mix words that have nothing in common, and each of many has its own noise. A
line is the area under the ROC curve on as many other texts; the gray one is that of
scikit-learn, without noise.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn import linear_model
from sklearn.metrics import roc_auc_score

from ppdp import Ledger, Pipeline
from ppdp.mechanisms import LogisticRegression
from ppdp.transformers import HashingVectorizer

rng, n = np.random.default_rng(0), 12_000
y = rng.integers(2, size=n)
usual = rng.zipf(1.3, (n, 30)) % 3000
topic = 3000 + 200 * y[:, None] + rng.integers(200, size=(n, 30))
words = np.where(rng.random((n, 30)) < 0.2, topic, usual)
texts = np.array([" ".join(f"word{i}" for i in row) for row in words], dtype=object)
train, test, buckets = slice(0, n // 2), slice(n // 2, n), [16, 64, 256, 1024]


def area(model, rows):
    return roc_auc_score(y[test], model.predict_proba(rows)[:, 1])


plt.style.use("seaborn-v0_8-colorblind")
_, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
exact = []
for size in buckets:
    hashed = HashingVectorizer(size).fit_transform(texts[:, None])
    plain = linear_model.LogisticRegression().fit(hashed[train], y[train])
    exact.append(area(plain, hashed[test]))
ax.plot(buckets, exact, "o-", color="0.6", label="without noise")
with Ledger():
    for epsilon in (4.0, 1.0):
        areas = []
        for size in buckets:
            words, model = HashingVectorizer(size), LogisticRegression(classes=(0, 1))
            steps = [("words", words), ("model", model)]
            pipe = Pipeline(steps, epsilon=epsilon, delta=1e-6, dataset="texts")
            areas.append(area(pipe.fit(texts[train], y[train]), texts[test]))
        ax.plot(buckets, areas, "o-", label=f"ε = {epsilon:g}")
ax.set_xscale("log", base=2)
ax.set_xticks(buckets, buckets)
ax.set(xlabel="buckets", ylabel="area under the ROC curve")
ax.legend(frameon=False)
plt.show()
