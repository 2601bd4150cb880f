"""
PCA with a soft edge
====================

How much of each principal direction of the digits is left behind the stage. ``PCA``
keeps ten directions and drops the others, and which ones those are can turn on a single
row where two eigenvalues are close. ``SoftPCA`` shrinks every direction by a factor
that follows its eigenvalue smoothly, so that one row changes little, whatever the data
are. The smaller its ``regularization``, the further to the right the edge lies, and the
more noise an exact fit needs.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from ppdp.transformers import PCA, SoftPCA

digits = load_digits().data
rows = (
    digits - digits.mean(axis=0)
) / 64  # the digits are public: nothing here has to be noisy
directions = np.linalg.eigh(rows.T @ rows)[1][:, :-31:-1]  # the first thirty
before = np.linalg.norm(rows @ directions, axis=0)

plt.style.use("seaborn-v0_8-colorblind")
_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for stage, style in ((PCA(10), "s--"), (SoftPCA(0.01), "v:"), (SoftPCA(0.001), "o-")):
    after = np.linalg.norm(stage.fit_transform(rows) @ directions, axis=0)
    ax.plot(range(1, 31), after / before, style, markersize=4, label=str(stage))
ax.set(xlabel="principal direction", ylabel="share that is left", ylim=(0, 1.05))
ax.legend()
plt.show()
