"""What must hold between the rungs of a ladder: ``docs/theory/gate.md``, Theorem 5.

A certificate shows the rung that was passed, and the promise covers all of them: each must ask for the public
difference of its threshold, keep every rule that the rung that was passed keeps, and cost no more than is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from ppdp.bounds import lookup
from ppdp.certificate.record import Condition, Gate, Ladder, Record, Rung
from ppdp.certificate.replay.rules import part_rules, step_rules
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain

__all__ = ["Climbed", "climbed", "ladder_rules"]

Point = tuple[Domain, Distance]


@dataclass(frozen=True, slots=True)
class Climbed:
    """What a certificate would say, had one rung been passed.

    Attributes
    ----------
    where : str
        The rung, in words.
    document : Record
        Its steps and its mechanism.
    points : list of (Domain, Distance)
        At the input of every step.
    end : (Domain, Distance)
        At the input of the mechanism.
    """

    where: str
    document: Record
    points: list[Point]
    end: Point

    def rules(self) -> Iterator[str]:
        """The rules that depend on the rung."""
        for i, (step, point) in enumerate(zip(self.document.steps, self.points)):
            yield from step_rules(step, *point, f"{self.where}.steps[{i}]")
        for problem in part_rules(self.document, self.points, self.end[0]):
            yield f"{self.where}: {problem}"


def climbed(c: Record, ladder: Ladder, points: list[Point]) -> list[Climbed]:
    """The certificate on every rung, given domain and distance at the input of every step."""
    return [_climbed(c, rung, points, f"gate.ladder.rungs[{i}]") for i, rung in enumerate(ladder.rungs)]


def _climbed(c: Record, rung: Rung, points: list[Point], where: str) -> Climbed:
    at = c.conditional[0]
    steps, reached, (domain, distance) = list(c.steps[:at]), points[:at], points[at]
    for step in c.steps[at:]:
        own = rung.parameters.get(step.name, step.parameters)
        conditions = tuple(_restated(condition, domain, own) for condition in step.conditions)
        reached.append((domain, distance))
        domain, distance = lookup(step.formula, "stability")(domain, distance, **own)
        shown = {"domain": domain.to_dict(), "distance": distance.to_dict()}
        steps.append(replace(step, **shown, parameters=own, conditions=conditions))
    document = replace(c, steps=tuple(steps), mechanism=rung.mechanism)
    return Climbed(where, document, reached, (domain, distance))


def _restated(condition: Condition, domain: Domain, parameters: Mapping[str, Any]) -> Condition:
    """A condition as another rung states it; its unit does not depend on the rung."""
    statement = lookup(condition.formula, "margin").statement
    return condition if statement is None else replace(condition, statement=statement(domain, **parameters))


def ladder_rules(c: Record, gate: Gate, ladder: Ladder, rungs: Sequence[Climbed]) -> Iterator[str]:
    """Rules for the ladder of a document."""
    if gate.rule != "sum" or not gate.mu:
        yield "gate.ladder: its noise is Gaussian, and its delta adds."
    conditional = c.conditional
    if len(conditional) != 1 or len(c.steps[conditional[0]].conditions) != 1:
        yield "gate.ladder: there must be one condition."
        return
    if not 0 <= ladder.rung < len(rungs) or not _same(c, rungs[ladder.rung].document):
        yield "gate.ladder: the derivation is not that of its rung."
    if any(release.at > conditional[0] for release in c.releases):
        yield "gate.ladder: a release depends on the rung."
    yield from _thresholds(c, ladder, rungs, conditional[0])
    behind = {step.name for step in c.steps[conditional[0] :]}
    for rung, recorded in zip(rungs, ladder.rungs):
        if not recorded.parameters.keys() <= behind:
            yield f"{rung.where}: it has parameters of no step behind the gate."
        own = recorded.mechanism
        if own.mu is None or c.mechanism is None or own.identity != c.mechanism.identity:
            yield f"{rung.where}: another mechanism."
        else:
            yield from rung.rules()


def _thresholds(c: Record, ladder: Ladder, rungs: Sequence[Climbed], at: int) -> Iterator[str]:
    """One measured quantity less public thresholds, the tightest first."""
    step = c.steps[at]
    margin = lookup(step.conditions[0].formula, "margin")
    if margin.level is None:
        yield "gate.ladder: margins of its rungs are different functions of the rows."
        return
    domain, distance = rungs[0].points[at]
    unit = margin(domain, distance)
    owns = [rung.document.steps[at].parameters for rung in rungs]
    levels = [margin.level(domain, unit, **own) for own in owns]
    rows = [rung.further for rung in ladder.rungs]
    if any(a <= b for a, b in pairwise(levels)) or any(a < b for a, b in pairwise(rows)) or rows[-1]:
        yield "gate.ladder: its rungs must become looser, and the last one asks for no more than the gate."
    fixed = {k: v for k, v in step.parameters.items() if k not in margin.threshold}
    for rung, own, level, further in zip(rungs, owns, levels, rows):
        if further < (level - levels[-1]) * (1 - 1e-9):
            yield f"{rung.where}: its threshold is further away."
        if {k: v for k, v in own.items() if k not in margin.threshold} != fixed:
            yield f"{rung.where}: more than its threshold is another."


def _same(c: Record, other: Record) -> bool:
    """Whether steps and mechanism are those of the other document."""
    return c.mechanism == other.mechanism and all(
        step.parameters == own.parameters for step, own in zip(c.steps, other.steps)
    )
