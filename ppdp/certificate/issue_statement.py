"""When, as which fit and on whose account a certificate was issued, in words: what stands first wherever it is read.

The block ``issued`` is no part of the claim. It says what the claim leaves out: other fits, searches around this one,
and what was spent on the same people in all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ppdp.certificate.issue_record import LedgerEntry, Pair, PartOf
from ppdp.certificate.issuer import issuer_rules
from ppdp.certificate.record import Record
from ppdp.core.figures import figure
from ppdp.core.names import dataset_name
from ppdp.privacy.loss import PrivacyLoss

_CLOSE = 1 + 1e-6
EARLIER_FORM = "its form is an earlier one, which does not say how many other fits there were."


def other_releases(c: Record) -> list[str]:
    """What else looked at the same data and is not in the claim; the first thing that a reader must know."""
    inside = c.issued and c.issued.inside
    around = f"FITTED INSIDE {inside}; what that chose by private scores, or fitted by itself, is not included."
    return [*uncharged_fits(c), *([around] if inside is not None else [])]


def uncharged_fits(c: Record) -> list[str]:
    """What was released beside it that no total in the document covers."""
    found, part, issued = [], c.part_of, c.issued
    if part is not None:
        found.append(
            f"PART OF A SEARCH over {part.candidates} candidates that costs epsilon = {part.epsilon:g} at delta ="
            f" {part.delta:g} in all; this certificate is that of its last fit alone."
        )
    if issued is not None and issued.together is not None:
        which = "" if issued.ledger is None else " on the same data, not all of them in the ledger"
        come_to = f"they come to epsilon = {issued.together.epsilon:.4g} at delta = {issued.together.delta:.3g}"
        if issued.together.delta >= 1:
            come_to = "they have no known bound, as where each protects against another change"
        found.append(
            f"FIT {issued.fit} OF THIS PROCESS{which}; what the others released is not included: together {come_to}."
        )
    if issued is not None and issued.travels:
        copies = "1 COPY" if issued.travels == 1 else f"{issued.travels} COPIES"
        found.append(f"{copies} OF THE PIPELINE WENT TO OR CAME FROM OTHER PROCESSES; fits there are not included.")
    return found


def account_in_words(c: Record, *, symbols: bool = False) -> str | None:
    """Date and account, with ``epsilon = 3`` or with symbols; None for an earlier form."""
    issued = c.issued
    if issued is None:
        return None
    day, ledger = f"{issued.date[:16].replace('T', ' ')} UTC", issued.ledger
    if ledger is None:
        return f"{day}, fit {issued.fit} of its process on these data; no ledger, so other processes are not known."
    if symbols:
        of_all, at = f"ε = {figure(ledger.epsilon or 0.0, upward=True)}", f"δ = {figure(ledger.delta, upward=True)}"
    else:
        of_all, at = f"epsilon = {ledger.epsilon or 0.0:.4g}", f"delta = {ledger.delta:.3g}"
    limit, within = ledger.limit, "no limit"
    if limit is not None:
        within = f"limit ({limit.epsilon:g}, {limit.delta:g})"
        within = f"limit: ε = {figure(limit.epsilon)} at {at}" if symbols else within
    spent = f"more than any {of_all.partition(' ')[0]} covers" if ledger.epsilon is None else of_all
    with_it = "" if ledger.position == 1 and c.part_of is None else " by all of them, this one included"
    return (
        f"{day}, entry {ledger.position} for {ledger.dataset!r} in ledger {ledger.account} ({within}); spent: {spent}"
        f" at {at}{with_it}."
    )


def composition_notes(c: Record) -> list[str]:
    """Why it may not be all that was released: other releases, also those of its ledger, or that nothing is known."""
    if c.issued is None:
        return [EARLIER_FORM]
    return [*other_releases(c), *_charged_before(c)]


def _charged_before(c: Record) -> Iterator[str]:
    """What its ledger holds beside it."""
    ledger = c.ledger
    if ledger is not None and ledger.position > 1:
        total = "no epsilon covers" if ledger.epsilon is None else f"epsilon = {ledger.epsilon:.4g} covers"
        yield (
            f"ENTRY {ledger.position} FOR {ledger.dataset!r} IN ITS LEDGER; those before it are about the same people:"
            f" {total} all of them at delta = {ledger.delta:.3g}."
        )


def spent_at_least(c: Record) -> float:
    """The largest epsilon that the document knows to have been spent; infinite if none covers what its ledger holds.

    Each is told at its own delta. What a ledger says of this release alone is the same cost at another delta, and does
    not count.
    """
    together = None if c.issued is None else c.issued.together
    known = [c.epsilon, *(one.epsilon for one in (together, c.part_of) if one is not None)]
    if c.ledger is not None and c.ledger.position > 1:
        known.append(math.inf if c.ledger.epsilon is None else c.ledger.epsilon)
    return max(known)


def issued_rules(c: Record, spent: PrivacyLoss) -> Iterator[str]:
    """What must hold between the totals beside the claim and the claim, whose loss is ``spent``."""
    issued, part = c.issued, c.part_of
    if part is not None and not _covers(part, c, spent):
        yield "part_of: the whole costs less than this part of it."
    yield from issuer_rules(c)
    if issued is None:
        return
    fit, together, ledger = issued.fit, issued.together, issued.ledger
    told = fit == 1 or (fit is not None) == (together is not None)
    if not told or (ledger is None and fit is None) or (ledger is not None and fit == 1 and together is None):
        yield "issued: it does not say which fit it is and what all of them come to."
    if together is not None and not _covers(together, c, spent):
        yield "issued.together: all fits cost less than this one."
    if ledger is None:
        return
    if dataset_name(c.dataset) != dataset_name(ledger.dataset):
        yield "issued.ledger.dataset: it is not that of the claim."
    total, limit = ledger.epsilon, ledger.limit
    if total is not None and not spent.parts and not spent.epsilon(ledger.delta) <= total * _CLOSE:
        yield "issued.ledger: all spends cost less than this one."
    if ledger.released is not None and ledger.released > ledger.position:
        yield "issued.ledger: it holds fewer spends than releases."
    if not _adds_up(ledger, spent):
        yield "issued.ledger: what it comes to does not agree with the parameter of all of it."
    if limit is not None and not (total is not None and total <= limit.epsilon * _CLOSE):
        yield "issued.ledger: it holds more than its limit."
    if limit is not None and ledger.delta != limit.delta:
        yield "issued.ledger.delta: the total is told at another delta than the limit."


def _adds_up(ledger: LedgerEntry, spent: PrivacyLoss) -> bool:
    """Whether the Gaussian parameter of all spends, if it is told, covers this one, and their total covers it."""
    if ledger.composed is None:
        return True
    if spent.parts or not spent.mu <= ledger.composed.mu * _CLOSE:
        return False
    together = PrivacyLoss(ledger.composed.mu, ledger.composed.failure)
    return ledger.epsilon is None or together.epsilon(ledger.delta) <= ledger.epsilon * _CLOSE


def _covers(total: Pair | PartOf, c: Record, spent: PrivacyLoss) -> bool:
    """Whether a total is no smaller than what is a part of it."""
    own = c.epsilon if spent.parts else spent.epsilon(min(total.delta, 1 - 2**-53))
    return bool(own <= total.epsilon * _CLOSE and c.delta <= total.delta * _CLOSE)
