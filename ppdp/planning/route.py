"""Routes: one way for every stage, with the releases and conditions that follow."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ppdp.bounds import lookup
from ppdp.bounds.release import BOX_WEIGHT
from ppdp.conditions import Condition
from ppdp.distance import Distance
from ppdp.domain import Domain
from ppdp.exceptions import PpdpError, UnsupportedOrder
from ppdp.planning.ways import Ask, Way
from ppdp.release_points import STATISTICS

__all__ = ["PlannedRelease", "PlannedStep", "Route", "routes"]

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
    """One way for every stage."""

    steps: tuple[PlannedStep, ...]
    releases: tuple[PlannedRelease, ...]
    domain: Domain
    distance: Distance

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
        named = [f"{s.name} {s.way.name}" for s in self.steps if s.way.name != "public"]
        return ", ".join(named) or "public stages only"

    @property
    def rank(self) -> tuple[int, ...]:
        """Order among equals: public before noisy before exact."""
        return tuple(RANK[s.way.name] for s in self.steps)


def routes(
    stages: Sequence[tuple[str, Any]], domain: Domain, distance: Distance, *, predicts: bool = True
) -> Iterator[Route]:
    """Every route through the stages.

    Parameters
    ----------
    stages : sequence of (name, stage)
        Without the mechanism.
    domain, distance : Domain, Distance
        At the entrance.
    predicts : bool, default=True
        Whether new rows will be mapped; if not, nothing is released for prediction alone.

    Raises
    ------
    UnsupportedOrder
        If a stage cannot stand where it does, whatever the ways of the stages before it.
    """
    refused: list[UnsupportedOrder] = []
    found = False
    for steps, end, far in _paths(tuple(stages), domain, distance, refused):
        found = True
        yield Route(steps, _releases(steps, predicts), end, far)
    if refused and not found:
        raise refused[0]


def _paths(
    stages: tuple[tuple[str, Any], ...], domain: Domain, distance: Distance, refused: list[UnsupportedOrder]
) -> Iterator[tuple[tuple[PlannedStep, ...], Domain, Distance]]:
    if not stages:
        yield (), domain, distance
        return
    (name, stage), rest = stages[0], stages[1:]
    try:
        ways = stage.ways(domain, distance)
    except UnsupportedOrder as error:
        refused.append(_named(error, name, stage))
        return
    except PpdpError as error:
        raise _named(error, name, stage) from None
    for way in ways:
        step = PlannedStep(name, stage, way, domain, distance)
        for steps, end, far in _paths(rest, way.domain, way.distance, refused):
            yield (step, *steps), end, far


def _named(error: E, name: str, stage: Any) -> E:
    """The error with the step's name, if that says more than its class."""
    return error if name == type(stage).__name__.lower() else error.at(name)


def _releases(steps: tuple[PlannedStep, ...], predicts: bool) -> tuple[PlannedRelease, ...]:
    """One release for each run of steps that ask for moments with only affine steps between."""
    runs: list[list[tuple[int, Ask]]] = []
    open_run: list[tuple[int, Ask]] | None = None
    for i, step in enumerate(steps):
        for ask in step.way.asks:
            if ask.purpose == "predict" and not predicts:
                continue
            if open_run is None or not STATISTICS[ask.statistic].moments:
                open_run = []
                runs.append(open_run)
            open_run.append((i, ask))
            if not STATISTICS[ask.statistic].moments:
                open_run = None
        if not step.way.affine:
            open_run = None
    return tuple(_merged(run, steps) for run in runs)


def _squares_pay(domain: Domain) -> bool:
    """Whether squares released alone carry less noise than the diagonal of the whole matrix."""
    if domain.entry_bound is None:
        return False
    norm = float(domain.require("row_norm"))
    return domain.entry_bound**2 * math.sqrt(domain.d) / BOX_WEIGHT <= math.sqrt(2) * norm**2


def _merged(run: list[tuple[int, Ask]], steps: tuple[PlannedStep, ...]) -> PlannedRelease:
    at, first = run[0]
    step = steps[at]
    # Moments of several stages are carried from one to the next, which takes the mean.
    statistic = first.statistic if len(run) == 1 or {ask.statistic for _, ask in run} == {"squares"} else "matrix"
    if statistic == "squares" and not _squares_pay(step.domain):
        statistic = "matrix"
    formula = STATISTICS[statistic].formula
    parameters = dict(first.parameters)
    sensitivity = float(lookup(formula, "release")(step.domain, step.distance, **parameters))
    purpose = "fit" if any(ask.purpose == "fit" for _, ask in run) else "predict"
    return PlannedRelease(at, statistic, purpose, tuple(i for i, _ in run), parameters, sensitivity)
