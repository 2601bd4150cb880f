"""Recompute a certificate: a small interpreter of derivations.

It knows the bounds by their ids and nothing of planner, pipeline or data. Every recorded number is computed
again from the recorded public parameters, step after step; then the digest is compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from operator import attrgetter
from typing import Any

import numpy as np

from ppdp.bounds import lookup
from ppdp.bounds.laplace import whole_loss
from ppdp.certificate.canonical import digest, parse
from ppdp.certificate.issue_statement import issued_rules
from ppdp.certificate.record import Diagnostics, GateRecord, Ladder, MechanismRecord, Record, ReleaseRecord, Rung
from ppdp.certificate.replay.rules import broken_rules, part_rules, restated, search_rules, step_rules
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import draws_that_count
from ppdp.exceptions import PpdpError
from ppdp.privacy.gate import gate_noise, overlap
from ppdp.privacy.loss import PrivacyLoss, any_of
from ppdp.privacy.losses import Part
from ppdp.privacy.noise.sampler import TOTAL_VARIATION_PER_DRAW, WORST_ALLOWANCE_PER_ENTRY, lattice_allowance

Point = tuple[Domain, Distance]

TOLERANCE = 1e-9
_IDENTITY = attrgetter("name", "class_", "formula")
_COMPOSED = 1e-6  # of an epsilon of loss distributions: rounding is magnified where a profile is differenced twice


@dataclass(frozen=True, slots=True)
class Verification:
    """Result of :func:`verify`; true if nothing differs.

    Attributes
    ----------
    problems : tuple of str
        Every difference found, in public words.
    signer : str, optional
        Fingerprint of the key whose signature holds, if one was asked for.
    record : Record, optional
        What holds.
    """

    problems: tuple[str, ...]
    signer: str | None = None
    record: Record | None = field(default=None, compare=False)

    def __bool__(self) -> bool:
        return not self.problems

    def __repr__(self) -> str:
        if self:
            signed = f"\n  signed with the key {self.signer}" if self.signer else ""
            return f"Verification: the derivation holds and the digest matches.{signed}"
        return "\n".join(["Verification: FAILED", *(f"  - {problem}" for problem in self.problems)])


def verify(content: dict[str, Any], record: Record | None = None) -> Verification:
    """Replay the derivation of a certificate, given as its document, and as its record where that was read before."""
    problems: list[str] = []
    try:
        record = record or parse(content)
        with np.errstate(all="ignore"):  # what is not finite agrees with nothing
            problems += _replay(record)
    except PpdpError as error:
        problems.append(error.message)
    except Exception as error:  # parameters that no ppdp wrote may break any formula, and exhaust the memory
        problems.append(f"the derivation cannot be replayed ({type(error).__name__}).")
    try:
        if content.get("digest") != digest(content):
            problems.append("the digest does not match the content.")
    except (TypeError, ValueError, AttributeError, RecursionError):
        problems.append("the content has no canonical form.")
    return Verification(tuple(problems), record=None if problems else record)


class Differences(list[str]):
    """Everything in which a document differs from what follows."""

    def same(self, what: str, recorded: float | None, computed: float | None) -> None:
        """Compare two numbers."""
        if not close(recorded, computed):
            self.append(f"{what}: {recorded!r} is recorded, {computed!r} follows.")


@dataclass(slots=True)
class Spent:
    """What everything that was released costs together, and how many numbers were drawn for it."""

    squares: float = 0.0  # of every mu
    draws: int = 0
    failure: float = 0.0
    front: float = 0.0  # delta of a gate that stands before whatever may fail
    parts: tuple[Part, ...] = ()

    def add(self, loss: PrivacyLoss, draws: int) -> None:
        """One more release."""
        self.squares += loss.mu**2
        self.parts += loss.parts
        self.failure = any_of(self.failure, loss.failure)
        self.draws += draws

    def add_gate(self, gate: GateRecord, loss: PrivacyLoss) -> None:
        """The test of the conditions."""
        self.add(loss, 1)
        if gate.rule == "sum":
            self.failure = any_of(self.failure, gate.delta)
        else:
            self.front = gate.delta

    @property
    def mu(self) -> float:
        """Of everything that is Gaussian."""
        return math.sqrt(self.squares)

    @property
    def loss(self) -> PrivacyLoss:
        """All of it."""
        return PrivacyLoss(self.mu, self.failure, self.front, self.parts)


def release_cost(release: ReleaseRecord | Diagnostics, domain: Domain, distance: Distance) -> tuple[float, float]:
    """Sensitivity of a release at this domain and distance, and the mu that it costs with its noise."""
    formula = lookup(release.formula, "release")
    s = float(formula(domain, distance, **release.parameters))
    rounded = formula.lattice(distance, release.size, release.parameters)
    return s, s / release.noise_scale + lattice_allowance(release.bound, release.noise_scale, rounded)


def release_draws(release: ReleaseRecord | Diagnostics, distance: Distance) -> int:
    """How many numbers it draws that count."""
    return lookup(release.formula, "release").draws(distance, release.size, release.parameters)


def release_failure(release: ReleaseRecord, domain: Domain, distance: Distance) -> float:
    """With which probability a release fails at this domain and distance, by its threshold."""
    formula = lookup(release.formula, "release")
    if formula.failure is None or release.threshold is None:
        return 0.0
    found = formula.failure(domain, distance, release.noise_scale, release.threshold, **release.parameters)
    return float(found)


def shares_loss(shares: Diagnostics, domain: Domain, distance: Distance) -> PrivacyLoss:
    """What shares of altered rows cost, which are those of rows as they came in."""
    s, mu = release_cost(shares, domain, distance)
    return whole_loss(int(s), shares.noise_scale, shares.bound) if shares.mu is None else PrivacyLoss(mu)


def mechanism_loss(mechanism: MechanismRecord, domain: Domain, distance: Distance) -> tuple[float | None, PrivacyLoss]:
    """Sensitivity of the last step, if its noise is Gaussian, and what it costs, at this domain and distance."""
    m = mechanism
    if m.mu is None:
        loss = lookup(m.formula, "privacy")(domain, distance, noise_scale=m.noise_scale, **m.parameters)
        return None, loss
    s = float(lookup(m.formula, "mechanism")(domain, distance, **m.parameters))
    one = s / m.noise_scale + lattice_allowance(m.bound, m.noise_scale, m.size)
    return s, PrivacyLoss(math.sqrt(m.steps) * one)


def mechanism_draws(mechanism: MechanismRecord, domain: Domain, distance: Distance) -> int:
    """How many numbers it draws that count."""
    m = mechanism
    return draws_that_count(m.formula, domain, distance, steps=m.steps, size=m.size, parameters=m.parameters)


def _replay(c: Record) -> list[str]:
    found, spent = Differences(), Spent()
    points, domain, distance = _derive(c, found)
    for i, release in enumerate(c.releases):
        here, far = points[release.at]
        _check_release(release, f"releases[{i}]", here, far, found)
        spent.add(PrivacyLoss(release.mu, release.failure or 0.0), release_draws(release, far))
    if (shares := c.diagnostics) is not None:
        start, far = Domain.from_dict(c.entrance.domain), Distance.from_dict(c.entrance.distance)
        _check_cost(shares, "diagnostics", start, far, found)
        told = shares_loss(shares, start, far) if shares.mu is None else PrivacyLoss(shares.mu)
        spent.add(told, release_draws(shares, far))
    if c.gate is not None:
        noise = gate_noise(c.gate.kind, c.gate.noise_scale, domain.n)
        found.same("gate.mu", c.gate.mu, noise.loss.mu or None)
        found.same("gate.threshold", c.gate.threshold, noise.threshold(c.gate.delta))
        spent.add_gate(c.gate, noise.loss)
    if c.gate is not None and c.gate.ladder is not None:
        _replay_ladder(c, c.gate, c.gate.ladder, points, spent, found)
    elif c.mechanism is not None:
        loss = _checked_mechanism("mechanism", c.mechanism, domain, distance, found)
        spent.add(loss, mechanism_draws(c.mechanism, domain, distance))
    if c.search is None:
        _check_total(c, spent.loss, spent.draws, found)
    else:
        found += search_rules(c, c.search, spent.loss, spent.draws)
    found += broken_rules(c, points, domain)
    if not found:  # the totals beside it are held against a claim that holds
        whole = spent.loss if c.search is None else PrivacyLoss(c.total.mu, c.total.failure)
        found += issued_rules(c, whole)
    return found


def _replay_ladder(
    c: Record, gate: GateRecord, ladder: Ladder, points: list[Point], spent: Spent, found: Differences
) -> None:
    """Every rung: the dearest counts."""
    rungs = [replay_rung(c, rung, points, f"gate.ladder.rungs[{i}]") for i, rung in enumerate(ladder.rungs)]
    found += ladder_rules(c, gate, ladder, rungs)
    losses, draws = [], []
    for rung, recorded in zip(rungs, ladder.rungs):
        losses.append(_checked_mechanism(f"{rung.where}.mechanism", recorded.mechanism, *rung.end, found).mu)
        draws.append(mechanism_draws(recorded.mechanism, *rung.end))
    spent.add(PrivacyLoss(max(losses)), max(draws))
    spent.failure /= overlap(spent.mu)


def _check_cost(
    release: ReleaseRecord | Diagnostics, where: str, domain: Domain, distance: Distance, found: Differences
) -> None:
    """Its sensitivity, and that its noise is no less and no more than what it costs."""
    formula = lookup(release.formula, "release")
    s, mu = release_cost(release, domain, distance)
    found.same(f"{where}.sensitivity", release.sensitivity, s)
    if release.mu is None:
        return
    if not mu <= release.mu * (1 + TOLERANCE):
        found.append(f"{where}: its noise costs more than is recorded.")
    spare = WORST_ALLOWANCE_PER_ENTRY * math.sqrt(formula.lattice(distance, release.size, release.parameters))
    if not release.mu <= mu * (1 + TOLERANCE) + 2 * spare:  # a plan sets that aside before it knows the lattice
        found.append(f"{where}: its noise costs less than is recorded, so it was less.")


def _check_release(release: ReleaseRecord, where: str, domain: Domain, distance: Distance, found: Differences) -> None:
    _check_cost(release, where, domain, distance, found)
    formula = lookup(release.formula, "release")
    if (formula.failure is None) != (release.failure is None):
        found.append(f"{where}.failure: what has a threshold may fail, and nothing else.")
    elif release.failure is not None:
        least = formula.threshold(domain, distance, release.noise_scale, release.failure, release.parameters)
        found.same(f"{where}.threshold", release.threshold, least)


def _checked_mechanism(
    where: str, mechanism: MechanismRecord, domain: Domain, distance: Distance, found: Differences
) -> PrivacyLoss:
    """What the last step costs with its noise, as is recorded."""
    s, loss = mechanism_loss(mechanism, domain, distance)
    found.same(f"{where}.sensitivity", mechanism.sensitivity, s)
    if mechanism.mu is None:
        if loss.failure or loss.gate:
            found.append(f"{where}: its privacy map fails.")
        return loss
    found.same(f"{where}.mu", mechanism.mu, loss.mu)
    return PrivacyLoss(mechanism.mu)


def _derive(c: Record, found: Differences) -> tuple[list[Point], Domain, Distance]:
    """Domain and distance at the input of every step, and at the end."""
    domain = Domain.from_dict(c.entrance.domain)
    distance = Distance.from_dict(c.entrance.distance)
    neighbours = domain.neighbours.to_dict()
    if not close(neighbours, c.entrance.distance) or c.rows_per_unit != domain.adjacency.rows:
        found.append("entrance.distance: neighbouring datasets differ otherwise.")
    if not close(domain.to_dict(), c.entrance.domain):
        found.append("entrance.domain: it is not written as it is read.")
    if domain.groups:
        found.append("entrance.domain: groups of columns are none of the facts that come in.")
    points = []
    for i, step in enumerate(c.steps):
        points.append((domain, distance))
        found += step_rules(step, domain, distance, f"steps[{i}]")
        domain, distance = lookup(step.formula, "stability")(domain, distance, **step.parameters)
        if not close(domain.to_dict(), step.domain):
            found.append(f"steps[{i}].domain: another domain follows.")
        if not close(distance.to_dict(), step.distance):
            found.append(f"steps[{i}].distance: another distance follows.")
    return points, domain, distance


def _check_total(c: Record, loss: PrivacyLoss, draws: int, found: Differences) -> None:
    total = c.total
    found.same("total.mu", total.mu, loss.mu)
    found.same("total.failure", total.failure, loss.failure)
    if not close(total.parts, [part.to_dict() for part in loss.parts]):
        found.append("total.parts: other parts follow.")
    least = (1 + math.exp(c.epsilon)) * draws * TOTAL_VARIATION_PER_DRAW
    if not least * (1 - TOLERANCE) <= total.allowance < (c.delta or math.inf):
        found.append("total.allowance: the noise sampler needs another part of delta.")
    if found and loss.parts:  # to account for what nobody issued may take any time and memory
        return
    spent = loss.epsilon(c.delta - total.allowance)
    if math.isinf(spent) and loss.parts:
        found.append("total.parts: they promise nothing, or take more grid points than this is worth (2^24).")
    elif not spent <= c.epsilon * (1 + (_COMPOSED if loss.parts else TOLERANCE)):
        found.append("epsilon: the releases cost more than (epsilon, delta).")


def close(a: Any, b: Any) -> bool:
    """Equality of plain documents up to rounding."""
    if isinstance(a, float) and isinstance(b, float):  # most are, and an abstract class takes long to ask
        return math.isclose(a, b, rel_tol=TOLERANCE)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(close(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(close(x, y) for x, y in zip(a, b))
    if isinstance(a, bool) or isinstance(b, bool) or not isinstance(a, (int, float)) or not isinstance(b, (int, float)):
        return bool(a == b)
    return math.isclose(a, b, rel_tol=TOLERANCE)


@dataclass(frozen=True, slots=True)
class RungReplay:
    """What a certificate would say, had one rung been passed."""

    where: str  # which rung
    document: Record  # its steps and its mechanism
    points: list[Point]  # domain and distance at the input of every step
    end: Point  # and of the mechanism


def replay_rung(c: Record, rung: Rung, points: list[Point], where: str) -> RungReplay:
    """The certificate on a rung, given domain and distance at the input of every step."""
    at = c.conditional[0]
    steps, reached, (domain, distance) = list(c.steps[:at]), points[:at], points[at]
    for step in c.steps[at:]:
        own = rung.parameters.get(step.name, step.parameters)
        conditions = tuple(restated(condition, domain, own) for condition in step.conditions)
        reached.append((domain, distance))
        domain, distance = lookup(step.formula, "stability")(domain, distance, **own)
        shown = {"domain": domain.to_dict(), "distance": distance.to_dict()}
        steps.append(replace(step, **shown, parameters=own, conditions=conditions))
    document = replace(c, steps=tuple(steps), mechanism=rung.mechanism)
    return RungReplay(where, document, reached, (domain, distance))


def ladder_rules(c: Record, gate: GateRecord, ladder: Ladder, rungs: Sequence[RungReplay]) -> Iterator[str]:
    """What must hold between the rungs of a ladder: ``docs/theory/gate.md``, Theorem 5.

    The promise covers all rungs: each must ask for the public difference of its threshold, keep every rule that the one
    that was passed keeps, and cost no more than is recorded.
    """
    if gate.rule != "sum" or not gate.mu:
        yield "gate.ladder: its noise is Gaussian, and its delta adds."
    conditional = c.conditional
    if len(conditional) != 1 or len(c.steps[conditional[0]].conditions) != 1:
        yield "gate.ladder: there must be one condition."
        return
    passed = rungs[ladder.rung].document if 0 <= ladder.rung < len(rungs) else None
    own = [step.parameters for step in c.steps]
    if passed is None or passed.mechanism != c.mechanism or [step.parameters for step in passed.steps] != own:
        yield "gate.ladder: the derivation is not that of its rung."
    if any(release.at > conditional[0] for release in c.releases):
        yield "gate.ladder: a release depends on the rung."
    yield from _thresholds(c, ladder, rungs, conditional[0])
    behind = {step.name for step in c.steps[conditional[0] :]}
    for rung, recorded in zip(rungs, ladder.rungs):
        if not recorded.parameters.keys() <= behind:
            yield f"{rung.where}: it has parameters of no step behind the gate."
        m, shown = recorded.mechanism, c.mechanism
        if m.mu is None or shown is None or _IDENTITY(m) != _IDENTITY(shown):
            yield f"{rung.where}: another mechanism."
        else:
            for i, (step, point) in enumerate(zip(rung.document.steps, rung.points)):
                yield from step_rules(step, *point, f"{rung.where}.steps[{i}]")
            yield from (f"{rung.where}: {problem}" for problem in part_rules(rung.document, rung.points, rung.end[0]))


def _thresholds(c: Record, ladder: Ladder, rungs: Sequence[RungReplay], at: int) -> Iterator[str]:
    """One measured quantity less public thresholds, the tightest first."""
    step = c.steps[at]
    margin = lookup(step.conditions[0].formula, "margin")
    if margin.level is None:
        yield "gate.ladder: margins of its rungs are different functions of the rows."
        return
    domain, distance = rungs[0].points[at]
    unit = margin(domain, distance)
    owns = [rung.document.steps[at].parameters for rung in rungs]
    levels = [margin.level(domain, unit, **own) for own in owns]
    rows = [rung.further for rung in ladder.rungs]
    if any(a <= b for a, b in pairwise(levels)) or any(a < b for a, b in pairwise(rows)) or rows[-1]:
        yield "gate.ladder: its rungs must become looser, and the last one asks for no more than the gate."
    fixed = {k: v for k, v in step.parameters.items() if k not in margin.threshold}
    for rung, own, level, further in zip(rungs, owns, levels, rows):
        if further < (level - levels[-1]) * (1 - 1e-9):
            yield f"{rung.where}: its threshold is further away."
        if {k: v for k, v in own.items() if k not in margin.threshold} != fixed:
            yield f"{rung.where}: more than its threshold is another."
