"""A secret random projection of one unit vector, ``y = Z Zᵀ v`` with Z of independent N(0, 1) entries.

Between two unit vectors of cosine ρ the loss depends on two independent scalars, ``T ~ t_r`` and ``B ~ χ²`` with
``d + r - 1`` degrees of freedom: with ``a = ρ + √((1 - ρ²)/r) T`` and ``c = (d + 1 - r)/2`` it is
``c log a + (B/2)(1/a - 1)``, and infinite where ``a <= 0``. Theory: ``docs/theory/wishart.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

import ppdp.privacy.pld as pld
from ppdp.core.checks import integer, number
from ppdp.core.figures import figure
from ppdp.core.rounding import UNIT
from ppdp.exceptions import InvalidParameter
from ppdp.privacy.losses.part import Part
from ppdp.privacy.subsampling import Profile

Floats = NDArray[np.float64]

_LOST = 1e-9  # of a probability: more than SciPy's gamma and t distributions lose, tested against 50 digits
_LEVELS = special.ndtr(-np.concatenate([np.arange(0, 8, 0.01), np.arange(8, 16, 0.05)]))  # tails between which T is cut
_NEAR_ZERO = np.geomspace(1e-9, 1, 400)  # values of a between which it is cut as well
_STEP = 0.14  # of log delta, between which a profile is a chord
_LEAST, _LAST, _ROUNDS, _LARGEST = 1e-19, 2.0**8, 12, 2.0**12
_LEAST_COSINE = 1e-12  # directions that are hardly closer than orthogonal ones


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
        if not _LEAST_COSINE <= number("cosine", self.cosine, "WishartLoss") < 1:
            raise InvalidParameter(f"cosine must lie between 0 and 1, got {self.cosine!r}.", stage="WishartLoss")

    @property
    def _shape(self) -> tuple[int, int, float]:
        return self.dimension, self.rank, self.cosine

    def distribution(self, interval: float) -> pld.LossDistribution:
        return pld.loss_distribution(wishart_profile(*self._shape), interval) * self.count

    def epsilon_alone(self, delta: float) -> float:
        return wishart_epsilon(*self._shape, delta) if self.count == 1 else math.inf

    def delta_alone(self, epsilon: float) -> float:
        return float(wishart_delta(*self._shape, np.array(epsilon))) if self.count == 1 else 1.0

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
        return wishart_exact_delta(*self._shape, number("epsilon", epsilon, least=0))

    def closed_epsilon(self, delta: float) -> float:
        """An epsilon of one release in closed form (Theorem 3), never below :meth:`epsilon`; often infinite."""
        return wishart_closed_epsilon(*self._shape, number("delta", delta, above=0, most=1))

    def words(self) -> str:
        return (
            f"{self.times}a secret random projection of rank {self.rank} of a direction in {self.dimension} dimensions"
            f" whose cosine with that of any neighbouring dataset is at least {figure(self.cosine, 8)}"
        )


class _Cells(NamedTuple):
    """Intervals of T on both sides of ``a = 1``, as ``u = a - 1``, with their probabilities; u is rounded outwards."""

    far: float  # probability of what lies beyond them, a <= 0 included
    masses: Floats  # of those below 1, in ascending order, ...
    below: Floats  # ... and their ends, one more
    masses_above: Floats
    above: Floats
    bulge: Floats  # largest a - 1 that a cosine in [ρ, 1] can have on each interval: 0 where it is at an end


@lru_cache(maxsize=32)
def _cells(rank: int, cosine: float) -> _Cells:
    versine = 1 - cosine
    sine = math.sqrt(versine * (1 + cosine))
    slope = sine / math.sqrt(rank)
    quantiles = -special.stdtrit(rank, _LEVELS)
    one = versine / slope  # where a = 1: the tangent of half the angle
    last = math.sqrt(rank) * sine / cosine  # from here on a decreases with the cosine
    cuts = np.concatenate([quantiles, -quantiles, (_NEAR_ZERO - cosine) / slope, [one, last]])
    cuts = np.unique(cuts[np.isfinite(cuts)])
    u = slope * cuts - versine
    error = 8 * UNIT * (np.abs(slope * cuts) + versine)
    cuts, low, high = (part[u - error > -1] for part in (cuts, u - error, u + error))
    masses = np.where(cuts[:-1] > 0, -np.diff(special.stdtr(rank, -cuts)), np.diff(special.stdtr(rank, cuts)))
    far = float(special.stdtr(rank, cuts[0]) + special.stdtr(rank, -cuts[-1])) * (1 + _LOST)
    middle = int(np.searchsorted(cuts, one))
    low[middle] = high[middle] = 0.0
    tangent = cuts / math.sqrt(rank)
    hill = tangent**2 / (1 + np.hypot(1, tangent)) * (1 + 8 * UNIT)  # of 1 / cos: no a of a larger cosine is above it
    bulge = np.where((cuts[1:] > 0) & (cuts[:-1] < last), hill[1:], 0.0)
    masses = np.maximum(masses, 0.0) * (1 + _LOST)
    return _Cells(far, masses[:middle], low[: middle + 1], masses[middle:], high[middle:], bulge)


def _excess(u: Floats, dimension: int, rank: int, epsilon: Floats, *, below: bool, lost: float = _LOST) -> Floats:
    """``E_B max(1 - exp(epsilon - loss), 0)`` at ``a = 1 + u``, below or above 1; epsilon is a column.

    Below the loss grows with B and above it falls, so one tail of B counts.
    """
    half, log_a, tail = (dimension + rank - 1) / 2, np.log1p(u), special.gammaincc if below else special.gammainc
    with np.errstate(all="ignore"):
        cut = np.maximum((epsilon - (dimension + 1 - rank) / 2 * log_a) * -(1 + u) / u, 0.0)  # of B / 2
        logs = epsilon + (rank - 1) * log_a + np.log(tail(half, cut / (1 + u)))
        found = np.clip(tail(half, cut) * (1 + lost) - np.exp(logs), 0.0, 1.0)
    return np.where(u == 0, 0.0, found)


def wishart_delta(dimension: int, rank: int, cosine: float, epsilon: Floats) -> Floats:
    """Delta at each ``epsilon >= 0``, for all cosines from this one to 1 at once; rounded up.

    On an interval of T the largest loss is that at the end that is further from ``a = 1``; the largest of all cosines
    as well, but where a larger cosine has a larger a (Theorem 2). Probabilities of the intervals are exact.
    """
    cells, column = _cells(rank, cosine), np.asarray(epsilon, float).reshape(-1, 1)
    count = len(cells.masses)
    highest = np.maximum(cells.above[1:], cells.bulge[count:])
    doubtful = cells.bulge[:count] > 0
    found = cells.far + _excess(cells.below[:-1], dimension, rank, column, below=True) @ cells.masses
    found += _excess(highest, dimension, rank, column, below=False) @ cells.masses_above
    if dimension + 1 > rank:  # else no loss above a = 1 is positive
        bulge = cells.bulge[:count][doubtful]
        found += _excess(bulge, dimension, rank, column, below=False) @ cells.masses[doubtful]
    return np.minimum(found * (1 + _LOST), 1.0).reshape(np.shape(epsilon))


def wishart_exact_delta(dimension: int, rank: int, cosine: float, epsilon: float) -> float:
    """Delta at this cosine, neither rounded up nor down: by Gauss and Legendre's rule on every interval."""
    cells, column = _cells(rank, cosine), np.array([[float(epsilon)]])
    nodes, weights = np.polynomial.legendre.leggauss(6)
    slope = math.sqrt((1 - cosine) * (1 + cosine) / rank)
    log_norm = special.gammaln((rank + 1) / 2) - special.gammaln(rank / 2) - math.log(rank * math.pi) / 2
    found = float(special.stdtr(rank, (cells.below[0] + 1 - cosine) / slope))
    for ends, below in ((cells.below, True), (cells.above, False)):
        low, high = ends[:-1, None], ends[1:, None]
        u = ((high - low) * nodes / 2 + (high + low) / 2).ravel()
        t = (u + (1 - cosine)) / slope
        density = np.exp(log_norm - (rank + 1) / 2 * np.log1p(t * t / rank))
        share = ((high - low) / 2 * weights).ravel() / slope * density
        found += float(_excess(u, dimension, rank, column, below=below, lost=0.0)[0] @ share)
    return min(found, 1.0)


