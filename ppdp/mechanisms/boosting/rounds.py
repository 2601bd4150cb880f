"""Rounds of noisy sums of gradients: ``docs/theory/boosting.md``.

A histogram of labels by cell gives every column a first shape. A linear model of these shapes says how they act
together. Then every round releases the gradients that are left, by bin or by pairs of bins, and the model follows them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from ppdp.bounds.boosting import GROUPS, MOST_PAIRED, WINDOW, WINDOWS, diameter, n_pairs
from ppdp.core.progress import progress
from ppdp.data.cell_grid import Codes
from ppdp.data.rows import Array
from ppdp.mechanisms.boosting.blocks import (
    bin_of,
    cell_of,
    gradients_in_leaves,
    gradients_in_terms,
    targets_in_windows,
)
from ppdp.mechanisms.boosting.learner import LEAST_IMPORTANCE, ShapeLearner, bounded
from ppdp.mechanisms.boosting.losses import ScoreLoss
from ppdp.mechanisms.boosting.model import SIDE, AdditiveModel, shifted
from ppdp.mechanisms.boosting.shapes import WEIGHT, Posterior, centred, joint_shares, level, products, table_parts
from ppdp.mechanisms.boosting.training import Training
from ppdp.mechanisms.boosting.trees import as_table, columns_drawn, leaves_of_cells, shifts_drawn, values_of_leaves

TRUST = 1.0  # by how much a round changes what a bin adds, at most
LEAST_CURVATURE = 0.02  # of a step of the baseline
SLACK = 1e-9  # on the closeness of means, for their rounding
# Variance of the noise on a cell of a table of two columns, over that of its labels, times the number of tables, up to
# which they pay; of targets, whose gradients are taken to have a usual variance, those of all columns up to the second.
CERTAIN, MANY, USUAL_VARIANCE = 1400.0, 280.0, 0.25
UNSEEN = 3.0  # evidence that shapes have without any effect, and one for every column more
SCARCE = 400.0  # `n mu / √(2 d)`, less where the loss is flat, up to which first shapes are doubted, then ever less
DOUBT_OF_ROUNDS, DOUBT_OF_TABLES = 1.0, 0.3  # rates of exponential distributions of variances, of typical scores
CHANCE = 0.1  # of a column to be halved by a tree, at least, over that of one that adds as much as the average does
LEAST_PAIRED = 0.1  # of the largest importance, of a column that has tables with others
# Standard deviations of residuals of targets at which they are clipped, and that with the fourth root of
# `n mu / √(2 d)` over the second: a clip is a bias that no number of rows removes.
DEVIATIONS = 3.0, 1000.0
NODES = np.polynomial.hermite_e.hermegauss(9)


def models(training: Training) -> tuple[list[AdditiveModel], Array]:
    """One for every score, and the weight of the rows as a noisy share of their number, with its standard error."""
    loss = training.loss()
    histogram, noise = training.histogram(loss)
    labels = range(training.n_scores) if training.n_scores > 1 else (1,)
    made = [_model(training, loss, histogram, noise, label) for label in labels]
    variance = training.n_classes * sum(training.cells.covariance(column).sum() for column in range(len(histogram)))
    total = sum(weights.sum() for weights in histogram), noise * math.sqrt(variance)
    return made, np.array(total) / (len(histogram) * training.rows.n)


def _model(training: Training, loss: ScoreLoss, histogram: Sequence[Array], noise: float, label: int) -> AdditiveModel:
    """The model of one score, from the histogram of all."""
    rate = float(np.clip(np.mean([h[label].sum() / max(h.sum(), 1.0) for h in histogram]), 1e-3, 1 - 1e-3))
    present = min(max(float(np.mean([h.sum() for h in histogram])), 1.0), float(training.rows.n))
    model = AdditiveModel.constant(training.cells, loss.score(rate))
    seen = training.certain * float(loss.slope(np.array([model.baseline]))[0]) / loss.steepest  # less of a rare class
    learner = Rounds(training, loss, label, [], [], [], model, present, min(1.0, (SCARCE / seen) ** 2))
    for column, by_label in enumerate(histogram):
        learner.add_column(column, by_label, noise, rate)
    learner.model.shares = [bins.of_each_cell() for bins in learner.bins]
    learner.straighten()
    points, weights = NODES
    spread = math.sqrt(float((learner.importances() ** 2).sum()))
    model.baseline = level(loss, rate, spread * points, weights / weights.sum())
    learner.weigh()
    trees, depth = training.parameters.get("trees", (0, 0))
    rounds = training.parameters["rounds"] - trees
    for step in progress(range(rounds + trees), "boosting rounds"):
        if step < rounds:
            learner.make_round(rounds - step)
        else:
            learner.grow_tree(depth, np.random.default_rng([label, step]))
    learner.model.importances = learner.model.spreads()
    return learner.model.scaled(*learner.loss.units)


@dataclass(slots=True)
class Rounds(ShapeLearner):
    """What rounds add to the shapes of one score as the linear model weighs them."""

    def make_round(self, left: int) -> None:
        """One round: of single columns, or of pairs of them where that says more; the last ones are of pairs."""
        self._follow_rest()
        if left == 1 and (pairs := self._paired()):
            self._round_of_pairs(pairs)
        else:
            self._round_of_columns()

    def _follow_rest(self) -> None:
        """Make gradients as large as what scores leave of labels may be."""
        spreads, (least, few) = self.model.spreads(), DEVIATIONS
        variance = float(spreads @ self.together @ spreads)
        self.loss = self.loss.explained(variance, least * max(1.0, self.training.certain / few) ** 0.25)

    def _paired(self) -> list[tuple[int, int]]:
        """Pairs of columns whose tables are asked for or pay: of the most important ones of those that may go up and
        down; of targets, where that are too many, of those alone that are hardly less important than the first.
        """
        training, importances, asked = self.training, self.importances(), self.training.interactions
        order = np.argsort(-importances, kind="stable").tolist()
        free = [column for column in order if not training.directions[column]][:MOST_PAIRED]
        some = [column for column in free if importances[column] >= LEAST_PAIRED * importances.max()]
        for columns, certain in ((free, CERTAIN),) if self.loss.curved else ((free, MANY), (some, CERTAIN)):
            if self._pays(n_pairs(len(columns)), certain) if asked is None else asked:
                return list(combinations(sorted(columns), 2))
        return []

    def _pays(self, pairs: int, certain: float) -> bool:
        """Whether so many tables have something to say, or single columns no more than noise would."""
        training, loss = self.training, self.loss
        if sum(posterior.evidence for posterior in self.posteriors) < UNSEEN + len(self.bins):
            return True
        noise = training.noise_scale * math.sqrt(4 * pairs) * training.rows.n / training.factors.round
        variance = self._mean_of(loss.variance) if loss.curved else USUAL_VARIANCE
        return pairs * noise**2 < certain * self.n_rows * variance / GROUPS**2

    def _mean_of(self, of_scores: Callable[[Array], Array]) -> float:
        """Mean over the rows of a function of their scores, as if these were normal."""
        points, weights = NODES
        spread = math.sqrt(float((self.importances() ** 2).sum()))
        return float(weights @ of_scores(self.model.baseline + spread * points) / weights.sum())

    def _gradients(
        self, terms: Sequence[Callable[[list[Codes]], Codes]], sizes: list[int], norm: float
    ) -> tuple[list[Array], float]:
        """Noisy sums of gradients in the cells of every term, and the deviation of their noise."""
        training, model, label, loss = self.training, self.model, self.label, self.loss
        starts = np.cumsum([0, *sizes])

        places = partial(gradients_in_terms, loss, model, label, terms, starts.tolist())
        (total,) = training.summed(places, int(starts[-1]))
        if loss.windows:
            total = np.append(total, training.summed(partial(targets_in_windows, loss, model), len(WINDOWS) + 1))
        noisy, noise = training.released(total, norm, training.factors.round)
        *sums, near = np.split(noisy, starts[1:])
        self.loss, self.middle = loss.seen(near)
        return sums, noise

    def _diameter(self, terms: int, ranges: Array, besides: float, *, counted: bool = False) -> float:
        """The norm by which gradients are divided: of so many terms, whose columns change scores by ``ranges``.

        ``counted`` says that rows are, in one more cell.
        """
        loss, (low, high) = self.loss, self.model.extremes
        apart = np.cumsum([besides, *np.sort(ranges)[::-1]])
        largest = min(loss.largest(low, high) + SLACK, 1.0)
        close = np.minimum(loss.closeness(apart, high) + SLACK, 1.0)
        replaces, window = self.training.parameters["replaces"], WINDOW * (loss.windows or counted)
        return diameter(terms, close.tolist(), largest, replaces=replaces, window=window)

    def _round_of_columns(self) -> None:
        """Follow the gradients in the bins of single columns."""
        importances = self.importances()
        active = [int(column) for column in np.flatnonzero(importances > LEAST_IMPORTANCE * importances.max())]
        active = active or list(range(len(self.bins)))
        ranges = self.model.ranges()
        besides = float(np.delete(ranges, active).sum()) + self.model.paired
        terms = [partial(bin_of, column, self.bins[column].of_cells) for column in active]
        norm = self._diameter(len(active), ranges[active], besides)
        sums, noise = self._gradients(terms, [self.bins[column].count for column in active], norm)
        rest = float(np.mean([of_column.sum() for of_column in sums]))
        points, weights = NODES
        total, doubt = float((importances**2).sum()), DOUBT_OF_ROUNDS / self.loss.typical_score**2
        least = self.least + self.scarcity * math.log(len(active))
        steps: dict[int, Array] = {}
        for column, of_column in zip(active, sums):
            bins, shape = self.bins[column], self.of_bins[column]
            others = math.sqrt(max(total - importances[column] ** 2, 0.0))
            scores = self.model.baseline + shape[:, None] + others * points
            curvature, labels = (
                self.n_rows * bins.shares * (of_scores @ weights) / weights.sum()
                for of_scores in (self.loss.slope(scores), self.loss.variance(scores))
            )
            prior = centred(self.posteriors[column].covariance, bins.shares) * (doubt / WEIGHT)  # not doubted again
            posterior = Posterior.of(
                of_column, curvature, self._noise(noise**2 + labels, bins.shares), [*self.kernels[column], prior], doubt
            )
            if posterior.evidence < least:
                continue
            self.posteriors[column] = posterior
            steps[column] = np.clip(posterior.mean - bins.shares @ posterior.mean, -TRUST, TRUST)
        factor = self._jointly(steps)
        for column, step in steps.items():
            self._show(column, bounded(self.of_bins[column] + factor * step))
        numbers = sum(self.bins[column].count for column in active)
        self._step_of_baseline(rest, noise * math.sqrt(numbers) / len(active))

    def _jointly(self, steps: Mapping[int, Array]) -> float:
        """By what steps of several columns are multiplied, since those that go together say the same more than once.

        What of them is along the tables of the linear model goes together as its released moments say.
        """
        own = sum(float(self.bins[column].shares @ step**2) for column, step in steps.items())
        of_cells = {
            column: self.model.shares[column] * step[self.bins[column].of_cells] for column, step in steps.items()
        }
        along = [float(table @ of_cells[column]) if column in steps else 0.0 for column, table in self.tables]
        known = self._moments(self.tables)
        weights = np.linalg.lstsq(known, np.array(along), rcond=1e-6)[0]
        return min(1.0, own / max(own + float(weights @ (self.moments * (known == 0)) @ weights), 1e-300))

    def _noise(self, variances: Array, shares: Array, alike: Any = 1.0) -> Array:
        """Covariance of sums of gradients in cells, of which anything may be due to what cells are ``alike`` in: the
        baseline, if nothing else.
        """
        return np.asarray(np.diag(variances + 1e-6) + self.n_rows**2 * alike * np.outer(shares, shares))

    def _step_of_baseline(self, rest: float, noise: float) -> None:
        """Follow the sum of all gradients, as far as it is more certain than the baseline."""
        slope = self.n_rows * max(self._mean_of(self.loss.slope), LEAST_CURVATURE)
        seen = (noise / slope) ** 2
        kept = seen / (self.unsure + seen)
        step = (1 - kept) * rest / slope if self.middle is None else self.middle
        self.unsure *= kept
        self.model.baseline = bounded(self.model.baseline + np.clip(step, -TRUST, TRUST)).item()

    def _round_of_pairs(self, pairs: list[tuple[int, int]]) -> None:
        """Follow the gradients in tables of two columns."""
        model = self.model
        grouped = [bins.groups(self.of_bins[column]) for column, bins in enumerate(self.bins)]
        model.groups = [groups[bins.of_cells] for groups, bins in zip(grouped, self.bins)]
        shares: list[Array] = [
            np.bincount(groups, bins.shares, SIDE).astype(np.float64) for groups, bins in zip(grouped, self.bins)
        ]
        means = [
            np.bincount(groups, bins.shares * self.of_bins[column], SIDE) / np.maximum(own, 1e-12)
            for column, (groups, bins, own) in enumerate(zip(grouped, self.bins, shares))
        ]
        terms = [partial(cell_of, model.groups, first, second) for first, second in pairs]
        norm = self._diameter(len(pairs), np.zeros(0), float(model.ranges().sum()) + model.paired)
        sums, noise = self._gradients(terms, [SIDE**2] * len(pairs), norm)
        found, rest = [], []
        doubt = DOUBT_OF_TABLES / self.loss.typical_score**2
        least = self.least + math.log(len(pairs))  # of many tables noise makes one larger
        for (first, second), of_pair in zip(pairs, sums):
            own, effects = (shares[first], shares[second]), (means[first], means[second])
            weights = joint_shares(own, effects, float(self.together[first, second])).ravel()
            kept = np.outer(shares[first] > 0, shares[second] > 0).ravel()
            kernels = products(
                *(
                    table_parts(of_groups[of_groups > 0], ordered=self.bins[column].ordered)
                    for column, of_groups in zip((first, second), own)
                )
            )
            weights, of_cells = weights[kept], of_pair[kept]
            slopes, labels = (numbers[kept] for numbers in self._in_cells(own, effects))
            effects_alone = (np.equal.outer(groups, groups) for groups in np.divmod(np.flatnonzero(kept), SIDE))
            spread = self._noise(noise**2 + labels * self.n_rows * weights, weights, sum(effects_alone, 1.0))
            posterior = Posterior.of(of_cells, slopes * self.n_rows * weights, spread, kernels, doubt)
            rest.append(of_cells.sum())
            if posterior.evidence < least:
                continue
            cells = np.zeros((2, SIDE**2))
            cells[:, kept] = bounded(posterior.mean), posterior.errors()
            found.append((first, second, cells.reshape(2, SIDE, SIDE)))
        for first, second, both in found:
            table, errors = both / math.sqrt(len(found))
            model.pairs.append((first, second, table))
            model.pair_errors.append(errors)
        self._step_of_baseline(float(np.mean(rest)), noise * SIDE / math.sqrt(len(pairs)))

    def _in_cells(self, shares: tuple[Array, Array], effects: tuple[Array, Array]) -> tuple[Array, Array]:
        """Mean slope and variance of gradients in the cells of a table, as if other columns were independent."""
        rest = float((self.importances() ** 2).sum())
        rest -= sum(float(own @ effect**2) for own, effect in zip(shares, effects))
        points, weights = NODES
        scores = self.model.baseline + np.add.outer(*effects).ravel()[:, None] + math.sqrt(max(rest, 0.0)) * points
        slopes, variances = (of(scores) @ weights / weights.sum() for of in (self.loss.slope, self.loss.variance))
        return slopes, variances

    def grow_tree(self, depth: int, rng: np.random.Generator) -> None:
        """Follow the gradients in the leaves of a tree, which say what several columns add together."""
        self._follow_rest()
        model, loss, training = self.model, self.loss, self.training
        if not model.halves:
            both = enumerate(self.bins)
            model.halves = [bins.halves(self.of_bins[column])[bins.of_cells] for column, bins in both]
        spreads = model.spreads()
        weights = (spreads + CHANCE * (float(spreads.mean()) or 1.0)) * (np.array(training.directions) == 0)
        columns, shifts = columns_drawn(weights, model.halves, depth, rng), shifts_drawn(model.halves, rng)
        halves = [shifted(own, shift) for own, shift in zip(model.halves, shifts.tolist())]
        places = partial(gradients_in_leaves, loss, model, self.label, leaves_of_cells(columns, halves))
        norm = self._diameter(1, np.zeros(0), float(model.ranges().sum()) + model.paired, counted=True)
        total = training.summed(places, 2 ** len(columns), 2)
        noisy, noise = training.released(total.ravel(), norm, training.factors.tree)
        sums, slopes = np.split(noisy, 2)
        unit, labels = loss.steepest / WINDOW, self._mean_of(loss.variance) / self._mean_of(loss.slope)
        of_rows = unit * slopes, labels * unit * slopes
        values = values_of_leaves(sums, *of_rows, noise, unit * noise, self.least)
        halved, table = as_table(columns, np.clip(np.nan_to_num(values), -TRUST, TRUST), len(weights))
        model.trees.append((halved, shifts, table))
