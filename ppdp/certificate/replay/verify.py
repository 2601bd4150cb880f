"""Recompute a certificate: a small interpreter of derivations.

It knows the bounds by their ids and nothing of planner, pipeline or data. Every recorded number is computed
again from the recorded public parameters, step after step; then the digest is compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ppdp.bounds import lookup
from ppdp.certificate.canonical import digest
from ppdp.certificate.issued import issued_rules
from ppdp.certificate.record import Mechanism, Record
from ppdp.certificate.replay.form import parse
from ppdp.certificate.replay.ladder import climbed, ladder_rules
from ppdp.certificate.replay.rules import broken_rules, step_rules
from ppdp.certificate.replay.searched import search_rules
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.exceptions import PpdpError
from ppdp.privacy.gate import certain_share
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.losses import Part
from ppdp.privacy.noise.gate import gate_noise
from ppdp.privacy.noise.sampler import TOTAL_VARIATION_PER_DRAW, lattice_allowance

__all__ = ["Verification", "verify"]

Same = Callable[[str, float | None, float | None], None]

TOLERANCE = 1e-9
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


def verify(content: dict[str, Any]) -> Verification:
    """Replay the derivation of a certificate.

    Parameters
    ----------
    content : dict
        The document.
    """
    problems: list[str] = []
    record = None
    try:
        record = parse(content)
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


def _replay(c: Record) -> list[str]:
    found: list[str] = []

    def same(what: str, recorded: float | None, computed: float | None) -> None:
        if recorded is None or computed is None:
            if recorded is not computed:
                found.append(f"{what}: {recorded!r} is recorded, {computed!r} follows.")
        elif not math.isclose(recorded, computed, rel_tol=TOLERANCE):
            found.append(f"{what}: {recorded!r} is recorded, {computed!r} follows.")

    points, domain, distance = _derive(c, found)
    n = domain.n
    squares, draws = [], 1
    for i, release in enumerate(c.releases):
        here, far = points[release.at]
        s = lookup(release.formula, "release")(here, far, **release.parameters)
        same(f"releases[{i}].sensitivity", release.sensitivity, s)
        mu = s / release.noise_scale + lattice_allowance(release.bound, release.noise_scale, release.size)
        if not mu <= release.mu * (1 + TOLERANCE):
            found.append(f"releases[{i}]: its noise costs more than is recorded.")
        squares.append(release.mu**2)
        draws += release.size
    gate = c.gate
    parts: tuple[Part, ...] = ()
    failure, front = 0.0, 0.0
    if gate is not None:
        noise = gate_noise(gate.kind, gate.noise_scale, n)
        same("gate.mu", gate.mu, noise.loss.mu or None)
        same("gate.threshold", gate.threshold, noise.threshold(gate.delta))
        squares.append(noise.loss.mu**2)
        parts = noise.loss.parts
        failure, front = (gate.delta, 0.0) if gate.rule == "sum" else (0.0, gate.delta)
    if gate is not None and gate.ladder is not None:
        ladder = gate.ladder
        rungs = climbed(c, ladder, points)
        found += ladder_rules(c, gate, ladder, rungs)
        losses = [
            _of_mechanism(f"{r.where}.mechanism", rung.mechanism, *r.end, found, same)
            for r, rung in zip(rungs, ladder.rungs)
        ]
        squares.append(max(loss.mu for loss in losses) ** 2)
        failure = failure / certain_share(math.sqrt(sum(squares)))
        draws += max(r.mechanism.steps * r.mechanism.size for r in ladder.rungs)
    elif c.mechanism is not None:
        loss = _of_mechanism("mechanism", c.mechanism, domain, distance, found, same)
        squares.append(loss.mu**2)
        parts += loss.parts
        draws += c.mechanism.steps * c.mechanism.size
    spent = PrivacyLoss(math.sqrt(sum(squares)), failure, front, parts)
    if c.search is None:
        _check_total(c, spent, draws, found, same)
    else:
        found += search_rules(c, c.search, spent, draws)
    found += broken_rules(c, points, domain)
    if not found:  # the totals beside it are held against a claim that holds
        whole = spent if c.search is None else PrivacyLoss(c.total.mu, c.total.failure)
        found += issued_rules(c, whole)
    return found


def _of_mechanism(
    where: str, mechanism: Mechanism, domain: Domain, distance: Distance, found: list[str], same: Same
) -> PrivacyLoss:
    """What the last step costs with its noise, for the domain and distance at its input."""
    if mechanism.mu is None:
        loss: PrivacyLoss = lookup(mechanism.formula, "privacy")(
            domain, distance, noise_scale=mechanism.noise_scale, **mechanism.parameters
        )
        same(f"{where}.sensitivity", mechanism.sensitivity, None)
        if loss.failure or loss.gate:
            found.append(f"{where}: its privacy map fails.")
        return loss
    s = lookup(mechanism.formula, "mechanism")(domain, distance, **mechanism.parameters)
    same(f"{where}.sensitivity", mechanism.sensitivity, s)
    lattice = lattice_allowance(mechanism.bound, mechanism.noise_scale, mechanism.size)
    mu = math.sqrt(mechanism.steps) * (s / mechanism.noise_scale + lattice)
    same(f"{where}.mu", mechanism.mu, mu)
    return PrivacyLoss(mechanism.mu)


def _derive(c: Record, found: list[str]) -> tuple[list[tuple[Domain, Distance]], Domain, Distance]:
    """Domain and distance at the input of every step, and at the end."""
    domain = Domain.from_dict(c.entrance.domain)
    distance = Distance.from_dict(c.entrance.distance)
    neighbours = domain.adjacency.distance.to_dict()
    if not _close(neighbours, c.entrance.distance) or c.rows_per_unit != domain.adjacency.rows:
        found.append("entrance.distance: neighbouring datasets differ in rows_per_unit replaced rows.")
    if not _close(domain.to_dict(), c.entrance.domain):
        found.append("entrance.domain: it is not written as it is read.")
    points = []
    for i, step in enumerate(c.steps):
        points.append((domain, distance))
        found += step_rules(step, domain, distance, f"steps[{i}]")
        domain, distance = lookup(step.formula, "stability")(domain, distance, **step.parameters)
        if not _close(domain.to_dict(), step.domain):
            found.append(f"steps[{i}].domain: another domain follows.")
        if not _close(distance.to_dict(), step.distance):
            found.append(f"steps[{i}].distance: another distance follows.")
    return points, domain, distance


def _check_total(c: Record, loss: PrivacyLoss, draws: int, found: list[str], same: Same) -> None:
    total = c.total
    same("total.mu", total.mu, loss.mu)
    same("total.failure", total.failure, loss.failure)
    if not _close(total.parts, [part.to_dict() for part in loss.parts]):
        found.append("total.parts: other parts follow.")
    least = (1 + math.exp(c.epsilon)) * draws * TOTAL_VARIATION_PER_DRAW
    if not least * (1 - TOLERANCE) <= total.allowance < c.delta:
        found.append("total.allowance: the noise sampler needs another part of delta.")
    if found and loss.parts:  # to account for what nobody issued may take any time and memory
        return
    spent = loss.epsilon(c.delta - total.allowance)
    if math.isinf(spent) and loss.parts:
        found.append("total.parts: they promise nothing, or take more grid points than this is worth (2^24).")
    elif not spent <= c.epsilon * (1 + (_COMPOSED if loss.parts else TOLERANCE)):
        found.append("epsilon: the releases cost more than (epsilon, delta).")


def _close(a: Any, b: Any) -> bool:
    """Equality of plain documents up to rounding."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_close(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(_close(x, y) for x, y in zip(a, b))
    if isinstance(a, bool) or isinstance(b, bool) or not isinstance(a, (int, float)) or not isinstance(b, (int, float)):
        return bool(a == b)
    return math.isclose(a, b, rel_tol=TOLERANCE)
