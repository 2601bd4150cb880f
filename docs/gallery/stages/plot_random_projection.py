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

_, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for columns, color, style in (
    (4, "#d08a4e", "--"),
    (16, "#2f7f79", "-."),
    (64, "#3b6690", "-"),
):
    projections = [RandomProjection(columns, seed=seed) for seed in range(20)]
    ratios = np.concatenate(
        [pdist(projection.fit_transform(images)) / before for projection in projections]
    )
    height, edges = np.histogram(ratios, bins=np.linspace(0, 2, 81))
    ax.stairs(
        100 * height / ratios.size,
        edges,
        color=color,
        linestyle=style,
        linewidth=2,
        label=f"{columns} columns",
    )
ax.axvline(1, color="0.6", linewidth=0.8)
ax.set(
    xlabel="distance after the projection / distance before",
    ylabel="pairs, % in each bin",
    xlim=(0, 2),
    ylim=(0, None),
)
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
