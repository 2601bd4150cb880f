"""What a plan claims, part by part: its stages, its releases, all stages together, what its mechanism answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import numpy as np

from ppdp.audit.claims import StabilityTarget, Uses, lengths
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.noisy_statistics import STATISTICS
from ppdp.data.rows import Array, Rows
from ppdp.data.statistics import row_norms
from ppdp.exceptions import InvalidParameter, PpdpError
from ppdp.pipeline.planning.plan import Plan
from ppdp.pipeline.planning.route import PlannedRelease, PlannedStep
from ppdp.testing.answers import exact_answers, law_of
from ppdp.testing.changes import far_changes
from ppdp.testing.neighbours import Pair, World, allowances, finite, kept, measured
from ppdp.testing.stages import through
from ppdp.transformers.fit_mode import FitMode
from ppdp.transformers.rowwise.ranges import resolve_ranges

ENTRANCE = "diagnostics", "they are counted at the entrance, and audit(pipeline, data=...) compares them"
UNKNOWN = "by which law its noise is drawn is not known here, so its answers without noise are not compared"


@dataclass(frozen=True)
class _Part:
    """One claim of a stage or a plan; of pairs that are further apart than its world allows nothing is claimed."""

    name: str
    world: World
    measure: Callable[[Pair], Uses | None]

    def uses(self, pair: Pair) -> Uses | None:
        """What a pair attains; None where a condition fails on one of the two datasets."""
        return self.measure(pair) if self.world.allows(pair) else None


def plan_targets(plan: Plan) -> tuple[list[StabilityTarget], list[tuple[str, str]]]:
    """Everything that a plan claims, and what cannot be attacked by distances: (name, reason)."""
    targets = [stage_target(f"{s.name}, {s.way.name}", s.stage, s.way, _world(s, plan)) for s in plan.steps]
    targets += [_release_target(plan, release) for release in plan.releases]
    if len(plan.steps) > 1:
        targets.append(_rows_target(plan))
    skipped = [] if plan.diagnostics is None else [ENTRANCE]
    if plan.mechanism is None:
        return targets, skipped
    if law_of(plan.mechanism.question) is None:
        return targets, [*skipped, (plan.mechanism.name, UNKNOWN)]
    return [*targets, answer_target(plan)], skipped


def _world(step: PlannedStep, plan: Plan) -> World:
    """Pairs before a step."""
    gaps = step.domain.missing_rows if step.way.record.takes_gaps(step.domain) else 0
    return _drawn(step.domain, step.distance, gaps, [step], plan)


def _entrance(plan: Plan) -> World:
    """Pairs before the first step; without steps before the mechanism."""
    domain = plan.domain
    return _drawn(domain, domain.neighbours, domain.missing_rows, plan.steps, plan)


def _drawn(domain: Domain, distance: Distance, gaps: int, steps: Sequence[PlannedStep], plan: Plan) -> World:
    scales = tuple(scale for step in steps for scale in lengths(step.stage, step.way))
    classes, target = plan.domain.classes, plan.domain.y_range
    labels = tuple(map(float, range(len(classes)))) if classes else (-1.0, 0.0, 1.0) if target else (0.0, 1.0)
    world = World(domain, distance, gaps, scales, _unit(steps[0].stage) if steps else 1.0, labels)
    return world if plan.domain.adjacency.row_level else _aimed(world, steps)


def _unit(stage: Any) -> float:
    """Usual length of a row before a stage that bounds it: the largest end of its public ranges."""
    ranges = getattr(stage, "ranges", None)
    ends = list(ranges.values()) if isinstance(ranges, Mapping) else ranges
    try:
        return float(np.abs(np.asarray([] if ends is None else ends, dtype=np.float64)).max(initial=0.0)) or 1.0
    except (TypeError, ValueError):  # ranges of some columns only
        return 1.0


def _aimed(world: World, steps: Sequence[PlannedStep]) -> World:
    """Pairs of which some are changed to where the public ones among the first steps send them far apart."""
    d, box, ranges = world.domain.d, None, getattr(steps[0].stage, "ranges", None) if steps else None
    with suppress(PpdpError):  # none are declared, or of some columns only
        low, high = resolve_ranges(ranges, d, world.domain.feature_names, "").T
        box = low, high
    start = np.zeros(d) if box is None else box[0] / 2 + box[1] / 2
    return replace(world, box=box, far=tuple(reaching(steps, start, world.distance)))


def reaching(steps: Sequence[PlannedStep], row: Array, distance: Distance) -> Array:
    """Changes of a row that go far behind those of the first steps that are public."""

    def mapped(X: Array) -> Array:
        rows = Rows.of(X)
        for step in takewhile(lambda step: step.way.name == "public", steps):
            rows = through(step.stage, step.way, step.domain, (rows, rows))[0]
        return rows.X

    with suppress(Exception):  # the attack says what is raised
        return far_changes(mapped, row, distance)
    return np.empty((0, len(row)))


def stage_target(name: str, stage: Any, way: FitMode, world: World) -> StabilityTarget:
    """What a stage certifies of one of its ways: distance, norms and entries."""

    def measure(pair: Pair) -> Uses | None:
        if any(condition.margin(rows) <= 0 for condition in way.conditions for rows in pair):
            return None
        out = through(stage, way, world.domain, pair)
        wanted = world.domain.n, way.domain.d
        for rows in out:
            if rows.X.shape != wanted or rows.weight.shape != wanted[:1]:
                problem = f"its output has the shape {rows.X.shape} instead of {wanted}."
                fix = "keep every slot, of deleted rows too, and certify the width of the output."
                raise InvalidParameter(problem, stage=name, fix=fix)
        with np.errstate(all="ignore"):
            return kept(out, pair, world, way.domain, way.distance)

    return _Part(name, world, measure)


def _behind(steps: Sequence[PlannedStep], pair: Pair, margin: float = 0.0) -> Pair | None:
    """Both datasets behind some steps; None where a condition has no larger margin than this."""
    untouched = True
    for step in steps:
        way = step.way
        if untouched and (way.name != "public" or way.distance.moved):
            untouched = False
            pair = (replace(pair[0], raw=pair[0].X), replace(pair[1], raw=pair[1].X))
        if any(condition.margin(rows) <= margin for condition in way.conditions for rows in pair):
            return None
        pair = through(step.stage, way, step.domain, pair)
    return pair


def _rows_target(plan: Plan) -> StabilityTarget:
    """The distance behind all stages of a plan."""
    world = _entrance(plan)

    def measure(pair: Pair) -> Uses | None:
        out = _behind(plan.steps, pair)
        return None if out is None else attained(out, world.free, world.distance, plan.end[1])

    return _Part("all stages", world, measure)


def attained(out: Pair, free: Collection[int], before: Distance, behind: Distance) -> Uses:
    """What two datasets attain of the distance behind some stages; ``free`` slots, and others ``before`` apart."""
    granted = behind.by_position()
    move = row_norms(finite(out[0].X) - finite(out[1].X))
    move[(out[0].weight > 0) != (out[1].weight > 0)] = 0.0  # they count as toggled
    move[list(free)] = math.inf
    further = max(0, int(granted.replaced - before.replaced))
    most = np.count_nonzero(move) if before.moved > granted.moved == 0 else len(free) + further
    torn = np.argsort(-move, kind="stable")[:most]
    claimed = allowances(granted)
    return {name: (value, claimed[name]) for name, value in measured(out, torn.tolist(), granted.moves).items()}


def _release_target(plan: Plan, release: PlannedRelease) -> StabilityTarget:
    """The sensitivity of a statistic that is released."""
    step = plan.steps[release.at]
    name = f"{step.name}, release of {release.statistic}"
    return _Part(name, _world(step, plan), lambda pair: {"answer": _released(release, step.domain, pair)})


def _released(release: PlannedRelease, domain: Domain, pair: Pair) -> tuple[float, float]:
    """How far apart the exact answers to a release are, and what is claimed."""
    statistic = STATISTICS[release.statistic]
    one, other = (statistic.measure(rows, domain, release.parameters) for rows in pair)
    return statistic.apart(one, other), release.sensitivity


def answer_target(plan: Plan, margin: float = 0.0) -> StabilityTarget:
    """How far apart the answers are that a plan gives without noise, against what is claimed of them.

    Of a Gaussian mechanism that is the L2 sensitivity (over the batches of a pass the root of the mean square), of
    sampled batches that of the mean gradient of all rows, of Laplace noise the L1 shift, of a choice the range of the
    changes of utilities. Of a plan without a mechanism: the statistics that it releases. Every condition has a larger
    margin than this.
    """
    last = plan.mechanism
    exact = None if last is None else exact_answers(last, *plan.end)

    def released(pair: Pair) -> Iterator[tuple[float, float]]:
        for release in plan.releases:
            before = _behind(plan.steps[: release.at], pair, margin)
            if before is not None:
                yield _released(release, plan.steps[release.at].domain, before)

    def measure(pair: Pair) -> Uses | None:
        out = _behind(plan.steps, pair, margin)
        if out is None:
            return None
        if exact is None:
            return {"answer": max(released(pair), key=lambda use: use[0] / use[1], default=(0.0, 1.0))}
        return {"answer": (exact.apart(out), exact.claimed)}

    return _Part("releases" if last is None else f"{last.name}, end to end", _entrance(plan), measure)
