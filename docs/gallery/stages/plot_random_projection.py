"""
Distances under a random projection
===================================

The distances between 200 images of digits, 64 pixels each, before and after public
random projections. With 4 columns most of them are off by more than a fifth, with 64
nearly none. A projection looks at no row: it costs no noise, and hides nothing by
itself. What it saves is noise further on, where every column has to carry some.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial.distance import pdist
from sklearn.datasets import load_digits

from ppdp.transformers import RandomProjection

images = load_digits().data[:200]
before = pdist(images)

bins = np.linspace(0, 2, 81)

plt.style.use("seaborn-v0_8-colorblind")
_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for columns, style in ((4, "--"), (16, "-."), (64, "-")):
    stages = [RandomProjection(columns, seed=seed) for seed in range(20)]
    ratios = np.array([pdist(stage.fit_transform(images)) / before for stage in stages])
    pairs = 100 / ratios.size * np.histogram(ratios, bins)[0]
    ax.plot(bins[:-1], pairs, style, drawstyle="steps-post", label=f"{columns} columns")
ax.axvline(1, color="0.6", linewidth=0.8)
ax.set_xlabel("distance after the projection / distance before")
ax.set(ylabel="pairs, % in each bin", xlim=(0, 2), ylim=(0, None))
ax.legend()
plt.show()
