"""Recompute a certificate: a small interpreter of derivations.

It knows the bounds by their ids and nothing of planner, pipeline or data. Every recorded number is computed
again from the recorded public parameters, step after step; then the digest is compared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ppdp.bounds import lookup
from ppdp.distance import Distance
from ppdp.domain import Domain
from ppdp.exceptions import CertificateError, PpdpError
from ppdp.gate import gate_loss, gate_threshold
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.noise import TOTAL_VARIATION_PER_DRAW, lattice_allowance

__all__ = ["Verification", "verify"]

TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Verification:
    """Result of :func:`verify`; true if nothing differs.

    Attributes
    ----------
    problems : tuple of str
        Every difference found, in public words.
    """

    problems: tuple[str, ...]

    def __bool__(self) -> bool:
        return not self.problems

    def __repr__(self) -> str:
        if self:
            return "Verification: the derivation holds and the digest matches."
        return "\n".join(["Verification: FAILED", *(f"  - {problem}" for problem in self.problems)])


def verify(content: dict[str, Any]) -> Verification:
    """Replay the derivation of a certificate.

    Parameters
    ----------
    content : dict
        The document.
    """
    from ppdp.certificate.document import digest
    from ppdp.certificate.schema import check_form

    problems: list[str] = []
    try:
        check_form(content)
        problems += _replay(content)
    except PpdpError as error:
        problems.append(error.message)
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, ArithmeticError) as error:
        problems.append(f"the derivation cannot be replayed ({type(error).__name__}).")
    try:
        if content.get("digest") != digest({k: v for k, v in content.items() if k != "digest"}):
            problems.append("the digest does not match the content.")
    except (TypeError, ValueError, AttributeError):
        problems.append("the content has no canonical form.")
    return Verification(tuple(problems))


def _replay(c: dict[str, Any]) -> list[str]:
    found: list[str] = []

    def same(what: str, recorded: float | None, computed: float | None) -> None:
        if recorded is None or computed is None:
            if recorded is not computed:
                found.append(f"{what}: {recorded!r} is recorded, {computed!r} follows.")
        elif not math.isclose(recorded, computed, rel_tol=TOLERANCE, abs_tol=1e-300):
            found.append(f"{what}: {recorded!r} is recorded, {computed!r} follows.")

    points, domain, distance = _derive(c, found)
    n = domain.n
    squares, draws = [], 1
    for i, release in enumerate(c["releases"]):
        here, far = points[release["at"]]
        s = lookup(release["formula"], "release")(here, far, **release["parameters"])
        same(f"releases[{i}].sensitivity", release["sensitivity"], s)
        _check_shape(release, here, found, f"releases[{i}]")
        mu = s / release["noise_scale"] + lattice_allowance(release["bound"], release["noise_scale"], release["size"])
        if mu > release["mu"] * (1 + TOLERANCE):
            found.append(f"releases[{i}]: its noise costs more than is recorded.")
        squares.append(release["mu"] ** 2)
        draws += release["size"]
    found += _structure(c)
    gate, conditions = c["gate"], [k for step in c["steps"] for k in step["conditions"]]
    failure, front = 0.0, 0.0
    if gate is not None:
        same("gate.mu", gate["mu"], gate_loss(gate["noise_scale"], n))
        same("gate.threshold", gate["threshold"], gate_threshold(gate["noise_scale"], gate["delta"]))
        squares.append(gate["mu"] ** 2)
        shaped = _gate_after_release(c)
        if shaped and gate["rule"] != "sum":
            found.append("gate.rule: a condition looks at rows that a release has shaped, so deltas add.")
        failure, front = (gate["delta"], 0.0) if gate["rule"] == "sum" else (0.0, gate["delta"])
    untested = bool(conditions) and gate is None
    mechanism = c["mechanism"]
    if mechanism is not None:
        s = lookup(mechanism["formula"], "mechanism")(domain, distance, **mechanism["parameters"])
        same("mechanism.sensitivity", mechanism["sensitivity"], s)
        lattice = lattice_allowance(mechanism["bound"], mechanism["noise_scale"], mechanism["size"])
        mu = math.sqrt(mechanism["steps"]) * (s / mechanism["noise_scale"] + lattice)
        same("mechanism.mu", mechanism["mu"], mu)
        squares.append(mechanism["mu"] ** 2)
        draws += mechanism["steps"] * mechanism["size"]
    elif any(step["way"] == "exact" and step["formula"] not in _NOTHING_FITTED for step in c["steps"]):
        found.append("steps: a released map needs released statistics.")
    _check_total(c, PrivacyLoss(math.sqrt(sum(squares)), failure, front), draws, found, same)
    _check_status(c, untested, found)
    return found


_NOTHING_FITTED = frozenset({"deduplication.whole-record", "deduplication.keep-first"})


_AFFINE = frozenset({"pca.public"})
_NEEDS_RELEASE = {"imputation.public": {"means"}, "scaling.public": {"squares", "matrix"}, "pca.public": {"matrix"}}


def _structure(c: dict[str, Any]) -> list[str]:
    """Every stage fitted from a release has one, taken where it may be taken."""
    found, steps = [], c["steps"]
    names = [step["name"] for step in steps]
    if len(set(names)) != len(names):
        return ["steps: names are not unique."]
    served: dict[str, set[str]] = {}
    conditional = [i for i, step in enumerate(steps) if step["conditions"]]
    for i, release in enumerate(c["releases"]):
        positions = [names.index(name) for name in release["serves"]]
        if positions != sorted(set(positions)) or positions[0] != release["at"]:
            found.append(f"releases[{i}]: it is not taken where its first stage stands.")
        if not all(_affine(step) for step in steps[release["at"] : positions[-1]]):
            found.append(f"releases[{i}]: it cannot be carried to all stages that it serves.")
        fit = [name for name in release["serves"] if steps[names.index(name)]["way"] == "noisy"]
        if bool(fit) != (release["purpose"] == "fit"):
            found.append(f"releases[{i}]: its purpose is another.")
        if c["gate"] and fit and conditional[0] < release["at"] and names.index(fit[0]) <= conditional[-1]:
            found.append(f"releases[{i}]: a condition rests on a release that rests on a condition.")
        for name in release["serves"]:
            served.setdefault(name, set()).add(release["statistic"])
    for i, step in enumerate(steps):
        needed = _NEEDS_RELEASE.get(step["formula"], set())
        if (step["way"] == "noisy") != bool(needed):
            found.append(f"steps[{i}]: this formula is not that of this way.")
        if needed and not served.get(step["name"], set()) & needed:
            found.append(f"steps[{i}]: nothing is released that it could be fitted from.")
    return found


def _affine(step: dict[str, Any]) -> bool:
    """Whether released moments can be carried through a step."""
    return step["formula"] in _AFFINE or (step["formula"] == "scaling.public" and step["parameters"]["clip"] is None)


def _derive(c: dict[str, Any], found: list[str]) -> tuple[list[tuple[Domain, Distance]], Domain, Distance]:
    """Domain and distance at the input of every step, and at the end."""
    domain = Domain.from_dict(c["entrance"]["domain"])
    distance = Distance.from_dict(c["entrance"]["distance"])
    if distance != Distance.neighbours(domain.rows_per_unit) or c["rows_per_unit"] != domain.rows_per_unit:
        found.append("entrance.distance: neighbouring datasets differ in rows_per_unit replaced rows.")
    points = []
    for i, step in enumerate(c["steps"]):
        points.append((domain, distance))
        _check_conditions(step, domain, distance, found, f"steps[{i}]")
        domain, distance = lookup(step["formula"], "stability")(domain, distance, **step["parameters"])
        if not _close(domain.to_dict(), step["domain"]):
            found.append(f"steps[{i}].domain: another domain follows.")
        if not _close(distance.to_dict(), step["distance"]):
            found.append(f"steps[{i}].distance: another distance follows.")
    return points, domain, distance


def _check_conditions(step: dict[str, Any], domain: Domain, distance: Distance, found: list[str], where: str) -> None:
    for condition in step["conditions"]:
        unit = lookup(condition["formula"], "margin")(domain, distance)
        if not math.isclose(unit, condition["unit"], rel_tol=TOLERANCE):
            found.append(f"{where}.conditions: a unit of margin is {unit!r} here.")
    named = {condition["formula"] for condition in step["conditions"]}
    needed = _needed_conditions(step, domain)
    if named != needed:
        found.append(f"{where}.conditions: the formula assumes {sorted(needed) or 'nothing'}.")


def _needed_conditions(step: dict[str, Any], domain: Domain) -> set[str]:
    """What a stability formula assumes, from its public parameters."""
    name, parameters = step["formula"], step["parameters"]
    needed: set[str] = set()
    if name == "pca.rank":
        needed.add("pca.gap")
    if name == "scaling.standard" and parameters["conditional"]:
        needed.add("scaling.std")
    if name == "imputation.mean":
        if min(parameters["max_missing"], domain.missing_rows) < domain.n:
            needed.add("imputation.missing")
        if parameters["conditional"]:
            needed.add("imputation.observed")
    return needed


def _check_shape(release: dict[str, Any], domain: Domain, found: list[str], where: str) -> None:
    from ppdp.release_points import STATISTICS

    statistic = STATISTICS.get(release["statistic"])
    if statistic is None or statistic.formula != release["formula"]:
        raise CertificateError(f"{where}: no such statistic.")
    if statistic.size(domain) != release["size"] or not math.isclose(statistic.bound(domain), release["bound"]):
        found.append(f"{where}: another size or bound follows.")


def _gate_after_release(c: dict[str, Any]) -> bool:
    last = max((i for i, step in enumerate(c["steps"]) if step["conditions"]), default=-1)
    names = [step["name"] for step in c["steps"]]
    return any(
        release["purpose"] == "fit" and min(names.index(name) for name in release["serves"]) < last
        for release in c["releases"]
    )


def _check_total(c: dict[str, Any], loss: PrivacyLoss, draws: int, found: list[str], same: Any) -> None:
    total = c["total"]
    same("total.mu", total["mu"], loss.mu)
    same("total.failure", total["failure"], loss.failure)
    least = (1 + math.exp(c["epsilon"])) * draws * TOTAL_VARIATION_PER_DRAW
    if not least * (1 - TOLERANCE) <= total["allowance"] < c["delta"]:
        found.append("total.allowance: the noise sampler needs another part of delta.")
    rest = c["delta"] - total["allowance"]
    if loss.epsilon(rest) > c["epsilon"] * (1 + TOLERANCE):
        found.append("epsilon: the releases cost more than (epsilon, delta).")


def _check_status(c: dict[str, Any], untested: bool, found: list[str]) -> None:
    private_facts = any(fact["origin"] == "read from y: not public" for fact in c["facts"])
    if (untested or private_facts) and c["status"] == "UNCONDITIONAL":
        found.append("status: something is assumed, so it is not unconditional.")
    if c["status"] != "UNCONDITIONAL" and not c["reasons"]:
        found.append("reasons: a status other than UNCONDITIONAL needs a reason.")
    if c["status"] == "UNCONDITIONAL" and c["reasons"]:
        found.append("status: reasons are given why it is not unconditional.")


def _close(a: Any, b: Any) -> bool:
    """Equality of plain documents up to rounding."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_close(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(_close(x, y) for x, y in zip(a, b))
    if isinstance(a, bool) or isinstance(b, bool) or not isinstance(a, (int, float)) or not isinstance(b, (int, float)):
        return bool(a == b)
    return math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=1e-300)
