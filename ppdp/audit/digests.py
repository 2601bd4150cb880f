"""To what kept runs belong: a hash of everything that decides what is released."""

from __future__ import annotations

from types import CodeType
from typing import Any

from ppdp.certificate.share.files import hashed
from ppdp.data.rows import Rows
from ppdp.pipeline.issue import content_hash
from ppdp.pipeline.planning.plan import Plan
from ppdp.pipeline.release.description import describe

__all__ = ["code_of", "digest_of", "digest_of_plan"]


def digest_of_plan(name: str, plan: Plan, left: Rows, right: Rows) -> str:
    """Of public numbers and of the datasets, which are made up."""
    ladder = [plan.on(rung) for rung in range(len(plan.rungs))] or [plan]
    arrays = {f"{side}.X": rows.X for side, rows in (("left", left), ("right", right))}
    arrays |= {f"{side}.y": rows.y for side, rows in (("left", left), ("right", right)) if rows.y is not None}
    arrays |= {"left.weight": left.weight, "right.weight": right.weight}
    return digest_of(name, *map(_described, ladder), content_hash(arrays))


def _described(plan: Plan) -> str:
    """Everything of a plan that decides what is released and what is certified."""
    steps: list[tuple[str, Any]] = [(step.name, step.stage) for step in plan.steps]
    ways = [(s.way.name, s.way.formula, s.way.parameters, s.way.domain, s.way.distance) for s in plan.steps]
    found: list[Any] = [plan.epsilon, plan.delta, plan.domain, plan.distance, ways, plan.releases, plan.gate, plan.loss]
    if plan.mechanism is not None:
        steps.append((plan.mechanism.name, plan.mechanism.stage))
        found += [plan.mechanism.question, plan.mechanism.noise_scale]
    return f"{describe(steps, None)} {found!r}"


def digest_of(*words: str) -> str:
    """Of words, and the version of ppdp."""
    from importlib.metadata import version

    return hashed("\n".join([version("ppdp"), *words]).encode())


def code_of(function: Any) -> str:
    """The instructions of a function, empty where there are none to see; what it calls or closes over is not in it."""
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    return repr(_instructions(code)) if isinstance(code, CodeType) else ""


def _instructions(code: CodeType) -> list[Any]:
    constants = [_instructions(one) if isinstance(one, CodeType) else _constant(one) for one in code.co_consts]
    return [code.co_code.hex(), code.co_names, constants]


def _constant(value: Any) -> str:
    """The same in every process, in which a set has an order of its own."""
    return repr(sorted(map(repr, value))) if isinstance(value, frozenset) else repr(value)
