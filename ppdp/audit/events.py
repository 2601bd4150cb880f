"""Events that tell two datasets apart: which of them promise most, and what counts or bets make of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from ppdp.audit.scores import Score
from ppdp.audit.target import Target
from ppdp.data.rows import Array
from ppdp.testing.confidence import Certified, at_least, at_most, epsilon_at_least

_KEPT = 0.7  # of the stake that would let wealth grow fastest if the shares seen so far were the probabilities
_MOST = 0.9  # of wealth that one pair of runs can lose
_ROUNDING = 1e-9  # by which lines are raised
_STEPS = 30  # of bisection
_SHARES = np.linspace(0, 2, 201)  # of what is claimed

Lines = Callable[[float, float], tuple[Array, Array]]
"""From guesses of an event's probabilities to slopes and heights of lines that it is not above, one for each claim."""


@dataclass
class Bets:
    """A player against each of several claims, the strongest first; whatever one of them allows, the next one does."""

    values: Array  # one for each claim
    lines: Lines  # what each allows
    off: float  # total variation by which what runs may differ from what has the loss
    _wealth: Array = field(init=False)  # logarithms
    _best: Array = field(init=False)

    def __post_init__(self) -> None:
        self._wealth, self._best = np.zeros((2, *self.values.shape))

    def play(self, p: float, q: float, pairs: Array) -> None:
        """Bet on pairs of runs, of which so many are in an event on both sides, on the left, on the right, on none.

        ``p`` and ``q`` are guesses of its probabilities, above 0 and below 1, from earlier runs. The event or its
        complement, seen from the right, is bet on, whichever promises more.
        """
        promised, won = [], []
        for high, low, counted in ((p, q, pairs), (1 - q, 1 - p, pairs[[3, 1, 2, 0]])):
            slope, height = self.lines(high, low)
            height = np.maximum(height, 0.0) + self.off * (1 + slope) + _ROUNDING
            wins = np.array([1 - slope - height, 1 - height, -slope - height, -height])
            likely = np.outer([high, 1 - high], [low, 1 - low]).reshape(4, 1)
            growth = np.log1p(_KEPT * _fastest(wins, likely) * wins)
            promised.append((likely * growth).sum(axis=0))
            won.append((counted[:, None] * growth).sum(axis=0))
        self._wealth += np.where(promised[0] >= promised[1], *won)
        self._best = np.maximum(self._best, self._wealth)

    def refuted(self, doubt: float) -> float:
        """The last claim of those that are refuted one after the other; -inf if none is.

        If a claim is true, so are all behind it; that the first true one is refuted has probability at most ``doubt``.
        """
        stands = self._best < -math.log(doubt)
        first = int(np.argmax(stands)) if stands.any() else len(self.values)
        return float(self.values[first - 1]) if first else -math.inf


def _fastest(wins: Array, likely: Array) -> Array:
    """The stake at which the expected logarithm of wealth is largest; none where a bet promises nothing."""
    low, high = np.zeros(wins.shape[1]), _MOST / -wins[2]
    for _ in range(_STEPS):
        middle = (low + high) / 2
        grows = (likely * wins / (1 + middle * wins)).sum(axis=0) > 0
        low, high = np.where(grows, middle, low), np.where(grows, high, middle)
    return low


def bets_of(certified: Certified) -> dict[str, Bets]:
    """Against every mu, every epsilon at the certified delta, and what is certified with every excess."""
    lost = certified.lost if certified.lost < 1 else 0.0
    mu = certified.loss.mu if certified.gaussian and math.isfinite(certified.loss.mu) else 0.0
    epsilon = certified.epsilon if math.isfinite(certified.epsilon) else 0.0
    mus = np.union1d(np.linspace(0, 12, 1201), mu * _SHARES)
    epsilons = np.union1d(np.linspace(0, 20, 1001), epsilon * _SHARES)
    small = np.logspace(-6, 0, 121)
    excesses = np.concatenate([-small[::-1], [0.0], small])

    def claimed(p: float, q: float) -> tuple[Array, Array]:
        def spread(slope: float) -> float:
            return math.hypot(math.sqrt(p * (1 - p)), slope * math.sqrt(q * (1 - q)))

        lines = [(math.exp(epsilon), delta) for epsilon, delta in certified.profile]
        if certified.gaussian and math.isfinite(certified.loss.mu):
            slope, height = tangents(np.array([certified.loss.mu]), q, certified.lost)
            lines.append((float(slope[0]), float(height[0])))
        steepness, level = max(lines, key=lambda line: (p - line[0] * q - line[1]) / spread(line[0]))
        return np.full(excesses.shape, steepness), level + excesses

    families: dict[str, tuple[Array, Lines]] = {
        "mu": (mus, lambda p, q: tangents(mus, q, lost)),
        "epsilon": (epsilons, lambda p, q: (np.exp(epsilons), np.full(epsilons.shape, certified.delta))),
        "loss": (excesses, claimed),
    }
    return {purpose: Bets(values, lines, certified.off) for purpose, (values, lines) in families.items()}


def tangents(mu: Array, q: float, lost: float) -> tuple[Array, Array]:
    """Slopes and heights of lines above what mu-GDP but for a probability ``lost`` allows, closest at q.

    The trade-off ``f + (1 - f) Φ(mu + Φ⁻¹(q / (1 - f)))`` is concave in q, so each of its tangents is above it.
    """
    kept = 1 - lost
    z = ndtri(min(max(q / kept, 1e-12), 1 - 1e-12))
    slope = np.exp(-mu * z - mu**2 / 2)
    return slope, lost + kept * (ndtr(mu + z) - slope * ndtr(z))


