"""L2 sensitivity of what is released with noise (``docs/theory/releases.md``), and mean labels of categories
(``docs/theory/label-means.md``).

Of mean labels a row gives its weight to one cell of each column, the category that it has there, shared out among the
parts of its label: all to its class, or to both ends of the range of a target by how near it is to them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.special import ndtr

from ppdp.bounds.column_groups import entries_of, release_of_columns
from ppdp.bounds.imputation import mean_sensitivity
from ppdp.bounds.queries import (
    MOST_NUMBERS,
    check_grid,
    counting_step,
    covariance_sensitivity,
    histograms_apart,
    moving,
)
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import LAPLACE, formula, sane, whole
from ppdp.core.rounding import column_sum_error, inflate
from ppdp.privacy.noise.sampler import WORST_ALLOWANCE_PER_ENTRY, lattice_allowance

# Largest weight c such that t²(1 + c²(2 - t)²) <= 4 for all t in [0, 2]: c² = (11 + 5√5)/8, rounded down.
BOX_WEIGHT = math.sqrt((11 + 5 * math.sqrt(5)) / 8) * (1 - 1e-12)

OCTAVES = 13  # times that a column is halved towards its ends and its middle ...
TAIL_CELLS = 4 * OCTAVES - 1  # ... for so many cells of it
TURN_CELLS = 128  # of equal width, of where a value is within a quarter of the bound
TAIL_WEIGHT = 2.0  # root of the squared weights of shares of rows in both, beside means of entries up to 1

RANGE_CELLS, FINER = 283, 64  # cells of a column in the two histograms that its range is found in
MOST_CATEGORIES = 10_000  # that may be released


@formula("release.mean-and-moment", kind="release", page="releases")
def mean_and_moment(domain: Domain, distance: Distance) -> float:
    """Mean and second moment/(√2 R) of rows of norm R, jointly: 2R/n for one replaced row.

    Exactly the sensitivity of the mean alone. A toggled row costs ``√1.5 R``, a row that moved by w
    at most ``√3 |w|``. Where the sum is known to stay, as that of centred rows, the second moment alone counts.
    """
    return covariance_sensitivity(domain, distance, weighted=False)


@formula("release.mean-and-diagonal", kind="release", page="releases")
@release_of_columns
def mean_and_diagonal(domain: Domain, distance: Distance) -> float:
    """Mean and the diagonal of the second moment/(√2 R): a part of :func:`mean_and_moment`, summed by itself."""
    n, norm = domain.n, float(domain.require("row_norm"))
    error = 2 * column_sum_error(n, domain.d, norm, distance)
    return inflate(mean_and_moment(domain, distance) + error / n)


@formula("release.mean-and-squares", kind="release", page="releases")
@release_of_columns
def mean_and_squares(domain: Domain, distance: Distance) -> float:
    """Mean and c·(mean of squares)/b of entries of size at most b, jointly: 2b√d/n for one replaced row.

    ``c = BOX_WEIGHT`` is the largest weight for which the squares come free. A toggled row costs
    ``b √(d (1 + c²))``, a row that moved by w at most ``√(1 + 4c²) |w|``.
    """
    n, bound, root = domain.n, float(domain.require("entry_bound")), math.sqrt(domain.d)
    replaced, toggled = 2 * bound * root, bound * root * math.sqrt(1 + BOX_WEIGHT**2)
    paired, single = distance.unmatched
    unmatched = replaced * paired + toggled * single
    moves = min(math.sqrt(1 + 4 * BOX_WEIGHT**2) * distance.total, replaced * distance.moved)
    error = column_sum_error(n, domain.d, bound, distance) + BOX_WEIGHT * column_sum_error(n, domain.d, bound, distance)
    return inflate((unmatched + moves + error) / n)


@formula("release.squares-in-parts", kind="release", page="releases")
@release_of_columns
def squares_in_parts(domain: Domain, distance: Distance) -> float:
    """Shares of the rows in cells of every column, then means and squares in units that follow from those with noise.

    :func:`mean_and_squares` of entries up to 1 and, at right angles, shares in two kinds of cells side by side, which
    are as far apart as ``TAIL_WEIGHT``, the root of the squares of their weights, times histograms over n: 2√3 √d/n
    for one replaced row. A row that moved counts as replaced: it may be in another cell. What is missing adds nothing.
    """
    far = distance.moved_as_replaced()
    box = domain.but(row_norm=math.sqrt(domain.d), entry_bound=1.0)
    shares = TAIL_WEIGHT * histograms_apart(domain, far, domain.d) / domain.n
    return inflate(math.hypot(shares, mean_and_squares(box, far)))


@formula("release.column-means", kind="release", page="mean-imputation")
def column_means(
    domain: Domain, distance: Distance, *, min_observed: int, columns: Sequence[int] | None = None
) -> float:
    """Means of the observed entries over ``max(n_j, n0)``: K(A)/n0 for one replaced row; 0 outside ``columns``."""
    return mean_sensitivity(entries_of(domain, columns), distance, min_observed)


@formula("release.ranges", kind="release", page="released-ranges")
def two_histograms(domain: Domain, distance: Distance, *, columns: Sequence[int]) -> float:
    """Histograms of c columns, and others whose cells follow from these: √2 times one, 2√c for one replaced row."""
    sane(bool(columns) and whole(*columns) and 0 <= min(columns) <= max(columns) < domain.d)
    sane(len(set(columns)) == len(columns))
    return inflate(math.sqrt(2) * histograms_apart(domain, distance, len(columns)))


def fresh_failure(
    domain: Domain, distance: Distance, noise_scale: float, threshold: float, *, columns: Sequence[int], **_: object
) -> float:
    """Probability, at most, that in some column a category is released that one of the two datasets lacks.

    In a column such categories have a weight of u at most, in J rows: ``Q((t - u) / σ) + (J - 1) Q(t / σ)``.
    """
    weight, rows = distance.one_sided + moving(distance), math.ceil(distance.changed)
    lattice = max(WORST_ALLOWANCE_PER_ENTRY, lattice_allowance(float(domain.n), noise_scale, 1))
    above = threshold / (1 + 1e-9) - noise_scale * lattice
    if above <= weight:
        return 1.0
    column_failure = ndtr((weight - above) / noise_scale) + max(rows - 1, 0) * ndtr(-above / noise_scale)
    return float(min(1.0, inflate(len(columns) * column_failure)))


@formula(
    "release.categories",
    kind="release",
    page="released-categories",
    differing=lambda distance, *, columns, **_: 2 * len(columns) * math.ceil(distance.changed),  # each row two
    failure=fresh_failure,
)
def category_weights(
    domain: Domain, distance: Distance, *, columns: Sequence[int], max_categories: Sequence[int]
) -> float:
    """Weights of the categories that both datasets have, in c columns: those of histograms, √(2c) for one replaced row.

    What only one of them has is a failure. Rows are as they came in, so that nothing has changed their weights, or has
    clipped their codes, which are places among all texts.
    """
    sane(domain.row_norm is None and domain.entry_bound is None)
    sane(bool(columns) and whole(*columns) and 0 <= min(columns) <= max(columns) < domain.d)
    sane(len(set(columns)) == len(columns) == len(max_categories) and distance.reweighted == 0)
    sane(whole(*max_categories) and min(max_categories) >= 1 and sum(max_categories) <= MOST_CATEGORIES)
    return inflate(histograms_apart(domain, distance, len(columns)))


@formula("release.modes", kind="release", page="released-modes")
def value_weights(
    domain: Domain, distance: Distance, *, columns: Sequence[int], sizes: Sequence[int], values: Sequence[float]
) -> float:
    """Weights of the rows that hold each of the public values of c columns: as histograms, √(2c) for one replaced row.

    A row that holds none of them, or nothing, counts nowhere. Which value of a column is the heaviest follows.
    """
    check_grid(domain, columns, sizes, values)
    return inflate(histograms_apart(domain, distance, len(columns)))


def answer_shape(domain: Domain, *, weighted: bool) -> tuple[int, float]:
    """Numbers in a mean, with the share of rows present if ``weighted``, and the bound on each."""
    norm = float(domain.require("row_norm"))
    return domain.d + bool(weighted), math.sqrt(3) * norm if weighted else norm


@formula(
    "release.mean-and-count", kind="mechanism", page="releases", used_by=("GaussianMechanism",), shape=answer_shape
)
def mean_and_count(domain: Domain, distance: Distance, *, weighted: bool) -> float:
    """Mean over the public n and, if rows may have weight below 1, √3 R times the share of rows present.

    Then a toggled row costs ``√(R² + 3R²) = 2R``, as much as a replaced one, and no more.
    """
    n, norm = domain.n, float(domain.require("row_norm"))
    error = column_sum_error(n, domain.d, norm, distance)
    if weighted:
        error += math.sqrt(3) * column_sum_error(n, 1, norm, distance)
        shift = 2 * norm * distance.one_sided + min(distance.total, 2 * norm * distance.moved)
    else:
        shift = distance.sum_shift(norm)
    return inflate((shift + error) / n)


MOST_CELLS = 10_001  # of one column: codes of that many categories but one, and a cell for anything else


def label_parts(domain: Domain) -> int:
    """Among how many parts a label is shared out: the classes, or the two ends of the range of a target."""
    return 2 if domain.classes is None else len(domain.classes)


def columns_per_category(domain: Domain) -> int:
    """Columns that one column of categories becomes: one, or one for each of more than two classes."""
    parts = label_parts(domain)
    return 1 if parts == 2 else parts


def _check_cells(domain: Domain, columns: Sequence[int], cells: int) -> None:
    sane(bool(columns) and whole(*columns, cells) and 0 <= min(columns) <= max(columns) < domain.d)
    sane(len(set(columns)) == len(columns) and 2 <= cells <= MOST_CELLS)
    sane((domain.classes is not None or domain.y_range is not None) and label_parts(domain) >= 2)
    sane(len(columns) * cells * label_parts(domain) <= MOST_NUMBERS)


@formula("release.label-means", kind="release", page="label-means")
def label_weights(domain: Domain, distance: Distance, *, columns: Sequence[int], cells: int) -> float:
    """Weights by category and label in c columns: as histograms, √(2c) for one replaced row, √c for a toggled one.

    However many categories and classes there are. Counts come free: they are sums of the same numbers.
    """
    _check_cells(domain, columns, cells)
    error = 3 * math.sqrt(len(columns)) * distance.reweighted * counting_step(domain.n)
    return inflate(histograms_apart(domain, distance, len(columns)) + error)


@formula(
    "row-wise.label-means",
    kind="stability",
    page="label-means",
    way="noisy",
    releases=("label-means",),
    gaps=True,
    row_by_row=True,
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
    _check_cells(domain, columns, cells)
    width = domain.d + len(columns) * (columns_per_category(domain) - 1)
    names = None if feature_names is None else tuple(feature_names)
    sane(names is None or len(names) == width)
    norm = inflate(math.sqrt(width))
    out = domain.but(n_features=width, feature_names=names, row_norm=norm, entry_bound=1.0)
    return out, distance.moved_as_replaced()


SHARES, PURE_SHARES = "release.altered-shares", "release.altered-shares-laplace"
MOST_COUNTS = 10_000  # that are released together

LABEL, TARGET, WEIGHT, CLASS, CELL, CLIPPED, SHORTENED, UNLISTED, KEPT, TINY, TINY_TARGET, ZERO_TARGET, TINY_WEIGHT = (
    "labels repaired",
    "targets clipped or repaired",
    "weights clipped or repaired",
    "labels of the class",
    "cells repaired",
    "values clipped",
    "rows clipped to a norm",
    "values of no declared category",
    "rows kept",
    "values tiny beside their range",
    "targets tiny beside their range",
    "targets of 0",
    "weights tiny beside the largest",
)
MISSING = "values missing"
"""What may have been altered in a row."""
RIGHT, WRONG = "labels predicted right", "labels predicted wrong"
PREDICTED = (RIGHT, WRONG)
"""What the released model makes of a row of a class: no row has two of these."""
MOST_ROWS, MOST_ENTRIES = 2**16, 2**22  # that are predicted, of more rows by their public places
MOST_TERMS = 100_000  # of a score that has the same bits wherever its row stands
OF_TARGETS = (TARGET, TINY_TARGET, ZERO_TARGET)
_OF_ROWS = (LABEL, *OF_TARGETS, WEIGHT, TINY_WEIGHT, CLASS, KEPT, CELL, CLIPPED, SHORTENED, UNLISTED, TINY, MISSING)
KINDS = (*_OF_ROWS, *PREDICTED)

_PLAIN = {
    CLIPPED: "values clipped to their range",
    TINY: "values not 0 but closer to 0 than 2 % of their range",
    TINY_TARGET: "targets not 0 but closer to 0 than 2 % of their range",
    TINY_WEIGHT: "weights below 2 % of the largest allowed",
}


def kind_in_words(kind: str) -> str:
    """What is counted, for readers; documents have the name of its kind."""
    return _PLAIN.get(kind, kind)


@formula(SHARES, kind="release", page="altered-shares")
def altered_counts(domain: Domain, distance: Distance, *, counts: int, exclusive: int = 0) -> float:
    """Numbers of rows with each of k properties: ``√k`` times the rows in which neighbouring datasets differ.

    Whether a row has a property follows from the row as it came in, from public facts and from what was released
    before, so each row adds a vector of k zeros and ones, and what differs in a row changes it by at most √k. Of
    ``exclusive`` properties no row has two: together they add 2 to k, or 1 where a row is there on one side only. Sums
    of whole numbers are exact.
    """
    sane(whole(counts, exclusive) and 1 <= counts <= MOST_COUNTS and 0 <= exclusive <= counts)
    both, single = (math.sqrt(counts - exclusive + min(exclusive, most)) for most in (2, 1))
    return inflate(both * (distance.changed - distance.toggled) + single * distance.toggled)


def share_parameters(kinds: Sequence[str]) -> dict[str, int]:
    """Those of the formula, of counts of these kinds."""
    exclusive = sum(kind in PREDICTED for kind in kinds)
    return {"counts": len(kinds), **({"exclusive": exclusive} if exclusive else {})}


def class_names(domain: Domain) -> list[str]:
    """The declared classes, each named otherwise."""
    names = [str(label) for label in domain.classes or ()]
    return names if len(set(names)) == len(names) else [repr(label) for label in domain.classes or ()]


def prediction_stride(domain: Domain) -> int:
    """Of how many rows one is predicted, by their public places."""
    products = domain.d * -(-len(domain.classes or (0,)) // 8)
    return -(-domain.n // max(1, min(MOST_ROWS, MOST_ENTRIES // products)))


def predicted_apart(entrance: Distance, domain: Domain, distance: Distance) -> bool:
    """Whether, of rows that are predicted, no more differ than at the entrance, nor more that both sides have."""
    steady = domain.d <= MOST_TERMS and (prediction_stride(domain) == 1 or not distance.reordered)
    rows = ((one.changed, one.changed - one.toggled) for one in (distance, entrance))
    return steady and all(here <= before * (1 + 1e-9) for here, before in zip(*rows))


@formula(PURE_SHARES, kind="release", page="altered-shares", law=LAPLACE, differing=lambda distance, **_: 0)
def purely_altered_counts(domain: Domain, distance: Distance, *, counts: int) -> float:
    """The same in L1, for Laplace noise in whole numbers: k times the rows in which neighbouring datasets differ.

    Nothing is rounded, and the noise has exactly its law.
    """
    sane(whole(counts) and 1 <= counts <= MOST_COUNTS)
    return float(math.ceil(counts * distance.changed))
