"""Released diagnostics in words: what a run repaired, clipped, or took as another category."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ppdp.bounds.column_groups import span_of
from ppdp.bounds.release import (
    CELL,
    CLASS,
    CLIPPED,
    KEPT,
    LABEL,
    MISSING,
    PREDICTED,
    SHORTENED,
    TARGET,
    TINY,
    TINY_TARGET,
    TINY_WEIGHT,
    UNLISTED,
    WEIGHT,
    ZERO_TARGET,
    kind_in_words,
    prediction_stride,
)
from ppdp.bounds.selection import CALIBRATION, THRESHOLD
from ppdp.certificate.facts import PublicFact, public_facts
from ppdp.certificate.record import Diagnostics, Record, ReleaseRecord, Share
from ppdp.core.domain import Domain
from ppdp.core.formula import AT

TENTH = 0.1
HALF = 0.5  # of the values of a column, of targets or weights are tiny
NEARLY_ALL = 0.9  # of the rows have a tiny value in some column: fewer may well have
MOSTLY = 0.75  # of the targets that are not 0
RARE = 0.2  # share of the rows of a class that a model of use may hardly ever predict
HARDLY = 0.05  # mean recall above that of one answer for all rows
NO_ERROR = 0.97  # mean recall that few honest columns allow
_CODES = -99.0, -999.0, -9999.0, -99999.0  # where ranges begin
_DAY = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(([01]\d|2[0-4])(\d\d){0,2})?")  # and hours
_LIMITS = {TINY: NEARLY_ALL, TINY_WEIGHT: HALF, **dict.fromkeys((ZERO_TARGET, CLASS, *PREDICTED), math.inf)}
_BY_COLUMN = frozenset({CELL, CLIPPED, UNLISTED, MISSING})  # or of all columns together, where these are many
CLEAR = 2.0  # standard errors
MOST = 12  # shares in one line
FEW = 3  # classes that are named on page one

_CHECK = {
    LABEL: "are the declared classes spelled as the labels are?",
    TARGET: "does y_range hold the targets, in their unit?",
    WEIGHT: "does max_weight hold the weights, and are all of them at least 0?",
    CELL: "are the cells written as the column is declared (numbers with a currency sign, dates of another form)?",
    CLIPPED: "do the public ranges hold the values, in their unit? Is a code such as -9 for missing values among them?",
    SHORTENED: "is the public norm in the unit of the columns?",
    UNLISTED: "are the declared categories spelled as the values are?",
    MISSING: "what an imputer fills in then follows from few rows, or from noise alone. Is it the right column?",
    TINY: "are the public ranges in the values' unit (percent, thousands)? Narrower ones need less noise.",
    TINY_WEIGHT: "is max_weight in the weights' unit? A smaller one needs less noise.",
    TINY_TARGET: "is y_range in the targets' unit? A narrower one needs less noise.",
}
_WITHHELD = {
    "diagnostics=None": "none, since diagnostics=None was set: how many rows were repaired or clipped is unknown",
    "budget": "none, since the budget leaves nothing for them: how many rows were repaired or clipped is unknown",
}
_UNTOLD = (
    "Do the {} belong to these rows, are the public ranges in the values' unit, is epsilon too small for so many"
    " columns?"
)
_RARE = "Where a class is rare, rank rows by predict_proba or decision_function, or set the model's threshold"
_ASK = "many near 0? Ask for their unit"
_LIMIT = "is n_rows, for which noise is sized, the number of rows that are expected, and has every row an id?"


def alerts(c: Record) -> list[str]:
    """Warnings: of few rows left or kept, of a model of one class, of columns without a range, and of shares clearly
    above a tenth (tiny: half).
    """
    one = _few_left(c), single_class_in_words(c), *_no_range(c), *_others(c), _unheld(c), _no_intercept(c)
    found = [*filter(None, one), *_of_ranges(c)]
    if c.diagnostics is not None:
        found += [*_of_no_use_or_no_error(c, c.diagnostics), *_alerts(c.diagnostics)]
    return [*found, *filter(None, [_no_slope(c)])]  # of which what stands in front is often the cause


def ranged(c: Record, release: ReleaseRecord) -> list[str]:
    """Columns whose ranges or categories were released by it, if it is of these."""
    kind, at, group = release.statistic.partition(AT)
    facts = c.domains[release.at]
    start = span_of(Domain.from_dict(facts), group)[1] if at else 0
    names = facts.get("feature_names")
    positions = [start + i for i in release.parameters["columns"]] if kind in ("ranges", "categories") else []
    return [f"x{i}" if names is None else names[i] for i in positions]


def of_a_column(c: Record, share: Share) -> bool:
    """Whether it is of a declared class, or of a column that some step takes, where it is of one at all."""
    if share.kind in (CLASS, *PREDICTED):
        return share.column in labels_of(c)
    known = any(_is_column(share.column, facts) for facts in c.domains)
    return share.column is None or (known and share.kind in (*_BY_COLUMN, TINY))


def _is_column(name: str | None, facts: Mapping[str, Any]) -> bool:
    names, numbered = facts.get("feature_names"), re.fullmatch(r"(?:x|column )(\d{1,9})", name or "")
    if names is not None:
        return name in names
    return numbered is not None and int(numbered[1]) < facts.get("n_features", 0)


def labels_of(c: Record) -> set[str]:
    """The declared classes as a model or a share names them."""
    labels = c.entrance.domain.get("classes") or ()
    return {word(label) for label in (*labels, *np.asarray(labels).tolist()) for word in (str, repr)}


def deleting(c: Record) -> list[str]:
    """Steps behind which rows may be absent that were present in front."""
    least = [domain.get("min_present", 0) for domain in c.domains]
    return [step.name for step, before, after in zip(c.steps, least, least[1:]) if after < before]


def few_left(c: Record, present: Iterable[float] | None) -> float | None:
    """A share of the rows, by what was released, of which steps have left no more; None if it may be a half."""
    if present is None or not deleting(c):
        return None
    share, error = map(float, present)
    most = max(share, 0.0) + CLEAR * error
    return most if most < HALF else None


def _few_left(c: Record) -> str | None:
    if (share := c.released.share_left) is None:
        return None
    names = " and ".join(map(repr, deleting(c)))
    return (
        f"behind {names} no more than {_percent(share)} of the rows are left with a value, and noise is that of all"
        f" {c.entrance.domain['n_rows']:,}: leave {names} out if rows that look alike are of different people"
    )


def single_class_in_words(c: Record) -> str | None:
    """That a released model is no use, if it plainly is none."""
    if (label := c.released.single_class) is None:
        return None
    return (
        f"this model predicts one class only, {label!r}, whatever the row is: where others are rare, rank rows by"
        " predict_proba or decision_function, or set the model's threshold"
    )


def _of_ranges(c: Record) -> Iterator[str]:
    """Of declared ranges of days, or that begin at what is written for missing values, but for -99 to 99 and so on."""
    for fact in public_facts(c):
        low, high = fact.range_of_values or (0.0, 0.0)
        if low in _CODES and high != -low:
            told = f"{low:g} reads as a code for missing values. Gaps (NaN) in place of it, and a range without it"
            yield f"{fact.name}, {fact.value}: {told}"
        if all(_DAY.fullmatch(f"{end:.0f}") for end in (low, high)):
            told = "days as numbers, with gaps where months end. DateEncoder, of pd.to_datetime with format='%Y%m%d'"
            yield f"{fact.name}, {fact.value}: {told}"


def _no_intercept(c: Record) -> str | None:
    """Of targets: where columns are 0 scikit-learn's predicts 0, and this one the middle of y_range."""
    given = {} if c.mechanism is None else c.mechanism.parameters
    ends = given.get("y_range")
    if given.get("fit_intercept") is not False or "power" in given or not isinstance(ends, list | tuple):
        return None
    if (
        len(ends) != 2
        or not all(isinstance(end, int | float) and abs(end) < 1e300 for end in ends)
        or not (middle := sum(ends) / 2)
    ):
        return None
    told = f"{middle:g}, the middle of y_range, where all columns are 0, and not 0; fit_intercept=True learns it"
    return f"without an intercept this model predicts {told}"


