"""What other people's claims come to under the same calculus; needs no data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.exceptions import ImpossibleBudget, UnsupportedOrder
from ppdp.mechanisms.base import Question
from ppdp.pipeline.planning.others import as_many
from ppdp.pipeline.planning.plan import Alternative, Plan
from ppdp.pipeline.planning.route import Route
from ppdp.privacy.gaussian import gaussian_mu
from ppdp.privacy.loss import PrivacyLoss

__all__ = ["GroupPrivacy", "NaiveClaim", "exact_route", "group_privacy", "most_of", "naive_claim"]


@dataclass(frozen=True, slots=True)
class NaiveClaim:
    """The claim that ignores pre-processing, and what can be certified for the same noise.

    Attributes
    ----------
    noise_scale : float
        Noise that would be enough if pre-processing were free.
    claimed : float
        The epsilon that is claimed for it.
    certified : float
        Smallest epsilon that can be certified for it, statistics fitted without noise and kept secret; infinite if
        none can.
    by_group_privacy : float
        Epsilon by group privacy: every row may have changed; infinite if nothing is proved of that many rows.
    """

    noise_scale: float
    claimed: float
    certified: float
    by_group_privacy: float


@dataclass(frozen=True, slots=True)
class GroupPrivacy:
    """The noise that keeps the budget although any row may have changed.

    Attributes
    ----------
    noise_scale : float or None
        None if there is no such noise.
    bound : float
        On every number that is released.
    reason : str
        Why there is none.
    """

    noise_scale: float | None
    bound: float
    reason: str = ""

    @property
    def drowns(self) -> bool:
        """Whether the noise is larger than what is released."""
        return self.noise_scale is not None and self.noise_scale > self.bound


def exact_route(stages: Sequence[tuple[str, Any]], domain: Domain) -> Route:
    """The route on which every stage that can be fitted without noise is.

    Parameters
    ----------
    stages : sequence of (name, stage)
        The steps without the mechanism.
    domain : Domain
        Completed public facts at the entrance.
    """
    return as_many("exact", stages, domain, domain.adjacency.distance)


def naive_claim(plan: Plan, stages: Sequence[tuple[str, Any]], mechanism: Any) -> NaiveClaim:
    """Evaluate the usual practice: fit the stages without noise, account for the mechanism alone.

    Parameters
    ----------
    plan : Plan
        Gives budget and public facts.
    stages : sequence of (name, stage)
        The steps without the mechanism.
    mechanism : Mechanism
        The last step.
    """
    route, question = _asked(plan, stages, mechanism)
    noise = _enough(question, plan, route, plan.distance)
    through, group = (
        _provable(question, route.domain, far, noise, plan.delta) for far in (route.distance, _everyone(plan))
    )
    return NaiveClaim(noise, plan.epsilon, min(through, group), group)


def group_privacy(plan: Plan, stages: Sequence[tuple[str, Any]], mechanism: Any) -> GroupPrivacy:
    """The price of knowing nothing of the stages but that they may change every row; parameters as for the claim."""
    route, question = _asked(plan, stages, mechanism)
    try:
        return GroupPrivacy(_enough(question, plan, route, _everyone(plan)), question.bound)
    except (ImpossibleBudget, UnsupportedOrder) as error:
        return GroupPrivacy(None, question.bound, error.message.rstrip("."))


def most_of(
    way: str, alternatives: Sequence[Alternative], plan: Plan, stages: Sequence[tuple[str, Any]]
) -> Alternative | None:
    """The route on which as many stages as can be go this way; None if no stage can.

    Parameters
    ----------
    way : {"exact", "noisy"}
        Of stages that look at the rows.
    alternatives : sequence of Alternative
        Of the plan, which lists this route.
    plan : Plan
        Gives the public facts.
    stages : sequence of (name, stage)
        The steps without the mechanism.
    """
    route = as_many(way, stages, plan.domain, plan.distance)
    if all(step.way.name != way for step in route.steps):
        return None
    return next(alternative for alternative in alternatives if alternative.route == route.label)


def _asked(plan: Plan, stages: Sequence[tuple[str, Any]], mechanism: Any) -> tuple[Route, Question]:
    """What the mechanism asks behind stages that are fitted without noise."""
    route = exact_route(stages, plan.domain)
    question: Question = mechanism.question(route.domain, gaussian_mu(plan.epsilon, plan.delta))
    return route, question


def _enough(question: Question, plan: Plan, route: Route, distance: Distance) -> float:
    """Noise that keeps the whole budget at this distance."""
    mu = gaussian_mu(plan.epsilon, plan.delta)
    return question.calibrated(route.domain, distance, mu, PrivacyLoss(), (plan.epsilon, plan.delta))


def _provable(question: Question, domain: Domain, distance: Distance, noise: float, delta: float) -> float:
    try:
        with np.errstate(over="ignore"):  # likelihood ratios of losses in the thousands
            return question.privacy_map(domain, distance, noise).epsilon(delta)
    except UnsupportedOrder:  # nothing is known of this mechanism at such a distance
        return math.inf


def _everyone(plan: Plan) -> Distance:
    return Distance(replaced=plan.domain.n)
