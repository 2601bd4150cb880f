"""Routes: one way for every stage, with the releases and conditions that follow."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from heapq import heappop, heappush
from itertools import count
from operator import le
from typing import Any

from ppdp.bounds import lookup
from ppdp.bounds.column_groups import domain_of, entries_of
from ppdp.bounds.release import BOX_WEIGHT
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import AT, WAYS
from ppdp.data.noisy_statistics import STATISTICS
from ppdp.data.unit_conversion import Columns
from ppdp.exceptions import PpdpError, UnsupportedOrder
from ppdp.transformers.fit_mode import Condition, FitMode, StatisticRequest
from ppdp.transformers.stage import modes_of

RANK = {way: at for at, way in enumerate(WAYS)}


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A stage with the way it goes, and what is true before it."""

    name: str
    stage: Any
    way: FitMode
    domain: Domain
    distance: Distance


@dataclass(frozen=True, slots=True)
class PlannedRelease:
    """A statistic of rows in front of step ``at``, released once for the steps ``serves``; "fit" if one needs it."""

    at: int
    statistic: str
    purpose: str
    serves: tuple[int, ...]
    parameters: dict[str, Any]
    sensitivity: float
    mu: float = 0.0
    noise_scale: float = 0.0
    failure: float | None = None  # where only what exceeds a threshold is released, its part of delta
    threshold: float | None = None


@dataclass(frozen=True, slots=True)
class Route:
    """One way for every stage, or for the first of them."""

    steps: tuple[PlannedStep, ...]  # stages with their ways
    releases: tuple[PlannedRelease, ...]  # one for each run of steps that ask, with only affine steps between
    domain: Domain  # behind the last step
    distance: Distance  # behind the last step
    # Whom the last release serves, as long as a further step may share it.
    run: tuple[tuple[int, StatisticRequest], ...] = ()

    @property
    def conditional(self) -> tuple[int, ...]:
        """Positions of the steps that assume something of the data."""
        return tuple(i for i, step in enumerate(self.steps) if step.way.conditions)

    @property
    def conditions(self) -> tuple[tuple[str, Condition], ...]:
        """Every condition with the name of its step."""
        return tuple((step.name, condition) for step in self.steps for condition in step.way.conditions)

    @property
    def offered(self) -> bool:
        """Whether it can be executed: no condition may rest on a release that itself rests on one."""
        if not self.conditional:
            return True
        first, last = self.conditional[0], self.conditional[-1]
        return not any(r.purpose == "fit" and first < r.at and min(r.serves) <= last for r in self.releases)

    @property
    def fails(self) -> bool:
        """Whether something is released only above a threshold, which may fail."""
        return any(lookup(STATISTICS[r.statistic].formula, "release").failure is not None for r in self.releases)

    @property
    def gate_after_release(self) -> bool:
        """Whether a condition looks at rows that an earlier release has shaped (then deltas add)."""
        if not self.conditional:
            return False
        return any(r.purpose == "fit" and min(r.serves) < self.conditional[-1] for r in self.releases)

    @property
    def label(self) -> str:
        """The ways of the stages that have a choice."""
        return _label((s.name, s.way.name) for s in self.steps)

    @property
    def rank(self) -> tuple[int, ...]:
        """Order among equals: public before noisy before exact."""
        return tuple(RANK[s.way.name] for s in self.steps)


@dataclass(frozen=True, slots=True)
class Alternative:
    """One line of the comparison of routes."""

    route: str
    noise_scale: float | None
    status: str
    reason: str = ""


