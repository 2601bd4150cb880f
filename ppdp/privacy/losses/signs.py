"""Losses of random signs: ``docs/theory/signs.md``."""

from __future__ import annotations

import math
from dataclasses import dataclass

import ppdp.privacy.pld as pld
import ppdp.privacy.renyi as renyi
import ppdp.privacy.signs as signs
from ppdp.core.figures import figure
from ppdp.privacy.gaussian import gaussian_delta, gaussian_epsilon
from ppdp.privacy.losses.kinds import ScalarLaplace
from ppdp.privacy.losses.part import Part

_COMPARED = 1e-6  # the delta at which one of two distributions is taken


@dataclass(frozen=True, kw_only=True)
class RandomizedResponse(Part):
    """Answers of one bit of which each is at most as telling as a lie with probability ``1 / (1 + exp(epsilon))``."""

    kind = "randomized-response"
    epsilon: float

    @property
    def pure(self) -> float:
        return self.count * self.epsilon

    def curve(self) -> renyi.Curve:
        return renyi.repeated(signs.response_curve(self.epsilon), self.count)

    def distribution(self, interval: float) -> pld.LossDistribution | None:
        if self.count > signs.MOST_ANSWERS:
            return super().distribution(interval)
        return signs.response_distribution(self.epsilon, self.count, interval)

    def epsilon_alone(self, delta: float) -> float:
        many = self.count > signs.MOST_ANSWERS
        return math.inf if many else signs.response_epsilon(self.epsilon, self.count, delta)

    def delta_alone(self, epsilon: float) -> float:
        many = self.count > signs.MOST_ANSWERS
        return 1.0 if many else signs.response_delta(self.epsilon, self.count, epsilon)

    def words(self) -> str:
        answers = "one random bit" if self.count == 1 else f"{self.count} random bits, each"
        return f"{answers} {figure(self.epsilon, upward=True)}-differentially private by itself"


@dataclass(frozen=True, kw_only=True)
class JointSigns(Part):
    """Rows of a random matrix, each released with the signs that it gives."""

    kind = "joint-signs"
    epsilon: float  # privacy loss of each sign, given the matrix
    share: float  # with which probability a row of the matrix tells neighbouring datasets apart at all
    signs: int  # how many signs of one row of the matrix it then changes, at most

    @property
    def _given(self) -> RandomizedResponse | None:
        """What all signs cost given the matrix, where the law over its draw is not tabulated."""
        many = self.share >= 1 or self.count * self.signs > signs.MOST_ASKED
        return RandomizedResponse(count=self.count * int(self.signs), epsilon=self.epsilon) if many else None

    @property
    def pure(self) -> float:
        return self.count * self.signs * self.epsilon

    def curve(self) -> renyi.Curve:
        return renyi.repeated(signs.asked_curve(self.epsilon, min(self.share, 1.0), int(self.signs)), self.count)

    def distribution(self, interval: float) -> pld.LossDistribution | None:
        if self._given is not None:
            return self._given.distribution(interval)
        return signs.response_distribution(self.epsilon, self.count, interval, self.share, int(self.signs))

    def epsilon_alone(self, delta: float) -> float:
        if self._given is not None:
            return self._given.epsilon_alone(delta)
        return signs.response_epsilon(self.epsilon, self.count, delta, self.share, int(self.signs))

    def delta_alone(self, epsilon: float) -> float:
        if self._given is not None:
            return self._given.delta_alone(epsilon)
        return signs.response_delta(self.epsilon, self.count, epsilon, self.share, int(self.signs))

    def words(self) -> str:
        share, each = (figure(value, upward=True) for value in (min(self.share, 1.0), self.epsilon))
        return (
            f"{self.count} rows of a random matrix, drawn at the release and released with the signs they give; delta"
            f" is over the joint draw of matrix and flips. With probability at most {share} a row changes"
            f" {self.signs:g} of them, each then {each}-differentially private; given the matrix, all signs together"
            f" are {figure(self.pure, upward=True)}-differentially private"
        )


@dataclass(frozen=True, kw_only=True)
class LaplaceSigns(Part):
    """Signs of numbers to which Laplace noise of scale 1 was added: the numbers with noise, or so many responses."""

    kind = "laplace-signs"
    epsilon: float  # privacy loss of each sign
    numbers: int  # how many can change
    shift: float  # by how much the numbers can change together (L1)

    @property
    def _responses(self) -> RandomizedResponse:
        return RandomizedResponse(count=self.count * int(self.numbers), epsilon=self.epsilon)

    @property
    def _noisy(self) -> ScalarLaplace:
        return ScalarLaplace(count=self.count, shift=self.shift, scale=1.0)

    @property
    def pure(self) -> float:
        return min(self._responses.pure, self._noisy.pure)

    def curve(self) -> renyi.Curve:
        one, other = self._responses.curve(), self._noisy.curve()
        return lambda alpha: min(one(alpha), other(alpha))

    def distribution(self, interval: float) -> pld.LossDistribution | None:
        responses = self._responses.epsilon_alone(_COMPARED) < self._noisy.pure
        return (self._responses if responses else self._noisy).distribution(interval)

    def epsilon_alone(self, delta: float) -> float:
        noisy = max(0.0, self.shift + 2 * math.log1p(-delta) + 1e-12) if self.count == 1 else math.inf
        return min(noisy, self._responses.epsilon_alone(delta))

    def delta_alone(self, epsilon: float) -> float:
        noisy = -math.expm1(min((epsilon - self.shift) / 2, 0.0)) * (1 + 1e-12) if self.count == 1 else 1.0
        return min(noisy, self._responses.delta_alone(epsilon))

    def words(self) -> str:
        each, most = (figure(value, upward=True) for value in (self.epsilon, self.shift))
        return (
            f"{self.times}signs of numbers with Laplace noise, of which {self.numbers:g} are {each}-differentially"
            f" private each; they change by at most {most} scales of the noise together (L1)"
        )


@dataclass(frozen=True, kw_only=True)
class GaussianSigns(Part):
    """Signs of numbers to which Gaussian noise of scale 1 was added."""

    kind = "gaussian-signs"
    mu: float  # by how much the numbers can change together (L2)
    numbers: int  # how many can change
    shift: float  # by how much each of them can change

    def curve(self) -> renyi.Curve:
        sign, own = signs.gaussian_sign_curve(self.shift), renyi.gaussian_curve(self.mu)

        def one(alpha: float) -> float:
            useful = 0.5 < (alpha - 1) * self.mu < 15  # orders that are best at some usual delta
            return min(own(alpha), self.numbers * sign(alpha)) if useful else own(alpha)

        return renyi.repeated(one, self.count)

    def distribution(self, interval: float) -> pld.LossDistribution:
        return pld.gaussian_distribution(math.sqrt(self.count) * self.mu, interval)

    def epsilon_alone(self, delta: float) -> float:
        return gaussian_epsilon(math.sqrt(self.count) * self.mu, delta)

    def delta_alone(self, epsilon: float) -> float:
        return gaussian_delta(math.sqrt(self.count) * self.mu, epsilon)

    def words(self) -> str:
        most, each = (figure(value, upward=True) for value in (self.mu, self.shift))
        return (
            f"{self.times}signs of numbers with Gaussian noise, of which {self.numbers:g} change by at most {each}"
            f" standard deviations each, {most} together (L2)"
        )
