"""
Near-duplicates on a grid
=========================

Twenty measurements (dots), each entered six times with small errors. ``GridDeduplicator`` keeps one row for each occupied cell of a
public grid, at the centre of the cell (rings). One replaced row changes one row behind it, so the stage costs no noise. Copies that lie
on both sides of a line are kept twice: a larger cell drops more of them, and merges more of what is different.
"""

import matplotlib.pyplot as plt
import numpy as np

from ppdp.transformers import GridDeduplicator

rng = np.random.default_rng(5)
measured = rng.uniform(0, 1, (20, 1, 2))
rows = (measured + rng.normal(0, 0.008, (20, 6, 2))).reshape(-1, 2)

_, axes = plt.subplots(1, 2, figsize=(6.6, 3.6), layout="constrained", sharey=True)
for ax, cell in zip(axes, (0.1, 0.25)):
    kept, _ = GridDeduplicator(cell=cell).fit_resample(rows)
    origin = kept.min(axis=0) % cell - cell / 2
    ax.plot(*rows.T, ".", color="#d08a4e", markersize=5)
    ax.plot(*kept.T, "o", markersize=10, markerfacecolor="none", markeredgecolor="#3b6690", markeredgewidth=1.5)
    ax.set_xticks(np.arange(origin[0] - cell, 1.1, cell), minor=True)
    ax.set_yticks(np.arange(origin[1] - cell, 1.1, cell), minor=True)
    ax.grid(which="minor", color="0.85")
    ax.tick_params(which="minor", length=0)
    ax.set(
        title=f"cell {cell:g}: {len(kept)} of {len(rows)} rows",
        xlabel="first column",
        xlim=(-0.1, 1.1),
        ylim=(-0.1, 1.1),
    )
axes[0].set_ylabel("second column")
plt.show()
