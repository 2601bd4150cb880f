"""A model that adds shapes of single columns, tables of two, and trees of several."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ppdp.bounds.boosting import GROUPS, n_pairs
from ppdp.data.cell_grid import CellGrid, Codes
from ppdp.data.rows import Array

SIDE = GROUPS + 1
HALVES = 8  # how often trees halve the rows of a column, at most


@dataclass(slots=True)
class AdditiveModel:
    """Scores of rows for one label: a baseline, a shape of every column by cell, tables of two columns, and trees.

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
    halves : list of ndarray of int
        Of each column in which of 256 groups every cell is: a binary digit for each time that rows are halved.
    trees : list of tuple
        How often each column is halved, and by how many of the 256 groups its values are shifted before, shape
        (n_columns,) each; and what is added where: a table whose axes are the columns that are halved.
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
    halves: list[Codes] = field(default_factory=list)
    trees: list[tuple[Codes, Codes, Array]] = field(default_factory=list)

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
        for table in self.tables():
            scores += table.of(codes)
        return scores

    def tables(self) -> Iterator[Table]:
        """Tables of two columns, and trees."""
        for first, second, values in self.pairs:
            yield Table({column: self.groups[column] for column in (first, second)}, values)
        for halved, shifts, values in self.trees:
            columns = np.flatnonzero(halved).tolist() if values.any() else []
            both = ((column, shifted(self.halves[column], shifts[column])) for column in columns)
            if columns:
                yield Table({column: halves >> (HALVES - halved[column]) for column, halves in both}, values)

    def spreads(self) -> Array:
        """Standard deviations of what columns add, if they are independent; a table is all its columns' alike."""
        variances = np.array([own @ (shape - shape @ own) ** 2 for shape, own in zip(self.shapes, self.shares)])
        for table in self.tables():
            columns, shares = list(table.groups), table.shares(self.shares)
            around = table.values - mean(table.values, shares)
            variances[columns] += mean(around**2, shares) / max(len(columns), 1)
        return np.asarray(np.sqrt(variances))

    def ranges(self) -> Array:
        """By how much each column can change the score by its shape."""
        return np.array([np.ptp(shape) for shape in self.shapes])

    @property
    def paired(self) -> float:
        """By how much all tables and trees can change the score."""
        return float(sum(np.ptp(table.values) for table in self.tables()))

    @property
    def extremes(self) -> tuple[float, float]:
        """Bounds on the score."""
        tables = [*self.shapes, *(table.values for table in self.tables())]
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
            trees=[(halved, shifts, factor * values) for halved, shifts, values in self.trees],
        )

    def to_arrays(self, depth: int = 0) -> dict[str, Array]:
        """What is released of it: arrays whose shapes are public, with trees of a depth if there are any."""
        pairs = np.zeros((n_pairs(len(self.shapes)), 2 + SIDE**2))
        pair_errors = np.zeros((len(pairs), SIDE**2))
        for row, errors, (first, second, table), own in zip(pairs, pair_errors, self.pairs, self.pair_errors):
            row[:] = first, second, *table.ravel()
            errors[:] = own.ravel()
        trees = np.zeros((len(self.trees), 2 * len(self.shapes) + 2**depth))
        for row, (halved, shifts, values) in zip(trees, self.trees):
            row[: 2 * halved.size + values.size] = *halved, *shifts, *values.ravel()
        of_trees = {"halves": np.concatenate(self.halves).astype(np.float64), "trees": trees} if depth else {}
        return {
            "baseline": np.array(self.baseline),
            **({} if self.cells.edges is None else {"edges": self.cells.edges}),
            "errors": np.concatenate(self.errors),
            "groups": np.concatenate(self.groups).astype(np.float64),
            "importances": self.importances,
            "pair_errors": pair_errors,
            "pairs": pairs,
            "shapes": np.concatenate(self.shapes),
            "shares": np.concatenate(self.shares),
            **of_trees,
        }

    @classmethod
    def from_arrays(cls, cells: CellGrid, arrays: dict[str, Array]) -> AdditiveModel:
        """Inverse of :meth:`to_arrays`."""
        cells = replace(cells, edges=arrays.get("edges"))
        ends = np.cumsum(cells.widths)[:-1]

        def split(name: str) -> list[NDArray[np.float64]]:
            return np.split(arrays[name], ends)

        kept = arrays["pairs"][:, 0] != arrays["pairs"][:, 1]
        pairs = [(int(row[0]), int(row[1]), row[2:].reshape(SIDE, SIDE)) for row in arrays["pairs"][kept]]
        errors = arrays.get("pair_errors", np.full((len(kept), SIDE**2), np.nan))[kept].reshape(-1, SIDE, SIDE)
        groups = [group.astype(np.intp) for group in split("groups")]
        of_columns = split("shapes"), split("errors"), groups
        importances, shares = arrays["importances"], split("shares")
        halves = [own.astype(np.intp) for own in split("halves")] if "halves" in arrays else []
        d = len(cells.widths)
        trees = [_tree(*np.split(row, [d, 2 * d])) for row in arrays.get("trees", ())]
        model = cls(cells, float(arrays["baseline"]), *of_columns, pairs, [*errors], importances, shares)
        return replace(model, halves=halves, trees=trees)


def _tree(halved: Array, shifts: Array, values: Array) -> tuple[Codes, Codes, Array]:
    """A tree as it was released, of which numbers behind those of its leaves are 0."""
    counts = halved.astype(np.intp)
    shape = 2 ** counts[counts > 0]
    return counts, shifts.astype(np.intp), values[: math.prod(shape.tolist())].reshape(shape)


def shifted(halves: Codes, shift: int) -> Codes:
    """Groups of the cells of a column, so many further on."""
    return np.clip(halves + shift, 0, 2**HALVES - 1)


@dataclass(frozen=True, slots=True)
class Table:
    """What several columns add together."""

    groups: Mapping[int, Codes]  # of each column, in the order of the axes, the group of every cell
    values: Array  # what groups add

    def of(self, codes: list[Codes]) -> Array:
        """What is added to rows in these cells."""
        place, step = np.zeros(len(codes[0]), dtype=np.int32), self.values.size
        for (column, groups), count in zip(self.groups.items(), self.values.shape):
            step //= count
            place += (step * groups).astype(np.int32)[codes[column]]
        return np.asarray(self.values.ravel()[place])

    def shares(self, of_cells: list[Array]) -> list[Array]:
        """Released shares of the groups of each column."""
        both = zip(self.groups.items(), self.values.shape)
        return [np.bincount(own, of_cells[column], count).astype(np.float64) for (column, own), count in both]


def mean(values: Array, shares: list[Array]) -> float:
    """Mean of a table whose columns are drawn independently."""
    for own in shares:
        values = np.tensordot(own, values, 1)
    return float(values)
