"""
A histogram with its error
==========================

The ages of 7,874 people, counted in a public grid of bins and released with noise at ε
= 0.1. ``release_.to_pandas()`` has a line for every released number, with the standard
error of its noise; the whiskers are two of them in either direction. Where many
hundreds are counted the noise hardly matters. In the last bins it is larger than the
count, so that the release does not tell whether anybody is that old.
"""

import matplotlib.pyplot as plt

from ppdp import make_pipeline
from ppdp.datasets import load_flchain
from ppdp.mechanisms import GaussianMechanism
from ppdp.transformers import MinMaxScaler

X, _, ranges = load_flchain()
steps = (
    MinMaxScaler(ranges={"age": ranges["age"]}),
    GaussianMechanism("histogram", bins=11),
)
pipe = make_pipeline(*steps, epsilon=0.1, delta=1e-6, dataset="ages").fit(X[["age"]])
counts = pipe.release_.to_pandas()

_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
width = counts["raw_high"] - counts["raw_low"]
error = 2 * counts["raw_standard_error"]
ax.bar(
    counts["raw_low"],
    counts["raw_value"],
    width,
    align="edge",
    color="#3b6690",
    edgecolor="white",
)
ax.errorbar(
    counts["raw_low"] + width / 2,
    counts["raw_value"],
    error,
    fmt="none",
    ecolor="#d08a4e",
    capsize=4,
    linewidth=2,
)
ax.axhline(0, color="black", linewidth=0.8)
ax.set(xlabel="age in years", ylabel="people, noisy count", xlim=(50, 105))
ax.spines[["top", "right"]].set_visible(False)
plt.show()
