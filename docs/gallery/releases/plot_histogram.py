"""
A histogram with its error
==========================

The ages of 7,874 people, counted in a public grid of bins and released with noise at ε
= 0.1. ``release_.to_pandas()`` has a line for every released number, with the standard
error of its noise; the whiskers are two of them in either direction. Where many
hundreds are counted the noise hardly matters. In the last bins it is larger than the
true count, so that the release does not tell whether anybody is that old.
"""

import matplotlib.pyplot as plt

from ppdp import make_pipeline
from ppdp.datasets import load_flchain
from ppdp.mechanisms import GaussianMechanism
from ppdp.transformers import MinMaxScaler

X, _, ranges = load_flchain()
scaler = MinMaxScaler(ranges={"age": ranges["age"]})
mechanism = GaussianMechanism("histogram", bins=11)
pipe = make_pipeline(scaler, mechanism, epsilon=0.1, delta=1e-6, dataset="ages")
counts = pipe.fit(X[["age"]]).release_.to_pandas()
middle = (counts["raw_low"] + counts["raw_high"]) / 2
error = 2 * counts["raw_standard_error"]

plt.style.use("seaborn-v0_8-colorblind")
_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.bar(middle, counts["raw_value"], width=4.8)
ax.errorbar(middle, counts["raw_value"], error, fmt="none", ecolor="C2", capsize=4)
ax.axhline(0, color="black", linewidth=0.8)
ax.set(xlabel="age in years", ylabel="people, noisy count", xlim=(50, 105))
plt.show()
