"""Classes that are not ppdp's, as steps: what no certificate could say of them is refused before anything is spent."""

from __future__ import annotations

import sys
from inspect import isroutine
from typing import Any

from ppdp.bounds import lookup
from ppdp.certificate.record import Record, read_as
from ppdp.certificate.replay.verify import verify
from ppdp.core.formula import Formula
from ppdp.core.keywords import unwritten
from ppdp.core.names import shipped
from ppdp.exceptions import InvalidParameter
from ppdp.mechanisms.base import Mechanism
from ppdp.pipeline.certify import Draft
from ppdp.pipeline.own_trials import check_map, kept_by_classes, tried
from ppdp.pipeline.planning.plan import Plan
from ppdp.transformers.base import Stage, Transformer
from ppdp.transformers.columns.column_subset import bounded_by

_NEEDED: tuple[tuple[Any, ...], ...] = (
    (Mechanism, ("release",), ("read",)),
    (Transformer, ("map_rows", "apply")),  # either will do
    (Stage, ("apply",)),
)


def check_own(plan: Plan, draft: Draft) -> None:
    """Refuse a step that lacks a method or claims what is not proved of it; then verify the certificate to come.

    Of classes that are ppdp's only that an object keeps to its class is looked at: what else they do, tests hold.
    """
    m = plan.mechanism
    stages = ((step.name, bounded_by(step.stage, step.way.formula), step.way.record) for step in plan.steps)
    last = [] if m is None else [(m.name, m.stage, lookup(m.question.formula, m.question.kind))]
    claims = [*stages, *last]
    for name, step, _ in claims:
        _check_methods(name, step)
    own = [claim for claim in claims if not shipped(type(claim[1]))]
    for name, step, formula in own:
        _check_written(name, step, noisy=getattr(formula, "way", "") == "noisy")
        _check_claim(name, step, formula)
        _check_current(name, type(step))
    before = kept_by_classes([step for _, step, _ in own])
    for i, step in enumerate(plan.steps):
        if not shipped(type(bounded_by(step.stage, step.way.formula))):
            check_map(step, next((release for release in plan.releases if i in release.serves), None))
    if own:
        released = tried(plan)
        if before != kept_by_classes([step for _, step, _ in own]):
            what = "its class has kept something of made-up rows, and would of private ones."
            raise InvalidParameter(what, stage=own[0][0], fix="give it back, for read or map_rows.")
        content = draft.completed(released or {}, None, {}).to_dict()
        for problem in verify(content, read_as(Record, content)).problems:
            if released is not None or not problem.startswith("released."):  # nothing is, so far
                what = f"the certificate of this plan would not hold: {problem}"
                raise InvalidParameter(what, stage=own[0][0], fix=TEST)


TEST = "check_stage(stage) or check_mechanism(mechanism) of ppdp.testing says what to change."


def _check_written(name: str, step: Any, *, noisy: bool) -> None:
    """Refuse a class that lacks a method which a fit would miss after it is charged."""
    base, *needed = next(row for row in _NEEDED if isinstance(step, row[0]))
    for hooks in [*needed, *([("read",)] if noisy else [])]:
        if all(getattr(type(step), hook) is getattr(base, hook) for hook in hooks):
            raise unwritten(step, hooks[0]).at(name)


def _check_methods(name: str, step: Any) -> None:
    """Refuse an object that has a method of its own in place of its class's: a certificate names the class."""
    for attribute in vars(step).keys() - step.get_params(deep=False):
        if hasattr(type(step), attribute) and not attribute.startswith("_") and not attribute.endswith("_"):
            kind = "method" if isroutine(getattr(type(step), attribute)) else "attribute"
            what = f"its {kind} {attribute} is not that of its class {type(step).__name__}, which a certificate names."
            raise InvalidParameter(what, stage=name, fix="a class of your own: docs/guides/own-stage.md.")


def _check_current(name: str, kind: type) -> None:
    """Refuse an object of a class that was defined again: the formula may be that of the new one."""
    current = getattr(sys.modules.get(kind.__module__), kind.__qualname__, kind)
    if isinstance(current, type) and current is not kind:
        what = f"{kind.__name__} has been defined again since this one was made, and with it perhaps its bound."
        raise InvalidParameter(what, stage=name, fix=f"{kind.__name__}(...) once more.")


def _check_claim(name: str, step: Any, formula: Formula) -> None:
    """Refuse a bound that is proved of other classes: a certificate names them, and no more, whatever they inherit."""
    kind = type(step).__name__
    if formula.shipped:
        what = f"the formula {formula.id!r} is proved of ppdp's own classes, and this {kind} is none."
        fix = f"@formula('own.name', used_by=({kind!r},), ...), if that bound holds for it: docs/guides/own-stage.md."
        raise InvalidParameter(what, stage=name, fix=fix)
    if not formula.is_of(kind):
        fix = f"used_by={(*formula.used_by, kind)!r} in its @formula, if the bound is proved for this class."
        raise InvalidParameter(f"the formula {formula.id!r} is not that of {kind}.", stage=name, fix=fix)
