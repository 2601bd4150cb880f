"""Gaussian sketches: rows mixed by a secret Gaussian matrix, and noise.

A sketch of rank r of rows X is ``S X + sigma N`` with S of shape (r, n) and N of shape (r, d), all entries N(0, 1),
secret and drawn for it alone: its rows are independent N(0, XᵀX + sigma² I). Theory:
``docs/theory/gaussian-sketch.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

import ppdp.privacy.pld as pld
import ppdp.privacy.renyi as renyi
from ppdp.core.checks import number
from ppdp.core.figures import figure
from ppdp.core.rounding import tiny
from ppdp.exceptions import InvalidParameter
from ppdp.privacy.losses.kinds import Gaussian
from ppdp.privacy.losses.part import Loss, Part
from ppdp.privacy.renyi import Curve
from ppdp.privacy.subsampling import Profile

Floats = NDArray[np.float64]

_UP = 1 + 1e-9  # of a profile: more than quadrature and incomplete gamma functions can lose
_CANCELLED = 1e-12  # of the larger of two terms that are subtracted
_NODES, _REACH = 160, 9.0  # beyond √m - 9 and √m + 9 a chi variable has a mass below 1e-36
_TINY, _NORMAL_REACH, _BEYOND = 2.0**-14, 12.0, 2e-33  # a Gaussian μ, a normal quantile, and the mass beyond


@dataclass(frozen=True, kw_only=True)
class SketchLoss(Part):
    """A Gaussian sketch ``S X + sigma N`` of rows X, S and N secret, all entries N(0, 1), drawn for it alone.

    Stands alone, too: :meth:`epsilon` and :meth:`delta` need no pipeline.

    Attributes
    ----------
    rank : int
        Rows of the sketch.
    shift : float
        By how much rows that are on both sides can change together (Frobenius norm). With ``rows=0`` that is all that
        changes, and X may be any matrix.
    change : float
        Largest weight times squared norm of the rows that stand on one side only, all together: R² for one row.
    rows : int
        How many such rows there are on each side.
    sides : int
        Whether they can stand on both sides at once: 2 for a replaced row, 1 for one that comes or goes.
    floor : float
        No eigenvalue of XᵀX is below, on either side: something that has to be tested or proved. 0 needs neither.
    noise_scale : float
        Sigma.

    Notes
    -----
    **Guarantee** (``docs/theory/gaussian-sketch.md``): with ``A = floor + sigma²``. Rows that stand on one side: a pair
    of chi-squared variables of which the law is exact; attained by one row that comes, goes or is replaced. Rows that
    change: a Rényi curve, attained where ``floor >= sigma²``.

    It protects by multiplying with random numbers: what floats make of that is not covered.

    Examples
    --------
    >>> loss = SketchLoss(rank=1, shift=0.1, floor=1.0)
    >>> round(loss.renyi(4.0), 6)
    0.070399
    >>> round(SketchLoss(rank=100, change=1.0, rows=1, sides=2, noise_scale=5.0).epsilon(1e-6), 3)
    1.81
    """

    kind = "gaussian-sketch"
    idealised = (
        "real arithmetic: it is proved of exact random matrices times exact rows, and what the rounding of those"
        " products could tell is not covered"
    )
    rank: int
    shift: float = 0.0
    change: float = 0.0
    rows: int = 0
    sides: int = 1
    floor: float = 0.0
    noise_scale: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        whole = (self.rank, self.rows, self.sides)
        if any(float(value) != int(value) for value in whole) or self.rank < 1 or self.sides not in (1, 2):
            raise InvalidParameter("a sketch has a whole rank of at least 1, whole rows and one side or two.")
        if not self.floor + self.noise_scale**2 > 0:
            what = "a sketch with neither noise nor a floor under the eigenvalues protects nothing."
            raise InvalidParameter(what, fix="noise_scale above 0, or floor above 0.")
        if bool(self.rows) != bool(self.change):
            raise InvalidParameter("rows that stand on one side only need both rows and change.")

    @property
    def _ratio(self) -> float:
        """By which share a variance can grow, because of rows on one side only."""
        return self.change / (self.floor + self.noise_scale**2) * (1 + 1e-12)

    @property
    def _size(self) -> int:
        """Numbers of one variance in all runs: those of every row of the sketch."""
        return int(self.count) * int(self.rank) * int(self.rows)

    @property
    def matrix_change(self) -> float:
        """How much the covariance of the sketch can change, in its own units (Frobenius norm)."""
        own = matrix_change(self.shift, self.floor, self.noise_scale)
        return (own + math.sqrt(self.sides) * self._ratio) * (1 + 1e-12)

    def curve(self) -> renyi.Curve:
        whole = matrix_curve(self.matrix_change, int(self.rank) * int(self.count))
        if self.shift or not self.rows:
            return whole
        own = rows_curve(self._ratio, int(self.sides), self._size)
        return lambda alpha: min(whole(alpha), own(alpha))

    @property
    def distributed(self) -> bool:
        return bool(self.rows) and not self.shift

    def distribution(self, interval: float) -> pld.LossDistribution | None:
        if not self.distributed:
            return None
        return pld.loss_distribution(rows_profile(self._ratio, int(self.sides), self._size), interval)

    def delta_alone(self, epsilon: float) -> float:
        if not self.distributed:
            return 1.0
        profile = rows_profile(self._ratio, int(self.sides), self._size)
        at = np.array([epsilon])
        return tiny(float(max(profile.forward(at)[0], profile.backward(at)[0])))

    def epsilon_alone(self, delta: float) -> float:
        if not self.distributed or delta <= 0:
            return math.inf
        if self.delta_alone(0.0) <= delta:
            return 0.0
        low, high = 0.0, 1.0
        while self.delta_alone(high) > delta:
            low, high = high, 2 * high
        while high - low > 1e-10 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta_alone(middle) <= delta else (middle, high)
        return high

    def beside(self, mu: float) -> Loss | None:
        return _Rounded(sketch=self, mu=mu) if self.distributed and mu <= _TINY else None

    def epsilon(self, delta: float) -> float:
        """Smallest epsilon at this delta, in (0, 1), rounded up."""
        number("delta", delta, above=0, most=1)
        return min(self.epsilon_alone(delta), renyi.renyi_epsilon(self.curve(), delta))

    def delta(self, epsilon: float) -> float:
        """Smallest delta at this epsilon, rounded up."""
        number("epsilon", epsilon, least=0)
        return min(self.delta_alone(epsilon), renyi.renyi_delta(self.curve(), epsilon))

    def tcdp(self, share: float = 0.5) -> tuple[float, float]:
        """``(rho, omega)`` such that the Rényi divergence is at most ``rho alpha`` for all orders up to ``omega``.

        ``(rank x² / (4 (1 - τ)), 1 + τ/x)`` with x = :attr:`matrix_change`, where ``(1 + x) (1 - τ) <= 1``.

        Parameters
        ----------
        share : float, default=0.5
            τ, between 0 and 1: more of it allows higher orders, at a larger rho.

        Raises
        ------
        InvalidParameter
            If ``share`` is too small for how much changes.
        """
        x, share = self.matrix_change, number("share", share, above=0, most=1 - 1e-9)
        if not (1 + x) * (1 - share) <= 1:
            raise InvalidParameter(f"share must be at least {x / (1 + x):.6g} where this much changes.")
        return self.count * self.rank * x**2 / (4 * (1 - share)) * (1 + 1e-12), 1 + share / x if x else math.inf

    def words(self) -> str:
        rows = f"{self.times}a Gaussian sketch of {self.rank} rows, with noise {figure(self.noise_scale)}"
        told = [] if not self.floor else [f"of what has no eigenvalue below {figure(self.floor)}"]
        if self.shift:
            told.append(f"of rows that change by at most {figure(self.shift, upward=True)} together (L2)")
        if self.rows:
            told.append(f"of which {self.rows} can stand on one side only, weight {figure(self.change, upward=True)}")
        return ", ".join([rows, *told])


@dataclass(frozen=True, kw_only=True)
class _Rounded(Loss):
    """A sketch and a tiny Gaussian loss, of which at most μ (μ/2 + 12) is lost, but with probability Φ(-12)."""

    known_alone = True
    sketch: SketchLoss
    mu: float

    @property
    def _lost(self) -> float:
        return self.mu * (self.mu / 2 + _NORMAL_REACH)

    def curve(self) -> renyi.Curve:
        return renyi.composed(self.sketch.curve(), Gaussian(mu=self.mu).curve())

    def delta_alone(self, epsilon: float) -> float:
        return min(1.0, self.sketch.delta_alone(epsilon - self._lost) + _BEYOND) if epsilon >= self._lost else 1.0

    def epsilon_alone(self, delta: float) -> float:
        return self.sketch.epsilon_alone(delta - _BEYOND) + self._lost


def matrix_change(shift: float, floor: float, noise_scale: float) -> float:
    """Frobenius norm x of ``Σ'^(-1/2) (Σ - Σ') Σ'^(-1/2)`` at most, ``Σ = XᵀX + sigma² I`` (Theorem 1).

    Rows change by at most ``shift`` (Frobenius), the eigenvalues of ``XᵀX`` and ``X'ᵀX'`` are at least ``floor``. With
    ``A = floor + sigma²``: ``κ shift + shift²/A``, ``κ = 2 √floor / A`` where the floor is at least sigma², else
    ``√(2/A)``.
    """
    least = floor + noise_scale**2
    steep = 2 * math.sqrt(floor) / least if floor >= noise_scale**2 else math.sqrt(2 / least)
    return steep * shift + shift**2 / least


def matrix_curve(change: float, rank: int) -> Curve:
    """Rényi curve of a sketch whose covariances differ by at most ``change``, as :func:`matrix_change` has it.

    ``rank/2 (-log(1 + x) - log(1 - (alpha - 1) x) / (alpha - 1))`` for orders from 2 to ``1 + 1/x``; attained. Below 2
    the least of that at 2 and ``rank alpha x²/4 max(1 / (1 - (alpha - 1) x), 1 + x)``.
    """

    def curve(alpha: float) -> float:
        if change == 0:
            return 0.0
        found = _direction(max(alpha, 2.0), change)
        if alpha < 2 and (alpha - 1) * change < 1:
            found = min(found, alpha * change**2 / 4 * max(1 / (1 - (alpha - 1) * change), 1 + change))
        return rank * found * (1 + 1e-12)

    return curve


def rows_curve(ratio: float, sides: int, size: int) -> Curve:
    """Rényi curve of the pair of :func:`rows_profile`, the worse way round; exact."""

    def curve(alpha: float) -> float:
        up = _direction(alpha, ratio)
        if math.isinf(up):
            return math.inf
        down = _direction(alpha, -ratio / (1 + ratio))
        return size * (up + down if sides == 2 else max(up, down)) * (1 + 1e-12)

    return curve


def _direction(alpha: float, y: float) -> float:
    """Rényi divergence of N(0, 1 + y) from N(0, 1)."""
    u = alpha - 1
    if math.isinf(alpha) or u * y >= 1:
        return math.inf
    if abs(y) * max(alpha, 1.0) < 1e-4:  # the terms of first order cancel: the integral of the derivative, rounded up
        return alpha * y**2 / 4 * (1 + 2 * max(alpha, 1.0) * abs(y))
    return (-math.log1p(y) - math.log1p(-u * y) / u) / 2 * (1 + 1e-10)


def rows_profile(ratio: float, sides: int, size: int) -> Profile:
    """Profile of ``size`` numbers N(0, 1 + ratio) against N(0, 1), and as many the other way round if ``sides`` is 2.

    It dominates a sketch of which rows appear on one side (and on both, if ``sides`` is 2; Theorem 2), and is attained
    by one row, or by two that are orthogonal.
    """
    if sides == 2:
        return Profile.symmetric(lambda epsilon: _both(epsilon, ratio, size))
    return Profile(lambda epsilon: _more(epsilon, ratio, size), lambda epsilon: _less(epsilon, ratio, size))


def _more(epsilon: Floats, ratio: float, size: int) -> Floats:
    """N(0, 1 + ratio) against N(0, 1): what is longer tells."""
    epsilon = np.asarray(epsilon, float)
    cut = (epsilon + size / 2 * math.log1p(ratio)) / ratio
    upper = special.gammaincc(size / 2, cut)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        lower = np.exp(epsilon + np.log(special.gammaincc(size / 2, cut * (1 + ratio))))
    return _rounded(upper, lower)


def _less(epsilon: Floats, ratio: float, size: int) -> Floats:
    """N(0, 1) against N(0, 1 + ratio): what is shorter tells."""
    epsilon = np.asarray(epsilon, float)
    cut = np.maximum(size / 2 * math.log1p(ratio) - epsilon, 0.0) * (1 + ratio) / ratio
    upper = special.gammainc(size / 2, cut)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        lower = np.exp(epsilon + np.log(special.gammainc(size / 2, cut / (1 + ratio))))
    return _rounded(upper, lower)


def _both(epsilon: Floats, ratio: float, size: int) -> Floats:
    """Both together: the loss is ``(a X - b Y) / 2``, X and Y of law χ², ``a = ratio`` and ``b = a / (1 + a)``.

    Given Y the profile is one of incomplete gamma functions, and smooth in √Y, of which the mean is taken.
    """
    squares, weights = _chi(size)
    epsilon = np.asarray(epsilon, float)[..., None]
    lost = ratio / (1 + ratio) * squares / 2
    cut = (epsilon + lost) / ratio
    upper = special.gammaincc(size / 2, cut)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        logs = epsilon + lost - size / 2 * math.log1p(ratio) + np.log(special.gammaincc(size / 2, cut * (1 + ratio)))
        lower = np.exp(logs)
    return np.asarray(_rounded(upper, lower) @ weights)


def _rounded(upper: Floats, lower: Floats) -> Floats:
    """The difference of two terms, rounded up."""
    difference = upper - np.where(np.isnan(lower), 0.0, lower)
    return np.asarray(np.clip((difference + _CANCELLED * upper) * _UP, 0.0, 1.0))


@lru_cache(maxsize=8)
def _chi(size: int) -> tuple[Floats, Floats]:
    """Nodes, squared, and weights of a mean over a chi variable with so many degrees of freedom."""
    low, high = max(math.sqrt(size) - _REACH, 0.0), math.sqrt(size) + _REACH
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    z = low + (high - low) * (nodes + 1) / 2
    logs = (size - 1) * np.log(z) - z**2 / 2 - (size / 2 - 1) * math.log(2) - special.gammaln(size / 2)
    weights = weights * np.exp(logs)
    return z**2, weights / weights.sum()
