"""Centres of clusters, from noisy weights of cells and noisy sums around centres: ``docs/theory/k-means.md``.

Of rows only weights and sums are taken here, to the same bits however the rows come. All else is made of what was
released, without chance: centres are made again wherever an export of distances is read, so these rules stay.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.bounds.k_means import MOST_CELLS, PARTS, cell_count
from ppdp.bounds.queries import MOST_NUMBERS, counting_step
from ppdp.core.checks import integer
from ppdp.core.domain import Domain
from ppdp.data.histograms import weighed
from ppdp.data.parallel import blocks
from ppdp.data.rows import Array, Rows
from ppdp.data.stream import Stream
from ppdp.data.summary import Counts, fold
from ppdp.data.unit_conversion import Answers, Columns
from ppdp.exceptions import InvalidParameter

Codes = NDArray[np.int64]
FULL, EMPTY = 2.0, 1.0  # standard deviations of its noise that a cell's weight exceeds if it is split, or kept at all
WITHIN = 0.95  # share of a cluster beyond whose distances from its centre rows are clipped
UNSURE = 3.0  # standard deviations of the noise on a cluster's weight, at which its centre goes half way, or leaves
STARTS, TRIED, MOST_STEPS = 8, 16, 100  # of k-means of cells: first cells, cells tried for each centre, steps
MANY = 32  # clusters, from which on there is one start


@dataclass(frozen=True, slots=True)
class HalvedCells:
    """Cells of the box from -bound to bound, halved along two columns in each round; a halving is a bit of a code."""

    d: int
    depth: int
    bound: float

    def of_rows(self, X: Array) -> Codes:
        """Codes of the smallest cells, shape (n, 1)."""
        halvings = [len(range(column, 2 * self.depth, self.d)) for column in range(self.d)]
        halves = {
            column: np.clip((X[:, column] / self.bound + 1) * 2.0 ** (count - 1), 0, 2**count - 1).astype(np.int64)
            for column, count in enumerate(halvings)
            if count
        }
        codes = np.zeros(len(X), dtype=np.int64)
        for place in range(2 * self.depth):
            turn, column = divmod(place, self.d)
            codes = 2 * codes + ((halves[column] >> (halvings[column] - 1 - turn)) & 1)
        return codes[:, None]

    def weights(self, rows: Rows | Stream) -> list[Array]:
        """Exact weights of all cells of each round."""
        exact = weighed(rows, [PARTS**self.depth], self.of_rows)
        return [exact.reshape(PARTS**level, -1).sum(axis=1) for level in range(1, self.depth + 1)]

    def places(self, codes: Codes, level: int) -> tuple[Array, Array]:
        """Centres and lengths of sides of cells after so many rounds, in units of the bound."""
        centers, sides = np.zeros((len(codes), self.d)), np.full(self.d, 2.0)
        for place in range(2 * level):
            column = place % self.d
            sides[column] /= 2
            centers[:, column] += (((codes >> (2 * level - 1 - place)) & 1) - 0.5) * sides[column]
        return centers, np.broadcast_to(sides, centers.shape)


@dataclass(frozen=True, slots=True)
class Synopsis:
    """Weighted cells that stand for the rows: centres and lengths of sides in units of the bound, and noisy weights."""

    centers: Array
    sides: Array
    weights: Array

    @classmethod
    def of(
        cls, cells: HalvedCells, ask: Callable[[int, Codes], Array], noise_scale: float, most: int, least: int
    ) -> Synopsis:
        """By noisy weights of all cells that are split, at most so many in a round; ``least`` points at least.

        ``ask`` gives those of cells of a round. Where few cells are seen, others spread evenly over the box join them,
        with next to no weight.
        """
        split, leaves = np.zeros(1, dtype=np.int64), []
        for level in range(1, cells.depth + 1):
            parts = (PARTS * split[:, None] + np.arange(PARTS)).ravel()
            noisy = ask(level, parts)
            full = noisy > FULL * noise_scale
            heaviest = np.argsort(-noisy, kind="stable")[most // PARTS :]
            full[heaviest] = False
            leaf = (noisy > EMPTY * noise_scale) & (~full | (level == cells.depth))
            leaves.append((*cells.places(parts[leaf], level), noisy[leaf]))
            split = parts[full]
        found = [np.concatenate(arrays) for arrays in zip(*leaves)]
        lacking, d = max(least - len(found[2]), 0), cells.d
        if lacking:
            from scipy.stats.qmc import Halton

            more = 2 * Halton(d, scramble=False).random(lacking) - 1, np.full((lacking, d), 2.0), np.full(lacking, 1e-3)
            found = [np.concatenate(arrays) for arrays in zip(found, more)]
        return cls(*found)

    def clustered(self, n_clusters: int) -> Array:
        """Centres by k-means of the weighted cells, the best of some starts: from heavy cells, large ones first."""
        order = np.argsort(-self.weights, kind="stable")
        count = min(STARTS, len(order)) if n_clusters < MANY else 1
        starts = order[np.arange(count) * len(order) // (2 * count)]
        return min((self._from(start, n_clusters) for start in starts.tolist()), key=lambda found: found[0])[1]

    def _from(self, start: int, n_clusters: int) -> tuple[float, Array]:
        """Inertia and centres: each is the best of some cells that are far from those before; then steps of Lloyd."""
        places, weights = self.centers, self.weights
        chosen, squares = [start], squared_distances(places, places[[start]])[:, 0]
        for _ in range(n_clusters - 1):
            tried = np.argsort(-weights * squares, kind="stable")[:TRIED]
            closer = np.minimum(squared_distances(places, places[tried]), squares[:, None])
            best = int((weights @ closer).argmin())
            chosen.append(int(tried[best]))
            squares = closer[:, best]
        centers, before = places[chosen], None
        for _ in range(MOST_STEPS):
            labels = nearest(places, centers)[0]
            if before is not None and (labels == before).all():
                break
            before, sums = labels, [np.bincount(labels, weights * own, n_clusters) for own in (1.0, *places.T)]
            held = sums[0] > 0
            centers[held] = (np.array(sums[1:]) / np.where(held, sums[0], 1.0)).T[held]
        return float(weights @ nearest(places, centers)[1]), centers

    def without_unseen(self, centers: Array, counts: Array, noise_scale: float) -> Synopsis | None:
        """Cells that are not nearest to a centre whose noisy count is next to nothing; none if all or too few stay."""
        seen = (counts > UNSURE * noise_scale)[nearest(self.centers, centers)[0]]
        if seen.all() or seen.sum() < len(centers):
            return None
        return Synopsis(self.centers[seen], self.sides[seen], self.weights[seen])

    def radii(self, centers: Array) -> Array:
        """Within which distance of its centre most of a cluster's weight lies; of one without any, that of all."""
        labels, squares = nearest(self.centers, centers)
        squares = (
            squares + (self.sides**2).sum(axis=1) / 12
        )  # mean square distance of a point of a cell from its centre
        radii = np.full(len(centers), np.sqrt(np.average(squares, weights=self.weights)))
        order = np.lexsort((squares, labels))
        own, up_to = labels[order], np.cumsum(self.weights[order])
        for cluster in np.unique(own):
            start, stop = np.searchsorted(own, [cluster, cluster + 1])
            before = up_to[start - 1] if start else 0.0
            aim = before + WITHIN * (up_to[stop - 1] - before)
            radii[cluster] = np.sqrt(squares[order[start + np.searchsorted(up_to[start : stop - 1], aim)]])
        return radii


