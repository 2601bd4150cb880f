"""What a certificate promises, what people have spent, and what one more release would make of it, as far as it knows.

As an attacker's success, and as one Gaussian parameter: ``accounting.md``, 7, 9 and 10.

A test that decides between two neighbouring datasets raises false alarms and misses. The trade-off function says how
often it misses at least, at each rate of false alarms; what is computed here is never above the true one.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from ppdp.certificate.guarantee import draws_of, loss_of, privacy_profile
from ppdp.certificate.issue_record import LedgerEntry
from ppdp.certificate.record import Record
from ppdp.core.figures import figure
from ppdp.exceptions import BudgetExceeded
from ppdp.privacy.gaussian import gaussian_delta
from ppdp.privacy.ledger.privacy_filter import Entry, GaussianAccount, composed, refuse_overspend, total_epsilon
from ppdp.privacy.loss import PrivacyLoss

Array = NDArray[np.float64]
NARROW = "\u202f"  # space within a number
FALSE_ALARMS = (0.01, 0.05)
ALARMS = [(i / 60) ** 2 for i in range(61)]  # of the curve: denser where it is steep
LEFT, RIGHT, TOP, BOTTOM = 48.0, 342.0, 26.0, 182.0  # of the square of all rates, as in ``figures.html``
MOST_MORE = 100  # further releases that are counted one by one
_GAUSSIAN = GaussianAccount(strict=True)
_TOLD = 1e-3  # of an epsilon: what it has to differ by to be told beside another
SURE, RARE = 0.9, 1e-6  # shares of claims that are right, and of cases in which they are made
_UP = 1 + 1e-9  # more than what rounding takes away
_UP_OF_ROOT = 1 + 1e-6  # more than what it is off
_STEPS, _MOST = 32, 700.0  # of the grid of epsilons, and the largest of them that can be told


@dataclass(frozen=True, slots=True)
class GaussianSummary:
    """One number for the whole trade-off, with what it leaves out."""

    mu: float  # at every rate a of false alarms a test misses at least Φ(Φ⁻¹(1 - a - slack) - mu) - slack
    slack: float  # what no Gaussian curve covers: the sampler's error and chances of failure, or delta
    error: float  # how far the promised trade-off T is better, at most: the least e with T(a + e) - e <= f(a) for all a


def detection_power(content: Record, false_alarm: float) -> float:
    """Most often that an attacker's test can be right, at a given probability of an alarm on the other dataset.

    ``f + (1 - f) Φ(μ + Φ⁻¹((α + t)/(1 - f))) + t + g`` with f = failure, t = the sampler's total variation and g =
    delta of a gate under the "max" rule (else 0);
    where not everything is Gaussian, the least that a pair (epsilon, delta) which the certificate promises allows.
    Source: ``docs/theory/accounting.md``, 7.
    """
    total, loss = content.total, loss_of(content)
    failure, passing = loss.failure, loss.gate
    if failure >= 1:
        return 1.0
    if total.parts:
        promised = [pair for pair in privacy_profile(content) if math.isfinite(pair[1])]
        return min(_power_of_pair(*pair, false_alarm) for pair in promised)
    sampler = draws_of(content)
    level = min(1.0, (false_alarm + sampler) / (1 - failure))
    ideal = failure + (1 - failure) * float(ndtr(total.mu + ndtri(level)))
    return min(1.0, ideal + sampler + passing)


def _power_of_pair(delta: float, epsilon: float, false_alarm: float) -> float:
    """What one pair (epsilon, delta) allows, whichever of the two datasets is tested for."""
    factor = math.exp(min(epsilon, 700.0))
    return max(0.0, min(1.0, factor * false_alarm + delta, 1 - (1 - false_alarm - delta) / factor))


def gaussian_missed(summary: GaussianSummary, false_alarm: float) -> float:
    """How often a test misses at least, as the Gaussian parameter tells it, with what it leaves out."""
    level = min(1.0, false_alarm + summary.slack)
    return max(0.0, float(ndtr(-ndtri(level) - summary.mu)) - summary.slack)


def right_guesses(c: Record) -> float:
    """Probability, at most, of choosing rightly between two neighbouring datasets that are equally likely."""
    apart = _apart(loss_of(c), draws_of(c))
    if c.total.parts:
        delta, factor = _pairs(c)
        apart = min(apart, float(np.min((factor - 1 + 2 * delta) / (factor + 1))))
    return min(1.0, 0.5 + apart / 2)


def right_alarms(false_alarm: float, power: float) -> float:
    """Share of a test's alarms that are right, at most, with its power as it is shown (``accounting.md``, 9)."""
    shown = min(1.0, math.ceil(10_000 * power) / 10_000)
    return shown / (shown + false_alarm)