def wishart_closed_epsilon(dimension: int, rank: int, cosine: float, delta: float) -> float:
    """An epsilon at this delta for all cosines from this one to 1, in closed form (Theorem 3); infinite if it is none.

    With ``t`` and ``b`` the quantiles of T and B at ``1 - delta/4``, ``b'`` that of B at ``delta/4`` and
    ``a = ρ - √((1 - ρ²)/r) t``: the largest of 0, ``c log a + (b/2)(1/a - 1)`` and ``-c log a - (b'/2)(1 - a)``.
    """
    free, c = dimension + rank - 1, (dimension + 1 - rank) / 2
    quarter = delta / 4 * (1 - _LOST)
    a = cosine + math.sqrt((1 - cosine) * (1 + cosine) / rank) * float(special.stdtrit(rank, quarter)) * (1 + _LOST)
    if not a > 0:
        return math.inf
    most, least = (2 * float(inverse(free / 2, quarter)) for inverse in (special.gammainccinv, special.gammaincinv))
    left = c * math.log(a) + most / 2 * (1 / a - 1)
    right = -c * math.log(a) - least / 2 * (1 - a)
    slack = _LOST * (abs(c * math.log(a)) + most / a)
    return max(0.0, left, right) + slack


def wishart_epsilon(dimension: int, rank: int, cosine: float, delta: float) -> float:
    """The least epsilon at this delta for all cosines from this one to 1, rounded up; infinite if there is none."""

    def enough(epsilon: float) -> bool:
        return float(wishart_delta(dimension, rank, cosine, np.array(epsilon))) <= delta

    if enough(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while not enough(high):
        low, high = high, 2 * high
        if high > _LARGEST:
            return wishart_closed_epsilon(dimension, rank, cosine, delta)
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return min(high, wishart_closed_epsilon(dimension, rank, cosine, delta))


@lru_cache(maxsize=8)
def wishart_profile(dimension: int, rank: int, cosine: float) -> Profile:
    """The same as a profile: of what :func:`wishart_delta` is at some epsilons, the chords in ``exp(epsilon)``.

    It is convex there, so they are nowhere below; between two of them it falls by a seventh at most, or hardly.
    """
    marks = np.concatenate([[0.0], np.geomspace(2.0**-12, _LAST, 61)])
    heights = wishart_delta(dimension, rank, cosine, marks)
    for _ in range(_ROUNDS):
        steep = np.log(heights[:-1] / np.maximum(heights[1:], _LEAST)) > _STEP
        steep &= (heights[:-1] > _LEAST) & (heights[:-1] - heights[1:] > 1e-9 * _cells(rank, cosine).far)
        if not steep.any():
            break
        middles = (marks[:-1][steep] + marks[1:][steep]) / 2
        marks = np.concatenate([marks, middles])
        heights = np.concatenate([heights, wishart_delta(dimension, rank, cosine, middles)])
        order = np.argsort(marks)
        marks, heights = marks[order], heights[order]

    def chords(epsilon: Floats) -> Floats:
        at = np.clip(np.asarray(epsilon, float), 0.0, _LAST)
        right = np.clip(np.searchsorted(marks, at), 1, len(marks) - 1)
        low, high = marks[right - 1], marks[right]
        share = np.expm1(at - low) / np.expm1(high - low)
        return np.asarray(np.maximum(heights[right - 1] + (heights[right] - heights[right - 1]) * share, 0.0))

    return Profile.symmetric(chords)
