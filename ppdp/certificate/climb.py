"""What must hold between the rungs of a ladder: ``docs/theory/gate.md``, Theorem 5.

A certificate shows the rung that was passed, and the promise covers all of them: each must ask for the public
difference of its threshold, and cost no more than is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ppdp.bounds import lookup
from ppdp.certificate.rules import mechanism_rules
from ppdp.distance import Distance
from ppdp.domain import Domain

__all__ = ["climbed", "ladder_rules"]

Document = dict[str, Any]
Point = tuple[Domain, Distance]


def climbed(c: Document, rung: Document, points: list[Point]) -> Point:
    """Domain and distance at the end, had this rung been passed."""
    at = _conditional(c)[0]
    domain, distance = points[at]
    for i, step in enumerate(c["steps"][at:]):
        parameters = step["parameters"] if i else rung["parameters"]
        domain, distance = lookup(step["formula"], "stability")(domain, distance, **parameters)
    return domain, distance


def ladder_rules(c: Document, points: list[Point]) -> Iterator[str]:
    """Rules for the ladder of a document, given domain and distance at the input of every step."""
    gate, ladder = c["gate"], c["gate"]["ladder"]
    if gate["rule"] != "sum" or gate["kind"] != "gaussian":
        yield "gate.ladder: its noise is Gaussian, and its delta adds."
    conditional = _conditional(c)
    if len(conditional) != 1 or len(c["steps"][conditional[0]]["conditions"]) != 1:
        yield "gate.ladder: there must be one condition."
        return
    at, rungs = conditional[0], ladder["rungs"]
    step, (domain, distance) = c["steps"][at], points[at]
    if not 0 <= ladder["rung"] < len(rungs) or (
        rungs[ladder["rung"]]["parameters"] != step["parameters"]
        or rungs[ladder["rung"]]["mechanism"] != c["mechanism"]
    ):
        yield "gate.ladder: the derivation is not that of its rung."
    if any(release["at"] > at for release in c["releases"]):
        yield "gate.ladder: a release depends on the rung."
    margin = lookup(step["conditions"][0]["formula"], "margin")
    if margin.level is None:
        yield "gate.ladder: margins of its rungs are different functions of the rows."
        return
    unit = margin(domain, distance)
    found = lookup(step["formula"], "stability")
    fixed = {k: v for k, v in step["parameters"].items() if k not in margin.threshold}
    levels = [margin.level(domain, unit, **rung["parameters"]) for rung in rungs]
    for i, (rung, level) in enumerate(zip(rungs, levels)):
        where = f"gate.ladder.rungs[{i}]"
        if rung["further"] < max(0.0, (level - levels[-1]) * (1 - 1e-9)):
            yield f"{where}: its threshold is further away."
        if {k: v for k, v in rung["parameters"].items() if k not in margin.threshold} != fixed:
            yield f"{where}: more than its threshold is another."
        if set(found.assumes(domain, **rung["parameters"])) != {margin.id}:
            yield f"{where}: it assumes something else."
        for release in c["releases"]:
            shared = release["parameters"].keys() & rung["parameters"].keys()
            if step["name"] in release["serves"] and any(
                release["parameters"][k] != rung["parameters"][k] for k in shared
            ):
                yield f"{where}: a release depends on the rung."
        if rung["mechanism"]["mu"] is None or rung["mechanism"]["name"] != c["mechanism"]["name"]:
            yield f"{where}: another mechanism."
        else:
            yield from mechanism_rules(rung["mechanism"], climbed(c, rung, points)[0], f"{where}.mechanism")


def _conditional(c: Document) -> list[int]:
    return [i for i, step in enumerate(c["steps"]) if step["conditions"]]
