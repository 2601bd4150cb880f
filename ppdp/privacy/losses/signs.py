"""Random signs: randomised response, many times, and signs of numbers with noise: ``docs/theory/signs.md``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

import ppdp.privacy.pld as pld
import ppdp.privacy.renyi as renyi
from ppdp.core.figures import figure
from ppdp.privacy.gaussian import gaussian_delta, gaussian_epsilon
from ppdp.privacy.losses.kinds import ScalarLaplace
from ppdp.privacy.losses.part import Part
from ppdp.privacy.pld import LossDistribution, loss_distribution
from ppdp.privacy.renyi import Curve
from ppdp.privacy.subsampling import Profile

Floats = NDArray[np.float64]

MOST_ANSWERS = 2**20  # of more answers the exact law is not tabulated
MOST_ASKED = 2**12  # the same of answers that are asked at random

_UP = 1 + 1e-9  # more than the logarithms of binomial coefficients can lose
_LOST = 1e-280  # more than all masses together that float64 cannot hold
_CLOSE = 5e-3  # by how much a supremum may be too large, as a share
_MOST_CELLS = 2**15
_RATIO = 1.2  # of the orders, less one, between which a curve is a chord
_FAR = 6.0  # order times shift from which nothing is gained over the numbers themselves
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
        return renyi.repeated(response_curve(self.epsilon), self.count)

    def distribution(self, interval: float) -> pld.LossDistribution | None:
        if self.count > MOST_ANSWERS:
            return super().distribution(interval)
        return response_distribution(self.epsilon, self.count, interval)

    def epsilon_alone(self, delta: float) -> float:
        many = self.count > MOST_ANSWERS
        return math.inf if many else response_epsilon(self.epsilon, self.count, delta)

    def delta_alone(self, epsilon: float) -> float:
        many = self.count > MOST_ANSWERS
        return 1.0 if many else response_delta(self.epsilon, self.count, epsilon)

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
        many = self.share >= 1 or self.count * self.signs > MOST_ASKED
        return RandomizedResponse(count=self.count * int(self.signs), epsilon=self.epsilon) if many else None

    @property
    def pure(self) -> float:
        return self.count * self.signs * self.epsilon

    def curve(self) -> renyi.Curve:
        return renyi.repeated(asked_curve(self.epsilon, min(self.share, 1.0), int(self.signs)), self.count)

    def distribution(self, interval: float) -> pld.LossDistribution | None:
        if self._given is not None:
            return self._given.distribution(interval)
        return response_distribution(self.epsilon, self.count, interval, self.share, int(self.signs))

    def epsilon_alone(self, delta: float) -> float:
        if self._given is not None:
            return self._given.epsilon_alone(delta)
        return response_epsilon(self.epsilon, self.count, delta, self.share, int(self.signs))

    def delta_alone(self, epsilon: float) -> float:
        if self._given is not None:
            return self._given.delta_alone(epsilon)
        return response_delta(self.epsilon, self.count, epsilon, self.share, int(self.signs))

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
        sign, own = gaussian_sign_curve(self.shift), renyi.gaussian_curve(self.mu)

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


class _Events(NamedTuple):
    """Of the best events, those of the largest losses: probabilities on one side, and their logarithms on the other."""

    losses: Floats
    upper: Floats
    log_lower: Floats


@lru_cache(maxsize=8)
def _events(epsilon: float, count: int, share: float = 1.0, group: int = 1) -> _Events:
    """Of ``count`` times ``group`` responses, all of a group asked together with probability ``share``, else none.

    Only the sum of the losses decides, a multiple of epsilon. Every sum here is of numbers that are not negative.
    """
    if share >= 1:
        count *= group
        lies = np.arange(count + 1)
        losses: Floats = np.asarray((count - 2.0 * lies) * epsilon, float)
        log_masses = _log_masses(epsilon, count)
        upper = np.cumsum(np.exp(log_masses)) * _UP
    else:
        one = np.zeros(2 * group + 1)
        one[::2] = share * np.exp(_log_masses(epsilon, group))
        one[group] += 1 - share
        masses = _power(one, count)
        losses = np.asarray(np.arange(count * group, -count * group - 1, -1) * epsilon, float)
        upper = np.cumsum(masses) * _UP + _LOST
        with np.errstate(divide="ignore"):
            log_masses = np.log(masses)
    log_lower = np.logaddexp.accumulate(log_masses - losses)
    return _Events(losses, np.asarray(np.minimum(upper, 1.0), float), np.asarray(log_lower, float))


def _log_masses(epsilon: float, count: int) -> Floats:
    """Logarithms of the probabilities of 0, 1, … lies."""
    lies = np.arange(count + 1)
    log_ways = special.gammaln(count + 1) - special.gammaln(lies + 1) - special.gammaln(count - lies + 1)
    return np.asarray(log_ways - count * math.log1p(math.exp(-epsilon)) - lies * epsilon)


def _power(masses: Floats, count: int) -> Floats:
    """A law on a grid, convolved ``count`` times with itself."""
    if count == 1:
        return masses
    half = _power(masses, count // 2)
    even = np.convolve(half, half)
    return np.convolve(even, masses) if count % 2 else even


def response_epsilon(epsilon: float, count: int, delta: float, share: float = 1.0, group: int = 1) -> float:
    """Epsilon at this delta of ``count`` mechanisms of one epsilon each; the least there is, rounded up.

    ``max over m of log((U_m - delta) / V_m)``, where U_m and V_m are the probabilities of at most m lies on both sides
    (Kairouz, Oh and Viswanath, 2015); of groups that are asked with probability ``share``, of the m largest losses.
    """
    found = _events(epsilon, count, share, group)
    better = found.upper > delta
    logs = np.log(found.upper[better] - delta) - found.log_lower[better]
    return max(0.0, float(logs.max(initial=-math.inf)) + 1e-9)


def response_delta(epsilon: float, count: int, at: float, share: float = 1.0, group: int = 1) -> float:
    """Delta at an epsilon ``at`` of the same, rounded up: ``max over m of U_m - exp(at) V_m``."""
    found = _events(epsilon, count, share, group)
    with np.errstate(over="ignore"):
        rest = found.upper - np.exp(at + found.log_lower)
    return min(max(0.0, float(rest.max())), 1.0)


def response_distribution(
    epsilon: float, count: int, interval: float, share: float = 1.0, group: int = 1
) -> LossDistribution:
    """The same as a distribution: its profile is exact at every point of the grid."""
    found = _events(epsilon, count, share, group)
    ascending, upper, lower = -found.losses, np.append(0.0, found.upper), np.append(0.0, np.exp(found.log_lower))

    def delta(at: Floats) -> Floats:
        above = np.searchsorted(ascending, -np.asarray(at, float), side="left")
        with np.errstate(over="ignore", invalid="ignore"):
            left = upper[above] - np.where(lower[above] > 0, np.exp(at) * lower[above], 0.0)
        return np.maximum(left, 0.0)

    return loss_distribution(Profile.symmetric(delta), interval)


def asked_curve(epsilon: float, share: float, group: int) -> Curve:
    """Rényi curve of so many responses that are asked together with probability ``share``, else not; exact."""
    one = response_curve(epsilon)

    def curve(alpha: float) -> float:
        if math.isinf(alpha) or epsilon == 0 or share >= 1:
            return group * one(alpha)
        log_moment = (alpha - 1) * group * one(alpha)
        mixed = float(np.logaddexp(math.log1p(-share), math.log(share) + log_moment)) if share > 0 else 0.0
        return min(max(mixed, 0.0) / (alpha - 1) * (1 + 1e-12) + 1e-15 / (alpha - 1), group * epsilon)

    return curve


def response_curve(epsilon: float) -> Curve:
    """Rényi curve of randomised response, which dominates every mechanism of this epsilon; exact.

    ``log(1 + 2 sinh²(a/2) + tanh(epsilon/2) sinh(a)) / (alpha - 1)``, ``a = (alpha - 1) epsilon``.
    """

    def curve(alpha: float) -> float:
        if math.isinf(alpha) or epsilon == 0:
            return epsilon
        a = (alpha - 1) * epsilon
        if a > 300:
            log_moment = a - math.log1p(math.exp(-epsilon)) + 1e-12
        else:
            log_moment = math.log1p(2 * math.sinh(a / 2) ** 2 + math.tanh(epsilon / 2) * math.sinh(a))
        return min(log_moment / (alpha - 1) * (1 + 1e-12), epsilon)

    return curve


def gaussian_sign_curve(shift: float) -> Curve:
    """Rényi curve of the sign of a number that changes by at most ``shift`` under Gaussian noise of scale 1.

    Never above that of the number itself, ``alpha shift² / 2``. Between orders at which it is computed
    ``(alpha - 1) D`` is at most its chord, because it is convex.
    """

    def curve(alpha: float) -> float:
        own = alpha * shift**2 / 2
        if not 1.05 <= alpha < math.inf or alpha * shift > _FAR or shift == 0:
            return own
        step = math.floor(math.log(alpha - 1) / math.log(_RATIO))
        low, high = (1 + _RATIO**k for k in (step, step + 1))
        below, above = ((order - 1) * gaussian_sign_renyi(order, shift) for order in (low, high))
        share = min(max((alpha - low) / (high - low), 0.0), 1.0)
        return min(own, ((1 - share) * below + share * above) / (alpha - 1) * (1 + 1e-12))

    return curve


@lru_cache(maxsize=4096)
def gaussian_sign_renyi(order: float, shift: float) -> float:
    """``sup over t of D(Ber(Φ(t + s/2)) ‖ Ber(Φ(t - s/2)))`` at this order, at most 0.5 % too large.

    The divergence grows with the first probability and falls with the second, so that on a cell of the line its
    corners bound it; cells are halved until the bound is close. Beyond the cells two inequalities take over.
    """
    end, half = order * shift + 10, shift / 2
    width, left = end / 32, np.linspace(-end, end, 65)[:-1]
    lost = 4e-15 * order * (1 + order * shift)
    best = 0.0
    while True:
        middle = left + width / 2
        best = max(best, float(_log_moment(order, middle + half, middle - half).max()))
        upper = _log_moment(order, left + width + half, left - half)
        doubtful = upper > best * (1 + _CLOSE) + lost
        if not doubtful.any() or 4 * doubtful.sum() > _MOST_CELLS:
            break
        width /= 4
        left = (left[doubtful, None] + width * np.arange(4)).ravel()
    found = max(best * (1 + _CLOSE), float(upper.max()), _beyond(order, end, half)) + lost
    return found / (order - 1)


def _log_moment(order: float, x: Floats, y: Floats) -> Floats:
    """``log E (P/Q)^order`` under Q, for P = Ber(Φ(x)) and Q = Ber(Φ(y))."""
    plus = order * special.log_ndtr(x) + (1 - order) * special.log_ndtr(y)
    minus = order * special.log_ndtr(-x) + (1 - order) * special.log_ndtr(-y)
    return np.asarray(np.logaddexp(plus, minus))


def _beyond(order: float, end: float, half: float) -> float:
    """The same for all t at most ``-end``, and at least ``end``."""
    log_p, log_q, log_rest = (float(special.log_ndtr(z)) for z in (half - end, end - half, -end - half))
    low = float(np.logaddexp(0.0, order * log_p + (1 - order) * log_rest))
    return max(low, (1 - order) * log_q + math.exp(log_p))
