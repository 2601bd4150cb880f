"""Cells of the public range of the rows that are split where noisy weights say that many rows are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.bounds.k_means import PARTS
from ppdp.data.histograms import weighed
from ppdp.data.rows import Array, Rows
from ppdp.data.stream import Stream

Codes = NDArray[np.int64]
FULL, EMPTY = 2.0, 1.0  # standard deviations of its noise that a cell's weight exceeds if it is split, or kept at all


@dataclass(frozen=True, slots=True)
class HalvedCells:
    """Cells of the box from -bound to bound in every column, whose columns are halved in turn, two in each round.

    The code of a cell has one bit for every halving, 1 of the upper half.
    """

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
        cls, rows: Rows | Stream, cells: HalvedCells, answer: Callable[[Array], Array], noise_scale: float, most: int
    ) -> Synopsis:
        """By noisy weights of all cells that are split, at most so many in a round."""
        exact = weighed(rows, [PARTS**cells.depth], cells.of_rows)
        split, leaves = np.zeros(1, dtype=np.int64), []
        for level in range(1, cells.depth + 1):
            parts = (PARTS * split[:, None] + np.arange(PARTS)).ravel()
            noisy = answer(exact.reshape(PARTS**level, -1).sum(axis=1)[parts])
            full = noisy > FULL * noise_scale
            if full.sum() > most // PARTS:
                full &= noisy >= np.partition(noisy, -(most // PARTS))[-(most // PARTS)]
            leaf = (noisy > EMPTY * noise_scale) & (~full | (level == cells.depth))
            leaves.append((*cells.places(parts[leaf], level), noisy[leaf]))
            split = parts[full][: most // PARTS]
        return cls(*(np.concatenate(arrays) for arrays in zip(*leaves)))

    def padded(self, least: int) -> Synopsis:
        """At least so many: others are spread evenly over the box, with next to no weight."""
        lacking, d = least - len(self.weights), self.centers.shape[1]
        if lacking <= 0:
            return self
        from scipy.stats.qmc import Halton

        more = 2 * Halton(d, scramble=False).random(lacking) - 1
        return Synopsis(
            np.concatenate([self.centers, more]),
            np.concatenate([self.sides, np.full((lacking, d), 2.0)]),
            np.concatenate([self.weights, np.full(lacking, 1e-3)]),
        )

    def radii(self, labels: NDArray[Any], centers: Array, quantile: float) -> Array:
        """Within which distance of its centre this share of a cluster's weight lies."""
        within = (self.sides**2).sum(axis=1) / 12  # mean square distance of a point of a cell from its centre
        squares = ((self.centers - centers[labels]) ** 2).sum(axis=1) + within
        order = np.lexsort((squares, labels))
        radii = np.full(len(centers), np.sqrt(np.average(squares, weights=self.weights)))
        own, weights = labels[order], self.weights[order]
        up_to = np.cumsum(weights)
        for cluster in np.unique(own):
            start, stop = np.searchsorted(own, [cluster, cluster + 1])
            aim = up_to[start] - weights[start] + quantile * weights[start:stop].sum()
            radii[cluster] = np.sqrt(squares[order[min(start + np.searchsorted(up_to[start:stop], aim), stop - 1)]])
        return radii
