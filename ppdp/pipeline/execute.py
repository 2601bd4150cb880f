"""Where a plan meets private rows: one fold over its steps.

Order: releases that fit the stages before the last condition, then the gate, then everything else. Nothing that is
decided here depends on the rows, except through the noise: whether the gate passes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ppdp.bounds.release import prediction_stride
from ppdp.core.boundary import at_step
from ppdp.data.altered import altered_counts, counts_by_outcome, marks_on_the_way, subsample
from ppdp.data.engine.disk_cache import cached_on_disk
from ppdp.data.noisy_statistics import STATISTICS
from ppdp.data.rows import Rows
from ppdp.data.stream import Stream
from ppdp.mechanisms.base import PRESENT, twin_of
from ppdp.pipeline.own_trials import listening
from ppdp.pipeline.planning.plan import Plan
from ppdp.pipeline.planning.route import PlannedRelease
from ppdp.pipeline.steps import takes_texts
from ppdp.privacy.noise.sampler import Noise

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What left the rows, all of it paid for, by name."""

    released: Mapping[str, Array]
    altered: Array | None = None  # noisy numbers of altered rows
    present: Array | None = None  # noisy share of the rows that stages have left, and its standard error


def execute(plan: Plan, rows: Rows | Stream, noise: Noise) -> Outcome:
    """Run a plan on rows that were checked and clipped at the entrance; the gate, or a step's own error, may end it."""
    asked = plan.diagnostics
    with ExitStack() as files:
        fold, altered, present, predicted = _Fold(plan, noise, files, rows), None, None, np.empty(0)
        for position, step in enumerate(plan.steps):
            with at_step(step.name):
                rows = fold.step(position, rows)
        released = fold.released
        if plan.mechanism is not None:
            m = plan.mechanism
            question = m.question
            if m.stage.balances:
                assert asked is not None  # no plan is made without
                altered = asked.release(fold.altered(), noise)
                question = question.balanced(asked.by_class(altered), asked.error * asked.n)
            weighted = plan.domain.max_weight is not None or bool(question.factors)
            if weighted:
                rows = rows.each(partial(Rows.weighted, by_class=m.stage.row_factors(question)), rows.d)
            passes = plan.mechanism_passes + m.stage.samples_rows
            with at_step(m.name), cached_on_disk(rows, passes, last=True) as rows:
                rows = fold.counting(rows)
                counted = asked is not None and bool(asked.predicted)
                sample = subsample(rows, prediction_stride(plan.end[0])) if counted else None
                with listening(m, noise):
                    answers = m.stage.release(rows, question, noise, m.noise_scale)
                if sample is not None:
                    model = twin_of(m.stage, question, m.noise_scale, answers, plan.end[0])
                    predicted = counts_by_outcome(sample, model)
            present = None if weighted else answers.get(PRESENT)
            released |= {f"{m.name}.{name}": value for name, value in answers.items() if name != PRESENT}
        if asked is not None and altered is None:
            altered = asked.release(np.append(fold.altered(), predicted), noise)
        return Outcome(released, altered, present)


