"""The one place that splits a budget."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ppdp.core.checks import number
from ppdp.core.domain import Domain
from ppdp.data.releases import STATISTICS
from ppdp.exceptions import ImpossibleBudget, InvalidParameter
from ppdp.pipeline.planning.route import PlannedRelease, Route
from ppdp.privacy.noise.sampler import WORST_ALLOWANCE_PER_ENTRY

__all__ = [
    "LARGEST_ERROR",
    "Split",
    "check_shares",
    "gate_share",
    "least_share",
    "release_shares",
    "split",
]

GATE_SHARE = 0.05
RELEASE_SHARES = (0.05, 0.10, 0.15, 0.20)
LARGEST_ERROR = 0.05  # standard error of a released statistic, as a share of its public range


@dataclass(frozen=True, slots=True)
class Split:
    """Shares of ``mu²``, solved.

    Attributes
    ----------
    gate : float
        ``mu`` of the gate, 0 without one.
    releases : tuple of PlannedRelease
        With their ``mu`` and ``noise_scale``.
    mechanism : float
        ``mu`` that is left for the mechanism, 0 without one.
    imprecise : tuple of int
        Positions of the steps whose released statistics are too noisy to be offered by "auto".
    """

    gate: float
    releases: tuple[PlannedRelease, ...]
    mechanism: float
    imprecise: tuple[int, ...]


def split(route: Route, mu: float, *, mechanism: bool, gated: bool, budget: Mapping[str, float] | None) -> Split:
    """Solve the budget of a route once.

    Shares of ``mu²``: the gate 5 % if there is one; each release point 5 %, raised in steps to
    20 % until the standard error of every released statistic is at most 0.05 of its public range; the
    rest to the mechanism. Without a mechanism the release points share everything.

    Raises
    ------
    ImpossibleBudget
        If nothing is left for the mechanism.
    """
    gate = gate_share(budget) if gated else 0.0
    shares = release_shares(budget) if mechanism else ((1 - gate) / max(1, len(route.releases)),)
    solved: list[PlannedRelease] = []
    imprecise: list[int] = []
    for release in route.releases:
        share, scale, error = least_share(release, route.steps[release.at].domain, mu, shares)
        solved.append(replace(release, mu=mu * math.sqrt(share), noise_scale=scale))
        if error > LARGEST_ERROR:
            imprecise.extend(release.serves)
    rest = 1 - gate - sum(r.mu**2 for r in solved) / mu**2
    if mechanism and rest <= 0:
        raise ImpossibleBudget(
            "the releases use the whole budget.",
            fix="use fewer noisy stages or a smaller budget={'release': ...}.",
        )
    return Split(mu * math.sqrt(gate), tuple(solved), mu * math.sqrt(rest) if mechanism else 0.0, tuple(imprecise))


def gate_share(budget: Mapping[str, float] | None) -> float:
    """What a gate costs, as a share of ``mu²``."""
    return float((budget or {}).get("gate", GATE_SHARE))


def release_shares(budget: Mapping[str, float] | None) -> tuple[float, ...]:
    """What one release may cost in front of a mechanism, the least first."""
    fixed = (budget or {}).get("release")
    return RELEASE_SHARES if fixed is None else (float(fixed),)


def least_share(
    release: PlannedRelease, domain: Domain, mu: float, shares: Sequence[float]
) -> tuple[float, float, float]:
    """The first of the shares that makes a release precise, else the last, with noise and error.

    Parameters
    ----------
    release : PlannedRelease
        Without noise.
    domain : Domain
        Public facts where it is released.
    mu : float
        The whole budget.
    shares : sequence of float
        Of ``mu²``, increasing.

    Returns
    -------
    share, noise_scale, error : float
        The error is the largest standard error, as a share of the public range.

    Raises
    ------
    ImpossibleBudget
        If no share is enough for the noise lattice.
    """
    statistic = STATISTICS[release.statistic]
    lattice = WORST_ALLOWANCE_PER_ENTRY * math.sqrt(statistic.size(domain))
    for share in shares:
        room = mu * math.sqrt(share) - lattice
        if room <= 0:
            continue
        scale = release.sensitivity / room * (1 + 1e-12)
        error = statistic.error(scale, domain)
        if error <= LARGEST_ERROR:
            break
    if room <= 0:
        raise ImpossibleBudget("the budget is too small for the noise lattice.", fix="ask for a larger epsilon.")
    return share, scale, error


def check_shares(budget: Any) -> None:
    """Check the user's shares, whether or not a route uses them.

    Raises
    ------
    InvalidParameter
        If they are not shares of "gate" and "release".
    """
    if budget is None:
        return
    if not isinstance(budget, Mapping) or not set(budget) <= {"gate", "release"}:
        raise InvalidParameter(
            "budget must hold shares of 'gate' and 'release'.", fix="budget={'gate': 0.05, 'release': 0.1}."
        )
    for name, value in budget.items():
        number(f"budget[{name!r}]", value, above=0, most=1)
