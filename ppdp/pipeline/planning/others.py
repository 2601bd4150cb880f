"""Routes to set beside the chosen one: with one stage changed, and with as many as can be going one way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from operator import le
from typing import Any

from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.exceptions import UnsupportedOrder
from ppdp.pipeline.planning.route import Offers, Route, label_of

__all__ = ["Impossible", "as_many", "changes", "follow"]


@dataclass(frozen=True, slots=True)
class Impossible:
    """Ways that cannot follow each other, and why."""

    label: str
    reason: str


def changes(route: Route, offers: Offers, *, predicts: bool = True) -> Iterator[Route | Impossible]:
    """The route with one stage going another way, once for every such way.

    Parameters
    ----------
    route : Route
        Through all stages.
    offers : Offers
        Of its stages.
    predicts : bool, default=True
        Whether new rows will be mapped.
    """
    before = Route((), (), route.steps[0].domain, route.steps[0].distance) if route.steps else route
    names = [step.way.name for step in route.steps]
    rest = [(step.name, step.stage) for step in route.steps]
    for i, step in enumerate(route.steps):
        for way in offers(step.name, step.stage, before):
            if way.name == step.way.name:
                continue
            changed = before.then(step.name, step.stage, way, predicts=predicts)
            try:
                yield follow(changed, rest[i + 1 :], names[i + 1 :], offers, predicts=predicts)
            except UnsupportedOrder as error:
                ways = [*names[:i], way.name, *names[i + 1 :]]
                yield Impossible(label_of(zip((name for name, _ in rest), ways)), error.message)
        before = before.then(step.name, step.stage, step.way, predicts=predicts)


def follow(
    route: Route, stages: Sequence[tuple[str, Any]], names: Sequence[str], offers: Offers, *, predicts: bool = True
) -> Route:
    """The route, continued by these ways of these stages.

    Raises
    ------
    UnsupportedOrder
        If a stage cannot go this way here.
    """
    for (name, stage), wanted in zip(stages, names, strict=True):
        way = next((way for way in offers(name, stage, route) if way.name == wanted), None)
        if way is None:
            raise UnsupportedOrder(f"there is no {wanted} way here.", stage=name, fix="statistics='auto'.")
        route = route.then(name, stage, way, predicts=predicts)
    return route


def as_many(
    way: str,
    stages: Sequence[tuple[str, Any]],
    domain: Domain,
    distance: Distance,
    *,
    predicts: bool = True,
    offers: Offers | None = None,
) -> Route:
    """A route on which the fewest stages that could go this way go another one.

    Parameters
    ----------
    way : {"exact", "noisy"}
        Of stages that look at the rows.
    stages : sequence of (name, stage)
        Without the mechanism.
    domain, distance : Domain, Distance
        At the entrance.
    predicts : bool, default=True
        Whether new rows will be mapped.
    offers : Offers, optional
        Of the same stages, as far as they are known.

    Raises
    ------
    UnsupportedOrder
        If there is no route at all.
    """
    offers = offers or Offers()
    order = count()
    waiting = [(0, 0, next(order), Route((), (), domain, distance))]
    seen: dict[tuple[int, Domain], list[tuple[float, ...]]] = {}
    refused: list[UnsupportedOrder] = []
    while waiting:
        passed, _, _, route = heappop(waiting)
        depth, here = len(route.steps), route.distance.components
        if depth == len(stages):
            return route
        others = seen.setdefault((depth, route.domain), [])
        if any(all(map(le, other, here)) for other in others):  # passed over no more, and no further apart
            continue
        others.append(here)
        name, stage = stages[depth]
        try:
            ways = offers(name, stage, route)
        except UnsupportedOrder as error:
            refused.append(error)
            continue
        could = any(found.name == way for found in ways)
        for found in ways:
            further = route.then(name, stage, found, predicts=predicts)
            heappush(waiting, (passed + (could and found.name != way), -depth - 1, next(order), further))
    raise refused[0]
