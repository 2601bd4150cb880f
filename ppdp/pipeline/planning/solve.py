"""From stages and public facts to a plan: of all routes the one of least noise is taken."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from ppdp.bounds.release import PURE_SHARES, SHARES
from ppdp.core.checks import check_budget
from ppdp.core.domain import Domain
from ppdp.core.formula import draws_that_count, lookup
from ppdp.data.noisy_statistics import STATISTICS
from ppdp.data.public_facts import Fact
from ppdp.exceptions import ImpossibleBudget, NoRoute, UnsupportedOrder
from ppdp.mechanisms.base import QuerySpec
from ppdp.pipeline.planning.budget import (
    BudgetShares,
    DeltaShares,
    check_shares,
    gate_kinds_to_compare,
    gate_share,
    gated_split,
    pure,
    release_shares,
)
from ppdp.pipeline.planning.diagnostics import OFF, Counted, Entrance, affordable, alters
from ppdp.pipeline.planning.pareto import LISTED, Frontier
from ppdp.pipeline.planning.plan import Plan, PlannedMechanism, loss_before, out_of_reach, shortening
from ppdp.pipeline.planning.route import Alternative, PlannedRelease, Route, RouteSearch, asked
from ppdp.privacy.gate import Gate
from ppdp.privacy.gaussian import gaussian_mu
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.noise.sampler import TOTAL_VARIATION_PER_DRAW, certifiable_epsilon, lowered

NEARLY = 0.015  # more noise of a last step that is not Gaussian, beside Gaussian shares instead of Laplace ones
WIDE = 2000  # columns of which a matrix of all products takes long
PRODUCTS = 5e10  # of columns of all rows: as many take some two minutes


def make_plan(solver: PlanSolver, stages: Sequence[tuple[str, Any]]) -> Plan:
    """Choose the route of least final noise and solve its budget, once."""
    mechanism = solver.mechanism
    for vague in (False, True):  # statistics too noisy to be offered are tried only where all else drowns the signal
        frontier = solver.frontier(vague=vague)
        tried = [solver.solve(route) for route in solver.paths.routes(stages, frontier)]
        plans = _eligible(tried, mechanism is not None)
        if frontier.none_dropped or (plans and not plans[0].reason and not plans[0].solved_plan.noise_exceeds_signal):
            break
    if not plans:
        raise no_route([*((t.reason, t.route.label) for t in tried), *frontier.reasons.items()], solver.delta)
    chosen = plans[0]
    others: list[Alternative] = []
    if not frontier.complete:
        tried, others = solver.compared_with(chosen, stages)
        plans = _eligible(tried, mechanism is not None)
    table = (*(_line(t, chosen, offered=t in plans) for t in tried), *others)
    plan = chosen.solved_plan
    warning = f"with {solver.domain.n:,} rows at epsilon = {plan.epsilon:g} what is released is {chosen.reason}."
    warnings = (*plan.warnings, *([warning] if chosen.reason else []))
    return replace(plan, alternatives=table, warnings=warnings, vague=bool(chosen.reason)).with_declared()


def _line(tried: _Candidate, chosen: _Candidate, *, offered: bool) -> Alternative:
    """What the comparison of routes says of one."""
    label = tried.route.label
    if not offered:
        return Alternative(label, None, "not offered", tried.reason or "its noise would drown the signal")
    last = tried.solved_plan.mechanism
    noise = None if last is None else last.noise_scale
    return Alternative(label, noise, "chosen" if tried is chosen else "offered")


def no_route(found: Sequence[tuple[str, str]], delta: float) -> NoRoute | ImpossibleBudget:
    """The refusal: what to do, then every reason with its route or their number, or the first of very many."""
    routes: dict[str, set[str]] = {}
    for reason, label in found:
        routes.setdefault(reason, set()).add(label)
    reasons = sorted(
        f"{next(iter(labels)) if len(labels) == 1 else f'{len(labels)} routes'}: {reason.rstrip('.')}"
        for reason, labels in routes.items()
    )
    drawn = all("sampler" in reason for reason in routes)
    fix = "a larger delta." if drawn else "more rows, a larger epsilon, or unconditional and noisy stages."
    error: NoRoute | ImpossibleBudget = NoRoute("no route can be certified within the budget.", fix=fix)
    if delta == 0:
        error = ImpossibleBudget(
            "delta = 0 is a budget for what needs no delta.",
            fix="delta=1e-6, or LaplaceMechanism or SignMechanism behind stages that are public.",
            parameter="delta",
        )
    more = f"; and {len(reasons) - LISTED} more" if len(reasons) > LISTED else ""
    error.details = f"Reasons: {'; '.join(reasons[:LISTED])}{more}."
    return error


def _eligible(tried: Sequence[_Candidate], has_mechanism: bool) -> list[_Candidate]:
    """Plans to choose from, best first; with imprecise statistics only where they do not drown the signal."""
    plans = sorted((t for t in tried if t.plan is not None), key=lambda t: t.order)
    precise = [t for t in plans if not t.reason]
    if not has_mechanism or (precise and not precise[0].solved_plan.noise_exceeds_signal):
        return precise
    return [t for t in plans if not t.solved_plan.noise_exceeds_signal] or precise


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A route with its plan, or with the reason why it has none, or why it is offered only if there is no better."""

    route: Route
    plan: Plan | None
    reason: str = ""

    @property
    def solved_plan(self) -> Plan:
        assert self.plan is not None
        return self.plan

    @property
    def order(self) -> tuple[Any, ...]:
        """Least final noise first; ties: public, noisy, exact."""
        return float(f"{_noise(self.solved_plan):.9e}"), self.route.rank


