"""Bets against claims: a test that holds whenever one looks at it, ``docs/theory/sequential-audit.md``.

A claim allows ``p <= s q + d`` for the probabilities of an event on two neighbouring datasets. A player who stakes λ
wins ``λ (1[event on the left] - s 1[event on the right] - d)`` for each unit of wealth. If the claim is true wealth
does not grow on average, so it ever becomes 1/α times as large with probability at most α (Ville, 1939). Event, line
and stake of the next runs may depend on all earlier ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtr, ndtri

from ppdp.data.rows import Array
from ppdp.testing.confidence import Certified

_KEPT = 0.7  # of the stake that would let wealth grow fastest if the shares seen so far were the probabilities
_MOST = 0.9  # of wealth that one pair of runs can lose
_ROUNDING = 1e-9  # by which lines are raised
_STEPS = 30  # of bisection
_SHARES = np.linspace(0, 2, 201)  # of what is claimed

Lines = Callable[[float, float], tuple[Array, Array]]
"""From guesses of an event's probabilities to slopes and heights of lines that it is not above, one for each claim."""


@dataclass
class Bets:
    """A player against each of several claims, the strongest first; whatever one of them allows, the next one does.

    Attributes
    ----------
    values : ndarray
        One for each claim.
    lines : callable
        What each allows.
    off : float
        Total variation by which what runs may differ from what has the loss.
    """

    values: Array
    lines: Lines
    off: float
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
