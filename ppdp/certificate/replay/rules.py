"""What must hold between the parts of a certificate, besides its numbers.

A derivation may be right and yet not be that of the pipeline it names: a stage fitted from a release that was
never made, a condition that nobody states, a model accounted as something else.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ppdp.bounds import lookup
from ppdp.certificate.record import Mechanism, Record, Release, Step
from ppdp.core.adjacency import Adjacency
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import Answer, Formula
from ppdp.data.releases import STATISTICS

__all__ = ["ADJACENCY", "PRIVATE_ORIGIN", "RECORDED", "broken_rules", "not_covered", "part_rules", "step_rules"]


ADJACENCY = Adjacency.replace().words
PRIVATE_ORIGIN = "read from y: not public"
NOT_COVERED = (
    "evaluation on private rows, and choices made from it (scores, plots, tuning) unless they are charged to a ledger",
    "running time and memory",
    "that a column holds text that is no number: the kind of a column is taken to be public",
    "statistics of the private data that were computed outside this run",
    "whoever can read the machine's memory during fit",
)
RECORDED = (
    "the sensitivities of the other fits of the search: what each costs is recorded here and added up again, but only"
    " the last fit is derived step by step"
)
EXCEPTIONS = (
    "exceptions raised on invalid values: invalid='error' stops at an undeclared NaN, infinity or label, and that a run"
    " stops is itself an answer about the data; invalid='repair' covers it"
)


def not_covered(invalid: str) -> list[str]:
    """What a certificate does not promise, in words."""
    return [*([EXCEPTIONS] if invalid == "error" else []), *NOT_COVERED]


def step_rules(step: Step, domain: Domain, distance: Distance, where: str) -> Iterator[str]:
    """Rules for one stage, given domain and distance at its input."""
    found = lookup(step.formula, "stability")
    yield from _same_identity(step, found, where)
    if found.way != step.way:
        yield f"{where}: this formula is not that of this way."
    if domain.missing_rows and not found.gaps:
        yield f"{where}: rows may have gaps here."
    for condition in step.conditions:
        unit = lookup(condition.formula, "margin")(domain, distance)
        if not math.isclose(unit, condition.unit, rel_tol=1e-9):
            yield f"{where}.conditions: a unit of margin is {unit!r} here."
        statement = lookup(condition.formula, "margin").statement
        if statement is not None and condition.statement != statement(domain, **step.parameters):
            yield f"{where}.conditions: another statement follows from the parameters."
    needed = found.assumes(domain, **step.parameters)
    if sorted(condition.formula for condition in step.conditions) != sorted(needed):
        yield f"{where}.conditions: the formula assumes {sorted(needed) or 'nothing'}."


def broken_rules(c: Record, points: list[tuple[Domain, Distance]], end: Domain) -> Iterator[str]:
    """Rules for the document, given domain and distance at the input of every step, and the last domain."""
    names = [step.name for step in c.steps]
    mechanism = c.mechanism
    if len({*names, *([mechanism.name] if mechanism else [])}) != len(names) + bool(mechanism):
        yield "steps: names are not unique."
        return
    if c.adjacency != ADJACENCY:
        yield "adjacency: the bounds hold for another one."
    of_a_search = () if c.search is None else (RECORDED,)
    if c.not_covered != (*not_covered(c.invalid), *of_a_search):
        yield "not_covered: something is not said."
    if c.delta * Domain.from_dict(c.entrance.domain).n >= 1:
        yield "delta: it is not below 1/n, so publishing one whole row would satisfy it."
    yield from _facts(c)
    yield from part_rules(c, points, end)
    yield from _gate(c, names)
    if mechanism is None and any(step.way == "exact" and lookup(step.formula, "stability").fitted for step in c.steps):
        yield "steps: a released map needs released statistics."
    yield from _released(c, names)
    yield from _status(c)


def part_rules(c: Record, points: list[tuple[Domain, Distance]], end: Domain) -> Iterator[str]:
    """Rules for the releases and the last step, given what holds at the input of every step, and the last domain."""
    names = [step.name for step in c.steps]
    for i, release in enumerate(c.releases):
        yield from _release(c, release, points[release.at][0], names, f"releases[{i}]")
    yield from _served(c)
    if c.mechanism is not None:
        yield from _answers(c.mechanism, end)


def _answers(mechanism: Mechanism, end: Domain) -> Iterator[str]:
    found = _of_mechanism(mechanism)
    yield from _same_identity(mechanism, found, "mechanism")
    if found.shape is not None:
        size, bound = found.shape(end, **mechanism.parameters)
        if size != mechanism.size or not math.isclose(bound, mechanism.bound, rel_tol=1e-9):
            yield "mechanism: another size or bound follows."
    if found.steps is not None and found.steps(end, **mechanism.parameters) != mechanism.steps:
        yield "mechanism.steps: another number of answers follows."
    if end.missing_rows:
        yield "mechanism: rows may have gaps here."


def _of_mechanism(mechanism: Mechanism) -> Answer:
    """Its sensitivity if it is Gaussian, else its privacy map."""
    return lookup(mechanism.formula, "privacy" if mechanism.mu is None else "mechanism")


def _same_identity(part: Step | Mechanism, found: Formula, where: str) -> Iterator[str]:
    if found.page != part.page:
        yield f"{where}.page: the formula is proved on another page."
    if found.used_by and part.class_ not in found.used_by:
        yield f"{where}.class: this formula is not that of {part.class_}."


def _facts(c: Record) -> Iterator[str]:
    domain = Domain.from_dict(c.entrance.domain)
    for fact in c.facts:
        shown = fact.value
        if fact.name in ("n_rows", "n_features", "rows_per_unit") and shown != str(getattr(domain, fact.name)):
            yield f"facts: {fact.name} is another one in the derivation."
        if fact.name == "gaps" and (shown == "none") != (domain.max_missing == 0):
            yield "facts: gaps are declared otherwise in the derivation."


def _release(c: Record, release: Release, domain: Domain, names: list[str], where: str) -> Iterator[str]:
    """A release is taken where its first stage stands, and can be carried to the others."""
    steps, statistic = c.steps, STATISTICS.get(release.statistic)
    if statistic is None or statistic.formula != release.formula:
        yield f"{where}: no such statistic."
        return
    if release.page != lookup(statistic.formula, "release").page:
        yield f"{where}.page: the formula is proved on another page."
    if statistic.size(domain) != release.size or not math.isclose(statistic.bound(domain), release.bound):
        yield f"{where}: another size or bound follows."
    positions = [names.index(name) for name in release.serves]
    if positions != sorted(set(positions)) or positions[0] != release.at:
        yield f"{where}: it is not taken where its first stage stands."
    if not all(_affine(step) for step in steps[release.at : positions[-1]]):
        yield f"{where}: it cannot be carried to all stages that it serves."
    fits = any(steps[position].way == "noisy" for position in positions)
    if fits != (release.purpose == "fit"):
        yield f"{where}: its purpose is another."


def _affine(step: Step) -> bool:
    """Whether released moments can be carried through a step."""
    return bool(lookup(step.formula, "stability").affine(**step.parameters))


def _served(c: Record) -> Iterator[str]:
    """Every stage that is fitted from a release, or whose twin predicts, has exactly one."""
    predicts = c.mechanism is not None and _of_mechanism(c.mechanism).predicts
    for i, step in enumerate(c.steps):
        fitting = lookup(step.formula, "stability").releases
        serving = [release.statistic for release in c.releases if step.name in release.serves]
        needed = step.way == "noisy" or (predicts and step.way == "exact" and bool(fitting))
        if len(serving) != int(needed) or not set(serving) <= set(fitting):
            yield f"steps[{i}]: what is released is not what it is fitted from or predicts with."
        for release in c.releases:
            shared = release.parameters.keys() & step.parameters.keys()
            if step.name in release.serves and any(release.parameters[k] != step.parameters[k] for k in shared):
                yield f"steps[{i}]: its release has other parameters."


def _gate(c: Record, names: list[str]) -> Iterator[str]:
    gate, conditional = c.gate, c.conditional
    if any(k.tested != (gate is not None) for k in c.conditions):
        yield "steps: a condition is tested where there is a gate, and nowhere else."
    if gate is None:
        return
    if gate.page != "gate":
        yield "gate.page: it is proved on another page."
    if not conditional:
        yield "gate: there is nothing to test."
        return
    for i, release in enumerate(c.releases):
        first = min(names.index(name) for name in release.serves)
        if release.purpose == "fit" and first < conditional[-1]:
            if gate.rule != "sum":
                yield "gate.rule: a condition looks at rows that a release has shaped, so deltas add."
            if release.at > conditional[0]:
                yield f"releases[{i}]: a condition rests on a release that rests on a condition."


def _released(c: Record, names: list[str]) -> Iterator[str]:
    """The arrays that left are those of the releases and the mechanism."""
    expected: dict[str, tuple[int, ...]] = {f"{names[r.at]}.{r.statistic}": (r.size,) for r in c.releases}
    listed = dict(c.released.names)
    m = c.mechanism
    if m is not None:
        own = [name for name in listed if name.startswith(f"{m.name}.")]
        arrays = _of_mechanism(m).arrays
        if arrays is None:
            expected |= dict.fromkeys(own[:1], (m.size,))
        else:
            expected |= {f"{m.name}.{name}": tuple(shape) for name, shape in arrays(m.steps, m.size).items()}
        if not own:
            yield "released.names: the mechanism's release is not listed."
    if listed != expected:
        yield "released.names: other arrays follow."


def _status(c: Record) -> Iterator[str]:
    assumed = any(not k.tested for k in c.conditions)
    private = any(fact.origin == PRIVATE_ORIGIN for fact in c.facts)
    relies = _of_mechanism(c.mechanism).relies if c.mechanism is not None else ""
    if relies and not any(relies in reason for reason in c.reasons):
        yield "reasons: what is taken on somebody else's word is not said."
    if (assumed or private or relies) and c.status == "UNCONDITIONAL":
        yield "status: something is assumed, so it is not unconditional."
    if (c.status == "UNCONDITIONAL") != (not c.reasons):
        yield "status: UNCONDITIONAL has no reasons, and any other has."
