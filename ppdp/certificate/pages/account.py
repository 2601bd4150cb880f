"""What people have spent, and what one more release would make of it: as far as the block ``issued`` knows."""

from __future__ import annotations

from bisect import bisect_left

from ppdp.certificate.numbers import draws_of, loss_of
from ppdp.certificate.pages.markup import Cell, code, element, points
from ppdp.certificate.pages.tradeoff import right_at, right_guesses, right_of_releases, times_in_100
from ppdp.certificate.record import Issued, LedgerEntry, Record
from ppdp.core.figures import figure
from ppdp.exceptions import BudgetExceeded
from ppdp.privacy.ledger.adaptive import Entry, GaussianAccount, refuse_overspend, total_epsilon

NO_LEDGER = "Unknown: no ledger."
TWICE = "The totals hold for anyone in all runs, even if the table changed."
OWN = "Before publishing, read its own page."
MOST_MORE = 100  # further releases that are counted one by one
_GAUSSIAN = GaussianAccount(strict=True)


def spent(c: Record, whom: str) -> Cell:
    """What all releases about these people come to, as far as a ledger or the process knows; ``whom`` can be asked."""
    issued = c.issued
    if issued is None:
        return f"Unknown: the certificate has an earlier form, which does not say. Ask {whom} for all releases."
    if issued.ledger is None:
        together = issued.together
        known = (
            "This release alone costs what stands in the headline."
            if together is None or together.delta >= 1
            else f"The {issued.fit} fits of its process come to {_pair(together.epsilon, together.delta)}."
        )
        return f"{NO_LEDGER} {known} Nothing is known of releases by anybody else: ask {whom} for all of them."
    ledger = issued.ledger
    return points(
        element("b", _charged(c, ledger)),
        _in_epsilon(c, ledger),
        _at_the_limit(c, ledger),
        f"Not counted: later releases (this page is of {day(issued)}: ask {whom} for the newest), and any not charged"
        f" to “{ledger.dataset}” in ledger {ledger.account}.",
    )


def _charged(c: Record, ledger: LedgerEntry) -> str:
    """How many releases, and what an attacker can do with all of them."""
    who = "one release, this one" if c.part_of is None else "one search, that this fit is the last of"
    if ledger.position > 1:
        who = f"{ledger.position} releases, this one included"
    if c.status == "SEEDED":
        return f"Under this name so far {who}."
    alone = _alone(c, ledger)
    right = right_at(float("inf") if ledger.epsilon is None else ledger.epsilon, ledger.delta)
    times = _times(min(right, right_guesses(c)) if alone else right)
    assumed = ", if what is assumed holds" if c.status == "CONDITIONAL" else ""
    only_if = assumed if alone else ", if what the releases rest on is true"
    return f"Under this name so far {who}: an attacker {times}{only_if}."


def _alone(c: Record, ledger: LedgerEntry) -> bool:
    """Whether the ledger holds this release and nothing else."""
    return ledger.position == 1 and c.part_of is None


def _times(right: float) -> str:
    times = times_in_100(right)
    return "may be right every time" if times >= 100 else f"is right at most {times} times in 100"


def _at_the_limit(c: Record, ledger: LedgerEntry) -> str:
    """What the ledger allows, and what an attacker could do if all of it were spent."""
    if ledger.limit is None:
        return "The ledger has no limit."
    allowed = f"If releases of any kind use up the limit, ε = {figure(ledger.limit.epsilon)}: "
    times = times_in_100(right_at(ledger.limit.epsilon, ledger.limit.delta))
    if c.status == "SEEDED":
        allowed = f"The limit is ε = {figure(ledger.limit.epsilon)}"
    elif times >= 100:
        allowed += "an attacker might be right every time"
    else:
        allowed += f"at most {times} in 100{_of_this_kind(c)}{_provided(c)}"
    return f"{allowed}."


def _in_epsilon(c: Record, ledger: LedgerEntry) -> str:
    """The same on the scale of the ledger, and why the headline has another figure."""
    at = f"δ = {figure(ledger.delta, upward=True)}"
    of = "" if ledger.limit is None else f" of {figure(ledger.limit.epsilon)}"
    used = "no ε covers it" if ledger.epsilon is None else f"ε = {figure(ledger.epsilon, upward=True)}{of}"
    used = f"Spent: {used} at {at}."
    if not _alone(c, ledger):
        this = "This release" if c.part_of is None else "This fit"
        return f"{used} {this} ({_pair(c.epsilon, c.delta)} in the headline) is included."
    if ledger.delta == c.delta:
        return f"{used} That is the ε of the headline: do not add the two."
    epsilon, delta = (figure(value, upward=True) for value in (c.epsilon, c.delta))
    return f"{used} The headline’s ε = {epsilon} is the same cost at δ = {delta}: do not add."


def _entry(c: Record) -> Entry | None:
    """What its ledger counts this release as, where it is Gaussian and all that the ledger holds; None if unknown.

    That is so if it alone comes to the ledger's total.
    """
    ledger = c.ledger
    loss = loss_of(c)
    if ledger is None or ledger.epsilon is None or ledger.position != 1 or loss.parts:
        return None
    failure = loss.failure + (1 - loss.failure) * loss.gate
    entry = Entry(1, ledger.dataset, "", loss.mu, failure, draws_of(c), c.rows_per_unit, "released", "")
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


