"""Parts of a report: sums over rows by statistic, and what is read of them with noise: ``docs/theory/report.md``."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression

from ppdp.bounds.queries import by_column
from ppdp.bounds.report import ReportLayout
from ppdp.core.domain import Domain
from ppdp.data.cell_grid import CellGrid
from ppdp.data.histograms import between
from ppdp.data.rows import Array, Rows
from ppdp.data.summary import symmetric
from ppdp.data.unit_conversion import (
    Answers,
    Codes,
    Columns,
    gaussian_ends,
    half_width,
    quotient_ends,
    rows_are_a_sample,
)
from ppdp.mechanisms.query.statistics import cell_answers

ROOT = math.sqrt(2)


@dataclass(frozen=True, slots=True, eq=False)
class Scaling:
    """Public ranges of columns, between which values are clipped and scaled to [-1, 1]."""

    middle: Array
    half: Array

    @classmethod
    def of(cls, columns: Sequence[int], scaled: Sequence[int], low: Sequence[float], high: Sequence[float]) -> Scaling:
        """Of some of the columns that have one."""
        at = [list(scaled).index(column) for column in columns]
        ends = np.array([low, high], dtype=np.float64).reshape(2, -1)[:, at]
        return cls(ends[0] / 2 + ends[1] / 2, ends[1] / 2 - ends[0] / 2)

    def scaled(self, X: Array) -> Array:
        """Values between -1 and 1; missing ones stay."""
        return np.clip((X - self.middle) / self.half, -1.0, 1.0)

    def unscaled(self, values: Array) -> Array:
        """Values in the units of the rows."""
        return np.asarray(self.middle + self.half * values)


class ReportPart(ABC):
    """One statistic of a report."""

    columns: Sequence[int]  # by position

    @property
    @abstractmethod
    def size(self) -> int:
        """How many whole numbers are summed over the rows."""

    @property
    @abstractmethod
    def spread(self) -> float:
        """Error that noise of scale 1 leaves in what is told of one column, over what a row adds to that."""

    @abstractmethod
    def steps(self, rows: Rows, step: float) -> Array:
        """What rows add, in whole numbers of a public step."""

    @abstractmethod
    def vector(self, sums: Array) -> Array:
        """The numbers that get noise, from the sums."""

    @abstractmethod
    def even(self) -> Array:
        """What a row adds on average, if values are spread evenly over their ranges and none is missing."""

    @abstractmethod
    def answers(self, numbers: Array, noise: float, columns: Columns, domain: Domain) -> list[Answers]:
        """What is read of the numbers, each of which carries noise of this standard deviation, in raw units."""


@dataclass(frozen=True, slots=True, eq=False)
class _Counting:
    """Numbers of values, with noise, or the public number of rows."""

    numbers: Array
    noise: float
    most: float

    @property
    def values(self) -> Array:
        return np.clip(self.numbers, 1.0, self.most)


@dataclass(frozen=True, slots=True, eq=False)
class Means(ReportPart):
    """Sums of values, of squares over √2 and, unless public, numbers of values, for each column by itself."""

    columns: Sequence[int]
    scaling: Scaling
    count_weight: float  # of numbers of values; 0 where they are public

    @property
    def size(self) -> int:
        return len(self.columns) * (3 if self.count_weight else 2)

    @property
    def spread(self) -> float:
        return 3 * ROOT  # of a variance, which is 1/3 where values are spread evenly

    def steps(self, rows: Rows, step: float) -> Array:
        values = self.scaling.scaled(rows.X[:, list(self.columns)])
        present = ~np.isnan(values)
        values = np.where(present, values, 0.0)
        weights = (rows.weight / (2 * step))[:, None]  # halves: sums are at most as many steps as float64 can count
        terms = [values, values**2 / ROOT, *([self.count_weight * present] if self.count_weight else [])]
        return np.concatenate([np.rint(weights * term).sum(axis=0) for term in terms])

    def vector(self, sums: Array) -> Array:
        return 2 * sums

    def even(self) -> Array:
        terms = [0.0, 1 / (3 * ROOT), *([self.count_weight] if self.count_weight else [])]
        return np.repeat(terms, len(self.columns))

    def read(self, numbers: Array, noise: float, domain: Domain) -> tuple[Array, Array, _Counting]:
        """Means and standard deviations of scaled values, and numbers of values."""
        total, squares, *counts = numbers.reshape(-1, len(self.columns))
        if counts:
            counted = _Counting(counts[0] / self.count_weight, noise / self.count_weight, float(domain.n))
        else:
            counted = _Counting(np.full(len(self.columns), float(domain.n)), 0.0, float(domain.n))
        mean = np.clip(total / counted.values, -1.0, 1.0)
        variance = np.clip(ROOT * squares / counted.values - mean**2, 0.0, 1.0)
        return mean, np.sqrt(variance), counted

    def answers(self, numbers: Array, noise: float, columns: Columns, domain: Domain) -> list[Answers]:
        own, half = columns.at(self.columns), self.scaling.half
        mean, deviation, counted = self.read(numbers, noise, domain)
        count = counted.values
        error = np.hypot(noise, mean * counted.noise) / count
        told = Answers.of("mean", own, self.scaling.unscaled(mean), half * error)
        sampling = half * deviation / np.sqrt(count) if rows_are_a_sample(domain) else None
        told = replace(told, ends=partial(self._ends, numbers, noise, counted), sampling=sampling)
        told = told.behind_gaps(own, count / domain.n)
        # Of the variance, whose square root is told: noise on squares, on the mean twice, and on the number of values.
        of_variance = np.hypot(ROOT * noise, 2 * mean * noise) / count
        of_variance = np.hypot(of_variance, (deviation**2 - mean**2) * counted.noise / count)
        of_deviation = half * of_variance / np.maximum(2 * deviation, np.sqrt(of_variance))
        spread = Answers.linear("standard deviation", own, half * deviation, of_deviation, np.abs(own.slope))
        spread = replace(spread, ends=partial(self._deviations, deviation**2, of_variance))
        found = [told, spread]
        if self.count_weight:
            found.append(_numbers("values", own, counted))
        return found

    def _ends(self, numbers: Array, noise: float, counted: _Counting, alpha: float) -> tuple[Array, Array]:
        total = numbers[: len(self.columns)]
        each = zip(total, counted.numbers)
        ends = [quotient_ends(np.array([s]), float(c), noise, counted.noise, "gaussian", alpha) for s, c in each]
        low, high = (np.clip(np.concatenate(end), -1.0, 1.0) for end in zip(*ends))
        return self.scaling.unscaled(low), self.scaling.unscaled(high)

    def _deviations(self, variance: Array, error: Array, alpha: float) -> tuple[Array, Array]:
        low, high = (np.sqrt(np.clip(end, 0.0, 1.0)) for end in gaussian_ends(variance, error, alpha))
        return self.scaling.half * low, self.scaling.half * high


def _numbers(statistic: str, columns: Columns, counted: _Counting) -> Answers:
    told = Answers.plain(statistic, np.clip(counted.numbers, 0.0, counted.most), counted.noise)
    return replace(told, columns=columns.names, within=(0.0, counted.most))


@dataclass(frozen=True, slots=True, eq=False)
class Quantiles(ReportPart):
    """Weights in cells of the public ranges, at all levels of halved ranges."""

    columns: Sequence[int]
    scaling: Scaling
    cells: int
    q: Sequence[float]

    @property
    def grid(self) -> CellGrid:
        """Equal cells of [-1, 1], the same for every column."""
        return CellGrid((0,), self.cells, 1.0)

    @property
    def size(self) -> int:
        return len(self.columns) * (self.cells + 1)

    @property
    def spread(self) -> float:
        of_edges, with_all, of_all = _covariances(self.cells)
        return 2 * math.sqrt((of_edges - with_all + of_all / 4).max())  # of the rank of a median, over half of the rows

    def steps(self, rows: Rows, step: float) -> Array:
        values, weights = self.scaling.scaled(rows.X[:, list(self.columns)]), np.floor(rows.weight / step)
        codes = (self.grid.of_column(0, values[:, column]) for column in range(values.shape[1]))
        return np.concatenate([np.bincount(code, weights, self.cells + 1) for code in codes])

    def vector(self, sums: Array) -> Array:
        return self.grid.in_nodes(0, sums.reshape(len(self.columns), -1)).ravel()

    def even(self) -> Array:
        return self.vector(np.tile(np.append(np.full(self.cells, 1 / self.cells), 0.0), len(self.columns)))

    def answers(self, numbers: Array, noise: float, columns: Columns, domain: Domain) -> list[Answers]:
        own = columns.at(self.columns)
        weights = self.grid.from_nodes(0, numbers.reshape(len(self.columns), -1))[:, :-1]
        return [self._told(q, np.cumsum(weights, axis=1), noise, own, domain) for q in self.q]

    def _told(self, q: float, up_to: Array, noise: float, own: Columns, domain: Domain) -> Answers:
        places = np.where(own.slope < 0, 1 - q, q)  # a column that runs backwards has its quantiles backwards
        values = np.array([_quantile(one, place) for one, place in zip(up_to, places)])
        ends = partial(self._ends, up_to, places, noise)
        low, high = ends(alpha=0.3173)
        told = Answers.of(f"quantile {q:g}", own, self.scaling.unscaled(values), (high - low) / 2)
        return replace(told, ends=ends)

    def _ends(self, up_to: Array, places: Array, noise: float, alpha: float) -> tuple[Array, Array]:
        """Between which cells the quantile must lie, as the noise on every weight up to an edge is known."""
        of_edges, with_all, of_all = _covariances(self.cells)
        edges, found = np.linspace(-1.0, 1.0, self.cells + 1), []
        for weights, q in zip(up_to, places):
            missed = np.append(0.0, weights) - q * weights[-1]
            variance = np.maximum(of_edges - 2 * q * with_all + q**2 * of_all, 0.0)
            spread = half_width("gaussian", noise, alpha) * np.sqrt(variance)
            first = int(np.argmax(missed + spread >= 0))
            last = self.cells - int(np.argmax((missed - spread <= 0)[::-1]))
            found.append((edges[max(first - 1, 0)], edges[min(last + 1, self.cells)]))
        low, high = np.array(found).T
        return self.scaling.unscaled(low), self.scaling.unscaled(high)


@cache
def _covariances(cells: int) -> tuple[Array, Array, float]:
    """Of noise of variance 1: variance of the weight up to every edge, its covariance with the weight of all, and that
    of all with itself.
    """
    up_to = np.cumsum(np.cumsum(CellGrid((0,), cells, 1.0).covariance(0)[:-1, :-1], axis=0), axis=1)
    return np.append(0.0, np.diag(up_to)), np.append(0.0, up_to[:, -1]), float(up_to[-1, -1])


def _quantile(up_to: Array, q: float) -> float:
    """Where so much of all weight lies below, between -1 and 1; of a noisy cumulated weight."""
    rising = isotonic_regression(up_to, y_min=0.0)
    aim = q * float(rising[-1])
    cell = min(int(np.searchsorted(rising, aim)), len(rising) - 1)
    below = float(rising[cell - 1]) if cell else 0.0
    within = (aim - below) / max(float(rising[cell]) - below, 1e-300)
    return float(2 * (cell + min(max(within, 0.0), 1.0)) / len(rising) - 1)


@dataclass(frozen=True, slots=True, eq=False)
class Histograms(ReportPart):
    """Weights in the cells of public grids, and of missing values if there may be any."""

    columns: Sequence[int]
    sizes: Sequence[int]
    edges: Sequence[float]
    gaps: bool

    @property
    def size(self) -> int:
        return sum(self.sizes)  # cells, and one for missing values

    @property
    def spread(self) -> float:
        return math.sqrt(max(self.sizes))  # of all cells of a column

    def steps(self, rows: Rows, step: float) -> Array:
        inner = [marks[1:-1] for marks in by_column(self.sizes, self.edges)]
        found, weights = between(self.columns, inner)(rows.X), np.floor(rows.weight / step)
        each = zip(np.minimum(found, np.array(self.sizes) - 1).T, self.sizes)
        return np.concatenate([np.bincount(cells, weights, size) for cells, size in each])

    def vector(self, sums: Array) -> Array:
        return sums if self.gaps else np.delete(sums, np.cumsum(self.sizes) - 1)

    def even(self) -> Array:
        each = (np.append(np.full(size - 1, 1 / (size - 1)), 0.0) for size in self.sizes)
        return self.vector(np.concatenate(list(each)))

    def answers(self, numbers: Array, noise: float, columns: Columns, domain: Domain) -> list[Answers]:
        sizes = np.array(self.sizes) - (not self.gaps)
        each = np.split(np.clip(numbers, 0.0, domain.n), np.cumsum(sizes)[:-1])
        counts = [one[:-1] if self.gaps else one for one in each]
        grid = {"columns": self.columns, "sizes": self.sizes, "edges": self.edges}
        found = cell_answers(grid, counts, noise, "gaussian", columns, domain)
        # A missing category has a code of its own, so it is in a cell already.
        plain = [i for i, column in enumerate(self.columns) if not isinstance(columns.kinds[column], Codes)]
        if self.gaps and plain:
            missing = _Counting(np.array([each[i][-1] for i in plain]), noise, float(domain.n))
            found.append(_numbers("missing", columns.at([self.columns[i] for i in plain]), missing))
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Covariances(ReportPart):
    """Sums of values and of their products over the rows that have all of these columns, and how many these are."""

    columns: Sequence[int]
    scaling: Scaling
    count_weight: float  # of the number of rows; 0 where it is public

    @property
    def norm(self) -> float:
        """Largest length of a scaled row."""
        return math.sqrt(len(self.columns))

    @property
    def upper(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Pairs of columns."""
        return np.triu_indices(len(self.columns))

    @property
    def size(self) -> int:
        return len(self.columns) + len(self.upper[0]) + bool(self.count_weight)

    @property
    def spread(self) -> float:
        return 3 * ROOT * self.norm

    def steps(self, rows: Rows, step: float) -> Array:
        values = self.scaling.scaled(rows.X[:, list(self.columns)])
        complete = ~np.isnan(values).any(axis=1)
        values[~complete] = 0.0
        weights = rows.weight / (2 * self.norm * step)
        found = [np.rint(weights[:, None] * values).sum(axis=0)]
        for column in range(values.shape[1]):
            products = values[:, column:] * (values[:, [column]] / self.norm)
            products[:, 0] /= ROOT
            found.append(np.rint(weights[:, None] * products).sum(axis=0))
        if self.count_weight:
            found.append(np.rint([self.count_weight * self.norm * weights[complete]]).sum(axis=1))
        return np.concatenate(found)

    def vector(self, sums: Array) -> Array:
        return 2 * self.norm * sums

    def even(self) -> Array:
        first, second = self.upper
        products = np.where(first == second, 1 / (3 * ROOT * self.norm), 0.0)
        count = [self.count_weight * self.norm] if self.count_weight else []
        return np.concatenate([np.zeros(len(self.columns)), products, count])

    def read(self, numbers: Array, domain: Domain) -> tuple[Array, Array, float]:
        """Mean and covariance of scaled values, the nearest that rows could have, and the number of rows."""
        d, count = len(self.columns), float(domain.n)
        if self.count_weight:
            count = float(np.clip(numbers[-1] / (self.count_weight * self.norm), 1.0, count))
        mean = np.clip(numbers[:d] / count, -1.0, 1.0)
        second = symmetric(numbers[d : d + len(self.upper[0])], d) * (ROOT * self.norm / count)
        values, vectors = np.linalg.eigh(second - np.outer(mean, mean))
        return mean, (vectors * np.clip(values, 0.0, self.norm**2)) @ vectors.T, count

    def answers(self, numbers: Array, noise: float, columns: Columns, domain: Domain) -> list[Answers]:
        mean, covariance, count = self.read(numbers, domain)
        upper, half = self.upper, self.scaling.half
        diagonal = upper[0] == upper[1]
        own = columns.at(self.columns)
        first, second = (own.at(places.tolist()) for places in upper)
        pairs = [a if same else f"{a}, {b}" for a, b, same in zip(first.names, second.names, diagonal)]
        sizes, entries = half[upper[0]] * half[upper[1]], covariance[upper]
        products = np.where(diagonal, ROOT, 1.0) * self.norm * noise
        means = np.where(diagonal, 2 * np.abs(mean[upper[0]]), np.hypot(mean[upper[0]], mean[upper[1]])) * noise
        unsure = noise / (self.count_weight * self.norm) if self.count_weight else 0.0
        both = np.hypot(products, means)
        error = np.hypot(both, (entries - mean[upper[0]] * mean[upper[1]]) * unsure) / count
        table = replace(Columns.raw(pairs), slope=first.slope * second.slope, offset=np.zeros(len(pairs)))
        told = Answers.of("covariance", table, sizes * entries, sizes * error)
        found = [replace(told, ends=partial(gaussian_ends, sizes * entries, sizes * error))]
        if self.count_weight:
            complete = _Counting(np.array([numbers[-1] / (self.count_weight * self.norm)]), unsure, float(domain.n))
            found.append(replace(_numbers("complete rows", own.at([0]), complete), columns=(", ".join(own.names),)))
        return found


def parts_of(made: ReportLayout, parameters: Any, q: Sequence[float]) -> list[ReportPart]:
    """The parts of a report that have columns, in the order in which their numbers are released."""
    ranges = parameters["scaled"], parameters["low"], parameters["high"]
    weight = made.count_weight if made.counted else 0.0
    parts: list[ReportPart] = [
        Means(made.mean, Scaling.of(made.mean, *ranges), weight),
        Quantiles(made.quantile, Scaling.of(made.quantile, *ranges), 2**made.levels, q),
        Histograms(made.histogram, made.sizes, parameters["edges"], made.gaps),
        Covariances(made.covariance, Scaling.of(made.covariance, *ranges), weight),
    ]
    return [part for part in parts if len(part.columns)]
