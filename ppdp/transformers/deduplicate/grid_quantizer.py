"""Moving rows onto a public grid."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.bounds.quantization import FINEST
from ppdp.core.checks import choice, integer, number
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.rows import Rows
from ppdp.data.statistics import clip_norms
from ppdp.transformers.base import RowWiseTransformer, Statistics
from ppdp.transformers.way import Way

__all__ = ["GridQuantizer"]

Array = NDArray[np.float64]

MODES = ["hard", "staircase", "dither"]
LEAST_RAMP = 1e-6


class GridQuantizer(RowWiseTransformer):
    """Round every row to a public grid. Costs nothing where no row has moved yet.

    Parameters
    ----------
    cell : float, optional
        Side of a cell, in the units of the rows. Default: a tenth of ``row_norm``.
    mode : {"hard", "staircase", "dither"}, default="hard"
        "hard": the nearest centre of a cell. "staircase": the same on the inner part of each cell, with slopes between,
        so that rows that moved a little stay near each other. "dither": in a pipeline every training row has a grid of
        its own, shifted at random, so that rounding errors average out; a new row has none and is rounded as in "hard".
    ramp : float, default=0.5
        Share of every cell that is slope, for the mode "staircase"; 1 changes nothing at all.
    seed : int, default=0
        Draws the shifts of the mode "dither". Public: it hides nothing.

    Attributes
    ----------
    cell_ : float
        Side of a cell.

    Notes
    -----
    **Guarantee** (``docs/theory/quantization.md``): row-wise, moves nothing. Rows that an earlier stage moved by Δ are
    at most Δ + cell √d apart, or Δ / ramp with the staircase: behind a fitted stage use the staircase.

    Gaps stay gaps. Rows end within the bounds that they had: those that left them are projected back.

    Examples
    --------
    >>> import numpy as np
    >>> GridQuantizer(cell=0.5).fit_transform(np.array([[0.2, 0.3], [-0.6, 1.0]])) + 0.0
    array([[ 0. ,  0.5],
           [-0.5,  1. ]])
    """

    statistic_names = ("cell", "row_norm", "entry_bound")

    def __init__(self, cell: float | None = None, mode: str = "hard", ramp: float = 0.5, seed: int = 0) -> None:
        self.cell = cell
        self.mode = mode
        self.ramp = ramp
        self.seed = seed

    def ways(self, domain: Domain, distance: Distance) -> tuple[Way, ...]:
        """One public way."""
        norm = float(domain.require("row_norm", "GridQuantizer"))
        cell = norm / 10 if self.cell is None else number("cell", self.cell, self, least=FINEST * norm, most=2 * norm)
        mode = choice("mode", self.mode, MODES, self)
        ramp = number("ramp", self.ramp, self, least=LEAST_RAMP, most=1)
        seed = integer("seed", self.seed, self, least=0)
        own: dict[str, dict[str, Any]] = {"hard": {}, "staircase": {"ramp": ramp}, "dither": {"seed": seed}}
        return (Way.by(f"quantization.{mode}", domain, distance, cell=cell, **own[mode]),)

    def prepare(self, rows: Rows, way: Way, domain: Domain) -> Statistics:
        return {
            "cell": way.parameters["cell"],
            "row_norm": domain.row_norm,
            "entry_bound": min(domain.entry_bound or np.inf, domain.require("row_norm")),
        }

    def apply(self, rows: Rows, statistics: Statistics) -> Rows:
        if self.mode != "dither":
            return super().apply(rows, statistics)
        shift = np.random.Generator(np.random.PCG64(self.seed)).uniform(-0.5, 0.5, rows.X.shape)
        return rows.with_X(
            _within(statistics["cell"] * (np.rint(rows.X / statistics["cell"] + shift) - shift), statistics)
        )

    def map_rows(self, X: Array, statistics: Statistics) -> Array:
        places = X / statistics["cell"]
        centres = np.rint(places)
        if self.mode == "staircase":
            offset = places - centres
            climbed = np.maximum(np.abs(offset) - (1 - self.ramp) / 2, 0.0) / self.ramp
            centres += np.copysign(climbed, offset)
        return _within(statistics["cell"] * centres, statistics)


def _within(X: Array, statistics: Statistics) -> Array:
    """Rows back in the box of entries and in the ball of rows."""
    bound = statistics["entry_bound"]
    return clip_norms(np.clip(X, -bound, bound), statistics["row_norm"])
