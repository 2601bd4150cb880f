"""
What a boosted model has learned
================================

``GradientBoostingClassifier`` adds up a shape for every column. All of them are
released, so they can be shown: what each value of age and of creatinine adds to the
logarithm of the odds to die within the study, at ε = 1. Bands are two standard errors,
of noise and labels together. One of six creatinine values is missing; the point on the
right is what a missing one adds. Nothing had to be imputed, and no effect had to be a
straight line. ``pipe[-1].shap_values(rows)`` gives exact Shapley values of the same
numbers.
"""

import matplotlib.pyplot as plt

from ppdp import make_pipeline, plot
from ppdp.datasets import load_flchain
from ppdp.mechanisms import GradientBoostingClassifier
from ppdp.transformers import MinMaxScaler

X, y, ranges = load_flchain()
pipe = make_pipeline(
    MinMaxScaler(ranges=ranges),
    GradientBoostingClassifier(classes=(0, 1)),
    epsilon=1.0,
    delta=1e-6,
    dataset="flchain",
).fit(X, y)

plt.style.use("seaborn-v0_8-colorblind")
_, (left, right) = plt.subplots(
    1, 2, figsize=(8.2, 3.2), layout="constrained", sharey=True
)
plot.shape(pipe.release_, "age", ax=left)
plot.shape(pipe.release_, "log_creatinine", ax=right)
plt.show()
