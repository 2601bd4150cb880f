"""What a certificate must say to be true, by another way than ``verify``: the oracle for mutants.

A document whose digest was not computed again is accepted only if it is the one that was issued. One whose digest was
computed again may differ where nothing is claimed, may claim less, or may be that of another run; but it must follow:
:func:`lies` derives it again with the forger's own code, accounts for it in closed form, and asks for its assumptions.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from forger import rederived
from mpmath import mp, mpf, ncdf
from mutants import Mutant, issued
from unprotected import WEAKER, WITHOUT_EFFECT, WORDS

from ppdp import Certificate, Domain
from ppdp.bounds import FORMULAS
from ppdp.certificate import verify
from ppdp.exceptions import CertificateError
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.losses import Part

Document = dict[str, Any]
MISSING = object()
ROUNDING = 1e-9


VERDICTS = (
    "no certificate",
    "refused",
    "the same",
    "the same to rounding",
    "other words",
    "less is claimed",
    "true of another run",
    "WRONG",
)


def judge(mutant: Mutant) -> tuple[str, str]:
    """What becomes of a mutant, one of :data:`VERDICTS`, and why if it is wrong.

    Whatever is raised but a :class:`CertificateError` on reading is left to the caller: it is a crash.
    """
    content = mutant.content
    if isinstance(content, dict):
        result = verify(content)
    else:
        try:
            one = Certificate.from_json(content)
        except CertificateError as error:
            return ("WRONG", error.message) if mutant.neutral else ("no certificate", "")
        result, content = one.verify(), None if mutant.ambiguous else json.loads(mutant.content)
    if not result:
        return ("WRONG", repr(result)) if mutant.neutral else ("refused", "")
    if content is None:
        return "WRONG", "it can be read in two ways"
    Certificate(content).to_text(full=True)  # whatever verifies can be shown
    return _accepted(mutant, content)


def _accepted(mutant: Mutant, content: Document) -> tuple[str, str]:
    original = issued(mutant.original)
    if same(original, content):
        return "the same", ""
    if mutant.attacker in ("text", "plain"):
        return "WRONG", f"the digest did not find {[*differences(original, content)]}"
    lie = lies(content)
    if lie:
        return "WRONG", "; ".join(lie)
    kinds = {kind_of(*difference) for difference in differences(original, content)}
    if mutant.attacker == "sealed" and "another run" in kinds:
        # nothing was derived again, so only stages that change no number may have gone or moved
        elsewhere = [d for d in differences(original, content) if kind_of(*d) == "another run" and not _harmless(*d)]
        if elsewhere:
            return "WRONG", f"the replay did not find {elsewhere}"
    for kind, verdict in (
        ("another run", "true of another run"),
        ("without effect", "true of another run"),
        ("weaker", "less is claimed"),
        ("words", "other words"),
    ):
        if kind in kinds:
            return verdict, ""
    return "the same to rounding", ""


def _harmless(path: str, one: Any, other: Any) -> bool:
    """Whether a difference that was not derived again is one of stages, labels, or a seed that is kept quiet."""
    return path == "steps" or path.startswith("entrance.domain.classes") or (path == "status" and one == "SEEDED")


def same(one: Any, other: Any) -> bool:
    """Whether two documents are one, to the last bit and the type of every number."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other and (not isinstance(one, float) or math.copysign(1, one) == math.copysign(1, other))


