"""
A report of a table
===================

Means, quartiles and histograms of medical data, all in one fit with one certificate at
ε = 1. The bars are released counts with their 95 % intervals, the outlines the exact
ones, which only the holder of the rows sees. The lines are the released quartiles.
"""

import matplotlib.pyplot as plt
import numpy as np

from ppdp import make_pipeline
from ppdp.datasets import load_flchain
from ppdp.mechanisms import Report
from ppdp.transformers import MinMaxScaler

X, _, _ = load_flchain(
    log_scale=False
)  # blood tests of 7,874 people; some were not done
known = {"age": (50, 105), "kappa": (0.1, 30), "creatinine": (0.3, 15)}
edges = {
    "age": range(50, 110, 5),
    "kappa": [0.1, *(np.arange(4, 40, 2) / 10), 30],
    "creatinine": [0.3, *(np.arange(5, 21) / 10), 15],
}
statistics = Report(["mean", "quantile", "histogram"], bins=edges)
pipe = make_pipeline(
    MinMaxScaler(ranges=known),
    statistics,
    epsilon=1.0,
    delta=1e-6,
    dataset="blood tests",
)
told = pipe.fit(X[list(known)]).release_.conf_int().set_index(["statistic", "column"])

plt.style.use("seaborn-v0_8-colorblind")
_, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
for ax, column in zip(axes, known):
    cells = told.loc[("rows", column)]
    low, high = cells["low"].to_numpy(), cells["high"].to_numpy().copy()
    high[-1] = 2 * low[-1] - low[-2]  # the last cell takes all above it
    error = np.abs(cells[["lower", "upper"]].to_numpy().T - cells["value"].to_numpy())
    ax.bar(
        low,
        cells["value"],
        high - low,
        align="edge",
        alpha=0.6,
        yerr=error,
        error_kw={"linewidth": 0.7},
    )
    ax.stairs(
        np.histogram(X[column].dropna(), edges[column])[0],
        [*low, high[-1]],
        color="black",
        linewidth=1,
    )
    for quartile in ("quantile 0.25", "quantile 0.5", "quantile 0.75"):
        ax.axvline(told.loc[(quartile, column), "value"], color="C2", linewidth=1)
    ax.set(
        title=f"{column}: mean {told.loc[('mean', column), 'value']:.3g}",
        ylim=(0, None),
    )
axes[0].set_ylabel("people")
plt.show()
