"""Public maps that act on one row at a time: ``docs/theory/row-wise.md`` and ``docs/theory/quantization.md``.

A map that treats every row by itself, with public parameters, leaves equal rows equal and replaced rows
replaced. Rows that moved may move further, by its Lipschitz constant. Or they move onto a public grid: centres of its
cells lie at multiples of the side of a cell, every coordinate moves by at most half a cell, and rows that left the box
of entries or the ball of rows are projected back on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ppdp.bounds.queries import check_grid
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import formula, sane
from ppdp.core.rounding import apply_error, inflate

_row_by_row = partial(formula, kind="stability", page="row-wise", way="public", gaps=True, row_by_row=True)
_OF_CATEGORIES = "CategoryEncoder", "ColumnMap"
_released = partial(formula, kind="stability", way="noisy", gaps=True)


@_row_by_row("row-wise.identity", used_by=("PCA", "SelectKBest", "SelectPercentile"), entrywise=True)
def identity(domain: Domain, distance: Distance) -> tuple[Domain, Distance]:
    """Nothing changes."""
    return domain, distance


@_row_by_row("row-wise.norm-clip", used_by=("NormClipper",))
def norm_clip(domain: Domain, distance: Distance, *, max_norm: float) -> tuple[Domain, Distance]:
    """Projection of every row on the ball of radius ``max_norm``: 1-Lipschitz.

    The norm of a row with gaps is taken over its observed entries; moved rows have equal masks.
    """
    sane(max_norm > 0)
    # Equal rows are mapped equally; rounding is charged to the rows that moved.
    norm = max_norm if domain.row_norm is None else min(max_norm, domain.row_norm)
    out = domain.but(row_norm=norm, entry_bound=min(domain.entry_bound or norm, norm))
    return out, distance.stretched(1.0, 2 * norm).jittered(apply_error(domain.d, norm))


@_row_by_row("row-wise.range-scaling", used_by=("MinMaxScaler",), entrywise=True)
def range_scaling(
    domain: Domain, distance: Distance, *, widths: Sequence[float], low: float, high: float
) -> tuple[Domain, Distance]:
    """Clip each column to its public range of width ``widths[j]``, then map it linearly onto [low, high].

    Lipschitz constant ``max_j (high - low) / widths[j]``; every entry ends within ``max(|low|, |high|)``. What is known
    of a change by columns is scaled column by column, and no entry changes by more than ``high - low``.
    """
    sane(len(widths) == domain.d and min(widths) > 0 and low < high)
    entry = max(abs(low), abs(high))
    norm = entry * math.sqrt(domain.d)
    slopes = [(high - low) / width for width in widths]
    out, error = domain.but(row_norm=inflate(norm), entry_bound=inflate(entry)), apply_error(domain.d, norm)
    far = distance.stretched(max(slopes), (high - low) * math.sqrt(domain.d)).jittered(error)
    if distance.moves is None:
        return out, far
    moves = distance.moves.scaled(slopes, inflate(high - low), error)
    radius = min(far.radius, math.hypot(*moves.largest([1.0] * domain.d)))
    return out, replace(far, radius=radius, total=min(far.total, far.moved * radius)).moving(moves)


@_released(
    "row-wise.released-ranges", page="released-ranges", releases=("ranges",), row_by_row=True, used_by=("MinMaxScaler",)
)
def released_range_scaling(
    domain: Domain, distance: Distance, *, columns: Sequence[int], low: float, high: float
) -> tuple[Domain, Distance]:
    """The same with ranges of some columns that were released, so that nobody knows their widths beforehand.

    A row that moved counts as replaced, for no slope is known.
    """
    sane(bool(columns) and low < high)
    entry = max(abs(low), abs(high))
    out = domain.but(row_norm=inflate(entry * math.sqrt(domain.d)), entry_bound=inflate(entry))
    return out, distance.moved_as_replaced()


@_row_by_row(
    "row-wise.row-map",
    used_by=("RowMap", "ColumnMap", "CategoryEncoder", "DateEncoder", "FeatureHasher", "HashingVectorizer"),
)
def row_map(
    domain: Domain,
    distance: Distance,
    *,
    n_features: int,
    row_norm: float,
    entry_bound: float,
    lipschitz: float | None = None,
    feature_names: Sequence[str] | None = None,
    fills_gaps: bool = False,
) -> tuple[Domain, Distance]:
    """A user's row-wise function whose output is clipped to public ranges, a public norm, or both.

    Without a declared Lipschitz constant a row that moved counts as replaced. So does every one where rows may have
    gaps that stay, for a function may give a row other gaps, and nothing tests how many rows have some.
    """
    sane(0 < entry_bound <= row_norm * (1 + 1e-6) and row_norm <= entry_bound * math.sqrt(n_features) * (1 + 1e-6))
    names = None if feature_names is None else tuple(feature_names)
    out = domain.but(n_features=n_features, feature_names=names, row_norm=row_norm, entry_bound=entry_bound)
    out = out.but(max_missing=0) if fills_gaps else out
    if distance.moved == 0:
        return out, distance
    if lipschitz is None or _gaps_stay(domain, fills_gaps):
        return out, distance.moved_as_replaced()
    # Once for the function, once for the clip.
    return out, distance.stretched(lipschitz, 2 * row_norm).jittered(2 * apply_error(n_features, row_norm))


@_released("row-wise.released-categories", page="released-categories", releases=("categories",), used_by=_OF_CATEGORIES)
def released_categories(
    domain: Domain, distance: Distance, *, columns: Sequence[int], max_categories: Sequence[int], **facts: Any
) -> tuple[Domain, Distance]:
    """The same with categories of some columns that were released: as many columns come out whatever was found.

    A row that moved counts as replaced.
    """
    sane(bool(columns) and len(columns) == len(max_categories))
    return row_map(domain, distance.moved_as_replaced(), **facts)


@_released("row-wise.released-modes", page="released-modes", releases=("modes",), used_by=_OF_CATEGORIES)
def released_modes(
    domain: Domain,
    distance: Distance,
    *,
    columns: Sequence[int],
    sizes: Sequence[int],
    values: Sequence[float],
    **facts: Any,
) -> tuple[Domain, Distance]:
    """The same where gaps of some columns become the category that most rows hold by released counts.

    A row that moved counts as replaced.
    """
    check_grid(domain, columns, sizes, values)
    return row_map(domain, distance.moved_as_replaced(), **facts)


def _gaps_stay(domain: Domain, fills_gaps: bool) -> bool:
    """Whether rows may have gaps behind the map; a number of such rows is only declared, so it bounds nothing here."""
    return domain.missing_rows > 0 and not fills_gaps


@_row_by_row("row-wise.public", used_by=("Public",))
def public_map(
    domain: Domain,
    distance: Distance,
    *,
    n_features: int,
    row_norm: float,
    lipschitz: float | None,
    rounding: float,
    same_bits: bool,
    fills_gaps: bool,
    feature_names: Sequence[str] | None,
) -> tuple[Domain, Distance]:
    """A map fitted on public data whose output is clipped to a public norm.

    Computed rows are within ``rounding`` of the exact ones. Without a Lipschitz constant a row that moved counts as
    replaced, and so does every one where rows may have gaps that are not filled, for it may get others. Without
    ``same_bits`` every row counts as moved by what rounding does to it.
    """
    sane(n_features >= 1 and row_norm > 0 and rounding >= 0 and (lipschitz is None or lipschitz >= 0))
    out = domain.but(
        n_features=n_features,
        feature_names=None if feature_names is None else tuple(feature_names),
        row_norm=row_norm,
        entry_bound=row_norm,
        max_missing=0 if fills_gaps else domain.max_missing,
    )
    error = rounding + apply_error(n_features, row_norm)
    if distance.moved:
        torn = lipschitz is None or _gaps_stay(domain, fills_gaps)
        distance = distance.moved_as_replaced() if torn else distance.stretched(float(lipschitz or 0), 2 * row_norm)
    if same_bits:
        return out, distance.jittered(error)
    if distance.changed == 0:
        return out, distance
    return out, distance.widened(domain.n, domain.n, 2 * error, diameter=2 * row_norm + error)


_grid = partial(
    formula, kind="stability", page="quantization", way="public", used_by=("GridQuantizer",), gaps=True, row_by_row=True
)

FINEST = 1e-9  # smallest side of a cell, in units of ``row_norm``: numbers of cells stay exact in float64


def _norms(domain: Domain, cell: float) -> tuple[float, float]:
    """Largest norm of a row after the stage, and of one that is not projected back yet."""
    norm = float(domain.require("row_norm"))
    sane(FINEST * norm <= cell <= 2 * norm)
    return norm, norm + cell * math.sqrt(domain.d) / 2


@_grid("quantization.hard")
def hard_grid(domain: Domain, distance: Distance, *, cell: float) -> tuple[Domain, Distance]:
    """Every coordinate goes to the centre of its cell: a row that moved at all may jump a cell further in each.

    Equal rows stay equal, so nothing is charged where no row moved.
    """
    norm, reach = _norms(domain, cell)
    jumps = distance.jittered(inflate(cell * math.sqrt(domain.d) / 2))
    return domain, jumps.stretched(1.0, 2 * norm).jittered(2 * apply_error(domain.d, reach))


@_grid("quantization.dither")
def dithered_grid(domain: Domain, distance: Distance, *, cell: float, seed: int) -> tuple[Domain, Distance]:
    """Every slot has a grid of its own, shifted by public numbers drawn from the seed.

    The same for rows that moved, as the grid of a slot is the same on both sides; rows must match by position.
    """
    sane(seed >= 0)
    return hard_grid(domain, distance.by_position(), cell=cell)


@_grid("quantization.staircase")
def staircase(domain: Domain, distance: Distance, *, cell: float, ramp: float) -> tuple[Domain, Distance]:
    """Flat around the centres, with slopes on a share ``ramp`` of every cell: Lipschitz constant ``1 / ramp``."""
    sane(0 < ramp <= 1)
    norm, reach = _norms(domain, cell)
    return domain, distance.stretched(inflate(1 / ramp), 2 * norm).jittered(2 * apply_error(domain.d, reach) / ramp)
