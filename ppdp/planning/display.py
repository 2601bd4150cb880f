"""How a plan is shown: as text, and as tables in a notebook."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from ppdp.tables import html_table, visible

if TYPE_CHECKING:
    from ppdp.planning.plan import Alternative, Plan

__all__ = ["plan_html", "plan_text", "ranked"]

TITLE = "PLAN: nothing has been certified"
MOST = 12  # routes in a notebook


def plan_text(plan: Plan) -> str:
    """The plan for a terminal."""
    steps = [f"{s.name:<12} {s.way.name:<7} -> {s.way.distance.describe()}" for s in plan.steps]
    warnings = [f"warning: {warning}" for warning in plan.warnings]
    return "\n  ".join([TITLE, _promise(plan), *steps, *_noise(plan), *_trusted(plan), *warnings])


def plan_html(plan: Plan) -> str:
    """The plan for a notebook: the stages, what gets noise, and the other routes."""
    stages = html_table(
        f"{TITLE}\n{_promise(plan)}",
        ("stage", "way", "distance of neighbouring datasets", "assumes"),
        (
            (
                s.name,
                s.way.name,
                s.way.distance.describe(),
                "; ".join(c.statement for c in s.way.conditions) or "nothing",
            )
            for s in plan.steps
        ),
    )
    lines = "".join(f"<div>{escape(visible(line.strip()))}</div>" for line in (*_noise(plan), *_trusted(plan)))
    warnings = "".join(f"<div>⚠ {escape(visible(warning))}</div>" for warning in plan.warnings)
    best = ranked(plan)[:MOST]
    routes = html_table(
        "routes" if len(plan.alternatives) <= MOST else f"the best {MOST} of {len(plan.alternatives)} routes",
        ("route", "noise", "status", "why not"),
        ((a.route, "" if a.noise_scale is None else f"{a.noise_scale:.3g}", a.status, a.reason) for a in best),
        bold=0 if any(a.status == "chosen" for a in best) else None,
    )
    return f"<div>{stages}{lines}{warnings}{routes if len(plan.alternatives) > 1 else ''}</div>"


def ranked(plan: Plan) -> list[Alternative]:
    """The chosen route, the others by their noise, then those that are not offered."""

    def order(route: Alternative) -> tuple[bool, float]:
        return route.status != "chosen", math.inf if route.noise_scale is None else route.noise_scale

    return sorted(plan.alternatives, key=order)


def _promise(plan: Plan) -> str:
    return f"(epsilon, delta) = ({plan.epsilon:g}, {plan.delta:g}), {plan.domain.describe()}"


def _trusted(plan: Plan) -> list[str]:
    """Ranges and constants that nobody can check, a line each."""
    told = [fact for fact in plan.facts if fact.origin.startswith(("declared, ", "default, "))]
    lines = [visible(" ".join(f"{f.name}: {f.value} ({f.origin})".split())) for f in told[:MOST]]
    return [*lines, *([f"and {len(told) - MOST} more that are declared"] if len(told) > MOST else [])]


def _noise(plan: Plan) -> list[str]:
    """Everything that gets noise, a line each."""
    lines = []
    for release in plan.releases:
        served = ", ".join(plan.steps[i].name for i in release.serves)
        lines.append(
            f"release of {release.statistic} for {served}: noise {release.noise_scale:.3g}, mu {release.mu:.3g}"
        )
    if plan.gate is not None:
        lines.append(
            f"gate: {len(plan.conditions)} condition(s), {plan.gate.kind} noise, passes in 99 % of cases from a"
            f" margin of {math.ceil(plan.gate.needed_margin())} rows"
        )
    elif plan.conditions:
        lines.append(f"no gate: {len(plan.conditions)} condition(s) are assumed")
    for rung, further in zip(plan.rungs, plan.gate.rungs if plan.gate is not None else ()):
        lines.append(f"  rung: {further} rows further, noise {rung.mechanism.noise_scale:.3g}")
    if plan.mechanism is not None:
        q = plan.mechanism.question
        lines.append(
            f"{plan.mechanism.name}: {q.steps} answer(s) of {q.size} numbers,"
            f" noise {plan.mechanism.noise_scale:.3g} on values up to {q.bound:.3g}"
        )
    return lines
