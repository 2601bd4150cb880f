"""Groups of columns in neighbouring datasets: what is drawn keeps to what is known of each, and so must outputs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ppdp.bounds.column_groups import distance_of, domain_of, span_of
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.rows import Array, Rows
from ppdp.data.statistics import clip_norms, row_norms


def spans(domain: Domain) -> Iterator[tuple[str, slice]]:
    """Every group with its columns."""
    for group in domain.groups:
        _, start, stop = span_of(domain, group.name)
        yield group.name, slice(start, stop)


def bounded_in_groups(X: Array, domain: Domain) -> Array:
    """Rows that are clipped in every group to what is known of it; where no gap is, it becomes 0."""
    if not domain.groups:
        return X
    out = X.copy()
    for name, columns in spans(domain):
        here, own = domain_of(domain, name), np.ascontiguousarray(X[:, columns])
        if here.max_missing == 0 and domain.max_missing != 0:
            own = np.nan_to_num(own)
        if here.entry_bound is not None:
            own = np.clip(own, -here.entry_bound, here.entry_bound)
        out[:, columns] = clip_norms(own, here.row_norm)
    return out


def confined_in_groups(step: Array, domain: Domain, distance: Distance) -> Array:
    """Changes of rows that are pulled back in every group to what is known of it."""
    if not distance.groups:
        return step
    out = step.copy()
    for name, columns in spans(domain):
        own, here = np.ascontiguousarray(step[:, columns]), distance_of(domain, distance, name)
        own[int(here.moved) :] = 0.0
        own = clip_norms(own, here.radius) if here.radius else np.zeros_like(own)
        out[:, columns] = own * min(1.0, here.total / max(float(row_norms(own).sum()), 1e-300))
    return out


def parts(
    pair: tuple[Rows, Rows], domain: Domain, distance: Distance
) -> Iterator[tuple[str, tuple[Rows, Rows], Domain, Distance]]:
    """The pair, and what is claimed of it, in every group by itself."""
    for name, columns in spans(domain):
        one, other = (rows.with_X(np.ascontiguousarray(rows.X[:, columns])) for rows in pair)
        yield name, (one, other), domain_of(domain, name), distance_of(domain, distance, name)
