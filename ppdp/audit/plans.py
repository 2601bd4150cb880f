"""What a plan claims, part by part: its stages, its releases, all stages together, what its mechanism answers."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.audit.claims import StabilityTarget, StageTarget, Uses, lengths
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.releases import STATISTICS
from ppdp.data.statistics import row_norms
from ppdp.pipeline.planning.plan import Plan
from ppdp.pipeline.planning.route import PlannedRelease, PlannedStep
from ppdp.testing.answers import Exact, exact_answers, law_of_answers
from ppdp.testing.neighbours import Pair, World, measured, through

__all__ = ["AnswerTarget", "ReleaseTarget", "RowsTarget", "attained", "plan_targets"]

Array = NDArray[np.float64]

UNKNOWN = "by which law its noise is drawn is not known here, so its answers without noise are not compared"


def plan_targets(plan: Plan) -> tuple[list[StabilityTarget], list[tuple[str, str]]]:
    """Everything that a plan claims, and what cannot be attacked by distances.

    Parameters
    ----------
    plan : Plan
        Made before any data.
    """
    targets: list[StabilityTarget] = [
        StageTarget(f"{step.name}, {step.way.name}", step.stage, step.way, _world(step, plan)) for step in plan.steps
    ]
    targets += [ReleaseTarget.of(plan, release) for release in plan.releases]
    if len(plan.steps) > 1:
        targets.append(RowsTarget("all stages", plan, _entrance(plan)))
    if plan.mechanism is None:
        return targets, []
    if law_of_answers(plan.mechanism.question) is None:
        return targets, [(plan.mechanism.name, UNKNOWN)]
    return [*targets, AnswerTarget.of(plan)], []


def _world(step: PlannedStep, plan: Plan) -> World:
    """Pairs before a step."""
    gaps = step.domain.missing_rows if step.way.record.gaps else 0
    return _drawn(step.domain, step.distance, gaps, [step], plan)


def _entrance(plan: Plan) -> World:
    """Pairs before the first step; without steps before the mechanism."""
    domain = plan.domain
    return _drawn(domain, domain.adjacency.distance, domain.missing_rows, plan.steps, plan)


def _drawn(domain: Domain, distance: Distance, gaps: int, steps: Sequence[PlannedStep], plan: Plan) -> World:
    scales = tuple(scale for step in steps for scale in lengths(step.stage, step.way))
    classes, target = plan.domain.classes, plan.domain.y_range
    labels = tuple(map(float, range(len(classes)))) if classes else (-1.0, 0.0, 1.0) if target else (0.0, 1.0)
    return World(domain, distance, gaps, scales, _unit(steps[0].stage) if steps else 1.0, labels)


def _unit(stage: Any) -> float:
    """Usual length of a row before a stage that bounds it: the largest end of its public ranges."""
    ranges = getattr(stage, "ranges", None)
    ends = list(ranges.values()) if isinstance(ranges, Mapping) else ranges
    try:
        return float(np.abs(np.asarray([] if ends is None else ends, dtype=np.float64)).max(initial=0.0)) or 1.0
    except (TypeError, ValueError):  # ranges of some columns only
        return 1.0


@dataclass(frozen=True)
class _Chain:
    """Stages one after the other."""

    steps: Sequence[PlannedStep]

    def behind(self, pair: Pair, margin: float = 0.0, until: int | None = None) -> Pair | None:
        """Both datasets behind the first ``until`` steps; None where a condition fails."""
        untouched = True
        for step in self.steps[:until]:
            way = step.way
            if untouched and (way.name != "public" or way.distance.moved):
                untouched = False
                pair = (replace(pair[0], raw=pair[0].X), replace(pair[1], raw=pair[1].X))
            if any(condition.margin(rows) <= margin for condition in way.conditions for rows in pair):
                return None
            pair = through(step.stage, way, step.domain, pair)
        return pair


@dataclass(frozen=True)
class RowsTarget:
    """The distance behind all stages of a plan."""

    name: str
    plan: Plan
    world: World

    def uses(self, pair: Pair) -> Uses | None:
        """What a pair attains; None where a condition fails on one of the two datasets."""
        out = _Chain(self.plan.steps).behind(pair) if self.world.allows(pair) else None
        if out is None:
            return None
        return attained(out, self.world.free, self.world.distance, self.plan.end[1])


def attained(out: Pair, free: Collection[int], before: Distance, behind: Distance) -> Uses:
    """What two datasets attain of the distance that is claimed of them.

    Parameters
    ----------
    out : tuple of Rows
        Both of them.
    free : collection of int
        Slots in which they differed at the entrance.
    before, behind : Distance
        At the entrance, and as claimed.
    """
    granted = behind.by_position()
    move = row_norms(np.nan_to_num(out[0].X) - np.nan_to_num(out[1].X))
    move[list(free)] = math.inf
    further = int(granted.replaced - before.replaced)
    torn = np.argsort(-move, kind="stable")[: len(free) + max(0, further)]
    claimed = granted.to_dict() | {"slots": granted.replaced + granted.toggled}
    return {name: (value, claimed[name]) for name, value in measured(out, torn.tolist()).items()}


@dataclass(frozen=True)
class ReleaseTarget:
    """The sensitivity of a statistic that is released."""

    name: str
    release: PlannedRelease
    world: World

    @classmethod
    def of(cls, plan: Plan, release: PlannedRelease) -> ReleaseTarget:
        """One release of a plan."""
        step = plan.steps[release.at]
        return cls(f"{step.name}, release of {release.statistic}", release, _world(step, plan))

    def uses(self, pair: Pair) -> Uses | None:
        """How far apart the two exact answers are."""
        if not self.world.allows(pair):
            return None
        return {"answer": (_apart(self.release, self.world.domain, pair), self.release.sensitivity)}


def _apart(release: PlannedRelease, domain: Domain, pair: Pair) -> float:
    measure = STATISTICS[release.statistic].measure
    one, other = (measure(rows, domain, release.parameters) for rows in pair)
    return float(np.linalg.norm(one - other))


@dataclass(frozen=True)
class AnswerTarget:
    """How far apart the answers are that a plan gives without noise, against what is claimed of them.

    Of a Gaussian mechanism that is the L2 sensitivity (over the batches of a pass the root of the mean square), of
    sampled batches that of the mean gradient of all rows, of Laplace noise the L1 shift, of a choice the range of the
    changes of utilities. Of a plan without a mechanism: the statistics that it releases.
    """

    name: str
    plan: Plan
    world: World
    margin: float

    @classmethod
    def of(cls, plan: Plan, margin: float = 0.0) -> AnswerTarget:
        """What a plan answers; every condition has a larger margin than this."""
        name = "releases" if plan.mechanism is None else f"{plan.mechanism.name}, end to end"
        return cls(name, plan, _entrance(plan), margin)

    @cached_property
    def _exact(self) -> Exact:
        """What the mechanism answers without noise, and what is claimed of it."""
        assert self.plan.mechanism is not None
        return exact_answers(self.plan.mechanism, *self.plan.end)

    def uses(self, pair: Pair) -> Uses | None:
        """What a pair attains; None where a condition fails on one of the two datasets."""
        out = _Chain(self.plan.steps).behind(pair, self.margin) if self.world.allows(pair) else None
        if out is None:
            return None
        if self.plan.mechanism is None:
            return {"answer": max(self._released(pair), key=lambda use: use[0] / use[1], default=(0.0, 1.0))}
        return {"answer": (self._exact.apart(out), self._exact.claimed)}

    def _released(self, pair: Pair) -> Iterator[tuple[float, float]]:
        for release in self.plan.releases:
            before = _Chain(self.plan.steps).behind(pair, self.margin, release.at)
            if before is not None:
                yield _apart(release, self.plan.steps[release.at].domain, before), release.sensitivity