def _no_slope(c: Record) -> str | None:
    if not c.released.no_slope:
        return None
    return f"no coefficient of this model is clearly other than 0, by its released error. {_UNTOLD.format('targets')}"


def by_counts(c: Record) -> dict[str, PublicFact]:
    """What is read off released counts of rows by score, and for what, by names of facts."""
    return {fact.name: fact for fact in public_facts(c) if fact.name in (THRESHOLD, CALIBRATION) and fact.by_counts}


def _unheld(c: Record) -> str | None:
    if (most := c.released.unheld) is None:
        return None
    sought = f"threshold, {by_counts(c)[THRESHOLD].value}"
    if not most:
        return f"{sought}: noise hides all rows in them, and it is 0.5. A larger epsilon, or a public threshold"
    return f"{sought}: no more than {_percent(most)} shows in them. Ask for less"


def _no_range(c: Record) -> Iterator[str]:
    empty = c.released.no_range or ()
    of_categories = (release for release in c.releases if release.statistic.partition(AT)[0] == "categories")
    labelled = {name: release.threshold or 0.0 for release in of_categories for name in ranged(c, release)}
    if ranges := [name for name in empty if name not in labelled]:
        yield (
            f"{', '.join(map(repr, ranges))}: no range shows in the released counts. Are values beyond 1e12"
            " (milliseconds, numbers of accounts), within 1e-9 of 0, or hardly any? Declare the range, or multiply by a"
            " public number first"
        )
    if labels := [name for name in empty if name in labelled]:
        needed = f"{max(labelled[name] for name in labels):.0f} rows at epsilon = {c.epsilon:g}"
        yield (
            f"{', '.join(map(repr, labels))}: no category shows in the released counts, where one needs about {needed}."
            " Declare the categories, take a larger epsilon, or leave the column out if every row has a value of"
            " its own, as an id is"
        )


