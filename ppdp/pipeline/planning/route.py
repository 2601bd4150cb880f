"""Routes: one way for every stage, with the releases and conditions that follow."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ppdp.bounds import lookup
from ppdp.bounds.release import BOX_WEIGHT
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.releases import STATISTICS
from ppdp.exceptions import PpdpError, UnsupportedOrder
from ppdp.transformers.condition import Condition
from ppdp.transformers.way import Ask, Way

__all__ = ["Offers", "PlannedRelease", "PlannedStep", "Route", "label_of", "routes"]

E = TypeVar("E", bound=PpdpError)

RANK = {"public": 0, "noisy": 1, "exact": 2}


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A stage with the way it goes, and what is true before it."""

    name: str
    stage: Any
    way: Way
    domain: Domain
    distance: Distance


@dataclass(frozen=True, slots=True)
class PlannedRelease:
    """A statistic of the rows at the input of step ``at``, released once for the steps ``serves``.

    ``purpose`` is "fit" as soon as one of them is fitted from it.
    """

    at: int
    statistic: str
    purpose: str
    serves: tuple[int, ...]
    parameters: dict[str, Any]
    sensitivity: float
    mu: float = 0.0
    noise_scale: float = 0.0


@dataclass(frozen=True, slots=True)
class Route:
    """One way for every stage, or for the first of them.

    Attributes
    ----------
    steps : tuple of PlannedStep
        Stages with their ways.
    releases : tuple of PlannedRelease
        One for each run of steps that ask for moments with only affine steps between.
    domain, distance : Domain, Distance
        Behind the last step.
    run : tuple of (int, Ask)
        Whom the last release serves, as long as a further step may share it.
    """

    steps: tuple[PlannedStep, ...]
    releases: tuple[PlannedRelease, ...]
    domain: Domain
    distance: Distance
    run: tuple[tuple[int, Ask], ...] = ()

    def then(self, name: str, stage: Any, way: Way, *, predicts: bool = True) -> Route:
        """The route and one more stage; without prediction nothing is released for prediction alone."""
        at, run, releases = len(self.steps), self.run, self.releases
        steps = (*self.steps, PlannedStep(name, stage, way, self.domain, self.distance))
        if (ask := way.ask) is not None and (predicts or way.name == "noisy"):
            moments = STATISTICS[ask.statistic].moments
            run, releases = ((*run, (at, ask)), releases[:-1]) if run and moments else (((at, ask),), releases)
            releases = (*releases, _merged(run, steps))
            run = run if moments else ()
        return Route(steps, releases, way.domain, way.distance, run if way.affine else ())

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
    def gate_after_release(self) -> bool:
        """Whether a condition looks at rows that an earlier release has shaped (then deltas add)."""
        if not self.conditional:
            return False
        return any(r.purpose == "fit" and min(r.serves) < self.conditional[-1] for r in self.releases)

    @property
    def label(self) -> str:
        """The ways of the stages that have a choice."""
        return label_of((s.name, s.way.name) for s in self.steps)

    @property
    def rank(self) -> tuple[int, ...]:
        """Order among equals: public before noisy before exact."""
        return tuple(RANK[s.way.name] for s in self.steps)


def routes(
    stages: Sequence[tuple[str, Any]],
    domain: Domain,
    distance: Distance,
    *,
    predicts: bool = True,
    kept: Callable[[list[Route]], list[Route]] = list,
    offers: Offers | None = None,
) -> list[Route]:
    """The routes through the stages.

    Parameters
    ----------
    stages : sequence of (name, stage)
        Without the mechanism.
    domain, distance : Domain, Distance
        At the entrance.
    predicts : bool, default=True
        Whether new rows will be mapped; if not, nothing is released for prediction alone.
    kept : callable, optional
        ``kept(routes) -> routes``: which routes through the first stages are continued. Default: all.
    offers : Offers, optional
        Of the same stages, as far as they are known.

    Raises
    ------
    UnsupportedOrder
        If a stage cannot stand where it does, whatever the ways of the stages before it.
    """
    refused: list[UnsupportedOrder] = []
    dropped = False
    offers = offers or Offers()
    found = [Route((), (), domain, distance)]
    for name, stage in stages:
        further: list[Route] = []
        for route in found:
            try:
                ways = offers(name, stage, route)
            except UnsupportedOrder as error:
                refused.append(error)
                continue
            further += [route.then(name, stage, way, predicts=predicts) for way in ways]
        found = kept(further)
        dropped |= len(found) < len(further)
    if refused and not found and not dropped:
        raise refused[0]
    return found


def label_of(ways: Iterable[tuple[str, str]]) -> str:
    """What a route is called, from the names of stages and ways."""
    return ", ".join(f"{name} {way}" for name, way in ways if way != "public") or "public stages only"


class Offers:
    """What stages can do behind routes: worked out once for every domain and distance."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, Domain, Distance], tuple[Way, ...]] = {}

    def __call__(self, name: str, stage: Any, route: Route) -> tuple[Way, ...]:
        """The ways of a stage behind a route; errors tell the step's name."""
        key = id(stage), route.domain, route.distance
        if key not in self._known:
            try:
                self._known[key] = stage.ways(route.domain, route.distance)
            except PpdpError as error:
                raise _named(error, name, stage) from None
        return self._known[key]


def _named(error: E, name: str, stage: Any) -> E:
    """The error with the step's name, if that says more than its class."""
    return error if name == type(stage).__name__.lower() else error.at(name)


def _squares_pay(domain: Domain) -> bool:
    """Whether squares released alone carry less noise than the diagonal of the whole matrix."""
    if domain.entry_bound is None:
        return False
    norm = float(domain.require("row_norm"))
    return domain.entry_bound**2 * math.sqrt(domain.d) / BOX_WEIGHT <= math.sqrt(2) * norm**2


def _merged(run: tuple[tuple[int, Ask], ...], steps: tuple[PlannedStep, ...]) -> PlannedRelease:
    at, first = run[0]
    step = steps[at]
    # Moments of several stages are carried from one to the next, which takes the mean.
    statistic = first.statistic if len(run) == 1 or {ask.statistic for _, ask in run} == {"squares"} else "matrix"
    if statistic == "squares" and not _squares_pay(step.domain):
        statistic = "matrix"
    formula = STATISTICS[statistic].formula
    parameters = dict(first.parameters)
    sensitivity = float(lookup(formula, "release")(step.domain, step.distance, **parameters))
    purpose = "fit" if any(steps[i].way.name == "noisy" for i, _ in run) else "predict"
    return PlannedRelease(at, statistic, purpose, tuple(i for i, _ in run), parameters, sensitivity)
