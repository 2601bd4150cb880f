"""Which gate a route gets, and what it leaves for everything behind it. Theory: ``docs/theory/gate.md``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ppdp.exceptions import ImpossibleBudget
from ppdp.pipeline.planning.budget import Split, split
from ppdp.pipeline.planning.route import Route
from ppdp.privacy.gate import Gate, certain_share
from ppdp.privacy.gaussian import gaussian_mu
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.noise.gate import GATE_KINDS

__all__ = ["Deltas", "gated_split", "pure", "rivals"]

GATE_DELTA_SHARE = 0.1  # of delta, where the deltas of gate and mechanism add
FINEST = 1e-4  # relative, of the mu that is left beside noise that is not Gaussian


@dataclass(frozen=True, slots=True)
class Deltas:
    """How delta is divided between a gate and everything else.

    Attributes
    ----------
    gate : float
        Probability of passing where a condition fails.
    rest : float
        What everything else has.
    adding : bool
        Whether the two add; else each has the whole.
    """

    gate: float
    rest: float
    adding: bool

    @classmethod
    def of(cls, delta: float, *, adding: bool) -> Deltas:
        """By the public rule: a tenth for the gate where deltas add."""
        gate = delta * (GATE_DELTA_SHARE if adding else 1.0)
        return cls(gate, (delta - gate) / (1 - gate) if adding else delta, adding)


def pure(loss: PrivacyLoss) -> bool:
    """Whether a mechanism is private without any delta."""
    return bool(loss.parts) and not loss.mu and all(math.isfinite(part.pure) for part in loss.parts)


def rivals(loss: PrivacyLoss) -> tuple[str, ...]:
    """Kinds of a gate that "auto" compares with the Gaussian one in front of this mechanism.

    In front of Gaussian mechanisms, sampled ones included, the Gaussian gate costs least at every budget: squares add.
    In front of pure ones it may be whole noise, whose epsilon is paid without a delta.
    """
    return tuple(kind for kind, noise in GATE_KINDS.items() if noise.whole) if pure(loss) else ()


def gated_split(
    route: Route,
    kind: str | None,
    epsilon: float,
    deltas: Deltas,
    *,
    n_rows: int,
    mechanism: bool,
    gaussian: bool,
    budget: Mapping[str, float] | None,
    rungs: tuple[int, ...] = (0,),
) -> tuple[Split, Gate | None]:
    """The shares of a route and its gate.

    The share of the gate buys a margin: that from which a Gaussian gate of this share passes in 99 % of cases. Gates of
    other kinds are made for the same margin, so that kinds differ in what they cost and not in what they refuse.

    Parameters
    ----------
    route : Route
        What is to be split.
    kind : str or None
        Of the noise; None without a gate.
    epsilon : float
        The budget.
    deltas : Deltas
        The other half of it.
    n_rows : int
        Public number of rows.
    mechanism, gaussian : bool
        Whether there is a mechanism, and whether all that is released behind the gate is Gaussian.
    budget : mapping, optional
        The user's shares.
    rungs : tuple of int
        Of a ladder, which has Gaussian noise.
    """
    mu = gaussian_mu(epsilon, deltas.rest * (1 - 1e-9))
    shares = split(route, mu, mechanism=mechanism, budget=budget, gated=kind is not None)
    if kind is None:
        return shares, None
    passing = deltas.gate * certain_share(mu) if len(rungs) > 1 else deltas.gate
    gate = Gate.of_budget(shares.gate, passing, adding=deltas.adding, n_rows=n_rows, rungs=rungs)
    if kind == gate.kind:
        return shares, gate
    gate = Gate.of_margin(kind, gate.needed_margin(), deltas.gate, adding=deltas.adding, n_rows=n_rows)
    if gaussian:
        behind = math.sqrt(max(mu**2 - shares.gate**2, 0.0))
        scaled = mu * _mu_beside(gate.loss, epsilon, deltas.rest * (1 - 1e-9), behind) / behind
        shares = split(route, scaled, mechanism=mechanism, budget=budget, gated=True)
    return shares, gate


def _mu_beside(loss: PrivacyLoss, epsilon: float, delta: float, start: float) -> float:
    """Largest ``mu`` that fits beside a loss, rounded down."""

    def fits(mu: float) -> bool:
        return (loss + PrivacyLoss(mu)).epsilon(delta) <= epsilon * (1 - 1e-6)

    low, high = start * 2.0**-10, start * 2
    if not fits(low):
        raise ImpossibleBudget("the gate uses the whole budget.", fix="ask for a larger epsilon, or a Gaussian gate.")
    while high > low * (1 + FINEST):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
