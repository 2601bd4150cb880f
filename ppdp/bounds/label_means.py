"""Mean labels of categories, released with noise: ``docs/theory/label-means.md``.

A row gives its weight to one cell of each column, the category that it has there, shared out among the parts of its
label: all to its class, or to both ends of the range of a target by how near it is to them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ppdp.bounds.queries import counting_step, histograms_apart
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import formula, sane, whole
from ppdp.core.rounding import inflate

MOST_CELLS = 10_001  # of one column: codes of that many categories but one, and a cell for anything else
MOST_NUMBERS = 2_000_000  # that are released together


def label_parts(domain: Domain) -> int:
    """Among how many parts a label is shared out: the classes, or the two ends of the range of a target."""
    return 2 if domain.classes is None else len(domain.classes)


def columns_per_category(domain: Domain) -> int:
    """Columns that one column of categories becomes: one, or one for each of more than two classes."""
    parts = label_parts(domain)
    return 1 if parts == 2 else parts


def _check(domain: Domain, columns: Sequence[int], cells: int) -> None:
    sane(bool(columns) and whole(*columns, cells) and 0 <= min(columns) <= max(columns) < domain.d)
    sane(len(set(columns)) == len(columns) and 2 <= cells <= MOST_CELLS)
    sane((domain.classes is not None or domain.y_range is not None) and label_parts(domain) >= 2)
    sane(len(columns) * cells * label_parts(domain) <= MOST_NUMBERS)


@formula("release.label-means", kind="release", page="label-means")
def label_weights(domain: Domain, distance: Distance, *, columns: Sequence[int], cells: int) -> float:
    """Weights by category and label in c columns: as histograms, √(2c) for one replaced row, √c for a toggled one.

    However many categories and classes there are. Counts come free: they are sums of the same numbers.
    """
    _check(domain, columns, cells)
    error = 3 * math.sqrt(len(columns)) * distance.reweighted * counting_step(domain.n)
    return inflate(histograms_apart(domain, distance, len(columns)) + error)


@formula(
    "row-wise.label-means",
    kind="stability",
    page="label-means",
    way="noisy",
    releases=("label-means",),
    gaps=True,
    used_by=("TargetMeanEncoder",),
)
def label_means(
    domain: Domain,
    distance: Distance,
    *,
    columns: Sequence[int],
    cells: int,
    feature_names: Sequence[str] | None = None,
) -> tuple[Domain, Distance]:
    """Categories become released means between -1 and 1, and all other columns are clipped to there.

    A row that moved counts as replaced: it may have another category.
    """
    _check(domain, columns, cells)
    width = domain.d + len(columns) * (columns_per_category(domain) - 1)
    names = None if feature_names is None else tuple(feature_names)
    sane(names is None or len(names) == width)
    norm = inflate(math.sqrt(width))
    out = domain.but(n_features=width, feature_names=names, row_norm=norm, entry_bound=1.0)
    return out, distance.moved_as_replaced()
