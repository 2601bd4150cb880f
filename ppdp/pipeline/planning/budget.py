"""The one place that splits a budget: what releases and a gate get, and what is left behind them.

Theory: ``docs/theory/accounting.md``, ``docs/theory/gate.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ppdp.core.checks import number
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import lookup
from ppdp.data.noisy_statistics import STATISTICS
from ppdp.exceptions import ImpossibleBudget, InvalidParameter
from ppdp.pipeline.planning.route import PlannedRelease, PlannedStep, Route
from ppdp.privacy.gate import GATE_KINDS, Gate
from ppdp.privacy.gaussian import gaussian_mu, least_noise
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.noise.sampler import gaussian_scale

GATE_SHARE = 0.05
RELEASE_SHARES = (0.05, 0.10, 0.15, 0.20)
GATE_DELTA_SHARE = 0.1  # of delta, where the deltas of gate and mechanism add
FAILURE_SHARE = 0.1  # of delta, for what is released only above a threshold
FINEST = 1e-4  # relative, of the mu that is left beside noise that is not Gaussian
LARGEST_ERROR = 0.05  # standard error of a released statistic, as a share of its public range


@dataclass(frozen=True, slots=True)
class BudgetShares:
    """Shares of ``mu²``, solved: of gate, mechanism and releases; ``imprecise`` ones are too noisy for "auto"."""

    gate: float
    releases: tuple[PlannedRelease, ...]
    mechanism: float
    imprecise: tuple[tuple[PlannedRelease, float], ...]
    diagnostics: float = 0.0  # mu of the shares of altered rows


def _split(
    route: Route,
    mu: float,
    failure: float,
    *,
    mechanism: bool,
    gated: bool,
    budget: Mapping[str, float] | None,
    diagnostics: float,
) -> BudgetShares:
    """Solve the budget of a route once.

    Shares of ``mu²``: the gate 5 % if there is one; each release point 5 %, raised in steps to 20 % until the standard
    error of every released statistic is at most 0.05 of its public range; ``diagnostics`` to shares of altered rows;
    the rest to the mechanism. Without a mechanism the release points share everything else.
    """
    gate = gate_share(budget) if gated else 0.0
    shares = release_shares(budget) if mechanism else ((1 - gate - diagnostics) / max(1, len(route.releases)),)
    solved: list[PlannedRelease] = []
    imprecise: list[tuple[PlannedRelease, float]] = []
    for release in route.releases:
        step = route.steps[release.at]
        share, scale, error = least_share(release, step.domain, step.distance, mu, shares)
        solved.append(replace(release, mu=mu * math.sqrt(share), noise_scale=scale))
        if failure:
            solved[-1] = _above(solved[-1], step, failure)
        if error > LARGEST_ERROR:
            imprecise.append((release, error))
    rest = 1 - gate - diagnostics - (sum(r.mu**2 for r in solved) / mu**2 if solved else 0.0)
    if mechanism and rest <= 0:
        what = "the releases use the whole budget."
        raise ImpossibleBudget(what, fix="use fewer noisy stages or a smaller budget={'release': ...}.")
    behind = mu * math.sqrt(rest) if mechanism else 0.0
    return BudgetShares(mu * math.sqrt(gate), tuple(solved), behind, tuple(imprecise), mu * math.sqrt(diagnostics))


def _above(release: PlannedRelease, step: PlannedStep, failure: float) -> PlannedRelease:
    """The release with its threshold, if it has one: one in a plan, as only a first step asks for it."""
    formula = lookup(STATISTICS[release.statistic].formula, "release")
    threshold = formula.threshold(step.domain, step.distance, release.noise_scale, failure, release.parameters)
    return release if threshold is None else replace(release, failure=failure, threshold=threshold)


def gate_share(budget: Mapping[str, float] | None) -> float:
    """What a gate costs, as a share of ``mu²``."""
    return float((budget or {}).get("gate", GATE_SHARE))


def release_shares(budget: Mapping[str, float] | None) -> tuple[float, ...]:
    """What one release may cost in front of a mechanism, the least first."""
    fixed = (budget or {}).get("release")
    return RELEASE_SHARES if fixed is None else (float(fixed),)


def least_share(
    release: PlannedRelease, domain: Domain, distance: Distance, mu: float, shares: Sequence[float]
) -> tuple[float, float, float]:
    """The first of rising shares of ``mu²`` that makes a release precise, else the last; with noise and error."""
    statistic = STATISTICS[release.statistic]
    size = statistic.size(domain, release.parameters)
    rounded = lookup(statistic.formula, "release").lattice(distance, size, release.parameters)
    shape = statistic.bound(domain), rounded
    for share in shares:
        try:
            scale = gaussian_scale(release.sensitivity, mu * math.sqrt(share), *shape)
        except ImpossibleBudget:
            if share == shares[-1]:
                raise
            continue
        error = statistic.error(scale, domain, release.parameters)
        if error <= LARGEST_ERROR:
            break
    return share, scale, error


def check_shares(budget: Any) -> None:
    """Check the user's shares of "gate" and "release", whether or not a route uses them."""
    if budget is None:
        return
    if not isinstance(budget, Mapping) or not set(budget) <= {"gate", "release"}:
        what = "budget must hold shares of 'gate' and 'release'."
        raise InvalidParameter(what, fix="budget={'gate': 0.05, 'release': 0.1}.", parameter="budget")
    for name, value in budget.items():
        number(f"budget[{name!r}]", value, above=0, most=1)


