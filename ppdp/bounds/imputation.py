"""Imputation of means and trimmed means: ``docs/theory/mean-imputation.md`` and ``docs/theory/trimmed-mean.md``.

Column means over the observed entries of the rows with weight, divided by ``max(n_j, n0)`` (or by ``n_j``
under the condition ``n_j >= n0``), fill the gaps; then rows are clipped back to their norm. A trimmed mean leaves out
the m smallest and m largest values of a column; one of fewer than n0 values is filled up with zeros. It obeys the bound
of the mean over ``max(n_j, n0)`` with ``n0 - 2m`` in place of n0, for all data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from ppdp.bounds.columns import entries_of
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import formula, sane, whole
from ppdp.core.rounding import UNIT, apply_error, column_sum_error, inflate


def mean_norm(domain: Domain, min_observed: int) -> float:
    """Bound A on the norm of the vector of means: ``R min(√d, √(n/n0))``."""
    norm = float(domain.require("row_norm"))
    return min(
        norm * min(math.sqrt(domain.d), math.sqrt(domain.n / min_observed)),
        (domain.entry_bound or norm) * math.sqrt(domain.d),
    )


def mean_sensitivity(domain: Domain, distance: Distance, min_observed: int) -> float:
    """Most that the vector of means can change: ``(K(A) paired + (R + A) single + total) / n0``.

    A replaced row may change its mask. Against the means of the other dataset it contributes at most
    ``K(A) = √(4R² + 2A²)`` (``√2 R + A`` if ``A > √2 R``), a toggled one ``R + A``; neither more than
    ``2b√d`` if every entry is at most b.
    """
    return _sensitivity(domain, distance, min_observed, share=1.0, pull=mean_norm(domain, min_observed))


def fill_sensitivity(domain: Domain, distance: Distance, min_observed: int, rows: float) -> float:
    """Most that ``rows`` filled and clipped rows can move because of the means, in root mean square.

    Like :func:`mean_sensitivity`, with ``K² = max 4R² - 2s² + (√share s + pull)²``. A column whose divisor
    changes is observed more than n0 times, hence missing in at most ``share = min(1, (n - n0)/rows)`` of the
    rows; and means longer than R are clipped, so ``pull = min(√share A, √(R² + sensitivity²/4))``.
    """
    share = min(1.0, (domain.n - min_observed) / rows)
    whole = math.hypot(float(domain.require("row_norm")), mean_sensitivity(domain, distance, min_observed) / 2)
    pull = min(math.sqrt(share) * mean_norm(domain, min_observed), whole)
    return _sensitivity(domain, distance, min_observed, share, pull)


def _sensitivity(domain: Domain, distance: Distance, min_observed: int, share: float, pull: float) -> float:
    norm, a = float(domain.require("row_norm")), mean_norm(domain, min_observed)
    box = 2 * (domain.entry_bound or norm) * math.sqrt(domain.d)
    replaced = min(_farthest(2, math.sqrt(2) * norm, share, pull), box)
    toggled = min(_farthest(1, norm, share, pull), box)
    paired, single = distance.unmatched
    if 2 * toggled < replaced:  # keeps the worst split of the mass at "one side full"
        toggled = replaced / 2
    moves = min(distance.total, replaced * distance.moved)
    error = column_sum_error(domain.n, domain.d, norm, distance) / min_observed + 8 * UNIT * a
    return inflate(min(2 * a, (replaced * paired + toggled * single + moves) / min_observed) + error)


def _farthest(weight: float, most: float, share: float, pull: float) -> float:
    """Square root of the maximum of ``weight (most² - s²) + (√share s + pull)²`` over ``0 <= s <= most``."""
    slope = math.sqrt(share)
    s = min(most, slope * pull / (weight - share)) if share < weight else most
    return math.sqrt(weight * (most**2 - s**2) + (slope * s + pull) ** 2)


def few_gaps(domain: Domain, *, max_missing: int, **_: object) -> set[str]:
    """The margin that exact statistics rest on where not every row may have gaps."""
    return {"imputation.missing"} if min(max_missing, domain.missing_rows) < domain.n else set()


def filled(domain: Domain, distance: Distance, max_missing: int) -> tuple[Domain, int]:
    """The domain without gaps, and how many rows may move with an exact statistic that fills theirs."""
    sane(whole(max_missing) and max_missing >= 0)
    return domain.but(max_missing=0), min(max_missing, domain.missing_rows) if distance.changed else 0


_stage = partial(formula, kind="stability", gaps=True)
_means = partial(_stage, page="mean-imputation")
_trimmed = partial(_stage, page="trimmed-mean", used_by=("TrimmedMeanImputer",), releases=("trimmed-means",))


@_means(
    "imputation.mean",
    way="exact",
    used_by=("MeanImputer",),
    assumes=lambda domain, *, conditional, **own: (
        few_gaps(domain, **own) | ({"imputation.observed"} if conditional else set())
    ),
    releases=("means",),
)
def mean_imputation(
    domain: Domain,
    distance: Distance,
    *,
    min_observed: int,
    max_missing: int,
    conditional: bool = False,
    columns: Sequence[int] | None = None,
) -> tuple[Domain, Distance]:
    """Exact means: what one row with gaps can move, and all of them together.

    ``conditional`` says that the means are over n_j and not ``max(n_j, n0)``; under the condition
    ``n_j >= n0`` the bound is the same. Gaps outside ``columns`` are filled with 0.
    """
    entries = entries_of(domain, columns)
    sane(whole(min_observed) and 1 <= min_observed <= domain.n)
    out, count = filled(domain, distance, max_missing)
    if count == 0:
        return out, distance
    norm = float(domain.require("row_norm"))
    rounding = 2 * apply_error(domain.d, norm)
    rows = max(1.0, min(count, domain.n - distance.replaced))
    each = fill_sensitivity(entries, distance, min_observed, 1) + rounding
    total = rows * (fill_sensitivity(entries, distance, min_observed, rows) + rounding)
    return out, distance.widened(domain.n, count, each, total, diameter=2 * norm)


@_trimmed("imputation.trimmed-mean", way="exact", assumes=few_gaps)
def trimmed_imputation(
    domain: Domain, distance: Distance, *, min_observed: int, trimmed: int, max_missing: int
) -> tuple[Domain, Distance]:
    """Exact trimmed means: every row with gaps moves by at most their sensitivity."""
    out, count = filled(domain, distance, max_missing)
    if count == 0:
        return out, distance
    norm = float(domain.require("row_norm"))
    each = trimmed_sensitivity(domain, distance, min_observed=min_observed, trimmed=trimmed)
    return out, distance.widened(domain.n, count, each + 2 * apply_error(domain.d, norm), diameter=2 * norm)


@formula("release.trimmed-means", kind="release", page="trimmed-mean")
def trimmed_sensitivity(domain: Domain, distance: Distance, *, min_observed: int, trimmed: int) -> float:
    """Most that the vector of trimmed means can change: ``(K(A) paired + (R + A) single + total) / (n0 - 2m)``.

    ``A = R √(n / (n0 - 2m))`` bounds the vector, ``K(A) = √(4R² + 2A²)`` or ``√2 R + A``, as for means.
    """
    sane(whole(trimmed, min_observed))
    sane(0 <= 2 * trimmed < min_observed <= domain.n and distance.reweighted == 0)
    return mean_sensitivity(domain, distance, min_observed - 2 * trimmed)


@_trimmed("imputation.trimmed-public", way="noisy")
@_means("imputation.public", way="noisy", used_by=("MeanImputer",), releases=("means",))
@_means(
    "imputation.zero",
    way="public",
    used_by=("MeanImputer", "MedianImputer", "RegressionImputer", "TrimmedMeanImputer"),
)
def public_imputation(domain: Domain, distance: Distance) -> tuple[Domain, Distance]:
    """Public or released means: row-wise; rows with equal masks move no further apart.

    Gaps that nobody expects are filled with 0: right even if there are some.
    """
    rounding = apply_error(domain.d, float(domain.require("row_norm")))
    return domain.but(max_missing=0), distance.jittered(rounding)


_margin = partial(formula, kind="margin", page="mean-imputation")


@_margin(
    "imputation.observed",
    name="observed",
    statement=lambda domain, *, min_observed, columns=None, **_: (
        f"every column{'' if columns is None else f' of {list(columns)}'} is observed in at least {min_observed} rows"
    ),
    largest=lambda domain, unit, *, min_observed, **_: (domain.n - min_observed) / unit,
)
def observed_margin(domain: Domain, distance: Distance) -> float:
    """Change of ``min_j n_j`` along one neighbouring pair: the one-sided mass."""
    return distance.one_sided


@_margin(
    "imputation.missing",
    name="missing",
    statement=lambda domain, *, max_missing, **_: f"at most {min(max_missing, domain.missing_rows)} rows have gaps",
    largest=lambda domain, unit, *, max_missing, **_: (min(max_missing, domain.missing_rows) + 1) / unit,
    level=lambda domain, unit, *, max_missing, **_: -min(max_missing, domain.missing_rows) / unit,
    threshold=("max_missing", "min_observed"),
)
def missing_margin(domain: Domain, distance: Distance) -> float:
    """Change of the number of rows with gaps along one neighbouring pair.

    A count of rows, not of weight: at most the rows that are unmatched.
    """
    return distance.replaced + distance.toggled
