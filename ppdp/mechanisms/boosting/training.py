"""Private rows, and the noisy sums of them that boosting asks for: ``docs/theory/boosting.md``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ppdp.bounds.boosting import TARGET_CELLS, AnswerFactors, answers
from ppdp.bounds.queries import counting_step
from ppdp.bounds.release import TAIL_CELLS
from ppdp.data.cell_grid import CellGrid
from ppdp.data.rows import Array, Rows
from ppdp.data.stream import Stream
from ppdp.data.summary import Counts, fold
from ppdp.mechanisms.boosting.blocks import (
    Places,
    in_cells,
    labels_in_cells,
    sums_in_steps,
    targets_in_cells,
    values_in_parts,
)
from ppdp.mechanisms.boosting.losses import OF_TARGETS, LogisticLoss, ScoreLoss
from ppdp.mechanisms.boosting.plans import edges_of
from ppdp.mechanisms.boosting.targets import TargetDistribution

CLIPPED = 4.0  # share of the targets that are clipped, over the noise on their mean that a round has in one column


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """Private rows, and the only way by which numbers made of them come out.

    ``rows`` hold the cells of their values, as :meth:`of` makes them: a byte or two for each, and nothing else is kept.
    ``answer`` adds noise of ``noise_scale`` to ``size`` numbers; ``parameters`` are those of the formula.
    """

    rows: Rows | Stream
    cells: CellGrid
    answer: Callable[[Array], Array]
    noise_scale: float
    size: int
    parameters: Mapping[str, Any]
    interactions: bool | None  # whether tables of two columns are made; None where released numbers say so
    directions: Sequence[int]  # 1 of columns whose shapes must rise, -1 where they must fall, else 0

    @classmethod
    def of(cls, rows: Rows | Stream, cells: CellGrid, *given: Any) -> Training:
        """From rows of numbers, in cells whose edges are released first, if the plan says so."""
        training = cls(rows, cells, *given)
        if "share_of_edges" in training.parameters:
            cells = replace(cells, edges=training._edges())
        return replace(training, rows=rows.each(partial(in_cells, cells), rows.d), cells=cells)

    def _edges(self) -> Array:
        """Inner edges of the cells of columns of numbers, from noisy numbers of rows in parts of their ranges."""
        columns, bound = np.flatnonzero(np.array(self.cells.categories) == 0).tolist(), self.cells.bound
        (exact,) = self.summed(partial(values_in_parts, columns, bound), len(columns) * TAIL_CELLS + 1)
        noisy, noise = self.released(exact[:-1], math.sqrt(len(columns)), self.factors.edges)
        by_column = noisy.reshape(len(columns), TAIL_CELLS)
        return bound * np.array([edges_of(own, noise, self.rows.n, self.cells.count) for own in by_column])

    @property
    def factors(self) -> AnswerFactors:
        """Public factors on the answers."""
        return AnswerFactors.of(self.parameters)

    @property
    def certain(self) -> float:
        """``n mu / √(2 d)``, from the noise."""
        return math.sqrt(2 * answers(self.parameters) / self.rows.d) / self.noise_scale

    @property
    def n_classes(self) -> int:
        """Classes; 2 for targets."""
        return int(self.parameters.get("n_classes", 2))

    @property
    def n_scores(self) -> int:
        """Scores of a row."""
        return self.n_classes if self.n_classes > 2 else 1

    def released(self, total: Array, norm: float, factor: float) -> tuple[Array, float]:
        """Sums over rows of vectors of this norm with noise, and its standard deviation."""
        unit = norm * self.rows.n / factor
        padded = np.zeros(self.size)
        padded[: len(total)] = total / unit
        return self.answer(padded)[: len(total)] * unit, self.noise_scale * unit

    def summed(self, places: Places, size: int, n_sums: int = 1) -> Array:
        """Sums of weights at places, in whole numbers of a public step: to the same bits however the rows come."""
        step = counting_step(self.rows.n)
        steps = partial(sums_in_steps, places, size, step)
        found = fold(Counts(size * n_sums, steps), self.rows)
        return np.asarray(found * step, dtype=np.float64).reshape(n_sums, size)

    # ------------------------------------------------------------ histograms

    def loss(self) -> ScoreLoss:
        """The loss, of targets on the scale that their released histogram says."""
        if self.parameters["loss"] == "logistic":
            return LogisticLoss()
        grid = CellGrid((0,), TARGET_CELLS, 1.0)
        (exact,) = self.summed(partial(targets_in_cells, grid), TARGET_CELLS + 1)
        noisy, noise = self.released(grid.in_nodes(0, exact)[:-1], 1.0, self.factors.targets)
        counts = grid.from_nodes(0, np.append(noisy, 0.0))[:-1]
        price = CLIPPED * math.sqrt(2 * self.rows.d) * self.noise_scale / self.factors.round
        low, high = self.parameters["y_range"]
        targets = TargetDistribution.of(counts, np.linspace(-1.0, 1.0, TARGET_CELLS + 1), noise * grid.levels / 2)
        return OF_TARGETS[self.parameters["loss"]](targets, price, (low, high), self.parameters.get("quantile"))

    def histogram(self, loss: ScoreLoss) -> tuple[list[Array], float]:
        """Noisy weights by label and cell of each column, shape (labels, cells), and the deviation of their noise."""
        starts, n_labels = self.cells.starts, self.n_classes

        places = partial(labels_in_cells, loss, starts, n_labels)
        exact = np.split(self.summed(places, sum(self.cells.widths), n_labels), starts[1:], axis=1)
        in_nodes = [self.cells.in_nodes(column, weights) for column, weights in enumerate(exact)]
        total = np.concatenate([numbers.ravel() for numbers in in_nodes])
        noisy, noise = self.released(total, math.sqrt(self.rows.d), self.factors.histogram)
        ends = np.cumsum([numbers.size for numbers in in_nodes])[:-1]
        by_column = enumerate(np.split(noisy, ends))
        return [self.cells.from_nodes(column, numbers.reshape(n_labels, -1)) for column, numbers in by_column], noise