def clearly_others(weights: Sequence[float], noise: float, n: int) -> float | None:
    """Share of n rows that are of none of the categories of these noisy weights, if clearly above a tenth."""
    share = 1.0 - sum(weights) / n
    return min(share, 1.0) if share - CLEAR * noise * math.sqrt(len(weights)) / n > TENTH else None


def _others(c: Record) -> Iterator[str]:
    for name, share in (c.released.others or {}).items():
        yield (
            f"{name!r}: {_percent(share)} of the rows are of none of the released categories, or missing, and count as"
            " one. Declare the categories, or take a larger epsilon"
        )


@dataclass(frozen=True, slots=True)
class Recall:
    """Share of the rows of a class that the model predicts right, of all or of some by their public places."""

    label: str
    value: float
    error: float  # of the noise and of the number of rows
    rows: float  # those of the class, as a share

    def __str__(self) -> str:
        unsure = "too few to tell" if self.error > TENTH else f"{_percent(self.value)} ({_percent(self.error)})"
        return f"{self.label!r} {unsure}"


def labels_predicted(found: Diagnostics) -> set[str | None]:
    """Classes of which it was counted how their rows are predicted."""
    return {share.column for share in found.shares if share.kind in PREDICTED}


def recalls(found: Diagnostics) -> list[Recall]:
    """Of every class, if they were counted."""
    right, wrong = ({s.column: s.share for s in found.shares if s.kind == kind} for kind in PREDICTED)
    return [_recall(str(label), share, wrong.get(label, 0.0), found) for label, share in right.items()]


def _recall(label: str, right: float, wrong: float, found: Diagnostics) -> Recall:
    rows = right + wrong
    if rows < CLEAR * found.error:
        return Recall(label, math.nan, math.inf, rows)
    value = min(max(right / rows, 0.0), 1.0)
    noise = found.error / rows * math.hypot(value, 1.0 - value)
    return Recall(label, value, math.hypot(noise, math.sqrt(value * (1.0 - value) / (rows * found.bound))), rows)


def _of_no_use_or_no_error(c: Record, found: Diagnostics) -> Iterator[str]:
    """That rows are of one class alone, or classes told apart no better than by one answer for all rows, or without an
    error, if a threshold does not ask for it.
    """
    everybody = recalls(found)
    clear = [one for one in everybody if one.error <= TENTH]
    if sum(one.rows for one in clear) < NEARLY_ALL * sum(one.rows for one in everybody):
        return
    counted = sum(one.rows for one in everybody)
    rest = max(0.0, counted - sum(one.rows for one in clear))
    unsure = CLEAR * found.error * math.sqrt(2 * len(everybody))
    if len(clear) == 1 and c.released.single_class is None and rest < unsure < TENTH * counted:
        most = f"{_percent((rest + unsure) / counted)} at most"
        told = f"hardly any of {_own_rows(c)} is of another class than {clear[0].label!r} ({most})"
        yield f"{told}. Are labels compared, and mapped, as they are spelled?"
    if len(clear) < 2 or c.released.single_class is not None or any(fact.name == THRESHOLD for fact in c.facts):
        return
    balanced, error = np.mean([one.value for one in clear]), np.linalg.norm([one.error for one in clear]) / len(clear)
    right = f"{', '.join(map(str, clear[:MOST]))} are predicted right (standard error)"
    if balanced - CLEAR * error > NO_ERROR:
        told = "Is a column computed from the labels, or known after them only? Leave it out"
        yield f"the model makes hardly an error: of {_own_rows(c)} {right}. {told}"
    if balanced + CLEAR * error < 1.0 / len(clear) + HARDLY:
        rare = min(one.rows for one in clear) < RARE * counted  # by probabilities that are right it is hardly predicted
        told = "hardly ever predicts a rare class" if rare else "hardly tells classes apart"
        yield f"the model {told}: of {_own_rows(c)} {right}. {'' if rare else _UNTOLD.format('labels') + ' '}{_RARE}"


