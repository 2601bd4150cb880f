"""Classes that are not ppdp's, as steps: what no certificate could say of them is refused before anything is spent."""

from __future__ import annotations

from inspect import isroutine
from typing import Any

import numpy as np

from ppdp.bounds import lookup
from ppdp.certificate.record import Record, read_as
from ppdp.certificate.replay.verify import verify
from ppdp.core.boundary import at_step
from ppdp.core.formula import Formula
from ppdp.core.keywords import unwritten
from ppdp.core.names import shipped
from ppdp.data.rows import Rows
from ppdp.exceptions import InvalidParameter
from ppdp.mechanisms.base import Mechanism
from ppdp.pipeline.certify import Draft
from ppdp.pipeline.planning.plan import Plan
from ppdp.pipeline.planning.route import PlannedStep
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
    for step in plan.steps:
        if isinstance(step.stage, Transformer) and step.way.name == "public" and not shipped(type(step.stage)):
            _check_shape(step)
    if own:
        content = draft.completed({}, None, {}).to_dict()
        for problem in verify(content, read_as(Record, content)).problems:
            if not problem.startswith("released."):  # nothing is, so far
                what = f"the certificate of this plan would not hold: {problem}"
                raise InvalidParameter(what, stage=own[0][0], fix=_TEST)


_TEST = "check_stage(stage) or check_mechanism(mechanism) of ppdp.testing says what to change."


def _check_written(name: str, step: Any, *, noisy: bool) -> None:
    """Refuse a class that lacks a method which a fit would miss after it is charged."""
    base, *needed = next(row for row in _NEEDED if isinstance(step, row[0]))
    for hooks in [*needed, *([("read",)] if noisy else [])]:
        if all(getattr(type(step), hook) is getattr(base, hook) for hook in hooks):
            raise unwritten(step, hooks[0]).at(name)


def _check_shape(step: PlannedStep) -> None:
    """Refuse a map that makes of two made-up rows another number of rows, or other columns than its formula says."""
    d, width, stage = step.domain.d, step.way.domain.d, step.stage
    with at_step(step.name):
        statistics = stage.prepare(Rows.of(np.empty((0, d))), step.way, step.domain)
        shape = np.shape(stage.apply(Rows.of(np.zeros((2, d))), statistics).X)
    if shape != (2, width):
        what = f"it maps 2 rows of {d} columns to the shape {shape}, and its formula says {(2, width)}."
        fix = "one row for each row; domain.but(n_features=...) in the formula, if it makes other columns."
        raise InvalidParameter(what, stage=step.name, fix=fix)


def _check_methods(name: str, step: Any) -> None:
    """Refuse an object that has a method of its own in place of its class's: a certificate names the class."""
    for attribute in vars(step).keys() - step.get_params(deep=False):
        if isroutine(getattr(type(step), attribute, None)):
            what = f"its method {attribute} is not that of its class {type(step).__name__}, which a certificate names."
            raise InvalidParameter(what, stage=name, fix="a class of your own: docs/guides/own-stage.md.")


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
