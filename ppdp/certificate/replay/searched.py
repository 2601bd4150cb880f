"""What must hold between the numbers of a search's certificate.

A search's certificate is that of its last fit, whose derivation it keeps, with the total of everything: the fits of all
candidates, choice and scores, and the refit (``docs/theory/search.md``). What the other fits cost is recorded and
composed again; their own derivations are not in it, and the certificate says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ppdp.bounds.selection import search_allowance, search_loss, selection_loss
from ppdp.certificate.record import Record, Search, Selection
from ppdp.core.domain import Domain
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.noise.sampler import TOTAL_VARIATION_PER_DRAW

__all__ = ["search_rules"]

_CLOSE = 1e-9


def search_rules(c: Record, search: Search, last: PrivacyLoss, draws: int) -> Iterator[str]:
    """Compose a search again; ``last`` and ``draws`` are what its last fit costs and draws, as derived."""
    total, fits, refits, selection = c.total, search.fits, search.refits, search.selection
    lists = (fits, refits, search.parameters, search.outcomes)
    best = search.best_index
    if {len(one) for one in lists} != {selection.candidates} or best >= len(fits):
        yield "search: there are not as many fits as candidates."
        return
    if c.part_of is not None or last.parts or search.outcomes[best] != "released":
        yield "search: its last fit is none that a search makes."
        return
    if selection.rows_per_unit != c.rows_per_unit or selection.rows >= Domain.from_dict(c.entrance.domain).n:
        yield "search.selection: it looked at other rows."
    yield from _scores(selection)
    chosen, lost = refits[best], last.failure + (1 - last.failure) * last.gate
    if not (_close(chosen.mu, last.mu) and _close(chosen.failure, lost)):
        yield f"search.refits[{best}]: the last fit costs something else."
    if chosen.variation < draws * TOTAL_VARIATION_PER_DRAW * (1 - _CLOSE):
        yield f"search.refits[{best}]: the noise sampler needs another part of delta."
    sides = [[PrivacyLoss(fit.mu, fit.failure) for fit in side] for side in (fits, refits)]
    chose = selection_loss(
        selection.rows, selection.rows_per_unit, selection.temperature, selection.scored, selection.noise_scale
    )
    spent = search_loss(
        sides[0],
        chose,
        sides[1],
        apart=c.neighbours.single,
    )
    variations = [[fit.variation for fit in side] for side in (fits, refits)]
    allowance = search_allowance(c.epsilon, selection.scored, *variations)
    for name, recorded, follows in (
        ("mu", total.mu, spent.mu),
        ("failure", total.failure, spent.failure),
        ("allowance", total.allowance, allowance),
    ):
        if not _close(recorded, follows):
            yield f"total.{name}: {recorded!r} is recorded, {follows!r} follows."
    if total.parts:
        yield "total.parts: a search composes Gaussian losses only."
    room = c.delta - total.allowance
    if not (room > 0 and spent.epsilon(room) <= c.epsilon * (1 + _CLOSE)):
        yield "epsilon: the search costs more than (epsilon, delta)."


def _scores(selection: Selection) -> Iterator[str]:
    """Which scores are released follows from how the choice is made."""
    by_scores = selection.temperature is None
    scored, count = selection.scored, selection.candidates
    noisy = selection.noise_scale is not None
    if scored not in ((count,) if by_scores else (0, 1)) or noisy != (scored > 0):
        yield "search.selection: other scores follow."


def _close(recorded: float, follows: float) -> bool:
    return math.isclose(recorded, follows, rel_tol=_CLOSE, abs_tol=1e-300)
