"""How much of every column labels explain, by numbers of rows, sums and squares: ``docs/theory/column-choice.md``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ppdp.bounds.k_means import COUNT_WEIGHT, square_weight
from ppdp.bounds.queries import longest_row
from ppdp.bounds.release import label_parts
from ppdp.core.domain import Domain, largest_entry
from ppdp.data.rows import Array, Rows
from ppdp.data.stream import Stream
from ppdp.data.summary import ColumnSums
from ppdp.data.together import Weight, together

CAUTION = 5.0  # times what noise alone explains, beside the variance: a column of little variance is not chosen for it
ROUNDED = 1e-12  # of a mean square: variance below it is rounding
_LEAST = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True)
class LabelMoments:
    """Means over all rows, by part of the labels, and standard deviations of their noise."""

    shares: Array  # of rows, shape (n_parts,)
    sums: Array  # of columns, shape (n_parts, d)
    squares: Array  # of columns, shape (d,)
    noise: float = 0.0
    noise_of_shares: float = 0.0
    noise_of_squares: float = 0.0

    @classmethod
    def of(cls, answer: Array, domain: Domain, noise: float = 0.0, *, weight: float | None = None) -> LabelMoments:
        """From the numbers that :func:`measured` gives."""
        parts, scale = label_parts(domain), largest_entry(domain) / (weight or square_weight(domain))
        row = COUNT_WEIGHT * longest_row(domain)
        shares = np.maximum(answer[:parts] / row, 0.0)
        sums, squares = answer[parts : -domain.d].reshape(parts, -1), answer[-domain.d :]
        return cls(shares, sums, squares * scale, noise, noise / row, noise * scale)

    def explained_by_class(self) -> Array:
        """Share of the variance that lies between classes, less what noise alone would give: ranks like F."""
        rows = np.maximum(self.shares, 2 * self.noise + _LEAST)[:, None]
        between = (self.sums**2 / rows).sum(axis=0) - self._all * self._mean
        return self._explained(between, self.noise**2 * float((1 / rows).sum()))

    def explained_by_target(self) -> Array:
        """Squared covariance with the target over the variance, less what noise alone would give: ranks like F."""
        slope = self.sums[1] - self.sums[0] - self._mean * (self.shares[1] - self.shares[0])
        return self._explained(slope**2, 2 * self.noise**2)

    @property
    def _all(self) -> Array:
        """Sums of all parts."""
        return np.asarray(self.sums.sum(axis=0))

    @property
    def _mean(self) -> Array:
        """Of the rows that are there."""
        return self._all / (self.shares.sum() + _LEAST)

    def _explained(self, found: Array, noise: float) -> Array:
        """What was found of every column over its variance, where both are more than noise makes of them."""
        error = np.hypot(self.noise_of_squares, 2 * self._mean * self.noise * len(self.shares) ** 0.5)
        variance = np.maximum(self.squares - self._all * self._mean, 2 * error)
        return np.asarray((found - noise) / (variance + CAUTION * noise + ROUNDED * self.squares + _LEAST))


def measured(rows: Rows | Stream, domain: Domain, *, weight: float | None = None) -> Array:
    """Numbers of rows and sums of each part of the labels, and squares of all columns, over the number of rows.

    ``weight`` is that of squares; None: as much as comes free beside sums of replaced rows.
    """
    entry, row = largest_entry(domain), COUNT_WEIGHT * longest_row(domain)
    maps = [partial(_of_part, part, domain.classes is not None) for part in range(label_parts(domain))]
    squares, *found = together(
        rows,
        (None, ColumnSums(rows.n, rows.d, [(partial(scaled_squares, entry), entry)])),
        *((own, Weight(rows.n)) for own in maps),
        *((own, ColumnSums(rows.n, rows.d, [(None, entry)])) for own in maps),
    )
    counts, sums = found[: len(maps)], found[len(maps) :]
    of_squares = (weight or square_weight(domain)) * squares
    return np.concatenate([*(row * one for one in counts), *sums, of_squares], axis=None) / rows.n


def _of_part(part: int, classified: bool, rows: Rows) -> Rows:
    """Rows that count by how much of their label is of this part."""
    y = np.zeros(rows.n) if rows.y is None else rows.y
    upper = np.clip((1 + y) / 2, 0.0, 1.0)
    share = y == part if classified else upper if part else 1 - upper
    return replace(rows, weight=rows.weight * share)


def scaled_squares(entry: float, X: Array) -> Array:
    """Of all entries, over the largest that there may be."""
    return np.asarray(X * X / entry)