@dataclass(frozen=True, slots=True)
class DeltaShares:
    """Delta of passing a gate where a condition fails, and of all else: each has the whole, unless the two add."""

    gate: float
    rest: float
    adding: bool
    failure: float = 0.0  # of a release that has a threshold

    @classmethod
    def of(cls, delta: float, *, adding: bool, fails: bool = False) -> DeltaShares:
        """By the public rule: a tenth for a release that may fail, one of the rest for the gate where deltas add."""
        failure = delta * FAILURE_SHARE if fails else 0.0
        delta = (delta - failure) / (1 - failure)
        gate = delta * (GATE_DELTA_SHARE if adding else 1.0)
        return cls(gate, (delta - gate) / (1 - gate) if adding else delta, adding, failure)


def gate_kinds_to_compare(loss: PrivacyLoss) -> tuple[str, ...]:
    """Gates that "auto" compares with the Gaussian one: before pure mechanisms whole noise, which needs no delta."""
    return tuple(kind for kind, noise in GATE_KINDS.items() if noise.whole and pure(loss))


def pure(loss: PrivacyLoss) -> bool:
    """Whether it is of parts that need no delta."""
    return bool(loss.parts) and not loss.mu and all(math.isfinite(part.pure) for part in loss.parts)


def gated_split(
    route: Route,
    kind: str | None,
    epsilon: float,
    deltas: DeltaShares,
    *,
    n_rows: int,
    mechanism: bool,
    gaussian: bool,
    budget: Mapping[str, float] | None,
    diagnostics: float = 0.0,
) -> tuple[BudgetShares, Gate | None]:
    """The shares of a route and its gate; no gate where ``kind`` is None.

    The share of the gate buys a margin: that from which a Gaussian gate of this share passes in 99 % of cases. Gates of
    other kinds are made for the same margin, so that kinds differ in what they cost and not in what they refuse.

    ``mechanism`` and ``gaussian`` say whether there is a mechanism, and whether all that is released behind the gate is
    Gaussian.
    """
    mu = gaussian_mu(epsilon, deltas.rest * (1 - 1e-9)) if deltas.rest else 0.0
    asked: dict[str, Any] = {"mechanism": mechanism, "budget": budget, "diagnostics": diagnostics}
    shares = _split(route, mu, deltas.failure, gated=kind is not None, **asked)
    if kind is None:
        return shares, None
    gate = Gate.of_budget(shares.gate, deltas.gate, adding=deltas.adding, n_rows=n_rows)
    if kind == gate.kind:
        return shares, gate
    gate = Gate.of_margin(kind, gate.needed_margin(), deltas.gate, adding=deltas.adding, n_rows=n_rows)
    if gaussian:
        behind = math.sqrt(max(mu**2 - shares.gate**2, 0.0))
        scaled = mu * _mu_beside(gate.loss, epsilon, deltas.rest * (1 - 1e-9), behind) / behind
        shares = _split(route, scaled, deltas.failure, gated=True, **asked)
    return shares, gate


def _mu_beside(loss: PrivacyLoss, epsilon: float, delta: float, start: float) -> float:
    """Largest ``mu`` that fits beside a loss, rounded down."""

    def beside(noise_scale: float) -> PrivacyLoss:
        return loss + PrivacyLoss(1 / noise_scale)

    most = epsilon * (1 - 1e-6)
    if beside(2.0**10 / start).epsilon(delta) > most:
        raise ImpossibleBudget("the gate uses the whole budget.", fix="ask for a larger epsilon, or a Gaussian gate.")
    return 1 / least_noise(beside, most, delta, start=1 / start, tolerance=FINEST)