class RouteSearch:
    """Routes through stages from one entrance, each worked out once; new rows count only if it ``predicts``.

    ``clips`` says that the last step clips what rows add by itself.
    """

    def __init__(self, domain: Domain, distance: Distance, *, predicts: bool = True, clips: bool = False) -> None:
        self.start, self.predicts, self.clips = Route((), (), domain, distance), predicts, clips
        self._known: dict[tuple[int, Domain, bool, Distance], tuple[FitMode, ...]] = {}

    def fit_modes(self, route: Route, name: str, stage: Any) -> tuple[FitMode, ...]:
        """The ways of a stage behind a route; errors tell the step's name, if that says more than its class."""
        key = id(stage), route.domain, route.domain.centred, route.distance
        if key not in self._known:
            try:
                self._known[key] = modes_of(stage, route.domain, route.distance)
            except PpdpError as error:
                raise (error if name == type(stage).__name__.lower() else error.at(name)) from None
            if stage.keeps_columns and (route.domain.indicators or route.domain.layout):
                self._known[key] = tuple(way.behind(partial(_same_columns, route.domain)) for way in self._known[key])
        return self._known[key]

    def extended(self, route: Route, name: str, stage: Any, way: FitMode, *, last: bool) -> Route:
        """The route and one more stage, which may be the last."""
        at, run, releases = len(route.steps), route.run, route.releases
        moments = bool(run) and STATISTICS[run[0][1].statistic].moments
        if moments and way.shared is not None and way.request and way.request.group == run[-1][1].group == "":
            way = way.shared
        if last and self.clips and way.longer is not None:
            way = way.longer
        steps = (*route.steps, PlannedStep(name, stage, way, route.domain, route.distance))
        if (request := way.request) is not None and (self.predicts or way.name == "noisy"):
            moments &= STATISTICS[request.statistic].moments
            shared = run and (run[-1][1].group == request.group if moments else run[-1] == (at - 1, request))
            run, releases = ((*run, (at, request)), releases[:-1]) if shared else (((at, request),), releases)
            releases = (*releases, _merged(run, steps))
        return Route(steps, releases, way.domain, way.distance, run if way.affine else ())

    def routes(self, stages: Sequence[tuple[str, Any]], kept: Callable[[list[Route]], list[Route]]) -> list[Route]:
        """The routes through the stages; of those through the first ones only what ``kept`` returns is continued."""
        refused: list[UnsupportedOrder] = []
        dropped = False
        kept_routes = [self.start]
        for at, (name, stage) in enumerate(stages, 1):
            further: list[Route] = []
            for route in kept_routes:
                try:
                    ways = self.fit_modes(route, name, stage)
                except UnsupportedOrder as error:
                    refused.append(error)
                    continue
                further += [self.extended(route, name, stage, way, last=at == len(stages)) for way in ways]
            kept_routes = kept(further)
            dropped |= len(kept_routes) < len(further)
        if refused and not kept_routes and not dropped:
            raise refused[0]
        return kept_routes

    def replayed(self, route: Route, stages: Sequence[tuple[str, Any]], names: Sequence[str]) -> Route:
        """The route, continued by these ways of these stages; refused if a stage cannot go this way here."""
        for at, ((name, stage), wanted) in enumerate(zip(stages, names, strict=True), 1):
            way = next((way for way in self.fit_modes(route, name, stage) if way.name == wanted), None)
            if way is None:
                raise UnsupportedOrder(f"there is no {wanted} fit mode here.", stage=name, fix="fit_mode='auto'.")
            route = self.extended(route, name, stage, way, last=at == len(stages))
        return route

    def changes(self, route: Route) -> Iterator[Route | Alternative]:
        """The route with one stage going another way, once for every such way; or why that is impossible."""
        before = self.start
        names = [step.way.name for step in route.steps]
        stages = [(step.name, step.stage) for step in route.steps]
        for i, (step, stage) in enumerate(zip(route.steps, stages)):
            for way in self.fit_modes(before, *stage):
                if way.name == step.way.name:
                    continue
                changed = self.extended(before, *stage, way, last=i + 1 == len(stages))
                try:
                    yield self.replayed(changed, stages[i + 1 :], names[i + 1 :])
                except UnsupportedOrder as error:
                    ways = [*names[:i], way.name, *names[i + 1 :]]
                    label = _label(zip((name for name, _ in stages), ways))
                    yield Alternative(label, None, "not offered", error.message)
            before = self.extended(before, *stage, step.way, last=False)  # it is as it was chosen

    def mostly(self, way: str, stages: Sequence[tuple[str, Any]]) -> Route:
        """A route on which the fewest stages that could go this way ("exact" or "noisy") go another one."""
        order = count()
        waiting = [(0, 0, next(order), self.start)]
        seen: dict[tuple[int, Domain], list[tuple[float, ...]]] = {}
        refused: list[UnsupportedOrder] = []
        while waiting:
            passed, _, _, route = heappop(waiting)
            depth, here = len(route.steps), route.distance.components
            if depth == len(stages):
                return route
            others = seen.setdefault((depth, route.domain), [])
            if any(all(map(le, earlier, here)) for earlier in others):  # passed over no more, and no further apart
                continue
            others.append(here)
            try:
                ways = self.fit_modes(route, *stages[depth])
            except UnsupportedOrder as error:
                refused.append(error)
                continue
            could = any(candidate.name == way for candidate in ways)
            for candidate in ways:
                further = self.extended(route, *stages[depth], candidate, last=depth + 1 == len(stages))
                heappush(waiting, (passed + (could and candidate.name != way), -depth - 1, next(order), further))
        raise refused[0]


