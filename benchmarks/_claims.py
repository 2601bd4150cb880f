"""What ``benchmarks/honesty.py`` asks of every library: one claim, one pair of neighbours, and who says so."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from ppdp.audit import ForeignTarget


class Claimed(NamedTuple):
    """A claim and a pair that it is tried on.

    Attributes
    ----------
    name : str
        What is claimed, as a user writes it.
    pair : str
        The two neighbouring datasets in words.
    target : callable
        Makes what is attacked, in an environment that has the library.
    remark : str
        What the library itself says of it, or why it can be expected to hold or to break.
    runs : int
        On both datasets together, fixed in advance.
    kind : {"claim", "disclaimed", "naive"}
        Whether the library claims it, claims it and takes it back by a warning, or leaves the claim to others.
    before : int
        Attempts that were made on it elsewhere, before its first row.
    """

    name: str
    pair: str
    target: Callable[[], ForeignTarget]
    remark: str
    runs: int = 4000
    kind: str = "claim"
    before: int = 0


def searched_once(module: Any) -> None:
    """Let a module remember the noise scales that OpenDP searches for: the same from the same public numbers."""
    search, found = module.binary_search_param, {}
    if hasattr(search, "__wrapped__"):
        return

    @wraps(search)
    def remembered(make_chain: Any, d_in: Any, d_out: Any, *others: Any, **named: Any) -> Any:
        cells = [cell.cell_contents for cell in make_chain.__closure__ or ()]
        public = tuple(cell for cell in cells if isinstance(cell, (int, float, str)))
        key = make_chain.__code__, d_in, d_out, public
        if key not in found:
            found[key] = search(make_chain, d_in, d_out, *others, **named)
        return found[key]

    module.binary_search_param = remembered


def direction_ratio(left: ArrayLike, right: ArrayLike, epsilon: float) -> Callable[[Any], float]:
    """How much more likely a direction is on the left, but for a constant, where OpenDP and diffprivlib draw it.

    By the density of the sampler as both ship it: the envelope, with density (u'Ωu)^(-d/2), and acceptance
    exp(-u'Au) / (u'Ωu)^(d/2), Ω = I + 2A/b. Kent, Ganeiber and Mardia (arXiv 1310.8110) multiply by that power.

    Parameters
    ----------
    left, right : array of shape (d,)
        Diagonals of the two matrices, of which there is nothing beside the diagonals.
    epsilon : float
        That of the direction.
    """

    def envelope(diagonal: Any) -> tuple[Any, float]:
        decay = epsilon / 4 * (diagonal.max() - diagonal)
        return decay, brentq(lambda b: (1 / (b + 2 * decay)).sum() - 1, 1 - 1e-12, diagonal.size + 1e-9)

    sides = [envelope(np.asarray(diagonal, dtype=np.float64)) for diagonal in (left, right)]

    def ratio(direction: Any) -> float:
        squares = np.asarray(direction).ravel() ** 2
        found = [-squares @ decay - squares.size * np.log1p(2 * squares @ decay / b) for decay, b in sides]
        return float(found[0] - found[1])

    return ratio
