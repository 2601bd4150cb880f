"""Loss of a secret random projection of one unit vector: ``docs/theory/wishart.md``."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

import ppdp.privacy.pld as pld
import ppdp.privacy.wishart as wishart
from ppdp.core.checks import integer, number
from ppdp.core.figures import figure
from ppdp.exceptions import InvalidParameter
from ppdp.privacy.losses.part import Part

_LEAST = 1e-12  # directions that are hardly closer than orthogonal ones


@dataclass(frozen=True)
class WishartLoss(Part):
    """Releases of ``y = Z Zᵀ v``: v a unit vector, Z a secret matrix of independent N(0, 1) entries, drawn for each.

    Stands alone: whoever knows how close neighbouring unit vectors are can check any figure with it.

    Parameters
    ----------
    dimension : int
        Entries of v, at least 2.
    rank : int
        Columns of Z, at least 1; it may exceed the dimension.
    cosine : float
        The unit vectors of neighbouring datasets have a cosine of at least this, between 0 and 1.
    count : int, default=1
        Releases, each with a fresh Z.

    Raises
    ------
    InvalidParameter
        If one of them is out of range.

    Notes
    -----
    **Guarantee** (``docs/theory/wishart.md``): :meth:`delta` and :meth:`epsilon` hold for every cosine from this one to
    1, which is proved (Theorem 2), and are a little above :meth:`exact_delta`, that of this cosine. No Rényi divergence
    is finite, because some outputs are possible on one side only, so there is no curve.

    Examples
    --------
    >>> loss = WishartLoss(50, 20, 0.999)
    >>> round(loss.epsilon(1e-5), 2), round(loss.closed_epsilon(1e-5), 2)
    (1.26, 3.56)
    """

    kind = "wishart"
    idealised = (
        "real arithmetic: it is proved of exact random matrices times exact vectors, and what the rounding of those"
        " products could tell is not covered"
    )

    dimension: int
    rank: int
    cosine: float

    def __post_init__(self) -> None:
        super().__post_init__()
        integer("dimension", self.dimension, "WishartLoss", least=2)
        integer("rank", self.rank, "WishartLoss")
        if not _LEAST <= number("cosine", self.cosine, "WishartLoss") < 1:
            raise InvalidParameter(f"cosine must lie between 0 and 1, got {self.cosine!r}.", stage="WishartLoss")

    @property
    def _shape(self) -> tuple[int, int, float]:
        return self.dimension, self.rank, self.cosine

    def distribution(self, interval: float) -> pld.LossDistribution:
        return pld.loss_distribution(wishart.wishart_profile(*self._shape), interval) * self.count

    def epsilon_alone(self, delta: float) -> float:
        return wishart.wishart_epsilon(*self._shape, delta) if self.count == 1 else math.inf

    def delta_alone(self, epsilon: float) -> float:
        return float(wishart.wishart_delta(*self._shape, np.array(epsilon))) if self.count == 1 else 1.0

    def epsilon(self, delta: float) -> float:
        """Smallest epsilon of all releases at this delta, in (0, 1), rounded up; infinite if there is none."""
        number("delta", delta, above=0, most=1)
        return self.epsilon_alone(delta) if self.count == 1 else self.distribution(pld.INTERVAL).epsilon(delta)

    def delta(self, epsilon: float) -> float:
        """Smallest delta of all releases at this epsilon, rounded up."""
        number("epsilon", epsilon, least=0)
        return self.delta_alone(epsilon) if self.count == 1 else self.distribution(pld.INTERVAL).delta(epsilon)

    def exact_delta(self, epsilon: float) -> float:
        """Delta of one release where the cosine is exactly :attr:`cosine`: a value, not a bound."""
        return wishart.wishart_exact_delta(*self._shape, number("epsilon", epsilon, least=0))

    def closed_epsilon(self, delta: float) -> float:
        """An epsilon of one release in closed form (Theorem 3), never below :meth:`epsilon`; often infinite."""
        return wishart.wishart_closed_epsilon(*self._shape, number("delta", delta, above=0, most=1))

    def words(self) -> str:
        return (
            f"{self.times}a secret random projection of rank {self.rank} of a direction in {self.dimension} dimensions"
            f" whose cosine with that of any neighbouring dataset is at least {figure(self.cosine, 8)}"
        )