def surest(c: Record) -> float:
    """Share of the guesses at even chances that an attacker is surest of: those with ``FALSE_ALARMS[0]``, either way.

    No more of them than ``right_alarms`` are right. Source: ``docs/theory/accounting.md``, 9.
    """
    return min(1.0, FALSE_ALARMS[0] + detection_power(c, FALSE_ALARMS[0]))


def mostly_right(c: Record) -> float:
    """How often a claim is made, at most, where it is true, if more than ``SURE`` of such claims are right.

    At even chances; the least that is told is ``RARE``. Source: ``docs/theory/accounting.md``, 9.
    """
    odds = SURE / (1 - SURE)

    def beyond(false_alarm: float) -> float:
        return detection_power(c, false_alarm) - odds * false_alarm

    if beyond(RARE / odds) <= 0:
        return RARE
    if beyond(1 / odds) >= 0:
        return 1.0
    return min(1.0, odds * float(brentq(beyond, RARE / odds, 1 / odds, xtol=1e-18)) * _UP_OF_ROOT)


def right_of_two_rows(c: Record) -> float:
    """The same about two people, or a person with two rows where one row is protected: distances of two steps add."""
    return min(1.0, 2 * right_guesses(c) - 0.5)


def right_of(loss: PrivacyLoss, draws: float) -> float:
    """The same of a loss, and the total variation of the draws of its noise."""
    return min(1.0, 0.5 + _apart(loss, draws) / 2)


def right_of_releases(c: Record, times: int) -> float:
    """The same of what so many releases like this one tell together."""
    return right_of(loss_of(c) * times, times * draws_of(c))


def right_at(epsilon: float, delta: float) -> float:
    """The same of whatever is (epsilon, delta)-private: ``(exp(epsilon) + delta) / (exp(epsilon) + 1)``."""
    small = math.exp(-epsilon)
    return min(1.0, (1 + delta * small) / (1 + small) * _UP)


def times_in_100(right: float) -> int:
    """A probability for people, never rounded down."""
    return math.ceil(100 * right)


def gaussian_summary(c: Record) -> GaussianSummary:
    """The parameter of Gaussian differential privacy of everything that was released, and its errors."""
    loss = loss_of(c)
    if not loss.parts:
        return GaussianSummary(loss.mu, min(1.0, loss.failure + loss.gate + draws_of(c)), 0.0)
    delta, factor = _pairs(c)
    mu = _least_mu(delta, factor, float(c.delta))
    ideal = np.array([gaussian_delta(mu, float(epsilon)) for epsilon in np.log(factor)])
    return GaussianSummary(mu, float(c.delta), float(max(0.0, np.max((ideal - delta) / (1 + factor)))))


def _pairs(c: Record) -> tuple[Array, Array]:
    """Every delta with the exp(epsilon) that is promised there: the profile, a grid of epsilons, and epsilon 0."""
    promised = ((delta, epsilon) for delta, epsilon in privacy_profile(c) if epsilon < _MOST)
    grid = _grid(loss_of(c), draws_of(c), float(c.epsilon))
    delta, epsilon = np.transpose([*promised, *grid])
    return delta, np.exp(epsilon)


@lru_cache(maxsize=8)
def _grid(loss: PrivacyLoss, draws: float, epsilon: float) -> tuple[tuple[float, float], ...]:
    """Pairs (delta, epsilon) up to twice the epsilon that is claimed."""
    epsilons = [i * 2 * min(epsilon, _MOST / 2) / _STEPS for i in range(1, _STEPS + 1)]
    return (_apart(loss, draws), 0.0), *((min(1.0, loss.delta(e) + (1 + math.exp(e)) * draws), e) for e in epsilons)


@lru_cache(maxsize=8)
def _apart(loss: PrivacyLoss, draws: float) -> float:
    """Total variation distance, at most, of what is released of two neighbouring datasets."""
    return min(1.0, float(loss.delta(0.0)) + 2 * draws)


