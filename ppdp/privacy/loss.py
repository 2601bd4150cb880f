"""What a release costs at a given distance of the neighbouring datasets."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ppdp.exceptions import InvalidParameter
from ppdp.privacy.gaussian import gaussian_delta, gaussian_epsilon
from ppdp.privacy.losses import Part
from ppdp.privacy.losses.composition import parts_delta, parts_epsilon, parts_renyi

__all__ = ["PrivacyLoss"]


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
        held = parts_delta(self.mu, self.parts, epsilon) if self.parts else gaussian_delta(self.mu, epsilon)
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

    def renyi(self, alpha: float) -> float:
        """Rényi divergence of this order; infinite if anything can fail."""
        if not alpha > 1:
            raise InvalidParameter(f"a Rényi order must be above 1, got {alpha!r}.")
        if self.failure or self.gate:
            return math.inf
        return parts_renyi(self.mu, self.parts, alpha) if self.parts else alpha * self.mu**2 / 2


def _lost(*losses: PrivacyLoss) -> float:
    """Probability that anything fails, without cancellation for small probabilities."""
    lost = 0.0
    for probability in (p for loss in losses for p in (loss.failure, loss.gate)):
        lost += (1 - lost) * probability
    return lost
