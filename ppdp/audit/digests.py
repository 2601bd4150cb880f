"""Digests of what decides what a target releases, so that runs which were kept belong to it alone."""

from __future__ import annotations

from importlib.metadata import version
from types import CodeType
from typing import Any

from ppdp.certificate.issuing import content_hash
from ppdp.certificate.share.files import hashed
from ppdp.data.rows import Rows
from ppdp.pipeline.planning.plan import Plan
from ppdp.pipeline.release.description import describe


def digest_of_plan(name: str, plan: Plan, left: Rows, right: Rows) -> str:
    """Of public numbers and of both datasets."""
    return digest_of(name, _described(plan), digest_of_rows(left, right))


def digest_of_rows(left: Rows, right: Rows) -> str:
    """Of two datasets."""
    sides = (("left", left), ("right", right))
    arrays = {f"{side}.{part}": getattr(rows, part) for part in ("X", "y", "weight") for side, rows in sides}
    return content_hash({place: array for place, array in arrays.items() if array is not None})


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
