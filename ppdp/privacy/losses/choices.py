"""Losses of choices, and of whatever is only known to be pure."""

from __future__ import annotations

from dataclasses import dataclass

from ppdp.core.figures import figure
from ppdp.privacy import choices, pld, renyi
from ppdp.privacy.losses.base import Part

__all__ = ["BoundedRange", "Pure"]


@dataclass(frozen=True, kw_only=True)
class BoundedRange(Part):
    """An exponential mechanism: its losses lie in an interval of length ``range``."""

    kind = "bounded-range"
    range: float

    @property
    def pure(self) -> float:
        """Range by range."""
        return self.count * self.range

    def curve(self) -> renyi.Curve:
        """Of the worst such mechanism."""
        return renyi.repeated(renyi.bounded_range_curve(self.range), self.count)

    def distribution(self, interval: float) -> pld.LossDistribution:
        """Of adaptive choices."""
        return choices.bounded_range_distribution(self.range, self.count, interval)

    def words(self) -> str:
        """The range."""
        several = self.count != 1
        return (
            f"{self.count if several else 'one'} random choice{'s' if several else ''} whose privacy loss has a range"
            f" of at most {figure(self.range, upward=True)}{' each' if several else ''}"
        )


@dataclass(frozen=True, kw_only=True)
class Pure(Part):
    """A mechanism of which only its epsilon is known."""

    kind = "pure"
    epsilon: float

    @property
    def pure(self) -> float:
        """Epsilons add."""
        return self.count * self.epsilon

    def curve(self) -> renyi.Curve:
        """Losses within [-ε, ε] have a range of 2ε."""
        return renyi.repeated(renyi.bounded_range_curve(2 * self.pure / self.count), self.count)

    def words(self) -> str:
        """The epsilon."""
        return f"{self.times}a mechanism that is {figure(self.epsilon, upward=True)}-differentially private by itself"