@dataclass(slots=True)
class PlanSolver:
    """What all routes of one plan share, completed domain and facts first.

    ``deltas_add`` says whether deltas of gate and releases must add: other fits may be chosen after this one's outcome.
    """

    mechanism: tuple[str, Any] | None
    domain: Domain
    facts: tuple[Fact, ...]
    epsilon: float
    delta: float
    gate: str | None
    budget: Mapping[str, float] | None
    deltas_add: bool
    entrance: Entrance | None = None  # what may be altered there; None where nothing can be
    paths: RouteSearch = field(init=False)
    behind: tuple[Route, Any] | None = field(init=False, default=None)  # the last step, as asked behind this route

    def __post_init__(self) -> None:
        self.epsilon, self.delta = check_budget(self.epsilon, self.delta, self.domain.n)
        check_shares(self.budget)
        predicts = self.mechanism is None or self.mechanism[1].predicts
        clips = self.mechanism is not None and self.mechanism[1].clips_rows
        self.paths = RouteSearch(self.domain, self.domain.neighbours, predicts=predicts, clips=clips)

    def frontier(self, *, vague: bool) -> Frontier:
        """What keeps the routes that are worth solving."""
        rest = [DeltaShares.of(self.delta, adding=adds or self.deltas_add).rest for adds in (False, True)]
        single, adds = (self.mu_at(delta) for delta in rest)
        gate = 0.0 if self.gate is None else gate_share(self.budget)
        shares = () if self.mechanism is None else release_shares(self.budget)
        return Frontier((single, adds), shares, gate, self.unusable, vague)

    def compared_with(
        self, chosen: _Candidate, stages: Sequence[tuple[str, Any]]
    ) -> tuple[list[_Candidate], list[Alternative]]:
        """The chosen route with those to compare it with, each once, and changes of it that are impossible."""
        extremes = [self.paths.mostly(way, stages) for way in ("exact", "noisy")]
        tried, others = {chosen.route.label: chosen}, []
        for route in [*self.paths.changes(chosen.route), *extremes]:
            if isinstance(route, Alternative):
                others.append(route)
            elif route.label not in tried:
                tried[route.label] = self.solve(route)
        return [*tried.values()], others

    def mu_at(self, delta: float) -> float:
        """What Gaussian noise may cost: nothing where delta is 0."""
        return gaussian_mu(self.epsilon, delta) if delta else 0.0

    def asked(self, route: Route) -> Any:
        """The last step, with raw numbers in the units of its rows."""
        assert self.mechanism is not None
        if self.behind is None or self.behind[0] is not route:
            self.behind = route, asked(self.mechanism[1], self.domain, route)
        return self.behind[1]

    def unusable(self, route: Route) -> str:
        """Why a route cannot be executed, whatever follows; empty if it can."""
        if self.delta == 0 and (route.releases or route.conditional):
            return "released statistics and gates need a delta above 0"
        if not route.offered:
            return "a condition would rest on a release that rests on a condition"
        if self.mechanism is None and any(step.way.private for step in route.steps):
            return "the map itself is released, so its statistics must be"
        return ""

    def solve(self, route: Route) -> _Candidate:
        """Solve one route, or say why it is not offered."""
        unusable = self.unusable(route)
        if unusable:
            return _Candidate(route, None, unusable)
        try:
            plan, split_ = self.plan(route)
        except ImpossibleBudget as error:
            return _Candidate(route, None, error.message)
        if plan.gate is not None:
            hopeless = [step.name for step in route.steps if step.stage.chooses and out_of_reach(step, plan.gate)]
            if hopeless:
                return _Candidate(route, None, f"no data could pass the gate of {', '.join(hopeless)}")
        return _Candidate(route, plan, _too_noisy(route, split_.imprecise))

    def plan(self, route: Route) -> tuple[Plan, BudgetShares]:
        """Of all kinds of gate that may be used the one that leaves the mechanism the least noise."""
        if not route.conditional or self.gate is None:
            return self.with_gate(route, None)
        if self.gate != "auto":
            return self.with_gate(route, self.gate)
        plan, shares = self.with_gate(route, "gaussian")
        for kind in gate_kinds_to_compare(plan.mechanism.loss) if plan.mechanism is not None else ():
            rival, others = self.with_gate(route, kind)
            if _noise(rival) < _noise(plan):
                plan, shares = rival, others
        return plan, shares

    def with_gate(self, route: Route, kind: str | None) -> tuple[Plan, BudgetShares]:
        """The plan of a route with this kind of gate; with shares of altered rows if the mechanism keeps enough."""
        if self.entrance is None or not self._alters(route):
            return self._with_gate(route, kind, None)
        solved: list[tuple[Plan, BudgetShares]] = []
        for counted in self._counted(route, self.entrance):
            last = solved[0][0].mechanism if solved else None
            if last is not None and not pure(last.loss):
                break
            with suppress(ImpossibleBudget):
                solved.append(self._with_gate(route, kind, counted))
        if solved:
            most = (1 + NEARLY) * min(_noise(plan) for plan, _ in solved)
            return next(one for one in solved if _noise(one[0]) <= most)
        if self.entrance.balances:
            raise ImpossibleBudget("the budget leaves nothing for the numbers of rows of each class.")
        plan, split_ = self._with_gate(route, kind, None)
        return replace(plan, silent="the budget leaves nothing for them" if self.entrance.told else OFF), split_

    def _counted(self, route: Route, entrance: Entrance) -> list[Counted]:
        """Which properties of rows are counted, with noise of each law that may do; none if nobody wants to know."""
        if not (entrance.told or entrance.balances):
            return []
        gaussian = self.mechanism is None or self.asked(route).query_spec(route.domain).gaussian
        laws = [SHARES] * (self.delta > 0) + [PURE_SHARES] * (not gaussian)
        most = [affordable(law, self.domain, self.mu_at(self.delta), self.epsilon) for law in laws]
        return [Counted.on(route, entrance, self.domain, *of_law) for of_law in zip(most, laws)]

    def _alters(self, route: Route) -> bool:
        """Whether something can be altered of which anything is released."""
        released = self.mechanism is not None or bool(route.releases)
        return released and self.entrance is not None and alters(route, self.entrance, self.domain)

    def _with_gate(self, route: Route, kind: str | None, counted: Counted | None) -> tuple[Plan, BudgetShares]:
        if self.mechanism is not None and route.domain.missing_rows and not self.mechanism[1].fills_gaps:
            raise _has_gaps(route.domain, self.mechanism[0])
        draws = self._draws(route) + (0 if counted is None else counted.draws)
        if self.delta == 0 and draws:
            raise ImpossibleBudget("Gaussian noise needs a delta above 0.")
        epsilon = certifiable_epsilon(self.epsilon, self.delta, draws)
        if epsilon <= 0:
            what = "delta is below what the noise sampler can certify."
            raise ImpossibleBudget(what, fix="ask for a larger delta.", parameter="delta")
        allowance = (1 + math.exp(epsilon)) * draws * TOTAL_VARIATION_PER_DRAW
        delta = self.delta - allowance
        adding = kind is not None and (route.gate_after_release or self.deltas_add)
        shares, gate = gated_split(
            route,
            kind,
            epsilon,
            DeltaShares.of(delta, adding=adding, fails=route.fails),
            n_rows=self.domain.n,
            mechanism=self.mechanism is not None,
            gaussian=self.mechanism is None or self.asked(route).query_spec(route.domain).gaussian,
            budget=self.budget,
            diagnostics=0.0 if counted is None else counted.share,
        )
        diagnostics = None if counted is None else counted.at(shares.diagnostics, epsilon, self.domain.n)
        before = loss_before(shares.releases, gate, diagnostics)
        planned = None if self.mechanism is None else self._mechanism(route, shares.mechanism, before, (epsilon, delta))
        plan = Plan(
            epsilon,
            self.delta,
            self.domain,
            self.paths.start.distance,
            self.facts,
            route.steps,
            shares.releases,
            gate,
            planned,
            (route.domain, route.distance),
            allowance,
            (),
            (
                *([lowered(self.epsilon, self.delta, epsilon)] if epsilon < self.epsilon else []),
                *_warnings(gate, planned, route, self.domain.n, epsilon),
                *_undeclared(self.facts),
            ),
            diagnostics=diagnostics,
        )
        return plan, shares

    def _mechanism(self, route: Route, mu: float, before: PrivacyLoss, budget: tuple[float, float]) -> PlannedMechanism:
        assert self.mechanism is not None
        name, stage = self.mechanism
        here = route.domain, route.distance
        question = self.asked(route).query_spec_at(*here, mu)
        sensitivity = question.sensitivity(*here) if question.gaussian else None
        scale = question.calibrated(*here, mu, before, budget)
        loss, most = question.privacy_map(*here, scale), self.domain.max_weight
        return PlannedMechanism(name, stage, question, sensitivity, scale, loss, most or 1.0)

    def _draws(self, route: Route) -> float:
        """How many numbers are drawn by a law that is not drawn exactly."""
        draws = sum(_draws(route, release) for release in route.releases)
        draws += bool(route.conditional)
        if self.mechanism is not None:
            stage, mu = self.asked(route), self.mu_at(self.delta)
            questions = stage.query_spec(route.domain, mu), stage.query_spec_at(route.domain, route.distance, mu)
            draws += max(_draws_of(route, question) for question in questions)
        return draws


