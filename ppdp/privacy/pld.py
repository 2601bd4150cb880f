"""Privacy-loss distributions: exact composition of what is neither Gaussian nor pure.

A :class:`LossDistribution` is made from our own profiles (``ppdp.privacy.subsampling``), held in mass functions of
dp-accounting, which is imported on first use, and composed to the bits that dp-accounting finds. Everything is rounded
up: the profile to the chords between grid points, the grid's masses by a factor, the answers by what a Fourier
transform may lose. Theory: ``docs/theory/subsampling.md``, 5.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from ppdp.core.checks import integer, number, positive
from ppdp.core.distance import Distance
from ppdp.exceptions import ImpossibleBudget, InvalidParameter
from ppdp.privacy.batch_distributions import log_sum
from ppdp.privacy.fixed_size import fixed_size_step
from ppdp.privacy.subsampling import Profile, gaussian_profile, poisson_profiles

Floats = NDArray[np.float64]

INTERVAL = 2.0**-13  # default distance of neighbouring grid points; a power of two, so that multiples are exact

LEAST_DELTA = 1e-10  # Fourier transforms are too coarse for a smaller delta

_FFT_ERROR, _FFT_ERROR_PER_STEP = 1e-12, 2e-16  # of a delta; measured: 5e-17 per composed step
_INFLATION = 1 + 1e-7  # of a profile: more than evaluating it and differencing it can lose
_FINENESS = 200  # grid points near a loss l are about l / 200 apart, or one interval if that is more
_TINY = 1e-18  # a profile is followed until it is below
_SMALL, _LEVEL, _SLIGHT = 1e-4, 1 + 1e-3, 1e-13  # or, where little is lost at any epsilon, until hardly more is
_MOST_POINTS = 2**24  # more in a composition would cost minutes and gigabytes; a million runs of epsilon 500 have fewer
_TAIL = 1e-15  # of a composition: less is cut off
_HARDLY = 1e-12  # of a mass that is finite: nothing is
_MOST_DOUBLINGS = 20  # a step whose losses reach beyond 2^20 intervals counts as unbounded
_PARTS = 100  # a range is widened by this share of itself
_TOGETHER = 20  # choices whose profile is worked out at once; more are composed of such blocks


@dataclass(frozen=True, slots=True, eq=False)
class LossDistribution:
    """Privacy loss of a mechanism as a distribution on a grid; a pessimistic bound for every pair of datasets.

    Losses add with ``+`` and ``*`` (adaptive composition, parameters fixed in advance).

    >>> loss = 25 * gaussian_distribution(0.2)
    >>> round(loss.epsilon(1e-6), 3)
    4.887
    """

    sides: tuple[Any, ...]  # dp-accounting's mass functions; one of them dominates, for every pair, either way round
    interval: float = INTERVAL  # distance of neighbouring grid points
    steps: int = 1  # how many distributions were composed, for the error of the transforms

    def __add__(self, other: LossDistribution) -> LossDistribution:
        if not isinstance(other, LossDistribution):
            return NotImplemented
        if self.interval != other.interval:
            raise InvalidParameter("loss distributions of different intervals cannot be composed.")
        sides = tuple(_composed(mine, theirs) for mine in self.sides for theirs in other.sides)
        return LossDistribution(sides, self.interval, self.steps + other.steps)

    def __mul__(self, times: int) -> LossDistribution:
        """``times``-fold composition on one and the same pair of datasets.

        Counts as that of an unbounded loss where hardly anything would be finite, or ``2^24`` grid points are not
        enough for all sides together: that is found out before any of them is composed.
        """
        if integer("times", times) == 1:
            return self
        affordable = _affordable(self.sides, times)
        sides = tuple(_repeated(side, times) if affordable else _unbounded(side) for side in self.sides)
        return LossDistribution(sides, self.interval, self.steps * times)

    __rmul__ = __mul__

    @property
    def slack(self) -> float:
        """What a delta may be too small by."""
        return _FFT_ERROR + _FFT_ERROR_PER_STEP * self.steps

    def delta(self, epsilon: float) -> float:
        """Smallest delta at this epsilon, rounded up."""
        number("epsilon", epsilon, least=0)
        return min(1.0, max(side.get_delta_for_epsilon(float(epsilon)) for side in self.sides) + self.slack)

    def epsilon(self, delta: float) -> float:
        """Smallest epsilon at this delta, rounded up; infinite if there is none.

        A ``delta`` below 1e-10, or not well above the error of composing so many steps, is refused.
        """
        number(
            "delta",
            delta,
            least=max(LEAST_DELTA, 10 * self.slack),
            most=1,
            kind=ImpossibleBudget,
            fix="use a larger delta, or Rényi accounting, which is not limited.",
        )
        found = max(_least_epsilon(side, delta - 1.001 * self.slack) for side in self.sides)
        while math.isfinite(found) and self.delta(found) > delta:
            found += self.interval
        return float(found)


def loss_distribution(profile: Profile, interval: float = INTERVAL) -> LossDistribution:
    """The least distribution on a grid whose profile is nowhere below this one ("connect the dots").

    Between grid points the profile becomes a chord in ``exp(epsilon)``. The negative side of a pair is the positive
    side of its reverse, times ``exp(-loss)``; it must not be dropped, composition needs it. A profile that is not
    negligible within ``2^20`` intervals counts as that of an unbounded loss.
    """
    positive("interval", interval)
    ends = (profile.forward,) if profile.forward is profile.backward else (profile.forward, profile.backward)
    grid = _grid(ends, interval)
    heights = [np.minimum(end(grid * interval) * _INFLATION, 1.0) for end in ends]
    sides = (_masses(grid, interval, up, down) for up, down in zip(heights, heights[::-1]))
    return LossDistribution(tuple(sides), interval)


def gaussian_distribution(mu: float, interval: float = INTERVAL) -> LossDistribution:
    """Loss of a mu-GDP Gaussian release, to be composed with others; alone, ``PrivacyLoss`` is exact."""
    return loss_distribution(gaussian_profile(mu), interval)


def laplace_distribution(shift: float, interval: float = INTERVAL) -> LossDistribution:
    """Loss of one number that changes by at most ``shift`` under Laplace noise of scale 1.

    Its profile is ``1 - exp((epsilon - shift) / 2)``. For vectors use a Rényi curve or pure privacy: that the scalar
    distribution dominates a vector with the same L1 shift is not proved.
    """
    number("shift", shift, least=0)
    profile = Profile.symmetric(lambda epsilon: -np.expm1(np.minimum((epsilon - shift) / 2, 0.0)))
    return loss_distribution(profile, interval)


def discrete_laplace_distribution(shift: int, decay: float, interval: float = INTERVAL) -> LossDistribution:
    """Loss of one integer that changes by at most ``shift`` under noise ``P(Z = k) ~ exp(-decay |k|)``."""
    integer("shift", shift, least=0)
    ratio = math.exp(-positive("decay", decay))

    def delta(epsilon: Floats) -> Floats:
        epsilon = np.minimum(epsilon, shift * decay)
        last = np.ceil((shift - epsilon / decay) / 2) - 1  # the last integer whose loss is above epsilon
        rest = -np.expm1(epsilon - decay * (shift - last)) - ratio * np.expm1(-decay * last)
        return np.where(epsilon < shift * decay, rest / (1 + ratio), 0.0)

    return loss_distribution(Profile.symmetric(delta), interval)


@lru_cache(maxsize=8)
def poisson_distribution(
    distance: Distance, *, steps: int, interval: float = INTERVAL, **step: float
) -> LossDistribution:
    """Loss of ``steps`` noisy sums over Poisson samples at this distance.

    Each is one of :func:`~ppdp.privacy.subsampling.poisson_profiles`; however the toggled rows are split, the split is
    the same in all of them.
    """
    sides: tuple[Any, ...] = ()
    for profile in poisson_profiles(distance, **step):
        sides += loss_distribution(profile, interval).sides
        if not _affordable(sides, integer("steps", steps)):  # then the others need not be looked at
            break
    return LossDistribution(sides, interval) * steps


@lru_cache(maxsize=8)
def fixed_size_distribution(
    distance: Distance, *, steps: int, interval: float = INTERVAL, **step: Any
) -> LossDistribution:
    """Loss of ``steps`` noisy sums over batches of fixed size, :func:`~ppdp.privacy.fixed_size.fixed_size_step`."""
    mu, profile = fixed_size_step(distance, **step)
    if profile is None:
        return gaussian_distribution(math.sqrt(integer("steps", steps)) * mu, interval)
    return loss_distribution(profile, interval) * steps


@lru_cache(maxsize=32)
def bounded_range_profile(width: float, count: int) -> Profile:
    """Profile of ``count`` adaptive choices, each with losses in an interval of length ``width``; rounded up.

    One choice costs ``V_1(ε) = (1 - exp((ε - width) / 2))² / (1 - exp(-width))``, and k choices at most
    ``V_k(ε) = max over t of p_t V_(k-1)(ε - t) + (1 - p_t) V_(k-1)(ε - t + width)`` with losses t and t - width, and
    ``p_t = (1 - exp(t - width)) / (1 - exp(-width))``: convexity leaves two outcomes. The only loss is that t is on a
    grid, for which the width is enlarged by one step.
    """
    step, most = positive("width", width) / _PARTS, integer("count", count) * (_PARTS + 1)
    wide = _PARTS + 1
    upper = np.arange(1, wide)  # the larger of the two losses, in steps
    likely = np.expm1((upper - wide) * step) / np.expm1(-wide * step)
    losses = np.arange(-most - wide, most + wide + 1)
    certain = -np.expm1(np.minimum(losses * step, 0.0))  # where what is left of epsilon is spent already
    near = np.minimum(losses * step, width)
    values = np.where(near > -width, np.expm1((near - width) / 2) ** 2 / -math.expm1(-width), certain)
    inside = slice(wide, len(losses) - wide)
    for _ in range(count - 1):
        windows = np.lib.stride_tricks.sliding_window_view(values, 2 * wide + 1)
        spent, saved = windows[:, wide - 1 : 0 : -1], windows[:, 2 * wide - 1 : wide : -1]
        values = certain.copy()
        values[inside] = (likely * spent + (1 - likely) * saved).max(axis=1)
    ratios, heights = np.exp(losses[most + wide :] * step), values[most + wide :]

    def delta(epsilon: Floats) -> Floats:
        return np.interp(np.exp(np.minimum(epsilon, 700.0)), ratios, heights, right=0.0)

    return Profile.symmetric(delta)


def bounded_range_distribution(width: float, count: int, interval: float) -> LossDistribution:
    """Loss of ``count`` adaptive choices, in blocks of a few."""
    if width == 0:
        return gaussian_distribution(0.0, interval)
    blocks, rest = divmod(count, _TOGETHER)
    whole = [loss_distribution(bounded_range_profile(width, _TOGETHER), interval) * blocks] if blocks else []
    last = [loss_distribution(bounded_range_profile(width, rest), interval)] if rest else []
    return reduce(operator.add, whole + last)


def pure_distribution(epsilon: float, interval: float) -> LossDistribution:
    """Loss of randomised response, which dominates every mechanism of this epsilon."""

    def delta(at: Floats) -> Floats:
        return np.asarray(-np.expm1(np.minimum(np.asarray(at, float) - epsilon, 0.0)) / (1 + math.exp(-epsilon)))

    return loss_distribution(Profile.symmetric(delta), interval)


def _composed(mine: Any, theirs: Any) -> Any:
    """Composition of two mass functions without its ends; where hardly anything is finite, nothing is.

    What is cut off below counts as the least loss that is left, and what is cut off above as infinite.
    """
    if mine._probs.sum() * theirs._probs.sum() <= _HARDLY:
        return _unbounded(mine)
    whole = mine.compose(theirs)
    masses, half = whole._probs, _TAIL / 2
    first = int((np.cumsum(masses) > half).argmax())
    end = max(first + 1, len(masses) - int((np.cumsum(masses[::-1]) > half).argmax()))
    kept, beyond = masses[first:end], whole._infinity_mass + masses[end:].sum()
    kept[0] += masses[:first].sum()
    return _like(mine, whole._lower_loss + first, kept, beyond)


def _repeated(side: Any, times: int) -> Any:
    """dp-accounting's ``self_compose``, but for the search of where its masses begin and end: see :func:`_ends`."""
    first, last = _ends(side._probs, times)
    size = fft.next_fast_len(max(last - first + 1, len(side._probs)))
    half = fft.rfft(side._probs, size) ** times  # of real masses; the other half mirrors it to the last bit
    whole = np.concatenate([half, half[(size - 1) // 2 : 0 : -1].conj()])
    masses = np.roll(np.real(fft.ifft(whole)), -first)[: last - first + 1]
    beyond = _TAIL - math.expm1(times * math.log1p(-side._infinity_mass))
    return _like(side, times * side._lower_loss + first, masses, beyond)


def _least_epsilon(side: Any, delta: float) -> float:
    """dp-accounting's ``get_epsilon_for_delta``, without its loop over the grid.

    Above the grid point e, ``delta(epsilon) = U - exp(epsilon) V`` with the masses U and V of what lies above e.
    """
    if side._infinity_mass > delta:
        return math.inf
    first = max(0, 1 - side._lower_loss)
    masses = side._probs[first:][::-1]
    losses = (side._lower_loss + np.arange(first, len(side._probs))[::-1]) * side._discretization
    upper = side._infinity_mass + np.cumsum(masses)
    lower = np.cumsum(masses * np.exp(-losses))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        crossing = np.log(np.maximum(upper - delta, 0.0) / lower)
    found = (crossing >= np.append(losses[1:], 0.0)).nonzero()[0]
    return float(min(crossing[found[0]], losses[found[0]])) if found.size else 0.0


def _affordable(sides: tuple[Any, ...], times: int) -> bool:
    """Whether all sides have a finite loss worth composing, and few enough points together."""
    if times == 1:
        return True
    if any((1 - side._infinity_mass) ** times <= _HARDLY for side in sides):
        return False
    return sum(_points(side._probs, times) for side in sides) <= _MOST_POINTS


def _points(masses: Floats, times: int) -> int:
    """How many points a transform needs."""
    first, last = _ends(masses, times)
    return max(len(masses), last - first + 1)


def _ends(masses: Floats, times: int) -> tuple[int, int]:
    """Where the masses of a composition begin and end but for :data:`_TAIL`, by Chernoff bounds.

    They are dp-accounting's, from the few places that have a mass.
    """
    places = (masses > 0).nonzero()[0]
    orders = np.arange(1, 21)[:, None] / len(masses)
    log_masses = np.log(masses[places])
    tail, count = math.log(2 / _TAIL), float(times)
    highest = (count * log_sum(log_masses + orders * places, axis=1) + tail) / orders[:, 0]
    lowest = -(count * log_sum(log_masses - orders * places, axis=1) + tail) / orders[:, 0]
    return max(0, math.floor(lowest.max())), min(times * (len(masses) - 1), math.ceil(highest.min()))


def _unbounded(like: Any) -> Any:
    return _like(like, 0, np.zeros(1), 1.0)


def _like(side: Any, lowest: int, masses: Floats, infinite: float) -> Any:
    """A mass function on the same grid."""
    return type(side)(side._discretization, lowest, masses, infinite, pessimistic_estimate=True)


def _grid(ends: tuple[Callable[[Floats], Floats], ...], interval: float) -> Floats:
    """Multiples of the interval, ever wider apart, up to where the profile is negligible, or small and falls no more.

    Where that is too far away the grid is as short as can be, and what lies behind it counts as infinite.
    """
    lasts = 2 ** np.arange(1, _MOST_DOUBLINGS + 1)
    heights = [np.asarray(end(np.asarray(lasts * interval, float))) for end in ends]
    lost = [height[-1] * _LEVEL + _SLIGHT if _TINY < height[-1] < _SMALL else _TINY for height in heights]
    done = np.all([height <= least for height, least in zip(heights, lost)], axis=0)
    return _multiples(int(lasts[done.argmax()]))


@lru_cache(maxsize=_MOST_DOUBLINGS)
def _multiples(last: int) -> Floats:
    """Whole numbers, ever wider apart, up to this one."""
    points = [0]
    while points[-1] < last:
        points.append(points[-1] + max(1, points[-1] // _FINENESS))
    return np.array(points)


def _masses(grid: Floats, interval: float, up: Floats, down: Floats) -> Any:
    """dp-accounting's mass function whose profile runs through ``up``, and whose reverse's through ``down``.

    A negative mass can only come from rounding; without it the profile is larger.
    """
    from dp_accounting.pld.pld_pmf import DensePLDPmf

    gaps = np.diff(grid) * interval

    def above_zero(heights: Floats) -> Floats:
        falls = -np.diff(heights)
        masses = falls / -np.expm1(-gaps)
        masses[:-1] -= falls[1:] / np.expm1(gaps[1:])
        return np.maximum(masses, 0.0)

    first, last = gaps[0], int(grid[-1])
    at_zero = 1 + (up[0] - math.exp(-first) * down[1]) / math.expm1(-first) - (up[0] - up[1]) / math.expm1(first)
    masses = np.zeros(2 * last + 1)
    masses[last] = max(at_zero, 0.0)
    masses[last + grid[1:]] = above_zero(up)
    masses[last - grid[1:]] = above_zero(down) * np.exp(-grid[1:] * interval)
    return DensePLDPmf(interval, -last, masses, min(float(up[-1]), 1 - 2.0**-53), pessimistic_estimate=True)
