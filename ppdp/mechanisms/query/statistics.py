"""What queries ask of the rows: exact answers, fitted attributes, and released answers in raw units.

Nothing here adds noise. Theory: ``docs/theory/queries.md``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ppdp.bounds.queries import MOMENT_COUNT_WEIGHT, by_column
from ppdp.core.domain import Domain
from ppdp.data.histograms import histograms, present
from ppdp.data.rows import Array, Rows
from ppdp.data.summary import ColumnSums, SecondMoment, column_sums, symmetric, upper_triangle
from ppdp.data.together import Weight, together
from ppdp.data.unit_conversion import Answers, Codes, Columns, Law, gaussian_ends, quotient_ends, rows_are_a_sample
from ppdp.mechanisms.base import QuerySpec
from ppdp.mechanisms.query.public_grids import public_grid

MOVED = "moved to the nearest that rows could have"
_WITHIN = 1 - 1e-9


class QueryStatistic(ABC):
    """One statistic of the rows, whatever noise is added to it; ``query`` is the mechanism."""

    def parameters(self, query: Any, domain: Domain) -> dict[str, Any]:
        """Public parameters of its formulas."""
        domain.require("row_norm", type(query).__name__)
        return {}

    @abstractmethod
    def exact(self, rows: Rows, question: QuerySpec, share_weight: float) -> Array:
        """The exact answer; beside a mean the share of rows counts ``1 / share_weight`` times the bound on a row."""

    @abstractmethod
    def read(self, query: Any, answer: Array, domain: Domain, question: QuerySpec) -> None:
        """Set fitted attributes from the noisy answer."""

    def answers(self, query: Any, columns: Columns, domain: Domain, question: QuerySpec) -> list[Answers]:
        """What it has read, in raw units; rows that are released are a table of their own."""
        return []

    def share_left(self, query: Any, domain: Domain, question: QuerySpec) -> tuple[float, float] | None:
        """As :meth:`~ppdp.mechanisms.base.Mechanism.share_left`."""
        return None


class Count(QueryStatistic):
    """Weight of the rows that are present."""

    def parameters(self, query: Any, domain: Domain) -> dict[str, Any]:
        return {}

    def exact(self, rows: Rows, question: QuerySpec, share_weight: float) -> Array:
        return present(rows)

    def read(self, query: Any, answer: Array, domain: Domain, question: QuerySpec) -> None:
        query.count_ = float(np.clip(answer[0], 0.0, domain.n))

    def answers(self, query: Any, columns: Columns, domain: Domain, question: QuerySpec) -> list[Answers]:
        count = Answers.plain("count", query.count_, query.deviation)
        return [replace(count, law=query.law, within=(0.0, float(domain.n)))]

    def share_left(self, query: Any, domain: Domain, question: QuerySpec) -> tuple[float, float] | None:
        return query.count_ / domain.n, query.deviation / domain.n


class RowsInPlace(QueryStatistic):
    """Every row in its place; a deleted one is 0."""

    def exact(self, rows: Rows, question: QuerySpec, share_weight: float) -> Array:
        return (rows.X * rows.weight[:, None]).ravel()

    def read(self, query: Any, answer: Array, domain: Domain, question: QuerySpec) -> None:
        query.rows_ = answer.reshape(domain.n, domain.d)


class Sum(QueryStatistic):
    """Sum of all rows; where some may be absent, a shift by a number for each of them leads nowhere."""

    def exact(self, rows: Rows, question: QuerySpec, share_weight: float) -> Array:
        return column_sums(rows, question.bound / rows.n)

    def read(self, query: Any, answer: Array, domain: Domain, question: QuerySpec) -> None:
        query.sum_ = within_ball(answer, domain.n * float(domain.require("row_norm")))

    def answers(self, query: Any, columns: Columns, domain: Domain, question: QuerySpec) -> list[Answers]:
        offset, sigma = columns.offset * domain.n, query.deviation
        if domain.min_present < domain.n:
            moved = columns.offset != 0
            columns = columns.noted(*("how many rows are present is not released with a sum" * bool(m) for m in moved))
            offset = np.where(moved, np.nan, 0.0)
        most = domain.n * float(domain.require("row_norm"))
        ends = partial(quotient_ends, query.noisy_answer, 1.0, sigma, 0.0, query.law)
        sums = Answers.linear("sum", columns, query.sum_, sigma, columns.slope, offset)
        weight = max(1.0, domain.max_weight or 0.0)
        return [replace(sums, ends=ends, within=(-most, most)).behind_gaps(columns, n=weight * domain.n)]


class Mean(QueryStatistic):
    """Mean of the rows that are present: their sum over the public number of rows, and perhaps their share."""

    def parameters(self, query: Any, domain: Domain) -> dict[str, Any]:
        super().parameters(query, domain)
        return {"weighted": domain.min_present < domain.n}

    def exact(self, rows: Rows, question: QuerySpec, share_weight: float) -> Array:
        if not question.parameters["weighted"]:
            return column_sums(rows, question.bound) / rows.n
        sums = ColumnSums(rows.n, rows.d, [(None, question.bound / share_weight)])
        (total,), weight = together(rows, (None, sums), (None, Weight(rows.n)))
        return np.append(total, question.bound * weight) / rows.n

    def read(self, query: Any, answer: Array, domain: Domain, question: QuerySpec) -> None:
        query.present_ = 1.0
        if question.parameters["weighted"]:
            query.present_, answer = share_of(answer[-1] / question.bound, domain), answer[:-1]
        query.mean_ = within_ball(answer / query.present_, float(domain.require("row_norm")))

    def answers(self, query: Any, columns: Columns, domain: Domain, question: QuerySpec) -> list[Answers]:
        left = self.share_left(query, domain, question)
        unsure = 0.0 if left is None else left[1]
        answers = [self._means(query, columns, domain, unsure), *self._moments(query, columns, domain, unsure)]
        if left is not None:
            answers.append(replace(Answers.plain("share of rows present", *left), law=query.law, within=(0.0, 1.0)))
        return answers

    def share_left(self, query: Any, domain: Domain, question: QuerySpec) -> tuple[float, float] | None:
        return (query.present_, query.deviation / question.bound) if question.parameters["weighted"] else None

    def _means(self, query: Any, columns: Columns, domain: Domain, unsure: float) -> Answers:
        """A noisy sum over a noisy share of rows, which has an error of ``unsure``."""
        mean, sigma, norm = query.mean_, query.deviation, float(domain.require("row_norm"))
        error = np.hypot(sigma, mean * unsure) / query.present_
        means = Answers.of("mean", columns, mean, error, MOVED if np.linalg.norm(mean) >= _WITHIN * norm else "")
        noisy = query.noisy_answer
        quotient = (noisy[: len(mean)], noisy[-1] * unsure / sigma if unsure else 1.0)
        ends = partial(quotient_ends, *quotient, sigma, unsure, query.law)
        means = replace(means, ends=ends, within=(-norm, norm), sampling=self._sampling(query, domain))
        return means.behind_gaps(columns, query.present_)

    def _sampling(self, query: Any, domain: Domain) -> Array | None:
        """Standard error of drawing the rows, where it is known."""
        return None

    def _moments(self, query: Any, columns: Columns, domain: Domain, unsure: float) -> list[Answers]:
        return []


class Covariance(Mean):
    """Mean, and upper triangle of the second moment over √2 R, isometric to the matrix, and perhaps the share."""

    def exact(self, rows: Rows, question: QuerySpec, share_weight: float) -> Array:
        weighted, bound = question.parameters["weighted"], question.bound
        norm = bound / MOMENT_COUNT_WEIGHT if weighted else bound
        asked: list[Any] = [ColumnSums(rows.n, rows.d, [(None, norm)]), SecondMoment(rows.d, norm)]
        (total,), products, *weight = together(rows, *((None, one) for one in [*asked, *[Weight(rows.n)] * weighted]))
        moment = upper_triangle(products / rows.n) / (math.sqrt(2) * norm)
        return np.concatenate([total / rows.n, moment, *(MOMENT_COUNT_WEIGHT * norm * one / rows.n for one in weight)])

    def read(self, query: Any, answer: Array, domain: Domain, question: QuerySpec) -> None:
        """The nearest that rows could have."""
        d, norm, share = domain.d, float(domain.require("row_norm")), 1.0
        if question.parameters["weighted"]:
            share, answer = share_of(answer[-1] / (MOMENT_COUNT_WEIGHT * norm), domain), answer[:-1]
        centre = within_ball(answer[:d] / share, norm)
        covariance = symmetric(answer[d:], d) * math.sqrt(2) * norm / share - np.outer(centre, centre)
        values, vectors = np.linalg.eigh(covariance)
        query.mean_, query.present_ = centre, share
        query.covariance_ = (vectors * np.clip(values, 0.0, norm**2)) @ vectors.T

    def _sampling(self, query: Any, domain: Domain) -> Array | None:
        if not rows_are_a_sample(domain):
            return None
        return np.asarray(np.sqrt(np.diag(query.covariance_) / (domain.n * query.present_)))

    def _moments(self, query: Any, columns: Columns, domain: Domain, unsure: float) -> list[Answers]:
        """Second moments have √2 R times the noise of means, R beside the diagonal."""
        mean, share, norm = query.mean_, query.present_, float(domain.require("row_norm"))
        sigma = query.deviation
        upper = np.triu_indices(len(mean))
        diagonal, covariances = upper[0] == upper[1], query.covariance_[upper]
        factors = np.where(diagonal, math.sqrt(2), 1.0)
        noisy = query.noisy_answer[: len(mean)] / share
        unmoved = (
            query.noisy_answer[len(mean) :][: len(covariances)] * factors * norm / share
            - noisy[upper[0]] * noisy[upper[1]]
        )

        def error_of(mean: Array, covariance: Array, second: float) -> Array:
            first_mean, second_mean = mean[upper[0]], mean[upper[1]]
            means = np.where(diagonal, 2 * np.abs(first_mean), np.hypot(first_mean, second_mean)) * sigma
            quotient = ((first_mean * second_mean - covariance) * unsure) ** 2
            return np.asarray(np.sqrt(factors**2 * ((norm * sigma) ** 2 + second**2) + means**2 + quotient) / share)

        ends = partial(gaussian_ends, unmoved, error_of(noisy, unmoved, sigma**2 / share))
        values = np.linalg.eigvalsh(query.covariance_)
        note = MOVED if values[0] <= 1e-12 * max(values[-1], 0.0) or values[-1] >= _WITHIN * norm**2 else ""
        first, second = (columns.at(positions.tolist()) for positions in upper)
        pairs = tuple(a if a == b else f"{a}, {b}" for a, b in zip(first.names, second.names))
        notes = tuple(
            a if a == b else f"{a or 'as it is'} and {b or 'as it is'}" for a, b in zip(first.notes, second.notes)
        )
        slope = first.slope * second.slope
        both = replace(Columns.raw(pairs), slope=slope, offset=np.zeros_like(slope), notes=notes)
        answers = Answers.of("covariance", both, covariances, error_of(mean, covariances, 0.0), note)
        return [replace(answers, ends=ends, within=(-(norm**2), norm**2))]


class Histogram(QueryStatistic):
    """Rows in the cells of a public grid, column by column."""

    def parameters(self, query: Any, domain: Domain) -> dict[str, Any]:
        return public_grid("bins", query.bins, domain, query, edges=True)

    def exact(self, rows: Rows, question: QuerySpec, share_weight: float) -> Array:
        return histograms(rows, **question.parameters)

    def read(self, query: Any, answer: Array, domain: Domain, question: QuerySpec) -> None:
        """Counts, none negative and none above the number of rows, and edges; one array of each for every column."""
        sizes, edges = question.parameters["sizes"], question.parameters["edges"]
        query.histogram_ = np.split(np.clip(answer, 0.0, domain.n), np.cumsum(np.array(sizes) - 1)[:-1])
        query.edges_ = [np.array(marks) for marks in by_column(sizes, edges)]

    def answers(self, query: Any, columns: Columns, domain: Domain, question: QuerySpec) -> list[Answers]:
        return cell_answers(question.parameters, query.histogram_, query.deviation, query.law, columns, domain)

    def share_left(self, query: Any, domain: Domain, question: QuerySpec) -> tuple[float, float] | None:
        """By the cells of the first column."""
        cells = question.parameters["sizes"][0] - 1
        return query.noisy_answer[:cells].sum() / domain.n, query.deviation * math.sqrt(cells) / domain.n


QUERIES: dict[str, QueryStatistic] = {
    "mean": Mean(),
    "sum": Sum(),
    "count": Count(),
    "covariance": Covariance(),
    "histogram": Histogram(),
    "rows": RowsInPlace(),
}
"""By the name of the query."""


def cell_answers(
    grid: Mapping[str, Any], counts: Sequence[Array], noise: float, law: Law, columns: Columns, domain: Domain
) -> list[Answers]:
    """Rows in the cells of each column of a grid, in raw units; a column that runs backwards is turned round."""
    sampled, answers, within = rows_are_a_sample(domain), [], (0.0, float(domain.n))
    for column, rows, edges in zip(grid["columns"], counts, by_column(grid["sizes"], grid["edges"])):
        here, kind = columns.at([column] * len(rows)), columns.kinds[column]
        ends = np.array([edges[:-1], edges[1:]])
        raw = np.sort(columns.raw_value(column, ends), axis=0)
        raw[np.abs(raw) < 1e-7 * np.abs(here.slope)] = 0.0  # bounds on entries are a little wider than their range
        error = np.full(len(rows), noise)
        names = _categories(kind, raw) if isinstance(kind, Codes) else ()
        here, cells = here.noted(*_beyond(ends, columns.ranges[column], raw)), np.vstack([ends, raw])
        counted = Answers("rows", here.names, rows, error, rows, error, here.notes, cells, names, here.dates)
        sampling = _of_counts(rows, noise, domain.n) if sampled else None
        answers.append(replace(counted, law=law, within=within, sampling=sampling, raw_sampling=sampling))
    return answers


def within_ball(vector: Array, radius: float) -> Array:
    """The nearest vector of norm at most ``radius``."""
    return np.asarray(vector * min(1.0, radius / max(float(np.linalg.norm(vector)), radius)))


def share_of(noisy: float, domain: Domain) -> float:
    """At least one row's worth, so that nothing is divided by zero."""
    return float(np.clip(noisy, 1 / domain.n, 1.0))


