"""
Near-duplicates on a grid
=========================

Twenty measurements (dots), each entered six times with small errors.
``GridDeduplicator`` keeps one row for each occupied cell of a public grid, at the
centre of the cell (rings). One replaced row changes one row behind it, so the stage
costs no noise. Copies that lie on both sides of a line are kept twice: a larger cell
drops more of them, and merges more of what is different.
"""

import matplotlib.pyplot as plt
import numpy as np

from ppdp.transformers import GridDeduplicator

rng = np.random.default_rng(5)
measured = rng.uniform(0, 1, (20, 1, 2))
rows = (measured + rng.normal(0, 0.008, (20, 6, 2))).reshape(-1, 2)

plt.style.use("seaborn-v0_8-colorblind")
_, axes = plt.subplots(1, 2, figsize=(6.6, 3.6), layout="constrained")
for ax, cell in zip(axes, (0.1, 0.25)):
    kept, _ = GridDeduplicator(cell_width=cell).fit_resample(rows)
    ax.plot(*rows.T, "C2.")
    ax.plot(*kept.T, "C0o", markersize=9, fillstyle="none")
    left, low = kept.min(axis=0) - 1.5 * cell
    ax.set(xticks=np.arange(left, 1.3, cell), yticks=np.arange(low, 1.3, cell))
    ax.set(xticklabels=[], yticklabels=[], xlim=(-0.1, 1.1), ylim=(-0.1, 1.1))
    ax.set_title(f"cell {cell:g}: {len(kept)} of {len(rows)} rows are kept")
    ax.set_xlabel("first column")
    ax.grid(color="0.8")
axes[0].set_ylabel("second column")
plt.show()