def _label(ways: Iterable[tuple[str, str]]) -> str:
    """What a route is called, from the names of stages and ways."""
    return ", ".join(f"{name} {way}" for name, way in ways if way != "public") or "public stages only"


def _same_columns(before: Domain, behind: Domain) -> Domain:
    """The domain behind a stage that keeps every column in its place, with what is said of columns."""
    layout = [replace(part, row_norm=None) for part in before.layout]
    return behind.with_indicators(before.indicators).laid_out(layout)


def _squares_pay(domain: Domain) -> bool:
    """Whether squares that are weighed by the bound of entries carry less noise than the diagonal of the matrix."""
    if domain.entry_bound is None:
        return False
    norm = float(domain.require("row_norm"))
    return domain.entry_bound**2 * math.sqrt(domain.d) / BOX_WEIGHT <= math.sqrt(2) * norm**2


def _merged(run: tuple[tuple[int, StatisticRequest], ...], steps: tuple[PlannedStep, ...]) -> PlannedRelease:
    at, first = run[0]
    step = steps[at]
    asked = {request.statistic.partition(AT)[0] for _, request in run}
    of_group = "".join(first.statistic.partition(AT)[1:])
    domain = domain_of(step.domain, of_group.removeprefix(AT)) if of_group else step.domain
    # Moments of several stages are carried from one to the next, which takes the mean.
    alike = len(run) == 1 or asked in ({"squares"}, {"squares-in-parts"})
    statistic = first.statistic.partition(AT)[0] if alike else "matrix"
    parameters = dict(first.parameters)
    if statistic == "matrix" or any(request.parameters != first.parameters for _, request in run):
        parameters.pop("columns", None)
    if statistic == "squares" and not _squares_pay(entries_of(domain, parameters.get("columns"))):
        statistic = "diagonal"
    statistic += of_group
    formula = STATISTICS[statistic].formula
    sensitivity = float(lookup(formula, "release")(step.domain, step.distance, **parameters))
    purpose = "fit" if any(steps[i].way.name == "noisy" for i, _ in run) else "predict"
    return PlannedRelease(at, statistic, purpose, tuple(i for i, _ in run), parameters, sensitivity)


STEP_ONLY = "no public scale and shift leads back to the table"


def asked(mechanism: Any, start: Domain, route: Route) -> Any:
    """The last step as it is asked behind a route: raw numbers that a user wrote are in the units of its rows."""
    if not mechanism.writes_units:
        return mechanism
    return mechanism.in_units(columns_behind(start, route.steps))


def columns_behind(start: Domain, steps: Sequence[PlannedStep]) -> Columns:
    """Columns behind planned steps; where no map leads back, raw values are blank and ranges are public bounds."""
    columns = _bounded(Columns.raw(_names(start)), start)
    for step in steps:
        domain = step.way.domain
        made = step.stage.public_units(columns, step.way, step.domain)
        columns = Columns.lost(_names(domain), STEP_ONLY) if made is None else replace(made, names=_names(domain))
        columns = _bounded(columns, domain)
    return columns


def _bounded(columns: Columns, domain: Domain) -> Columns:
    bound = min(domain.row_norm or math.inf, domain.entry_bound or math.inf)
    return columns.within(-bound, bound)


def _names(domain: Domain) -> tuple[str, ...]:
    return domain.feature_names or tuple(f"x{i}" for i in range(domain.d))
