"""Released answers of queries in raw units, with the standard errors of their noise: ``docs/theory/queries.md``."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ppdp.bounds.queries import MOMENT_COUNT_WEIGHT, by_column
from ppdp.core.domain import Domain
from ppdp.data.rows import Array
from ppdp.data.units import Answers, Codes, Columns
from ppdp.mechanisms.base import Question

MOVED = "moved to the nearest that rows could have"
_WITHIN = 1 - 1e-9


def told(query: Any, columns: Columns, domain: Domain, question: Question) -> list[Answers]:
    """Of a query that has read its answer; rows that are released are a table of their own."""
    sigma, weighted = query.deviation, question.parameters.get("weighted", False)
    if query.query == "count":
        return [Answers.plain("count", query.count_, sigma)]
    if query.query == "histogram":
        return _histograms(query, columns, question, sigma)
    if query.query == "sum":
        return [_sum(query.sum_, columns, domain, sigma)]
    norm, share = float(domain.require("row_norm")), query.present_
    if query.query == "covariance":
        unsure = sigma / (MOMENT_COUNT_WEIGHT * norm) if weighted else 0.0
        found = [*_covariance(query, columns, norm, sigma, unsure)]
    elif query.query == "mean":
        unsure = sigma / question.bound if weighted else 0.0
        found = [_mean(query, columns, norm, sigma, unsure)]
    else:
        return []
    return [*found, Answers.plain("share of rows present", share, unsure)] if weighted else found


def _mean(query: Any, columns: Columns, norm: float, sigma: float, unsure: float) -> Answers:
    """Of rows that are present: a noisy sum over a noisy share of rows."""
    mean, share = query.mean_, query.present_
    error = np.hypot(sigma, mean * unsure) / share
    return Answers.of("mean", columns, mean, error, MOVED if np.linalg.norm(mean) >= _WITHIN * norm else "")


def _covariance(query: Any, columns: Columns, norm: float, sigma: float, unsure: float) -> list[Answers]:
    """Mean and covariance: second moments have √2 R times the noise of means, R beside the diagonal."""
    mean, share, upper = query.mean_, query.present_, np.triu_indices(len(query.mean_))
    one, other = mean[upper[0]], mean[upper[1]]
    diagonal, found = upper[0] == upper[1], query.covariance_[upper]
    moment = np.where(diagonal, math.sqrt(2), 1.0) * norm * sigma
    means = np.where(diagonal, 2 * np.abs(one), np.hypot(one, other)) * sigma
    error = np.sqrt(moment**2 + means**2 + ((one * other - found) * unsure) ** 2) / share
    values = np.linalg.eigvalsh(query.covariance_)
    note = MOVED if values[0] <= 1e-12 * max(values[-1], 0.0) or values[-1] >= _WITHIN * norm**2 else ""
    first, second = (columns.at(positions.tolist()) for positions in upper)
    pairs = tuple(a if a == b else f"{a}, {b}" for a, b in zip(first.names, second.names))
    notes = tuple(
        a if a == b else f"{a or 'as it is'} and {b or 'as it is'}" for a, b in zip(first.notes, second.notes)
    )
    slope = first.slope * second.slope
    both = replace(Columns.raw(pairs), slope=slope, offset=np.zeros_like(slope), notes=notes)
    return [_mean(query, columns, norm, sigma, unsure), Answers.of("covariance", both, found, error, note)]


def _sum(total: Array, columns: Columns, domain: Domain, sigma: float) -> Answers:
    """Of all rows; where some may be absent, a shift by a number for each of them leads nowhere."""
    offset = columns.offset * domain.n
    if domain.min_present < domain.n:
        moved = columns.offset != 0
        columns = columns.noted(*("how many rows are present is not released with a sum" * bool(m) for m in moved))
        offset = np.where(moved, np.nan, 0.0)
    return Answers.linear("sum", columns, total, sigma, columns.slope, offset)


def _histograms(query: Any, columns: Columns, question: Question, sigma: float) -> list[Answers]:
    """Rows in cells, whose ends are in the units of their column; a column that runs backwards is turned round."""
    grid, found = question.parameters, []
    for column, counts, edges in zip(grid["columns"], query.histogram_, by_column(grid["sizes"], grid["edges"])):
        here, kind = columns.at([column] * len(counts)), columns.kinds[column]
        ends = np.array([edges[:-1], edges[1:]])
        raw = np.sort(columns.raw_value(column, ends), axis=0)
        raw[np.abs(raw) < 1e-7 * np.abs(here.slope)] = 0.0  # bounds on entries are a little wider than their range
        error = np.full(len(counts), sigma)
        names = _categories(kind, raw) if isinstance(kind, Codes) else ()
        cells = np.vstack([ends, raw])
        here = here.noted(*_beyond(ends, columns.ranges[column], raw))
        found.append(Answers("rows", here.names, counts, error, counts, error, here.notes, cells, names, here.dates))
    return found


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
