"""Which routes through the first stages are worth continuing: those that no other one dominates.

A route dominates another one through the same stages if, whatever follows, it cannot end with more noise, and is
preferred where both end with the same. That is decided by what all later bounds are monotone in: the distance at its
end, and what its releases and its conditions take from the budget. Of very many that remain the first are continued, in
the order of what they take.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from operator import le
from typing import Any

from ppdp.data.noisy_statistics import STATISTICS
from ppdp.exceptions import ImpossibleBudget
from ppdp.pipeline.planning.budget import LARGEST_ERROR, least_share
from ppdp.pipeline.planning.route import PlannedRelease, Route

LISTED = 16  # up to so many routes are all solved, and all listed
MOST = 64  # are continued: of scalers in many groups every choice makes another domain, so that none dominates


@dataclass(slots=True)
class Frontier:
    """Keeps the routes that are not dominated, once there are too many to solve them all."""

    mus: tuple[float, float]  # the whole budget, where deltas of gate and rest do not add, and where they do
    shares: tuple[float, ...]  # what one release may cost, the least first; () if releases share everything
    gate: float  # share of the budget
    unusable: Callable[[Route], str]  # why a route cannot be executed, whatever follows; empty if it can
    vague: bool  # whether routes whose released statistics are too noisy are kept
    listed: int = LISTED  # up to so many routes are all kept
    reasons: dict[str, str] = field(default_factory=dict)  # why routes were dropped for which there is no hope
    complete: bool = True  # whether no route was dropped so far
    none_dropped: bool = True  # whether none was dropped because it is vague
    _known: dict[int, tuple[PlannedRelease, tuple[float, ...]]] = field(default_factory=dict)

    def __call__(self, found: list[Route]) -> list[Route]:
        """The routes, all through the same stages, that are to be continued, in their order."""
        if len(found) <= self.listed:
            return found
        self.complete = False
        groups: dict[Hashable, list[tuple[tuple[float, ...], tuple[int, ...], int]]] = {}
        for at, route in enumerate(found):
            reason = self.unusable(route)
            if not reason:
                try:
                    weight = self._weight(route)
                except ImpossibleBudget as error:
                    reason = error.message
            if reason:
                self.reasons.setdefault(reason, f"{route.label}, ...")
                continue
            groups.setdefault((route.domain, _shared(route)), []).append((weight, route.rank, at))
        kept = [one for group in groups.values() for one in _undominated(group)]
        return [found[at] for at in sorted(at for *_, at in sorted(kept)[:MOST])]

    def _weight(self, route: Route) -> tuple[float, ...]:
        """What a route is compared by, less is better; refuses one whose releases leave nothing or are too noisy."""
        closed = route.releases[:-1] if route.run else route.releases
        prices = [self._price(release, route) for release in closed]
        single, adding, draws = (sum(price[i] for price in prices) for i in range(3))
        vague = [max((price[i] for price in prices), default=0.0) for i in (3, 4)]
        conditional = route.conditional
        if self.shares and single >= (1.0 - self.gate if conditional else 1.0):
            raise ImpossibleBudget("the releases use the whole budget.")
        if self.shares and vague[0] and not self.vague:
            self.none_dropped = False
            raise ImpossibleBudget("released statistics would be too noisy at this n")
        fitting = [release.at for release in route.releases if release.purpose == "fit"]
        first = conditional[0] if conditional else len(route.steps)
        reach = min(
            (c.largest for step in route.steps if step.stage.chooses for c in step.way.conditions), default=float("inf")
        )
        shared: tuple[float, ...] = ()
        if route.run:
            at = route.run[0][0]
            chosen = any(route.steps[i].stage.chooses for i, _ in route.run)
            shared = at > first, chosen, *route.steps[at].distance.components
        flags = bool(conditional), bool(fitting), any(at > first for at in fitting), route.gate_after_release
        return single, adding, draws, *vague, *flags, -reach, *shared, *route.distance.components

    def _price(self, release: PlannedRelease, route: Route) -> tuple[float, ...]:
        """Two shares of the budget and a number of draws, which add up, and two measures of how vague it is."""
        if id(release) not in self._known:
            # Statistics may be too vague to be offered only for a stage whose way the plan chooses.
            chosen = any(route.steps[i].stage.chooses for i in release.serves)
            step, statistic = route.steps[release.at], STATISTICS[release.statistic]
            domain = step.domain
            size = float(statistic.size(domain, release.parameters))
            if self.shares:
                priced = [least_share(release, domain, step.distance, mu, self.shares) for mu in self.mus]
                vague = (float(chosen and error > LARGEST_ERROR) for _, _, error in priced)
                price = *(share for share, _, _ in priced), size, *vague
            else:
                price = 1.0, 1.0, size, statistic.error(release.sensitivity, domain, release.parameters) * chosen, size
            self._known[id(release)] = release, price
        return self._known[id(release)][1]


def _shared(route: Route) -> Hashable:
    """What a release that further steps may share will become; None if there is none."""
    if not route.run:
        return None
    at, first = route.run[0]
    kinds = frozenset(request.statistic for _, request in route.run)
    parameters = tuple(sorted((name, repr(value)) for name, value in first.parameters.items()))
    fits = any(route.steps[i].way.name == "noisy" for i, _ in route.run)
    return route.steps[at].domain, first.statistic, kinds, parameters, fits, len(route.run) > 1


def _undominated(group: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The routes that no other one of the group dominates."""
    kept: list[tuple[Any, ...]] = []
    for weight, rank, at in sorted(group):
        if not any(rival[1] <= rank and all(map(le, rival[0], weight)) for rival in kept):
            kept.append((weight, rank, at))
    return kept
