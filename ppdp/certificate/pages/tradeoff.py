"""The whole trade-off that a certificate promises, as one Gaussian parameter with its errors: ``accounting.md``, 9 and 10.

A test that decides between two neighbouring datasets raises false alarms and misses. The trade-off function says how
often it misses at least, at each rate of false alarms; what is computed here is never above the true one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from ppdp.certificate.numbers import draws_of, loss_of, privacy_profile
from ppdp.certificate.pages.meaning import detection_power
from ppdp.certificate.record import Record
from ppdp.privacy.gaussian import gaussian_delta

_UP = 1 + 1e-9  # more than what rounding takes away


@dataclass(frozen=True, slots=True)
class GaussianSummary:
    """One number for the whole trade-off, with what it leaves out.

    Attributes
    ----------
    mu : float
        At every rate a of false alarms a test misses at least ``f(a + slack) - slack``, where ``f(x)`` is
        ``Φ(Φ⁻¹(1 - x) - mu)``.
    slack : float
        What no Gaussian curve covers: the sampler's error and chances of failure, or the certificate's delta.
    error : float
        How far the trade-off that the certificate promises is better than that of ``mu``, at most: the least e with
        ``T(a + e) - e <= f(a)`` for all a. 0 if everything released is Gaussian.
    """

    mu: float
    slack: float
    error: float


def missed(c: Record, false_alarm: float) -> float:
    """How often a test misses at least, at this rate of false alarms."""
    return max(0.0, 1 - detection_power(c, false_alarm), 2 - 2 * right_guesses(c) - false_alarm)


def gaussian_missed(summary: GaussianSummary, false_alarm: float) -> float:
    """The same as the Gaussian parameter tells it, with what it leaves out."""
    level = min(1.0, false_alarm + summary.slack)
    return max(0.0, float(ndtr(-ndtri(level) - summary.mu)) - summary.slack)


def right_guesses(c: Record) -> float:
    """Probability, at most, of choosing rightly between two neighbouring datasets that are equally likely."""
    loss, sampler = loss_of(c), draws_of(c)
    found = [loss.delta(0.0) + 2 * sampler]
    for delta, epsilon in privacy_profile(c) if loss.parts else ():
        found.append(delta + (1 - delta) * math.tanh(epsilon / 2))
    return float(min(1.0, 0.5 + min(found) / 2))


def gaussian_summary(c: Record) -> GaussianSummary:
    """The parameter of Gaussian differential privacy of everything that was released, and its errors."""
    loss = loss_of(c)
    if not loss.parts:
        return GaussianSummary(loss.mu, min(1.0, loss.failure + loss.gate + draws_of(c)), 0.0)
    pairs = [(delta, epsilon) for delta, epsilon in privacy_profile(c) if epsilon < 700]
    pairs += [(2 * right_guesses(c) - 1, 0.0)]
    slack = float(c.delta)
    mu = _least_mu(pairs, slack)
    excess = ((gaussian_delta(mu, float(epsilon)) - delta) / (1 + math.exp(epsilon)) for delta, epsilon in pairs)
    return GaussianSummary(mu, slack, float(max(0.0, *excess)))


def _least_mu(pairs: list[tuple[float, float]], slack: float) -> float:
    """Least mu whose curve, moved by ``slack`` both ways, lies nowhere above that of the pairs.

    Between its corners the curve of the pairs is straight, and a Gaussian one convex, so that corners decide; it is its
    own mirror image, so that half of them do.
    """
    delta, factor = np.array([d for d, _ in pairs]), np.exp([e for _, e in pairs])
    middle = np.max((1 - delta) / (1 + factor))
    first, second = np.triu_indices(len(pairs), 1)
    apart = factor[first] != factor[second]
    corners = (delta[second] - delta[first])[apart] / (factor[first] - factor[second])[apart]
    alarms = np.array([middle, *corners[(corners >= 0) & (corners < middle)]])
    detected = np.min(factor[:, None] * alarms + (delta - slack)[:, None], axis=0)
    bound = (detected > 0) & (alarms + slack < 1)
    found = ndtri(np.minimum(detected[bound], 1.0)) - ndtri(alarms[bound] + slack)
    return float(max(0.0, *found)) * _UP if len(found) else 0.0


def guess_in_words(c: Record) -> str:
    """What everything together means for one person, without what must precede it."""
    times = math.ceil(100 * right_guesses(c))
    choice = c.neighbours.alternatives.replace("that person", "one person").replace("that row", "one row")
    right = "may be right every time" if times >= 100 else f"is right at most {times} times in 100"
    return f"choosing between {choice}, both equally likely, an attacker {right}; without this release, 50 times"
