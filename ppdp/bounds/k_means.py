"""L2 sensitivity of weights of cells, and of sums around centres: ``docs/theory/k-means.md``."""

from __future__ import annotations

import math
from typing import Any

from ppdp.bounds.naive_bayes import longest_row
from ppdp.bounds.queries import counting_step
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, largest_entry
from ppdp.core.formula import formula, sane, whole
from ppdp.core.rounding import apply_error, inflate

PARTS = 4  # of a cell that is split: two columns are halved, or one of them twice
MOST_DEPTH = 8  # rounds of splitting: 65,536 cells
FIXED_DEPTH = 6  # where the weights of all cells are released together
MOST_CELLS = 4096  # of which weights are released in one round
MOST_NUMBERS = 2_000_000  # that are released together


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


@formula(
    "row-wise.cluster-distances",
    kind="stability",
    page="k-means",
    way="noisy",
    releases=("clusters",),
    row_by_row=True,
    used_by=("ClusterDistances",),
)
def cluster_distances(domain: Domain, distance: Distance, *, n_clusters: int) -> tuple[Domain, Distance]:
    """Distances of each row from released centres, at most 2N for rows of norm N: √k-Lipschitz for k centres."""
    sane(whole(n_clusters) and n_clusters >= 1 and n_clusters * (1 + domain.d) <= MOST_NUMBERS)
    reach, root = inflate(2 * longest_row(domain)), math.sqrt(n_clusters)
    out = domain.but(n_features=n_clusters, feature_names=None, row_norm=inflate(reach * root), entry_bound=reach)
    far = distance.stretched(inflate(root), inflate(reach * root))
    return out, far.jittered(2 * apply_error(domain.d, 2 * reach) * root)
