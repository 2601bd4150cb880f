"""Losses of noise on numbers: Gaussian, and Laplace's kinds."""

from __future__ import annotations

from dataclasses import dataclass

from ppdp.core.figures import figure
from ppdp.privacy import pld, renyi
from ppdp.privacy.losses.base import Loss, Part

__all__ = ["DiscreteLaplace", "Gaussian", "Laplace", "ScalarLaplace"]


@dataclass(frozen=True, kw_only=True)
class Gaussian(Loss):
    """Everything Gaussian together, as one number; never recorded as a part."""

    mu: float

    def curve(self) -> renyi.Curve:
        """Exact."""
        return renyi.gaussian_curve(self.mu)

    def distribution(self, interval: float) -> pld.LossDistribution:
        """To be composed with others."""
        return pld.gaussian_distribution(self.mu, interval)


@dataclass(frozen=True, kw_only=True)
class Laplace(Part):
    """Laplace noise on a vector.

    That one coordinate is the worst is not proved for profiles, so of its distribution only purity is used.

    Attributes
    ----------
    shift : float
        L1 distance by which it can change.
    scale : float
        Of the noise.
    """

    kind = "laplace"
    shift: float
    scale: float

    @property
    def pure(self) -> float:
        """Exact."""
        return self.count * self.shift / self.scale

    def curve(self) -> renyi.Curve:
        """Exact."""
        return renyi.repeated(renyi.laplace_curve(self.shift / self.scale), self.count)

    def words(self) -> str:
        """Scale and shift."""
        return f"{self.times}Laplace noise of scale {figure(self.scale)} on what changes by at most {self._most} (L1)"

    @property
    def _most(self) -> str:
        return figure(self.shift, upward=True)


@dataclass(frozen=True, kw_only=True)
class ScalarLaplace(Laplace):
    """Laplace noise on one number."""

    kind = "scalar-laplace"

    def distribution(self, interval: float) -> pld.LossDistribution:
        """Exact."""
        return pld.laplace_distribution(self.shift / self.scale, interval) * self.count


@dataclass(frozen=True, kw_only=True)
class DiscreteLaplace(Laplace):
    """Laplace noise in whole numbers on an integer."""

    kind = "discrete-laplace"

    def curve(self) -> renyi.Curve:
        """Losses within [-ε, ε] have a range of 2ε."""
        return renyi.repeated(renyi.bounded_range_curve(2 * self.pure / self.count), self.count)

    def distribution(self, interval: float) -> pld.LossDistribution | None:
        """Exact for whole shifts."""
        if not float(self.shift).is_integer():
            return super().distribution(interval)
        return pld.discrete_laplace_distribution(int(self.shift), 1 / self.scale, interval) * self.count

    def words(self) -> str:
        """Scale and shift."""
        return (
            f"{self.times}Laplace noise in whole numbers, scale {figure(self.scale)}, on counts that change by at most"
            f" {self._most} (L1)"
        )
