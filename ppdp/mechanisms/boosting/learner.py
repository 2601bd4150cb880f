"""First shapes of columns from a histogram, and a linear model of them: ``docs/theory/boosting.md``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ppdp.bounds.boosting import LOSSES as LINEAR
from ppdp.bounds.boosting import linear_of
from ppdp.data.rows import Array
from ppdp.data.stream import streamed
from ppdp.mechanisms.boosting.bins import Bins
from ppdp.mechanisms.boosting.blocks import of_tables
from ppdp.mechanisms.boosting.losses import ScoreLoss
from ppdp.mechanisms.boosting.model import AdditiveModel
from ppdp.mechanisms.boosting.plans import begins_with_shapes
from ppdp.mechanisms.boosting.shapes import Posterior, correlations, first_shape, parts
from ppdp.mechanisms.boosting.training import Training
from ppdp.mechanisms.learn.newton import fitted_by_newton
from ppdp.mechanisms.learn.prior import Prior

LEAST_IMPORTANCE = 0.02  # of the largest, of a column that takes part in the linear model and in rounds
# That a round has something to say: noise alone seldom has as much. Where shapes are lines but for this share of their
# variance there seldom is more, and what noise says is far more than they are wrong by.
LEAST_EVIDENCE, LEAST_BESIDE_LINES, CURVED = 3.0, 7.0, 0.05
LARGEST_SCORE = 30.0
# Standard deviations of weights, where the linear model begins with the shapes: of a shape, over its importance, of
# what stands beside it, or might, over the largest importance, and of the baseline, over a typical score.
OWN, OTHER, OF_BASELINE = 0.7, 0.15, 0.3
MOST_HELD = 2**25  # numbers that rows of the linear model have, up to which they are kept in memory


@dataclass(slots=True)
class ShapeLearner:
    """What is known of one score; everything in it follows from released numbers."""

    training: Training
    loss: ScoreLoss
    label: int
    bins: list[Bins]
    kernels: list[list[Array]]
    posteriors: list[Posterior]
    model: AdditiveModel
    n_rows: float  # weight of all rows, by released numbers
    scarcity: float  # 1 where these are few beside noise, else less
    least: float = LEAST_EVIDENCE  # below which noise is not followed
    lines: list[Callable[[], tuple[Posterior, Array]]] = field(default_factory=list)  # first shapes, were they straight
    unsure: float = 0.0  # variance of the baseline
    middle: float | None = None  # of the distances of targets from scores, if released
    together: Array = field(default_factory=lambda: np.zeros((0, 0)))  # correlations of what columns add
    of_bins: dict[int, Array] = field(default_factory=dict)  # what bins add of each column
    tables: Sequence[tuple[int, Array]] = ()  # of the linear model
    moments: Array = field(default_factory=lambda: np.zeros((0, 0)))  # released second moments of these

    def add_column(self, column: int, by_label: Array, noise: float, rate: float) -> None:
        """Bins of a column, and its first shape."""
        training, loss = self.training, self.loss
        counts = by_label.sum(axis=0)
        places = None if training.cells.categories[column] else training.cells.places(column)
        covariance = training.cells.covariance(column)
        bins = Bins.of(counts, noise * math.sqrt(len(by_label) * covariance[0, 0]), places)
        spread = noise**2 * bins.summed(bins.summed(covariance).T)
        sums, kernels = (bins.summed(by_label[self.label]), bins.summed(counts)), parts(bins)
        given = rate, self.n_rows, len(by_label) - 1
        posterior, shape, line = first_shape(loss, bins, sums, spread, given, kernels, self.scarcity)
        self.bins.append(bins)
        self.kernels.append(kernels)
        self.posteriors.append(posterior)
        self.lines.append(line)
        self._show(column, shape)

    def straighten(self) -> None:
        """Make first shapes of many rows lines where nearly all is straight, and noise alone bends them as much."""
        if self.scarcity < 1 and self._curved() < CURVED:
            for column in (column for column, bins in enumerate(self.bins) if bins.ordered):
                line, shape = self.lines[column]()
                if self.posteriors[column].evidence < line.evidence + LEAST_BESIDE_LINES:
                    self.posteriors[column] = line
                    self._show(column, shape)

    def _show(self, column: int, of_bins: Array) -> None:
        """Set the shape of a column, or what is next to it that rises or falls."""
        bins, direction = self.bins[column], self.training.directions[column]
        if direction:
            of_bins = np.append(bins.monotone(of_bins, rises=direction > 0), of_bins[-1])
        self.of_bins[column], self.model.shapes[column] = of_bins, bins.in_cells(of_bins, self.loss.within)
        self.model.errors[column] = self.posteriors[column].errors()[bins.of_cells]

    def importances(self) -> Array:
        """Standard deviation over the rows of what each column adds."""
        of_bins = [self.of_bins[column] for column in range(len(self.bins))]
        return np.array([math.sqrt(float(bins.shares @ shape**2)) for bins, shape in zip(self.bins, of_bins)])

    def weigh(self) -> None:
        """Shapes as a linear model weighs them, with lines and indicators beside them: columns may say the same.

        Where noise is large, the model begins with the shapes as they are.
        """
        training, model = self.training, self.model
        norm, linear = training.parameters["norm"], linear_of(training.parameters)
        importances = self.importances()
        kept = np.flatnonzero(importances >= LEAST_IMPORTANCE * importances.max())
        tables: list[tuple[int, Array]] = [
            (int(column), model.shapes[column] / max(importances[column], 1e-300)) for column in kept
        ]
        tables += self._terms()
        more, other = len(tables) - len(kept), OTHER * importances.max()
        terms = np.array(training.parameters.get("terms", [0] * len(importances)))[kept]
        own = np.hypot(OWN * importances[kept], other * (terms == 0))
        prior = Prior(
            np.array([*importances[kept], *[0.0] * more, model.baseline - self.loss.shift]),
            np.array([*own, *[other] * more, OF_BASELINE * self.loss.typical_score]),
            self._moments(tables),
        )
        of_rows = partial(of_tables, self.loss, self.label, tables, norm)
        held = training.rows.n * len(tables) <= MOST_HELD
        rows = (training.rows if held else streamed(training.rows)).each(of_rows, len(tables))
        factor, sure = training.factors.linear, self._sure()

        def answer(values: Array) -> Array:
            return training.answer(values * factor) / factor

        parameters = {**linear, "norm": norm, "loss": LINEAR[training.parameters["loss"]]}
        size, noise_scale = training.size, training.noise_scale / factor
        models, covariance, _, moments = fitted_by_newton(
            rows, self.loss.linear, answer, noise_scale, size, parameters, prior=None if sure else prior
        )
        *weights, baseline = models[-1][0]
        self.unsure = float(prior.deviations[-1] ** 2 if sure else covariance[-1, -1])
        model.baseline = bounded(baseline + self.loss.shift).item()
        added = [np.zeros(width) for width in training.cells.widths]
        of_columns = np.zeros((len(added), len(tables)))
        for place, (weight, (column, table)) in enumerate(zip(weights, tables)):
            added[column] += weight * table
            of_columns[column, place] = weight
        self.together = correlations(of_columns @ moments @ of_columns.T)
        self.tables, self.moments = tables, moments
        for column, (bins, of_cells) in enumerate(zip(self.bins, added)):
            self._show(column, bounded(bins.means(of_cells)))
        self.least = LEAST_BESIDE_LINES if self._curved() < CURVED else LEAST_EVIDENCE

    def _curved(self) -> float:
        """Share of what columns add that is no straight line; of categories nothing is one."""
        cells, shares = self.training.cells, self.model.shares
        numbers = [(column, bins) for column, bins in enumerate(self.bins) if not cells.categories[column]]
        lines = [bins.along(cells.terms(column, shares[column])[0], self.of_bins[column]) for column, bins in numbers]
        return 1 - sum(lines) / max(float((self.importances() ** 2).sum()), 1e-300)

    def _terms(self) -> Iterator[tuple[int, Array]]:
        """Beside shapes, if the plan has them: indicators of categories, and lines."""
        for column, count in enumerate(self.training.parameters.get("terms", ())):
            for table in self.training.cells.terms(column, self.model.shares[column])[:count]:
                yield column, table

    def _sure(self) -> bool:
        """Whether the linear model needs no first shapes to begin with."""
        return not begins_with_shapes(self.training.parameters.get("terms", ()), self.training.certain)

    def _moments(self, tables: Sequence[tuple[int, Array]]) -> Array:
        """Second moments of what tables of the same column have for its rows; 0 of those of others."""
        moments, columns = np.zeros((len(tables),) * 2), np.array([column for column, _ in tables])
        for column in set(columns.tolist()):
            here = np.flatnonzero(columns == column)
            own = np.array([tables[place][1] for place in here.tolist()])
            moments[np.ix_(here, here)] = (own * self.model.shares[column]) @ own.T
        return moments


def bounded(scores: Any) -> Array:
    """Scores no larger than any that matters, whatever was released."""
    return np.clip(np.nan_to_num(scores), -LARGEST_SCORE, LARGEST_SCORE)
