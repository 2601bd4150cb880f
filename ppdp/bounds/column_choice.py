"""L2 sensitivity of moments by label, and columns that are chosen by them: ``docs/theory/column-choice.md``."""

from __future__ import annotations

import math

from ppdp.bounds.naive_bayes import longest_row
from ppdp.bounds.queries import counting_step
from ppdp.bounds.release import BOX_WEIGHT, MOST_NUMBERS, label_parts
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, largest_entry
from ppdp.core.formula import formula, sane, whole
from ppdp.core.rounding import UNIT, column_sum_error, inflate

COUNT_WEIGHT = 0.25  # of a row itself beside its columns, in units of the longest row


def square_weight(domain: Domain) -> float:
    """Of squares over the largest entry, so that they come free beside sums: in the box, or in the ball."""
    norm, entry = float(domain.require("row_norm")), largest_entry(domain)
    return BOX_WEIGHT if entry * math.sqrt(domain.d) <= norm else entry / (math.sqrt(2) * norm)


def check_labels(domain: Domain) -> None:
    """Labels are public classes or targets in a public range, and there are not too many numbers."""
    sane((domain.classes is not None or domain.y_range is not None) and label_parts(domain) >= 2)
    sane(label_parts(domain) * (1 + domain.d) + domain.d <= MOST_NUMBERS)


@formula("release.label-moments", kind="release", page="column-choice")
def label_moments(domain: Domain, distance: Distance) -> float:
    """Rows (times N/4) and sums of every part of the labels, and squares: 2N/n for one replaced row, as of sums alone.

    N is the longest that a row can be, c the weight of squares. A toggled row costs ``N √(17/16 + c²)``, a row that
    moved by w at most ``√(1 + 4c²) w``.
    """
    return _apart(domain, distance, square_weight(domain))


LIGHT = 0.5  # weight of squares where rows come or go, and squares do not come free


@formula("release.light-label-moments", kind="release", page="column-choice")
def light_label_moments(domain: Domain, distance: Distance, *, weight: float) -> float:
    """The same with a smaller weight of squares: at 1/2 a toggled row costs 1.15 N/n, where it costs 1.96 N/n else."""
    sane(0 < weight <= square_weight(domain))
    return _apart(domain, distance, weight)


def _apart(domain: Domain, distance: Distance, weight: float) -> float:
    check_labels(domain)
    n, norm = domain.n, longest_row(domain)
    paired, single = distance.unmatched
    unmatched = 2 * norm * paired + norm * math.sqrt(1 + COUNT_WEIGHT**2 + weight**2) * single
    moves = min(math.sqrt(1 + 4 * weight**2) * distance.total, 2 * norm * distance.moved)
    sums = (math.sqrt(label_parts(domain)) + weight) * column_sum_error(n, domain.d, largest_entry(domain), distance)
    counts = 2 * norm * min(distance.changed, n) * counting_step(n)
    return inflate((unmatched + moves + 8 * UNIT * norm * distance.moved + sums + counts) / n)


@formula(
    "row-wise.chosen-columns",
    kind="stability",
    page="column-choice",
    way="noisy",
    releases=("label-moments", "light-label-moments"),
    row_by_row=True,
    used_by=("SelectKBest", "SelectPercentile"),
)
def chosen_columns(domain: Domain, distance: Distance, *, k: int) -> tuple[Domain, Distance]:
    """So many of the columns, as they are: 1-Lipschitz, without a rounding. Which ones is told by what was released."""
    sane(whole(k) and 1 <= k < domain.d)
    entry = largest_entry(domain)
    norm = min(float(domain.require("row_norm")), inflate(entry * math.sqrt(k)))
    out = domain.but(n_features=k, feature_names=None, row_norm=norm, entry_bound=min(entry, norm))
    return out, distance.stretched(1.0, 2 * norm)