def _alerts(found: Diagnostics) -> Iterator[str]:
    for share in found.shares:
        if share.kind == KEPT:
            unsure = CLEAR * found.error
            if unsure < HALF and share.share < max(HALF - unsure, unsure):
                yield f"{_words(share, found)} of the declared limit of rows: {_LIMIT}"
        elif share.share - CLEAR * found.error > _limit(share, found):
            yield f"{_words(share, found)} of the rows: {_CHECK[share.kind]}"


def _limit(share: Share, found: Diagnostics) -> float:
    """Above which a share is called out."""
    if share.kind == MISSING:
        kept = sum(one.share for one in found.shares if one.kind == KEPT) or 1.0
        return NEARLY_ALL * min(max(kept, 0.0), 1.0)
    if share.kind == TINY_TARGET:
        zero = sum(one.share for one in found.shares if one.kind == ZERO_TARGET)
        return min(HALF, MOSTLY * (1.0 - min(max(zero, 0.0), 1.0)) + found.error)
    return HALF if share.kind == TINY and share.column is not None else _LIMITS.get(share.kind, TENTH)


def altered_in_words(c: Record) -> str | None:
    """All shares with their standard error, the largest first, or why there are none; None if nothing can be."""
    found = c.diagnostics
    if found is None:
        return _WITHHELD.get(c.withheld or "")
    of = "the declared limit of rows" if c.neighbours.unbounded else "all rows"
    ranked = sorted((s for s in found.shares if s.kind not in PREDICTED), key=lambda share: -share.share)
    if not ranked:
        return None
    by_kind: dict[str, list[str]] = {}
    for share in ranked[:MOST]:
        where = "" if share.column is None else f"{share.column!r} " if share.kind == CLASS else f"in {share.column!r} "
        by_kind.setdefault(kind_in_words(share.kind), []).append(f"{where}{_percent(share.share)}")
    told = "; ".join(f"{kind} {', '.join(shares)}" for kind, shares in by_kind.items())
    more = f", and {len(ranked) - MOST} smaller ones" if len(ranked) > MOST else ""
    unit = f"; {_ASK}" if any(share.kind == TINY for share in ranked) else ""
    return f"of {of}, each with a standard error of {_percent(found.error)}: {told}{more}{unit}"


def predicted_in_words(c: Record) -> str | None:
    """How many rows of each class the model predicts right; None where nobody counted."""
    found = [] if c.diagnostics is None else recalls(c.diagnostics)
    if not found:
        return None
    more = f", and {len(found) - MOST} further classes" if len(found) > MOST else ""
    told = ", ".join(map(str, found[:MOST]))
    return f"of {_own_rows(c)} the model predicts right, by class (standard error): {told}{more}"


def _own_rows(c: Record) -> str:
    """The rows that were predicted."""
    number = prediction_stride(Domain.from_dict(c.domains[-1]))
    return "its own rows" if number == 1 else f"its own rows (one in {number} of them)"


def predicted_in_short(c: Record) -> str | None:
    """The same on one line; None where no class has rows enough to tell."""
    found = [] if c.diagnostics is None else recalls(c.diagnostics)
    clear = [one for one in found if one.error <= TENTH]
    if not clear:
        return None
    told = [f"{_percent(one.value)} of {one.label!r} (error {_points(one.error)})" for one in clear]
    if len(clear) > FEW:
        least, most = (_percent(pick(one.value for one in clear)) for pick in (min, max))
        told = [f"{least} to {most} of a class (error up to {_points(max(one.error for one in clear))})"]
    rest = "; too few of others to tell" if len(clear) < len(found) else ""
    return f"of its training rows, the model has {', '.join(told)} right{rest}"


def _points(error: float) -> str:
    return _percent(error).replace(" %", " points")


def _words(share: Share, found: Diagnostics) -> str:
    where = ", in any column" if share.kind in _BY_COLUMN else ""
    if share.column is not None:
        where = f" {share.column!r}" if share.kind == CLASS else f" in {share.column!r}"
    return f"{kind_in_words(share.kind)}{where}: {_percent(share.share)} (standard error {_percent(found.error)})"


def _percent(share: float) -> str:
    """A share between 0 and 1 for readers, whatever noise made of it."""
    percent = 100 * min(max(share, 0.0), 1.0)
    return f"{percent:.2g} %" if percent < 10 else f"{percent:.0f} %"
