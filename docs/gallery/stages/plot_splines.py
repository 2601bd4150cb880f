"""
Splines and bins where the rows are
===================================

How the risk of 10,000 made-up people goes with their income, at ε = 1, within a public
range from 0 to 400. Most incomes are below 60, where hardly any of the knots at equal
steps of the range lie. Knots at released quantiles lie where the rows are, and follow
the dip; bins between such quantiles follow it in steps.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn import preprocessing
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from ppdp import Pipeline

rng = np.random.default_rng(0)
incomes = np.minimum(rng.lognormal(3.3, 0.6, (10_000, 1)), 400)
grid = np.linspace(5, 90, 300)[:, None]


def risk(income):
    apart = np.log(income / 27) ** 2
    return 0.2 + 0.5 * apart / (0.3 + apart)


ill = rng.random(10_000) < risk(incomes[:, 0])

plt.style.use("seaborn-v0_8-colorblind")
_, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
ax.plot(grid, risk(grid), "k", label="truth")
stages = {
    "knots at equal steps of the range": preprocessing.SplineTransformer(n_knots=7),
    "knots at released quantiles": preprocessing.SplineTransformer(7, knots="quantile"),
    "bins between released quantiles": preprocessing.KBinsDiscretizer(n_bins=7),
}
for words, stage in stages.items():
    plain = make_pipeline(stage, LogisticRegression())
    pipe = Pipeline.from_sklearn(
        plain, ranges=(0, 400), classes=(False, True), dataset=words
    )
    answers = pipe.fit(incomes, ill).predict_proba(grid)
    ax.plot(grid, answers[:, 1], label=words)
ax.set(xlabel="income", ylabel="risk", ylim=(0, 0.8))
ax.legend(loc="lower right")
plt.show()
