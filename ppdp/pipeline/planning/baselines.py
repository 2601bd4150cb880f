"""What the usual claims are worth beside what ppdp certifies, for one pipeline; needs no data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from ppdp.core.adjacency import Adjacency
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.figures import aligned, figure, html_table, visible
from ppdp.data.public_facts import merged
from ppdp.exceptions import ImpossibleBudget, InvalidParameter, UnsupportedOrder
from ppdp.mechanisms.base import QuerySpec
from ppdp.pipeline.planning.plan import Plan
from ppdp.pipeline.planning.route import Route, RouteSearch, asked
from ppdp.privacy.gaussian import gaussian_mu
from ppdp.privacy.loss import PrivacyLoss

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_HEAD = ("practice", "claims", "provable", "noise", "status", "why")


@dataclass(frozen=True, slots=True)
class Baseline:
    """One way of doing the same pipeline."""

    name: str  # what it is called
    claimed: float  # the epsilon it claims
    provable: float  # the least epsilon that can be proved for its noise; infinite if none can
    noise_scale: float | None  # of the last step; None if it has none
    status: str  # of the claim: "does not hold", "holds", "not offered" or "chosen"
    reason: str  # why, in public words


@dataclass(frozen=True, slots=True)
class Comparison:
    """The usual practices beside the chosen route, in public numbers; shows itself as a table and a picture.

    Attributes
    ----------
    epsilon, delta : float
        The budget of all of them.
    domain : str
        The public facts, in words.
    rows_per_unit : int
        How many rows one person may own.
    last_step : str
        Name of the step whose noise is compared.
    practices : tuple of Baseline
        Naive claim, group privacy, all-exact route, all-noisy route, ours.
    """

    epsilon: float
    delta: float
    domain: str
    rows_per_unit: int
    last_step: str
    practices: tuple[Baseline, ...]

    def __getitem__(self, name: str) -> Baseline:
        """A practice by its name."""
        return {practice.name: practice for practice in self.practices}[name]

    def to_dict(self) -> dict[str, Any]:
        """Plain values that are JSON: None for what cannot be proved."""
        content = asdict(self)
        content["practices"] = [
            {key: None if value == math.inf else value for key, value in practice.items()}
            for practice in content["practices"]
        ]
        return content

    def plot(self, ax: Axes | None = None) -> Axes:
        """Bars of noise with what each claim is worth; see :func:`ppdp.plot.comparison`."""
        from ppdp import plot

        return plot.comparison(self, ax)

    @property
    def title(self) -> str:
        """What is compared, in one line."""
        return (
            f"(ε, δ) = ({figure(self.epsilon)}, {figure(self.delta)}) for {Adjacency.replace(self.rows_per_unit).unit},"
            f" {self.domain}"
        )

    @property
    def footnote(self) -> str:
        """What the numbers mean."""
        return (
            f"noise: of {self.last_step!r}. Naive claim and group privacy count the noise of {self.last_step!r} alone,"
            " and hold only while all fitted statistics stay secret."
        )

    def __repr__(self) -> str:
        lines = aligned([_HEAD, *map(_cells, self.practices)])
        return "\n  ".join(["COMPARISON: nothing has been certified", self.title, *lines, self.footnote])

    def _repr_html_(self) -> str:
        from ppdp.plot.canvas import embedded

        chosen = [practice.status for practice in self.practices].index("chosen")
        table = html_table(
            f"COMPARISON: nothing has been certified\n{self.title}", _HEAD, map(_cells, self.practices), bold=chosen
        )
        picture = embedded(self.plot, self.title, (8, 2.9))
        return f"<div>{table}<div>{escape(visible(self.footnote))}</div>{picture}</div>"


def _cells(practice: Baseline) -> tuple[str, ...]:
    noise = "" if practice.noise_scale is None else figure(practice.noise_scale, 3)
    provable = "nothing" if practice.provable == math.inf else f"ε = {figure(practice.provable, upward=True)}"
    if practice.status == "not offered":
        provable = ""
    return practice.name, f"ε = {figure(practice.claimed)}", provable, noise, practice.status, practice.reason


Stages = Sequence[tuple[str, Any]]


def compare(pipe: Any, domain: Domain | None) -> Comparison:
    """Compare the plan of a pipeline with the usual practices; see :meth:`ppdp.Pipeline.compare`."""
    plan: Plan = pipe.plan(domain)
    if plan.mechanism is None:
        what = "a pipeline that ends in a transformer has no last noise to compare."
        raise InvalidParameter(what, fix="add a mechanism as the last step, or look at pipe.plan(domain).")
    if not plan.domain.adjacency.bounded:
        raise InvalidParameter("the usual practices are compared for replaced rows only.", fix="Adjacency.replace().")
    *stages, (_, mechanism) = copy(pipe).set_params(domain=merged(domain, pipe.domain)).own_steps()
    return Comparison(
        plan.epsilon,
        plan.delta,
        plan.domain.but(rows_per_unit=1).describe(),
        plan.domain.rows_per_unit,
        plan.mechanism.name,
        (
            _naive(plan, stages, mechanism),
            _group(plan, stages, mechanism),
            _route("exact", "no stage is fitted without noise", plan, stages),
            _route("noisy", "no stage is fitted from released statistics", plan, stages),
            _ours(plan),
        ),
    )


@dataclass(frozen=True, slots=True)
class NaiveBaseline:
    """The claim that ignores pre-processing, and the least epsilon that can be certified for the same noise."""

    noise_scale: float  # would be enough if pre-processing were free
    claimed: float
    certified: float  # statistics fitted without noise and kept secret; infinite if there is none
    by_group_privacy: float  # as if every row may have changed; infinite if nothing is proved of that many rows


def exact_route(stages: Stages, domain: Domain) -> Route:
    """The route on which every stage that can be fitted without noise is; with completed facts at the entrance."""
    return RouteSearch(domain, domain.neighbours).mostly("exact", stages)


def naive_baseline(plan: Plan, stages: Stages, mechanism: Any) -> NaiveBaseline:
    """Evaluate the usual practice: fit the stages without noise, account for the mechanism alone."""
    route, question = _asked(plan, stages, mechanism)
    noise = _enough(question, plan, route, plan.distance)
    through, group = (
        _provable(question, route.domain, far, noise, plan.delta) for far in (route.distance, _everyone(plan))
    )
    if any(step.way.name == "noisy" for step in route.steps):
        through = math.inf  # what such a stage does to rows is proved of what is released alone
    return NaiveBaseline(noise, plan.epsilon, min(through, group), group)


def _naive(plan: Plan, stages: Stages, mechanism: Any) -> Baseline:
    claim = naive_baseline(plan, stages, mechanism)
    holds = claim.certified <= claim.claimed * (1 + 1e-9)
    reason = (
        "the stages leave neighbouring datasets as close as they were" if holds else "pre-processing is not counted"
    )
    if not holds and claim.certified < claim.by_group_privacy < math.inf:
        reason += f"; by group privacy ε = {figure(claim.by_group_privacy, upward=True)}"
    if not holds and claim.by_group_privacy == math.inf:
        reason += ", and nothing is proved of this mechanism where so many rows change"
    assumed = exact_route(stages, plan.domain).conditions
    if assumed and claim.certified < min(claim.by_group_privacy, math.inf):
        reason += f"; provable only where {len(assumed)} untested condition(s) hold"
    status = "holds" if holds else "does not hold"
    return Baseline("naive claim", claim.claimed, claim.certified, claim.noise_scale, status, reason)


def _group(plan: Plan, stages: Stages, mechanism: Any) -> Baseline:
    """The price of knowing nothing of the stages but that they may change every row."""
    route, question = _asked(plan, stages, mechanism)
    try:
        noise = _enough(question, plan, route, _everyone(plan))
    except (ImpossibleBudget, UnsupportedOrder) as error:
        return _impossible("group privacy", plan, error.message.rstrip("."))
    drowns = ": more noise than anything that is released" if noise > question.bound else ""
    return _held("group privacy", plan, noise, f"any row may have changed{drowns}")


def _route(way: str, none: str, plan: Plan, stages: Stages) -> Baseline:
    """The route of the table on which as many stages as can be go this way, if any can."""
    name = f"all-{way} route"
    most = RouteSearch(plan.domain, plan.distance).mostly(way, stages)
    if all(step.way.name != way for step in most.steps):
        return _impossible(name, plan, none)
    alternative = next(route for route in plan.alternatives if route.route == most.label)
    if alternative.noise_scale is None:
        return _impossible(name, plan, alternative.reason)
    return _held(name, plan, alternative.noise_scale, alternative.route)


def _ours(plan: Plan) -> Baseline:
    assert plan.mechanism is not None
    reason = next((route.route for route in plan.alternatives if route.status == "chosen"), "")
    if plan.conditions_untested:
        reason += f"; assumes {len(plan.conditions)} condition(s)"
    return _held("ours", plan, plan.mechanism.noise_scale, reason, "chosen")


def _held(name: str, plan: Plan, noise: float, told: str, status: str = "holds") -> Baseline:
    return Baseline(name, plan.epsilon, plan.epsilon, noise, status, told)


def _impossible(name: str, plan: Plan, told: str) -> Baseline:
    return Baseline(name, plan.epsilon, math.inf, None, "not offered", told)


def _asked(plan: Plan, stages: Stages, mechanism: Any) -> tuple[Route, QuerySpec]:
    """What the mechanism asks behind stages that are fitted without noise."""
    route = exact_route(stages, plan.domain)
    last = asked(mechanism, plan.domain, route)
    question: QuerySpec = last.query_spec_at(route.domain, plan.distance, gaussian_mu(plan.epsilon, plan.delta))
    return route, question


def _enough(question: QuerySpec, plan: Plan, route: Route, distance: Distance) -> float:
    """Noise that keeps the whole budget at this distance."""
    mu = gaussian_mu(plan.epsilon, plan.delta)
    return question.calibrated(route.domain, distance, mu, PrivacyLoss(), (plan.epsilon, plan.delta))


def _provable(question: QuerySpec, domain: Domain, distance: Distance, noise: float, delta: float) -> float:
    try:
        with np.errstate(over="ignore"):  # likelihood ratios of losses in the thousands
            return question.privacy_map(domain, distance, noise).epsilon(delta)
    except UnsupportedOrder:  # nothing is known of this mechanism at such a distance
        return math.inf


def _everyone(plan: Plan) -> Distance:
    return Distance(replaced=plan.domain.n)
