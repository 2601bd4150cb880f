"""Trimmed-mean imputation: ``docs/theory/trimmed-mean.md``.

The mean of a column without its m smallest and m largest values, a column of fewer than n0 values being filled up with
zeros. It obeys the bound of the mean over ``max(n_j, n0)`` with ``n0 - 2m`` in place of n0, for all data.
"""

from __future__ import annotations

from ppdp.bounds.imputation import mean_sensitivity, public_imputation
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import formula, sane, whole
from ppdp.core.rounding import apply_error

__all__ = ["public_trimmed_imputation", "trimmed_imputation", "trimmed_sensitivity"]


@formula("release.trimmed-means", kind="release", page="trimmed-mean")
def trimmed_sensitivity(domain: Domain, distance: Distance, *, min_observed: int, trimmed: int) -> float:
    """Most that the vector of trimmed means can change: ``(K(A) paired + (R + A) single + total) / (n0 - 2m)``.

    ``A = R √(n / (n0 - 2m))`` bounds the vector, ``K(A) = √(4R² + 2A²)`` or ``√2 R + A``, as for means.
    """
    sane(whole(trimmed, min_observed))
    sane(0 <= 2 * trimmed < min_observed <= domain.n and distance.reweighted == 0)
    return mean_sensitivity(domain, distance, min_observed - 2 * trimmed)


@formula(
    "imputation.trimmed-mean",
    kind="stability",
    page="trimmed-mean",
    way="exact",
    used_by=("TrimmedMeanImputer",),
    assumes=lambda domain, *, max_missing, **_: (
        {"imputation.missing"} if min(max_missing, domain.missing_rows) < domain.n else set()
    ),
    releases=("trimmed-means",),
    gaps=True,
)
def trimmed_imputation(
    domain: Domain, distance: Distance, *, min_observed: int, trimmed: int, max_missing: int
) -> tuple[Domain, Distance]:
    """Exact trimmed means: every row with gaps moves by at most their sensitivity."""
    sane(whole(max_missing) and max_missing >= 0)
    count = min(max_missing, domain.missing_rows)
    out = domain.but(max_missing=0)
    if count == 0 or distance.changed == 0:
        return out, distance
    norm = float(domain.require("row_norm"))
    each = trimmed_sensitivity(domain, distance, min_observed=min_observed, trimmed=trimmed)
    return out, distance.widened(domain.n, count, each + 2 * apply_error(domain.d, norm), diameter=2 * norm)


@formula(
    "imputation.trimmed-public",
    kind="stability",
    page="trimmed-mean",
    way="noisy",
    used_by=("TrimmedMeanImputer",),
    releases=("trimmed-means",),
    gaps=True,
)
def public_trimmed_imputation(domain: Domain, distance: Distance) -> tuple[Domain, Distance]:
    """Released trimmed means: row-wise; rows with equal masks move no further apart."""
    return public_imputation(domain, distance)
