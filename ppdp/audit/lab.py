"""The whole audit of a pipeline: what a reviewer runs who does not believe its certificate."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

from ppdp.audit.datasets import keep_pair, kept_pair
from ppdp.audit.forecast import forecast
from ppdp.audit.output import LEAST_RUNS, attack_output
from ppdp.audit.replay import replay
from ppdp.audit.replay_report import ReplayReport
from ppdp.audit.report import AuditReport
from ppdp.audit.stability import attack_stability, worst_pair
from ppdp.audit.surroundings import best_surroundings
from ppdp.audit.target import PlanTarget
from ppdp.audit.trials import MOST_RUNS, check_jobs
from ppdp.core.checks import integer, positive
from ppdp.core.domain import Domain
from ppdp.exceptions import InvalidParameter
from ppdp.pipeline.planning.plan import Plan
from ppdp.testing.confidence import check_confidence
from ppdp.testing.neighbours import Pair

__all__ = ["audit"]

SEEDED = "random_state", "whoever knows the seed knows the noise; the audit draws its own from the operating system"


@overload
def audit(
    subject: Any,
    domain: Domain | None = None,
    *,
    data: None = None,
    evaluations: int = ...,
    seconds: float = ...,
    runs: int = ...,
    confidence: float = ...,
    folder: str | os.PathLike[str] | None = ...,
    n_jobs: int | None = ...,
    seed: int = ...,
    announce: Callable[[str], object] | None = ...,
) -> AuditReport: ...


@overload
def audit(subject: Any, domain: None = None, *, data: Any, seconds: float = ..., seed: int = ...) -> ReplayReport: ...


def audit(
    subject: Any,
    domain: Domain | None = None,
    *,
    data: Any = None,
    evaluations: int = 20_000,
    seconds: float = 20.0,
    runs: int = 50_000,
    confidence: float = 1 - 1e-6,
    folder: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    seed: int = 0,
    announce: Callable[[str], object] | None = None,
) -> AuditReport | ReplayReport:
    """Try to break what a pipeline would certify, without any private data unless you give them.

    The stability attack searches for neighbouring datasets on which a stage, a release, all stages together or the
    answers of the mechanism move further than is claimed. The output attack then runs the plan, noise and gate
    included, many times on the worst pair found, and tries to tell the two datasets apart.

    With ``data`` the plan is executed on these private rows and on neighbours of them with the same noisy answers, and
    everything that must not depend on the rows is compared. Nothing is charged, counted or released, and the report is
    private.

    Parameters
    ----------
    subject : Pipeline or Plan
        What is attacked; a Pipeline where data are given.
    data : (X, y) or X, optional
        Private rows, as for ``fit``. Then there are no other options than ``seconds``, for everything, and ``seed``.
    domain : Domain, optional
        Public facts, as for ``Pipeline.plan``. Few rows make runs fast, and one row tells more.
    evaluations : int, default=20000
        Pairs that are tried on each stage, release and mechanism.
    seconds : float, default=20
        Longest time for each of them.
    runs : int, default=50000
        Of the whole plan, on both datasets together.
    confidence : float, default=1 - 1e-6
        Of everything that the output attack says.
    folder : path-like, optional
        Where the pair and its runs are kept, so that an interrupted output attack goes on; the stability attack is
        made again.
    n_jobs : int, optional
        Processes for the runs; -1 for as many as there are processors.
    seed : int, default=0
        Of the search; the noise that is audited always comes from the operating system.
    announce : callable, optional
        Called with one line that says about how long it will take, before it begins, such as ``print``.

    Returns
    -------
    AuditReport or ReplayReport
        Upper bounds beside what was attained; the latter where data were given. That nothing is found proves nothing.

    Raises
    ------
    InvalidParameter
        If the subject is neither, if a plan comes with another domain, or if a number is impossible.
    """
    if data is not None:
        if domain is not None:
            raise InvalidParameter("the facts of private rows are the Pipeline's own.", fix="Pipeline(domain=...).")
        return replay(subject, data, seconds=positive("seconds", seconds), seed=integer("seed", seed, least=0))
    if not isinstance(subject, Plan) and not hasattr(subject, "plan"):
        raise InvalidParameter(
            f"a {type(subject).__name__} cannot be audited.",
            fix="pass a Pipeline or a Plan; a stage or a claim goes to attack_stability.",
        )
    if isinstance(subject, Plan) and domain is not None:
        raise InvalidParameter("a Plan has its own domain.", fix="leave domain out, or pass the Pipeline.")
    positive("seconds", seconds)
    integer("seed", seed, least=0)
    integer("runs", runs, least=LEAST_RUNS, most=MOST_RUNS)
    integer("evaluations", evaluations, least=1)
    check_confidence(confidence)
    check_jobs(n_jobs)
    started = time.monotonic()
    plan = subject if isinstance(subject, Plan) else subject.plan(domain)
    if announce is not None:
        expected = forecast(plan, evaluations=evaluations, seconds=seconds, runs=runs, n_jobs=n_jobs)
        announce(str(expected))
    stability = attack_stability(plan, evaluations=evaluations, seconds=seconds, seed=seed)
    if getattr(subject, "random_state", None) is not None:
        stability = replace(stability, skipped=(*stability.skipped, SEEDED))
    output, pair, skipped = None, None, "it ends in a transformer, and no statistic is released"
    if plan.mechanism is not None or plan.releases:
        pair, skipped = _worst(plan, evaluations, seconds, seed, folder, n_jobs)
    if pair is not None:
        target = PlanTarget("all that is released", plan, *pair)
        runs_at = None if folder is None else Path(folder) / "runs"
        output = attack_output(target, runs=runs, confidence=confidence, folder=runs_at, n_jobs=n_jobs)
    return AuditReport(
        epsilon=plan.epsilon,
        delta=plan.delta,
        steps=(*(step.name for step in plan.steps), *([plan.mechanism.name] if plan.mechanism else [])),
        n_rows=plan.domain.n,
        stability=stability,
        output=output,
        pair=pair,
        seed=seed,
        not_run=None if output else skipped,
        seconds=time.monotonic() - started,
    )


def _worst(
    plan: Plan,
    evaluations: int,
    seconds: float,
    seed: int,
    folder: str | os.PathLike[str] | None,
    n_jobs: int | None,
) -> tuple[Pair | None, str]:
    """The pair that a folder holds, or else the worst that is found, or why there is none.

    A search that ends by the clock does not find the same pair twice, so it is kept.
    """
    kept = None if folder is None else kept_pair(Path(folder), plan.domain.n, plan.domain.d, seed)
    if kept is not None:
        return kept, ""
    margin = plan.gate.needed_margin() if plan.gate is not None else 0.0
    try:
        left, right, _ = worst_pair(plan, evaluations=evaluations, seconds=seconds, margin=margin, seed=seed)
    except InvalidParameter as error:
        return None, str(error)
    pair = best_surroundings(plan, (left, right), margin, n_jobs) if plan.loss.parts else (left, right)
    if folder is not None:
        keep_pair(Path(folder), pair, seed)
    return pair, ""
