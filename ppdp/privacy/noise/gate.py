"""The noise of a gate: Gaussian, Laplace, or whole numbers of Laplace's kind. Theory: ``docs/theory/gate.md``."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from scipy.special import ndtr, ndtri

from ppdp.core.formula import GAUSSIAN, LAPLACE
from ppdp.exceptions import InvalidParameter
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.losses import DiscreteLaplace, ScalarLaplace
from ppdp.privacy.noise.laplace import Lattice, laplace_allowance, laplace_release, value_lattice, whole_lattice
from ppdp.privacy.noise.sampler import WORST_ALLOWANCE_PER_ENTRY, Noise, lattice_allowance

__all__ = ["GATE_KINDS", "GateNoise", "gate_noise"]

_SAFE = 1 + 1e-9  # of a threshold: more than evaluating it can lose


@dataclass(frozen=True, slots=True)
class GateNoise(ABC):
    """Noise Z on a margin that changes by at most 1 between neighbouring datasets, all public.

    Attributes
    ----------
    scale : float
        In rows: standard deviation, or scale b of ``exp(-|z| / b)``.
    n_rows : int
        Public bound on the margin.
    law, scale_words : str
        Of the noise, and what its scale is called, in words.
    whole : bool
        Whether it is a whole number.
    """

    law: ClassVar[str]
    scale_words: ClassVar[str]
    whole: ClassVar[bool] = False

    scale: float
    n_rows: int

    @property
    @abstractmethod
    def loss(self) -> PrivacyLoss:
        """Cost of the noisy margin."""

    @abstractmethod
    def threshold(self, delta: float) -> float:
        """What a margin of at most 1 exceeds, once noisy, with probability at most ``delta``."""

    @abstractmethod
    def at_most(self, value: float) -> float:
        """``P(Z <= value)``."""

    @abstractmethod
    def reach(self, share: float) -> float:
        """The least value with ``P(Z > -value) >= share``."""

    @abstractmethod
    def released(self, noise: Noise, margin: float) -> float:
        """The noisy margin."""

    def counted(self, margin: float) -> float:
        """The margin to which noise is added."""
        return margin


class _Gaussian(GateNoise):
    """N(0, scale²)."""

    law, scale_words = GAUSSIAN, "Noise σ"

    @property
    def loss(self) -> PrivacyLoss:
        """``mu = 1 / scale``, and the lattice."""
        return PrivacyLoss(1 / self.scale + lattice_allowance(float(self.n_rows), self.scale, 1))

    def threshold(self, delta: float) -> float:
        """``1 + σ Φ⁻¹(1 - δ)``, one lattice step added."""
        return (1.0 - self.scale * float(ndtri(delta)) + self.scale * WORST_ALLOWANCE_PER_ENTRY) * _SAFE

    def at_most(self, value: float) -> float:
        """Normal distribution."""
        return float(ndtr(value / self.scale))

    def reach(self, share: float) -> float:
        """Normal distribution."""
        return self.scale * float(ndtri(share))

    def released(self, noise: Noise, margin: float) -> float:
        """On the lattice of Gaussian noise."""
        return float(noise.release(margin, self.scale, float(self.n_rows)))


class _Laplace(GateNoise):
    """Density ``~ exp(-|z| / scale)``, on a fine lattice."""

    law, scale_words = LAPLACE, "Scale of Laplace noise"

    @property
    def _lattice(self) -> Lattice:
        return value_lattice(float(self.n_rows), self.scale)

    @property
    def loss(self) -> PrivacyLoss:
        """One real number that changes by 1 and the lattice."""
        shift = 1 + self.scale * laplace_allowance(float(self.n_rows), self.scale, 1)
        return PrivacyLoss(parts=(ScalarLaplace(shift=shift * _SAFE, scale=self.scale),))

    def threshold(self, delta: float) -> float:
        """``1 + b log(1 / 2δ)`` with the b that is drawn, one lattice step added."""
        if delta > 0.5:
            raise InvalidParameter("a Laplace gate needs delta of at most 0.5.")
        lattice = self._lattice
        drawn = lattice.scale * lattice.step
        return (1.0 + drawn * math.log(0.5 / delta) + lattice.step) * _SAFE

    def at_most(self, value: float) -> float:
        """Laplace distribution."""
        tail = 0.5 * math.exp(-abs(value) / self.scale)
        return tail if value < 0 else 1 - tail

    def reach(self, share: float) -> float:
        """Laplace distribution."""
        return self.scale * (math.log(2 * share) if share < 0.5 else -math.log(2 * (1 - share)))

    def released(self, noise: Noise, margin: float) -> float:
        """On the lattice of Laplace noise."""
        return float(laplace_release(noise, margin, self.scale, float(self.n_rows)))


class _DiscreteLaplace(GateNoise):
    """Integers, ``P(Z = k) ~ exp(-|k| / scale)``, on margins rounded up to whole rows."""

    law, scale_words, whole = "Laplace, whole numbers", "Scale of Laplace noise in whole rows", True

    @property
    def _decay(self) -> float:
        """Of the integers that are drawn, whose scale is rounded up."""
        lattice = whole_lattice(float(self.n_rows), self.scale)
        return math.ldexp(1 / lattice.scale, lattice.shift)

    @property
    def loss(self) -> PrivacyLoss:
        """One integer that changes by 1; a larger scale costs less."""
        return PrivacyLoss(parts=(DiscreteLaplace(shift=1, scale=self.scale),))

    def threshold(self, delta: float) -> float:
        """The least positive m with ``P(Z >= m) = exp(-m / b) / (1 + exp(-1 / b)) <= δ``."""
        return float(max(1, math.ceil(self._steps(delta / _SAFE))))

    def _steps(self, tail: float) -> float:
        """Real m with ``P(Z >= m) = tail``."""
        decay = self._decay
        return -math.log((1 + math.exp(-decay)) * tail) / decay

    def at_most(self, value: float) -> float:
        """Geometric on both sides."""
        decay, k = self._decay, math.floor(value)
        rest = math.exp(-decay * (k + 1 if k >= 0 else -k)) / (1 + math.exp(-decay))
        return 1 - rest if k >= 0 else rest

    def reach(self, share: float) -> float:
        """Geometric on both sides."""
        rough = -self._steps(share) if share < 0.5 else self._steps(1 - share) - 1
        k = math.ceil(rough) - 2
        while self.at_most(-k) > 1 - share:
            k += 1
        return float(k)

    def released(self, noise: Noise, margin: float) -> float:
        """A whole number."""
        return float(laplace_release(noise, margin, self.scale, float(self.n_rows), whole=True))

    def counted(self, margin: float) -> float:
        """Rounded up: it then still changes by at most 1, is 0 where it was, and at most 1 where it was."""
        return float(math.ceil(margin))


GATE_KINDS: dict[str, type[GateNoise]] = {
    "gaussian": _Gaussian,
    "laplace": _Laplace,
    "discrete-laplace": _DiscreteLaplace,
}
"""The noise of a gate, by name."""


def gate_noise(kind: str, scale: float, n_rows: int) -> GateNoise:
    """The noise of this kind.

    Raises
    ------
    InvalidParameter
        If there is no such kind.
    """
    if kind not in GATE_KINDS:
        raise InvalidParameter(f"a gate has no {kind!r} noise.", fix=f"use one of {', '.join(GATE_KINDS)}.")
    return GATE_KINDS[kind](scale, n_rows)
