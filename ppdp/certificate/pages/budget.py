"""What people have spent, and what one more release would make of it: as far as the block ``issued`` knows."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass

from ppdp.certificate.guarantee import draws_of, loss_of
from ppdp.certificate.issue_record import LedgerEntry
from ppdp.certificate.pages.interpretation import right_at, right_guesses, right_of, right_of_releases, times_in_100
from ppdp.certificate.record import Record
from ppdp.exceptions import BudgetExceeded
from ppdp.privacy.ledger.privacy_filter import Entry, GaussianAccount, composed, refuse_overspend, total_epsilon
from ppdp.privacy.loss import PrivacyLoss

MOST_MORE = 100  # further releases that are counted one by one
_GAUSSIAN = GaussianAccount(strict=True)
_TOLD = 1e-3  # of an epsilon: what it has to differ by to be told beside another


@dataclass(frozen=True, slots=True)
class LedgerView:
    """What the ledger of a release says, as an attacker's success in 100 guesses.

    Attributes
    ----------
    entry : LedgerEntry
        As the certificate has it.
    alone : bool
        Whether the ledger holds this release and nothing else.
    right : int
        Right guesses, at most, by everything that was released so far.
    right_at_limit : int or None
        The same if releases of any kind use up the limit; None without one.
    right_of_this_kind : int or None
        The same if all of them are like this one, where that is known and not 100.
    room : int or None
        How many more like this one the limit admits.
    total : float or None
        Epsilon of this release and one more like it; infinite if the ledger refuses it, None if unknown.
    right_of_two : int
        Right guesses by these two.
    exact : float or None
        Epsilon of everything so far as its noise composes, at the entry's delta; None if the entry does not tell, or if
        it is the ledger's own figure.
    exact_of_more : float or None
        The same with one more release like this one; None if the entry does not tell.
    right_of_more : int
        Right guesses by these.
    """

    entry: LedgerEntry
    alone: bool
    right: int
    right_at_limit: int | None
    right_of_this_kind: int | None
    room: int | None
    total: float | None
    right_of_two: int
    exact: float | None
    exact_of_more: float | None
    right_of_more: int

    @property
    def known(self) -> bool:
        """Whether the noise of the others is known."""
        return self.entry.composed is not None

    @property
    def refused(self) -> bool:
        """Whether one more like it would exceed the limit."""
        return self.total == math.inf

    @property
    def cheaper(self) -> bool:
        """Whether two cost less than twice what one costs."""
        return self.total is not None and self.entry.epsilon is not None and self.total < 2 * self.entry.epsilon


def ledger_view(c: Record) -> LedgerView | None:
    """What its ledger says; None without one."""
    ledger = c.ledger
    if ledger is None:
        return None
    alone, limit, more = ledger.position == 1 and c.part_of is None, ledger.limit, room(c)
    right = right_at(math.inf if ledger.epsilon is None else ledger.epsilon, ledger.delta)
    so_far, more_of_it = _sums(c)
    right = min([right, *(right_of(entry.loss, entry.total_variation) for entry in so_far)])
    exact = total_epsilon(so_far, ledger.delta, None) if so_far else math.inf
    known = more is not None and 0 < more < MOST_MORE
    of_kind = times_in_100(right_of_releases(c, (more or 0) + 1)) if known else 100
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
        exact_of_more=_finite(total_epsilon(more_of_it, ledger.delta, None)) if more_of_it else None,
        right_of_more=times_in_100(
            right_of(composed(more_of_it), math.fsum(entry.total_variation for entry in more_of_it))
        ),
    )


def _sums(c: Record) -> tuple[list[Entry], list[Entry]]:
    """All that its ledger holds, and that with one more release like this one, as spends that are there or are not."""
    ledger, loss = c.ledger, loss_of(c)
    if ledger is None or ledger.composed is None:
        return [], []
    sums = ledger.composed.mu, ledger.composed.failure, ledger.composed.total_variation
    so_far = Entry(1, ledger.dataset, "", *sums, 1, "released", "")
    more = Entry(2, ledger.dataset, "", loss.mu, _failure(loss), draws_of(c), 1, "released", "")
    return [so_far], [] if c.part_of is not None or loss.parts else [so_far, more]


def _failure(loss: PrivacyLoss) -> float:
    """Probability with which nothing is promised beside other spends."""
    return loss.failure + (1 - loss.failure) * loss.gate


def _finite(epsilon: float) -> float | None:
    return epsilon if math.isfinite(epsilon) else None


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
    entry = Entry(1, ledger.dataset, "", loss.mu, _failure(loss), draws_of(c), c.rows_per_unit, "released", "")
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
