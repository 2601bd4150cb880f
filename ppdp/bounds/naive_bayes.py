"""L2 sensitivity of numbers of rows, sums and sums of squares by class: ``docs/theory/naive-bayes.md``."""

from __future__ import annotations

import math

from ppdp.bounds.queries import counting_step
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, largest_entry
from ppdp.core.formula import formula, sane, whole
from ppdp.core.rounding import UNIT, column_sum_error, inflate

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
