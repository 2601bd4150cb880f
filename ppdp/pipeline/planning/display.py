"""How a plan is shown: as text, and as tables in a notebook."""

from __future__ import annotations

import math
from html import escape
from typing import Any

from ppdp.core.tables import html_table, visible

__all__ = ["PlanDisplay"]

TITLE = "PLAN: nothing has been certified"
MOST = 12  # routes in a notebook


class PlanDisplay:
    """Mixin for the plan: its text and its tables."""

    __slots__ = ()

    epsilon: float
    delta: float
    domain: Any
    facts: tuple[Any, ...]
    steps: tuple[Any, ...]
    releases: tuple[Any, ...]
    conditions: Any
    gate: Any
    mechanism: Any
    alternatives: tuple[Any, ...]
    warnings: tuple[str, ...]
    rungs: tuple[Any, ...]

    def __repr__(self) -> str:
        """The plan for a terminal."""
        steps = [f"{s.name:<12} {s.way.name:<7} -> {s.way.distance.describe()}" for s in self.steps]
        warnings = [f"warning: {warning}" for warning in self.warnings]
        return "\n  ".join([TITLE, self._promise(), *steps, *self._noise(), *self._trusted(), *warnings])

    def _repr_html_(self) -> str:
        """The plan for a notebook: the stages, what gets noise, and the other routes."""
        stages = html_table(
            f"{TITLE}\n{self._promise()}",
            ("stage", "way", "distance of neighbouring datasets", "assumes"),
            (
                (
                    s.name,
                    s.way.name,
                    s.way.distance.describe(),
                    "; ".join(c.statement for c in s.way.conditions) or "nothing",
                )
                for s in self.steps
            ),
        )
        lines = "".join(f"<div>{escape(visible(line.strip()))}</div>" for line in (*self._noise(), *self._trusted()))
        warnings = "".join(f"<div>⚠ {escape(visible(warning))}</div>" for warning in self.warnings)
        best = self.ranked()[:MOST]
        routes = html_table(
            "routes" if len(self.alternatives) <= MOST else f"the best {MOST} of {len(self.alternatives)} routes",
            ("route", "noise", "status", "why not"),
            ((a.route, "" if a.noise_scale is None else f"{a.noise_scale:.3g}", a.status, a.reason) for a in best),
            bold=0 if any(a.status == "chosen" for a in best) else None,
        )
        return f"<div>{stages}{lines}{warnings}{routes if len(self.alternatives) > 1 else ''}</div>"

    def ranked(self) -> list[Any]:
        """The chosen route, the others by their noise, then those that are not offered."""

        def order(route: Any) -> tuple[bool, float]:
            return route.status != "chosen", math.inf if route.noise_scale is None else route.noise_scale

        return sorted(self.alternatives, key=order)

    def _promise(self) -> str:
        return f"(epsilon, delta) = ({self.epsilon:g}, {self.delta:g}), {self.domain.describe()}"

    def _trusted(self) -> list[str]:
        """Ranges and constants that nobody can check, a line each."""
        told = [fact for fact in self.facts if fact.origin.startswith(("declared, ", "default, "))]
        lines = [visible(" ".join(f"{f.name}: {f.value} ({f.origin})".split())) for f in told[:MOST]]
        return [*lines, *([f"and {len(told) - MOST} more that are declared"] if len(told) > MOST else [])]

    def _noise(self) -> list[str]:
        """Everything that gets noise, a line each."""
        lines = []
        for release in self.releases:
            served = ", ".join(self.steps[i].name for i in release.serves)
            lines.append(
                f"release of {release.statistic} for {served}: noise {release.noise_scale:.3g}, mu {release.mu:.3g}"
            )
        if self.gate is not None:
            lines.append(
                f"gate: {len(self.conditions)} condition(s), {self.gate.kind} noise, passes in 99 % of cases from a"
                f" margin of {math.ceil(self.gate.needed_margin())} rows"
            )
        elif self.conditions:
            lines.append(f"no gate: {len(self.conditions)} condition(s) are assumed")
        for rung, further in zip(self.rungs, self.gate.rungs if self.gate is not None else ()):
            lines.append(f"  rung: {further} rows further, noise {rung.mechanism.noise_scale:.3g}")
        if self.mechanism is not None:
            q = self.mechanism.question
            lines.append(
                f"{self.mechanism.name}: {q.steps} answer(s) of {q.size} numbers,"
                f" noise {self.mechanism.noise_scale:.3g} on values up to {q.bound:.3g}"
            )
        return lines
