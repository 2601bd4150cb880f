"""The plan: everything that is decided before any data are seen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ppdp.checks import number
from ppdp.conditions import Condition
from ppdp.distance import Distance
from ppdp.domain import Domain
from ppdp.exceptions import ImpossibleBudget, NoRoute
from ppdp.gate import Gate
from ppdp.mechanisms.base import Question, behind
from ppdp.planning.budget import Split, check_shares, split
from ppdp.planning.facts import Fact
from ppdp.planning.route import PlannedRelease, PlannedStep, Route, routes
from ppdp.privacy.gaussian import gaussian_mu
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.noise import TOTAL_VARIATION_PER_DRAW
from ppdp.release_points import STATISTICS

__all__ = ["Alternative", "Plan", "PlannedMechanism", "make_plan"]

GATE_DELTA_SHARE = 0.1  # of delta, where the deltas of gate and mechanism add


@dataclass(frozen=True, slots=True)
class PlannedMechanism:
    """The last step with its solved noise; a sensitivity has what adds Gaussian noise to every answer."""

    name: str
    stage: Any
    question: Question
    sensitivity: float | None
    noise_scale: float
    loss: PrivacyLoss

    @property
    def relative_noise(self) -> float:
        """What routes are compared by."""
        return self.noise_scale if self.sensitivity is None else self.sensitivity / self.loss.mu


@dataclass(frozen=True, slots=True)
class Alternative:
    """One line of the comparison of routes."""

    route: str
    noise_scale: float | None
    status: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """A route with every bound and every noise scale; needs no data.

    Attributes
    ----------
    epsilon, delta : float
        The end-to-end guarantee the plan keeps.
    domain, distance : Domain, Distance
        At the entrance.
    facts : tuple of Fact
        The public facts with their origins.
    steps : tuple of PlannedStep
        Stages with their ways.
    releases : tuple of PlannedRelease
        Statistics to be released with noise.
    gate : Gate or None
        The test of all conditions.
    mechanism : PlannedMechanism or None
        The last step; None for a pipeline that ends in a transformer.
    end : tuple of (Domain, Distance)
        After the last stage.
    allowance : float
        Part of delta set aside for the noise sampler.
    alternatives : tuple of Alternative
        Every route with its final noise.
    warnings : tuple of str
        What a user should know before spending.
    """

    epsilon: float
    delta: float
    domain: Domain
    distance: Distance
    facts: tuple[Fact, ...]
    steps: tuple[PlannedStep, ...]
    releases: tuple[PlannedRelease, ...]
    gate: Gate | None
    mechanism: PlannedMechanism | None
    end: tuple[Domain, Distance]
    allowance: float
    alternatives: tuple[Alternative, ...]
    warnings: tuple[str, ...]

    @property
    def conditions(self) -> tuple[tuple[str, Condition], ...]:
        """Every condition with the name of its step."""
        return tuple((step.name, condition) for step in self.steps for condition in step.way.conditions)

    @property
    def hopeless(self) -> tuple[str, ...]:
        """Steps whose conditions leave too small a margin for the gate, whatever the data."""
        return () if self.gate is None else tuple(step.name for step in self.steps if _hopeless(step, self.gate))

    @property
    def drowned(self) -> bool:
        """Whether the noise of the mechanism is larger than half of what it asks for."""
        return self.mechanism is not None and _drowns(self.mechanism)

    @property
    def ungated(self) -> bool:
        """Whether conditions are assumed instead of tested."""
        return self.gate is None and bool(self.conditions)

    @property
    def loss(self) -> PrivacyLoss:
        """Everything that is released, composed."""
        before = _before(self.releases, self.gate)
        if self.mechanism is None:
            return before
        return behind(before, self.mechanism.loss)

    def __repr__(self) -> str:
        lines = [
            "PLAN: nothing has been certified",
            f"  (epsilon, delta) = ({self.epsilon:g}, {self.delta:g}), {self.domain.describe()}",
        ]
        for step in self.steps:
            lines.append(f"  {step.name:<12} {step.way.name:<7} -> {step.way.distance.describe()}")
        for release in self.releases:
            served = ", ".join(self.steps[i].name for i in release.serves)
            lines.append(
                f"  release of {release.statistic} for {served}: noise {release.noise_scale:.3g}, mu {release.mu:.3g}"
            )
        if self.gate is not None:
            lines.append(
                f"  gate: {len(self.conditions)} condition(s), passes in 99 % of cases from a margin of"
                f" {math.ceil(self.gate.needed_margin())} rows"
            )
        elif self.conditions:
            lines.append(f"  no gate: {len(self.conditions)} condition(s) are assumed")
        if self.mechanism is not None:
            q = self.mechanism.question
            lines.append(
                f"  {self.mechanism.name}: {q.steps} answer(s) of {q.size} numbers,"
                f" noise {self.mechanism.noise_scale:.3g} on values up to {q.bound:.3g}"
            )
        lines += [f"  warning: {warning}" for warning in self.warnings]
        return "\n".join(lines)


def make_plan(
    stages: Sequence[tuple[str, Any]],
    mechanism: tuple[str, Any] | None,
    domain: Domain,
    facts: tuple[Fact, ...],
    *,
    epsilon: float,
    delta: float,
    gate: str | None = "auto",
    budget: Mapping[str, float] | None = None,
    deltas_add: bool = False,
) -> Plan:
    """Choose the route of least final noise and solve its budget, once.

    Parameters
    ----------
    stages : sequence of (name, stage)
        Without the mechanism.
    mechanism : (name, mechanism) or None
        The last step.
    domain, facts : Domain, tuple of Fact
        Completed public facts.
    epsilon, delta : float
        The end-to-end budget.
    gate : {"auto", None}
        None assumes conditions instead of testing them.
    budget : mapping, optional
        Shares of mu² for "gate" and "release".
    deltas_add : bool, default=False
        Whether the deltas of gate and releases must add, because other fits on the same data may be chosen after
        this one's outcome is seen.

    Raises
    ------
    ImpossibleBudget
        If epsilon is not positive or delta is not below 1/n.
    NoRoute
        If no route can be certified within the budget.
    """
    epsilon, delta = _check_budget(epsilon, delta, domain.n)
    check_shares(budget)
    distance = Distance.neighbours(domain.rows_per_unit)
    solver = _Solver(mechanism, domain, distance, facts, epsilon, delta, gate, budget, deltas_add)
    predicts = mechanism is None or mechanism[1].predicts
    tried = [solver.solve(route) for route in routes(stages, domain, distance, predicts=predicts)]
    plans = _eligible(tried, mechanism is not None)
    if not plans:
        reasons = "; ".join(sorted({f"{t.route.label}: {t.reason}" for t in tried}))
        sampler = all("sampler" in t.reason for t in tried)
        fix = "more rows, a larger epsilon, or unconditional and noisy stages."
        raise NoRoute(
            f"no route can be certified within the budget ({reasons}).",
            fix="a smaller epsilon or a larger delta." if sampler else fix,
        )
    chosen = plans[0]
    table = tuple(
        Alternative(
            t.route.label,
            t.plan.mechanism.noise_scale
            if t in plans and t.plan is not None and t.plan.mechanism is not None
            else None,
            "chosen" if t is chosen else "offered" if t in plans else "not offered",
            "" if t in plans else t.reason or "its noise would drown the signal",
        )
        for t in tried
    )
    plan = chosen.kept_plan
    warnings = (*plan.warnings, *([f"{chosen.reason}: nothing better can be had."] if chosen.reason else []))
    return replace(plan, alternatives=table, warnings=warnings)


def _eligible(tried: Sequence[_Tried], has_mechanism: bool) -> list[_Tried]:
    """Plans to choose from, the best first.

    Routes whose released statistics are imprecise take part only where they are what does not drown the signal.
    """
    plans = sorted((t for t in tried if t.plan is not None), key=lambda t: t.order)
    precise = [t for t in plans if not t.reason]
    if not has_mechanism or (precise and not precise[0].kept_plan.drowned):
        return precise
    return [t for t in plans if not t.kept_plan.drowned] or precise


@dataclass(frozen=True, slots=True)
class _Tried:
    """A route with its plan, or with the reason why it has none, or why it is offered only if there is no better."""

    route: Route
    plan: Plan | None
    reason: str = ""

    @property
    def kept_plan(self) -> Plan:
        assert self.plan is not None
        return self.plan

    @property
    def order(self) -> tuple[Any, ...]:
        """Least final noise first; ties: public, noisy, exact."""
        m = self.kept_plan.mechanism
        noise = m.relative_noise if m is not None else 0.0
        return float(f"{noise:.9e}"), self.route.rank


@dataclass(frozen=True, slots=True)
class _Solver:
    """What all routes of one plan share."""

    mechanism: tuple[str, Any] | None
    domain: Domain
    distance: Distance
    facts: tuple[Fact, ...]
    epsilon: float
    delta: float
    gate: str | None
    budget: Mapping[str, float] | None
    deltas_add: bool

    def solve(self, route: Route) -> _Tried:
        """Solve one route, or say why it is not offered."""
        if not route.offered:
            return _Tried(route, None, "a condition would rest on a release that rests on a condition")
        if self.mechanism is None and any(s.way.name == "exact" and s.stage.fits for s in route.steps):
            return _Tried(route, None, "the map itself is released, so its statistics must be")
        try:
            plan, split_ = self._plan(route)
        except ImpossibleBudget as error:
            return _Tried(route, None, error.message)
        if plan.gate is not None:
            hopeless = [step.name for step in route.steps if step.stage.chooses and _hopeless(step, plan.gate)]
            if hopeless:
                return _Tried(route, None, f"no data could pass the gate of {', '.join(hopeless)}")
        vague = {route.steps[i].name for i in split_.imprecise if route.steps[i].stage.chooses}
        if vague:
            return _Tried(
                route, plan, f"released statistics of {', '.join(sorted(vague))} would be too noisy at this n"
            )
        return _Tried(route, plan)

    def _plan(self, route: Route) -> tuple[Plan, Split]:
        gated = bool(route.conditional) and self.gate is not None
        allowance = self._allowance(route)
        if allowance >= self.delta / 2:
            raise ImpossibleBudget("delta is below what the noise sampler can certify.", fix="ask for a larger delta.")
        delta = self.delta - allowance
        adding = gated and (route.gate_after_release or self.deltas_add)
        gate_delta = delta * (GATE_DELTA_SHARE if adding else 1.0)
        rest = (delta - gate_delta) / (1 - gate_delta) if adding else delta
        mu = gaussian_mu(self.epsilon, rest * (1 - 1e-9))
        shares = split(route, mu, mechanism=self.mechanism is not None, budget=self.budget, gated=gated)
        gate = None
        if gated:
            gate = Gate.of_budget(shares.gate, gate_delta, adding=adding, n_rows=self.domain.n)
        before = _before(shares.releases, gate)
        planned = None if self.mechanism is None else self._mechanism(route, shares.mechanism, before, delta)
        plan = Plan(
            self.epsilon,
            self.delta,
            self.domain,
            self.distance,
            self.facts,
            route.steps,
            shares.releases,
            gate,
            planned,
            (route.domain, route.distance),
            allowance,
            (),
            _warnings(gate, planned, route, self.domain.n),
        )
        return plan, shares

    def _mechanism(self, route: Route, mu: float, before: PrivacyLoss, delta: float) -> PlannedMechanism:
        assert self.mechanism is not None
        name, stage = self.mechanism
        here = route.domain, route.distance
        question = stage._question(route.domain, mu)
        sensitivity = question.sensitivity(*here) if question.gaussian else None
        scale = question.calibrated(*here, mu, before, (self.epsilon, delta))
        return PlannedMechanism(name, stage, question, sensitivity, scale, question.privacy_map(*here, scale))

    def _allowance(self, route: Route) -> float:
        """Delta for the sampler: ``(1 + exp ε) 2^-60`` for every number drawn."""
        draws = 1 + sum(STATISTICS[r.statistic].size(route.steps[r.at].domain) for r in route.releases)
        if self.mechanism is not None:
            most = self.mechanism[1]._question(route.domain, gaussian_mu(self.epsilon, self.delta))
            draws += most.steps * most.size
        return (1 + math.exp(self.epsilon)) * draws * TOTAL_VARIATION_PER_DRAW


def _before(releases: Sequence[PlannedRelease], gate: Gate | None) -> PrivacyLoss:
    """Loss of the releases and the gate."""
    mu = math.sqrt(sum(release.mu**2 for release in releases) + (gate.mu**2 if gate is not None else 0.0))
    delta = gate.delta if gate is not None else 0.0
    adding = gate is not None and gate.adding
    return PrivacyLoss(mu, delta if adding else 0.0, 0.0 if adding else delta)


def _check_budget(epsilon: Any, delta: Any, n: int) -> tuple[float, float]:
    usual = "usual values are epsilon=1.0, delta=1e-6."
    epsilon = number("epsilon", epsilon, above=0, kind=ImpossibleBudget, fix=usual)
    delta = number("delta", delta, above=0, kind=ImpossibleBudget, fix=usual)
    if delta * n >= 1:
        raise ImpossibleBudget(
            f"delta = {delta:g} is not below 1/n = {1 / n:.2g}: publishing one whole row would satisfy it.",
            fix=f"ask for delta far below 1/n, such as {0.1 / n:.0e}.",
        )
    if epsilon > 500:
        raise ImpossibleBudget(
            f"epsilon = {epsilon:g} promises nothing.", fix="ask for epsilon of a few units at most."
        )
    return epsilon, delta


def _hopeless(step: PlannedStep, gate: Gate) -> bool:
    """Whether the largest possible margin of a condition is too small for the gate."""
    return any(condition.largest < gate.needed_margin() for condition in step.way.conditions)


def _warnings(gate: Gate | None, mechanism: PlannedMechanism | None, route: Route, n: int) -> tuple[str, ...]:
    found = []
    hopeless = [step.name for step in route.steps if gate is not None and _hopeless(step, gate)]
    if hopeless:
        found.append(f"no data could pass the gate: the conditions of {', '.join(hopeless)} leave too small a margin.")
    elif gate is not None and gate.needed_margin() > n / 2:
        found.append(f"the gate needs a margin of {math.ceil(gate.needed_margin())} of {n} rows: expect a refusal.")
    if mechanism is not None and _drowns(mechanism):
        found.append(
            "the noise drowns the signal at this n: more rows, a larger epsilon or fewer moved rows would help."
        )
    return tuple(found)


def _drowns(mechanism: PlannedMechanism) -> bool:
    q = mechanism.question
    return q.gaussian and mechanism.noise_scale * math.sqrt(q.size / q.steps) > q.bound / 2