Purpose = Callable[[Array, Array], Array]

_USUAL_DOUBT = 0.01  # of a count that serves to choose: thresholds in the tails must be worth their doubt
_TAILS = np.array([1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 2e-3])
_LEVELS = np.concatenate([_TAILS, np.linspace(0.005, 0.995, 199), 1 - _TAILS])  # of what is rare, and of what is not
_CLEARLY = 0.1  # more, as a share


class Event(NamedTuple):
    """An event that was counted.

    Attributes
    ----------
    purpose : {"mu", "epsilon", "loss"}
        For which it was chosen.
    statistic : str
        Whose value is above a threshold.
    tpr, fpr : float
        At least this probability on the left dataset, at most this one on the right one.
    """

    purpose: str
    statistic: str
    tpr: float
    fpr: float

    @property
    def bounds(self) -> tuple[float, float]:
        """At least this on one dataset, at most that on the other: of the event, or its complement if that tells more.

        The complement has at least ``1 - fpr`` on the right dataset and at most ``1 - tpr`` on the left one.
        """
        return max((self.tpr, self.fpr), (1 - self.fpr, 1 - self.tpr), key=lambda pair: pair[0] / max(pair[1], 1e-300))


@dataclass
class Wager:
    """An event that is fixed by the runs on ``sides``, and what was counted of it since."""

    event: Event
    score: Score
    threshold: float
    sides: InitVar[tuple[Array, Array]]
    seen: Array = field(init=False)  # how often on the left, on the right, and in how many runs on each
    since: Array = field(init=False)

    def __post_init__(self, sides: tuple[Array, Array]) -> None:
        self.seen, self.since = self._count((sides[0][1::2], sides[1][1::2]))[:3], np.zeros(3)

    def _count(self, sides: tuple[Array, Array]) -> Array:
        left, right = (self.score(side) > self.threshold for side in sides)
        return np.array([left.sum(), right.sum(), len(left), (left & right).sum()], dtype=np.float64)

    def bet(self, player: Bets, sides: tuple[Array, Array]) -> None:
        """Bet on further runs by those that were seen, then see them, too."""
        hits, alarms, runs, both = counts = self._count(sides)
        p, q = (self.seen[:2] + 0.5) / (self.seen[2] + 1)
        player.play(float(p), float(q), np.array([both, hits - both, alarms - both, runs - hits - alarms + both]))
        self.seen, self.since = self.seen + counts[:3], self.since + counts[:3]

    def shown(self, certified: Certified, doubt: float) -> Event:
        """The event with bounds on its probabilities."""
        p, q = certified.bounds(self.since[0], self.since[1], float(self.since[2]), doubt)
        return Event(self.event.purpose, self.event.statistic, float(p), float(q))


def counted_event(
    event: Event, score: Score, threshold: float, counted: tuple[Array, Array], certified: Certified, doubt: float
) -> Event:
    """An event that is fixed, with bounds on its probabilities."""
    hits, alarms = (int((score(side) > threshold).sum()) for side in counted)
    tpr, fpr = certified.bounds(hits, alarms, len(counted[0]), doubt)
    return Event(event.purpose, event.statistic, float(tpr), float(fpr))


def purposes_of(certified: Certified) -> dict[str, Purpose]:
    """What an event may be good for, as a function of the bounds on its probabilities."""
    return {
        "mu": certified.mu_at_least,
        "epsilon": lambda p, q: epsilon_at_least(p, q, certified.delta),
        "loss": certified.excess,
    }


def chosen_events(
    choosing: tuple[Array, Array], target: Target, purposes: dict[str, Purpose], runs: int, doubt: float
) -> dict[str, tuple[Event, Score, float]]:
    """For each purpose the statistic and the threshold that promise most; half of the runs make the statistics.

    The simpler statistic is kept unless the other one promises clearly more: who takes the best of several guesses
    takes the luckiest.
    """
    (left, right), certified = choosing, target.certified
    best: dict[str, tuple[float, Event, Score, float]] = {}
    for name, score in target.statistics(left[::2], right[::2]).items():
        values = [np.sort(score(side[1::2])) for side in (left, right)]
        thresholds = _thresholds(np.concatenate(values))
        above = [len(side) - np.searchsorted(side, thresholds, side="right") for side in values]
        sizes = [len(side) for side in values]
        likely = (at_least(above[0], sizes[0], _USUAL_DOUBT), at_most(above[1], sizes[1], _USUAL_DOUBT))
        p, q = certified.bounds(likely[0] * runs, likely[1] * runs, runs, doubt)
        for purpose, worth in purposes.items():
            promised = worth(p, q)
            at = int(np.argmax(promised))
            if purpose not in best or promised[at] > best[purpose][0] + _CLEARLY * abs(best[purpose][0]):
                best[purpose] = (float(promised[at]), Event(purpose, name, 0.0, 1.0), score, float(thresholds[at]))
    return {purpose: found[1:] for purpose, found in best.items()}


def _thresholds(values: Array) -> Array:
    """Between neighbouring values if there are few, else quantiles."""
    distinct = np.unique(values)
    if distinct.size == 1:
        return distinct
    if distinct.size > _LEVELS.size:
        return np.unique(np.quantile(values, _LEVELS))
    return (distinct[1:] + distinct[:-1]) / 2
