"""The bins into which released counts merge the public cells of a column: ``docs/theory/boosting.md``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.isotonic import isotonic_regression

from ppdp.bounds.boosting import GROUPS
from ppdp.data.cell_grid import Codes
from ppdp.data.rows import Array
from ppdp.mechanisms.boosting.model import HALVES

BEYOND_NOISE = 2.0  # standard deviations of it that the rows of a bin are, about
MOST_BINS = 64, 256  # of a column, whatever the noise


@dataclass(frozen=True, slots=True)
class Bins:
    """Runs of cells of one column, each of about as many rows as the noise allows to be told."""

    starts: Codes  # first cell of each; the last bin is that of missing values
    of_cells: Codes  # bin of each cell
    shares: Array  # released shares of the rows
    weights: Array  # of each cell, in its bin
    places: Array  # mean of each in its column, -1 to 1
    apart: Array  # place of each cell less that of its bin
    ordered: bool  # whether neighbouring bins have neighbouring values

    @classmethod
    def of(cls, counts: Array, noise: float, places: Array | None) -> Bins:
        """From counts of cells with so much noise, and their places; categories, which have none, are not merged."""
        width = len(counts)
        starts = np.arange(width)
        if places is not None:
            up_to = isotonic_regression(np.cumsum(counts[:-1]), y_min=0.0)
            rows = max(float(up_to[-1]), 1.0)
            most = int(np.clip(rows / (BEYOND_NOISE * noise), *MOST_BINS))
            rank = np.floor(up_to * (most / rows) * (1 - 1e-12))
            starts = np.concatenate([[0], 1 + np.flatnonzero(np.diff(rank) > 0)[: most - 1], [width - 1]])
            starts = np.unique(starts)
        weights = np.maximum(np.add.reduceat(counts, starts), 0.0)
        shares = np.maximum(weights / max(weights.sum(), 1.0), 1e-3 / len(starts))
        of_cells = np.searchsorted(starts, np.arange(width), side="right") - 1
        within = np.ones(width)
        for tail, rises in ((0, True), (-2, False)) if places is not None else ():
            cells = of_cells == np.arange(len(starts))[tail]  # fewer and fewer rows
            rows = isotonic_regression(counts[cells], y_min=0.0, increasing=rises)
            within[cells] = rows if rows.sum() > 0 else 1.0
        within /= np.add.reduceat(within, starts)[of_cells]
        middles = np.zeros(width) if places is None else np.append(places, 0.0)
        means = np.add.reduceat(within * middles, starts)
        apart = middles - means[of_cells]
        return cls(starts, of_cells, shares / shares.sum(), within, means, apart, places is not None)

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.starts)

    def summed(self, of_cells: Array) -> Array:
        """Sums over the cells of each bin, along the last axis."""
        return np.add.reduceat(of_cells, self.starts, axis=-1)

    def means(self, of_cells: Array) -> Array:
        """Means over the rows of each bin."""
        return np.asarray(self.summed(self.weights * of_cells))

    def in_cells(self, of_bins: Array, most: float) -> Array:
        """What has these means in bins: in each straight, as steep as towards the neighbour where that is less, and
        changed by so much at most.
        """
        if not self.ordered or self.count < 4:
            return np.asarray(of_bins[self.of_cells])
        rises = np.diff(of_bins[:-1]) / np.maximum(np.diff(self.places[:-1]), 1e-12)
        before, behind = np.append(rises[1], rises), np.append(rises, rises[-2])
        slopes = np.where(before * behind > 0, np.sign(before) * np.minimum(abs(before), abs(behind)), 0.0)
        within = np.append(slopes, 0.0)[self.of_cells] * self.apart
        return np.asarray(of_bins[self.of_cells] + np.clip(within, -most, most))

    def along(self, of_cells: Array, shape: Array) -> float:
        """Variance over the rows of what of a shape is a multiple of another one, of cells."""
        line = self.means(of_cells)
        return float(self.shares @ (line * shape)) ** 2 / max(float(self.shares @ line**2), 1e-300)

    def of_each_cell(self) -> Array:
        """Shares of the cells: a bin has them spread evenly, but in a tail."""
        return np.asarray(self.shares[self.of_cells] * self.weights)

    def ranks(self) -> Array:
        """Middle of each bin in the order of the rows, -1 to 1."""
        return 2 * (np.cumsum(self.shares) - self.shares / 2) - 1

    def groups(self, shape: Array) -> Codes:
        """Group of every bin: of about as many rows each, next to each other or with one effect; missing ones last."""
        count = self.count - 1
        order = np.arange(count) if self.ordered else np.argsort(shape[:-1], kind="stable")
        groups = np.full(self.count, GROUPS)
        if count <= GROUPS:
            groups[:-1] = np.arange(count)
            return groups
        shares = self.shares[:-1][order]
        middle = (np.cumsum(shares) - shares / 2) / shares.sum()
        groups[order] = np.minimum((middle * GROUPS).astype(np.intp), GROUPS - 1)
        return groups

    def halves(self, shape: Array) -> Codes:
        """In which of 256 groups every bin is, of about as many rows each; those of more rows count as if of as many.

        Missing values are with the last.
        """
        order = np.arange(self.count - 1) if self.ordered else np.argsort(shape[:-1], kind="stable")
        shares, halves = np.minimum(self.shares[:-1][order], 2.0**-HALVES), np.full(self.count, 2**HALVES - 1)
        halves[order] = (np.cumsum(shares) - shares / 2) / shares.sum() * 2**HALVES
        return halves

    def monotone(self, shape: Array, *, rises: bool) -> Array:
        """What is closest to a shape and rises, or falls, over all bins but that of missing values."""
        return np.asarray(isotonic_regression(shape[:-1], sample_weight=self.shares[:-1], increasing=rises))
