"""Projection on the leading eigenvectors: ``docs/theory/pca.md``.

``x -> P x`` with P the projector on the top k eigenvectors of the second moment ``C = (1/n) Σ w x xᵀ``, under the
condition that the eigengap ``λ_k - λ_{k+1}`` is at least β.
"""

from __future__ import annotations

import math

from ppdp.bounds.formula import formula, sane
from ppdp.bounds.rounding import eigen_error, inflate, product_error, projection_error
from ppdp.distance import Distance
from ppdp.domain import Domain

__all__ = [
    "gap_margin",
    "moment_spread",
    "projector_shift",
    "public_projection",
    "rank_projection",
    "spread_factor",
]


def spread_factor(a: float) -> float:
    """``max_u 2u (√(1 - u²) + a)``: 1 at a = 0, 3√3/2 at a = 1."""
    v = (-a + math.sqrt(a * a + 8)) / 4
    return 2 * math.sqrt(1 - v * v) * (v + a)


def moment_spread(domain: Domain, distance: Distance) -> float:
    """Half the spread of the eigenvalues of ``C - C'``: ``(mass R²/2 + R total) / n``."""
    norm = float(domain.require("row_norm"))
    return (distance.mass * norm**2 / 2 + min(norm * distance.total, norm**2 * distance.moved)) / domain.n


def projector_shift(domain: Domain, distance: Distance, min_gap: float) -> float:
    """Bound on ``‖P - P'‖``: the spread over the gap (Theorem 1 of the page), never above 1."""
    norm = float(domain.require("row_norm"))
    error = product_error(domain.n, norm) / domain.n + eigen_error(domain.d, norm)
    room = min_gap - 2 * error
    return min(1.0, inflate(moment_spread(domain, distance) + 2 * error) / room) if room > 0 else 1.0


@formula(
    "pca.rank", kind="stability", page="pca", way="exact", used_by=("PCA",), assumes=lambda domain, **_: {"pca.gap"}
)
def rank_projection(domain: Domain, distance: Distance, *, min_gap: float) -> tuple[Domain, Distance]:
    """Exact projector: every row moves by at most ``R ‖P - P'‖``."""
    sane(min_gap > 0)
    norm = float(domain.require("row_norm"))
    out = domain.but(entry_bound=None)
    if distance.changed == 0:
        return out, distance
    shift = inflate(norm * projector_shift(domain, distance, min_gap)) + 2 * projection_error(domain.d, norm)
    return out, distance.widened(domain.n, domain.n, shift, diameter=2 * norm)


@formula(
    "pca.public",
    kind="stability",
    page="pca",
    way="noisy",
    used_by=("PCA",),
    releases=("matrix",),
    affine=lambda **_: True,
)
def public_projection(domain: Domain, distance: Distance) -> tuple[Domain, Distance]:
    """Projector of a released second moment: row-wise, 1-Lipschitz, up to rounding."""
    norm = float(domain.require("row_norm"))
    out = domain.but(entry_bound=None)
    if distance.changed == 0:
        return out, distance
    error = 2 * projection_error(domain.d, norm)
    return out, distance.widened(domain.n, domain.n, error, diameter=2 * norm + error)


@formula(
    "pca.gap",
    kind="margin",
    page="pca",
    statement=lambda domain, *, min_gap, **_: f"the eigengap of the second moment is at least {min_gap:.4g}",
    largest=lambda domain, unit, *, min_gap, **_: (float(domain.require("row_norm")) ** 2 - min_gap) / unit,
)
def gap_margin(domain: Domain, distance: Distance) -> float:
    """Change of the eigengap along one neighbouring pair: ``2H = (mass R² + 2R total) / n``."""
    return 2 * moment_spread(domain, distance)
