"""The same run under other adjacencies: ``docs/theory/distance.md``, Corollary U."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ppdp.bounds import lookup
from ppdp.certificate.guarantee import epsilon_at
from ppdp.certificate.record import Mechanism, Record, Step
from ppdp.certificate.replay.verify import (
    Point,
    answers_cost,
    close,
    draws_at,
    release_cost,
    release_failure,
    shares_loss,
)
from ppdp.core.adjacency import Adjacency
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.exceptions import InvalidParameter, PpdpError
from ppdp.privacy.gate import gate_noise
from ppdp.privacy.loss import PrivacyLoss, any_of
from ppdp.privacy.losses import Part
from ppdp.privacy.noise.sampler import TOTAL_VARIATION_PER_DRAW

_UNIT = ("adjacency", "rows_per_unit")


@dataclass(frozen=True, slots=True)
class OtherAdjacencyResult:
    """What a run guarantees under an adjacency, with the noise that it had.

    Attributes
    ----------
    adjacency : Adjacency
        Which datasets are neighbours.
    epsilon, delta : float
        The guarantee, with the delta of the certificate.
    status : str
        That of the certificate.
    """

    adjacency: Adjacency
    epsilon: float
    delta: float
    status: str

    def __str__(self) -> str:
        return f"{self.status} ({self.epsilon:.4g}, {self.delta:g}): {self.adjacency.words}"


def guarantee_for(c: Record, adjacency: Adjacency) -> OtherAdjacencyResult:
    """What a certificate that holds guarantees under another adjacency; see :meth:`ppdp.Certificate.under`."""
    if not isinstance(adjacency, Adjacency):
        raise InvalidParameter("under needs an Adjacency.", fix="Adjacency.replace().")
    if c.search is not None or c.part_of is not None or (c.gate is not None and c.gate.ladder is not None):
        raise InvalidParameter(
            "a search, a part of one and a ladder were composed for one adjacency.", fix="fit under the other one."
        )
    start = _entrance(Domain.from_dict(c.entrance.domain), adjacency)
    try:
        loss, draws = _derived(c, *start)
    except InvalidParameter:
        raise
    except (PpdpError, ArithmeticError, ValueError, AssertionError):
        raise _not_covered("no bound of a step holds there") from None
    return OtherAdjacencyResult(
        adjacency, epsilon_at(loss, draws * TOTAL_VARIATION_PER_DRAW, c.delta), c.delta, c.status
    )


def _not_covered(why: str) -> InvalidParameter:
    return InvalidParameter(f"this run is not covered under that adjacency: {why}.", fix="fit under the other one.")


def _entrance(domain: Domain, asked: Adjacency) -> Point:
    """Domain and first distance of the same run where neighbours are others.

    Where rows were placed the domain stays: it says that slots may be empty, and no stage looks at raw rows.
    """
    run = domain.adjacency
    if asked == run:
        return domain, domain.neighbours
    if asked.cuts:
        raise _not_covered(f"it kept {run.rows} rows of each person" if run.cuts else "it cut nobody's rows")
    if asked.hides_number and not run.hides_number:
        raise _not_covered("rows stood where they stood in the table, so one more would shift others")
    other = domain.but(adjacency=asked)
    if not run.hides_number:
        return other, other.neighbours
    if run.cuts and asked.record_level:
        rows = 2 * asked.rows if asked.replaces else min(asked.rows, run.rows)
        return domain, Distance(replaced=rows)
    return domain, other.neighbours


def _derived(c: Record, domain: Domain, distance: Distance) -> tuple[PrivacyLoss, int]:
    """What the recorded noise costs from another first distance, and how many numbers were drawn."""
    points: list[Point] = []
    entrance = domain, distance
    for step in c.steps:
        if c.gate is not None:
            _check_margins(step, domain, distance)
        points.append((domain, distance))
        domain, distance = lookup(step.formula, "stability")(domain, distance, **step.parameters)
        if not close(_facts(domain.to_dict()), _facts(step.domain)):
            raise _not_covered(f"other facts would follow behind {step.name!r}")
    squares, draws, failure, front = [], 0, 0.0, 0.0
    for release in c.releases:
        here = points[release.at]
        squares.append(release_cost(release, *here)[1])
        draws += lookup(release.formula, "release").draws(here[1], release.size, release.parameters)
        failure = any_of(failure, release_failure(release, *here))
    parts: tuple[Part, ...] = ()
    if c.diagnostics is not None:
        told = shares_loss(c.diagnostics, *entrance)
        squares.append(told.mu)
        parts = told.parts
        draws += lookup(c.diagnostics.formula, "release").draws(
            entrance[1], c.diagnostics.size, c.diagnostics.parameters
        )
    if c.gate is not None:
        noise = gate_noise(c.gate.kind, c.gate.noise_scale, domain.n).loss
        squares.append(noise.mu)
        parts, draws = parts + noise.parts, draws + 1
        failure, front = (any_of(failure, c.gate.delta), 0.0) if c.gate.rule == "sum" else (failure, c.gate.delta)
    if c.mechanism is not None:
        last = _of_mechanism(c.mechanism, domain, distance)
        squares.append(last.mu)
        parts, draws = parts + last.parts, draws + draws_at(c.mechanism, domain, distance)
    return PrivacyLoss(math.hypot(*squares), failure, front, parts), draws


def _check_margins(step: Step, domain: Domain, distance: Distance) -> None:
    """The gate's noise hides a neighbour's change of a margin only where that is no larger than it was planned for."""
    for condition in step.conditions:
        if lookup(condition.formula, "margin")(domain, distance) > condition.unit * (1 + 1e-9):
            raise _not_covered(f"the margin of {step.name!r} would change by more than its gate hides")


def _of_mechanism(m: Mechanism, domain: Domain, distance: Distance) -> PrivacyLoss:
    if m.mu is None:
        loss: PrivacyLoss = lookup(m.formula, "privacy")(domain, distance, noise_scale=m.noise_scale, **m.parameters)
        if loss.failure or loss.gate:
            raise _not_covered(f"the privacy map of {m.name!r} fails")
        return loss
    s = lookup(m.formula, "mechanism")(domain, distance, **m.parameters)
    return PrivacyLoss(answers_cost(m, s))


def _facts(domain: Mapping[str, Any]) -> dict[str, Any]:
    """A domain but for who its neighbours are."""
    return {name: value for name, value in domain.items() if name not in _UNIT}
