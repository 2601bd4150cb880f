"""What a release costs at a given distance of the neighbouring datasets, and everything together.

Losses compose adaptively in every way that holds, of which the least is taken: exactly as privacy-loss distributions,
as Rényi curves, or purely. Theory: ``docs/theory/accounting.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

from ppdp.core.rounding import tiny
from ppdp.exceptions import InvalidParameter
from ppdp.privacy.gaussian import gaussian_delta, gaussian_epsilon
from ppdp.privacy.losses import Gaussian, Loss, Part
from ppdp.privacy.pld import INTERVAL, LEAST_DELTA, LossDistribution
from ppdp.privacy.renyi import Curve, composed, renyi_delta, renyi_epsilon

_RESOLUTION, _FINEST = 16, 2.0**-40
_ORDERS = tuple(2.0 ** (k / 2) for k in range(1, 21))  # of sampled steps, where no distribution is fine enough
_SPLITS = (0.02, 0.2, 0.5, 0.8, 0.98)  # of delta, between what has a distribution and what has only a curve


@dataclass(frozen=True, slots=True)
class PrivacyLoss:
    """Privacy loss of Gaussian releases, of other mechanisms, and of events that may fail outright.

    Without ``parts`` dominated by the pair "infinite loss with probability ``failure``, else N(0, 1) against
    N(mu, 1)". Losses add with ``+`` (adaptive composition): ``mu`` in squares, failures by
    ``1 - (1 - f)(1 - f')``, parts one by one. Source: ``docs/theory/accounting.md``.

    Attributes
    ----------
    mu : float
        Gaussian differential privacy parameter.
    failure : float
        Probability with which nothing is promised (a gate whose class depends on an earlier output).
    gate : float
        Delta of a gate in front of everything: on some pairs all is refused but with this probability, on all others
        the rest holds, so alone it is the larger delta that counts. Composed with anything else it is a failure.
    parts : tuple of Part
        What is not Gaussian: Laplace and exponential mechanisms, sampled and hidden training.

    Examples
    --------
    >>> loss = PrivacyLoss(mu=0.3) + PrivacyLoss(mu=0.4)
    >>> round(loss.mu, 12), round(loss.epsilon(1e-6), 3)
    (0.5, 2.254)
    """

    mu: float = 0.0
    failure: float = 0.0
    gate: float = 0.0
    parts: tuple[Part, ...] = ()

    def __post_init__(self) -> None:
        if not self.mu >= 0 or not 0 <= self.failure <= 1 or not 0 <= self.gate <= 1:
            raise InvalidParameter("a PrivacyLoss needs mu >= 0 and probabilities in [0, 1].")

    def __add__(self, other: PrivacyLoss) -> PrivacyLoss:
        if not isinstance(other, PrivacyLoss):
            return NotImplemented
        nothing = PrivacyLoss()
        if nothing in (self, other):
            return other if self == nothing else self
        return PrivacyLoss(math.hypot(self.mu, other.mu), _lost(self, other), parts=self.parts + other.parts)

    def __mul__(self, count: int) -> PrivacyLoss:
        """``count``-fold composition."""
        if count == 1:
            return self
        lost = _lost(self)
        failure = -math.expm1(count * math.log1p(-lost)) if lost < 1 else 1.0
        parts = tuple(replace(part, count=count * part.count) for part in self.parts)
        return PrivacyLoss(math.sqrt(count) * self.mu, failure, parts=parts)

    def delta(self, epsilon: float) -> float:
        """Smallest delta at this epsilon, rounded up."""
        held = _parts_delta(self.mu, self.parts, epsilon) if self.parts else gaussian_delta(self.mu, epsilon)
        return max(self.gate, self.failure + (1 - self.failure) * held)

    def epsilon(self, delta: float, interval: float | None = None) -> float:
        """Smallest epsilon at this delta, rounded up; infinite if ``delta`` does not cover gate and failures.

        Parameters
        ----------
        delta : float
            In [0, 1).
        interval : float, optional
            Grid of what is composed as distributions; coarser is faster and, but for rounding, larger.
        """
        if self.failure >= 1 or delta < self.failure or delta < self.gate * (1 - 1e-12):
            return math.inf
        rest = (delta - self.failure) / (1 - self.failure)
        if self.parts:
            return parts_epsilon(self.mu, self.parts, rest * (1 - 1e-12), interval)
        return 0.0 if self.mu == 0 else gaussian_epsilon(self.mu, rest * (1 - 1e-12))

    @property
    def rho(self) -> float:
        """Of zero-concentrated differential privacy, ``mu²/2`` of exact noise; infinite unless all is Gaussian."""
        return math.inf if _lost(self) or self.parts else math.nextafter(self.mu**2 / 2, math.inf)

    def renyi(self, alpha: float) -> float:
        """Rényi divergence of this order; infinite if anything can fail."""
        if not alpha > 1:
            raise InvalidParameter(f"a Rényi order must be above 1, got {alpha!r}.")
        if self.failure or self.gate:
            return math.inf
        return _curve(_losses(self.mu, self.parts))(alpha) if self.parts else alpha * self.mu**2 / 2


def _lost(*losses: PrivacyLoss) -> float:
    """Probability that anything fails."""
    return any_of(*(p for loss in losses for p in (loss.failure, loss.gate)))


def any_of(*probabilities: float) -> float:
    """Probability of any of independent events, without cancellation for small ones."""
    lost = 0.0
    for probability in probabilities:
        lost += (1 - lost) * probability
    return lost


@lru_cache(maxsize=4096)  # small; a plan that is made again asks the same
def parts_epsilon(mu: float, parts: tuple[Part, ...], delta: float, interval: float | None = None) -> float:
    """Smallest epsilon at this delta of a Gaussian loss and parts, composed adaptively with fixed parameters.

    The grid of the distributions begins with this interval, and is refined where losses are small.
    """
    found = [sum(part.pure for part in parts) + (gaussian_epsilon(mu, delta) if mu else 0.0)]
    if delta > 0:
        losses = _losses(mu, parts)
        found += [renyi_epsilon(_curve(losses), delta)]
        found += [losses[0].epsilon_alone(delta)] if len(losses) == 1 else []
        found += [] if _known_alone(losses) else [_distributed(losses, delta, interval)]
        found += [_mixed(mu, parts, delta * share, delta * (1 - share), interval) for share in _SPLITS]
    if math.isinf(least := min(found)) and 0 < delta < LEAST_DELTA:
        return renyi_epsilon(lambda order: parts_at_order(mu, parts, order), delta, _ORDERS)
    return least


def _parts_delta(mu: float, parts: tuple[Part, ...], epsilon: float) -> float:
    """Smallest delta at this epsilon of a Gaussian loss and parts."""
    pure = sum(part.pure for part in parts)
    found = [1.0]
    if pure <= epsilon:
        found.append(gaussian_delta(mu, epsilon - pure) if mu else 0.0)
    if epsilon >= 0:
        losses = _losses(mu, parts)
        found.append(renyi_delta(_curve(losses), epsilon))
        found += [losses[0].delta_alone(epsilon)] if len(losses) == 1 else []
        run = None if _known_alone(losses) else _distribution(losses, _fine(losses, INTERVAL, epsilon))
        if run is not None:
            found.append(run.delta(epsilon))
        if math.isinf(_curve(losses)(2.0)) and not LEAST_DELTA <= min(found) < 1:
            found.append(renyi_delta(lambda order: parts_at_order(mu, parts, order), epsilon, _ORDERS))
    return 0.0 if pure <= epsilon and not mu else tiny(min(found))


def parts_at_order(mu: float, parts: tuple[Part, ...], order: float) -> float:
    """Rényi divergence at an order that was fixed before anything was seen: sampled steps have one, though no curve."""
    return math.fsum([order * mu**2 / 2, *(_at_order(part, order) for part in parts)]) * (1 + 1e-12)


@lru_cache(maxsize=1024)
def _at_order(part: Part, order: float) -> float:
    return part.renyi(order)


def _losses(mu: float, parts: tuple[Part, ...]) -> tuple[Loss, ...]:
    if not mu:
        return parts
    together = parts[0].beside(mu) if len(parts) == 1 else None
    return (*parts, Gaussian(mu=mu)) if together is None else (together,)


def _known_alone(losses: tuple[Loss, ...]) -> bool:
    return len(losses) == 1 and losses[0].known_alone


@lru_cache(maxsize=8)
def _curve(losses: tuple[Loss, ...]) -> Curve:
    """Rényi curve of all together, each order worked out once; infinite where one of them has none."""
    return lru_cache(maxsize=1024)(composed(*(loss.curve() or (lambda _: math.inf) for loss in losses)))


@lru_cache(maxsize=2)  # large; one loss is asked at many deltas
def _distribution(losses: tuple[Loss, ...], interval: float) -> LossDistribution | None:
    total = None
    for loss in losses:
        run = loss.distribution(interval)
        if run is None:
            return None
        total = run if total is None else total + run
    return total


def _distributed(losses: tuple[Loss, ...], delta: float, interval: float | None) -> float:
    """Epsilon of the composed distributions: the least on grids that become finer until they are fine enough."""
    grid, needed, least = math.inf, interval or INTERVAL, math.inf
    while delta >= LEAST_DELTA and needed < grid:
        grid = needed
        run = _distribution(losses, grid)
        if run is None or delta <= 10 * run.slack:
            return math.inf
        least = min(least, run.epsilon(delta))
        needed = _fine(losses, grid, least)
    return least


def _fine(losses: tuple[Loss, ...], interval: float, epsilon: float) -> float:
    """The interval, or a finer one, a power of two, on which losses that come to epsilon are resolved.

    A grid adds up to a sixth of its square to the variance of each run, of which all have ``(epsilon / 5)²`` together.
    """
    needed = _RESOLUTION * math.sqrt(sum(loss.count for loss in losses))
    if not 0 < epsilon < needed * interval:
        return interval
    return max(_FINEST, 2.0 ** math.floor(math.log2(epsilon / needed)))


def _mixed(mu: float, parts: tuple[Part, ...], delta: float, rest: float, interval: float | None) -> float:
    """What has a distribution (and the Gaussian loss) at ``delta``, what has only a curve at ``rest``."""
    curved = tuple(part for part in parts if not part.distributed)
    sampled = tuple(part for part in parts if part.distributed)
    if not curved or not sampled:
        return math.inf
    late = renyi_epsilon(_curve(curved), rest)
    if math.isinf(late):
        return math.inf
    return _distributed(_losses(mu, sampled), delta, interval) + late
