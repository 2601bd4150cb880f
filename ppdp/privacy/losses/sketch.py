"""Loss of a Gaussian sketch: ``docs/theory/gaussian-sketch.md``."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

import ppdp.privacy.pld as pld
import ppdp.privacy.renyi as renyi
import ppdp.privacy.sketch as sketch
from ppdp.core.checks import number
from ppdp.core.figures import figure
from ppdp.core.rounding import tiny
from ppdp.exceptions import InvalidParameter
from ppdp.privacy.losses.kinds import Gaussian
from ppdp.privacy.losses.part import Loss, Part

_TINY, _REACH, _BEYOND = 2.0**-14, 12.0, 2e-33  # a Gaussian μ, a normal quantile, and the mass beyond


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
            raise InvalidParameter(
                "a sketch with neither noise nor a floor under the eigenvalues protects nothing.",
                fix="noise_scale above 0, or floor above 0.",
            )
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
        own = sketch.matrix_change(self.shift, self.floor, self.noise_scale)
        return (own + math.sqrt(self.sides) * self._ratio) * (1 + 1e-12)

    def curve(self) -> renyi.Curve:
        whole = sketch.matrix_curve(self.matrix_change, int(self.rank) * int(self.count))
        if self.shift or not self.rows:
            return whole
        own = sketch.rows_curve(self._ratio, int(self.sides), self._size)
        return lambda alpha: min(whole(alpha), own(alpha))

    @property
    def distributed(self) -> bool:
        return bool(self.rows) and not self.shift

    def distribution(self, interval: float) -> pld.LossDistribution | None:
        if not self.distributed:
            return None
        return pld.loss_distribution(sketch.rows_profile(self._ratio, int(self.sides), self._size), interval)

    def delta_alone(self, epsilon: float) -> float:
        if not self.distributed:
            return 1.0
        profile = sketch.rows_profile(self._ratio, int(self.sides), self._size)
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
        return self.mu * (self.mu / 2 + _REACH)

    def curve(self) -> renyi.Curve:
        return renyi.composed(self.sketch.curve(), Gaussian(mu=self.mu).curve())

    def delta_alone(self, epsilon: float) -> float:
        return min(1.0, self.sketch.delta_alone(epsilon - self._lost) + _BEYOND) if epsilon >= self._lost else 1.0

    def epsilon_alone(self, delta: float) -> float:
        return self.sketch.epsilon_alone(delta - _BEYOND) + self._lost
