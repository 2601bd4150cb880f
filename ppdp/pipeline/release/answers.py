"""Everything that a fit released as one table of numbers: with names of columns, raw units and standard errors.

It is made of the certificate and of released twins, so nothing else that was learned from private rows can be in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ppdp.bounds.column_groups import domain_of, span_of
from ppdp.bounds.queries import by_column
from ppdp.bounds.release import MISSING
from ppdp.certificate.record import Record, ReleaseRecord
from ppdp.core.domain import Domain
from ppdp.core.figures import figure, html_table
from ppdp.core.formula import AT, FORMULAS
from ppdp.data.categories import released_weights
from ppdp.data.clusters import center_answers
from ppdp.data.histograms import CLEAR
from ppdp.data.label_moments import LabelMoments
from ppdp.data.noisy_statistics import STATISTICS
from ppdp.data.rows import Array
from ppdp.data.statistics import Moments
from ppdp.data.tails import Parts
from ppdp.data.unit_conversion import (
    FIGURES,
    Answers,
    Codes,
    Columns,
    gaussian_ends,
    half_width,
    no_ends,
    rows_are_a_sample,
)
from ppdp.pipeline.release.step_serialization import question_of
from ppdp.transformers.impute.column_imputers import Imputer

ELSE = "anything else"
CERTAIN = 8.0  # standard deviations of its noise that a number of rows exceeds where quotients have intervals


def _words(kind: Any, count: int) -> list[str]:
    """The categories by code, or so many codes where they have no names; no words for codes that no row can have."""
    if not isinstance(kind, Codes):
        return [str(code) for code in range(count)]
    names = dict(zip(kind.values, kind.names))
    return [names.get(float(code), "") for code in range(count)]


def label_answers(
    release: ReleaseRecord, table: Array, noise: float, columns: Columns, domain: Domain
) -> list[Answers]:
    """For every column and category the rows, and what labels are where rows are clearly some."""
    answers = []
    for position, counts in zip(release.parameters["columns"], table):
        name = columns.names[position]
        words = _words(columns.kinds[position], len(counts) - 1)
        used = [code for code, word in enumerate(words) if word]
        counts = counts[[*used, -1]]
        named = Columns.raw([f"{name} = {word}" for word in (*(words[code] for code in used), ELSE)])
        rows, parts = counts.sum(axis=1), counts.shape[1]
        answers.append(Answers.of("rows of the category", named, rows, noise * math.sqrt(parts)))
        with np.errstate(all="ignore"):
            shares = counts / np.where(rows > CLEAR * noise * math.sqrt(parts), rows, np.nan)[:, None]
            errors = noise * np.sqrt(1 - 2 * shares + parts * shares**2) / rows[:, None]
            certain = np.where(rows > CERTAIN * noise * math.sqrt(parts), 1.0, np.nan)
        note = "before smoothing; none where hardly more than noise"
        if domain.classes is None:
            low, high = domain.require("y_range")
            width = np.full(len(rows), high - low)
            mean = Answers.linear("mean target", named, shares[:, 1], errors[:, 1], width, low, note)
            answers.append(replace(mean, ends=partial(gaussian_ends, mean.value, mean.error * certain)))
            continue
        for i, label in list(enumerate(domain.classes))[1 if parts == 2 else 0 :]:
            share = Answers.of(f"share of class {label}", named, shares[:, i], errors[:, i], note)
            answers.append(replace(share, ends=partial(gaussian_ends, share.value, share.error * certain)))
    return answers


def moment_answers(moments: LabelMoments, columns: Columns, domain: Domain) -> list[Answers]:
    """Mean of every column, of classes among the rows of each, where there are clearly some; errors to first order."""
    if domain.classes is None:
        mean = Answers.of("mean", columns, moments.sums.sum(axis=0), math.sqrt(2) * moments.noise)
        return [mean.behind_gaps(columns)]
    answers = []
    for label, share, sums in zip(domain.classes, moments.shares, moments.sums):
        mean = sums / (share if share > CERTAIN * moments.noise_of_shares else math.nan)
        error = np.hypot(moments.noise, mean * moments.noise_of_shares) / share
        answers.append(Answers.of(f"mean among {label}", columns, mean, error).behind_gaps(columns, share))
    return answers


MOST = 24  # lines in a notebook
NO_UNITS = "a number that belongs to no column"
_QUANTILES: dict[str, tuple[str, ...]] = {
    "means": ("mean of observed values",),
    "trimmed-means": ("trimmed mean",),
    "medians": ("median",),
    "quantile-pairs": ("lower quantile", "upper quantile"),
    "quantile-triples": ("lower quantile", "median", "upper quantile"),
}


def answers_of(
    record: Record, arrays: Mapping[str, Array], twins: Sequence[tuple[str, Any]]
) -> Iterator[tuple[str, Answers]]:
    """Every released number with the name of its step, in the order of the steps."""
    points = list(_points(record, arrays, twins))
    for at, ((domain, columns), (name, _)) in enumerate(zip(points, twins)):
        for release in record.releases:
            if release.at == at:
                answer = arrays[f"{name}.{release.statistic}"]
                yield from ((name, one) for one in statistics_of(release, answer, columns, domain))
    if record.mechanism is not None:
        domain, columns = points[-1]
        name, twin = twins[-1]
        answers = twin.answers(columns, domain, question_of(record.mechanism))
        yield from ((name, one) for one in answers)
        if not answers:
            noise = record.mechanism.noise_scale if record.mechanism.mu is not None else math.nan
            names = (array for array in arrays if array.startswith(f"{name}."))
            yield from ((name, _bare(array, arrays[array], noise)) for array in names)


def columns_at_the_end(record: Record, twins: Sequence[tuple[str, Any]]) -> Columns:
    """Columns in front of the last step, or behind all stages where no other step follows."""
    *_, (_, columns) = _points(record, {}, twins)
    return columns


def _points(
    record: Record, arrays: Mapping[str, Array], twins: Sequence[tuple[str, Any]]
) -> Iterator[tuple[Domain, Columns]]:
    """Domain and columns at the entrance, and behind every stage."""
    domain, columns = Domain.from_dict(record.entrance.domain), _entrance(record)
    yield domain, columns
    shares = (
        {}
        if (told := record.diagnostics) is None
        else {
            share.column: math.hypot(min(max(share.share, 0.0), 1.0), told.error)
            for share in told.shares
            if share.kind == MISSING
        }
    )
    for at, (step, (name, twin)) in enumerate(zip(record.steps, twins)):
        own = ((release, arrays.get(f"{name}.{release.statistic}")) for release in record.releases if release.at == at)
        columns = _behind(step, twin, columns, domain, _Filled(shares, tuple(own)))
        domain = Domain.from_dict(step.domain)
        yield domain, columns


@dataclass(frozen=True, slots=True)
class _Filled:
    """What was released of missing values in front of a step, and of what it fills them with."""

    shares: Mapping[str | None, float]  # of rows, at most, by column
    releases: Sequence[tuple[ReleaseRecord, Array | None]]

    def behind(self, step: Any, columns: Columns, domain: Domain) -> Columns:
        """Columns with the share of rows that an imputer fills, and the error of what it fills in."""
        if domain.missing_rows == 0:
            return columns
        most, weighted = domain.missing_rows / domain.n, domain.max_weight is not None
        shares = {} if weighted else self.shares
        names = domain.feature_names or [f"column {i}" for i in range(domain.d)]
        gaps = [0.0 if i in domain.indicators else min(shares.get(name, 1.0), most) for i, name in enumerate(names)]
        unsure = np.zeros(domain.d) if step.way != "noisy" else np.full(domain.d, math.nan)
        for release, answer in self.releases if step.way == "noisy" else ():
            served = release.parameters.get("columns")
            if served is not None:
                unsure[[i for i in range(domain.d) if i not in served]] = 0.0  # filled with 0
            release = replace(release, statistic=release.statistic.partition(AT)[0])
            for one in [] if answer is None else statistics_of(release, answer, columns, domain):
                if one.statistic in ("mean of observed values", "trimmed mean"):
                    unsure[[columns.names.index(name) for name in one.columns]] = one.raw_error
        return replace(columns, gaps=np.array(gaps), unsure=unsure)


def frame_of(answers: Sequence[tuple[str, Answers]]) -> Any:
    """As a DataFrame, a line for every number; the ends of cells where there are histograms."""
    import pandas as pd

    lines: dict[str, list[str]] = {
        "step": [name for name, one in answers for _ in one.columns],
        "statistic": [one.statistic for _, one in answers for _ in one.columns],
        "column": [column for _, one in answers for column in one.columns],
    }
    fields = {"value": "value", "standard_error": "error", "raw_value": "raw", "raw_standard_error": "raw_error"}
    numbers = {name: [getattr(one, field) for _, one in answers] for name, field in fields.items()}
    if any(one.cells is not None for _, one in answers):
        none = [np.full((4, len(one.columns)), np.nan) if one.cells is None else one.cells for _, one in answers]
        numbers |= {name: [cells[i] for cells in none] for i, name in enumerate(("low", "high", "raw_low", "raw_high"))}
    if any(one.categories for _, one in answers):
        lines["category"] = [word for _, one in answers for word in one.categories or [""] * len(one.columns)]
    dates = _dates(answers)
    joined = {name: np.concatenate([np.empty(0), *parts]) for name, parts in numbers.items()}
    return pd.DataFrame({**lines, **joined, **dates, "note": [note for _, one in answers for note in one.notes]})


def intervals_of(answers: Sequence[tuple[str, Answers]], alpha: float, *, raw: bool) -> Any:
    """Intervals as a DataFrame, a line for every number."""
    frame = frame_of(answers)
    parts = [one.interval(alpha, raw=raw) for _, one in answers]
    for name in FIGURES:
        frame[name] = np.concatenate([np.empty(0), *(part[name] for part in parts)])
    if raw and "date" in frame:
        told = [one.dates if one.dates and one.cells is None else (None,) * len(one.columns) for _, one in answers]
        kinds = [kind for of_one in told for kind in of_one]
        for end in ("lower", "upper"):
            frame[f"date_{end}"] = [
                "" if kind is None or not math.isfinite(value) else kind.text(value)
                for kind, value in zip(kinds, frame[end])
            ]
    cells = ("raw_low", "raw_high") if raw else ("low", "high")
    dates = ("date", "date_lower", "date_upper") if raw else ()
    names = ("step", "statistic", "column", "category", *cells, *FIGURES, *dates, "note")
    return frame[[name for name in names if name in frame]].rename(columns=dict(zip(cells, ("low", "high"))))


def _dates(answers: Sequence[tuple[str, Answers]]) -> dict[str, list[str]]:
    """Raw values that are dates, and ends of cells that are, as text."""
    dates: dict[str, list[str]] = {"date": [], "date_low": [], "date_high": []}
    for _, one in answers:
        none = np.full(len(one.columns), np.nan)
        ends = (one.raw, none, none) if one.cells is None else (none, one.cells[2], one.cells[3])
        for name, values in zip(dates, ends):
            texts = zip(one.dates or (None,) * len(values), values)
            dates[name] += ["" if kind is None or not math.isfinite(end) else kind.text(end) for kind, end in texts]
    return {name: words for name, words in dates.items() if any(words)}


def html_of(answers: Sequence[tuple[str, Answers]]) -> str:
    """The first lines as a table for a notebook; what is noted of a column is said in its first line."""
    frame = frame_of(answers)
    said: set[tuple[str, str]] = set()

    def news(column: str, note: str) -> str:
        parts = [part for part in note.split("; ") if (column, part) not in said]
        said.update((column, part) for part in parts)
        return "; ".join(parts)

    cells = "raw_low" in frame
    ends = ["from", "to"] if cells else []
    head = ["", "column", *ends, "raw value", "± its error", "as released", "± its error", ""]
    shown = [
        (
            line.statistic,
            f"{line.column} = {line.category}" if getattr(line, "category", "") else line.column,
            *((_text(line, "low"), _text(line, "high")) if cells else ()),
            _text(line),
            *map(_figure, (line.raw_standard_error, line.value, line.standard_error)),
            news(line.column, line.note),
        )
        for line in frame.head(MOST).itertuples()
    ]
    more = f", the first {MOST} of {len(frame)} numbers" if len(frame) > MOST else ""
    return html_table(f"Released{more}; errors are standard errors of the noise", head, shown)


def _text(line: Any, end: str = "") -> str:
    """A raw value, or the raw end of a cell, as a date if it is one."""
    date = getattr(line, f"date_{end}" if end else "date", "")
    return date or _figure(getattr(line, f"raw_{end or 'value'}"))


def _figure(value: float) -> str:
    return "" if math.isnan(value) else figure(value)


def _entrance(record: Record) -> Columns:
    """Raw columns, and what the entrance does to them."""
    facts = record.entrance.domain
    columns = Columns.raw(names_of(facts))
    for fact, words in (("entry_bound", "clipped to ±{:.6g}"), ("row_norm", "rows clipped to norm {:.6g}")):
        columns = columns.noted(words.format(facts[fact])) if facts.get(fact) is not None else columns
    return columns


def names_of(facts: Mapping[str, Any]) -> list[str]:
    """Names of the columns of a domain in a certificate, or their positions."""
    return list(facts.get("feature_names") or [f"x{i}" for i in range(facts["n_features"])])


def _behind(step: Any, twin: Any, columns: Columns, domain: Domain, filled: _Filled) -> Columns:
    """Columns behind a step. What was fitted without noise leads nowhere: the map of the rows stays private."""
    names = names_of(step.domain)
    formula, at, group = step.formula.partition(AT)
    if at:
        _, start, stop = span_of(domain, group)
        made = domain_of(Domain.from_dict(step.domain), group)
        inner = replace(step, formula=formula, domain=made.to_dict())
        own = _behind(inner, twin.stage, columns.at(range(start, stop)), domain_of(domain, group), filled)
        parts = [columns.at(range(start)), own, columns.at(range(stop, domain.d))]
        return replace(Columns.beside(parts), names=tuple(names))
    found = FORMULAS[step.formula]
    if getattr(found, "fitted", True) and step.way == "exact" and not twin.keeps_units:
        why = f"{step.name!r} was fitted without noise and stays private"
        scaled = step.parameters.get("columns") if step.formula.startswith("scaling.") else None
        return Columns.lost(names, why) if scaled is None else columns.lost_at(scaled, why)
    made = twin.units(filled.behind(step, columns, domain) if isinstance(twin, Imputer) else columns)
    if made is None:
        lost = [note for note, slope in zip(columns.notes, columns.slope) if math.isnan(slope)]
        return Columns.lost(names, lost[0] if lost else f"{step.title} is no scale and shift of each column")
    return replace(made, names=tuple(step.domain.get("feature_names") or made.names))


def _bare(name: str, array: Array, noise: float) -> Answers:
    """Numbers of which nothing more is known."""
    columns = Columns.lost([""] * array.size, NO_UNITS)
    return Answers.of(name.partition(".")[2], columns, array.ravel(), noise)


def statistics_of(release: ReleaseRecord, answer: Array, columns: Columns, domain: Domain) -> list[Answers]:
    """What a stage was fitted from, in the units of its columns."""
    inner, at, group = release.statistic.partition(AT)
    if at:
        _, start, stop = span_of(domain, group)
        columns, domain = columns.at(range(start, stop)), domain_of(domain, group)
        release = replace(release, statistic=inner)
    sigma, statistic = release.noise_scale, STATISTICS[release.statistic].read(answer, domain, release)
    if release.statistic == "label-means":
        return label_answers(release, statistic[0], sigma, columns, domain)
    if release.statistic == "clusters":
        centers, errors = statistic
        return center_answers(centers, errors, columns)
    if release.statistic in ("label-moments", "light-label-moments"):
        return moment_answers(statistic, columns, domain)
    if release.statistic == "quantile-choices":
        note = f"its rank misses by some {2 * sigma:.3g} rows"
        chosen = columns if release.parameters.get("columns") is None else columns.at(release.parameters["columns"])
        quantiles = zip(release.parameters["quantiles"], statistic)
        return [Answers.of(f"quantile {q:g}", chosen, row, math.nan, note) for q, row in quantiles]
    if release.statistic == "ranges":
        chosen = columns.at(release.parameters["columns"])
        ends = ("low end of the range", "high end of the range")
        return [
            Answers.of(word, chosen, end, math.nan, "from noisy histograms") for word, end in zip(ends, statistic.T)
        ]
    if release.statistic == "categories":
        weights = released_weights(answer, release.parameters["max_categories"])
        answers, note = [], "one of those that noise left large"
        for (i, texts), weight in zip(statistic.items(), weights):
            named = (Columns.raw([f"{columns.names[i]} = {text}" for text in each]) for each in (texts, [ELSE]))
            answers.append(Answers.of("rows of the category", next(named), weight, sigma, note))
            if domain.max_weight is None and domain.min_present == domain.n:
                rest, error = np.array([domain.n - weight.sum()]), sigma * math.sqrt(len(weight))
                answers.append(
                    Answers.of(
                        "rows of the category", next(named), rest, error, "all rows but those of released categories"
                    )
                )
        return [replace(one, ends=partial(no_ends, one.value)) for one in answers]
    if release.statistic == "modes":
        held = by_column(release.parameters["sizes"], release.parameters["values"])
        names = [columns.names[i] for i, own in zip(release.parameters["columns"], held) for _ in own]
        numbers = [f"category {i}" for own in held for i, _ in enumerate(own, 1)]
        counted = Answers.of("rows of the category", Columns.raw(names), answer, sigma)
        return [replace(counted, categories=tuple(numbers))]
    if release.statistic in _QUANTILES:
        rows = statistic.mean[None] if isinstance(statistic, Moments) else statistic
        served = release.parameters.get("columns")
        where = list(range(domain.d)) if served is None else list(served)
        least = release.parameters.get("min_observed")
        note = "" if least is None else f"over at least {least} values"
        if rows.shape[1] == domain.d:
            rows = rows[:, where]
        words = zip(_QUANTILES[release.statistic], rows)
        return [Answers.of(word, columns.at(where), row, sigma, note) for word, row in words]
    served = np.flatnonzero(~np.isnan(statistic.mean)).tolist() if isinstance(statistic, Moments) else []
    if not served:
        return [_bare(f".{release.statistic}", answer, sigma)]
    columns, mean, squares = columns.at(served), statistic.mean[served], statistic.squares[served]
    unsure: Any = None
    count: Any = domain.n
    which = " of observed values" if domain.missing_rows else ""
    if release.statistic == "squares-in-parts":
        parts = Parts.of(answer, domain, release)
        columns = columns.scaled(parts.half, parts.middle).noted("within the part that shows rows")
        (mean, squares), (sigma, unsure) = parts.in_units(answer), parts.errors(answer, sigma)
        count = domain.n * parts.observed
    else:
        unsure = _squares_error(release, domain)
    if domain.min_present < domain.n and not domain.missing_rows:
        columns = Columns.lost(columns.names, "over all places, absent rows as zeros")
    variance = squares - mean**2
    with np.errstate(all="ignore"):
        spread = np.where(variance > 0, np.sqrt(variance), np.nan)
        error = np.hypot(unsure, 2 * mean * sigma) / (2 * spread)
    deviation = Answers.linear(f"standard deviation{which}", columns, spread, error, np.abs(columns.slope))
    of_spread = partial(_of_deviations, variance, np.sqrt(unsure**2 + (2 * mean * sigma) ** 2 + 2 * sigma**4))
    sampling = spread / np.sqrt(count) if rows_are_a_sample(domain) else None
    return [
        replace(Answers.of(f"mean{which}", columns, mean, sigma), sampling=sampling).behind_gaps(columns),
        replace(deviation, ends=of_spread),
    ]


def _of_deviations(variance: Array, error: Array, alpha: float) -> tuple[Array, Array]:
    """Ends of intervals for roots of noisy variances."""
    half = half_width("gaussian", error, alpha)
    return np.sqrt(np.maximum(variance - half, 0.0)), np.sqrt(np.maximum(variance + half, 0.0))


def _squares_error(release: ReleaseRecord, domain: Domain) -> float:
    """Standard deviation of the noise on a mean square: the same as read from an answer with that of one number."""
    statistic = STATISTICS[release.statistic]
    one = np.full(release.size, release.noise_scale)
    return float(np.nanmax(statistic.read(one, domain, release).squares))
