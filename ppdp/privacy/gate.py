"""Propose-test-release: one test for all conditions of a pipeline, and the noise of it.

The smallest margin plus noise is compared with one threshold. Data on which a condition fails pass with probability at
most ``delta``; on all other data the test is one more noisy release.
Theory: ``docs/theory/gate.md``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from scipy.special import ndtr, ndtri

from ppdp.core.formula import GAUSSIAN, LAPLACE
from ppdp.exceptions import ImpossibleBudget, InvalidParameter, PrivacyRefusal
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.losses import DiscreteLaplace, ScalarLaplace
from ppdp.privacy.noise.laplace import laplace_allowance, laplace_release, value_lattice, whole_lattice
from ppdp.privacy.noise.sampler import WORST_ALLOWANCE_PER_ENTRY, Noise, gaussian_scale, lattice_allowance

_SAFE = 1 + 1e-9  # of a threshold: more than evaluating it can lose
USUAL = 0.99  # of data with the needed margin pass
_TOO_SMALL = "the budget is too small for a gate."
_FIX_SMALL = "ask for a larger epsilon, or unconditional stages."


def overlap(mu: float) -> float:
    """``2 Φ(-mu / 2)``: what two datasets have in common after everything that costs ``mu``.

    On a ladder, which older certificates have, a failure of ``delta / overlap(mu)`` covers that the delta *adds*
    to that of everything else (``docs/theory/gate.md``, Theorem 5).
    """
    return 2 * float(ndtr(-mu / 2)) * (1 - 1e-12)


@dataclass(frozen=True, slots=True)
class Gate:
    """The test of a plan, all public.

    Deltas of gate and releases add (``adding``) where some condition looks at rows that an earlier release has shaped,
    or a ledger holds further fits.
    """

    noise_scale: float  # on the margin, in rows: standard deviation, or b of exp(-|z| / b)
    delta: float  # probability of passing where a condition fails
    threshold: float  # the noisy margin must exceed this
    adding: bool
    n_rows: int  # public bound on the margin
    kind: str = "gaussian"

    @classmethod
    def of(cls, kind: str, noise_scale: float, delta: float, *, adding: bool, n_rows: int) -> Gate:
        """The gate with this noise, and the threshold that follows."""
        threshold = gate_noise(kind, noise_scale, n_rows).threshold(delta)
        return cls(noise_scale, delta, threshold, adding, n_rows, kind)

    @classmethod
    def of_budget(cls, mu: float, delta: float, *, adding: bool, n_rows: int) -> Gate:
        """The Gaussian gate that costs ``mu``, unless that is too small for the noise lattice."""
        if mu <= WORST_ALLOWANCE_PER_ENTRY:
            raise ImpossibleBudget(_TOO_SMALL, fix=_FIX_SMALL)
        scale = gaussian_scale(1.0, mu, float(n_rows), 1)
        return cls.of("gaussian", scale, delta, adding=adding, n_rows=n_rows)

    @classmethod
    def of_margin(cls, kind: str, margin: float, delta: float, *, adding: bool, n_rows: int) -> Gate:
        """The gate of this kind that costs least and passes in 99 % of cases from this margin, if there is one."""

        def gate(noise_scale: float) -> Gate:
            return cls.of(kind, noise_scale, delta, adding=adding, n_rows=n_rows)

        low, high = max(1e-3, n_rows * 2.0**-38), max(1.0, margin)  # a lattice holds n rows and noise of this scale
        if gate(low).needed_margin() > margin:
            raise ImpossibleBudget(_TOO_SMALL, fix=_FIX_SMALL)
        while high > low * (1 + 1e-9):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if gate(middle).needed_margin() <= margin else (low, middle)
        return gate(low)

    @property
    def noise(self) -> GateNoise:
        """The noise on the margin."""
        return gate_noise(self.kind, self.noise_scale, self.n_rows)

    @property
    def loss(self) -> PrivacyLoss:
        """Cost of the test on data where every condition holds; its delta is not in it."""
        return self.noise.loss

    @property
    def mu(self) -> float:
        """The Gaussian part of that cost; 0 where the noise is not Gaussian."""
        return self.loss.mu

    def needed_margin(self, passing: float = USUAL) -> float:
        """Margin, in rows, with which the gate passes with this probability."""
        return (self.threshold + self.noise.quantile(passing)) * self._excess

    def refusal_probability(self, margin: float) -> float:
        """Probability that data with this hypothetical margin, in rows to be replaced, do not pass."""
        return self.noise.cdf(self.threshold - self._tested(margin))

    @property
    def _excess(self) -> float:
        """What a computed margin may change by; dividing by it rounds once more."""
        return 1 + max(1e-6 + self.n_rows * 2.0**-51, self.n_rows * 2.0**-49)

    def _tested(self, margin: float) -> float:
        """The margin to which noise is added: within [0, n], and changing by at most 1; 0 for what is no number."""
        held = 0.0 if math.isnan(margin) else min(max(margin, 0.0) / self._excess, float(self.n_rows))
        return self.noise.rounded_margin(held)

    def test(self, margin: float, noise: Noise, fix: str) -> None:
        """Pass, or refuse by :class:`PrivacyRefusal`: the same error whatever condition failed and by how much."""
        if self.noise.add_noise(noise, self._tested(margin)) > self.threshold:
            return
        cost = f"mu = {self.mu:.3g}" if self.mu else f"epsilon = {self.loss.epsilon(0.0):.3g}"
        raise PrivacyRefusal(
            f"the gate did not pass; its cost ({cost}, delta = {self.delta:.3g}) was spent,"
            " and a ledger charges the full epsilon of the plan.",
            fix=fix,
        )


@dataclass(frozen=True, slots=True)
class GateNoise(ABC):
    """Noise Z on a margin that changes by at most 1 between neighbouring datasets, all public."""

    law: ClassVar[str]  # in words
    scale_words: ClassVar[str]  # what its scale is called
    whole: ClassVar[bool] = False  # whether Z is a whole number

    scale: float  # in rows: standard deviation, or scale b of exp(-|z| / b)
    n_rows: int  # public bound on the margin

    @property
    @abstractmethod
    def loss(self) -> PrivacyLoss:
        """Cost of the noisy margin."""

    @abstractmethod
    def threshold(self, delta: float) -> float:
        """What a margin of at most 1 exceeds, once noisy, with probability at most ``delta``."""

    @abstractmethod
    def cdf(self, value: float) -> float:
        """``P(Z <= value)``."""

    @abstractmethod
    def quantile(self, share: float) -> float:
        """The least value with ``P(Z > -value) >= share``."""

    @abstractmethod
    def add_noise(self, noise: Noise, margin: float) -> float:
        """The noisy margin."""

    def rounded_margin(self, margin: float) -> float:
        """The margin to which noise is added."""
        return margin


class _Gaussian(GateNoise):
    """N(0, scale²)."""

    law, scale_words = GAUSSIAN, "Noise σ"

    @property
    def loss(self) -> PrivacyLoss:
        return PrivacyLoss(1 / self.scale + lattice_allowance(float(self.n_rows), self.scale, 1))

    def threshold(self, delta: float) -> float:
        """``1 + σ Φ⁻¹(1 - δ)``, one lattice step added."""
        lattice = max(WORST_ALLOWANCE_PER_ENTRY, lattice_allowance(float(self.n_rows), self.scale, 1))
        return (1.0 - self.scale * float(ndtri(delta)) + self.scale * lattice) * _SAFE

    def cdf(self, value: float) -> float:
        return float(ndtr(value / self.scale))

    def quantile(self, share: float) -> float:
        return self.scale * float(ndtri(share))

    def add_noise(self, noise: Noise, margin: float) -> float:
        return float(noise.release(margin, self.scale, float(self.n_rows)))


class _Laplace(GateNoise):
    """Density ``~ exp(-|z| / scale)``, on a fine lattice."""

    law, scale_words = LAPLACE, "Scale of Laplace noise"

    @property
    def loss(self) -> PrivacyLoss:
        shift = 1 + self.scale * laplace_allowance(float(self.n_rows), self.scale, 1)
        return PrivacyLoss(parts=(ScalarLaplace(shift=shift * _SAFE, scale=self.scale),))

    def threshold(self, delta: float) -> float:
        """``1 + b log(1 / 2δ)`` with the b that is drawn, one lattice step added."""
        if delta > 0.5:
            raise InvalidParameter("a Laplace gate needs delta of at most 0.5.")
        lattice = value_lattice(float(self.n_rows), self.scale)
        drawn = lattice.scale * lattice.step
        return (1.0 + drawn * math.log(0.5 / delta) + lattice.step) * _SAFE

    def cdf(self, value: float) -> float:
        tail = 0.5 * math.exp(-abs(value) / self.scale)
        return tail if value < 0 else 1 - tail

    def quantile(self, share: float) -> float:
        return self.scale * (math.log(2 * share) if share < 0.5 else -math.log(2 * (1 - share)))

    def add_noise(self, noise: Noise, margin: float) -> float:
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
        return PrivacyLoss(parts=(DiscreteLaplace(shift=1, scale=self.scale),))  # the scale that is drawn costs less

    def threshold(self, delta: float) -> float:
        """The least positive m with ``P(Z >= m) = exp(-m / b) / (1 + exp(-1 / b)) <= δ``."""
        return float(max(1, math.ceil(self._steps(delta / _SAFE))))

    def _steps(self, tail: float) -> float:
        """Real m with ``P(Z >= m) = tail``."""
        decay = self._decay
        return -math.log((1 + math.exp(-decay)) * tail) / decay

    def cdf(self, value: float) -> float:
        decay, k = self._decay, math.floor(value)
        rest = math.exp(-decay * (k + 1 if k >= 0 else -k)) / (1 + math.exp(-decay))
        return 1 - rest if k >= 0 else rest

    def quantile(self, share: float) -> float:
        rough = -self._steps(share) if share < 0.5 else self._steps(1 - share) - 1
        k = math.ceil(rough) - 2
        while self.cdf(-k) > 1 - share:
            k += 1
        return float(k)

    def add_noise(self, noise: Noise, margin: float) -> float:
        return float(laplace_release(noise, margin, self.scale, float(self.n_rows), whole=True))

    def rounded_margin(self, margin: float) -> float:
        return float(math.ceil(margin))  # still changes by at most 1, is 0 where it was, and at most 1 where it was


GATE_KINDS: dict[str, type[GateNoise]] = {
    "gaussian": _Gaussian,
    "laplace": _Laplace,
    "discrete-laplace": _DiscreteLaplace,
}
"""The noise of a gate, by name."""


def gate_noise(kind: str, scale: float, n_rows: int) -> GateNoise:
    """The noise of this kind; raises :class:`InvalidParameter` if there is none."""
    if kind not in GATE_KINDS:
        raise InvalidParameter(f"a gate has no {kind!r} noise.", fix=f"use one of {', '.join(GATE_KINDS)}.")
    return GATE_KINDS[kind](scale, n_rows)
