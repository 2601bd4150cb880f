"""Deduplication by public keys: ``docs/theory/deduplication.md`` and ``docs/theory/lsh-deduplication.md``.

Deleted rows keep their slot with weight 0, so the number of rows stays public. Every rule is described by what one
further present row can do to the output (Lemma G): how much weight it adds, and how much it takes from others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import formula, sane, whole
from ppdp.core.rounding import UNIT, inflate

_deletion = partial(formula, kind="stability", way="exact", fitted=False, gaps=True)

Rule = Callable[[Distance], Distance]
LABELS = ("record", "unanimous", "first")


def nobody_absent(domain: Domain, distance: Distance) -> bool:
    """Whether every row has weight 1, on both sides."""
    return domain.min_present >= domain.n and distance.toggled == distance.reweighted == distance.reordered == 0


def raw_rows_decide(domain: Domain, distance: Distance) -> bool:
    """Whether a decision may be taken on the rows as they came in, of which then only replaced ones differ."""
    return nobody_absent(domain, distance) and domain.adjacency.bounded


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
        mass=max(0.0, distance.mass - 2 * decision.replaced) + decision.mass,
        one_sided=max(0.0, distance.one_sided - decision.replaced) + decision.one_sided,
    )


def _decided(
    domain: Domain, distance: Distance, rule: Rule, *, raw: bool = False, labels: str = "record"
) -> tuple[Domain, Distance]:
    """Apply a rule to the rows as they are, where a row that moved is another row, or to the raw rows.

    Where there is a row, one is left; unless labels must agree.
    """
    sane(labels in LABELS)
    sane(distance.reweighted == 0 and (not raw or raw_rows_decide(domain, distance)))
    out = domain.but(min_present=0 if labels == "unanimous" else min(domain.min_present, 1))
    if distance.changed == 0:
        return out, distance
    if raw:
        return out, later(distance, rule(Distance(replaced=distance.replaced)))
    return out, rule(distance.moved_as_replaced())


def _unmatched(distance: Distance, gain: float, loss: float, most: float) -> dict[str, float]:
    """Lemma G: ``mass`` and ``one_sided`` if a further present row adds at most ``gain``, takes at most ``loss``.

    ``most`` bounds the two together.
    """
    paired, _ = distance.unmatched
    one_sided = max(gain, loss) * distance.one_sided + min(gain, loss) * paired
    return {"mass": most * distance.mass, "one_sided": one_sided}


def _as_a_set(distance: Distance) -> Distance:
    """One output record per distinct key."""
    return Distance(
        replaced=distance.replaced,
        toggled=distance.toggled,
        **_unmatched(distance, 1, 0, 1),
        reordered=distance.mass + 2 * distance.reordered,
    )


def _unless_torn(distance: Distance) -> Distance:
    """One output record per key whose rows agree, none otherwise."""
    return Distance(
        replaced=distance.replaced,
        toggled=max(distance.toggled, distance.mass - distance.replaced),
        **_unmatched(distance, 1, 1, 1),
        reordered=distance.mass + 2 * distance.reordered,
    )


def _ousting(others: float) -> Rule:
    """A further row may be kept, and may switch off so many others."""

    def rule(distance: Distance) -> Distance:
        return Distance(
            replaced=distance.replaced,
            toggled=distance.toggled + others * distance.mass,
            **_unmatched(distance, 1, others, 1 + others),
            reordered=(1 + others) * distance.reordered,
        )

    return rule


def _sharing(n_rows: int, bands: int) -> Rule:
    """Every row has weight 1 / (size of the largest of its groups)."""

    def rule(distance: Distance) -> Distance:
        return Distance(
            replaced=distance.replaced,
            toggled=distance.toggled,
            reweighted=n_rows,
            **_unmatched(distance, 1, bands / 2, max(1, (bands + 1) / 2)),
            reordered=(1 + bands / 2) * distance.reordered,
        )

    return rule


@_deletion("deduplication.whole-record", page="deduplication", used_by=("Deduplicator",))
def whole_record(domain: Domain, distance: Distance, *, raw: bool = False) -> tuple[Domain, Distance]:
    """One copy of every distinct record (label included) is kept.

    The output is a *set* of records, so each unmatched input record changes at most one output
    record: what was replaced stays replaced, what was toggled stays toggled. Rows match only up to a
    permutation; position by position each unmatched row may also switch one copy on or off.
    A record that moved is another record.
    """
    return _decided(domain, distance, _as_a_set, raw=raw)


@_deletion("deduplication.unanimous", page="deduplication", used_by=("Deduplicator",))
def unanimous(domain: Domain, distance: Distance, *, raw: bool = False) -> tuple[Domain, Distance]:
    """One copy of a row is kept if all its copies have the same label, none otherwise.

    A further record either adds one output record or, as the first that disagrees, takes one away: a replaced record
    has mass 2, all of which may be on one side.
    """
    return _decided(domain, distance, _unless_torn, raw=raw, labels="unanimous")


@_deletion("deduplication.keep-first", page="deduplication", used_by=("Deduplicator",))
def keep_first(
    domain: Domain, distance: Distance, *, raw: bool = False, labels: str = "record"
) -> tuple[Domain, Distance]:
    """Of all records that agree in the key the lexicographically smallest is kept (or none, by its labels).

    Adding one record gains at most one kept record and loses at most one (the former smallest), both
    in their own slots: a replaced record toggles at most two further rows (mass 4, one-sided 2).
    """
    return _decided(domain, distance, _ousting(1), raw=raw, labels=labels)


@_deletion("deduplication.cell-centre", page="deduplication", used_by=("GridDeduplicator",))
def cell_centre(
    domain: Domain, distance: Distance, *, cell: Sequence[float], seed: int, labels: str = "record"
) -> tuple[Domain, Distance]:
    """One row per occupied cell of a public grid, at the clipped centre of the cell.

    With the label in the key the output is a set of (centre, label): it costs what whole records cost. The other
    rules for labels cost what they cost on whole records.
    """
    _sane_grid(domain, cell, seed)
    rules = {"record": _as_a_set, "unanimous": _unless_torn}
    return _decided(domain, distance, rules.get(labels, _ousting(1)), labels=labels)


@_deletion("deduplication.cell-first", page="deduplication", used_by=("GridDeduplicator",))
def cell_first(
    domain: Domain, distance: Distance, *, cell: Sequence[float], seed: int, labels: str = "record", raw: bool = False
) -> tuple[Domain, Distance]:
    """One row per occupied cell of a public grid: its lexicographically smallest record.

    If cells are bounded, hold one label each, and their rows are those that are output, a change of representative is
    a move inside a cell; else it is a row switched on and another one off.
    """
    _sane_grid(domain, cell, seed, raw=raw)
    if raw or labels != "record" or domain.row_norm is None:
        return _decided(domain, distance, _ousting(1), raw=raw, labels=labels)
    return _decided(domain, distance, _inside(diameter_of(domain, cell), domain.n))


@_deletion("deduplication.cell-weights", page="deduplication", used_by=("GridDeduplicator",))
def cell_weights(
    domain: Domain, distance: Distance, *, cell: Sequence[float], seed: int, labels: str = "record", raw: bool = False
) -> tuple[Domain, Distance]:
    """Every row of a cell of a public grid has weight 1 / (number of rows in its cell).

    A further row adds at most 1 and takes at most 1/2 from others, both at most 1 together.
    """
    _sane_grid(domain, cell, seed, raw=raw)
    sane(labels != "unanimous")
    return _decided(domain, distance, _sharing(domain.n, 1), raw=raw, labels=labels)


def _inside(diameter: float, n_rows: int) -> Rule:
    """One representative per key; another representative of the same key is a move of at most ``diameter``."""

    def rule(distance: Distance) -> Distance:
        plain = distance.toggled == 0 and distance.mass == 2 * distance.replaced
        moved = distance.mass - (distance.replaced if plain else 0)
        return replace(
            _as_a_set(distance), moved=min(moved, max(0, n_rows - distance.replaced)), radius=diameter, total=math.nan
        )

    return rule


def diameter_of(domain: Domain, cell: Sequence[float]) -> float:
    """How far two rows in one cell of a grid may be apart, keys being computed in float64."""
    norm = float(domain.require("row_norm"))
    reach = norm if domain.entry_bound is None else min(norm, domain.entry_bound)
    sides = [side + 8 * UNIT * (reach + 2 * side) for side in cell]
    return min(math.hypot(*sides) * (1 + 1e-9), 2 * norm)


def _sane_grid(domain: Domain, cell: Sequence[float], seed: int, *, raw: bool = False) -> None:
    sane(seed >= 0 and min(cell) > 0 and (raw or len(cell) == domain.d))


@_deletion("deduplication.bands-first", page="lsh-deduplication", used_by=("LSHDeduplicator",))
def bands_first(
    domain: Domain, distance: Distance, *, bands: int, seed: int, raw: bool = False
) -> tuple[Domain, Distance]:
    """A row is kept if it is the first row of each of its ``bands`` buckets.

    A further row may be kept, and switches off at most the row that was first in each of its buckets.
    """
    sane(whole(bands) and bands >= 1 and seed >= 0)
    return _decided(domain, distance, _ousting(bands), raw=raw)


@_deletion("deduplication.bands-window", page="lsh-deduplication", used_by=("LSHDeduplicator",))
def bands_window(
    domain: Domain, distance: Distance, *, bands: int, window: int, seed: int, raw: bool = False
) -> tuple[Domain, Distance]:
    """A row is kept if it is among the first ``window`` rows of each bucket and similar to no earlier one there.

    A further row is compared with at most ``window`` later rows of each bucket, or pushes them out of the window.
    """
    sane(whole(bands, window) and bands >= 1 and window >= 1 and seed >= 0)
    return _decided(domain, distance, _ousting(bands * window), raw=raw)


@_deletion("deduplication.bands-weights", page="lsh-deduplication", used_by=("LSHDeduplicator",))
def bands_weights(
    domain: Domain, distance: Distance, *, bands: int, seed: int, raw: bool = False
) -> tuple[Domain, Distance]:
    """Every row has weight 1 / (number of rows in the largest of its ``bands`` buckets).

    A further row takes at most 1/2 from the rows of each of its buckets.
    """
    sane(whole(bands) and bands >= 1 and seed >= 0)
    return _decided(domain, distance, _sharing(domain.n, bands), raw=raw)


KISSING = {1: 2, 2: 6, 3: 12}  # most clusters that one row can destroy, by dimension


def reach(low_dimension: bool) -> int:
    """How far the condition looks, in units of η."""
    return 2 if low_dimension else 8


def decided(domain: Domain, max_cluster: int, low_dimension: bool, *, moves: bool) -> int:
    """Most other rows whose fate one unmatched row decides; if ``moves`` the centre of a cluster counts as well."""
    sane(whole(max_cluster) and max_cluster >= 1 and (not low_dimension or domain.d in KISSING))
    if max_cluster == 1 or not low_dimension:
        return max_cluster - 1
    return KISSING[domain.d] * (max_cluster if moves else max(max_cluster - 1, 2))


_by_clusters = partial(
    formula,
    kind="stability",
    page="clusters",
    way="exact",
    assumes=lambda domain, *, raw=False, **_: {"clusters.raw-crowding" if raw else "clusters.crowding"},
    fitted=False,
    gaps=True,
)


@_by_clusters("clusters.deduplicate", used_by=("ClusterDeduplicator",))
def deduplicate(
    domain: Domain, distance: Distance, *, eta: float, max_cluster: int, low_dimension: bool = False, raw: bool = False
) -> tuple[Domain, Distance]:
    """Of every cluster one row is kept: further rows are switched on or off (Theorems A and A').

    If ``raw``, the raw rows decide, of which only replaced ones differ.
    """
    sane(eta > 0 and distance.reweighted == 0)
    others = decided(domain, max_cluster, low_dimension, moves=False)
    out = domain.but(min_present=min(domain.min_present, 1))
    if distance.changed == 0:
        return out, distance
    if raw:
        sane(raw_rows_decide(domain, distance) and not low_dimension)
        decision = _switched(domain, domain.adjacency.distance, others)
        return out, later(distance, decision)
    return out, _switched(domain, distance, others)


def _switched(domain: Domain, distance: Distance, others: int) -> Distance:
    """Every unmatched row switches ``others`` rows on either side; a row that moved may be switched itself as well."""
    rows = min(domain.n, (distance.mass + 2 * distance.moved) * others + distance.moved)
    return replace(
        distance,
        toggled=distance.toggled + rows,
        mass=distance.mass + rows,
        one_sided=distance.one_sided + rows,
        reordered=distance.reordered * (1 + 2 * others),
    )


@_by_clusters("clusters.quantize", used_by=("ClusterQuantizer",))
def quantize(
    domain: Domain, distance: Distance, *, eta: float, max_cluster: int, low_dimension: bool = False
) -> tuple[Domain, Distance]:
    """Rows move to the centre of their cluster: further rows move by η on either side (Theorems A and A').

    Rows stay matched as they came; the moves are those of a matching by position, which are more than those of one up
    to order.
    """
    sane(eta > 0 and distance.reweighted == 0)
    others = decided(domain, max_cluster, low_dimension, moves=True)
    if distance.changed == 0 or others == 0:
        return domain, distance
    aligned = distance.by_position()
    fates = (aligned.mass + 2 * aligned.moved) * others
    rows = min(domain.n, fates)
    step = inflate(eta)
    diameter = 2 * (domain.row_norm or math.inf)
    return domain, distance.widened(
        domain.n, rows, 2 * step, total=step * (fates + 2 * distance.moved), diameter=diameter
    )


def _statement(domain: Domain, *, eta: float, max_cluster: int, low_dimension: bool = False, **_: Any) -> str:
    radius = reach(low_dimension) * eta
    return (
        f"in every set of rows some row has fewer than {max_cluster} others of the set within {radius:.4g}"
        " (rows of one label, without gaps)"
    )


_crowding = partial(
    formula,
    kind="margin",
    page="clusters",
    name="crowding",
    statement=_statement,
    largest=lambda domain, unit, *, max_cluster, **_: max_cluster / unit,
)


@_crowding("clusters.crowding")
def crowding_margin(domain: Domain, distance: Distance) -> float:
    """Change of the crowding along one neighbouring pair: rows of one side that are unmatched or moved."""
    return distance.one_sided + distance.moved


@_crowding("clusters.raw-crowding")
def raw_crowding_margin(domain: Domain, distance: Distance) -> float:
    """The same of raw rows, which differ as neighbours do."""
    sane(domain.adjacency.bounded)
    return crowding_margin(domain, domain.adjacency.distance)
