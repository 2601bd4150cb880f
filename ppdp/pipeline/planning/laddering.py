"""Plans whose gate has a ladder: one gate, one budget, and a bound for every rung."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from ppdp.bounds import lookup
from ppdp.core.declared import plain
from ppdp.core.ladder import Ladder
from ppdp.data.facts import Fact
from ppdp.exceptions import ImpossibleBudget, UnsupportedOrder
from ppdp.pipeline.planning.plan import Plan, Rung
from ppdp.pipeline.planning.route import Alternative, Route
from ppdp.pipeline.planning.solve import Solver, no_route

_FIX = "gate='auto' with one threshold, or a ladder of max_missing or min_gap as the only condition."
_NO_WAY = "some rung does not leave this way through the stages."
_NOT_ALONE = "its condition must be the only one of this route."
_RELEASED_BEHIND = "a statistic is released behind it."
_FAILS = "categories that nobody declared are released in front of it, which may fail."


def ladder_plan(solver: Solver, stages: Sequence[tuple[str, Any]], gate: Ladder) -> Plan:
    """The plan of a pipeline whose gate is a ladder, by a solver with a Gaussian gate.

    Every rung has the same gate, the same releases and the same ``mu``, so what is guaranteed does not depend on the
    rung. The route is the one with the least noise on the tightest rung. Refused if the margins of the rungs are not
    one number less public thresholds, or something else depends on the rung.
    """
    tightest, *looser = gate.stages(stages)
    frontier = solver.frontier(vague=True, unusable=lambda route: _hindrance(route, gate), adding=True)
    plans: list[Plan] = []
    problems: list[UnsupportedOrder] = []
    reasons: list[tuple[str, str]] = []
    for route in solver.paths.all(tightest, frontier):
        try:
            plans.append(_climb([route, *_others(route, looser, gate, solver)], gate, solver))
        except UnsupportedOrder as error:
            problems.append(error)
        except ImpossibleBudget as error:
            reasons.append((error.message, route.label))
    if not plans and not reasons:
        found = [*frontier.reasons, "no rung leaves a way through the stages."]
        raise problems[0] if problems else _refused(gate, found[0])
    if not plans:
        raise no_route(reasons, solver.delta)
    best = min(plans, key=lambda plan: plan.rungs[0].mechanism.relative_noise)
    rungs = Fact(f"rungs of {gate.parameter}", plain(gate.values), "declared, loosest shown below")
    return replace(best, facts=(*best.facts, rungs)).with_declared()


def _others(route: Route, looser: Sequence[Sequence[tuple[str, Any]]], ladder: Ladder, solver: Solver) -> list[Route]:
    """The same ways on the other rungs."""
    paths, names = solver.paths, [step.way.name for step in route.steps]
    try:
        return [paths.follow(paths.start, stages, names) for stages in looser]
    except UnsupportedOrder:
        raise _refused(ladder, _NO_WAY) from None


def _hindrance(route: Route, ladder: Ladder) -> str:
    """Why a route cannot be climbed, whatever follows; empty if it can."""
    conditional = route.conditional
    if any(route.steps[i].name != ladder.step for i in conditional):
        return _NOT_ALONE
    if not route.offered:
        return _NO_WAY
    if route.fails:
        return _FAILS
    if conditional and any(release.at > conditional[0] for release in route.releases):
        return _RELEASED_BEHIND
    passed = any(step.name == ladder.step for step in route.steps)
    return _NOT_ALONE if passed and not conditional else ""


def _climb(climb: list[Route], ladder: Ladder, solver: Solver) -> Plan:
    """One route on every rung."""
    if solver.mechanism is None or not solver.asked(climb[0]).question(climb[0].domain).gaussian:
        raise _refused(ladder, "it needs a last step with Gaussian noise.")
    if any(not route.offered for route in climb):
        raise _refused(ladder, _NO_WAY)
    if climb[0].fails:
        raise _refused(ladder, _FAILS)
    if any(route.releases != climb[0].releases for route in climb):
        raise _refused(ladder, "a released statistic depends on the rung.")
    further = _further(climb, ladder)
    if any(release.at > climb[0].conditional[0] for release in climb[0].releases):
        raise _refused(ladder, _RELEASED_BEHIND)
    plans = [solver.with_gate(route, "gaussian", further)[0] for route in climb]
    if any(_shared(plan) != _shared(plans[0]) for plan in plans):
        raise _refused(ladder, "how many numbers are released depends on the rung.")
    rungs = []
    for plan in plans:
        assert plan.mechanism is not None
        rungs.append(Rung(plan.steps, plan.mechanism, plan.end))
    if any(_formulas(rung) != _formulas(rungs[0]) for rung in rungs):
        raise _refused(ladder, "what stands behind it is bounded by another formula on another rung.")
    table = [
        Alternative(f"{ladder.parameter}={value!r}", rung.mechanism.noise_scale, "offered")
        for value, rung in zip(ladder.values, rungs)
    ]
    return replace(plans[-1], rungs=tuple(rungs), alternatives=tuple(table))


def _shared(plan: Plan) -> tuple[Any, ...]:
    """What is the same on all rungs."""
    own = plan.diagnostics
    return plan.gate, plan.allowance, None if own is None else (own.properties, own.loss, own.noise_scale)


def _formulas(rung: Rung) -> list[str]:
    """By which formulas a rung is bounded: a certificate names each of them once."""
    return [*(step.way.formula for step in rung.steps), rung.mechanism.question.formula]


def _further(climb: list[Route], ladder: Ladder) -> tuple[int, ...]:
    """Rows that each rung asks for beyond the last one: the public difference of thresholds, rounded up."""
    levels, fixed = [], []
    for route in climb:
        found = route.conditions
        if len(found) != 1 or found[0][0] != ladder.step:
            raise _refused(ladder, _NOT_ALONE)
        condition, step = found[0][1], route.steps[route.conditional[0]]
        margin = lookup(condition.formula, "margin")
        if margin.level is None or ladder.name not in margin.threshold[:1] or not condition.unit > 0:
            raise _refused(
                ladder, f"at another value the margin of {condition.name!r} is another function of the rows."
            )
        levels.append(margin.level(step.domain, condition.unit, **step.way.parameters))
        fixed.append({k: v for k, v in step.way.parameters.items() if k not in margin.threshold})
    further = tuple(math.ceil(level - levels[-1]) for level in levels)
    if any(tight <= loose for tight, loose in pairwise(levels)):
        raise _refused(ladder, "its values must become looser, the tightest first.")
    if any(others != fixed[0] for others in fixed):
        raise _refused(ladder, "more than the threshold of its condition depends on the rung.")
    return further


def _refused(ladder: Ladder, why: str) -> UnsupportedOrder:
    return UnsupportedOrder(f"a ladder of {ladder.parameter!r} cannot stand here: {why}", stage=ladder.step, fix=_FIX)
