"""The replay audit: the plan on private rows and on neighbours of them, all with the same noisy answers.

Where every noisy answer is the same, nothing but what noise is added to may depend on the rows, and that only as far as
is claimed. So every step, margin, shape, warning and release is compared between neighbouring datasets on one branch of
the execution. Nothing of it is released.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from ppdp.audit.claims import lengths
from ppdp.audit.plans import attained, reaching
from ppdp.audit.report import ReplayFinding, ReplayReport
from ppdp.audit.search import share
from ppdp.core.boundary import discreet
from ppdp.data.noisy_statistics import STATISTICS
from ppdp.data.rows import Array, Rows
from ppdp.data.statistics import clip_norms, row_norms
from ppdp.exceptions import InvalidParameter, PpdpError, PrivacyRefusal
from ppdp.pipeline.execute import execute
from ppdp.pipeline.fit import prepare_rows
from ppdp.pipeline.pipeline import Pipeline
from ppdp.pipeline.planning.plan import Plan
from ppdp.pipeline.planning.route import PlannedStep
from ppdp.privacy.noise.sampler import Noise
from ppdp.testing.answers import RecordedAnswer, RecordingNoise, held, kept_in, law_of, misasked, replayed_answers
from ppdp.testing.changes import confined, corner, rows_after
from ppdp.testing.neighbours import EXCESS, MARGIN_EXCESS, outgrown
from ppdp.testing.tables import STEPS, units
from ppdp.transformers.columns.cell_parsers import numbered

STARS = 80  # sets of neighbours that differ in the same rows
LAWS = {"gaussian": "gaussian", "laplace": "laplace", "discrete-laplace": "whole-laplace"}
CHANGES = 2  # that reach far, of a row
FAR = 1e3  # beside rows of which no bound is declared
EXECUTION = "the execution"
ALTERED = "diagnostics"


class _Expected(NamedTuple):
    """What the plan says of one noisy answer in front of the mechanism; ``at`` is None for the gate."""

    name: str
    form: tuple[str, float, float, int]
    claimed: float
    at: int | None
    apart: Callable[[Array, Array], float]


def _distance(one: Array, other: Array, order: int = 2) -> float:
    return float(np.linalg.norm(np.ravel(one - other), order))


@dataclass
class _Run:
    """What one execution showed."""

    ended: tuple[str, str] | None = None
    warned: list[tuple[str, str]] = field(default_factory=list)
    rows: list[tuple[Rows, Rows]] = field(default_factory=list)
    asked: list[RecordedAnswer] = field(default_factory=list)
    released: Mapping[str, Any] = field(default_factory=dict)
    kept: tuple[Any, ...] = ()


class _Watched:
    """A stage, with notes of the rows before and behind it."""

    def __init__(self, stage: Any, notes: list[tuple[Rows, Rows]]) -> None:
        self._stage, self._notes = stage, notes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stage, name)

    def apply(self, rows: Rows, statistics: Any) -> Rows:
        before = _copied(rows)
        out: Rows = self._stage.apply(rows, statistics)
        self._notes.append((before, _copied(out)))
        return out


def _copied(rows: Rows) -> Rows:
    return Rows(
        rows.X.copy(), None if rows.y is None else rows.y.copy(), rows.weight.copy(), rows.raw, marks=rows.marks
    )


@discreet
def replay(pipeline: Any, data: Any, *, seconds: float, seed: int) -> ReplayReport:
    """Compare executions on private rows and on neighbours of them; see :func:`ppdp.audit.audit`."""
    if not isinstance(pipeline, Pipeline):
        fix = "pass the Pipeline, not fitted or fitted."
        raise InvalidParameter(f"a {type(pipeline).__name__} cannot be replayed on data.", fix=fix)
    X, y, groups = (*data, None)[:3] if isinstance(data, tuple) and len(data) in (2, 3) else (data, None, None)
    plan, rows = prepare_rows(pipeline, X, y, groups, Noise(seed))
    if any(STATISTICS[release.statistic].listed for release in plan.releases):
        what = "how many noisy answers there are depends on the private categories, so runs cannot be compared."
        raise InvalidParameter(what, fix="ppdp.audit.audit(pipeline, domain) attacks the plan, without data.")
    X = csr_array(rows.X).toarray() if issparse(rows.X) else rows.X  # made dense they give the same bits
    X = X if rows.texts is None else numbered(X)  # of texts, so that neighbours can be drawn
    return _Replay(plan, replace(rows, X=X, texts=None), seconds, seed).report()


class _Replay:
    """One audit of a plan on rows."""

    def __init__(self, plan: Plan, rows: Rows, seconds: float, seed: int) -> None:
        self.plan, self.rows, self.seed = plan, rows, seed
        self.started, self.seconds = time.monotonic(), seconds
        self.found: dict[tuple[str, str], ReplayFinding] = {}
        self.skipped: dict[str, str] = {}
        self.pairs = self.counted = 0

    def report(self) -> ReplayReport:
        """Run on the rows, on neighbours until the time is over, and on the rows again."""
        rng, adjacency = np.random.default_rng(self.seed), self.plan.domain.adjacency
        before = self._kept()
        base = self._run(self.rows, ())
        refused = base.ended is not None and base.ended[0] == PrivacyRefusal.__name__
        if refused and self.plan.gate is not None:  # past the gate, since claims hold behind it as well
            passing = np.array(self.plan.gate.threshold + 1.0)
            base = self._run(self.rows, [*(asked.answer for asked in base.asked[:-1]), passing])
        given = [asked.answer for asked in base.asked]
        self._against_plan(base)
        for star in range(STARS):
            slots = self._slots(star, rng)
            runs = [base, *(self._run(self._marked(rows, slots), given) for rows in self._others(slots, rng))]
            for run in runs[1:]:
                self._against_plan(run)
            # Two changes of one row, and two rows that were added in one place, are too far apart.
            for pair in combinations(runs, 2) if adjacency.bounded else ((base, run) for run in runs[1:]):
                self._compare(*pair, slots)
            if time.monotonic() - self.started > self.seconds:
                break
        again = self._run(self.rows, given)
        self._compare(base, again, ())
        self._keeps(before, again.kept)
        return ReplayReport(
            epsilon=self.plan.epsilon,
            delta=self.plan.delta,
            steps=tuple(name for name, _ in before),
            n_rows=self.rows.n,
            findings=tuple(self.found.values()),
            skipped=tuple(self.skipped.items()),
            pairs=self.pairs,
            counted=self.counted,
            refused=refused,
            seed=self.seed,
            seconds=time.monotonic() - self.started,
            neighbours="" if adjacency.bounded else adjacency.words,
        )

    def _kept(self) -> tuple[tuple[str, Any], ...]:
        """What every step holds, by name."""
        last: list[Any] = [] if self.plan.mechanism is None else [self.plan.mechanism]
        return tuple((step.name, kept_in(step.stage)) for step in [*self.plan.steps, *last])

    def _keeps(self, before: tuple[tuple[str, Any], ...], after: tuple[tuple[str, Any], ...]) -> None:
        for (name, then), (_, now) in zip(before, after):
            self._differs(name, "what the step keeps in itself while it runs", then != now)

    def _run(self, rows: Rows, given: Sequence[Any]) -> _Run:
        run, noise = _Run(), RecordingNoise(self.seed, given)

        def watched(steps: Sequence[PlannedStep]) -> tuple[PlannedStep, ...]:
            return tuple(replace(step, stage=_Watched(step.stage, run.rows)) for step in steps)

        plan = replace(self.plan, steps=watched(self.plan.steps))
        with warnings.catch_warnings(record=True) as heard, np.errstate(all="ignore"):
            warnings.simplefilter("always")
            try:
                run.released = execute(plan, _copied(rows), noise).released
            except PpdpError as error:
                run.ended = type(error).__name__, str(error)
        run.warned = [(warning.category.__name__, str(warning.message)) for warning in heard]
        run.asked, run.kept = noise.asked, self._kept()
        return run

    # ---------------------------------------------------------------- neighbours

    def _slots(self, star: int, rng: np.random.Generator) -> tuple[int, ...]:
        """Rows that differ: the longest, the first and the last, then any; where some are absent, those in turn."""
        sides = np.flatnonzero(self.rows.weight > 0), np.flatnonzero(self.rows.weight == 0)
        slots = sides[star % 2] if len(sides[0]) and len(sides[1]) else np.arange(self.rows.n)
        first = slots[[int(np.argmax(row_norms(np.nan_to_num(self.rows.X[slots])))), 0, -1]].tolist()
        count = min(self.plan.domain.adjacency.rows, len(slots))
        drawn = rng.permutation(slots)[:count].tolist()
        return tuple(dict.fromkeys([*first[star : star + 1], *drawn]))[:count]

    def _others(self, slots: tuple[int, ...], rng: np.random.Generator) -> Iterator[Rows]:
        """The dataset with other rows in these slots: none, or opposite ones, others' rows, near ones, gaps."""
        if not self.plan.domain.adjacency.row_level:
            yield from self._changed(slots[0], rng)
            return
        X, d, k = self.rows.X, self.rows.X.shape[1], len(slots)
        if self.plan.domain.adjacency.unbounded and self.rows.weight[slots[0]]:
            weight = self.rows.weight.copy()
            weight[list(slots)] = 0.0
            yield replace(self.rows, weight=weight).settled()
            if not self.plan.domain.adjacency.bounds_contributions:
                return
        known = np.nan_to_num(X[self.rows.weight > 0] if self.rows.weight.any() else X)
        usual = float(row_norms(known).max(initial=0.0)) or 1.0
        length = self.plan.domain.row_norm or usual * rng.choice([1.0, FAR])
        scales = [scale for step in self.plan.steps for scale in lengths(step.stage, step.way)] or [usual]
        directions = units(1, d, rng), rng.choice([-1.0, 1.0], (1, d)), known.mean(axis=0, keepdims=True), np.eye(d)[:1]
        toward = directions[rng.integers(4)] if d > 1 else np.ones((1, 1))
        toward = np.repeat(toward / max(float(np.linalg.norm(toward)), 1e-300), k, axis=0)
        another, third = (known[rng.integers(len(known), size=k)] for _ in range(2))
        near = another + rng.choice(scales) * rng.choice(STEPS) * units(k, d, rng)
        gap = np.where(np.arange(d) == rng.integers(d), np.nan, third)
        tables = [length * toward, -length * toward, another, near, -np.nan_to_num(X[list(slots)])]
        tables.append(gap if self.plan.domain.missing_rows else np.zeros((k, d)))
        for table in tables:
            changed = X.copy()
            changed[list(slots)] = table
            yield self._legal(changed, slots, rng)

    def _changed(self, slot: int, rng: np.random.Generator) -> Iterator[Rows]:
        """The dataset with changes of one row, all in both directions: at a corner of what is allowed, or far."""
        X, distance, domain = self.rows.X, self.plan.distance, self.plan.domain
        far = reaching(self.plan.steps, np.nan_to_num(X[slot]), distance)
        for step in [corner(distance, domain.d, rng), *rng.permutation(far)[:CHANGES]]:
            for sign in (1, -1):
                changed = X.copy()
                changed[slot] = rows_after(X[slot], confined(sign * step[None, :], distance)[0])
                yield Rows(self._bounded(changed), self.rows.y, np.ones(len(X)))

    def _bounded(self, X: Array) -> Array:
        """Within the domain."""
        domain = self.plan.domain
        X = X if domain.entry_bound is None else np.clip(X, -domain.entry_bound, domain.entry_bound)
        return np.ascontiguousarray(clip_norms(X, domain.row_norm))

    def _marked(self, rows: Rows, slots: tuple[int, ...]) -> Rows:
        """With opposite marks of altered rows in these slots, and none of rows that are absent."""
        if self.rows.marks is None:
            return rows
        marks, own = self.rows.marks.copy(), list(slots)
        marks[own] = ~marks[own] & (rows.weight[own] > 0)[:, None]
        return replace(rows, marks=marks)

    def _legal(self, X: Array, slots: tuple[int, ...], rng: np.random.Generator) -> Rows:
        """Within the domain; labels of replaced rows are drawn, more often those at the ends."""
        domain, y = self.plan.domain, None if self.rows.y is None else self.rows.y.copy()
        X = self._bounded(X)
        if np.isnan(X).any(axis=1).sum() > domain.missing_rows:
            X[list(slots)] = np.nan_to_num(X[list(slots)])
        if y is not None:
            labels = range(len(domain.classes)) if domain.classes else (-1.0, 1.0, float(rng.uniform(-1, 1)))
            y[list(slots)] = rng.choice(np.array(labels, dtype=np.float64), len(slots))
        weight = self.rows.weight.copy()
        weight[list(slots)] = 1.0
        return Rows(X, y, weight)

    # ---------------------------------------------------------------- comparisons

    def _differs(self, name: str, quantity: str, differs: bool) -> None:
        self._note(name, quantity, math.inf if differs else 0.0)

    def _note(self, name: str, quantity: str, ratio: float, excess: float = EXCESS) -> None:
        best = self.found.get((name, quantity))
        if best is None or ratio > best.ratio:
            self.found[name, quantity] = ReplayFinding(name, quantity, ratio, ratio > excess)

    def _expected(self) -> list[_Expected]:
        """The noisy answers in front of the mechanism, in the order that the plan gives them."""
        plan, gate = self.plan, self.plan.gate
        conditional = [i for i, step in enumerate(plan.steps) if step.way.conditions]
        gated = gate is not None and bool(conditional)
        first, last = (conditional[0], conditional[-1]) if gated else (len(plan.steps), -1)
        found: list[_Expected] = []
        waiting: list[_Expected] = []
        for position, step in enumerate(plan.steps):
            for release in (release for release in plan.releases if release.at == position):
                statistic = STATISTICS[release.statistic]
                waits = position <= last and (release.purpose == "predict" or position > first)
                name = f"{step.name}, release of {release.statistic}"
                for law, size in statistic.asked(step.domain, release.parameters):
                    form = law, release.noise_scale, statistic.bound(step.domain), size
                    one = _Expected(name, form, release.sensitivity, position, statistic.apart)
                    (waiting if waits else found).append(one)
            if position == last and gate is not None:
                found += [
                    _Expected("gate", (LAWS[gate.kind], gate.noise_scale, float(gate.n_rows), 1), 1.0, None, _distance)
                ]
                found += waiting
        return [*found, *self._shares(first=True)]

    def _shares(self, *, first: bool = False) -> list[_Expected]:
        """The noisy numbers of altered rows, if any: after all else, or before a step that weighs classes by them."""
        own, last = self.plan.diagnostics, self.plan.mechanism
        if own is None or first != (last is not None and last.stage.balances):
            return []
        law, apart = ("gaussian", _distance) if own.loss.mu else ("whole-laplace", partial(_distance, order=1))
        form = law, own.noise_scale, float(own.n), len(own.properties)
        return [_Expected(ALTERED, form, own.sensitivity, None, apart)]

    def _against_plan(self, run: _Run) -> None:
        """Noise is added as the plan says."""
        if run.ended is not None:
            return
        expected, shares = self._expected(), self._shares()
        end = len(run.asked) - len(shares)
        asked = run.asked[: len(expected)] + run.asked[end:]
        forms = [(a.law, a.noise_scale, a.bound, a.value.size) for a in asked]
        self._differs(EXECUTION, "noisy answers as planned", forms != [one.form for one in [*expected, *shares]])
        mechanism = self.plan.mechanism
        if mechanism is None:
            self._differs(EXECUTION, "noisy answers as planned", end != len(expected))
            return
        asked = run.asked[len(expected) : end]
        for words in misasked(mechanism.question, mechanism.noise_scale, asked):
            self._differs(mechanism.name, words, True)

    def _compare(self, one: _Run, other: _Run, slots: tuple[int, ...]) -> None:
        """Two neighbouring datasets, of which everything but the exact answers must be the same."""
        self.pairs += 1
        self._differs(EXECUTION, "exceptions", one.ended != other.ended)
        self._differs(EXECUTION, "warnings", one.warned != other.warned)
        self._keeps(one.kept, other.kept)
        if one.ended or other.ended:
            return
        forms = [[(a.law, a.noise_scale, a.bound, a.value.shape, a.coins) for a in run.asked] for run in (one, other)]
        self._differs(EXECUTION, "number, order and shapes of noisy answers", forms[0] != forms[1])
        plan = self.plan
        self._released(plan, one, other)
        if forms[0] != forms[1]:
            return
        holding = self._steps(plan, one, other, slots)
        expected, shares = self._expected(), self._shares()
        end = len(one.asked) - len(shares)
        for told, a, b in zip(shares, one.asked[end:], other.asked[end:]):
            self._note(told.name, "exact answer", share(told.apart(a.value, b.value), told.claimed))
        for told, a, b in zip(expected, one.asked, other.asked):
            if told.at is None or told.at <= holding:
                apart = told.apart(a.value, b.value)
                excess = EXCESS if told.at is not None else MARGIN_EXCESS
                self._note(told.name, "exact answer", share(apart, told.claimed), excess)
        if holding < len(plan.steps):
            return
        self.counted += 1
        if plan.mechanism is not None and slots:
            answers = one.asked[len(expected) : end], other.asked[len(expected) : end]
            used = replayed_answers(plan.mechanism, *plan.end, *answers)
            if used is not None:
                self._note(plan.mechanism.name, "exact answers", share(*used))

    def _released(self, plan: Plan, one: _Run, other: _Run) -> None:
        """With the same answers the same is released, byte by byte."""
        if plan.mechanism is not None and law_of(plan.mechanism.question) is None:
            self.skipped[plan.mechanism.name] = "by which law its noise is drawn is not known here"
        for name in sorted(one.released.keys() | other.released.keys()):
            step = name.rpartition(".")[0]
            if step not in self.skipped:
                forms = [held(run.released.get(name)) for run in (one, other)]
                self._differs(step, "what is released, answers being the same", forms[0] != forms[1])

    def _steps(self, plan: Plan, one: _Run, other: _Run, slots: tuple[int, ...]) -> int:
        """Margins and distances, as long as the conditions hold on both; how many steps these were."""
        for position, (step, mine, yours) in enumerate(zip(plan.steps, one.rows, other.rows)):
            margins = [(condition.margin(mine[0]), condition.margin(yours[0])) for condition in step.way.conditions]
            for condition, (a, b) in zip(step.way.conditions, margins):
                change = abs(a - b) if a != b else 0.0
                self._note(step.name, f"margin of {condition.name}", change, MARGIN_EXCESS if slots else 0.0)
            if any(min(pair) <= 0 for pair in margins):
                return position
            self._step(step, (mine[1], yours[1]), slots)
        return len(plan.steps)

    def _step(self, step: PlannedStep, out: tuple[Rows, Rows], slots: tuple[int, ...]) -> None:
        """Shape, domain and distance behind one step."""
        domain = step.way.domain
        shapes = any(rows.X.shape != (domain.n, domain.d) for rows in out)
        self._differs(step.name, "shape of the rows", shapes)
        if shapes:
            return
        for name, (value, claimed) in outgrown(out, domain).items():
            self._note(step.name, name, share(value, claimed))
        gaps = any(rows.incomplete.sum() > domain.missing_rows for rows in out)
        few = any(np.count_nonzero(rows.weight) < domain.min_present for rows in out)
        self._differs(step.name, "gaps and rows that are present", gaps or few)
        if not slots:
            self._differs(step.name, "rows in a second run", held(out[0]) != held(out[1]))
            return
        free = slots if self.plan.domain.adjacency.row_level else ()
        for name, (value, claimed) in attained(out, free, self.plan.distance, step.way.distance).items():
            self._note(step.name, name, share(value, claimed))
