"""What people have spent, and what one more release would make of it: as far as the block ``issued`` knows."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from ppdp.certificate.numbers import draws_of, loss_of
from ppdp.certificate.pages.markup import Cell, code, element
from ppdp.certificate.pages.tradeoff import right_at, right_guesses, right_of_two_releases, times_in_100
from ppdp.certificate.record import Issued, LedgerEntry, Record
from ppdp.core.figures import figure
from ppdp.exceptions import BudgetExceeded
from ppdp.privacy.ledger.adaptive import Entry, GaussianAccount, refuse_overspend, total_epsilon

NO_LEDGER = "Unknown: no ledger."
TWICE = " People in both tables are charged twice, also if the table has changed."


def spent(c: Record) -> Cell:
    """What all releases about these people come to, as far as a ledger or the process knows."""
    issued = c.issued
    if issued is None:
        return "Unknown: the certificate has an earlier form, which does not say."
    if issued.ledger is None:
        together = issued.together
        known = (
            "This release alone costs what stands in the headline."
            if together is None or together.delta >= 1
            else f"The {issued.fit} fits of its process come to {_pair(together.epsilon, together.delta)}."
        )
        return f"{NO_LEDGER} {known} Nothing is known of releases by anybody else."
    ledger = issued.ledger
    return (
        element("b", _charged(c, ledger)),
        f" {_at_the_limit(c, ledger)} {_in_epsilon(c, ledger)} Not counted: later releases (this is of {day(issued)}),"
        f" and any not charged to “{ledger.dataset}” in ledger {ledger.account}.",
    )


def _charged(c: Record, ledger: LedgerEntry) -> str:
    """How many releases, and what an attacker can do with all of them."""
    who = "one release, this one" if c.part_of is None else "one search, that this fit is the last of"
    if ledger.position > 1:
        who = f"{ledger.position} releases, this one included"
    if c.status == "SEEDED":
        return f"So far {who}."
    alone = ledger.position == 1 and c.part_of is None
    right = right_at(float("inf") if ledger.epsilon is None else ledger.epsilon, ledger.delta)
    times = _times(min(right, right_guesses(c)) if alone else right)
    assumed = ", if what is assumed holds" if c.status == "CONDITIONAL" else ""
    only_if = assumed if alone else ", if what the releases rest on is true"
    return f"So far {who}: an attacker {times}{only_if}."


def _times(right: float) -> str:
    times = times_in_100(right)
    return "may be right every time" if times >= 100 else f"is right at most {times} times in 100"


def _at_the_limit(c: Record, ledger: LedgerEntry) -> str:
    """What the ledger allows, and what an attacker could do if all of it were spent."""
    if ledger.limit is None:
        return "The ledger has no limit."
    allowed = f"The ledger would allow up to ε = {figure(ledger.limit.epsilon)} in all"
    if c.status != "SEEDED":
        times = times_in_100(right_at(ledger.limit.epsilon, ledger.limit.delta))
        most = f"at most {times} times in 100 is promised" if times < 100 else "an attacker may be right every time"
        allowed += f", where {most}"
    return f"{allowed}. This page does not know who set that limit."


def _in_epsilon(c: Record, ledger: LedgerEntry) -> str:
    """The same on the scale of the ledger, and why the headline has another figure."""
    at = f"at δ = {figure(ledger.delta, upward=True)}"
    used = f"no ε covers it {at}" if ledger.epsilon is None else f"ε = {figure(ledger.epsilon, upward=True)} {at}"
    scale = ""
    if ledger.delta != c.delta:
        scale = f" on a {'stricter' if c.delta < ledger.delta else 'looser'} scale, δ = {figure(c.delta, upward=True)}"
    own = f"the headline's ε = {figure(c.epsilon, upward=True)} is"
    if ledger.position == 1 and c.part_of is None:
        return f"(Used: {used}; {own} the same release{scale}. Do not add the two.)"
    return f"(Used: {used}; {own} {'this release' if c.part_of is None else 'this fit'} alone{scale}, and included.)"


def total_of_two(c: Record) -> float | None:
    """Epsilon of this release and one more like it, as its ledger adds up, infinite if that refuses; None if unknown.

    Known where this release is all that the ledger holds, and Gaussian: that is so if it alone comes to the total.
    """
    ledger = None if c.issued is None else c.issued.ledger
    loss = loss_of(c)
    if ledger is None or ledger.epsilon is None or ledger.position != 1 or loss.parts:
        return None
    failure = loss.failure + (1 - loss.failure) * loss.gate
    entry = Entry(1, ledger.dataset, "", loss.mu, failure, draws_of(c), c.rows_per_unit, "released", "")
    gaussian = GaussianAccount(strict=True)
    if abs(total_epsilon([entry], ledger.delta, gaussian) - ledger.epsilon) > 1e-6 * ledger.epsilon:
        return None
    if ledger.limit is not None:
        try:
            refuse_overspend([entry, entry], ledger.limit.epsilon, ledger.limit.delta, gaussian)
        except BudgetExceeded:
            return float("inf")
    return total_epsilon([entry, entry], ledger.delta, gaussian)


def again(c: Record) -> Cell:
    """Whether the same may be run once more, what that costs, and who refuses it."""
    if c.status == "SEEDED":
        return "No: give it secret noise first (no random_state)."
    ledger = None if c.issued is None else c.issued.ledger
    provided = "" if c.status == "UNCONDITIONAL" else " (if what is assumed holds)"
    if ledger is None:
        own = _pair(*_own(c))
        return (
            element("b", "Yes, as a further release."),
            f" One more like this adds at most {own} to what these people have spent{provided}. Nobody counts or"
            " refuses it: charge all releases about these people to one ledger with a limit.",
        )
    refuses = (
        " Charge it to the same ledger. That refuses nothing before it has a limit: give it one."
        if ledger.limit is None
        else " Charge it to the same ledger, which refuses, before a row is read, what would exceed the limit."
    )
    total = total_of_two(c)
    if total is None:
        return *_sums(c, ledger, provided), f"{TWICE}{refuses}"
    if total == float("inf"):
        return element("b", "No: one more like it would exceed the limit."), f"{TWICE}{refuses}"
    of_limit = "" if ledger.limit is None else f" of {figure(ledger.limit.epsilon)}"
    slower = ledger.epsilon is not None and total < 2 * ledger.epsilon
    return (
        element(
            "b",
            f"Yes. After one more like it the total would be at most ε = {figure(total, upward=True)}{of_limit} at δ ="
            f" {figure(ledger.delta, upward=True)}, and an attacker {_times(right_of_two_releases(c))}{provided}.",
        ),
        f"{' Costs add up more slowly than by doubling.' if slower else ''}{TWICE}{refuses}",
    )


def _own(c: Record) -> tuple[float, float]:
    """What one more would cost: all of a search, not its last fit."""
    whole = c if c.part_of is None else c.part_of
    return whole.epsilon, whole.delta


def _sums(c: Record, ledger: LedgerEntry, provided: str) -> tuple[Element | str, ...]:
    """The same where only the sums of both epsilons and both deltas are known."""
    epsilon, delta = _own(c)
    total = ""
    if ledger.epsilon is not None:
        in_all = _pair(ledger.epsilon + epsilon, ledger.delta + delta)
        total = f", and then all comes to at most {in_all}, the sums"
    return (
        element("b", "Yes, if the limit allows it." if ledger.limit else "Yes, as a further release."),
        f" One more like this adds at most {_pair(epsilon, delta)}{total}{provided}. What that makes at δ ="
        f" {figure(ledger.delta, upward=True)} this page cannot tell; for the ledger, ",
        code("ppdp ledger"),
        " tells what is spent.",
    )


def _pair(epsilon: float, delta: float) -> str:
    return f"ε = {figure(epsilon, upward=True)} at δ = {figure(delta, upward=True)}"


def day(issued: Issued) -> str:
    """When it was issued."""
    return issued.date[:10]
