"""Imputation: ``docs/theory/mean-imputation.md``, ``trimmed-mean.md`` and ``regression-imputation.md``.

Column means over the observed entries of the rows with weight, divided by ``max(n_j, n0)`` (or by ``n_j`` under the
condition ``n_j >= n0``), fill the gaps; then rows are clipped back to their norm. A trimmed mean leaves out the m
smallest and m largest values of a column; one of fewer than n0 values is filled up with zeros. It obeys the bound of
the mean over ``max(n_j, n0)`` with ``n0 - 2m`` in place of n0, for all data.

Regression fills by least squares of the columns missing on the columns observed, fitted on the complete rows: with
``C = (1/n) Σ w x xᵀ`` over them, ``B = (C_rr + νR²)⁻¹ C_rJ`` (ridge form) or ``B = C_rr⁻¹ C_rJ`` under the condition
that the eigenvalues of C are at least ``νR²``; ν is ``share``. Then rows are clipped back to their entries and norm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from ppdp.bounds.column_groups import entries_of
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import formula, sane, whole
from ppdp.core.rounding import UNIT, apply_error, column_sum_error, eigen_error, inflate, product_error


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


_stage = partial(formula, kind="stability", gaps=True, row_by_row=True)
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
@_means(
    "imputation.public",
    way="noisy",
    used_by=("MeanImputer",),
    releases=("means", "squares-in-parts"),
    affine=lambda **_: True,
)
@_means(
    "imputation.zero", way="public", used_by=("MeanImputer", "MedianImputer", "RegressionImputer", "TrimmedMeanImputer")
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


def coefficient_norm(domain: Domain, share: float, conditional: bool) -> float:
    """Bound b on the norm of the coefficients B of any pattern of gaps.

    Ridge: ``1 / (2 √(ν(1 + ν)))``. Condition: ``(1 - 2ν) / (2 √(ν(1 - ν)))`` with ν over what the d - 2
    other eigenvalues leave of the trace.
    """
    if domain.d == 1:
        return 0.0  # nothing is observed beside the gap
    solving = 1 + 16 * domain.d**2.5 * UNIT * (1 + 1 / share)
    if not conditional:
        return solving / (2 * math.sqrt(share * (1 + share)))
    share = min(0.5, share / (1 - (domain.d - 2) * share))
    return solving * (1 - 2 * share) / (2 * math.sqrt(share * (1 - share)))


def coefficient_shift(domain: Domain, distance: Distance, share: float, conditional: bool) -> float:
    """Most that the coefficients of any pattern of gaps can change (operator norm), never above 2b.

    With ``s = √(1 + b²)``: ``R² (s paired + (b + s)/2 single + (b + s) total/R) / (ν n R²)``.
    """
    n, d, norm = domain.n, domain.d, float(domain.require("row_norm"))
    b = coefficient_norm(domain, share, conditional)
    s = math.hypot(1.0, b)
    paired, single = distance.unmatched
    moves = min((b + s) * distance.total / norm, s * distance.moved)
    error = product_error(n, 1.0) / n + 3 * math.sqrt(d) * eigen_error(d, 1.0)  # of C, in units of R²
    solving = 16 * d**2.5 * UNIT * (1 + share) * b
    room = share - error
    change = (s * paired + (b + s) / 2 * single + moves) / n + 2 * (s * error + solving)
    return min(2 * b, inflate(change) / room) if room > 0 else 2 * b


def _filling_error(domain: Domain, b: float) -> float:
    """L2 error of one row that is filled, entry by entry, and clipped."""
    norm = float(domain.require("row_norm"))
    return apply_error(domain.d, norm) + (domain.d + 2) * math.sqrt(domain.d) * UNIT * b * norm


def _sane(domain: Domain, share: float, conditional: bool) -> None:
    sane(1e-9 <= share <= 1e9 and (not conditional or share * domain.d <= 1 + 1e-9))


_regression = partial(
    formula,
    kind="stability",
    page="regression-imputation",
    used_by=("RegressionImputer",),
    releases=("complete-matrix",),
    gaps=True,
    row_by_row=True,
)


@_regression(
    "regression.exact",
    way="exact",
    assumes=lambda domain, *, conditional, **own: (
        few_gaps(domain, **own) | ({"regression.eigenvalue"} if conditional else set())
    ),
)
def regression(
    domain: Domain, distance: Distance, *, share: float, max_missing: int, conditional: bool = False
) -> tuple[Domain, Distance]:
    """Exact coefficients: every row with gaps moves by at most R times their shift, and ``√(1 + b²)`` times its move.

    Filled entries lie in the box of entries if one is declared, so a row never moves further than the box is wide.
    """
    _sane(domain, share, conditional)
    out, count = filled(domain, distance, max_missing)
    if count == 0:
        return out, distance
    norm = float(domain.require("row_norm"))
    b = coefficient_norm(domain, share, conditional)
    box = 2 * (domain.entry_bound or math.inf) * math.sqrt(domain.d - 1) if domain.d > 1 else 0.0
    each = min(norm * coefficient_shift(domain, distance, share, conditional), box, 2 * norm)
    each = inflate(each) + 2 * _filling_error(domain, b)
    stretched = distance.stretched(inflate(math.hypot(1.0, b)), 2 * norm)
    return out, stretched.widened(domain.n, count, each, diameter=2 * norm)


@_regression("regression.public", way="noisy")
def public_regression(
    domain: Domain, distance: Distance, *, share: float, conditional: bool = False
) -> tuple[Domain, Distance]:
    """Coefficients from a released matrix, put where an exact one would lie: row-wise, ``√(1 + b²)``-Lipschitz."""
    _sane(domain, share, conditional)
    norm = float(domain.require("row_norm"))
    b = coefficient_norm(domain, share, conditional)
    stretched = distance.stretched(inflate(math.hypot(1.0, b)), 2 * norm)
    return domain.but(max_missing=0), stretched.jittered(_filling_error(domain, b))


@formula(
    "regression.eigenvalue",
    kind="margin",
    page="regression-imputation",
    name="eigenvalue",
    statement=lambda domain, *, share, **_: (
        "the second moment of the rows without gaps has no eigenvalue below"
        f" {share * float(domain.require('row_norm')) ** 2:.4g}"
    ),
    largest=lambda domain, unit, *, share, **_: (1 / domain.d - share) * float(domain.require("row_norm")) ** 2 / unit,
)
def eigenvalue_margin(domain: Domain, distance: Distance) -> float:
    """Change of the least eigenvalue of C along one neighbouring pair: ``(R² one_sided + 2R total) / n``."""
    norm = float(domain.require("row_norm"))
    return (norm**2 * distance.one_sided + min(2 * norm * distance.total, norm**2 * distance.moved)) / domain.n


@formula("release.complete-moment", kind="release", page="regression-imputation")
def complete_moment(domain: Domain, distance: Distance) -> float:
    """Second moment/(√2 R) of the rows without gaps: R/n for one replaced row, whatever its gaps.

    A toggled row costs ``R/√2``, a row that moved by w at most ``√2 |w|``.
    """
    n, norm = domain.n, float(domain.require("row_norm"))
    error = math.sqrt(2) * product_error(n, norm) / norm
    return inflate((distance.moment_shift(norm) + error) / n)