def squared_distances(X: Array, centers: Array) -> Array:
    """Of each row from each centre, entry by entry, so that the last bits of a row do not depend on other rows."""
    squares = np.zeros((len(X), len(centers)))
    for column, of_centers in zip(X.T, centers.T):
        squares += np.square(column[:, None] - of_centers)
    return squares


def nearest(X: Array, centers: Array) -> tuple[NDArray[np.intp], Array]:
    """The nearest centre of each row, and its squared distance."""
    squares = squared_distances(X, centers)
    labels = squares.argmin(axis=1)
    return labels, squares[np.arange(len(X)), labels]


def sums_around(rows: Rows | Stream, centers: Array, radii: Array, bound: float) -> Array:
    """For each centre the weight of the nearest rows, and the sum of their clipped ways from it, over its radius."""
    step, size = counting_step(rows.n), centers.size + len(centers)
    steps = partial(_steps_around, centers=centers, radii=radii, bound=bound, step=step)
    sums = fold(Counts(size, steps), rows) * step
    return np.asarray(sums, dtype=np.float64).reshape(len(centers), -1)


def _steps_around(block: Rows, centers: Array, radii: Array, bound: float, step: float) -> Array:
    """Those of one block, in whole numbers of a public step."""
    sums = np.zeros((1 + centers.shape[1], len(centers)))
    for part in blocks(block.n, len(centers)):
        X, weight = block.X[part] / bound, block.weight[part] / step
        labels, squares = nearest(X, centers)
        ways = (X - centers[labels]) / np.maximum(np.sqrt(squares), radii[labels])[:, None]
        for total, own in zip(sums, [np.ones(len(X)), *ways.T]):
            total += np.bincount(labels, np.rint(own * weight), len(centers))
    return sums.T.ravel()


