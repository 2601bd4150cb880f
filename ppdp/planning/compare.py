"""What other people's claims come to under the same calculus; needs no data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ppdp.distance import Distance
from ppdp.domain import Domain
from ppdp.planning.plan import Plan
from ppdp.planning.route import RANK, Route, routes
from ppdp.privacy.gaussian import gaussian_mu
from ppdp.privacy.loss import PrivacyLoss

__all__ = ["NaiveClaim", "exact_route", "naive_claim"]


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
        Smallest epsilon that can be certified for it, statistics fitted without noise and kept secret.
    by_group_privacy : float
        Epsilon by group privacy: every row may have changed.
    """

    noise_scale: float
    claimed: float
    certified: float
    by_group_privacy: float


def exact_route(stages: Sequence[tuple[str, Any]], domain: Domain) -> Route:
    """The route on which every stage that can be fitted without noise is.

    Parameters
    ----------
    stages : sequence of (name, stage)
        The steps without the mechanism.
    domain : Domain
        Completed public facts at the entrance.
    """
    every = routes(stages, domain, Distance.neighbours(domain.rows_per_unit))
    return max(every, key=lambda route: sum(rank == RANK["exact"] for rank in route.rank))


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
    route = exact_route(stages, plan.domain)
    mu = gaussian_mu(plan.epsilon, plan.delta)
    question = mechanism._question(route.domain, mu)
    neighbours = plan.distance
    noise = question.calibrated(route.domain, neighbours, mu, PrivacyLoss(), (plan.epsilon, plan.delta))
    everyone = Distance(replaced=plan.domain.n)
    through, group = (
        question.privacy_map(route.domain, far, noise).epsilon(plan.delta) for far in (route.distance, everyone)
    )
    return NaiveClaim(noise, plan.epsilon, min(through, group), group)