def total_of_two(c: Record) -> float | None:
    """Epsilon of this release and one more like it, as its ledger adds up; infinite if refused, None if unknown."""
    entry, ledger = _entry(c), c.ledger
    if entry is None or ledger is None:
        return None
    return float("inf") if _exceeds(entry, ledger, 2) else total_epsilon([entry] * 2, ledger.delta, _GAUSSIAN)


def room(c: Record) -> int | None:
    """How many more releases like this one its ledger lets in, at most ``MOST_MORE``; None if unknown or no limit."""
    entry, ledger = _entry(c), c.ledger
    if entry is None or ledger is None or ledger.limit is None:
        return None
    return bisect_left(range(1, MOST_MORE + 1), True, key=lambda more: _exceeds(entry, ledger, more + 1))


def again(c: Record, whom: str) -> Cell:
    """Whether the same may be run once more, what that costs, and who refuses it."""
    if c.status == "SEEDED":
        return "No: give it secret noise first (no random_state)."
    issued, ledger = c.issued, c.ledger
    provided = _provided(c)
    if issued is None or ledger is None:
        return points(
            (
                element("b", "Yes, as a further release, if you accept its cost."),
                f" One more like this adds at most {_pair(*_own(c))} to what these people have spent{provided}.",
            ),
            f"Nobody counts or refuses it: charge all releases about these people to one ledger with a limit. {OWN}",
        )
    refuses = (
        "Charge it to the same name and ledger. That refuses nothing before it has a limit: give it one."
        if ledger.limit is None
        else "Charge it to the same name and ledger, also if rows or people were added or changed: that stops a run"
        " over the limit."
    )
    total = total_of_two(c)
    if total is None:
        return points(*_sums(c, ledger, provided, whom), TWICE, f"{refuses} {OWN}")
    if total == float("inf"):
        return points(element("b", "No: one more like it would exceed the limit."), TWICE, refuses)
    limit, at = ledger.limit, f"at δ = {figure(ledger.delta, upward=True)}"
    less = ledger.epsilon is not None and total < 2 * ledger.epsilon
    one = f"ε = {figure(total, upward=True)}{'' if limit is None else f' of {figure(limit.epsilon)}'} {at}"
    return points(
        (
            element(
                "b",
                "Yes, as a further release, if you accept its cost."
                if limit is None
                else f"Yes, if whoever set the limit agrees (not recorded: ask {whom}) and the newest page has room.",
            ),
            f" {_room_in_words(c, day(issued))}After one more like this the total is at most {one}, and an attacker"
            f" {_times(right_of_releases(c, 2))}{provided}.{' Several cost less than their sum.' if less else ''}",
        ),
        f"{refuses} {OWN}",
    )


def _room_in_words(c: Record, when: str) -> str:
    more = room(c)
    if more is None:
        return ""
    number = f"more than {MOST_MORE}" if more == MOST_MORE else str(more)
    return f"On {when} the limit had room for {number} more like this. "


def _of_this_kind(c: Record) -> str:
    """What an attacker can do if releases like this one use up the limit, where that is known."""
    more = room(c)
    if not more or more == MOST_MORE:
        return ""
    times = times_in_100(right_of_releases(c, more + 1))
    return f"; at most {times} if all {more + 1} are like this one" if times < 100 else ""


def _provided(c: Record) -> str:
    """The if behind a promise of a conditional certificate."""
    return "" if c.status == "UNCONDITIONAL" else " (if what is assumed holds)"


def _own(c: Record) -> tuple[float, float]:
    """What one more would cost: all of a search, not its last fit."""
    whole = c if c.part_of is None else c.part_of
    return whole.epsilon, whole.delta


def _sums(c: Record, ledger: LedgerEntry, provided: str, whom: str) -> tuple[Cell, ...]:
    """The same where only the sums of both epsilons and both deltas are known."""
    epsilon, delta = _own(c)
    total = ""
    if ledger.epsilon is not None:
        in_all = _pair(ledger.epsilon + epsilon, ledger.delta + delta)
        total = f", and then all comes to at most {in_all}, the sums"
    return (
        (
            element(
                "b",
                f"Yes, if whoever set the limit agrees (not recorded: ask {whom}) and it has room."
                if ledger.limit
                else "Yes, as a further release, if you accept its cost.",
            ),
            f" One more like this adds at most {_pair(epsilon, delta)}{total}{provided}.",
        ),
        (
            f"How many more fit, and what that makes at δ = {figure(ledger.delta, upward=True)}, this page cannot tell:"
            " for whoever has the ledger, ",
            code("ppdp ledger"),
            " tells what is spent.",
        ),
    )


def _pair(epsilon: float, delta: float) -> str:
    return f"ε = {figure(epsilon, upward=True)} at δ = {figure(delta, upward=True)}"


def day(issued: Issued) -> str:
    """When it was issued."""
    return issued.date[:10]