def stepped(centers: Array, radii: Array, noisy: Array, noise_scale: float) -> tuple[Array, Array]:
    """Centres after a step by noisy sums around them, and the standard errors that its noise gives each."""
    counts, *sums = noisy.T
    trust = np.maximum(counts, 0.0) / np.maximum(counts**2 + (UNSURE * noise_scale) ** 2, 1e-300)
    return np.clip(centers + (np.array(sums) * trust * radii).T, -1.0, 1.0), noise_scale * trust * radii


def first_centers(answer: Array, cells: HalvedCells, n_clusters: int, noise_scale: float) -> tuple[Array, Array, float]:
    """Centres and radii, in units of the bound, by noisy weights of the cells of all rounds; and the bound."""
    levels = np.split(answer, [cell_count(level) for level in range(1, cells.depth)])

    def ask(level: int, parts: Codes) -> Array:
        return np.asarray(levels[level - 1][parts])

    synopsis = Synopsis.of(cells, ask, noise_scale, MOST_CELLS, n_clusters)
    centers = synopsis.clustered(n_clusters)
    return centers, synopsis.radii(centers), cells.bound


def released_centers(answer: Array, cells: HalvedCells, n_clusters: int, noise_scale: float) -> tuple[Array, Array]:
    """Centres and their errors, in the units of the rows, by these weights and by sums around the first centres."""
    weights, sums = np.split(answer, [cell_count(cells.depth)])
    centers, radii, bound = first_centers(weights, cells, n_clusters, noise_scale)
    centers, errors = stepped(centers, radii, sums.reshape(n_clusters, -1), noise_scale)
    return centers * bound, errors * bound


def exact_centers(rows: Rows, cells: HalvedCells, n_clusters: int) -> tuple[Array, Array]:
    """The same without noise."""
    weights = np.concatenate(cells.weights(rows))
    sums = sums_around(rows, *first_centers(weights, cells, n_clusters, 0.0))
    return released_centers(np.append(weights, sums), cells, n_clusters, 0.0)


def count_of_clusters(stage: Any, domain: Domain) -> int:
    """The parameter ``n_clusters``, refused if there are more than rows, or than can be released together."""
    count, most = integer("n_clusters", stage.n_clusters, stage), min(domain.n, MOST_NUMBERS // (1 + domain.d))
    if count > most:
        which = "rows" if most == domain.n else "clusters that are released together"
        what = f"n_clusters={count} is more than there are {which}, {most}."
        fix = "fewer clusters: each needs hundreds of rows to be seen through the noise."
        raise InvalidParameter(what, stage=type(stage).__name__, fix=fix, parameter="n_clusters")
    return count


def center_answers(centers: Array, errors: Array, columns: Columns) -> list[Answers]:
    """Released centres with the errors of the last step, in the units of the columns."""
    return [
        Answers.of(
            f"center of cluster {cluster}",
            columns,
            center,
            error,
            "" if columns.gaps.any() else "error of the last step alone",
        )
        for cluster, (center, error) in enumerate(zip(centers, errors))
    ]
