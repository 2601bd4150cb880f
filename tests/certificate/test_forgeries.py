"""Forged certificates: nothing but what can be recomputed verifies.

The digest finds every change. A forger can compute digests too; what the replay of the derivation then still finds,
and what only a signature could tell, is written down here.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from forger import rederived
from zoo import Document, document, sealed, zoo

import ppdp
from ppdp import Domain
from ppdp.bounds import lookup
from ppdp.bounds.release import PREDICTED, share_parameters
from ppdp.certificate import verify
from ppdp.core.distance import Distance
from ppdp.mechanisms import LogisticRegression
from ppdp.transformers import MinMaxScaler


@zoo
@pytest.mark.repeated("name", keep=34)
def test_a_forger_who_changes_nothing_gains_nothing(name):
    again = rederived(document(name))
    assert verify(again), verify(again)
    assert document(name)["epsilon"] * 0.99 <= again["epsilon"] <= document(name)["epsilon"] * (1 + 1e-9)


def step(c: Document, name: str) -> Document:
    return next(one for one in c["steps"] if one["name"] == name)


def swap(name: str, formula: str, way: str, **parameters: Any):
    """Another formula for a step, without conditions or gate."""

    def forge(c: Document) -> None:
        step(c, name).update(formula=formula, way=way, parameters=parameters, conditions=[])
        c["gate"] = None

    return forge


def drop_releases(purpose: str):
    def forge(c: Document) -> None:
        c["releases"] = [r for r in c["releases"] if r["purpose"] != purpose]

    return forge


def drop_step(name: str):
    def forge(c: Document) -> None:
        at = c["steps"].index(step(c, name))
        del c["steps"][at]
        c["releases"] = [r for r in c["releases"] if name not in r["serves"]]
        for release in c["releases"]:
            release["at"] -= release["at"] > at

    return forge


def assume_nothing(c: Document) -> None:
    for one in c["steps"]:
        one["conditions"] = []
        if "conditional" in one["parameters"]:
            one["parameters"]["conditional"] = False
    c.update(gate=None, status="UNCONDITIONAL", reasons=[])


def all_public(c: Document) -> None:
    """A released map, fitted without noise, called public."""
    c["releases"] = []
    step(c, "impute").update(
        formula="imputation.mean",
        way="public",
        parameters={"min_observed": 1500, "max_missing": 3000, "conditional": False},
    )
    step(c, "scale").update(
        formula="scaling.standard",
        way="public",
        parameters={"min_std": 0.2, "conditional": False, "clip": None, "with_mean": True},
    )
    step(c, "pca").update(formula="row-wise.identity", way="public", parameters={})


def change(path: str, value: Any):
    """One leaf, by a dotted path; ``*`` stands for every element."""

    def into(node: Any, keys: list[str]) -> None:
        key, *rest = keys
        for inner in range(len(node)) if key == "*" else [int(key) if isinstance(node, list) else key]:
            if rest:
                into(node[inner], rest)
            else:
                node[inner] = value(node[inner]) if callable(value) else value

    return lambda c: into(c, path.split("."))


FREE = {"center": False, "columns": None}


FIRST = swap("dedup", "deduplication.keep-first", "exact")
FORGERIES = {
    "predictions of rows that others decide on": ("unconditional", FIRST, None),
    "a smaller epsilon": ("gated, max", None, change("epsilon", lambda e: e * 0.99)),
    "a delta that one whole row would satisfy": ("unconditional", change("delta", 1 / 3000), None),
    "the same behind a gate": ("gated, max", change("delta", 0.1), None),
    "a smaller delta": ("gated, max", None, change("delta", lambda d: d * 0.5)),
    "less noise on a release": ("unconditional", None, change("releases.0.noise_scale", lambda s: s * 0.5)),
    "less noise in the mechanism": ("unconditional", None, change("mechanism.noise_scale", lambda s: s * 0.5)),
    "less noise in the gate": ("gated, max", None, change("gate.noise_scale", lambda s: s * 0.5)),
    "a smaller total": ("unconditional", None, change("total.mu", lambda mu: mu * 0.9)),
    "a condition and its gate dropped": ("gated, max", assume_nothing, None),
    "all conditions dropped, the flags turned": ("conditional", assume_nothing, None),
    "an untested condition called unconditional": ("conditional", change("status", "UNCONDITIONAL"), None),
    "the same without reasons": ("conditional", lambda c: c.update(status="UNCONDITIONAL", reasons=[]), None),
    "an untested condition called tested": ("conditional", change("steps.1.conditions.*.tested", True), None),
    "a tested condition called untested": ("gated, max", change("steps.1.conditions.*.tested", False), None),
    "less noise in a Laplace gate": ("gated, Laplace", None, change("gate.noise_scale", lambda s: s * 0.5)),
    "less noise in a whole gate": ("gated, whole", None, change("gate.noise_scale", lambda s: s * 0.5)),
    "a Laplace gate that was called Gaussian": ("gated, Laplace", None, change("gate.kind", "gaussian")),
    "the same, derived again": ("gated, Laplace", change("gate.kind", "gaussian"), change("epsilon", lambda e: e / 2)),
    "a Gaussian gate called Laplace's": ("gated, max", None, change("gate.kind", "laplace")),
    "a real gate called whole": ("gated, Laplace", None, change("gate.kind", "discrete-laplace")),
    "a lower threshold": ("gated, max", None, change("gate.threshold", lambda t: t - 1)),
    "a lower whole threshold": ("gated, whole", None, change("gate.threshold", lambda t: t - 1)),
    "a gate that costs nothing": ("gated, whole", None, change("total.parts", lambda parts: parts[1:])),
    "a cheaper Laplace gate": ("gated, Laplace", None, change("total.parts.0.shift", 0.5)),
    "noise of no kind": ("gated, max", None, change("gate.kind", "uniform")),
    "max on a ladder": ("on a ladder", change("gate.rule", "max"), None),
    "a ladder of Laplace noise": ("on a ladder", change("gate.kind", "laplace"), None),
    "another rung": ("on a ladder", change("gate.ladder.rung", lambda rung: rung + 1), None),
    "a rung that is nearer": ("on a ladder", change("gate.ladder.rungs.0.further", lambda rows: rows - 2), None),
    "a rung whose noise is that of a tighter one": (
        "on a ladder",
        change("gate.ladder.rungs.2.mechanism.noise_scale", lambda s: s / 2),
        None,
    ),
    "the same, costed anew": (
        "on a ladder",
        lambda c: c["gate"]["ladder"]["rungs"][2]["mechanism"].update(
            noise_scale=c["gate"]["ladder"]["rungs"][2]["mechanism"]["noise_scale"] / 2,
            mu=c["gate"]["ladder"]["rungs"][2]["mechanism"]["mu"] * 2,
        ),
        None,
    ),
    "a rung that assumes more": ("on a ladder", change("gate.ladder.rungs.1.parameters.pca.min_gap", 0.8), None),
    "a rung of another mechanism": ("on a ladder", change("gate.ladder.rungs.1.mechanism.class", "PCA"), None),
    "a rung with more than another threshold": (
        "on a ladder",
        change("gate.ladder.rungs.1.parameters.pca", lambda p: {**p, "center": True}),
        None,
    ),
    "a ladder that was no ladder": ("on a ladder", change("gate.ladder", None), change("epsilon", lambda e: e * 0.99)),
    "a ladder's delta that does not add": ("on a ladder", None, change("total.failure", lambda f: f / 2)),
    "max where deltas add": ("gated, sum", change("gate.rule", "max"), None),
    "a gate that lets more through": ("gated, max", change("gate.delta", 1e-3), None),
    "releases that fit dropped": ("unconditional", drop_releases("fit"), None),
    "a release before a gate dropped": ("gated, sum", drop_releases("fit"), None),
    "releases for prediction dropped": ("conditional", drop_releases("predict"), None),
    "releases for prediction dropped behind a gate": ("gated, predicting", drop_releases("predict"), None),
    "the mechanism dropped": ("unconditional", change("mechanism", None), None),
    "a released map without releases": ("transformer-ended", drop_releases("fit"), None),
    "a released map fitted without noise, called public": ("transformer-ended", all_public, None),
    "an imputer that was there dropped": ("unconditional", drop_step("impute"), None),
    "a scaler called the identity": ("conditional", swap("scale", "row-wise.identity", "public"), None),
    "an exact projection called the identity": ("gated, max", swap("pca", "row-wise.identity", "exact"), None),
    "an exact projection called noisy, nothing released": (
        "gated, max",
        swap("pca", "pca.row-wise", "noisy", **FREE),
        None,
    ),
    "an exact projection called public": ("gated, max", swap("pca", "pca.row-wise", "public", **FREE), None),
    "a noisy scaler with nothing released": (
        "conditional",
        swap("scale", "scaling.public", "noisy", min_std=0.1, clip=None),
        None,
    ),
    "a formula of another kind": ("gated, max", swap("pca", "release.mean-and-moment", "exact"), None),
    "a formula that does not exist": ("gated, max", None, change("steps.1.formula", "pca.free")),
    "a parameter the stage does not have": (
        "gated, max",
        None,
        change("steps.0.parameters", {"max_norm": 1.0, "x": 1}),
    ),
    "a model accounted as a mean": (
        "unconditional",
        lambda c: c["mechanism"].update(formula="release.mean-and-count", parameters={"weighted": False}, steps=1),
        None,
    ),
    "fewer released numbers than columns": ("unconditional", change("mechanism.size", 1), None),
    "a smaller bound on what is released": ("unconditional", change("mechanism.bound", 1e-3), None),
    "rows shorter than their entries": ("row map", change("steps.2.parameters.row_norm", 1e-3), None),
    "one range for three columns": ("row map", change("steps.3.parameters.widths", [1e9]), None),
    "a negative ball": ("unconditional", change("mechanism.parameters.coef_norm", -3.0), None),
    "a negative clip": ("unconditional", change("mechanism.parameters.clip", -1.0), None),
    "more than every row has gaps": ("row map", change("steps.1.parameters.max_missing", -5), None),
    "another class": ("gated, max", change("steps.0.class", "PCA"), None),
    "another mechanism": ("gated, max", change("mechanism.class", "LogisticRegression"), None),
    "another page": ("gated, max", change("steps.1.page", "row-wise"), None),
    "another adjacency": ("gated, max", change("adjacency", "add or remove one row"), None),
    "more rows than the facts say": (
        "unconditional",
        change("entrance.domain", lambda d: {**d, "n_rows": 30_000, "min_present": 30_000}),
        None,
    ),
    "no gaps declared": ("row map", change("entrance.domain", lambda d: {**d, "max_missing": 0}), None),
    "fewer rows per person": ("three rows each", None, change("rows_per_unit", 1)),
    "closer neighbours": ("gated, max", None, change("entrance.distance", Distance(replaced=0, toggled=1).to_dict())),
    "a release taken earlier": ("gated, sum", None, change("releases.0.at", 0)),
    "a release taken where there is no step": ("gated, sum", None, change("releases.0.at", 9)),
    "a release that serves nobody who is there": ("gated, sum", None, change("releases.0.serves", ["nobody"])),
    "a release that serves another": ("gated, sum", None, change("releases.0.serves", ["pca"])),
    "a release that serves nobody": ("gated, sum", None, change("releases.0.serves", [])),
    "a release said to be for prediction": ("gated, sum", change("releases.0.purpose", "predict"), None),
    "another statistic": (
        "unconditional",
        change("releases.0", lambda r: {**r, "statistic": "squares", "parameters": {}}),
        None,
    ),
    "a release carried through a clip": (
        "conditional",
        lambda c: (c["releases"].pop(), c["releases"][0].update(serves=["impute", "scale"])),
        None,
    ),
    "two steps of one name": ("gated, max", change("steps.*.name", "clip"), None),
}


OTHER_NEIGHBOURS = {
    "added rows": [
        *({"adjacency": other} for other in ({"add_remove": 1}, {"add_remove": 0}, {"add_remove": 2, "l2": 1.0})),
        {"min_present": 3},
        {"n_rows": 8000},
    ],
    "persons": [{"adjacency": {"person": 2}}, {"adjacency": {"add_remove": 3}}, {"min_present": 3}, {"n_rows": 9}],
    "changed signs": [{"adjacency": {"coordinate": 1.0, "count": 1}}, {"adjacency": {"replace": 1}}],
}
FORGERIES |= {
    f"{name}, {facts}": (name, None, change("entrance.domain", lambda domain, facts=facts: {**domain, **facts}))
    for name, others in OTHER_NEIGHBOURS.items()
    for facts in others
}
FORGERIES["a longer change"] = ("changed signs", None, change("entrance.distance.moves.linf", lambda most: 2 * most))


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forgery_is_found(forgery):
    """Changes before the derivation is computed again, and changes after it."""
    name, before, after = FORGERIES[forgery]
    forged = document(name)
    if before is not None:
        before(forged)
        try:
            forged = rederived(forged)
        except (ppdp.exceptions.PpdpError, TypeError, ArithmeticError, ValueError):
            return  # nothing can be derived from it
    if after is not None:
        after(forged)
        forged = sealed(forged)
    result = verify(forged)
    assert not result
    assert not any("digest" in problem for problem in result.problems)


# What verifies is a true statement about *some* run; that it was this one, only a signature could tell.
OTHER_RUNS = {
    "noise that was not drawn": change("mechanism.noise_scale", lambda s: 10 * s),
    "fewer steps": lambda c: (c["mechanism"].update(steps=1), c["released"]["names"].update({"model.path": [1, 4]})),
    "a smaller clip": lambda c: (c["mechanism"].update(bound=0.01), c["mechanism"]["parameters"].update(clip=0.01)),
    "another column rule for duplicates": lambda c: (FIRST(c), c.update(diagnostics=None)),
    "a seed that is kept quiet": None,
}


@pytest.mark.parametrize("claim", OTHER_RUNS)
def test_the_certificate_of_another_run_verifies(claim):
    if claim == "a seed that is kept quiet":
        forged = {**document("seeded"), "status": "UNCONDITIONAL", "reasons": []}
    else:
        forged = document("unconditional")
        OTHER_RUNS[claim](forged)
        forged = rederived(forged)
    assert verify(sealed(forged))


@pytest.mark.parametrize("steps", [10**6, 10**9])
def test_what_costs_too_much_to_check_is_refused(steps):
    """All of it follows but epsilon, and to say what that is would take minutes and gigabytes."""
    c = document("Poisson samples") | {"diagnostics": None}
    own = c["mechanism"]
    own["steps"] = own["parameters"]["steps"] = steps
    kept = lookup(own["formula"], "privacy").arrays(Domain.from_dict(c["steps"][-1]["domain"]), steps, own["size"])
    c["released"]["names"] = {f"{own['name']}.{name}": shape for name, shape in kept.items()}
    domain, distance = (
        kind.from_dict(c["steps"][-1][name]) for kind, name in ((Domain, "domain"), (Distance, "distance"))
    )
    loss = lookup(own["formula"], "privacy")(domain, distance, noise_scale=own["noise_scale"], **own["parameters"])
    allowance = (1 + math.exp(c["epsilon"])) * (1 + steps * own["size"]) * 2.0**-60 * (1 + 1e-12)
    c["total"] = {"mu": loss.mu, "failure": 0.0, "allowance": allowance, "parts": [p.to_dict() for p in loss.parts]}
    result = verify(sealed(c))
    assert result.problems == (
        "total.parts: they promise nothing, or take more grid points than this is worth (2^24).",
    )


def test_a_class_under_two_names_is_found():
    X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    labels = np.where(X[:, 0] > 0, "yes", "no")
    pipe = ppdp.make_pipeline(MinMaxScaler(ranges=(-1, 1)), LogisticRegression(("no", "yes"))).fit(X, labels)
    c = pipe.certificate_.to_dict()
    assert verify(rederived(c))
    shares = c["diagnostics"]["shares"]
    shares += [one | {"column": repr(one["column"])} for one in shares if one["kind"] in PREDICTED]
    c["diagnostics"].update(size=len(shares), parameters=share_parameters([one["kind"] for one in shares]))
    assert not verify(rederived(c))