class _Fold:
    """State of one execution."""

    def __init__(self, plan: Plan, noise: Noise, files: ExitStack, rows: Rows | Stream) -> None:
        self.plan, self.noise, self.files = plan, noise, files
        self.marked: Any = rows
        self.released: dict[str, Array] = {}
        self.margin = math.inf
        self.moments: Any = None
        self.untouched = True
        self.waiting: list[tuple[PlannedRelease, Array]] = []
        conditional = [i for i, step in enumerate(plan.steps) if step.way.conditions]
        gated = bool(conditional) and plan.gate is not None
        self.first = conditional[0] if gated else len(plan.steps)
        self.last = conditional[-1] if gated else -1

    def step(self, position: int, rows: Any) -> Any:
        """Measure, release what may be released, test, and apply one stage."""
        step = self.plan.steps[position]
        way, domain, stage = step.way, step.domain, step.stage
        # A public map may move rows as well, by rounding that depends on where they stand.
        # Texts are not written down either: behind their map rows are numbers like any others.
        if self.untouched and not takes_texts(stage) and (way.name != "public" or way.distance.moved):
            raw = any(getattr(later.stage, "compare", None) == "raw" for later in self.plan.steps[position:])
            listed = any(r.at == position and STATISTICS[r.statistic].listed for r in self.plan.releases)
            if not listed:
                rows = self._read_once(rows, position)
            if raw:
                rows = rows.each(_remembered, rows.d)
            self.untouched = listed and not raw  # texts are not written down, nor what is remembered
        for release in self.plan.releases:
            if release.at == position:
                self._measure(release, rows)
        for condition in way.conditions:
            self.margin = min(self.margin, condition.margin(rows))
        if position == self.last:
            self._gate()
        if way.name == "noisy":
            fitted = stage.read(self._moments(), way, domain)
        else:
            none = Rows.of(np.empty((0, rows.d)))
            fitted = stage.prepare(rows if way.name == "exact" else none, way, domain)
        result = rows.each(partial(_applied, stage, fitted), way.domain.d)
        wanted = way.affine and any(max(release.serves) > position for release in self.plan.releases)
        self.moments = stage.carry(self._moments(), fitted) if wanted else None
        return result

    def _read_once(self, rows: Any, position: int) -> Any:
        """Rows that this step and others look at: read in blocks here, they are written down for all of them."""
        if not isinstance(rows, Stream):
            return rows
        held = self.files.enter_context(cached_on_disk(rows, self.plan.passes(position)))
        if held is not rows and isinstance(held, Stream) and not held.source.local:  # which keeps their marks
            held = self.marked = self._counted_on_the_way(held)
        marks = held.marks if isinstance(held, Rows) else held.altered
        self.marked = self.marked if marks is None else held  # those of persons are lost where rows go to their places
        return held

    def _counted_on_the_way(self, rows: Stream) -> Stream:
        """Rows of which any pass counts the marks, if they are asked for."""
        asked = self.plan.diagnostics
        return (
            rows if asked is None else replace(rows, beside=(partial(marks_on_the_way, len(asked.marker.counted)), []))
        )

    def counting(self, rows: Any) -> Any:
        """Rows that the mechanism reads; their marks are counted on the way if no pass has counted them before."""
        asked = self.plan.diagnostics
        if isinstance(rows, Rows) and rows.marks is not None:
            self.marked = rows
        elif asked is not None and isinstance(rows, Stream) and self.marked.altered is None:
            if rows.maps and rows.source is self.marked.source:
                rows = self._counted_on_the_way(rows)
            self.marked = rows if rows.beside is not None or rows.altered is not None else self.marked
        return rows

    def altered(self) -> Array:
        """How many rows have each property that diagnostics ask for; counted while rows were written, if they were."""
        asked = self.plan.diagnostics
        return np.empty(0) if asked is None else altered_counts(self.marked, len(asked.marker.counted))

    def _moments(self) -> Any:
        assert self.moments is not None  # the plan put a release before every stage that reads one
        return self.moments

    def _measure(self, release: PlannedRelease, rows: Any) -> None:
        """Measure now; release now only what shapes rows of a condition: behind the gate deltas need not add."""
        statistic, step = STATISTICS[release.statistic], self.plan.steps[release.at]
        exact = statistic.measure(rows, step.domain, release.parameters)
        if release.at <= self.last and (release.purpose == "predict" or release.at > self.first):
            self.waiting.append((release, exact))
        else:
            self.moments = self._release(release, exact, rows)

    def _release(self, release: PlannedRelease, exact: Array, rows: Any = None) -> Any:
        statistic, step = STATISTICS[release.statistic], self.plan.steps[release.at]
        answer = statistic.answer(exact, rows, step.domain, release, self.noise)
        self.released[f"{step.name}.{release.statistic}"] = answer
        return statistic.read(answer, step.domain, release)

    def _gate(self) -> None:
        """One test for all conditions, then what waited for it."""
        plan = self.plan
        assert plan.gate is not None
        plan.gate.test(self.margin, self.noise, _advice(plan))
        for release, exact in self.waiting:
            self._release(release, exact)


def _remembered(rows: Rows) -> Rows:
    """Rows that keep what they are now."""
    return replace(rows, raw=rows.X, ours=False)


def _applied(stage: Any, fitted: Any, rows: Rows) -> Rows:
    """Rows, or a block of them, behind a stage. What a stage has made is only held here: the next may write over it."""
    result: Rows = stage.apply(rows, fitted)
    ours = rows.ours if result.X is rows.X else issparse(rows.X) or not np.may_share_memory(result.X, rows.X)
    return result if ours == result.ours else replace(result, ours=ours)


def _advice(plan: Plan) -> str:
    """What to change where the gate refuses, from the plan alone."""
    words = [f"{step.stage.relief} for {step.name}" for step in plan.steps if step.way.conditions]
    return f"use {' and '.join(words)}, or more rows; a weaker gate would not be sound."
