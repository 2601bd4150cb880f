"""Where the cells of a column end, by noisy shares of its rows in public parts of its range."""

from __future__ import annotations

import numpy as np

from ppdp.data.cell_grid import EARLY
from ppdp.data.rows import Array
from ppdp.data.tails import EDGES

SURE = 1.0  # standard deviations of its noise that are taken off a number of rows
EVEN = 0.75  # of the cells that are spread evenly over the range, at least


def edges_of(counts: Array, noise: float, n_rows: float, cells: int) -> Array:
    """Inner edges of cells that hold about as many rows each, between -1 and 1.

    What noise hides is taken to be spread evenly over the range.
    """
    seen = np.maximum(counts - SURE * noise, 0.0)
    hidden = max(n_rows - float(seen.sum()), EVEN * n_rows)
    up_to = np.append(0.0, np.cumsum(seen + hidden * np.diff(EDGES) / 2))
    return np.interp((np.arange(1, cells) - EARLY) / cells * up_to[-1], up_to, EDGES)