def _of_counts(counts: Array, noise: float, n: int) -> Array:
    """Standard deviations of counts of n rows that are drawn, as Agresti and Coull: with two more rows on each side.

    Noise may have moved a count away from the middle.
    """
    inwards = np.clip(n / 2 - counts, -noise, noise)
    share = (counts + inwards + 2) / (n + 4)
    return np.asarray(np.sqrt(n * share * (1 - share)))


def _beyond(ends: Array, reach: Array, raw: Array) -> list[str]:
    """Which of the cells hold what lies beyond the grid, where rows reach beyond it."""
    low, high = reach + np.array([-1e-7, 1e-7]) * np.ptp(reach)
    first, last = ("below", "above") if raw[0, 0] <= raw[0, -1] else ("above", "below")
    words = [""] * ends.shape[1]
    words[0] = f"with all {first} it" * bool(low < ends[0, 0] - 1e-6 * np.ptp(reach))
    if high > ends[1, -1] + 1e-6 * np.ptp(reach):
        words[-1] = f"{words[-1]} and {last} it" if words[-1] else f"with all {last} it"
    return words


def _categories(kind: Codes, raw: Array) -> tuple[str, ...]:
    """The categories whose codes are in each cell; the outer cells take what lies beyond the grid."""
    ends = raw.copy()
    ends[0, np.argmin(raw[0])], ends[1, np.argmax(raw[1])] = -math.inf, math.inf
    codes = list(zip(kind.values, kind.names))
    return tuple(", ".join(name for code, name in codes if low <= code < high) for low, high in ends.T)
