"""PCA of a second moment that takes one product instead of three: ``docs/theory/pca.md``.

A row's product is off by a public amount. Equal rows are rounded equally, so the error of those that differ is all
that a neighbour sees of it, and where few do, that is less than what is charged for rounding anyhow.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ppdp.bounds.pca import centred_rank, projected_map, rank_projection
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, largest_entry
from ppdp.core.formula import formula, lookup, sane
from ppdp.core.rounding import coarse_error, product_error

MANY = 2**15  # rows from which on it matters how long products take

_exact = partial(formula, kind="stability", page="pca", way="exact", used_by=("PCA",), row_by_row=True)


def coarse_gap(domain: Domain) -> float:
    """Eigengap of which the error of a row's product is 1e-4."""
    return 1e4 * coarse_error(domain.d, float(domain.require("row_norm")), largest_entry(domain))


def coarse_suffices(domain: Domain, distance: Distance, min_gap: float) -> bool:
    """Whether coarse products are worth it, and cost no more in rows that differ than is charged anyhow."""
    gap, charged = coarse_gap(domain), product_error(domain.n, float(domain.require("row_norm")))
    return domain.n >= MANY and min_gap >= gap and distance.changed * gap <= 0.99e4 * charged


def _coarse(name: str, bound: Callable[..., tuple[Domain, Distance]]) -> None:
    """Register a bound for coarse products."""
    fine = lookup(f"pca.{name}", "stability")

    @_exact(f"pca.coarse-{name}", assumes=fine.assumes, releases=fine.releases)
    def coarse(domain: Domain, distance: Distance, *, min_gap: float, **kwargs: Any) -> tuple[Domain, Distance]:
        """The same with twice the error of a row's product taken off the eigengap."""
        sane(coarse_suffices(domain, distance, min_gap))
        return bound(domain, distance, min_gap=min_gap - 2e-4 * coarse_gap(domain), **kwargs)


_coarse("rank", rank_projection)
_coarse("centred-rank", centred_rank)
_coarse("projected", projected_map)
