"""L2 sensitivity of sums, counts, second moments, histograms and of the rows themselves: ``docs/theory/queries.md``;
of moments by class: ``docs/theory/naive-bayes.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, largest_entry
from ppdp.core.formula import formula, sane, whole
from ppdp.core.rounding import UNIT, column_sum_error, inflate, product_error

_query = partial(formula, kind="mechanism", page="queries", used_by=("GaussianMechanism",))

# Largest weight c of the share of rows that comes free with mean and second moment: 1 + 1/2 + c² = 4.
MOMENT_COUNT_WEIGHT = math.sqrt(2.5) * (1 - 1e-12)

_COUNTING_BITS = 53


def counting_step(n_rows: int) -> float:
    """Public grid to which weights are rounded down, so that any sum of them is exact in float64."""
    return 2.0 ** (math.ceil(math.log2(max(n_rows, 2))) - _COUNTING_BITS)


def moving(distance: Distance) -> float:
    """Number of rows that may be found somewhere else: all that moved, however little."""
    return distance.moved if distance.total > 0 else 0.0


def by_column(sizes: Sequence[int], marks: Sequence[float]) -> list[list[float]]:
    """The numbers of each column: ``sizes[0]`` of them for the first, and so on."""
    ends = list(accumulate(sizes, initial=0))
    return [list(marks[start:end]) for start, end in pairwise(ends)]


def check_grid(domain: Domain, columns: Sequence[int], sizes: Sequence[int], marks: Sequence[float]) -> None:
    """Refuse a grid that is none: columns that do not exist or repeat, fewer than two numbers or none that ascend."""
    sane(len(columns) == len(sizes) > 0 and len(set(columns)) == len(columns))
    sane(all(isinstance(column, int) and 0 <= column < domain.d for column in columns))
    sane(all(isinstance(size, int) and size >= 2 for size in sizes) and sum(sizes) == len(marks))
    sane(all(math.isfinite(mark) for mark in marks))
    sane(all(low < high for column in by_column(sizes, marks) for low, high in pairwise(column)))


def sum_shape(domain: Domain) -> tuple[int, float]:
    """Numbers in a sum of rows, and the bound on each."""
    return domain.d, domain.n * float(domain.require("row_norm"))


@_query("query.sum", shape=sum_shape)
def sum_sensitivity(domain: Domain, distance: Distance) -> float:
    """Sum of the rows: ``R mass + min(total, 2R moved)``, 2R for one replaced row."""
    norm = float(domain.require("row_norm"))
    return inflate(distance.sum_shift(norm) + column_sum_error(domain.n, domain.d, norm, distance))


def as_they_are(**_: Any) -> float:
    """Of counts that are not scaled: noise of scale 1 is one row."""
    return 1.0


def present_shape(domain: Domain) -> tuple[int, float]:
    """One count of rows, at most n."""
    return 1, float(domain.n)


@_query("query.count", shape=present_shape, counts=as_they_are)
def count_sensitivity(domain: Domain, distance: Distance) -> float:
    """Weight of the rows that are present: ``one_sided``, 1 for one replaced row that may vanish."""
    return inflate(distance.one_sided + distance.reweighted * counting_step(domain.n))


def covariance_shape(domain: Domain, *, weighted: bool) -> tuple[int, float]:
    """Numbers in mean, upper triangle of the second moment and perhaps the share of rows, and the bound on each."""
    d, norm = domain.d, float(domain.require("row_norm"))
    size = d + d * (d + 1) // 2
    return (size + 1, MOMENT_COUNT_WEIGHT * norm) if weighted else (size, norm)


@_query("query.covariance", shape=covariance_shape)
def covariance_sensitivity(domain: Domain, distance: Distance, *, weighted: bool) -> float:
    """Mean, second moment/(√2 R) and, if rows may be absent, √2.5 R times the share present: 2R/n for one replaced row.

    That is the sensitivity of the mean alone. A toggled row costs ``√1.5 R``, with the share 2R; a row that moved by w
    at most ``√3 |w|``. Where the sum is known to stay, as that of centred rows, the second moment alone counts.
    """
    n, d, norm = domain.n, domain.d, float(domain.require("row_norm"))
    paired, single = distance.unmatched
    unmatched = 2 * norm * paired + (2 * norm if weighted else math.sqrt(1.5) * norm) * single
    shift = unmatched + min(math.sqrt(3) * distance.total, 2 * norm * distance.moved)
    if not weighted:
        shift = min(shift, distance.sums + distance.moment_shift(norm))
    error = column_sum_error(n, d, norm, distance) + 2 * product_error(n, norm) / (math.sqrt(2) * norm)
    if weighted:
        error += MOMENT_COUNT_WEIGHT * column_sum_error(n, 1, norm, distance)
    return inflate((shift + error) / n)


def histogram_shape(
    domain: Domain, *, columns: Sequence[int], sizes: Sequence[int], edges: Sequence[float]
) -> tuple[int, float]:
    """Cells of all histograms together, each of at most n rows."""
    return len(edges) - len(sizes), float(domain.n)


@_query("query.histogram", shape=histogram_shape, counts=as_they_are)
def histogram_sensitivity(
    domain: Domain, distance: Distance, *, columns: Sequence[int], sizes: Sequence[int], edges: Sequence[float]
) -> float:
    """Histograms of c columns: ``√c hypot(one_sided + moved, paired + moved)``, √(2c) for one replaced row.

    A row that moved, however little, may be in another cell. Attained with two cells.
    """
    check_grid(domain, columns, sizes, edges)
    return inflate(histograms_apart(domain, distance, len(columns)))


def histograms_apart(domain: Domain, distance: Distance, count: int) -> float:
    """How far apart histograms of so many columns are, whatever their cells."""
    moved = moving(distance)
    more, fewer = distance.one_sided + moved, distance.unmatched[0] + moved
    error = distance.reweighted * counting_step(domain.n)
    return math.sqrt(count) * (math.hypot(more, fewer) + error)


def rows_shape(domain: Domain) -> tuple[int, float]:
    """All entries of all rows, each at most R."""
    return domain.n * domain.d, float(domain.require("row_norm"))


@_query("query.rows", shape=rows_shape, by_position=True, rows=True)
def rows_sensitivity(domain: Domain, distance: Distance) -> float:
    """The rows in their places: ``hypot(R √(mass + min(mass, 2 replaced)), √(c min(total, c moved)))``.

    c = min(radius, 2R). 2R for one replaced row, R for a toggled one, the radius for one that moved.
    """
    n, norm, far = domain.n, float(domain.require("row_norm")), distance.by_position()
    unmatched = norm * math.sqrt(far.mass + min(far.mass, 2.0 * far.replaced))
    step = min(far.radius, 2 * norm)
    moves = math.sqrt(step * min(far.total, step * far.moved))
    slots = math.sqrt(min(far.changed, n))
    return inflate(min(math.hypot(unmatched, moves), 2 * norm * slots) + 2 * UNIT * norm * slots)


MOST_NUMBERS = 2_000_000  # that are released together


def longest_row(domain: Domain) -> float:
    """Most that a row can be long, by its norm and by its entries."""
    return min(float(domain.require("row_norm")), largest_entry(domain) * math.sqrt(domain.d))


def moments_shape(domain: Domain, *, n_classes: int, entry_bound: float) -> tuple[int, float]:
    """For each class a number of rows, and of every column a sum and a sum of squares; and the bound on each."""
    sane(entry_bound >= largest_entry(domain) * (1 - 1e-12))
    sane(whole(n_classes) and n_classes >= 2 and n_classes * (1 + 2 * domain.d) <= MOST_NUMBERS)
    return n_classes * (1 + 2 * domain.d), domain.n * longest_row(domain)


@formula("learning.class-moments", kind="mechanism", page="naive-bayes", shape=moments_shape, used_by=("GaussianNB",))
def class_moments(domain: Domain, distance: Distance, *, n_classes: int, entry_bound: float) -> float:
    """Rows (times N), sums and sums of squares (over b) of every class: √6 N for one replaced row, √3 N for a toggled.

    N is the longest that a row can be, b its largest entry. A row that moved by w in its class costs ``√5 w`` at most.
    """
    moments_shape(domain, n_classes=n_classes, entry_bound=entry_bound)
    n, norm = domain.n, longest_row(domain)
    paired, single = distance.unmatched
    unmatched = math.sqrt(6) * norm * paired + math.sqrt(3) * norm * single
    moves = min(math.sqrt(5) * distance.total, math.sqrt(6) * norm * distance.moved) + 8 * UNIT * norm * distance.moved
    sums = 2 * math.sqrt(n_classes) * column_sum_error(n, domain.d, norm, distance)
    counts = 2 * norm * distance.reweighted * counting_step(n)
    return inflate(unmatched + moves + sums + counts)
