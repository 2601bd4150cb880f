"""Losses of training on random batches, or with hidden iterates."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from ppdp.core.distance import Distance
from ppdp.core.figures import figure
from ppdp.privacy import fixed_order, pld, renyi
from ppdp.privacy.losses.base import Part

__all__ = ["FixedSizeSamples", "HiddenIterate", "PoissonSamples"]


@dataclass(frozen=True, kw_only=True)
class _Samples(Part):
    """Noisy sums over random samples of the rows, of rows at a distance that counts slots."""

    replaced: float
    toggled: float
    moved: float
    radius: float
    total: float
    bound: float
    lipschitz: float
    noise_scale: float

    @property
    def _distance(self) -> Distance:
        return Distance(self.replaced, self.toggled, self.moved, self.radius, self.total)

    @property
    def _step(self) -> dict[str, Any]:
        """One sum, as the formulas want it."""
        return {"bound": self.bound, "lipschitz": self.lipschitz, "noise_scale": self.noise_scale}

    def words(self) -> str:
        """The sample and the noise."""
        return (
            f"{'one noisy sum' if self.count == 1 else f'{self.count} noisy sums, each'} over {self._sample()}: a row"
            f" adds at most {figure(self.bound, upward=True)} to a sum, and noise of standard deviation"
            f" {figure(self.noise_scale)} was added"
        )

    @abstractmethod
    def _sample(self) -> str:
        """Which rows, in words."""


@dataclass(frozen=True, kw_only=True)
class PoissonSamples(_Samples):
    """Noisy sums over samples into which every row comes with probability ``rate``."""

    kind = "poisson"
    rate: float

    def distribution(self, interval: float) -> pld.LossDistribution:
        """On one and the same pair of datasets in all steps."""
        return pld.poisson_distribution(
            self._distance, rate=self.rate, steps=self.count, interval=interval, **self._step
        )

    def renyi(self, order: float) -> float:
        """From the pair that dominates a step."""
        return self.count * fixed_order.poisson_renyi(self._distance, order, rate=self.rate, **self._step)

    def _sample(self) -> str:
        return f"a random sample of the rows, drawn for it alone (every row with probability {figure(self.rate)})"


@dataclass(frozen=True, kw_only=True)
class FixedSizeSamples(_Samples):
    """Noisy sums over samples of exactly ``batch_size`` of the ``n_rows`` rows."""

    kind = "fixed-size"
    n_rows: int
    batch_size: int

    @property
    def _step(self) -> dict[str, Any]:
        return {**super()._step, "n_rows": int(self.n_rows), "batch_size": int(self.batch_size)}

    def distribution(self, interval: float) -> pld.LossDistribution:
        """On one and the same pair of datasets in all steps."""
        return pld.fixed_size_distribution(self._distance, steps=self.count, interval=interval, **self._step)

    def renyi(self, order: float) -> float:
        """From the profile of a step."""
        return self.count * fixed_order.fixed_size_renyi(self._distance, order, **self._step)

    def _sample(self) -> str:
        return f"{self.batch_size} of {self.n_rows} rows, drawn at random for it alone"


@dataclass(frozen=True, kw_only=True)
class HiddenIterate(Part):
    """One pass over the rows of which one iterate is released, at a secret time."""

    kind = "hidden"
    mass: float
    total: float
    moved: float
    n_rows: int
    bound: float
    lipschitz: float
    noise_scale: float

    def curve(self) -> renyi.Curve:
        """All that is known of it."""
        radius = self.total if self.moved else 0.0
        far = Distance(toggled=self.mass, moved=self.moved, radius=radius, total=self.total, mass=self.mass)
        one = renyi.hidden_iterate_curve(
            far, n_rows=int(self.n_rows), bound=self.bound, lipschitz=self.lipschitz, noise_scale=self.noise_scale
        )
        return renyi.repeated(one, self.count)

    def words(self) -> str:
        """Steps and noise."""
        return (
            f"{self.times}{self.n_rows} steps of training, of which one iterate is released, at a secret time;"
            f" noise of standard deviation {figure(self.noise_scale)} on every step"
        )
