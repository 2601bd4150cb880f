"""A skilled forger: computes again whatever follows from what was changed."""

from __future__ import annotations

import copy
import math

from zoo import Document, sealed

from ppdp import Domain
from ppdp.bounds import lookup
from ppdp.bounds.laplace import whole_loss
from ppdp.core.distance import Distance
from ppdp.core.formula import draws_that_count
from ppdp.data.noisy_statistics import STATISTICS
from ppdp.privacy.gate import gate_noise, overlap
from ppdp.privacy.loss import PrivacyLoss, any_of
from ppdp.privacy.noise.sampler import lattice_allowance


def rederived(content: Document) -> Document:
    """A skilled forger: everything that follows is computed again, the smallest epsilon included."""
    c = copy.deepcopy(content)
    domain = Domain.from_dict(c["entrance"]["domain"])
    distance = domain.neighbours
    c["entrance"]["distance"], c["rows_per_unit"] = distance.to_dict(), domain.rows_per_unit
    points, squares, draws, parts = [], [], 0, ()
    for step in c["steps"]:
        points.append((domain, distance))
        for condition in step["conditions"]:
            condition["unit"] = lookup(condition["formula"], "margin")(domain, distance)
        domain, distance = lookup(step["formula"], "stability")(domain, distance, **step["parameters"])
        step["domain"], step["distance"] = domain.to_dict(), distance.to_dict()
    for release in c["releases"]:
        here, far = points[release["at"]]
        statistic = STATISTICS[release["statistic"]]
        release["formula"] = statistic.formula
        release["sensitivity"] = lookup(statistic.formula, "release")(here, far, **release["parameters"])
        release["size"], release["bound"] = statistic.size(here, release["parameters"]), float(statistic.bound(here))
        noise = release["noise_scale"]
        formula, given = lookup(statistic.formula, "release"), (release["size"], release["parameters"])
        release["mu"] = release["sensitivity"] / noise
        release["mu"] += lattice_allowance(release["bound"], noise, formula.lattice(far, *given))
        squares.append(release["mu"] ** 2)
        draws += formula.draws(far, *given)
        if formula.failure is not None:
            release["threshold"] = formula.threshold(here, far, noise, release["failure"], release["parameters"])
    if own := c.get("diagnostics"):
        here, far = Domain.from_dict(c["entrance"]["domain"]), Distance.from_dict(c["entrance"]["distance"])
        formula, given = lookup(own["formula"], "release"), (own["size"], own["parameters"])
        own["sensitivity"] = formula(here, far, **own["parameters"])
        draws += formula.draws(far, *given)
        if own["mu"] is None:
            parts = whole_loss(int(own["sensitivity"]), own["noise_scale"], own["bound"]).parts
        else:
            own["mu"] = own["sensitivity"] / own["noise_scale"]
            own["mu"] += lattice_allowance(own["bound"], own["noise_scale"], formula.lattice(far, *given))
            squares.append(own["mu"] ** 2)
    failed = any_of(*(release.get("failure", 0.0) for release in c["releases"]))
    gate, mechanism, failure = c["gate"], c["mechanism"], failed
    if gate:
        draws += 1
        noise = gate_noise(gate["kind"], gate["noise_scale"], domain.n)
        gate["mu"] = noise.loss.mu if gate["kind"] == "gaussian" else None
        gate["threshold"] = noise.threshold(gate["delta"])
        squares.append(noise.loss.mu**2)
        failure = any_of(failed, gate["delta"] if gate["rule"] == "sum" else 0.0)
        parts += noise.loss.parts
    if mechanism and mechanism["mu"] is None:
        own = lookup(mechanism["formula"], "privacy")(
            domain, distance, noise_scale=mechanism["noise_scale"], **mechanism["parameters"]
        )
        squares.append(own.mu**2)
        parts += own.parts
        asked = {name: mechanism[name] for name in ("steps", "size", "parameters")}
        draws += draws_that_count(mechanism["formula"], domain, distance, **asked)
    elif mechanism:
        mechanism["sensitivity"] = lookup(mechanism["formula"], "mechanism")(
            domain, distance, **mechanism["parameters"]
        )
        lattice = lattice_allowance(mechanism["bound"], mechanism["noise_scale"], mechanism["size"])
        mechanism["mu"] = math.sqrt(mechanism["steps"]) * (
            mechanism["sensitivity"] / mechanism["noise_scale"] + lattice
        )
        squares.append(mechanism["mu"] ** 2)
        draws += draws_that_count(
            mechanism["formula"], domain, distance, steps=mechanism["steps"], size=mechanism["size"]
        )
    mu, epsilon, allowance = math.sqrt(sum(squares)), c["epsilon"], 0.0
    if gate and gate["ladder"]:
        failure /= overlap(mu)
    for _ in range(20):
        allowance = (1 + math.exp(epsilon)) * draws * 2.0**-60 * (1 + 1e-12)
        before, epsilon = epsilon, PrivacyLoss(mu, failure, parts=parts).epsilon(c["delta"] - allowance)
        if (epsilon := max(epsilon, 1e-9) * (1 + 1e-12)) == before:
            break
    recipes = [part.to_dict() for part in parts]
    c["total"] = {"mu": mu, "failure": failure, "allowance": allowance, "parts": recipes}
    c["epsilon"] = epsilon
    return sealed(c)
