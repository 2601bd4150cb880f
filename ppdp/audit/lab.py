"""The whole audit of a pipeline: what a reviewer runs who does not believe its certificate."""

from __future__ import annotations

import os
import time
from typing import Any

from ppdp.audit.output import LEAST_RUNS, OutputFinding, attack_output
from ppdp.audit.report import AuditReport
from ppdp.audit.stability import attack_stability, worst_pair
from ppdp.audit.target import PlanTarget
from ppdp.checks import integer, number, positive
from ppdp.domain import Domain
from ppdp.exceptions import InvalidParameter
from ppdp.planning.plan import Plan

__all__ = ["audit"]


def audit(
    subject: Any,
    domain: Domain | None = None,
    *,
    evaluations: int = 20_000,
    seconds: float = 20.0,
    runs: int = 20_000,
    confidence: float = 1 - 1e-6,
    folder: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    seed: int = 0,
) -> AuditReport:
    """Try to break what a pipeline would certify, without any private data.

    The stability attack searches for neighbouring datasets on which a stage, a release, all stages together or the
    answers of the mechanism move further than is claimed. The output attack then runs the plan, noise and gate
    included, many times on the worst pair found, and tries to tell the two datasets apart.

    Parameters
    ----------
    subject : Pipeline or Plan
        What is attacked.
    domain : Domain, optional
        Public facts, as for ``Pipeline.plan``. Few rows make runs fast, and one row tells more.
    evaluations : int, default=20000
        Pairs that are tried on each stage, release and mechanism.
    seconds : float, default=20
        Longest time for each of them.
    runs : int, default=20000
        Of the whole plan, on both datasets together.
    confidence : float, default=1 - 1e-6
        Of everything that the output attack says.
    folder : path-like, optional
        Where runs are kept, so that an interrupted audit goes on.
    n_jobs : int, optional
        Processes for the runs; -1 for as many as there are processors.
    seed : int, default=0
        Of the search; the noise that is audited always comes from the operating system.

    Returns
    -------
    AuditReport
        Upper bounds beside what was attained. That nothing is found proves nothing.

    Raises
    ------
    InvalidParameter
        If the subject is neither, or a number is impossible.
    """
    if not isinstance(subject, Plan) and not hasattr(subject, "plan"):
        raise InvalidParameter(
            f"a {type(subject).__name__} cannot be audited.",
            fix="pass a Pipeline or a Plan; a stage or a claim goes to attack_stability.",
        )
    positive("seconds", seconds)
    integer("runs", runs, least=LEAST_RUNS)
    number("confidence", confidence, above=0, most=1 - 1e-15)
    started = time.monotonic()
    plan = subject if isinstance(subject, Plan) else subject.plan(domain)
    stability = attack_stability(plan, evaluations=evaluations, seconds=seconds, seed=seed)
    output, skipped = None, "it ends in a transformer, so no answers follow the stages"
    if plan.mechanism is not None:
        output, skipped = _output(plan, evaluations, seconds, seed, runs, confidence, folder, n_jobs)
    return AuditReport(
        epsilon=plan.epsilon,
        delta=plan.delta,
        steps=(*(step.name for step in plan.steps), *([plan.mechanism.name] if plan.mechanism else [])),
        n_rows=plan.domain.n,
        stability=stability,
        output=output,
        not_run=None if output else skipped,
        seconds=time.monotonic() - started,
    )


def _output(
    plan: Plan,
    evaluations: int,
    seconds: float,
    seed: int,
    runs: int,
    confidence: float,
    folder: str | os.PathLike[str] | None,
    n_jobs: int | None,
) -> tuple[OutputFinding | None, str]:
    """What many runs show, or why there are none."""
    margin = plan.gate.needed_margin() if plan.gate is not None else 0.0
    try:
        left, right, _ = worst_pair(plan, evaluations=evaluations, seconds=seconds, margin=margin, seed=seed)
    except InvalidParameter as error:
        return None, error.message
    target = PlanTarget("all that is released", plan, left, right)
    return attack_output(target, runs=runs, confidence=confidence, folder=folder, n_jobs=n_jobs), ""
