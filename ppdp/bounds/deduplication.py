"""Exact deduplication: ``docs/theory/deduplication.md``.

Deleted rows keep their slot with weight 0, so the number of rows stays public.
"""

from __future__ import annotations

from dataclasses import replace

from ppdp.bounds.formula import formula
from ppdp.distance import Distance
from ppdp.domain import Domain

__all__ = ["keep_first", "later", "nobody_absent", "whole_record"]


def nobody_absent(domain: Domain, distance: Distance) -> bool:
    """Whether every row has weight 1, on both sides."""
    return domain.min_present >= domain.n and distance.toggled == distance.reweighted == distance.reordered == 0


def later(distance: Distance, decision: Distance) -> Distance:
    """Distance once a decision that was taken on the raw rows is applied to rows that moved since.

    ``decision`` says, slot by slot, which weights it changes between neighbouring raw datasets; the weights were 1 so
    far. A kept row keeps its move.
    """
    decision = decision.by_position()
    return replace(
        distance,
        toggled=decision.toggled,
        reweighted=decision.reweighted,
        mass=distance.mass + decision.mass - 2 * decision.replaced,
        one_sided=distance.one_sided + decision.one_sided - decision.replaced,
    )


@formula(
    "deduplication.whole-record",
    kind="stability",
    page="deduplication",
    way="exact",
    used_by=("Deduplicator",),
    fitted=False,
    gaps=True,
)
def whole_record(domain: Domain, distance: Distance) -> tuple[Domain, Distance]:
    """One copy of every distinct record (label included) is kept.

    The output is a *set* of records, so each unmatched input record changes at most one output
    record: what was replaced stays replaced, what was toggled stays toggled. Rows match only up to a
    permutation; position by position each replaced row may also switch one copy off and another on.
    A record that moved is another record.
    """
    if distance.changed == 0:
        return domain, distance
    torn = distance.moved_as_replaced()
    out = Distance(
        replaced=torn.replaced,
        toggled=torn.toggled,
        reordered=2 * torn.replaced + torn.toggled + 2 * torn.reordered,
    )
    return domain.but(min_present=min(domain.min_present, 1)), out


@formula(
    "deduplication.keep-first",
    kind="stability",
    page="deduplication",
    way="exact",
    used_by=("Deduplicator",),
    fitted=False,
    gaps=True,
)
def keep_first(domain: Domain, distance: Distance) -> tuple[Domain, Distance]:
    """Of all records that agree in the key columns the lexicographically smallest is kept.

    Adding one record gains at most one kept record and loses at most one (the former smallest), both
    in their own slots: a replaced record toggles at most two further rows (mass 4, one-sided 2).
    """
    if distance.changed == 0:
        return domain, distance
    torn = distance.moved_as_replaced()
    out = Distance(
        replaced=torn.replaced,
        toggled=2 * torn.replaced + 2 * torn.toggled,
        mass=4 * torn.replaced + 2 * torn.toggled,
        one_sided=2 * torn.replaced + torn.toggled,
        reordered=2 * torn.reordered,
    )
    return domain.but(min_present=min(domain.min_present, 1)), out
