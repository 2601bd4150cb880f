"""
Choosing a parameter by noisy scores
====================================

``PrivateSearchCV`` fits one model for each of six values and chooses by scores that
carry noise; the ring is the choice, the whiskers are two standard deviations of the
noise. Between values whose whiskers overlap the noise decides, and there it matters
little. The fits, the choice and the final model cost one ε = 1 in all.
"""

import matplotlib.pyplot as plt

from ppdp import PrivateSearchCV, make_pipeline
from ppdp.datasets import load_flchain
from ppdp.mechanisms import LogisticRegression
from ppdp.transformers import MeanImputer, MinMaxScaler

X, y, ranges = load_flchain()
values = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0]
pipe = make_pipeline(
    MinMaxScaler(ranges=ranges), MeanImputer(), LogisticRegression(classes=(0, 1))
)
grid = {"logisticregression__max_grad_norm": values}
search = PrivateSearchCV(
    pipe, grid, epsilon=1.0, delta=1e-6, scores="all", dataset="six values"
).fit(X, y)
scores = search.cv_results_["noisy_test_score"]
error = 2 * search.summary_.plan.selection.noise_scale
chosen = search.best_index_

plt.style.use("seaborn-v0_8-colorblind")
_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.errorbar(values, scores, error, fmt="o", capsize=4)
ax.plot(values[chosen], scores[chosen], "C2o", markersize=16, fillstyle="none")
ax.set_xscale("log")
ax.set_xticks(values, values)
ax.minorticks_off()
ax.set(xlabel="where gradients are clipped", ylabel="share of right labels, noisy")
plt.show()
