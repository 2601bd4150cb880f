"""What counted events prove about a privacy loss.

An event is a set of outcomes that was fixed before anything was counted. It has probability p on the left dataset and q
on the right one; a lower bound on p and an upper bound on q, both exact (Clopper and Pearson, 1934), say how far the
event alone refutes a claim. Its complement, seen from the right, is judged by the same two numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, ndtr, ndtri
from scipy.stats import beta, binom

from ppdp.core.checks import number
from ppdp.data.rows import Array
from ppdp.exceptions import InvalidParameter
from ppdp.privacy.loss import PrivacyLoss

_EPSILONS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)  # where profiles are compared
_LARGE = 700.0  # an epsilon that no number of runs refutes
_ROUNDING = 1e-9  # more than the bounds on probabilities may be off by
_LEAST = 2.0**-52  # what is left of 1 - p where p is rounded


def check_confidence(confidence: Any) -> float:
    """A probability that leaves some doubt: above 0, and not so near to 1 that float64 cannot tell."""
    real = isinstance(confidence, Real) and not isinstance(confidence, bool)
    if not real or not 0 < confidence <= 1 - 1e-15:
        what = f"confidence must be a number above 0 and below 1, got {confidence!r}."
        raise InvalidParameter(what, fix="such as 1 - 1e-6.")
    return float(confidence)


def check_claim(loss: Any, delta: Any) -> None:
    """Refuse what is no loss, or no delta in [0, 1) at which its epsilon is compared."""
    if not isinstance(loss, PrivacyLoss):
        raise InvalidParameter(f"loss must be a PrivacyLoss, not a {type(loss).__name__}.", fix="PrivacyLoss(mu=1.0).")
    if number("delta", delta, least=0, fix="0 <= delta < 1.") >= 1:
        raise InvalidParameter(f"delta must be below 1, got {delta!r}.", fix="0 <= delta < 1.", parameter="delta")


def at_least(successes: ArrayLike, runs: float, doubt: float) -> Array:
    """Clopper-Pearson lower bound on a probability, which fails with probability at most ``doubt``.

    >>> float(at_least(0, 100, 0.05)), round(float(at_least(100, 100, 0.05)), 4)
    (0.0, 0.9705)
    """
    counted = np.asarray(successes, dtype=np.float64)
    return np.where(counted > 0, beta.ppf(doubt, np.maximum(counted, 1e-9), runs - counted + 1), 0.0)


def at_most(successes: ArrayLike, runs: float, doubt: float) -> Array:
    """Clopper-Pearson upper bound on a probability, which fails with probability at most ``doubt``."""
    return np.asarray(1 - at_least(runs - np.asarray(successes, dtype=np.float64), runs, doubt))


def mu_at_least(p: ArrayLike, q: ArrayLike, lost: float = 0.0) -> Array:
    """Least mu of a mu-GDP mechanism, but for a probability ``lost``, with such an event; negative: nothing is shown.

    The trade-off of N(0, 1) and N(mu, 1) is ``p <= Φ(mu + Φ⁻¹(q))`` (Dong, Roth and Su, 2022); of what is promised but
    for a probability f, ``f + (1 - f) Φ(mu + Φ⁻¹(q / (1 - f)))``.
    """
    kept = 1 - lost
    high, low = np.maximum(np.asarray(p) - lost, 0.0) / kept, np.minimum(np.asarray(q) / kept, 1.0)
    return np.asarray(ndtri(np.where(low < 1, high, 0.0)) - ndtri(low))


def epsilon_at_least(p: ArrayLike, q: ArrayLike, delta: float) -> Array:
    """Least epsilon of an (epsilon, delta)-private mechanism with such an event; 0 if nothing is shown."""
    p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    found = np.zeros(np.broadcast(p, q).shape)
    for high, low in ((p, q), (1 - q, 1 - p)):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            found = np.fmax(found, np.log((high - delta) / low))
    return found


def guessed_at_most(right: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """The most likely it may be that so many of so many guesses are right.

    Each of ``canaries`` fair coins decides one row of what an (epsilon, delta)-private mechanism is given; from what it
    releases, the coins of ``guesses`` of them are guessed. Of r guesses at least v are right with at most the
    probability that a binomial number of r trials of chance e^ε / (1 + e^ε) is at least v, and m δ / (v (1 - ρ)) with
    ρ = e^ε (r - v) / (v + 1), if that is below 1: Theorem 1 of ``docs/theory/membership.md``, which sharpens
    Theorem 5.2 of Steinke, Nasr and Jagielski (2023).

    >>> round(guessed_at_most(90, 100, 1000, 1.0, 0.0), 6), round(guessed_at_most(90, 100, 1000, 1.0, 1e-5), 6)
    (2.7e-05, 0.000186)
    """
    falling = math.exp(min(epsilon, _LARGE)) * (guesses - right) / (right + 1)
    if right <= 0 or falling >= 1:
        return 1.0
    chance = float(binom.sf(right - 1, guesses, expit(epsilon)))
    return min(1.0, chance + canaries * delta / (right * (1 - falling)))


@dataclass(frozen=True, slots=True)
class Certified:
    """What is certified, in the form in which events can refute it: the loss, and the end-to-end promise.

    ``off`` is the total variation by which what runs may differ from what has this loss: the noise sampler's.
    """

    loss: PrivacyLoss
    epsilon: float
    delta: float
    off: float = 0.0

    @property
    def gaussian(self) -> bool:
        """Whether the claim is mu-GDP, but for a probability with which nothing is promised."""
        return not self.loss.parts and self.lost < 1

    @property
    def lost(self) -> float:
        """With which probability nothing is promised: that of a failure, or of a gate that lets pass what it must not.

        Behind a gate one of the two is the case, so the larger one covers both.
        """
        return max(self.loss.failure, self.loss.gate)

    def mu_at_least(self, p: ArrayLike, q: ArrayLike) -> Array:
        """What an event shows of mu, see :func:`mu_at_least`; nothing where the claim is another one."""
        return mu_at_least(p, q, self.lost if self.lost < 1 else 0.0)

    def bounds(self, hits: ArrayLike, alarms: ArrayLike, runs: float, doubt: float) -> tuple[Array, Array]:
        """Bounds (p, q) on an event's probabilities by counts in ``runs`` on each side, less the sampler's error."""
        p, q = at_least(hits, runs, doubt), at_most(alarms, runs, doubt)
        return np.maximum(p - self.off, 0.0), np.minimum(q + self.off, 1.0)

    def excess(self, p: ArrayLike, q: ArrayLike) -> Array:
        """By how much an event, or its complement, is more likely than certified; above 0 the claim is refuted.

        What is certified allows for ``p <= e^ε q + δ(ε)``, of which the worst of some epsilons counts, the end-to-end
        promise among them, and where all is Gaussian for the trade-off of :func:`mu_at_least`.
        """
        p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
        return np.maximum(p - self.allowed(q), 1 - q - self.allowed(1 - p))

    def allowed(self, q: ArrayLike) -> Array:
        """The most that an event may have on one dataset where it has at most ``q`` on the other; it may exceed 1."""
        low = np.minimum(np.asarray(q, dtype=np.float64) + _LEAST, 1.0)
        found = np.min([math.exp(epsilon) * low + delta for epsilon, delta in self.profile], axis=0)
        if not self.gaussian:
            return np.asarray(found)
        kept = 1 - self.lost
        return np.minimum(found, self.lost + kept * ndtr(self.loss.mu + ndtri(np.minimum(low / kept, 1.0))))

    @property
    def profile(self) -> list[tuple[float, float]]:
        """Pairs (epsilon, delta) that are certified, the end-to-end promise among them."""
        promised = [(self.epsilon, self.delta)] if self.epsilon < _LARGE else []
        return [*zip(_EPSILONS, _profile(self.loss).tolist()), *promised]

    def refuted(self, p: ArrayLike, q: ArrayLike) -> bool:
        """Whether an event refutes the claim: its loss, its mu, or its epsilon at delta."""
        return bool(np.any(self.excess(p, q) > _ROUNDING))


@lru_cache(maxsize=64)
def _profile(loss: PrivacyLoss) -> Array:
    return np.array([loss.delta(epsilon) for epsilon in _EPSILONS])