def differences(one: Any, other: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any, Any]]:
    """Where two documents differ; lists of different lengths differ as a whole."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in {**one, **other}:
            yield from differences(one.get(key, MISSING), other.get(key, MISSING), (*path, key))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for first, second in zip(one, other):
            yield from differences(first, second, (*path, "*"))
    elif path != ("digest",) and not same(one, other):
        yield ".".join(path), one, other


def kind_of(path: str, one: Any, other: Any) -> str:
    """What a difference is that needs no derivation: rounding, words, weaker, without effect; else another run."""
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (one, other))
    if numbers and math.isclose(one, other, rel_tol=ROUNDING):
        return "rounding"
    if path in WORDS or path.split(".")[0] in ("alternatives", "facts", "reasons", "versions", "warnings"):
        return "words"
    if numbers and path in WEAKER and other > one:
        return "weaker"
    return "without effect" if path in WITHOUT_EFFECT else "another run"


def lies(c: Document) -> list[str]:
    """What a document says that does not follow from its public facts; everything is computed again here."""
    again = rederived(c)
    found = []
    for path, said, true in differences(c, again):
        one_sided = path in ("epsilon", "total.allowance", "total.mu", "releases.*.mu")
        if one_sided and said < true * (1 - ROUNDING):
            found.append(f"{path}: {said!r} is less than {true!r}")
        if not one_sided and kind_of(path, said, true) != "rounding":
            found.append(f"{path}: {said!r}, not {true!r}")
    return [*found, *_cost(c), *_assumptions(c)]


def _cost(c: Document) -> Iterator[str]:
    """(epsilon, delta): a Gaussian loss in closed form; one with parts by delta at epsilon, not epsilon at delta."""
    total, gate, rest = c["total"], c["gate"], c["delta"] - c["total"]["allowance"]
    if gate is not None and gate["rule"] == "max" and gate["delta"] > rest * (1 + ROUNDING):
        yield "delta: the gate needs more"
    if total["parts"]:
        parts = tuple(map(Part.from_dict, total["parts"]))
        needed = _with_parts(PrivacyLoss(total["mu"], total["failure"], parts=parts), c["epsilon"] * (1 + ROUNDING))
    else:
        needed = total["failure"] + (1 - total["failure"]) * _gaussian(total["mu"], c["epsilon"])
    if needed > rest * (1 + 1e-6):
        yield f"delta: {needed!r} is needed, and {rest!r} is there"


def _gaussian(mu: float, epsilon: float) -> float:
    if mu * 1e6 < epsilon:
        return 0.0  # below any double
    with mp.workdps(60):
        m, e = mpf(mu), mpf(epsilon)
        return float(ncdf(m / 2 - e / m) - mp.exp(e) * ncdf(-m / 2 - e / m))


@lru_cache
def _with_parts(loss: PrivacyLoss, epsilon: float) -> float:
    """Delta of the composed distributions; or what is pure takes its epsilon, and the rest is Gaussian."""
    rest = epsilon - sum(part.pure for part in loss.parts)
    purely = loss.failure + (1 - loss.failure) * _gaussian(loss.mu, rest) if rest >= 0 else 1.0
    return min(purely, loss.delta(epsilon))


def _assumptions(c: Document) -> Iterator[str]:
    """Whatever the formulas assume is said, and tested or else the status says so."""
    domain, unconditional = Domain.from_dict(c["entrance"]["domain"]), c["status"] == "UNCONDITIONAL"
    for i, step in enumerate(c["steps"]):
        formula = FORMULAS[step["formula"]]
        needed = formula.assumes(domain, **step["parameters"])
        if needed != {condition["formula"] for condition in step["conditions"]}:
            yield f"steps[{i}]: it assumes {needed}"
        if needed and c["gate"] is None and unconditional:
            yield f"steps[{i}]: nothing tests what it assumes"
        if step["way"] != formula.way or (formula.used_by and step["class"] not in formula.used_by):
            yield f"steps[{i}]: the formula is that of another way or class"
        if step["way"] == "noisy" and sum(step["name"] in release["serves"] for release in c["releases"]) != 1:
            yield f"steps[{i}]: it is fitted from nothing that was released"
        if step["way"] == "exact" and formula.fitted and c["mechanism"] is None:
            yield f"steps[{i}]: its map left without noise"
        domain = Domain.from_dict(step["domain"])
    if unconditional and (c["reasons"] or (c["mechanism"] and FORMULAS[c["mechanism"]["formula"]].relies)):
        yield "status: there is a reason"
    if c["epsilon"] <= 0 or not 0 < c["delta"] < 1 / c["entrance"]["domain"]["n_rows"]:
        yield "epsilon and delta mean nothing"
