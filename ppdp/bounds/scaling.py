"""Standard scaling: ``docs/theory/standard-scaling.md``.

``x -> (x - mean) / max(std, s)`` (floor form) or ``(x - mean) / std`` under the condition ``std >= s``; statistics
over the public number of rows with deleted rows as zeros; optionally clipped to a public norm. One scale per column,
or one for all: the root of the sum of their variances.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from ppdp.bounds.column_groups import for_columns
from ppdp.bounds.deduplication import nobody_absent
from ppdp.bounds.pca import spread_factor
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, largest_entry
from ppdp.core.formula import formula, sane
from ppdp.core.rounding import apply_error, column_sum_error, inflate

# A centred sum is charged as at least this share of the largest sum: far more than rounding leaves, and so much that
# noise on it is never too fine for its lattice.
_CENTRED = 2.0**-21


def mean_shift(domain: Domain, distance: Distance) -> float:
    """Most that the mean over the public n can change."""
    norm = float(domain.require("row_norm"))
    error = column_sum_error(domain.n, domain.d, domain.entry_bound or norm, distance)
    return min(2 * norm, (distance.shift(norm, 1.0) + error) / domain.n)


@dataclass(frozen=True, slots=True)
class _Geometry:
    """Public lengths of the scaling bound: see the proof page for the letters."""

    centre: float  # m: norm of the mean vector
    reach: float  # rho: norm of a centred row
    column_reach: float  # largest centred entry
    rows: float  # weight of unmatched rows
    scales: int  # variances that are fitted
    error: float  # n times the rounding of one variance, both sides together
    image: float  # norm of a centred row whose scale is s

    @classmethod
    def of(cls, domain: Domain, distance: Distance, s: float, conditional: bool) -> _Geometry:
        """With one scale per column."""
        norm = float(domain.require("row_norm"))
        entry = largest_entry(domain)
        centre = math.sqrt(max(0.0, norm**2 - domain.d * s * s)) if conditional else norm
        column_centre = math.sqrt(max(0.0, entry**2 - s * s)) if conditional else entry
        reach = min(norm + centre, (entry + column_centre) * math.sqrt(domain.d))
        column_reach = min(norm + centre, entry + column_centre)
        error = 3 * column_sum_error(domain.n, 1, column_reach**2, distance)
        return cls(centre, reach, column_reach, distance.one_sided, domain.d, error, reach)

    @classmethod
    def pooled(cls, domain: Domain, distance: Distance, s: float, conditional: bool) -> _Geometry:
        """With one scale for all columns: a row is to it what an entry is to the scale of its column.

        Only a variance above s² can change the floored scale, so the reach is that of the condition in both forms.
        """
        norm = float(domain.require("row_norm"))
        norm = min(norm, (domain.entry_bound or norm) * math.sqrt(domain.d))
        centre = math.sqrt(max(0.0, norm**2 - s * s))
        reach = norm + centre
        error = 4 * domain.d * column_sum_error(domain.n, 1, 4 * norm**2, distance)
        return cls(centre, reach, reach, distance.one_sided, 1, error, reach if conditional else 2 * norm)


def _largest_std(domain: Domain, distance: Distance, s: float, g: _Geometry) -> float:
    """Largest standard deviation of a column whose smaller one, of the two datasets, is s."""
    n, reach = domain.n, g.column_reach
    replaced = g.rows * reach**2 / n
    rms = min(distance.radius, math.sqrt(distance.radius * distance.total / n))
    squared = min((math.sqrt(s * s + replaced) + rms) ** 2, s * s + replaced + 2 * reach * distance.total / n)
    return math.sqrt(inflate(squared + g.error / n))


def _variance_shift(domain: Domain, distance: Distance, g: _Geometry) -> float:
    """Most that the vector of variances can change (L2)."""
    norm, n = float(domain.require("row_norm")), domain.n
    per_row = min(_spread(norm, g.centre), g.column_reach**2 * math.sqrt(g.scales))
    per_length = 2 * g.column_reach
    return (g.rows * per_row + per_length * distance.total + math.sqrt(g.scales) * g.error) / n


def _spread(norm: float, centre: float) -> float:
    """Most that ``y yᵀ`` of one row can change (Frobenius norm), y its distance from a centre of norm ``centre``."""
    h = 1 + centre / norm
    return norm**2 * math.sqrt(h**4 + max(0.0, 2 * spread_factor(centre / norm) - h * h) ** 2)


_scaling = partial(
    formula,
    kind="stability",
    page="standard-scaling",
    used_by=("StandardScaler",),
    releases=("squares", "squares-in-parts", "diagonal", "matrix"),
    row_by_row=True,
)
_exact = partial(
    _scaling, way="exact", assumes=lambda domain, *, conditional, **_: {"scaling.std"} if conditional else set()
)


@_exact("scaling.standard")
@for_columns
def standard_scaling(
    domain: Domain,
    distance: Distance,
    *,
    min_std: float,
    conditional: bool,
    clip: float | None,
    with_mean: bool = True,
    per_column: bool = True,
) -> tuple[Domain, Distance]:
    """Exact statistics: every row moves, by ``rho (1/s - 1/s_max) + dmean / s`` at most.

    Without centring (``with_mean=False``) rho is R, dmean is 0 and only the bound on each row holds.
    With a clip to norm B afterwards: ``B (s_max/s - 1) + dmean / s``, never more than 2B. Together by at most
    ``n √((dV / 2s²)² + (dmean / s)²)``.
    """
    sane(min_std > 0 and (clip is None or clip > 0))
    sane(not (conditional and distance.reweighted))  # the margin counts whole rows
    s, n = min_std, domain.n
    g = (_Geometry.of if per_column else _Geometry.pooled)(domain, distance, s, conditional)
    length = float(domain.require("row_norm"))
    reach, image = (g.reach, g.image) if with_mean else (length, length)
    norm = inflate(image / s if clip is None else min(clip, image / s))
    out = domain.but(row_norm=norm, entry_bound=None)
    if distance.changed == 0:
        return out, distance
    largest = _largest_std(domain, distance, s, g)
    dmean = mean_shift(domain, distance) if with_mean else 0.0
    growth = (largest - s) / s if largest - s > 1e-6 * s else (largest**2 - s * s) / (s * (largest + s))
    shift = reach * growth / largest + dmean / s
    if clip is not None:
        shift = min(shift, clip * growth + dmean / s)
    together = math.inf  # needs centred rows
    if with_mean:
        together = n * math.hypot(_variance_shift(domain, distance, g) / (2 * s * s), dmean / s)
    error = 2 * apply_error(domain.d, norm)
    shift, together = inflate(min(shift, 2 * norm)) + error, inflate(together) + n * error
    stretched = distance.stretched(1 / s, 2 * norm)
    return out, stretched.widened(n, n, shift, together, diameter=2 * norm)


@_exact("scaling.centred")
def centred_scaling(
    domain: Domain,
    distance: Distance,
    *,
    min_std: float,
    conditional: bool,
    clip: None,
    with_mean: bool,
    per_column: bool = True,
) -> tuple[Domain, Distance]:
    """:func:`standard_scaling` without a clip, where every row counts in full: the rows then sum to 0, up to rounding.

    ``Σ (x - mean) = 0`` on every dataset, whatever columns are divided by, so a mean behind it tells nothing, however
    far single rows have moved; and the second moment changes as a correlation does.
    """
    sane(clip is None and with_mean and nobody_absent(domain, distance))
    out, far = standard_scaling(
        domain, distance, min_std=min_std, conditional=conditional, clip=clip, per_column=per_column
    )
    n, d, norm, image = domain.n, domain.d, float(domain.require("row_norm")), float(out.require("row_norm"))
    of_rows = n * apply_error(d, image) + column_sum_error(n, d, norm, Distance(replaced=n)) / min_std
    moments = _correlation_shift(domain, distance, min_std, conditional, per_column) + 4 * image * of_rows
    return out, far.knowing(sums=2 * max(inflate(of_rows), _CENTRED * n * image), moments=inflate(moments))


def _correlation_shift(domain: Domain, distance: Distance, s: float, conditional: bool, per_column: bool) -> float:
    """Most that n times the covariance of the scaled rows can change: ``√d`` times that of the covariance over s²."""
    d, norm = domain.d, float(domain.require("row_norm"))
    g = (_Geometry.of if per_column else _Geometry.pooled)(domain, distance, s, conditional)
    per_row = math.sqrt(min(d, 2)) * g.image**2
    if per_column:
        per_row = math.sqrt(d) * min(per_row, _spread(norm, g.centre))
    per_length = 2 * g.image * math.sqrt(d if per_column else min(d, 2))
    return (g.rows * per_row + per_length * distance.total + 2 * d * g.error) / (s * s)


@_scaling("scaling.public", way="noisy", affine=lambda *, clip, **_: clip is None)
@for_columns
def public_scaling(
    domain: Domain, distance: Distance, *, min_std: float, clip: float | None, with_mean: bool = True
) -> tuple[Domain, Distance]:
    """Released or public statistics: row-wise, ``1/s``-Lipschitz.

    The released mean is clipped to the norm of a row, so the output norm is public.
    """
    sane(min_std > 0 and (clip is None or clip > 0))
    norm = (2 if with_mean else 1) * float(domain.require("row_norm")) / min_std
    norm = inflate(norm if clip is None else min(clip, norm))
    out = domain.but(row_norm=norm, entry_bound=None)
    return out, distance.stretched(1 / min_std, 2 * norm).jittered(apply_error(domain.d, norm))


def _named(words: str, columns: Sequence[int] | None) -> str:
    """Which columns it is of, where it is not of all."""
    return "" if columns is None else f"{words}{list(columns)}"  # which a certificate that was read has as a tuple


@formula(
    "scaling.none",
    kind="stability",
    page="standard-scaling",
    used_by=("StandardScaler", "RobustScaler", "MinMaxScaler"),
    gaps=True,
    row_by_row=True,
)
def no_scaling(domain: Domain, distance: Distance) -> tuple[Domain, Distance]:
    """No column is scaled: rows stay as they are."""
    return domain, distance


@formula(
    "scaling.std",
    kind="margin",
    page="standard-scaling",
    name="deviation",
    statement=lambda domain, *, min_std, per_column=True, columns=None, **_: (
        f"every column{_named(' of ', columns)} has standard deviation at least {min_std:.4g}"
        if per_column
        else f"the variances of the columns{_named(' ', columns)} add up to at least {min_std:.4g} squared"
    ),
    largest=lambda domain, unit, **_: domain.n / unit,
)
def std_margin(domain: Domain, distance: Distance) -> float:
    """Rows that one neighbouring pair replaces in the window of the margin."""
    return float(math.ceil(distance.one_sided))
