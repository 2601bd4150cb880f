"""The same run under other adjacencies: ``docs/theory/distance.md``, Corollary U."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ppdp.certificate.replay.verify as verify
from ppdp.bounds import lookup
from ppdp.bounds.release import predicted_apart
from ppdp.certificate.altered import labels_predicted
from ppdp.certificate.guarantee import epsilon_at
from ppdp.certificate.record import Record
from ppdp.core.adjacency import Adjacency
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.exceptions import InvalidParameter, PpdpError
from ppdp.privacy.gate import gate_noise
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.noise.sampler import TOTAL_VARIATION_PER_DRAW

_UNIT = ("adjacency", "rows_per_unit")


@dataclass(frozen=True, slots=True)
class OtherAdjacencyResult:
    """What a run guarantees under an adjacency, with the noise that it had; delta and status are the certificate's."""

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
        what = "a search, a part of one and a ladder were composed for one adjacency."
        raise InvalidParameter(what, fix="fit under the other one.")
    start = _entrance(Domain.from_dict(c.entrance.domain), adjacency)
    try:
        spent = _derived(c, *start)
    except InvalidParameter:
        raise
    except (PpdpError, ArithmeticError, ValueError, AssertionError):
        raise _not_covered("no bound of a step holds there") from None
    return OtherAdjacencyResult(
        adjacency, epsilon_at(spent.loss, spent.draws * TOTAL_VARIATION_PER_DRAW, c.delta), c.delta, c.status
    )


def _not_covered(why: str) -> InvalidParameter:
    return InvalidParameter(f"this run is not covered under that adjacency: {why}.", fix="fit under the other one.")


def _entrance(domain: Domain, asked: Adjacency) -> verify.Point:
    """Domain and first distance of the same run where neighbours are others.

    Where rows were placed the domain stays: it says that slots may be empty, and no stage looks at raw rows.
    """
    run = domain.adjacency
    if asked == run:
        return domain, domain.neighbours
    if asked.bounds_contributions:
        raise _not_covered(
            f"it kept {run.rows} rows of each person" if run.bounds_contributions else "it cut nobody's rows"
        )
    if asked.unbounded and not run.unbounded:
        raise _not_covered("rows stood where they stood in the table, so one more would shift others")
    other = domain.but(adjacency=asked)
    if not run.unbounded:
        return other, other.neighbours
    if run.bounds_contributions and asked.row_level:
        rows = 2 * asked.rows if asked.bounded else min(asked.rows, run.rows)
        return domain, Distance(replaced=rows)
    return domain, other.neighbours


def _derived(c: Record, domain: Domain, distance: Distance) -> verify.Spent:
    """What the recorded noise costs from another first distance, and how many numbers were drawn."""
    points: list[verify.Point] = []
    entrance, spent = (domain, distance), verify.Spent()
    for step in c.steps:
        for condition in step.conditions if c.gate is not None else ():  # its noise hides changes of a unit
            if lookup(condition.formula, "margin")(domain, distance) > condition.unit * (1 + 1e-9):
                raise _not_covered(f"the margin of {step.name!r} would change by more than its gate hides")
        points.append((domain, distance))
        domain, distance = lookup(step.formula, "stability")(domain, distance, **step.parameters)
        if not verify.close(_facts(domain.to_dict()), _facts(step.domain)):
            raise _not_covered(f"other facts would follow behind {step.name!r}")
    for release in c.releases:
        here, far = points[release.at]
        loss = PrivacyLoss(verify.release_cost(release, here, far)[1], verify.release_failure(release, here, far))
        spent.add(loss, verify.release_draws(release, far))
    if c.diagnostics is not None:
        if labels_predicted(c.diagnostics) and not predicted_apart(entrance[1], domain, distance):
            raise _not_covered("more rows than those that differ may be predicted otherwise")
        spent.add(verify.shares_loss(c.diagnostics, *entrance), verify.release_draws(c.diagnostics, entrance[1]))
    if c.gate is not None:
        spent.add_gate(c.gate, gate_noise(c.gate.kind, c.gate.noise_scale, domain.n).loss)
    if c.mechanism is not None:
        last = verify.mechanism_loss(c.mechanism, domain, distance)[1]
        if last.failure or last.gate:
            raise _not_covered(f"the privacy map of {c.mechanism.name!r} fails")
        spent.add(last, verify.mechanism_draws(c.mechanism, domain, distance))
    return spent


def _facts(domain: Mapping[str, Any]) -> dict[str, Any]:
    """A domain but for who its neighbours are."""
    return {name: value for name, value in domain.items() if name not in _UNIT}
