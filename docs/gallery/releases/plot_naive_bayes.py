"""
Normal laws of two classes
==========================

Age and the logarithm of a free light chain of 7,874 people. ``GaussianNB`` releases
numbers of rows, sums and sums of squares of those who died and of those who lived, as
one answer with noise. Ellipses hold two standard deviations of each class: solid ones
at ε = 1, dotted ones without privacy. Shades are the probability of death.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.patches import Ellipse
from sklearn import naive_bayes

from ppdp import make_pipeline
from ppdp.datasets import load_flchain
from ppdp.mechanisms import GaussianNB
from ppdp.transformers import MinMaxScaler

X, y, ranges = load_flchain()
names = ["age", "log_kappa"]
X, ranges = X[names], {name: ranges[name] for name in names}
pipe = make_pipeline(
    MinMaxScaler(ranges=ranges), GaussianNB(classes=(0, 1)), epsilon=1.0, dataset="nb"
).fit(X, y)
own = pipe["gaussiannb"]
exact = naive_bayes.GaussianNB().fit(pipe[:-1].transform(X), y)
low, high = np.array(list(ranges.values())).T
ends = pipe[:-1].transform(pd.DataFrame([low, high], columns=names))
unit = (high - low) / (ends[1] - ends[0])

plt.style.use("seaborn-v0_8-colorblind")
_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ages, chains = np.meshgrid(np.linspace(50, 105, 80), np.linspace(-0.6, 1.0, 60))
places = pd.DataFrame({"age": ages.ravel(), "log_kappa": chains.ravel()})
risk = pipe.predict_proba(places)[:, 1]
shades = ax.contourf(
    ages, chains, risk.reshape(ages.shape), 10, cmap="Greys", alpha=0.6
)
plt.colorbar(shades, label="probability of death")
for model, line in ((own, "-"), (exact, ":")):
    for k, color in enumerate(("C0", "C2")):
        middle = low + (model.theta_[k] - ends[0]) * unit
        size = 4 * np.sqrt(model.var_[k]) * unit
        kind = {"fill": False, "color": color, "linestyle": line, "linewidth": 2}
        ax.add_patch(Ellipse(middle, *size, **kind))
        ax.plot(*middle, "o", color=color)
ax.set(xlabel="age", ylabel="logarithm of kappa", xlim=(50, 105), ylim=(-0.6, 1.0))
plt.show()
