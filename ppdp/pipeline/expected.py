"""What a plan tells of a fit to come: how far noise will move each released number, and how long it will take."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from ppdp.core.boundary import before_rows
from ppdp.core.checks import number
from ppdp.core.domain import Domain
from ppdp.core.figures import figure
from ppdp.core.formula import AT, of_group
from ppdp.core.private_files import private_path
from ppdp.core.progress import unseen
from ppdp.data.deferred_input import resolve_inputs
from ppdp.data.engine.disk_cache import in_place_of
from ppdp.data.parallel import PIECE
from ppdp.data.public_facts import merged
from ppdp.data.unit_conversion import Answers, Columns, half_width
from ppdp.data.weights import heaviest
from ppdp.mechanisms.query.statistics import MOVED
from ppdp.pipeline.certify import draft_certificate, release_record
from ppdp.pipeline.fit import Fit, Inputs, adjacency_of, checked_steps, plan_of
from ppdp.pipeline.forecast import simulated
from ppdp.pipeline.input_checks import memory
from ppdp.pipeline.planning.plan import Plan
from ppdp.pipeline.planning.route import columns_behind
from ppdp.pipeline.release.answers import statistics_of
from ppdp.privacy.noise.sampler import Noise

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
    if release.statistic.partition(AT)[0] in CHOSEN:
        return _unknown(of_group(release.statistic), f"noise {release.noise_scale:.3g} on what it is made of; {ROWS}")
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


ENTRIES, LEAST, FEWER, RUNS = 2**21, 2**12, 4, 2  # of the larger table; its rows at least; and those of the smaller
BESIDE = ("labels", "ids", "weights")  # columns that stand beside the features
Seconds = tuple[float, float]  # of a clock, and of all processors together


@dataclass(frozen=True, slots=True, repr=False)
class FitTime:
    """About how long a fit takes, in memory and from a Parquet file: seconds of a clock, and of all processors."""

    n_rows: int
    n_features: int
    n_passes: int
    in_memory: Seconds | None  # None if rows cannot come so
    in_blocks: Seconds | None

    @property
    def per_number(self) -> float:
        """Seconds of a processor for each number of a pass, in blocks if they can be."""
        taken = self.in_blocks or self.in_memory
        assert taken is not None
        return taken[1] / (self.n_rows * self.n_features * self.n_passes)

    def __repr__(self) -> str:
        ways = (("in memory", self.in_memory), ("from Parquet, in blocks", self.in_blocks))
        told = [
            f"{figure(one[0], 2)} s {how} ({figure(one[1], 2)} s of processors)" for how, one in ways if one is not None
        ]
        return (
            f"FIT TIME on this machine, by generated rows: {', '.join(told)};"
            f" {figure(1e9 * self.per_number, 2)} ns for each row, column and pass"
        )


def fit_time(pipe: Any, domain: Domain | None) -> FitTime:
    """As :meth:`ppdp.Pipeline.fit_time` has it."""
    pipe = copy(pipe).set_params(domain=merged(domain, pipe.domain), random_state=None)
    with before_rows(), unseen(True), _timed() as once:
        plan = plan_of(pipe, pipe.domain)
        if plan.reads_labels:
            plan = plan_of(pipe, (pipe.domain or Domain()).but(classes=(0, 1)))
        draft_certificate(pipe, plan, seeded=False)
    n = plan.domain.n
    more = min(n, max(LEAST, ENTRIES // plan.domain.d))
    more -= more % PIECE if PIECE < more < n else 0  # whole blocks, of which each has a thread
    sizes = [more] if more == n else [more // FEWER, more]
    times = {}
    for blocks in [False] if plan.in_memory else [False, True]:
        with unseen(True):
            taken = np.array([_least(pipe, _of_fewer(plan, size), blocks, n / size) for size in sizes])
        slope = (taken[-1] - taken[0]) / (sizes[-1] - sizes[0]) if len(sizes) > 1 else 0.0
        whole = np.maximum(taken[-1] + np.maximum(slope, 0.0) * (n - more), 0.0) + np.array(once)
        times[blocks] = float(whole[0]), float(whole[1])
    held = times[False] if 8 * n * plan.domain.d < memory() else None
    return FitTime(n, plan.domain.d, plan.n_passes, held, times.get(True))


def _of_fewer(plan: Plan, n: int) -> Plan:
    """The same plan for fewer rows, as far as time is concerned: batches are as large a part of them."""
    mechanism, most = plan.mechanism, plan.domain.max_missing
    if mechanism is not None and "batch_size" in mechanism.question.parameters:
        parameters = dict(mechanism.question.parameters)
        parameters["batch_size"] = max(1, round(parameters["batch_size"] * n / plan.domain.n))
        mechanism = replace(mechanism, question=replace(mechanism.question, parameters=parameters))
    fewer = plan.domain.but(n_rows=n, max_missing=most and min(n, most))
    return replace(plan, domain=fewer, gate=None, mechanism=mechanism)


def _least(pipe: Any, plan: Plan, blocks: bool, times_as_many: float) -> Seconds:
    """The least time of some runs, after one that nobody counts."""
    rng, n = np.random.default_rng(0), plan.domain.n
    X, y = simulated(pipe, plan, rng, n)
    persons = np.arange(n) if adjacency_of(pipe).bounds_contributions else None
    given = X, y, persons, heaviest(pipe.domain, X)
    with private_path() as path, in_place_of(times_as_many):
        if blocks:
            given = _written(path, *given)
        times = [_once(pipe, plan, given) for _ in range(RUNS + 1)][1:]
    return min(one[0] for one in times), min(one[1] for one in times)


def _once(pipe: Any, plan: Plan, given: Any) -> Seconds:
    steps, own = checked_steps(pipe), copy(pipe)
    with _timed() as taken, resolve_inputs(*given) as opened:
        Fit(own, steps, Inputs.of(own, steps, *opened), plan).execute(Noise())
    return taken[0], taken[1]


def _written(path: str, X: Any, *beside: Any) -> Any:
    """The same rows in a file, and the names of what stands beside the features."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    frame = pd.DataFrame(X) if not hasattr(X, "columns") else X
    frame = frame.set_axis([name if isinstance(name, str) else f"column {name}" for name in frame.columns], axis=1)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    named = [None if own is None else f"{name} of no column" for name, own in zip(BESIDE, beside)]
    for name, own in zip(named, beside):
        if name is not None:
            table = table.append_column(name, pa.array(own))
    pq.write_table(table, path, row_group_size=PIECE * 4)
    return ds.dataset(path, format="parquet"), *named


@contextmanager
def _timed() -> Iterator[list[float]]:
    """Seconds of a clock and of all processors that this context takes, in a list that is filled behind it."""
    taken: list[float] = []
    began, worked = time.perf_counter(), time.process_time()
    yield taken
    taken += [time.perf_counter() - began, time.process_time() - worked]