def _has_gaps(domain: Domain, stage: str) -> UnsupportedOrder:
    """The refusal of rows that may have missing values in front of a last step that takes none."""
    bare = [repr(group.name) for group in domain.groups if not group.complete]
    where, fix = "", "fill those of every column before it."
    if 0 < len(bare) < len(domain.groups):
        where = f", in the columns of {', '.join(bare)}"
        fix = f"an imputer at the end of {bare[0]}: MeanImputer(max_missing=0) where no value is missing."
    return UnsupportedOrder(f"rows may have missing values here{where}.", stage=stage, fix=fix)


def _draws_of(route: Route, question: QuerySpec) -> int:
    """How many drawn numbers of the last step count."""
    asked: dict[str, Any] = {"steps": question.steps, "size": question.size, "parameters": question.parameters}
    return draws_that_count(question.formula, route.domain, route.distance, **asked)


def _draws(route: Route, release: PlannedRelease) -> int:
    """How many drawn numbers of a release count."""
    statistic, step = STATISTICS[release.statistic], route.steps[release.at]
    size = statistic.size(step.domain, release.parameters)
    return lookup(statistic.formula, "release").draws(step.distance, size, release.parameters)


def _too_noisy(route: Route, imprecise: Sequence[tuple[PlannedRelease, float]]) -> str:
    """Why statistics that are released are no use, by what they are for; empty if a user insists on them."""
    reasons = []
    for release, error in imprecise:
        served = [route.steps[i] for i in release.serves if route.steps[i].stage.chooses]
        names = ", ".join(repr(step.name) for step in served)
        if served and all(step.way.name != "noisy" for step in served):  # rows are fitted exactly, new rows are not
            names = f"predictions of {names}"
        if served:
            share = f"{100 * error:.2g} %" if error < 1 else "100 % and more"
            reasons.append(STATISTICS[release.statistic].said.format(of=names, share=share))
    return f"too noisy: {'; '.join(reasons)}" if reasons else ""


