"""Released answers of queries in raw units, with the standard errors of their noise: ``docs/theory/queries.md``."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ppdp.bounds.queries import by_column
from ppdp.core.domain import Domain
from ppdp.data.intervals import gaussian_ends, quotient_ends, rows_are_a_sample
from ppdp.data.rows import Array
from ppdp.data.units import Answers, Codes, Columns
from ppdp.mechanisms.base import Question

MOVED = "moved to the nearest that rows could have"
_WITHIN = 1 - 1e-9


def told(query: Any, columns: Columns, domain: Domain, question: Question) -> list[Answers]:
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
    found = [_mean(query, columns, domain, sigma, unsure)]
    if query.query == "covariance":
        found += _covariance(query, columns, domain, sigma, unsure)
    if weighted:
        share = Answers.plain("share of rows present", query.present_, unsure)
        found.append(replace(share, law=query.law, within=(0.0, 1.0)))
    return found


def _mean(query: Any, columns: Columns, domain: Domain, sigma: float, unsure: float) -> Answers:
    """Of rows that are present: a noisy sum over a noisy share of rows."""
    mean, share, norm = query.mean_, query.present_, float(domain.require("row_norm"))
    error = np.hypot(sigma, mean * unsure) / share
    found = Answers.of("mean", columns, mean, error, MOVED if np.linalg.norm(mean) >= _WITHIN * norm else "")
    answer, sampling = query.noisy_answer, None
    if query.query == "covariance" and rows_are_a_sample(domain):
        sampling = np.sqrt(np.diag(query.covariance_) / (domain.n * share))
    noisy = (answer[: len(mean)], answer[-1] * unsure / sigma if unsure else 1.0)
    ends = partial(quotient_ends, *noisy, sigma, unsure, query.law)
    return replace(found, ends=ends, within=(-norm, norm), sampling=sampling)


def _covariance(query: Any, columns: Columns, domain: Domain, sigma: float, unsure: float) -> list[Answers]:
    """Second moments have √2 R times the noise of means, R beside the diagonal."""
    mean, share, norm = query.mean_, query.present_, float(domain.require("row_norm"))
    upper = np.triu_indices(len(mean))
    diagonal, found = upper[0] == upper[1], query.covariance_[upper]
    factors = np.where(diagonal, math.sqrt(2), 1.0)
    noisy = query.noisy_answer[: len(mean)] / share
    unmoved = query.noisy_answer[len(mean) :][: len(found)] * factors * norm / share - noisy[upper[0]] * noisy[upper[1]]

    def error_of(mean: Array, covariance: Array, second: float) -> Array:
        one, other = mean[upper[0]], mean[upper[1]]
        means = np.where(diagonal, 2 * np.abs(one), np.hypot(one, other)) * sigma
        quotient = ((one * other - covariance) * unsure) ** 2
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
    told = Answers.of("covariance", both, found, error_of(mean, found, 0.0), note)
    return [replace(told, ends=ends, within=(-(norm**2), norm**2))]


def _sum(query: Any, columns: Columns, domain: Domain, sigma: float) -> Answers:
    """Of all rows; where some may be absent, a shift by a number for each of them leads nowhere."""
    offset = columns.offset * domain.n
    if domain.min_present < domain.n:
        moved = columns.offset != 0
        columns = columns.noted(*("how many rows are present is not released with a sum" * bool(m) for m in moved))
        offset = np.where(moved, np.nan, 0.0)
    found, reach = (
        Answers.linear("sum", columns, query.sum_, sigma, columns.slope, offset),
        domain.n * float(domain.require("row_norm")),
    )
    ends = partial(quotient_ends, query.noisy_answer, 1.0, sigma, 0.0, query.law)
    return replace(found, ends=ends, within=(-reach, reach))


def _histograms(query: Any, columns: Columns, domain: Domain, question: Question, sigma: float) -> list[Answers]:
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
        told = Answers("rows", here.names, counts, error, counts, error, here.notes, cells, names, here.dates)
        sampling = _of_counts(counts, sigma, domain.n) if rows_are_a_sample(domain) else None
        found.append(
            replace(told, law=query.law, within=(0.0, float(domain.n)), sampling=sampling, raw_sampling=sampling)
        )
    return found


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
