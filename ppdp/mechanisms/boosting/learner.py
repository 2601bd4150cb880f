"""Rounds of noisy sums of gradients: ``docs/theory/boosting.md``.

A histogram of labels by cell gives every column a first shape. A linear model of these shapes says how they act
together. Then every round releases the gradients that are left, by bin or by pairs of bins, and the model follows them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from ppdp.bounds.boosting import GROUPS, MOST_PAIRED, WINDOW, WINDOWS, diameter, linear_of
from ppdp.bounds.boosting import LOSSES as LINEAR
from ppdp.core.progress import progress
from ppdp.data.cell_grid import Codes
from ppdp.data.rows import Array
from ppdp.data.stream import streamed
from ppdp.mechanisms.boosting.bins import Bins
from ppdp.mechanisms.boosting.blocks import (
    bin_of,
    cell_of,
    gradients_in_leaves,
    gradients_in_terms,
    of_tables,
    targets_in_windows,
)
from ppdp.mechanisms.boosting.losses import ScoreLoss
from ppdp.mechanisms.boosting.model import SIDE, AdditiveModel, shifted
from ppdp.mechanisms.boosting.plans import begins_with_shapes
from ppdp.mechanisms.boosting.shapes import (
    WEIGHT,
    Posterior,
    centred,
    correlations,
    first_shape,
    joint_shares,
    level,
    parts,
    products,
    table_parts,
)
from ppdp.mechanisms.boosting.training import Training
from ppdp.mechanisms.boosting.trees import as_table, columns_drawn, leaves_of_cells, shifts_drawn, values_of_leaves
from ppdp.mechanisms.learn.newton import fitted_by_newton
from ppdp.mechanisms.learn.prior import Prior

LEAST_IMPORTANCE = 0.02  # of the largest, of a column that takes part in further rounds
TRUST = 1.0  # by how much a round changes what a bin adds, at most
# That a round has something to say: noise alone seldom has as much. Where shapes are lines but for this share of their
# variance there seldom is more, and what noise says is far more than they are wrong by.
LEAST_EVIDENCE, LEAST_BESIDE_LINES, CURVED = 3.0, 7.0, 0.05
LEAST_CURVATURE = 0.02  # of a step of the baseline
LARGEST_SCORE = 30.0
SLACK = 1e-9  # on the closeness of means, for their rounding
# Variance of the noise on a cell of a table of two columns, over that of its labels, times the number of tables, up to
# which they pay.
CERTAIN = 1400.0
UNSEEN = 3.0  # evidence that shapes have without any effect, and one for every column more
# Standard deviations of weights, where the linear model begins with the shapes: of a shape, over its importance, of
# what stands beside it, or might, over the largest importance, and of the baseline, over a typical score.
OWN, OTHER, OF_BASELINE = 0.7, 0.15, 0.3
SCARCE = 400.0  # `n mu / √(2 d)`, less where the loss is flat, up to which first shapes are doubted, then ever less
DOUBT_OF_ROUNDS, DOUBT_OF_TABLES = 1.0, 0.3  # rates of exponential distributions of variances, of typical scores
MOST_HELD = 2**25  # numbers that rows of the linear model have, up to which they are kept in memory
CHANCE = 0.1  # of a column to be halved by a tree, at least, over that of one that adds as much as the average does
STRAIGHT = 0.5  # correlation with a line, from which on a shape has one beside it
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
    learner = _Learner(training, loss, label, [], [], [], model, present, min(1.0, (SCARCE / seen) ** 2))
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
class _Learner:
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
        model.baseline = _bounded(baseline + self.loss.shift).item()
        added = [np.zeros(width) for width in training.cells.widths]
        of_columns = np.zeros((len(added), len(tables)))
        for place, (weight, (column, table)) in enumerate(zip(weights, tables)):
            added[column] += weight * table
            of_columns[column, place] = weight
        self.together = correlations(of_columns @ moments @ of_columns.T)
        for column, (bins, of_cells) in enumerate(zip(self.bins, added)):
            self._show(column, _bounded(bins.means(of_cells)))
        self.least = LEAST_BESIDE_LINES if self._curved() < CURVED else LEAST_EVIDENCE

    def _curved(self) -> float:
        """Share of what columns add that is no straight line; of categories nothing is one."""
        cells, shares = self.training.cells, self.model.shares
        numbers = [(column, bins) for column, bins in enumerate(self.bins) if not cells.categories[column]]
        lines = [bins.along(cells.terms(column, shares[column])[0], self.of_bins[column]) for column, bins in numbers]
        return 1 - sum(lines) / max(float((self.importances() ** 2).sum()), 1e-300)

    def _terms(self) -> Iterator[tuple[int, Array]]:
        """Beside shapes, if the plan has them: indicators of categories, and lines; of many rows those of shapes that
        are nearly straight.
        """
        many = self._sure()
        for column, count in enumerate(self.training.parameters.get("terms", ())):
            shape, shares = self.model.shapes[column], self.model.shares[column]
            coded, straight = self.training.cells.categories[column], STRAIGHT * math.sqrt(shares @ shape**2)
            for table in self.training.cells.terms(column, shares)[:count]:
                if coded or not many or abs(shares @ (table * shape)) > straight:
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

    def make_round(self, left: int) -> None:
        """One round: of single columns, or of pairs of them where that says more; the last ones are of pairs."""
        if left == 1 and self._pairs_pay():
            self._round_of_pairs()
        else:
            self._round_of_columns()

    def _pairs_pay(self) -> bool:
        training, asked, pairs = self.training, self.training.interactions, len(self._paired())
        if asked is not None or not pairs:
            return bool(asked) and pairs > 0
        evidence = sum(posterior.evidence for posterior in self.posteriors)
        noise = training.noise_scale * math.sqrt(4 * pairs) * training.rows.n / training.factors.round
        labels = self.n_rows * self._mean_of(self.loss.variance) / GROUPS**2
        return evidence < UNSEEN + len(self.bins) or pairs * noise**2 < CERTAIN * labels

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
            step = np.clip(posterior.mean - bins.shares @ posterior.mean, -TRUST, TRUST)
            self._show(column, _bounded(shape + step))
        numbers = sum(self.bins[column].count for column in active)
        self._step_of_baseline(rest, noise * math.sqrt(numbers) / len(active))

    def _noise(self, variances: Array, shares: Array) -> Array:
        """Covariance of sums of gradients in cells, of which anything may be due to the baseline."""
        return np.asarray(np.diag(variances + 1e-6) + self.n_rows**2 * np.outer(shares, shares))

    def _step_of_baseline(self, rest: float, noise: float) -> None:
        """Follow the sum of all gradients, as far as it is more certain than the baseline."""
        slope = self.n_rows * max(self._mean_of(self.loss.slope), LEAST_CURVATURE)
        seen = (noise / slope) ** 2
        kept = seen / (self.unsure + seen)
        step = (1 - kept) * rest / slope if self.middle is None else self.middle
        self.unsure *= kept
        self.model.baseline = _bounded(self.model.baseline + np.clip(step, -TRUST, TRUST)).item()

    def _paired(self) -> list[tuple[int, int]]:
        """Pairs of the most important columns of those that may go up and down."""
        order = [
            column for column in np.argsort(-self.importances(), kind="stable") if not self.training.directions[column]
        ]
        order = order[:MOST_PAIRED]
        return list(combinations(sorted(int(column) for column in order), 2))

    def _round_of_pairs(self) -> None:
        """Follow the gradients in tables of two columns."""
        model, pairs = self.model, self._paired()
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
            spread = self._noise(noise**2 + labels * self.n_rows * weights, weights)
            posterior = Posterior.of(of_cells, slopes * self.n_rows * weights, spread, kernels, doubt)
            rest.append(of_cells.sum())
            if posterior.evidence < least:
                continue
            cells = np.zeros((2, SIDE**2))
            cells[:, kept] = _bounded(posterior.mean), posterior.errors()
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


def _bounded(scores: Any) -> Array:
    """Scores no larger than any that matters, whatever was released."""
    return np.clip(np.nan_to_num(scores), -LARGEST_SCORE, LARGEST_SCORE)
