"""L2 sensitivity of weights of cells, and of sums around centres: ``docs/theory/k-means.md``; of moments
by label, and columns that are chosen by them: ``docs/theory/column-choice.md``.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from ppdp.bounds.queries import MOST_NUMBERS, counting_step, longest_row
from ppdp.bounds.release import BOX_WEIGHT, label_parts
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, largest_entry
from ppdp.core.formula import formula, sane, whole
from ppdp.core.rounding import UNIT, apply_error, column_sum_error, inflate

PARTS = 4  # of a cell that is split: two columns are halved, or one of them twice
MOST_DEPTH = 8  # rounds of splitting: 65,536 cells
FIXED_DEPTH = 6  # where the weights of all cells are released together
MOST_CELLS = 4096  # of which weights are released in one round


def _checked(domain: Domain, *, n_clusters: int, depth: int, max_iter: int, entry_bound: float) -> None:
    sane(whole(n_clusters, depth, max_iter) and n_clusters >= 1 and 1 <= depth <= MOST_DEPTH and 1 <= max_iter <= 1000)
    sane(n_clusters * (1 + domain.d) <= MOST_NUMBERS and largest_entry(domain) * (1 - 1e-12) <= entry_bound < math.inf)


def _shape(domain: Domain, **parameters: Any) -> tuple[int, float]:
    """Weights of cells, or for each cluster a weight and a sum of every column; and the bound on each."""
    _checked(domain, **parameters)
    cells = min(PARTS ** parameters["depth"], MOST_CELLS)
    return max(cells, parameters["n_clusters"] * (1 + domain.d)), domain.n


def of_answers(domain: Domain, distance: Distance, **parameters: Any) -> list[float]:
    """Sensitivity of each answer, whatever earlier ones were: √2 and 2 for one replaced row, 1 and √2 for a toggled.

    A row counts in one cell. Around centres it counts in one cluster, beside a vector of norm 1 at most. Rows that
    moved may be found anywhere, so they count as replaced.
    """
    _checked(domain, **parameters)
    far = distance.moved_as_replaced()
    paired, single = far.unmatched
    rounding = 2 * counting_step(domain.n) * min(far.changed, domain.n)
    cells = math.sqrt(2) * paired + single + rounding
    sums = (2 * paired + math.sqrt(2) * single) * (1 + apply_error(domain.d, 1.0)) + math.sqrt(1 + domain.d) * rounding
    return [cells] * parameters["depth"] + [sums] * parameters["max_iter"]


@formula(
    "learning.k-means",
    kind="mechanism",
    page="k-means",
    predicts=True,
    used_by=("KMeans",),
    shape=_shape,
    each=of_answers,
    steps=lambda domain, *, depth, max_iter, **_: depth + max_iter,
    arrays=lambda domain, steps, size, *, n_clusters, **_: {
        "centers": [n_clusters, domain.d],
        "counts": [n_clusters],
        "errors": [n_clusters],
    },
)
def k_means(domain: Domain, distance: Distance, **parameters: Any) -> float:
    """Root mean square of the sensitivities of all answers: those of :func:`of_answers`."""
    each = of_answers(domain, distance, **parameters)
    return inflate(math.sqrt(math.fsum(own * own for own in each) / len(each)))


def cell_count(depth: int) -> int:
    """Cells of all rounds together."""
    return sum(PARTS**level for level in range(1, depth + 1))


@formula("release.clusters", kind="release", page="k-means")
def released_clusters(domain: Domain, distance: Distance, *, n_clusters: int) -> float:
    """Weights of the cells of all L rounds, and sums around centres that follow from these: √(2L + 4) if replaced.

    A toggled row costs √(L + 2). Rows that moved count as replaced.
    """
    _checked(domain, n_clusters=n_clusters, depth=FIXED_DEPTH, max_iter=1, entry_bound=largest_entry(domain))
    far, root = distance.moved_as_replaced(), math.sqrt(FIXED_DEPTH + 2)
    paired, single = far.unmatched
    rounding = 2 * counting_step(domain.n) * min(far.changed, domain.n)
    exact = root * (math.sqrt(2) * paired + single) * (1 + apply_error(domain.d, 1.0))
    return inflate(exact + (math.sqrt(FIXED_DEPTH) + math.sqrt(1 + domain.d)) * rounding)


_released = partial(formula, kind="stability", way="noisy", row_by_row=True)


@_released("row-wise.cluster-distances", page="k-means", releases=("clusters",), used_by=("ClusterDistances",))
def cluster_distances(domain: Domain, distance: Distance, *, n_clusters: int) -> tuple[Domain, Distance]:
    """Distances of each row from released centres, at most 2N for rows of norm N: √k-Lipschitz for k centres."""
    sane(whole(n_clusters) and n_clusters >= 1 and n_clusters * (1 + domain.d) <= MOST_NUMBERS)
    reach, root = inflate(2 * longest_row(domain)), math.sqrt(n_clusters)
    out = domain.but(n_features=n_clusters, feature_names=None, row_norm=inflate(reach * root), entry_bound=reach)
    far = distance.stretched(inflate(root), inflate(reach * root))
    return out, far.jittered(2 * apply_error(domain.d, 2 * reach) * root)


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


@_released(
    "row-wise.chosen-columns",
    page="column-choice",
    releases=("label-moments", "light-label-moments"),
    used_by=("SelectKBest", "SelectPercentile"),
)
def chosen_columns(domain: Domain, distance: Distance, *, k: int) -> tuple[Domain, Distance]:
    """So many of the columns, as they are: 1-Lipschitz, without a rounding. Which ones is told by what was released."""
    sane(whole(k) and 1 <= k < domain.d)
    entry = largest_entry(domain)
    norm = min(float(domain.require("row_norm")), inflate(entry * math.sqrt(k)))
    out = domain.but(n_features=k, feature_names=None, row_norm=norm, entry_bound=min(entry, norm))
    return out, distance.stretched(1.0, 2 * norm)


@_released(
    "row-wise.zeroed-columns",
    page="column-choice",
    releases=("squares", "squares-in-parts", "diagonal", "matrix"),
    affine=lambda: True,
    used_by=("VarianceThreshold",),
)
def zeroed_columns(domain: Domain, distance: Distance) -> tuple[Domain, Distance]:
    """Some columns are 0, the others as they are: 1-Lipschitz, without a rounding. Which ones is told by a release."""
    norm = float(domain.require("row_norm"))
    return domain.but(row_norm=norm), distance.stretched(1.0, 2 * norm)
