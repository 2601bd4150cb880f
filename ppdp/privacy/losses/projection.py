"""The loss of releases through fresh projections: ``docs/theory/fresh-projections.md``."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy import optimize

import ppdp.privacy.pld as pld
import ppdp.privacy.projected_gaussian as projected
import ppdp.privacy.renyi as renyi
from ppdp.core.checks import integer, number
from ppdp.core.figures import figure
from ppdp.core.rounding import tiny
from ppdp.privacy.gaussian import gaussian_delta, gaussian_epsilon
from ppdp.privacy.losses.part import Part
from ppdp.privacy.subsampling import Profile

_SMALL, _LARGE = 1e-100, 1e100  # of mu: its powers stay in float64
_GRAIN = 8  # of distributions, which ask for thousands of deltas


@dataclass(frozen=True, init=False)
class NoisyProjectionLoss(Part):
    """Loss of ``steps`` noisy matrices, each of which is seen only through a random projection drawn for it alone.

    Of ``V + E``, E Gaussian with standard deviation σ in every entry, ``Q' (V + E)`` and Q are released, Q uniform
    among the bases of ``rank`` dimensions of the ``dimension`` ones that the columns of V live in; what V is may depend
    on all earlier releases.

    Parameters
    ----------
    dimension : int
        Rows of V: the dimension that is projected.
    rank : int
        Columns of Q. Not less than ``dimension``: nothing is projected away, and the loss is that of ``V + E``.
    mu : float
        Most by which V changes between neighbouring datasets, in the Frobenius norm, over σ.
    steps : int, default=1
        Releases, each with a projection of its own.
    rank_one : bool, default=False
        Whether V always changes by a matrix of rank one, as a vector does: the profile is then exact.
    sampling_rate : float, default=1.0
        Probability with which a row is in the sum V, by a secret coin of its own for every release; below 1 the
        neighbours are datasets of which one has one row more.
    gaussian : float, default=0.0
        Parameter mu of Gaussian releases that are counted here, too.

    Notes
    -----
    **Guarantee** (``docs/theory/fresh-projections.md``): with B_t independent, Beta(rank / 2, (dimension - rank) / 2),
    ``delta(ε) = E δ_G(ε; mu √(B_1 + ... + B_T))`` under ``rank_one``, that and a small correction for any rank, and
    ``T/(α-1) log 1F1(rank/2; dimension/2; α(α-1) mu²/2)`` as Rényi divergence. It rests on Q being drawn after the
    data were fixed, from entropy that nobody else has, and for one release only; rotations that float64 computes are
    taken as exact.

    Examples
    --------
    >>> loss = NoisyProjectionLoss(512, 16, mu=0.15, steps=100)
    >>> round(loss.epsilon(1e-5), 2)
    1.0
    """

    kind = "noisy-projection"
    idealised = (
        "that the projections are uniform among all: of the rotations that float64 computes that is not proved; noise"
        " and what it hides are exact, so without it there is still the loss of the whole vectors"
    )
    known_alone = True

    dimension: int
    rank: int
    mu: float
    rank_one: int
    sampling_rate: float
    gaussian: float

    def __init__(
        self,
        dimension: int,
        rank: int,
        mu: float,
        steps: int = 1,
        *,
        rank_one: bool | int = False,
        sampling_rate: float = 1.0,
        gaussian: float = 0.0,
        count: int | None = None,
    ) -> None:
        facts = {
            "count": integer("steps", steps if count is None else count),
            "dimension": integer("dimension", dimension),
            "rank": integer("rank", rank),
            "mu": number("mu", mu, least=0),
            "rank_one": int(bool(rank_one)),
            "sampling_rate": number("sampling_rate", sampling_rate, above=0, most=1),
            "gaussian": number("gaussian", gaussian, least=0),
        }
        for name, value in facts.items():
            object.__setattr__(self, name, value)
        self.__post_init__()

    @classmethod
    def of_layers(cls, layers: Iterable[tuple[int, int]], mu: float, steps: int = 1, **more: Any) -> Self:
        """Loss of several matrices in every release, of which all together change by at most ``mu``.

        Parameters
        ----------
        layers : iterable of (dimension, rank)
            Each has a projection of its own, independent of the others.
        mu, steps, **more
            As for one.
        """
        shapes = [(integer("dimension", d), integer("rank", r)) for d, r in layers]
        rank = min(rank for _, rank in shapes)
        dimension = max(rank, min(rank * d // r for d, r in shapes))
        return cls(dimension, rank, mu, steps, **more)

    @property
    def steps(self) -> int:
        """Releases."""
        return self.count

    def beside(self, mu: float) -> Self:
        return replace(self, gaussian=math.hypot(self.gaussian, mu))

    def curve(self) -> renyi.Curve:
        together = renyi.repeated(self._sampled if self.sampling_rate < 1 else self._one, self.count)
        return renyi.composed(together, renyi.gaussian_curve(self.gaussian)) if self.gaussian else together

    def _one(self, alpha: float) -> float:
        """Rényi divergence of one release that all rows are in."""
        if self.mu == 0:
            return 0.0
        moment = projected.log_share_moment(self.dimension, self.rank, alpha * (alpha - 1) * self.mu * self.mu / 2)
        return math.inf if math.isinf(alpha) else moment / (alpha - 1) * (1 + 1e-12)

    def _sampled(self, alpha: float) -> float:
        """That of one that is sampled: between whole orders ``(alpha - 1) D`` is at most its chord."""
        if alpha > projected.MOST_SAMPLED or self.mu == 0:
            return self._one(alpha)
        low, high = math.floor(alpha), math.ceil(alpha)
        below, above = (self._log_moment(order) if order > 1 else 0.0 for order in (low, high))
        if math.isinf(above):
            return self._one(alpha)
        return min((below + (alpha - low) * (above - below)) / (alpha - 1) * (1 + 1e-12), self._one(alpha))

    def _log_moment(self, order: int) -> float:
        return projected.sampled_log_moment(self.dimension, self.rank, self.mu, self.sampling_rate, order)

    def delta(self, epsilon: float) -> float:
        """Smallest delta at this epsilon, rounded up."""
        number("epsilon", epsilon, least=0)
        return min(renyi.renyi_delta(self.curve(), epsilon), self.delta_alone(epsilon))

    def epsilon(self, delta: float) -> float:
        """Smallest epsilon at this delta, rounded up."""
        return min(renyi.renyi_epsilon(self.curve(), delta), self.epsilon_alone(delta))

    @property
    def _plain(self) -> float:
        """Parameter mu without any projection or sample."""
        return math.hypot(math.sqrt(self.count) * self.mu, self.gaussian)

    def delta_alone(self, epsilon: float) -> float:
        return self._alone(epsilon)

    def _alone(self, epsilon: float, grain: int = 1) -> float:
        plain = gaussian_delta(self._plain, epsilon)
        if self.rank >= self.dimension or self.sampling_rate < 1 or not _SMALL <= self.mu <= _LARGE or plain < 1e-300:
            return plain
        run = projected.ProjectedReleases(self.dimension, self.rank, self.mu, self.count, self.gaussian, grain)
        return min(plain, tiny(run.rank_one(epsilon) if self.rank_one else run.any_rank(epsilon)))

    def epsilon_alone(self, delta: float) -> float:
        if not self._plain:
            return 0.0
        high = gaussian_epsilon(self._plain, delta)
        if self.rank >= self.dimension or self.sampling_rate < 1 or math.isinf(high):
            return high
        if self.delta_alone(0.0) <= delta:
            return 0.0
        if not self.delta_alone(high) < delta:
            return high
        found = optimize.brentq(lambda at: math.log(self.delta_alone(at) / delta), 0.0, high, rtol=1e-9)
        rounded = found * (1 + 1e-8) + 1e-12
        return float(rounded if self.delta_alone(rounded) <= delta else high)

    @property
    def distributed(self) -> bool:
        return self.sampling_rate == 1

    def distribution(self, interval: float) -> pld.LossDistribution | None:
        """That of all releases together: its profile is nowhere below theirs."""
        if not self.distributed:
            return None
        profile = np.vectorize(lambda epsilon: self._alone(epsilon, _GRAIN), otypes=[float])
        return pld.loss_distribution(Profile.symmetric(profile), interval)

    def words(self) -> str:
        sums = "one noisy sum" if self.count == 1 else f"{self.count} noisy sums, each"
        coin = "" if self.sampling_rate == 1 else f" over rows drawn with probability {figure(self.sampling_rate)}"
        beside = f", and Gaussian releases of mu = {figure(self.gaussian, upward=True)}" if self.gaussian else ""
        return (
            f"{sums}{coin} seen only through {self.rank} of its {self.dimension} dimensions, drawn at random for it"
            f" alone: before, it changes by at most {figure(self.mu, upward=True)} standard deviations of its"
            f" noise{beside}"
        )
