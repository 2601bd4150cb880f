"""Soft projection on the leading eigenvectors: ``docs/theory/soft-pca.md``.

``x -> F x`` with ``F = C (C + λI)⁻¹`` of the second moment ``C = (1/n) Σ w x xᵀ`` and a public λ; no condition.
"""

from __future__ import annotations

import math

from ppdp.bounds.pca import map_error, moment_error
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import formula, sane
from ppdp.core.rounding import inflate

__all__ = ["moment_distance", "public_shrinkage", "shrinkage", "shrinkage_shift"]


def moment_distance(domain: Domain, distance: Distance) -> tuple[float, float]:
    """Bounds on ``C - C'``, computed with rounding: operator norm and Frobenius norm."""
    n, norm = domain.n, float(domain.require("row_norm"))
    paired, single = distance.unmatched
    operator = norm**2 * distance.one_sided + min(2 * norm * distance.total, norm**2 * distance.moved)
    frobenius = norm**2 * (math.sqrt(2) * paired + single)
    frobenius += min(2 * norm * distance.total, math.sqrt(2) * norm**2 * distance.moved)
    error = 2 * moment_error(domain)
    return operator / n + error, frobenius / n + error


def shrinkage_shift(domain: Domain, distance: Distance, ridge: float) -> tuple[float, float]:
    """Bounds on ``‖F - F'‖`` and on the root mean square of ``‖(F - F') x‖`` over the rows (Theorem 1 of the page)."""
    operator, frobenius = moment_distance(domain, distance)
    shift = operator / (operator + ridge)
    rounding = math.sqrt(1 + 8 * moment_error(domain) / ridge)  # of the moment, where its root is averaged over rows
    mean_square = frobenius / math.sqrt(8 * ridge) * min(1 + math.sqrt(2) * shift, math.sqrt(2)) * rounding
    return inflate(shift), inflate(min(mean_square, shift * float(domain.require("row_norm"))))


def _output(domain: Domain, ridge: float) -> tuple[Domain, float]:
    """Domain after the map, and its Lipschitz constant ``R² / (R² + λ)``."""
    norm = float(domain.require("row_norm"))
    slope = norm**2 / (norm**2 + ridge)
    return domain.but(row_norm=inflate(slope * norm), entry_bound=None), slope


@formula(
    "soft-pca.shrinkage",
    kind="stability",
    page="soft-pca",
    way="exact",
    used_by=("SoftPCA",),
    releases=("moment", "matrix"),
)
def shrinkage(domain: Domain, distance: Distance, *, ridge: float) -> tuple[Domain, Distance]:
    """Exact second moment: every row moves by at most ``R t / (1 + t)``, ``t = ‖C - C'‖ / λ``; less on average."""
    sane(ridge > 0)
    n, norm = domain.n, float(domain.require("row_norm"))
    out, slope = _output(domain, ridge)
    if distance.changed == 0:
        return out, distance
    shift, mean_square = shrinkage_shift(domain, distance, ridge)
    error, diameter = 2 * map_error(domain.d, norm), 2 * float(out.require("row_norm"))
    stretched = distance.stretched(inflate(slope), diameter)
    return out, stretched.widened(n, n, norm * shift + error, n * (mean_square + error), diameter=diameter + error)


@formula(
    "soft-pca.public",
    kind="stability",
    page="soft-pca",
    way="noisy",
    used_by=("SoftPCA",),
    releases=("moment", "matrix"),
    affine=lambda **_: True,
)
def public_shrinkage(domain: Domain, distance: Distance, *, ridge: float) -> tuple[Domain, Distance]:
    """Released second moment: row-wise, ``R² / (R² + λ)``-Lipschitz, up to rounding."""
    sane(ridge > 0)
    out, slope = _output(domain, ridge)
    if distance.changed == 0:
        return out, distance
    error, diameter = 2 * map_error(domain.d, float(domain.require("row_norm"))), 2 * float(out.require("row_norm"))
    stretched = distance.stretched(inflate(slope), diameter)
    return out, stretched.widened(domain.n, domain.n, error, diameter=diameter + error)
