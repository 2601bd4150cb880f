"""
A scaler beside columns of 0 and 1
==================================

Noise on the mean of one number, that a scaler releases, beside more and more columns
of 0 and 1 that stand for categories. Of all columns, the noise grows with their
number, for a row may be as long as all of them together. In a group of its own the
number pays for itself.
"""

import matplotlib.pyplot as plt

from ppdp import ColumnTransformer, Domain, make_column_map, make_pipeline
from ppdp.mechanisms import GaussianMechanism
from ppdp.transformers import CategoryEncoder, MinMaxScaler, StandardScaler

RANGE, SCALER = (
    MinMaxScaler(ranges=(0, 100)),
    StandardScaler(fit_mode="noisy", columns="all"),
)


def noise(first, *stages, names):
    """On the first released statistic, of 10,000 rows at epsilon = 1."""
    domain = Domain(n_rows=10_000, feature_names=names)
    plan = make_pipeline(
        first, *stages, GaussianMechanism(), epsilon=1.0, delta=1e-6
    ).plan(domain)
    return plan.releases[0].noise_scale


counts, together, alone = [1, 3, 10, 30, 100], [], []
for count in counts:
    hot = {f"c{i}": [0, 1] for i in range(count)}
    names, labels = ("age", *hot), CategoryEncoder(hot, other=None)
    together.append(
        noise(
            make_column_map((RANGE, ["age"]), (labels, list(hot))), SCALER, names=names
        )
    )
    groups = ColumnTransformer(
        [("age", [RANGE, SCALER], ["age"]), ("categories", labels, list(hot))]
    )
    alone.append(noise(groups, names=names))

plt.style.use("seaborn-v0_8-colorblind")
_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.plot([2 * count for count in counts], together, "-o", label="scaler of all columns")
ax.plot(
    [2 * count for count in counts],
    alone,
    "--s",
    label="scaler in a group of one column",
)
ax.set(xlabel="columns of 0 and 1", ylabel="noise on the mean, in half ranges")
ax.set(xscale="log", yscale="log")
ax.legend()
plt.show()
