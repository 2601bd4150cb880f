"""How far noise will move each released number, from a plan alone: ``docs/theory/intervals.md``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from ppdp.core.checks import number
from ppdp.core.domain import Domain
from ppdp.data.public_facts import merged
from ppdp.data.unit_conversion import Answers, Columns, half_width
from ppdp.mechanisms.query.statistics import MOVED
from ppdp.pipeline.certify import release_record
from ppdp.pipeline.planning.route import columns_behind
from ppdp.pipeline.release.answers import statistics_of

ROWS = "it depends on the rows"
TRAINED = "it depends on the rows; pipe.forecast() rehearses it on simulated ones"
CHOSEN = ("quantile-choices", "ranges", "categories")
MEANS = "where means are 0 in the units of this step"


def expected_errors(pipe: Any, domain: Domain | None, alpha: float) -> Any:
    """As a DataFrame, a line for every number; see :meth:`ppdp.Pipeline.expected_errors`."""
    import pandas as pd

    alpha = number("alpha", alpha, above=0, most=1 - 2.0**-40)
    plan, lines = copy(pipe).set_params(domain=merged(domain, pipe.domain)).plan(), []
    for step, one in _answers(plan):
        with np.errstate(all="ignore"):
            low, high = one.ends(alpha) if one.ends is not None else (0.0, 2 * half_width(one.law, one.error, alpha))
            half = (np.asarray(high) - low) / 2 + 0 * one.error
            factors = one.raw_error / one.error
        names = one.categories or [""] * len(one.columns)
        for column, category, error, width, factor, note in zip(
            one.columns, names, one.error, half, factors, one.notes
        ):
            at = f"{column} = {category}" if category else column
            note = note if np.isfinite(error) or ROWS in note else "; ".join(filter(None, (note, ROWS)))
            lines.append((step, one.statistic, at, error, width, factor * error, factor * width, note))
    names = ("standard_error", "half_width", "raw_standard_error", "raw_half_width")
    return pd.DataFrame(lines, columns=["step", "statistic", "column", *names, "note"])


def _answers(plan: Any) -> Iterator[tuple[str, Answers]]:
    for release in plan.releases:
        step = plan.steps[release.at]
        columns = columns_behind(plan.domain, plan.steps[: release.at])
        for one in _of_statistic(release, plan, columns):
            yield step.name, one
    if plan.mechanism is not None:
        columns, domain = columns_behind(plan.domain, plan.steps), plan.end[0]
        for one in _of_mechanism(plan.mechanism, columns, domain):
            yield plan.mechanism.name, one


def _unknown(statistic: str, note: str) -> list[Answers]:
    return [Answers.plain(statistic, math.nan, math.nan, note)]


def _of_statistic(release: Any, plan: Any, columns: Columns) -> list[Answers]:
    if release.statistic in CHOSEN:
        return _unknown(release.statistic, f"noise {release.noise_scale:.3g} on what it is made of; {ROWS}")
    recorded = release_record(release, plan)
    return statistics_of(recorded, np.zeros(recorded.size), columns, plan.steps[release.at].domain)


def _of_mechanism(planned: Any, columns: Columns, domain: Domain) -> list[Answers]:
    question, stage = planned.question, planned.stage
    if not getattr(stage, "tells_errors", False):
        return _unknown("its answer", TRAINED if stage.predicts else ROWS)
    twin = clone(stage).set_params(noise_scale=planned.noise_scale)
    twin.settle(question)
    twin.read({"answer": twin.typical(domain, question)}, domain, question)
    answers = twin.answers(columns, domain, question)
    said = (
        tuple("; ".join(filter(None, (note.replace(MOVED, MEANS), twin.typical_rows))) for note in one.notes)
        for one in answers
    )
    return [replace(one, notes=notes) for one, notes in zip(answers, said)]
