"""How long an audit will take, and with how few rows it can be made, before it begins."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np

from ppdp.audit.claims import StabilityTarget
from ppdp.audit.plans import AnswerTarget, plan_targets
from ppdp.audit.target import PlanTarget
from ppdp.core.domain import Domain
from ppdp.exceptions import DomainMismatch, InvalidParameter, NoRoute, PpdpError
from ppdp.pipeline.planning.plan import Plan
from ppdp.privacy.noise.sampler import Noise
from ppdp.testing.neighbours import Pair

__all__ = ["ROWS", "Forecast", "fewest_rows", "forecast"]

ROWS = (12, 20, 30, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
"""Numbers of rows that are tried for a plan to attack."""

_TRIED = 10  # pairs and runs that are timed
_CLIMBING = 2.0  # a pair that is climbed to costs about so many drawn ones


@dataclass(frozen=True, slots=True)
class Forecast:
    """About how long an audit will take.

    Attributes
    ----------
    n_rows : int
        Of the plan.
    searches : int
        How many searches for neighbouring datasets there are.
    search_seconds : float
        Of all of them.
    runs : int
        Of the whole plan.
    run_seconds : float
        Of all of them.
    """

    n_rows: int
    searches: int
    search_seconds: float
    runs: int
    run_seconds: float

    @property
    def seconds(self) -> float:
        """Of everything."""
        return self.search_seconds + self.run_seconds

    def __str__(self) -> str:
        searches = f"{self.searches} searches for datasets ({_words(self.search_seconds)})"
        runs = f" and {self.runs:,} runs of the plan ({_words(self.run_seconds)})" if self.runs else ""
        return f"an audit with {self.n_rows:,} rows takes about {_words(self.seconds)}: {searches}{runs}"


def _words(seconds: float) -> str:
    return f"{max(1, round(seconds))} s" if seconds < 120 else f"{round(seconds / 60)} min"


def forecast(plan: Plan, *, evaluations: int, seconds: float, runs: int, n_jobs: int | None = None) -> Forecast:
    """Time a few pairs of every search and a few runs, and say how long all of them will take.

    Parameters
    ----------
    plan : Plan
        What is to be attacked.
    evaluations, seconds, runs, n_jobs
        As for :func:`ppdp.audit.audit`.
    """
    rng = np.random.default_rng(0)
    runnable = plan.mechanism is not None or bool(plan.releases)
    targets = [*plan_targets(plan)[0], *([AnswerTarget.of(plan)] if runnable else [])]  # these for the worst pair
    pairs = [[target.world.drawn(rng) for _ in range(_TRIED)] for target in targets]
    uses = [_timed(partial(_used, *both)) / _TRIED for both in zip(targets, pairs)]
    searched = sum(min(seconds, _CLIMBING * evaluations * one) for one in uses)
    if not runnable:
        return Forecast(plan.domain.n, len(targets), searched, 0, 0.0)
    trial = PlanTarget("a trial", plan, *pairs[-1][0])
    run = _timed(partial(trial.outcomes, 0, _TRIED, Noise())) / _TRIED
    return Forecast(plan.domain.n, len(targets), searched, runs, runs * run / _processes(n_jobs))


def _used(target: StabilityTarget, pairs: Iterable[Pair]) -> None:
    for pair in pairs:
        target.uses(pair)


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    with suppress(Exception):  # the attack says what it raised, and of what
        work()
    return time.perf_counter() - started


def _processes(n_jobs: int | None) -> int:
    from joblib import effective_n_jobs

    return int(effective_n_jobs(n_jobs))


def fewest_rows(plan: Callable[[Domain], Plan], domain: Domain) -> Plan:
    """The plan for the fewest of :data:`ROWS` that has a route, and a gate that data can pass.

    Parameters
    ----------
    plan : callable
        From a domain to a plan, such as ``Pipeline.plan``.
    domain : Domain
        All other public facts.

    Raises
    ------
    NoRoute
        If none of these numbers of rows has a route.
    InvalidParameter or DomainMismatch
        If every one of them ends in such an error.
    """
    refused: PpdpError | None = None
    for n_rows in ROWS:
        try:
            found = plan(domain.but(n_rows=n_rows))
        except (NoRoute, InvalidParameter, DomainMismatch) as error:  # such as fewer rows than must be present
            if refused is None or isinstance(error, NoRoute):
                refused = error
            continue
        if not found.hopeless:
            return found
        gates = ", ".join(found.hopeless)
        refused = NoRoute(f"no data could pass the gate of {gates}.", fix="more rows or a larger epsilon.")
    assert refused is not None
    raise refused
