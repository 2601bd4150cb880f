"""Near-duplicates found by clusters of rows: ``docs/theory/clusters.md``.

A row is a good centre if no row lies between η and 3η from it; the rows within η of a good centre are its cluster. One
unmatched row decides the fate of further rows only near itself, so the condition bounds how many rows there can be.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

from ppdp.bounds.deduplication import later, raw_rows_decide
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import formula, sane, whole
from ppdp.core.rounding import inflate

KISSING = {1: 2, 2: 6, 3: 12}
"""Most clusters that one row can destroy, by dimension."""


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
    domain: Domain,
    distance: Distance,
    *,
    eta: float,
    max_cluster: int,
    low_dimension: bool = False,
    raw: bool = False,
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


def _largest(domain: Domain, unit: float, *, max_cluster: int, **_: Any) -> float:
    return max_cluster / unit


_crowding = partial(formula, kind="margin", page="clusters", name="crowding", statement=_statement, largest=_largest)


@_crowding("clusters.crowding")
def crowding_margin(domain: Domain, distance: Distance) -> float:
    """Change of the crowding along one neighbouring pair: rows of one side that are unmatched or moved."""
    return distance.one_sided + distance.moved


@_crowding("clusters.raw-crowding")
def raw_crowding_margin(domain: Domain, distance: Distance) -> float:
    """The same of raw rows, which differ as neighbours do."""
    sane(domain.adjacency.replaces)
    return crowding_margin(domain, domain.adjacency.distance)
