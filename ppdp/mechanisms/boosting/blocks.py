"""What is made of blocks of rows: their cells, and sums in them. A block may be elsewhere, so these are alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ppdp.bounds.boosting import WINDOW, WINDOWS
from ppdp.bounds.release import TAIL_CELLS
from ppdp.data.cell_grid import CellGrid, Codes, places_among
from ppdp.data.parallel import blocks
from ppdp.data.rows import Array, Rows
from ppdp.data.tails import EDGES
from ppdp.mechanisms.boosting.losses import ScoreLoss
from ppdp.mechanisms.boosting.model import SIDE, AdditiveModel

Places = Callable[[Rows], tuple[list[Codes], Array]]
"""Places of a block, one row for every term, and weights, one row for every sum that is taken."""


def in_cells(cells: CellGrid, rows: Rows) -> Rows:
    """Rows of the cells of their values."""
    return replace(rows, X=cells.of_rows(rows.X), raw=None, ours=True, texts=None, marks=None)


def sums_in_steps(places: Places, size: int, step: float, block: Rows) -> Array:
    """Sums of weights at places, in steps."""
    where, weights = places(block)
    whole = np.rint(weights * (block.weight / step))
    sums = np.zeros((len(whole), size))
    for row, values in zip(sums, whole):
        for term in where:
            row += np.bincount(term, values, size)
    return np.asarray(sums.ravel())


def _targets(rows: Rows) -> Array:
    assert rows.y is not None
    return rows.y


def targets_in_cells(grid: CellGrid, block: Rows) -> tuple[list[Codes], Array]:
    """Weights in the cells of targets."""
    return [grid.of_column(0, _targets(block))], np.ones((1, block.n))


def values_in_parts(columns: Sequence[int], bound: float, block: Rows) -> tuple[list[Codes], Array]:
    """Weights in the parts of the ranges of columns, one column behind the other; missing values are behind all."""
    places = []
    for start, column in enumerate(columns):
        values = block.X[:, column]
        parts = places_among(bound * EDGES[1:-1], values, bound) + start * TAIL_CELLS
        places.append(np.where(np.isnan(values), len(columns) * TAIL_CELLS, parts))
    return places, np.ones((1, block.n))


def labels_in_cells(loss: ScoreLoss, starts: Sequence[int], n_labels: int, block: Rows) -> tuple[list[Codes], Array]:
    """Labels in the cells of every column."""
    codes = [column.astype(np.intp) + start for column, start in zip(block.X.T, starts)]
    return codes, np.array([loss.labels(_targets(block), label) for label in range(n_labels)])


def gradients_in_terms(
    loss: ScoreLoss,
    model: AdditiveModel,
    label: int,
    terms: Sequence[Callable[[list[Codes]], Codes]],
    starts: Sequence[int],
    block: Rows,
) -> tuple[list[Codes], Array]:
    """Gradients in the cells of every term."""
    codes = list(block.X.T)
    gradients = loss.gradients(_targets(block), model.scores(codes), label)
    return [term(codes) + start for term, start in zip(terms, starts)], gradients[None]


def gradients_in_leaves(
    loss: ScoreLoss, model: AdditiveModel, label: int, cells: Mapping[int, Codes], block: Rows
) -> tuple[list[Codes], Array]:
    """Gradients in the leaves of a tree, and slopes there, of which the largest counts as :data:`WINDOW`."""
    codes, leaves = list(block.X.T), np.zeros(block.n, dtype=np.intp)
    for column, of_cells in cells.items():
        leaves += of_cells[codes[column]]
    scores = model.scores(codes)
    slopes = np.minimum(loss.slope(scores) * (WINDOW / loss.steepest), WINDOW)
    return [leaves], np.array([loss.gradients(_targets(block), scores, label), slopes])


def targets_in_windows(loss: ScoreLoss, model: AdditiveModel, block: Rows) -> tuple[list[Codes], Array]:
    """How far targets are from what is predicted."""
    distances = loss.distances(_targets(block), model.scores(list(block.X.T)))
    return [np.searchsorted(WINDOWS, distances)], np.full((1, block.n), WINDOW)


def of_tables(loss: ScoreLoss, label: int, tables: list[tuple[int, Array]], norm: float, rows: Rows) -> Rows:
    """Rows of what each table has for the cell of its column, clipped to a norm, with the targets of one score."""
    X = np.empty((rows.n, len(tables)))
    for part in blocks(rows.n, len(tables)):
        codes = rows.X[part]
        X[part] = np.column_stack([table[codes[:, column]] for column, table in tables])
    lengths = np.sqrt(np.einsum("ij,ij->i", X, X))
    X *= (norm / np.maximum(lengths, norm))[:, None]
    y = loss.linear_targets(_targets(rows), label)
    return replace(rows, X=X, y=y, raw=None, ours=True, texts=None, marks=None)


def bin_of(column: int, of_cells: Codes, codes: list[Codes]) -> Codes:
    """Bins of one column."""
    return np.asarray(of_cells[codes[column]])


def cell_of(groups: list[Codes], first: int, second: int, codes: list[Codes]) -> Codes:
    """Cells of the table of two columns."""
    return np.asarray(groups[first][codes[first]] * SIDE + groups[second][codes[second]])