def _least_mu(delta: Array, factor: Array, slack: float) -> float:
    """Least mu whose curve, moved by ``slack`` both ways, lies nowhere above that of the pairs.

    Between its corners the curve of the pairs is straight, and a Gaussian one convex, so that corners decide; it is its
    own mirror image, so that half of them do.
    """
    middle = np.max((1 - delta) / (1 + factor))
    first, second = np.triu_indices(len(delta), 1)
    apart = factor[first] != factor[second]
    corners = (delta[second] - delta[first])[apart] / (factor[first] - factor[second])[apart]
    alarms = np.array([middle, *corners[(corners >= 0) & (corners < middle)]])
    detected = np.min(factor[:, None] * alarms + (delta - slack)[:, None], axis=0)
    bound = (detected > 0) & (alarms + slack < 1)
    found = ndtri(np.minimum(detected[bound], 1.0)) - ndtri(alarms[bound] + slack)
    return float(max(0.0, *found)) * _UP if len(found) else 0.0


def rho(c: Record) -> float | None:
    """Of zero-concentrated differential privacy, where all noise is Gaussian: then half of the square of mu, exactly.

    As mu, it is meant but for the probability that nothing is promised and for the sampler's error.
    """
    return None if c.total.parts or not c.total.mu else c.total.mu**2 / 2


def guess_in_words(c: Record) -> str:
    """What everything together means for one person, without what must precede it."""
    times = times_in_100(right_guesses(c))
    right = "may be right every time" if times >= 100 else f"is right at most {times} times in 100, averaged over noise"
    knows = f"an attacker who knows {c.neighbours.phrases.known} and must guess {c.neighbours.phrases.asked}"
    return f"at even chances, {knows} {right}; blind guessing, 50"


def outcome_in_words(c: Record) -> str:
    """What epsilon and delta say of any outcome: ``P(M(D) in S) <= exp(epsilon) P(M(D') in S) + delta``."""
    factor = figure(math.exp(c.epsilon), 3, upward=True) if c.epsilon < _MOST else "any number"
    secret = c.neighbours.phrases.secret
    told, n = f"{secret} can multiply any outcome's chance by at most {factor} (ε)", c.entrance.domain["n_rows"]
    if not c.delta:
        return f"{told}."
    alone = c.neighbours.row_level and c.neighbours.rows == 1  # one of n rows at random, as it is, is (0, 1/n)-private
    whole = f"; publishing one row at random has 1 in {figure(n)}" if alone else ""
    return f"{told}, plus 1 in {one_of(float(c.delta))} (δ{whole})."


def one_of(share: float) -> str:
    """A share as one in so many, of which two digits are told, rounded down: never rarer than it is."""
    many = int(1 / share * _UP)
    step = 10 ** max(0, len(str(many)) - 2)
    return f"{many // step * step:_}".replace("_", NARROW)


def rounded_up(share: float) -> str:
    """A share as a percentage with two decimals, never rounded down."""
    return f"{min(math.ceil(share * 10_000), 10_000) / 100:.2f}\u00a0%"


def powers_in_words(content: Record) -> str:
    """What is detected at most, at each rate of false alarms."""
    shares = ((rounded_up(detection_power(content, alarm)), figure(100 * alarm)) for alarm in FALSE_ALARMS)
    return " and ".join(f"{power} at {alarms}\u00a0% false alarms" for power, alarms in shares)


def power_curve(c: Record) -> dict[str, Any]:
    """What a test detects at most, against its false alarms; also as the Gaussian parameter has it, if that errs."""
    summary = gaussian_summary(c)
    return {
        "detects": powers_in_words(c),
        "marks": [_place(alarm, detection_power(c, alarm)) for alarm in FALSE_ALARMS],
        "power": [_place(alarm, detection_power(c, alarm)) for alarm in ALARMS],
        "gauss": [_place(alarm, 1 - gaussian_missed(summary, alarm)) for alarm in ALARMS] if summary.error else [],
    }


def _place(alarm: float, detected: float) -> tuple[float, float]:
    """Of two rates, from the left and from the top."""
    return LEFT + (RIGHT - LEFT) * alarm, BOTTOM - (BOTTOM - TOP) * detected


@dataclass(frozen=True, slots=True)
class LedgerView:
    """What the ledger of a release says; an attacker's success is told as right guesses in 100, at most."""

    entry: LedgerEntry  # as the certificate has it
    alone: bool  # whether the ledger holds this release and nothing else
    right: int  # by everything that was released so far
    right_at_limit: int | None  # if releases of any kind use up the limit; None without one
    right_of_this_kind: int | None  # if all of them are like this one, where that is known and not 100
    room: int | None  # how many more like this one the limit admits
    total: float | None  # epsilon of this release and one more like it; infinite if refused, None if unknown
    right_of_two: int  # by these two
    exact: float | None  # epsilon of everything so far as its noise composes; None if unknown or the ledger's own
    exact_of_more: float | None  # with one more release like this one; None if unknown
    right_of_more: int  # by these

    @property
    def refused(self) -> bool:
        """Whether one more like it would exceed the limit."""
        return self.total == math.inf


