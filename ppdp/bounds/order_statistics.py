"""Medians and quantiles of columns: ``docs/theory/order-statistics.md``.

Quantiles are taken over the observed entries of the rows that are present. That few replaced rows move them little
holds for some data only, so every bound here rests on a condition: the values next to the fitted quantiles are near.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from ppdp.bounds.column_groups import entries_of, for_columns, release_of_columns
from ppdp.bounds.imputation import few_gaps, filled, public_imputation
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, largest_entry
from ppdp.core.formula import formula, sane
from ppdp.core.rounding import UNIT, apply_error, inflate


def coordinate_moves(domain: Domain, distance: Distance) -> float:
    """Norm of the vector of largest moves in every column: ``min(√d radius, √(radius total))``."""
    return min(math.sqrt(domain.d) * distance.radius, math.sqrt(distance.radius * distance.total))


def quantile_shift(domain: Domain, distance: Distance, gap: float) -> float:
    """Most that one quantile of every column can change (L2 over the columns): ``gap + moves``.

    ``gap`` bounds, in L2 over the columns, how far the values up to ``⌈one_sided⌉`` ranks away are.
    """
    ranks = gap if distance.one_sided else 0.0
    most = 2 * largest_entry(domain) * math.sqrt(domain.d)
    return inflate(min(ranks + coordinate_moves(domain, distance), most))


def one_way(domain: Domain, distance: Distance) -> bool:
    """Whether every column holds as many values on both sides, of which one differs, not counting moves.

    Then all quantiles of a column shift the same way.
    """
    complete = domain.missing_rows == 0 and domain.min_present >= domain.n
    return complete and distance.toggled == 0 and distance.one_sided <= 1


_exact = partial(formula, kind="stability", page="order-statistics", way="exact", row_by_row=True)
_scaling = partial(_exact, assumes=lambda domain, **_: {"order-statistics.gap"})


@_exact(
    "imputation.median",
    used_by=("MedianImputer",),
    assumes=lambda domain, **kwargs: few_gaps(domain, **kwargs) | {"order-statistics.gap"},
    releases=("medians",),
    gaps=True,
)
def median_imputation(domain: Domain, distance: Distance, *, gap: float, max_missing: int) -> tuple[Domain, Distance]:
    """Exact medians: every row with gaps moves by at most the shift of the vector of medians."""
    sane(gap > 0 and distance.reweighted == 0)
    out, count = filled(domain, distance, max_missing)
    if count == 0:
        return out, distance
    norm = float(domain.require("row_norm"))
    each = quantile_shift(domain, distance, gap) + 2 * apply_error(domain.d, norm)
    return out, distance.widened(domain.n, count, each, diameter=2 * norm)


@_scaling("scaling.quantile", used_by=("MinMaxScaler",), releases=("quantile-pairs",), gaps=True)
@for_columns
def quantile_scaling(
    domain: Domain,
    distance: Distance,
    *,
    gap: float,
    min_width: float,
    lower: float,
    upper: float,
    low: float,
    high: float,
) -> tuple[Domain, Distance]:
    """Range from quantile to quantile, at least ``min_width`` wide, onto [low, high], clipped.

    Every row moves by at most ``(high - low) shift / min_width``; the floor of the width costs nothing.
    """
    sane(gap > 0 and min_width > 0 and 0 < lower < upper < 1 and low < high and distance.reweighted == 0)
    root, entry = math.sqrt(domain.d), max(abs(low), abs(high))
    out = domain.but(row_norm=inflate(entry * root), entry_bound=inflate(entry))
    if distance.changed == 0:
        return out, distance
    slope, diameter = (high - low) / min_width, inflate((high - low) * root)
    shift = quantile_shift(domain, distance, gap) + _fit_error(domain)
    each = inflate(slope * shift) + 2 * apply_error(domain.d, entry * root)
    return out, distance.stretched(inflate(slope), diameter).widened(domain.n, domain.n, each, diameter=diameter)


@_scaling("scaling.robust", used_by=("RobustScaler",), releases=("quantile-triples",), gaps=True)
@for_columns
def robust_scaling(
    domain: Domain, distance: Distance, *, gap: float, min_width: float, lower: float, upper: float, clip: float
) -> tuple[Domain, Distance]:
    """``(x - median) / max(width, min_width)``, entries clipped to ±B.

    Every row moves by at most ``((2B + 1) gap + (2B + 1) moves) / min_width``; one replaced value moves both ends of
    the width the same way, so that without gaps and deleted rows ``(B + 1) gap`` will do.
    """
    sane(gap > 0 and min_width > 0 and 0 < lower < upper < 1 and clip > 0 and distance.reweighted == 0)
    root = math.sqrt(domain.d)
    entry = min(clip, 2 * largest_entry(domain) / min_width)
    out = domain.but(row_norm=inflate(entry * root), entry_bound=inflate(entry))
    if distance.changed == 0:
        return out, distance
    ranks = (clip + 1 if one_way(domain, distance) else 2 * clip + 1) * (gap if distance.one_sided else 0.0)
    moves = (2 * clip + 1) * (coordinate_moves(domain, distance) + _fit_error(domain))
    each = inflate((ranks + moves) / min_width) + 2 * apply_error(domain.d, entry * root)
    diameter = inflate(2 * entry * root)
    return out, distance.stretched(inflate(1 / min_width), diameter).widened(
        domain.n, domain.n, each, diameter=diameter
    )


@_scaling("scaling.robust-by-ranks", used_by=("RobustScaler",), releases=("quantile-triples",))
@for_columns
def robust_scaling_by_ranks(
    domain: Domain, distance: Distance, *, gap: float, min_width: float, lower: float, upper: float, clip: float
) -> tuple[Domain, Distance]:
    """:func:`robust_scaling` where all quantiles shift one way: few rows are far enough from the median to move most.

    All rows together move by at most ``(√(n T) gap + n (2B + 1) moves) / min_width``, T the sum of squares of ``1 + z``
    over scaled rows z, as large as the ranks allow.
    """
    sane(one_way(domain, distance))
    out, far = robust_scaling(domain, distance, gap=gap, min_width=min_width, lower=lower, upper=upper, clip=clip)
    n, inner, below = domain.n, min(1.0, clip), math.floor(lower * domain.n) + 1
    above, half = math.floor((1 - upper) * n) + 1, n // 2 + 1

    def squares(far_side: int, near_side: int) -> float:
        between = max(half - far_side, 0)
        rest = max(n - far_side - between - near_side, 0)
        return far_side * (1 + clip) ** 2 + between * (1 + inner) ** 2 + rest + near_side * max(1.0, clip - 1) ** 2

    ranks = math.sqrt(n * max(squares(above, below), squares(below, above))) * (gap if distance.one_sided else 0.0)
    moves = (2 * clip + 1) * (coordinate_moves(domain, distance) + _fit_error(domain)) * n
    error = 2 * n * apply_error(domain.d, clip * math.sqrt(domain.d))
    together = inflate((ranks + moves + distance.total) / min_width) + error
    return out, replace(far, total=min(far.total, together))


_released = partial(
    formula,
    kind="stability",
    page="released-quantiles",
    way="noisy",
    releases=("quantile-choices",),
    gaps=True,
    row_by_row=True,
)


@_released("scaling.quantile-public", used_by=("MinMaxScaler",))
@for_columns
def released_quantile_scaling(
    domain: Domain, distance: Distance, *, quantiles: Sequence[float], min_width: float, low: float, high: float
) -> tuple[Domain, Distance]:
    """:func:`quantile_scaling` with released quantiles: row-wise, ``(high - low) / min_width``-Lipschitz."""
    sane(min_width > 0 and low < high and len(quantiles) == 2)
    root, entry = math.sqrt(domain.d), max(abs(low), abs(high))
    out = domain.but(row_norm=inflate(entry * root), entry_bound=inflate(entry))
    far = distance.stretched(inflate((high - low) / min_width), inflate((high - low) * root))
    return out, far.jittered(2 * apply_error(domain.d, entry * root))


@_released("scaling.robust-public", used_by=("RobustScaler",))
@for_columns
def released_robust_scaling(
    domain: Domain, distance: Distance, *, quantiles: Sequence[float], min_width: float, clip: float
) -> tuple[Domain, Distance]:
    """:func:`robust_scaling` with released quantiles: row-wise, ``1 / min_width``-Lipschitz."""
    sane(min_width > 0 and clip > 0 and len(quantiles) == 3)
    root, entry = math.sqrt(domain.d), min(clip, 2 * largest_entry(domain) / min_width)
    out = domain.but(row_norm=inflate(entry * root), entry_bound=inflate(entry))
    far = distance.stretched(inflate(1 / min_width), inflate(2 * entry * root))
    return out, far.jittered(2 * apply_error(domain.d, entry * root))


@_released("imputation.released-medians", used_by=("MedianImputer",))
def released_median_imputation(
    domain: Domain, distance: Distance, *, quantiles: Sequence[float]
) -> tuple[Domain, Distance]:
    """Gaps are filled with released medians: row-wise; rows with equal gaps move no further apart."""
    sane(len(quantiles) == 1)
    return public_imputation(domain, distance)


@_released("row-wise.released-quantiles", used_by=("KBinsDiscretizer", "QuantileTransformer", "SplineTransformer"))
def released_quantile_map(
    domain: Domain,
    distance: Distance,
    *,
    quantiles: Sequence[float],
    n_features: int,
    row_norm: float,
    entry_bound: float,
    columns: Sequence[int] | None = None,
    feature_names: Sequence[str] | None = None,
) -> tuple[Domain, Distance]:
    """Bins, ranks or splines between released quantiles, clipped to a public norm: row-wise, and equal rows stay equal.

    A row that moved counts as replaced: it may have crossed an edge.
    """
    entries_of(domain, columns)
    sane(bool(quantiles) and all(0 < q < 1 for q in quantiles))
    sane(0 < entry_bound <= row_norm * (1 + 1e-6) and row_norm <= entry_bound * math.sqrt(n_features) * (1 + 1e-6))
    names = None if feature_names is None else tuple(feature_names)
    out = domain.but(n_features=n_features, feature_names=names, row_norm=row_norm, entry_bound=entry_bound)
    return out, distance.moved_as_replaced()


def _fit_error(domain: Domain) -> float:
    """Rounding of a width that is the difference of two entries, in every column."""
    return 8 * UNIT * largest_entry(domain) * math.sqrt(domain.d)


@formula("release.medians", kind="release", page="order-statistics")
def medians(domain: Domain, distance: Distance, *, gap: float) -> float:
    """One quantile of every column, under the condition of the stage that asks: the shift of one."""
    sane(gap > 0 and distance.reweighted == 0)
    return quantile_shift(domain, distance, gap)


@formula("release.quantile-pairs", kind="release", page="order-statistics")
@release_of_columns
def quantile_pairs(domain: Domain, distance: Distance, *, gap: float, lower: float, upper: float) -> float:
    """Two quantiles of every column: √2 times the shift of one."""
    sane(0 < lower < upper < 1)
    return math.sqrt(2) * medians(domain, distance, gap=gap)


@formula("release.quantile-triples", kind="release", page="order-statistics")
@release_of_columns
def quantile_triples(domain: Domain, distance: Distance, *, gap: float, lower: float, upper: float) -> float:
    """Two quantiles of every column and its median: √3 times the shift of one."""
    sane(0 < lower < upper < 1)
    return math.sqrt(3) * medians(domain, distance, gap=gap)


def _largest_margin(
    domain: Domain, unit: float, *, gap: float, lower: float = 0.5, upper: float = 0.5, **_: object
) -> float:
    """A window that leaves the column on either side is as wide as the range beyond the quantile."""
    if gap >= largest_entry(domain):
        return domain.n / unit
    return (min(max(q, 1 - q) for q in (lower, upper)) * domain.n + 1) / unit


@formula(
    "order-statistics.gap",
    kind="margin",
    page="order-statistics",
    name="gap",
    statement=lambda domain, *, gap, **_: (
        f"the values ranked next to the fitted quantiles are within {gap:.4g} of each other (L2 over the columns)"
    ),
    largest=_largest_margin,
)
def rank_gap_margin(domain: Domain, distance: Distance) -> float:
    """Ranks by which one neighbouring pair can shift a value: ``⌈one_sided⌉``."""
    return float(math.ceil(distance.one_sided))
