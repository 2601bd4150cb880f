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

MOST_MORE = 100  # further releases that are counted one by one
_GAUSSIAN = GaussianAccount(strict=True)
_TOLD = 1e-3  # of an epsilon: what it has to differ by to be told beside another


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