def ledger_view(c: Record) -> LedgerView | None:
    """What its ledger says; None without one."""
    ledger = c.ledger
    if ledger is None:
        return None
    alone, limit, more = ledger.position == 1 and c.part_of is None, ledger.limit, room(c)
    so_far, more_of_it = _sums(c)
    right = right_at(math.inf if ledger.epsilon is None else ledger.epsilon, ledger.delta)
    right = min([right, *(right_of(entry.loss, entry.total_variation) for entry in so_far)])
    exact = total_epsilon(so_far, ledger.delta, None) if so_far else math.inf
    with_more = total_epsilon(more_of_it, ledger.delta, None) if more_of_it else math.inf
    known = more is not None and 0 < more < MOST_MORE
    of_kind = times_in_100(right_of_releases(c, (more or 0) + 1)) if known else 100
    draws = math.fsum(entry.total_variation for entry in more_of_it)
    return LedgerView(
        entry=ledger,
        alone=alone,
        right=times_in_100(min(right, right_guesses(c)) if alone else right),
        right_at_limit=None if limit is None else times_in_100(right_at(limit.epsilon, limit.delta)),
        right_of_this_kind=of_kind if of_kind < 100 else None,
        room=more,
        total=total_of_two(c),
        right_of_two=times_in_100(right_of_releases(c, 2)),
        exact=exact if exact * (1 + _TOLD) < (ledger.epsilon or math.inf) else None,
        exact_of_more=with_more if math.isfinite(with_more) else None,
        right_of_more=times_in_100(right_of(composed(more_of_it), draws)),
    )


def _sums(c: Record) -> tuple[list[Entry], list[Entry]]:
    """All that its ledger holds, and that with one more release like this one, as spends that are there or are not."""
    ledger, loss = c.ledger, loss_of(c)
    if ledger is None or ledger.composed is None:
        return [], []
    sums = ledger.composed.mu, ledger.composed.failure, ledger.composed.total_variation
    so_far = Entry(1, ledger.dataset, "", *sums, 1, "released", "")
    return [so_far], [] if c.part_of is not None or loss.parts else [so_far, _as_entry(c, ledger, 2, 1)]


def _as_entry(c: Record, ledger: LedgerEntry, position: int, rows: int) -> Entry:
    """What its ledger counts this release as."""
    loss = loss_of(c)
    failure = loss.failure + (1 - loss.failure) * loss.gate  # with which nothing is promised beside other spends
    return Entry(position, ledger.dataset, "", loss.mu, failure, draws_of(c), rows, "released", "")


def total_of_two(c: Record) -> float | None:
    """Epsilon of this release and one more like it, as its ledger adds up; infinite if refused, None if unknown."""
    entry, ledger = _entry(c), c.ledger
    if entry is None or ledger is None:
        return None
    return math.inf if _exceeds(entry, ledger, 2) else total_epsilon([entry] * 2, ledger.delta, _GAUSSIAN)


def room(c: Record) -> int | None:
    """How many more releases like this one its ledger lets in, at most ``MOST_MORE``; None if unknown or no limit."""
    entry, ledger = _entry(c), c.ledger
    if entry is None or ledger is None or ledger.limit is None:
        return None
    return bisect_left(range(1, MOST_MORE + 1), True, key=lambda more: _exceeds(entry, ledger, more + 1))


def _entry(c: Record) -> Entry | None:
    """What its ledger counts this release as, where it is Gaussian and all that the ledger holds; None if unknown.

    That is so if it alone comes to the ledger's total.
    """
    ledger, loss = c.ledger, loss_of(c)
    if ledger is None or ledger.epsilon is None or ledger.position != 1 or loss.parts:
        return None
    entry = _as_entry(c, ledger, 1, c.rows_per_unit)
    alone = total_epsilon([entry], ledger.delta, _GAUSSIAN)
    return entry if abs(alone - ledger.epsilon) <= 1e-6 * ledger.epsilon else None


def _exceeds(entry: Entry, ledger: LedgerEntry, times: int) -> bool:
    """Whether the ledger would refuse the last of so many releases like this one."""
    if ledger.limit is None:
        return False
    try:
        refuse_overspend([entry] * times, ledger.limit.epsilon, ledger.limit.delta, _GAUSSIAN)
    except BudgetExceeded:
        return True
    return False
