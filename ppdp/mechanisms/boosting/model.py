"""A model that adds shapes of single columns, and tables of two."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ppdp.bounds.boosting import GROUPS, n_pairs
from ppdp.data.cell_grid import CellGrid, Codes
from ppdp.data.rows import Array

SIDE = GROUPS + 1


@dataclass(slots=True)
class AdditiveModel:
    """Scores of rows for one label: a baseline, a shape of every column by cell, and tables of two columns.

    Attributes
    ----------
    cells : CellGrid
        Public cells.
    baseline : float
        The score beside all shapes.
    shapes, errors : list of ndarray
        Of each column what a cell adds, and its standard error.
    groups : list of ndarray of int
        Of each column the group of every cell, 0 to 8.
    pairs : list of tuple
        Two columns, and what their groups add, shape (9, 9).
    pair_errors : list of ndarray of shape (9, 9)
        Standard errors of that; NaN where releases of earlier versions have none.
    importances : ndarray of shape (n_columns,)
        Standard deviation of what each column adds, with half of the variance of its tables.
    shares : list of ndarray
        Of each column the released shares of its cells; those of cells in one bin are equal.
    """

    cells: CellGrid
    baseline: float
    shapes: list[Array]
    errors: list[Array]
    groups: list[Codes]
    pairs: list[tuple[int, int, Array]]
    pair_errors: list[Array]
    importances: Array
    shares: list[Array]

    @classmethod
    def constant(cls, cells: CellGrid, baseline: float) -> AdditiveModel:
        """The same score for every row."""
        zeros = [np.zeros(width) for width in cells.widths]
        groups = [np.zeros(width, dtype=np.intp) for width in cells.widths]
        even = [np.full(width, 1 / width) for width in cells.widths]
        return cls(
            cells, baseline, zeros, [shape.copy() for shape in zeros], groups, [], [], np.zeros(len(zeros)), even
        )

    def codes(self, X: Array) -> list[Codes]:
        """Cells of the values of every column."""
        return [self.cells.of_column(column, X[:, column]) for column in range(len(self.shapes))]

    def scores(self, codes: list[Codes]) -> Array:
        """Scores of rows in these cells; each is made of its row alone, in one order."""
        scores = np.full(len(codes[0]), self.baseline)
        for shape, code in zip(self.shapes, codes, strict=True):
            if shape.any():
                scores += shape[code]
        for first, second, table in self.pairs:
            scores += table[self.groups[first][codes[first]], self.groups[second][codes[second]]]
        return scores

    def group_shares(self, column: int) -> Array:
        """Released shares of the groups of a column."""
        return np.bincount(self.groups[column], self.shares[column], SIDE).astype(np.float64)

    def spreads(self) -> Array:
        """Standard deviations of what columns add, if they are independent; a table is half of each of its columns."""
        variances = np.array([own @ (shape - shape @ own) ** 2 for shape, own in zip(self.shapes, self.shares)])
        for first, second, table in self.pairs:
            one, two = self.group_shares(first), self.group_shares(second)
            variances[[first, second]] += one @ (table - one @ table @ two) ** 2 @ two / 2
        return np.asarray(np.sqrt(variances))

    def ranges(self) -> Array:
        """By how much each column can change the score by its shape."""
        return np.array([np.ptp(shape) for shape in self.shapes])

    @property
    def paired(self) -> float:
        """By how much all tables can change the score."""
        return float(sum(np.ptp(table) for _, _, table in self.pairs))

    @property
    def extremes(self) -> tuple[float, float]:
        """Bounds on the score."""
        tables = [*self.shapes, *(table for _, _, table in self.pairs)]
        return (
            self.baseline + float(sum(table.min() for table in tables)),
            self.baseline + float(sum(table.max() for table in tables)),
        )

    def scaled(self, factor: float, shift: float) -> AdditiveModel:
        """The same model of ``factor * score + shift``."""
        return replace(
            self,
            baseline=factor * self.baseline + shift,
            shapes=[factor * shape for shape in self.shapes],
            errors=[factor * error for error in self.errors],
            pairs=[(first, second, factor * table) for first, second, table in self.pairs],
            pair_errors=[factor * errors for errors in self.pair_errors],
            importances=factor * self.importances,
        )

    def to_arrays(self) -> dict[str, Array]:
        """What is released of it: arrays whose shapes are public."""
        pairs = np.zeros((n_pairs(len(self.shapes)), 2 + SIDE**2))
        pair_errors = np.zeros((len(pairs), SIDE**2))
        for row, errors, (first, second, table), own in zip(pairs, pair_errors, self.pairs, self.pair_errors):
            row[:] = first, second, *table.ravel()
            errors[:] = own.ravel()
        return {
            "baseline": np.array(self.baseline),
            "errors": np.concatenate(self.errors),
            "groups": np.concatenate(self.groups).astype(np.float64),
            "importances": self.importances,
            "pair_errors": pair_errors,
            "pairs": pairs,
            "shapes": np.concatenate(self.shapes),
            "shares": np.concatenate(self.shares),
        }

    @classmethod
    def from_arrays(cls, cells: CellGrid, arrays: dict[str, Array]) -> AdditiveModel:
        """Inverse of :meth:`to_arrays`."""
        ends = np.cumsum(cells.widths)[:-1]

        def split(name: str) -> list[NDArray[np.float64]]:
            return np.split(arrays[name], ends)

        kept = arrays["pairs"][:, 0] != arrays["pairs"][:, 1]
        pairs = [(int(row[0]), int(row[1]), row[2:].reshape(SIDE, SIDE)) for row in arrays["pairs"][kept]]
        errors = arrays.get("pair_errors", np.full((len(kept), SIDE**2), np.nan))[kept].reshape(-1, SIDE, SIDE)
        groups = [group.astype(np.intp) for group in split("groups")]
        of_columns = split("shapes"), split("errors"), groups
        importances, shares = arrays["importances"], split("shares")
        return cls(cells, float(arrays["baseline"]), *of_columns, pairs, [*errors], importances, shares)
