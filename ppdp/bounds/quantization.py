"""Rows moved onto a public grid: ``docs/theory/quantization.md``.

Centres of cells lie at multiples of the side of a cell. Every coordinate moves by at most half a cell; rows that left
the box of entries or the ball of rows are projected back on it.
"""

from __future__ import annotations

import math
from functools import partial

from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import formula, sane
from ppdp.core.rounding import apply_error, inflate

__all__ = ["FINEST", "dithered_grid", "hard_grid", "staircase"]

_grid = partial(formula, kind="stability", page="quantization", way="public", used_by=("GridQuantizer",), gaps=True)

FINEST = 1e-9
"""Smallest side of a cell, in units of ``row_norm``: numbers of cells stay exact in float64."""


def _norms(domain: Domain, cell: float) -> tuple[float, float]:
    """Largest norm of a row after the stage, and of one that is not projected back yet."""
    norm = float(domain.require("row_norm"))
    sane(FINEST * norm <= cell <= 2 * norm)
    return norm, norm + cell * math.sqrt(domain.d) / 2


@_grid("quantization.hard")
def hard_grid(domain: Domain, distance: Distance, *, cell: float) -> tuple[Domain, Distance]:
    """Every coordinate goes to the centre of its cell: a row that moved at all may jump a cell further in each.

    Equal rows stay equal, so nothing is charged where no row moved.
    """
    norm, reach = _norms(domain, cell)
    jumps = distance.jittered(inflate(cell * math.sqrt(domain.d) / 2))
    return domain, jumps.stretched(1.0, 2 * norm).jittered(2 * apply_error(domain.d, reach))


@_grid("quantization.dither")
def dithered_grid(domain: Domain, distance: Distance, *, cell: float, seed: int) -> tuple[Domain, Distance]:
    """Every slot has a grid of its own, shifted by public numbers drawn from the seed.

    The same for rows that moved, as the grid of a slot is the same on both sides; rows must match by position.
    """
    sane(seed >= 0)
    return hard_grid(domain, distance.by_position(), cell=cell)


@_grid("quantization.staircase")
def staircase(domain: Domain, distance: Distance, *, cell: float, ramp: float) -> tuple[Domain, Distance]:
    """Flat around the centres, with slopes on a share ``ramp`` of every cell: Lipschitz constant ``1 / ramp``."""
    sane(0 < ramp <= 1)
    norm, reach = _norms(domain, cell)
    return domain, distance.stretched(inflate(1 / ramp), 2 * norm).jittered(2 * apply_error(domain.d, reach) / ramp)
