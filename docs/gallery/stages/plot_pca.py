"""
Which PCA for how many rows?
============================

The noise of a mean behind three ways to reduce ten columns. Exact components move every
row: behind ``PCA`` the mean needs about eleven times the noise, and the eigengap must
be tested; ``SoftPCA`` assumes nothing and needs two and a half times. Components that
are released with noise move no row, so that the mean gets the least noise; but then the
components are noisy.
"""

import matplotlib.pyplot as plt

from ppdp import Domain, make_pipeline
from ppdp.mechanisms import GaussianMechanism
from ppdp.transformers import PCA, NormClipper, SoftPCA

ways = {
    "PCA, exact": PCA(2, with_mean=False, fit_mode="exact"),
    "SoftPCA, exact": SoftPCA(fit_mode="exact"),
    "PCA, noisy": PCA(2, with_mean=False, fit_mode="noisy"),
}
sizes = [1000, 3000, 10_000, 30_000, 100_000]

plt.style.use("seaborn-v0_8-colorblind")
_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for (name, stage), style in zip(ways.items(), ("s-", "o--", "^:")):
    steps = NormClipper(), stage, GaussianMechanism("mean")
    pipe = make_pipeline(*steps, epsilon=1.0, delta=1e-6)
    plans = [pipe.plan(Domain(n_rows=n, n_features=10)) for n in sizes]
    ax.loglog(sizes, [plan.mechanism.noise_scale for plan in plans], style, label=name)
ax.set(xlabel="rows", ylabel="noise of each mean (norm of a row: 1)")
ax.legend()
ax.grid(alpha=0.3)
plt.show()