def _warnings(
    gate: Gate | None, mechanism: PlannedMechanism | None, route: Route, n: int, epsilon: float
) -> tuple[str, ...]:
    warnings = []
    hopeless = ", ".join(step.name for step in route.steps if gate is not None and out_of_reach(step, gate))
    if hopeless:
        warnings.append(f"no data could pass the gate: the conditions of {hopeless} leave too small a margin.")
    elif gate is not None and gate.needed_margin() > n / 2:
        warnings.append(f"the gate needs a margin of {math.ceil(gate.needed_margin())} of {n} rows: expect a refusal.")
    if mechanism is not None and mechanism.misleads:
        of, why = repr(mechanism.name), ""
        if any(mechanism.question.factors):
            of, why = "the class of the least weight", ", by the ratio of class_weight"
        elif mechanism.max_weight > 1:
            of, why = "weights of 1", f", by max_weight = {mechanism.max_weight:g}: cap them at a smaller one"
        warnings.append(
            f"with {n:,} rows at epsilon = {epsilon:g} the noise drowns the signal: it is"
            f" {mechanism.share_of_noise / mechanism.lightest:.2g} times the largest answer that {of} can give{why}."
        )
    warnings += [
        f"{step.name!r} works on a matrix of {step.domain.d:,} x {step.domain.d:,} numbers"
        f" ({8 * step.domain.d**2 / 2**30:.1g} GiB), which takes minutes: RandomProjection in front of it, or fewer"
        " columns or categories, needs no such matrix."
        for step in route.steps
        if step.stage.multiplies_columns
        and step.way.name != "public"
        and (step.domain.d > WIDE or n * step.domain.d**2 > PRODUCTS)
    ]
    warnings += [
        f"{step.name!r} shortens rows of {step.domain.d} standardised columns, {math.sqrt(step.domain.d):.2g} long"
        f" as a rule, to {step.way.parameters['max_norm']:g}: only their directions are left. A max_norm near that?"
        for step in shortening(route.steps)
    ]
    return (*warnings, *(mechanism.question.warnings if mechanism is not None else ()))


def _undeclared(facts: Sequence[Fact]) -> list[str]:
    """What makes a certificate conditional only because nobody has said it."""
    warning = "classes are not declared, so labels are read from y, and the certificate will be CONDITIONAL on that:"
    undeclared = any(fact.name == "classes" and not fact.public for fact in facts)
    return [f"{warning} pass classes=(...) to the last step."] * undeclared


def _noise(plan: Plan) -> float:
    """What plans are compared by; 0 without a mechanism."""
    return plan.mechanism.relative_noise if plan.mechanism is not None else 0.0
