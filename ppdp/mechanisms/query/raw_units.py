"""Queries in raw units: public grids as people write them, and released answers with their standard errors.

Theory: ``docs/theory/queries.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ppdp.bounds.queries import by_column
from ppdp.core.checks import integer, shown
from ppdp.core.domain import Domain
from ppdp.data.intervals import gaussian_ends, quotient_ends, rows_are_a_sample
from ppdp.data.rows import Array
from ppdp.data.units import Answers, Codes, Columns, Dates
from ppdp.exceptions import InvalidParameter, MissingBound
from ppdp.mechanisms.base import Question

MOST = 100_000
NARROW = 1 / 50  # of a range: marks that were meant for another column


def public_grid(name: str, given: Any, domain: Domain, stage: object, *, edges: bool) -> dict[str, Any]:
    """Columns by position, and the ascending numbers of each, as parameters of a formula.

    Given are so many equal cells (``edges``) or points between the public bounds on entries, or the numbers themselves;
    a mapping chooses columns by name or position. In the result "columns" are positions, "sizes" how many numbers each
    has, and "edges" or "candidates" the numbers, one column behind the other.
    """
    if not isinstance(given, Mapping):
        given = dict.fromkeys(range(domain.d), given)
    if not given:
        raise InvalidParameter(
            f"{name} names no column.",
            stage=type(stage).__name__,
            fix="name one, or give a number.",
            parameter=name,
        )
    grid = {_position(name, column, domain, stage): marks for column, marks in given.items()}
    if len(grid) < len(given):
        raise InvalidParameter(
            f"{name} names a column twice.", stage=type(stage).__name__, fix="name it once.", parameter=name
        )
    columns = sorted(grid)
    marks = [_marks(name, grid[column], domain, stage, edges) for column in columns]
    return {
        "columns": columns,
        "sizes": [len(column_marks) for column_marks in marks],
        "edges" if edges else "candidates": [mark for column_marks in marks for mark in column_marks],
    }


def grid_in_units(name: str, given: Any, columns: Columns, stage: object, *, edges: bool) -> dict[int, Any]:
    """The same grid by position in the units of rows, where a user writes raw numbers, or dates.

    A number of cells becomes cells between the public ends of a column, or one for every category. Where no map leads
    back to raw units, numbers are in those of the rows. What no row can reach is refused: candidates, and edges that
    have cells on both sides, beyond the public range of their column. So are numbers for all of several columns that
    are next to nothing of the range of one of them.
    """
    shared = not isinstance(given, Mapping) and len(columns.names) > 1
    domain = Domain(n_features=len(columns.names), feature_names=columns.names)
    if not isinstance(given, Mapping):
        given = dict.fromkeys(range(domain.d), given)
    listed = [(i, marks) for column, marks in given.items() for i in _positions(name, column, columns, domain, stage)]
    grid = dict(listed)
    if len(grid) < len(listed):
        raise InvalidParameter(
            f"{name} names a column twice.", stage=type(stage).__name__, fix="name it once.", parameter=name
        )
    converted = {i: _converted(name, marks, columns, i, stage, edges) for i, marks in grid.items()}
    for i, marks in converted.items() if shared else ():
        width = np.ptp(columns.ranges[i])
        if np.ndim(marks) and np.isfinite(width) and np.ptp(marks) < NARROW * width:
            raise InvalidParameter(
                f"{name} cover next to nothing of the public range of {columns.names[i]!r}.",
                stage=type(stage).__name__,
                fix=f"{name}={{column: ...}}, for each column its own.",
                parameter=name,
            )
    return converted


def _positions(name: str, column: Any, columns: Columns, domain: Domain, stage: object) -> list[int]:
    """Where a column is, or the columns of 0 and 1 that a column of categories became."""
    kinds = enumerate(columns.kinds)
    coded = [i for i, kind in kinds if isinstance(column, str) and isinstance(kind, Codes) and kind.column == column]
    return coded if coded and column not in columns.names else [_position(name, column, domain, stage)]


def _converted(name: str, given: Any, columns: Columns, i: int, stage: object, edges: bool) -> Any:
    kind, raw_units = columns.kinds[i], columns.has_units(i)
    ends = columns.ranges[i]
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        count = integer(name, given, stage, least=1 if edges else 2, most=MOST) + edges
        if isinstance(kind, Codes) and raw_units and len(kind.values) > 1:
            return columns.present(i, np.array(kind.edges if edges else kind.values))
        bounded = np.isfinite(ends).all() and ends[0] < ends[1]
        return np.linspace(ends[0], ends[1], count) if bounded else given
    if isinstance(kind, Dates):
        given = _dates(name, given, kind, stage)
    marks = np.array(_marks(name, given, Domain(n_features=1), stage, edges))
    raw = np.sort(columns.raw_value(i, ends)) if raw_units else ends
    inner = marks[1:-1] if edges and len(marks) > 2 else marks
    beyond = (inner < raw[0]) | (inner > raw[1])  # NaN ends are beyond nothing
    if beyond.all() if edges and len(marks) == 2 else beyond.any():
        low, high = (kind.text(end) if isinstance(kind, Dates) else f"{end:.6g}" for end in raw)
        whose = "the units of the table" if raw_units else "the units of this step, as no public map leads to others"
        raise InvalidParameter(
            f"{name} lie outside the public range of {columns.names[i]!r}, {low} to {high}, in {whose}.",
            stage=type(stage).__name__,
            fix=f"{name} within it, or {name}={{column: ...}} for each column its own.",
            parameter=name,
        )
    return columns.present(i, marks) if raw_units else marks


def _dates(name: str, given: Any, kind: Dates, stage: object) -> Any:
    """Dates as raw numbers; numbers are such already."""
    try:
        numbers = [mark if isinstance(mark, (int, float, np.number)) else kind.number(mark) for mark in given]
    except TypeError:  # nothing that holds any
        return given
    if not np.isfinite(np.array(numbers, dtype=np.float64)).all():
        raise InvalidParameter(
            f"{name} hold what is no date.",
            stage=type(stage).__name__,
            fix='dates, or text such as "2001-12-31".',
            parameter=name,
        )
    return numbers


def _position(name: str, column: Any, domain: Domain, stage: object) -> int:
    names = domain.feature_names or ()
    if isinstance(column, str) and column in names:
        return names.index(column)
    if isinstance(column, (int, np.integer)) and not isinstance(column, bool) and 0 <= column < domain.d:
        return int(column)
    raise InvalidParameter(
        f"{name} names the column {shown(column)}, which is not there.",
        stage=type(stage).__name__,
        fix="name columns of the rows at this step, or count them from 0.",
        parameter=name,
    )


def _marks(name: str, given: Any, domain: Domain, stage: object, edges: bool) -> list[float]:
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        number = integer(name, given, stage, least=1 if edges else 2, most=MOST) + edges
        bound = domain.entry_bound or domain.row_norm
        if bound is None:
            raise MissingBound(
                f"{name} is a number, and no bound on entries is declared.",
                stage=type(stage).__name__,
                fix=f"give {name} as ascending numbers, or add NormClipper(...) first.",
                parameter=name,
            )
        return [float(mark) for mark in np.linspace(-bound, bound, number)]
    try:
        marks = np.asarray(given, dtype=np.float64)
    except Exception:  # an integer beyond float64; a class of the user's own
        marks = np.empty(0)
    finite = marks.ndim == 1 and 2 <= marks.size <= MOST and np.isfinite(marks).all()
    if not (finite and (marks[:-1] < marks[1:]).all()):
        raise InvalidParameter(
            f"{name} must be a number, or at least two finite ascending numbers, or such for every column.",
            stage=type(stage).__name__,
            fix="choose them from public knowledge, not from the data.",
            parameter=name,
        )
    return [float(mark) for mark in marks]


MOVED = "moved to the nearest that rows could have"
_WITHIN = 1 - 1e-9


def statistic_answers(query: Any, columns: Columns, domain: Domain, question: Question) -> list[Answers]:
    """Of a query that has read its answer; rows that are released are a table of their own."""
    sigma, weighted = query.deviation, question.parameters.get("weighted", False)
    if query.query == "count":
        return [replace(Answers.plain("count", query.count_, sigma), law=query.law, within=(0.0, float(domain.n)))]
    if query.query == "histogram":
        return _histograms(query, columns, domain, question, sigma)
    if query.query == "sum":
        return [_sum(query, columns, domain, sigma)]
    if query.query not in ("mean", "covariance"):
        return []
    unsure = sigma / question.bound if weighted else 0.0
    answers = [_mean(query, columns, domain, sigma, unsure)]
    if query.query == "covariance":
        answers += _covariance(query, columns, domain, sigma, unsure)
    if weighted:
        share = Answers.plain("share of rows present", query.present_, unsure)
        answers.append(replace(share, law=query.law, within=(0.0, 1.0)))
    return answers


def _mean(query: Any, columns: Columns, domain: Domain, sigma: float, unsure: float) -> Answers:
    """Of rows that are present: a noisy sum over a noisy share of rows."""
    mean, share, norm = query.mean_, query.present_, float(domain.require("row_norm"))
    error = np.hypot(sigma, mean * unsure) / share
    answers = Answers.of("mean", columns, mean, error, MOVED if np.linalg.norm(mean) >= _WITHIN * norm else "")
    answer, sampling = query.noisy_answer, None
    if query.query == "covariance" and rows_are_a_sample(domain):
        sampling = np.sqrt(np.diag(query.covariance_) / (domain.n * share))
    noisy = (answer[: len(mean)], answer[-1] * unsure / sigma if unsure else 1.0)
    ends = partial(quotient_ends, *noisy, sigma, unsure, query.law)
    return replace(answers, ends=ends, within=(-norm, norm), sampling=sampling)


def _covariance(query: Any, columns: Columns, domain: Domain, sigma: float, unsure: float) -> list[Answers]:
    """Second moments have √2 R times the noise of means, R beside the diagonal."""
    mean, share, norm = query.mean_, query.present_, float(domain.require("row_norm"))
    upper = np.triu_indices(len(mean))
    diagonal, covariances = upper[0] == upper[1], query.covariance_[upper]
    factors = np.where(diagonal, math.sqrt(2), 1.0)
    noisy = query.noisy_answer[: len(mean)] / share
    unmoved = (
        query.noisy_answer[len(mean) :][: len(covariances)] * factors * norm / share - noisy[upper[0]] * noisy[upper[1]]
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


def _sum(query: Any, columns: Columns, domain: Domain, sigma: float) -> Answers:
    """Of all rows; where some may be absent, a shift by a number for each of them leads nowhere."""
    offset = columns.offset * domain.n
    if domain.min_present < domain.n:
        moved = columns.offset != 0
        columns = columns.noted(*("how many rows are present is not released with a sum" * bool(m) for m in moved))
        offset = np.where(moved, np.nan, 0.0)
    answers, reach = (
        Answers.linear("sum", columns, query.sum_, sigma, columns.slope, offset),
        domain.n * float(domain.require("row_norm")),
    )
    ends = partial(quotient_ends, query.noisy_answer, 1.0, sigma, 0.0, query.law)
    return replace(answers, ends=ends, within=(-reach, reach))


def _histograms(query: Any, columns: Columns, domain: Domain, question: Question, sigma: float) -> list[Answers]:
    """Rows in cells, whose ends are in the units of their column; a column that runs backwards is turned round."""
    grid, answers = question.parameters, []
    for column, counts, edges in zip(grid["columns"], query.histogram_, by_column(grid["sizes"], grid["edges"])):
        here, kind = columns.at([column] * len(counts)), columns.kinds[column]
        ends = np.array([edges[:-1], edges[1:]])
        raw = np.sort(columns.raw_value(column, ends), axis=0)
        raw[np.abs(raw) < 1e-7 * np.abs(here.slope)] = 0.0  # bounds on entries are a little wider than their range
        error = np.full(len(counts), sigma)
        names = _categories(kind, raw) if isinstance(kind, Codes) else ()
        cells = np.vstack([ends, raw])
        here = here.noted(*_beyond(ends, columns.ranges[column], raw))
        counted = Answers("rows", here.names, counts, error, counts, error, here.notes, cells, names, here.dates)
        sampling = _of_counts(counts, sigma, domain.n) if rows_are_a_sample(domain) else None
        answers.append(
            replace(counted, law=query.law, within=(0.0, float(domain.n)), sampling=sampling, raw_sampling=sampling)
        )
    return answers


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
