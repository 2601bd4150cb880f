"""How finely columns are seen, and how a budget is shared, by public facts: ``docs/theory/boosting.md``."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ppdp.data.cell_grid import EARLY
from ppdp.data.rows import Array
from ppdp.data.tails import EDGES

# Of mu² the histogram and the linear model have these, below this `n mu / √(2 d)`; rounds and the histogram of the
# targets have the rest.
SHARES = {125.0: (0.65, 0.25), 250.0: (0.4, 0.45), 1000.0: (0.4, 0.3), math.inf: (0.4, 0.2)}
SHARES_OF_CATEGORIES = (0.3, 0.4)  # where the linear model has them one by one
SOME = 1000.0  # `n mu / √(2 d)`, up to which it does so for these shares ...
KNOWN = 2500.0  # ... and from which on it needs no such beginning; only where moments are known they are one by one
OF_EDGES = 0.02, 4.0  # of mu², at most, of the histogram that places cells; and that times `n mu / √(2 d)`
CELLS = {16: 0.0, 64: 125.0, 256: 2000.0, 1024: 16000.0}  # of a column, and the `n mu / √(2 d)` from which on
FEW = 3  # categories of a column, whose shape says about as much as they do one by one
SURE = 1.0  # standard deviations of its noise that are taken off a number of rows
EVEN = 0.75  # of the cells that are spread evenly over the range, at least
TOLD = 100.0  # `n mu` over the numbers of a row of the linear model, from which on it has categories one by one


def usual_cells(certain: float) -> int:
    """Cells of a column, by ``n mu / √(2 d)``."""
    return max(cells for cells, least in CELLS.items() if certain >= least)


def share_of_edges(certain: float) -> float:
    """Of ``mu²``, which the histogram has by which cells are placed: noise is less where rows are many."""
    most, times = OF_EDGES
    return min(most, times / certain)


def terms(categories: Sequence[int], mass: float, certain: float) -> tuple[list[int], list[int], tuple[float, float]]:
    """What the linear model may have beside shapes: lines, and numbers of categories of each column.

    With these go shares of ``mu²``. ``mass`` is ``n mu``, and ``certain`` that over the root of ``2 d``.
    """
    lines = [int(count == 0) for count in categories]
    indicators = [count * (count > FEW) for count in categories]
    if any(indicators) and mass >= TOLD * (len(lines) + sum(lines) + sum(indicators)):
        return lines, indicators, SHARES_OF_CATEGORIES
    return lines, [0] * len(lines), next(shares for most, shares in SHARES.items() if certain < most)


def begins_with_shapes(terms: Sequence[int], certain: float) -> bool:
    """Whether the linear model, which has so many terms of each column, does so."""
    return certain < (SOME if max(terms, default=0) > 1 else KNOWN)


def edges_of(counts: Array, noise: float, n_rows: float, cells: int) -> Array:
    """Inner edges of cells that hold about as many rows each, between -1 and 1.

    What noise hides is taken to be spread evenly over the range.
    """
    seen = np.maximum(counts - SURE * noise, 0.0)
    hidden = max(n_rows - float(seen.sum()), EVEN * n_rows)
    up_to = np.append(0.0, np.cumsum(seen + hidden * np.diff(EDGES) / 2))
    return np.interp((np.arange(1, cells) - EARLY) / cells * up_to[-1], up_to, EDGES)
