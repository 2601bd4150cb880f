"""
A ladder of thresholds
======================

A strict threshold needs less noise at the end, but fewer datasets pass its test. A
ladder tests several public thresholds with one noisy margin and takes the strictest one
that passes, so that nobody has to guess. Read the picture from left to right: the more
rows would have to be replaced before the eigengap of the data falls below 0.05, the
less noise the released mean gets in 99 of 100 runs. In the shaded part the fit is
refused more often than that.
"""

import matplotlib.pyplot as plt

from ppdp import Domain, Ladder, make_pipeline
from ppdp.mechanisms import GaussianMechanism
from ppdp.transformers import PCA, NormClipper

gaps = (0.4, 0.2, 0.1, 0.05)  # the strictest first
steps = (
    NormClipper(),
    PCA(n_components=1, center=False, statistics="exact"),
    GaussianMechanism(),
)
pipe = make_pipeline(*steps, epsilon=1.0, delta=1e-6, gate=Ladder("pca__min_gap", gaps))
plan = pipe.plan(Domain(n_rows=8000, n_features=3))
margins = [plan.gate.needed_margin(0.99, rung) for rung in range(4)]
noises = [rung.mechanism.noise_scale for rung in plan.rungs]

plt.style.use("seaborn-v0_8-colorblind")
_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.step([*margins[::-1], 2000], [*noises[::-1], noises[0]], where="post", linewidth=2)
ax.axvspan(0, margins[-1], color="C2", alpha=0.2)
ax.text(margins[-1] / 2, 0.004, "may be refused", rotation=90, ha="center", va="center")
for gap, margin, noise in zip(gaps, margins, noises):
    ax.text(margin + 20, noise + 0.0003, f"gap {gap:g}")
ax.set(xlim=(0, 2000), ylim=(0, 0.014))
ax.set_xlabel("margin of the data: rows to replace before the gap is below 0.05")
ax.set_ylabel("noise of each mean (norm of a row: 1)")
plt.show()
