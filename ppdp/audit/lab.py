"""The whole audit of a pipeline: what a reviewer runs who does not believe its certificate, and how long it takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, overload

import numpy as np

from ppdp.audit.output import LEAST_RUNS, attack_output
from ppdp.audit.pairs import pair_to_attack
from ppdp.audit.plans import answer_target, plan_targets
from ppdp.audit.replay import replay
from ppdp.audit.report import AuditReport, ReplayReport
from ppdp.audit.stability import attack_stability
from ppdp.audit.target import PlanTarget
from ppdp.audit.trials import MOST_RUNS, check_jobs
from ppdp.core.checks import flag, integer, positive
from ppdp.core.domain import Domain
from ppdp.exceptions import DomainMismatch, InvalidParameter, NoRoute, PpdpError
from ppdp.pipeline.planning.plan import Plan
from ppdp.privacy.noise.sampler import Noise
from ppdp.testing.confidence import check_confidence

SEEDED = "random_state", "anyone who knows the seed knows the noise; the audit draws its own from the operating system"
ROWS = (12, 20, 30, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)  # numbers of rows that are tried for a plan to attack

_TRIED = 10  # pairs and runs that are timed
_CLIMBING = 2.0  # a pair that is climbed to costs about so many drawn ones


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
    n_jobs: int | None = ...,
    seed: int = ...,
    sequential: bool = ...,
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
    n_jobs: int | None = None,
    seed: int = 0,
    sequential: bool = False,
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
    data : (X, y), (X, y, groups) or X, optional
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
    n_jobs : int, optional
        Processes for the runs; -1 for as many as there are processors.
    seed : int, default=0
        Of the search; the noise that is audited always comes from the operating system.
    sequential : bool, default=False
        Stop the runs as soon as they refute the claim, see :func:`attack_output`; ``runs`` are then the most.
    announce : callable, optional
        Called with one line that says about how long it will take, before it begins, such as ``print``.
    """
    if data is not None:
        if domain is not None:
            raise InvalidParameter("the facts of private rows are the Pipeline's own.", fix="Pipeline(domain=...).")
        return replay(subject, data, seconds=positive("seconds", seconds), seed=integer("seed", seed, least=0))
    if not isinstance(subject, Plan) and not hasattr(subject, "plan"):
        fix = "pass a Pipeline or a Plan; a stage or a claim goes to attack_stability."
        raise InvalidParameter(f"a {type(subject).__name__} cannot be audited.", fix=fix)
    if isinstance(subject, Plan) and domain is not None:
        raise InvalidParameter("a Plan has its own domain.", fix="leave domain out, or pass the Pipeline.")
    positive("seconds", seconds)
    integer("seed", seed, least=0)
    integer("runs", runs, least=LEAST_RUNS, most=MOST_RUNS)
    integer("evaluations", evaluations, least=1)
    check_confidence(confidence)
    check_jobs(n_jobs)
    flag("sequential", sequential)
    started = time.monotonic()
    plan = subject if isinstance(subject, Plan) else subject.plan(domain)
    if announce is not None:
        announce(str(forecast(plan, evaluations=evaluations, seconds=seconds, runs=runs, n_jobs=n_jobs)))
    stability = attack_stability(plan, evaluations=evaluations, seconds=seconds, seed=seed)
    if getattr(subject, "random_state", None) is not None:
        stability = replace(stability, skipped=(*stability.skipped, SEEDED))
    output, pair, skipped = None, None, "it ends in a transformer, and no statistic is released"
    if plan.mechanism is not None or plan.releases:
        pair, skipped = pair_to_attack(plan, evaluations, seconds, seed, n_jobs, stability)
    if pair is not None:
        target = PlanTarget("all that is released", plan, *pair)
        output = attack_output(target, runs=runs, confidence=confidence, n_jobs=n_jobs, sequential=sequential)
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
        neighbours="" if plan.domain.adjacency.bounded else plan.domain.adjacency.words,
    )


@dataclass(frozen=True, slots=True)
class AuditForecast:
    """About how long an audit will take: all searches for neighbouring datasets, and all runs of the whole plan."""

    n_rows: int
    searches: int
    search_seconds: float
    runs: int
    run_seconds: float

    def __str__(self) -> str:
        searches = f"{self.searches} searches for datasets ({_words(self.search_seconds)})"
        words = _words(self.search_seconds + self.run_seconds)
        runs = f" and {self.runs:,} runs of the plan ({_words(self.run_seconds)})" if self.runs else ""
        return f"an audit with {self.n_rows:,} rows takes about {words}: {searches}{runs}"


def _words(seconds: float) -> str:
    return f"{max(1, round(seconds))} s" if seconds < 120 else f"{round(seconds / 60)} min"


def forecast(plan: Plan, *, evaluations: int, seconds: float, runs: int, n_jobs: int | None = None) -> AuditForecast:
    """Time a few pairs of every search and a few runs, and say how long an audit with these options will take."""
    from joblib import effective_n_jobs

    rng = np.random.default_rng(0)
    runnable = plan.mechanism is not None or bool(plan.releases)
    targets = [*plan_targets(plan)[0], *([answer_target(plan)] if runnable else [])]  # these for the worst pair
    pairs = [[target.world.drawn(rng) for _ in range(_TRIED)] for target in targets]
    uses = [_timed(target.uses, drawn) for target, drawn in zip(targets, pairs)]
    searched = sum(min(seconds, _CLIMBING * evaluations * one) for one in uses)
    if not runnable:
        return AuditForecast(plan.domain.n, len(targets), searched, 0, 0.0)
    trial = PlanTarget("a trial", plan, *pairs[-1][0])
    run = _timed(partial(trial.outcome, 0), [Noise() for _ in range(_TRIED)])
    return AuditForecast(plan.domain.n, len(targets), searched, runs, runs * run / effective_n_jobs(n_jobs))


def _timed(work: Callable[[Any], object], given: Sequence[Any]) -> float:
    """Seconds of one call, on average."""
    started = time.perf_counter()
    with suppress(Exception):  # the attack says what it raised, and of what
        for one in given:
            work(one)
    return (time.perf_counter() - started) / len(given)


def fewest_rows(plan: Callable[[Domain], Plan], domain: Domain) -> Plan:
    """The plan for the fewest of :data:`ROWS` with a route and a gate that data can pass; raises if there is none."""
    refused: PpdpError | None = None
    for n_rows in ROWS:
        try:
            found = plan(domain.but(n_rows=n_rows))
        except (NoRoute, InvalidParameter, DomainMismatch) as error:  # such as fewer rows than must be present
            if refused is None or isinstance(error, NoRoute):
                refused = error
            continue
        if not found.unpassable_gates:
            return found
        gates = ", ".join(found.unpassable_gates)
        refused = NoRoute(f"no data could pass the gate of {gates}.", fix="more rows or a larger epsilon.")
    assert refused is not None
    raise refused
