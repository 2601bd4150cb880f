"""Losses of the mechanisms of every day: ``docs/theory/accounting.md``."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import ppdp.privacy.fixed_size as fixed_size
import ppdp.privacy.pld as pld
import ppdp.privacy.renyi as renyi
from ppdp.core.distance import Distance
from ppdp.core.figures import figure
from ppdp.privacy.losses.part import Loss, Part


@dataclass(frozen=True, kw_only=True)
class Gaussian(Loss):
    """Everything Gaussian together, as one number; never recorded as a part."""

    mu: float

    def curve(self) -> renyi.Curve:
        return renyi.gaussian_curve(self.mu)

    def distribution(self, interval: float) -> pld.LossDistribution:
        return pld.gaussian_distribution(self.mu, interval)


@dataclass(frozen=True, kw_only=True)
class BoundedRange(Part):
    """An exponential mechanism: its losses lie in an interval of length ``range``."""

    kind = "bounded-range"
    range: float

    @property
    def pure(self) -> float:
        return self.count * self.range

    def curve(self) -> renyi.Curve:
        return renyi.repeated(renyi.bounded_range_curve(self.range), self.count)

    def distribution(self, interval: float) -> pld.LossDistribution:
        return pld.bounded_range_distribution(self.range, self.count, interval)

    def words(self) -> str:
        choice, each = ("one random choice", "") if self.count == 1 else (f"{self.count} random choices", " each")
        return f"{choice} whose privacy loss has a range of at most {figure(self.range, upward=True)}{each}"


@dataclass(frozen=True, kw_only=True)
class Pure(Part):
    """A mechanism of which only its epsilon is known."""

    kind = "pure"
    epsilon: float

    @property
    def pure(self) -> float:
        return self.count * self.epsilon

    def curve(self) -> renyi.Curve:
        return self.pure_curve()

    def words(self) -> str:
        return f"{self.times}a mechanism that is {figure(self.epsilon, upward=True)}-differentially private by itself"


@dataclass(frozen=True, kw_only=True)
class ZeroConcentrated(Part):
    """A mechanism of which only its rho of zero-concentrated differential privacy is known.

    For what another library releases: ``ledger.reserve(mu=0, parts=[ZeroConcentrated(rho=0.1)])``. Gaussian noise has
    ``mu = sqrt(2 rho)``, which is less.
    """

    kind = "zcdp"
    rho: float

    def curve(self) -> renyi.Curve:
        return renyi.repeated(renyi.gaussian_curve(math.sqrt(2 * self.rho)), self.count)

    def words(self) -> str:
        rho = figure(self.rho, upward=True)
        return f"{self.times}a mechanism that is {rho}-zero-concentrated differentially private by itself"


@dataclass(frozen=True, kw_only=True)
class Laplace(Part):
    """Laplace noise on a vector.

    That one coordinate is the worst is not proved for profiles, so of its distribution only purity is used.
    """

    kind = "laplace"
    shift: float  # L1 distance by which it can change
    scale: float  # of the noise

    @property
    def pure(self) -> float:
        return self.count * self.shift / self.scale

    def curve(self) -> renyi.Curve:
        return renyi.repeated(renyi.laplace_curve(self.shift / self.scale), self.count)

    def words(self) -> str:
        most = figure(self.shift, upward=True)
        return f"{self.times}Laplace noise of scale {figure(self.scale)} on what changes by at most {most} (L1)"


@dataclass(frozen=True, kw_only=True)
class ScalarLaplace(Laplace):
    """Laplace noise on one number."""

    kind = "scalar-laplace"

    def distribution(self, interval: float) -> pld.LossDistribution:
        return pld.laplace_distribution(self.shift / self.scale, interval) * self.count


@dataclass(frozen=True, kw_only=True)
class DiscreteLaplace(Laplace):
    """Laplace noise in whole numbers on an integer."""

    kind = "discrete-laplace"

    def curve(self) -> renyi.Curve:
        return self.pure_curve()

    def distribution(self, interval: float) -> pld.LossDistribution | None:
        if not float(self.shift).is_integer():  # exact for whole shifts only
            return super().distribution(interval)
        return pld.discrete_laplace_distribution(int(self.shift), 1 / self.scale, interval) * self.count

    def words(self) -> str:
        return (
            f"{self.times}Laplace noise in whole numbers, scale {figure(self.scale)}, on counts that change by at most"
            f" {figure(self.shift, upward=True)} (L1)"
        )


@dataclass(frozen=True, kw_only=True)
class _Samples(Part):
    """Noisy sums over random samples of the rows, of rows at a distance that counts slots; of one pair of datasets."""

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

    @property
    def _step(self) -> dict[str, Any]:
        return {**super()._step, "rate": self.rate}

    def distribution(self, interval: float) -> pld.LossDistribution:
        return pld.poisson_distribution(self._distance, steps=self.count, interval=interval, **self._step)

    def renyi(self, order: float) -> float:
        return self.count * fixed_size.poisson_renyi(self._distance, order, **self._step)

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
        return pld.fixed_size_distribution(self._distance, steps=self.count, interval=interval, **self._step)

    def renyi(self, order: float) -> float:
        return self.count * fixed_size.fixed_size_renyi(self._distance, order, **self._step)

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
        radius = self.total if self.moved else 0.0
        far = Distance(toggled=self.mass, moved=self.moved, radius=radius, total=self.total, mass=self.mass)
        one = renyi.hidden_iterate_curve(
            far, n_rows=int(self.n_rows), bound=self.bound, lipschitz=self.lipschitz, noise_scale=self.noise_scale
        )
        return renyi.repeated(one, self.count)

    def words(self) -> str:
        return (
            f"{self.times}{self.n_rows} steps of training, of which one iterate is released, at a secret time;"
            f" noise of standard deviation {figure(self.noise_scale)} on every step"
        )
