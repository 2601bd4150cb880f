"""Certificates: what is written can be recomputed by anybody, and nothing else verifies.

The digest finds every change. A forger can compute digests too; what the replay of the derivation then still finds,
and what only a signature could tell, is written down here.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import json
import math
import pickle
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pandas as pd
import pytest

import ppdp
from ppdp import Certificate, Domain, Ledger, Pipeline
from ppdp.bounds import lookup
from ppdp.certificate import verify
from ppdp.certificate.schema import schema
from ppdp.cli import main
from ppdp.distance import Distance
from ppdp.exceptions import CertificateError, PrivacyRefusal
from ppdp.gate import gate_loss, gate_threshold
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.noise import lattice_allowance
from ppdp.release_points import STATISTICS
from ppdp.transformers import PCA, Deduplicator, MeanImputer, MinMaxScaler, NormClipper, RowMap, StandardScaler

Document = dict[str, Any]

# ---------------------------------------------------------------- a zoo


def people() -> tuple[pd.DataFrame, np.ndarray]:
    """Rows on which every condition holds with room to spare."""
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], (3000, 1)) * np.array([0.9, 0.25, 0.25]) + rng.normal(scale=0.01, size=(3000, 3))
    X[:20, 1] = np.nan
    return pd.DataFrame(X, columns=["a", "b", "c"]), rng.integers(2, size=3000)


def classifier(**parameters: Any) -> LogisticRegression:
    return LogisticRegression(classes=(0, 1), max_iter=10, **parameters)


def imputer(**parameters: Any) -> tuple[str, MeanImputer]:
    return "impute", MeanImputer(**parameters)


def scaler(**parameters: Any) -> tuple[str, StandardScaler]:
    return "scale", StandardScaler(**parameters)


def _first_two(X: np.ndarray) -> np.ndarray:
    return X[:, :2]


CLIP, BOX, MEAN = ("clip", NormClipper()), ("box", MinMaxScaler(ranges=(-1, 1))), ("mean", GaussianMechanism())
EXACT_PCA = "pca", PCA(1, statistics="exact")
FEW_GAPS = {"max_missing": 500, "statistics": "exact"}

ZOO: dict[str, tuple[list[tuple[str, Any]], dict[str, Any]]] = {
    "unconditional": ([BOX, ("dedup", Deduplicator()), imputer(), scaler(), ("model", classifier())], {}),
    "gated, max": ([CLIP, EXACT_PCA, MEAN], {}),
    "gated, sum": ([CLIP, scaler(statistics="noisy"), EXACT_PCA, MEAN], {}),
    "gated, predicting": ([BOX, imputer(floor=False, **FEW_GAPS), ("model", classifier())], {}),
    "conditional": (
        [
            BOX,
            imputer(**FEW_GAPS),
            scaler(floor=False, statistics="exact", min_std=0.1),
            ("model", classifier()),
        ],
        {"gate": None},
    ),
    "seeded": ([CLIP, MEAN], {"random_state": 0}),
    "classes read": ([CLIP, ("model", LogisticRegression(max_iter=5))], {"invalid": "repair"}),
    "transformer-ended": ([BOX, imputer(), scaler(clip=None), ("pca", PCA(2))], {}),
    "keyed": ([BOX, ("dedup", Deduplicator(key=["a"])), imputer(statistics="noisy"), MEAN], {}),
    "row map": (
        [
            BOX,
            imputer(statistics="exact"),
            ("map", RowMap(np.tanh, out_ranges=(-1, 1), lipschitz=1.0)),
            ("again", MinMaxScaler(ranges=(-2, 2))),
            ("model", classifier(fit_intercept=False)),
        ],
        {},
    ),
    "three rows each": (
        [CLIP, ("dedup", Deduplicator()), MEAN],
        {"domain": Domain(rows_per_unit=3), "dataset": "people"},
    ),
    "with a ledger": ([CLIP, EXACT_PCA, MEAN], {"ledger": Ledger()}),
    "nothing to do": ([BOX, imputer(max_missing=0), ("pca", PCA()), MEAN], {}),
}


@cache
def certificate(name: str) -> Certificate:
    steps, parameters = ZOO[name]
    X, y = people()
    if not any(getattr(step, "fills_gaps", False) for _, step in steps):
        X = X.fillna(0.0)
    for _ in range(20):  # a gate may refuse
        try:
            return Pipeline(steps, epsilon=3.0, **parameters).fit(X, y).certificate_
        except PrivacyRefusal:
            continue
    raise AssertionError("these data should pass")


def document(name: str) -> Document:
    return certificate(name).to_dict()


zoo = pytest.mark.parametrize("name", ZOO)


@zoo
def test_every_certificate_verifies(name):
    result = certificate(name).verify()
    assert result
    assert result.problems == ()
    assert repr(result) == "Verification: the derivation holds and the digest matches."


def test_the_zoo_shows_every_kind():
    documents = [document(name) for name in ZOO]
    assert {d["status"] for d in documents} == {"UNCONDITIONAL", "CONDITIONAL", "SEEDED"}
    assert {d["gate"] and d["gate"]["rule"] for d in documents} == {None, "max", "sum"}
    assert {s["way"] for d in documents for s in d["steps"]} == {"public", "noisy", "exact"}
    assert {r["statistic"] for d in documents for r in d["releases"]} == set(STATISTICS)
    assert {r["purpose"] for d in documents for r in d["releases"]} == {"fit", "predict"}
    used = {s["formula"] for d in documents for s in d["steps"]} | {
        d["mechanism"]["formula"] for d in documents if d["mechanism"]
    }
    used |= {r["formula"] for d in documents for r in d["releases"]}
    used |= {c["formula"] for d in documents for s in d["steps"] for c in s["conditions"]}
    assert used == set(ppdp.bounds.FORMULAS)


@zoo
def test_the_first_word_says_what_it_is(name):
    assert certificate(name).to_text().split()[0] == certificate(name).status
    expected = {"conditional": "CONDITIONAL", "classes read": "CONDITIONAL", "seeded": "SEEDED"}
    assert certificate(name).status == expected.get(name, "UNCONDITIONAL")


EDGES: dict[str, tuple[list[tuple[str, Any]], dict[str, Any]]] = {
    "a mechanism alone": ([MEAN], {"domain": Domain(row_norm=1.0)}),
    "a bound on entries": ([MEAN], {"domain": Domain(row_norm=2.0, entry_bound=1.0)}),
    "an imputer that promises that nothing is missing": ([BOX, imputer(max_missing=0), MEAN], {}),
    "the same before another stage": ([BOX, imputer(max_missing=0), scaler(), MEAN], {}),
    "no gaps declared, and an imputer": ([BOX, imputer(), MEAN], {"domain": Domain(max_missing=0)}),
    "few gaps declared": ([BOX, imputer(statistics="noisy"), MEAN], {"domain": Domain(max_missing=0.1)}),
    "a projection on everything": ([CLIP, ("pca", PCA()), MEAN], {}),
    "public stages that end a pipeline": ([CLIP], {}),
    "duplicates twice": ([CLIP, ("one", Deduplicator()), ("two", Deduplicator(key=[0])), MEAN], {}),
    "classes of the domain": ([CLIP, ("model", LogisticRegression())], {"domain": Domain(classes=(0, 1))}),
    "shares of the user": ([CLIP, scaler(statistics="noisy"), MEAN], {"budget": {"release": 0.5}}),
    "a fraction of the rows": ([BOX, imputer(min_observed=0.9, max_missing=0.5, statistics="exact"), MEAN], {}),
    "other columns": ([BOX, imputer(), ("map", RowMap(_first_two, out_ranges={"u": (-1, 1), "v": (0, 2)})), MEAN], {}),
}


@pytest.mark.parametrize("edge", EDGES)
def test_every_certificate_that_is_issued_verifies(edge):
    steps, parameters = EDGES[edge]
    X, y = people()
    one = Pipeline(steps, epsilon=3.0, **parameters).fit(X.fillna(0.0), y).certificate_
    assert one.verify(), one.verify()
    assert Certificate.from_json(one.to_json()).verify()


# ---------------------------------------------------------------- a document


class TestDocument:
    @zoo
    def test_json_round_trip(self, name, tmp_path):
        one = certificate(name)
        path = tmp_path / "certificate.json"
        one.save(path)
        for other in (Certificate.from_json(one.to_json()), Certificate.load(path), pickle.loads(pickle.dumps(one))):
            assert other == one
            assert other.to_dict() == one.to_dict()
            assert other.digest == one.digest
            assert hash(other) == hash(one)
            assert other.verify()
        assert Certificate.from_json(one.to_json().encode()) == one
        assert [p.name for p in tmp_path.iterdir()] == ["certificate.json"]

    @zoo
    def test_has_the_shipped_form(self, name):
        jsonschema.Draft202012Validator.check_schema(schema())
        jsonschema.Draft202012Validator(schema()).validate(json.loads(certificate(name).to_json()))
        shipped = json.loads((Path(ppdp.__file__).parent / "certificate" / "schema.json").read_text())
        assert shipped == schema()

    def test_is_immutable(self):
        one = copy.deepcopy(certificate("gated, max"))
        for change in (
            lambda: setattr(one, "epsilon", 0.1),
            lambda: setattr(one, "_content", {}),
            lambda: setattr(one, "anything", 1),
            lambda: delattr(one, "_content"),
        ):
            with pytest.raises(AttributeError):
                change()
        one.to_dict()["steps"].clear()
        one["gate"]["mu"] = 0.0
        assert one == certificate("gated, max")
        assert one.verify()

    def test_what_it_is_made_from_is_copied(self):
        content = document("seeded")
        one = Certificate(content)
        content["steps"].clear()
        assert one.verify()

    def test_differs_where_its_content_differs(self):
        assert certificate("seeded") != certificate("keyed")
        assert certificate("seeded") != document("seeded")

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "{}",
            "[]",
            "null",
            "1",
            '"certificate"',
            "{",
            '{"schema": "ppdp-certificate/2"}',
            '{"schema": "ppdp-certificate/1"}',
            b"\xff\xfe\x00",
            "[" * 100_000,
        ],
        ids=range(11),
    )
    def test_garbage_is_refused(self, text):
        with pytest.raises(CertificateError):
            Certificate.from_json(text)

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ('"epsilon": 3.0', '"epsilon": NaN'),
            ('"epsilon": 3.0', '"epsilon": Infinity'),
            ('"epsilon": 3.0', '"epsilon": 1e999'),
            ('"epsilon": 3.0', '"epsilon": "3.0"'),
            ('"epsilon": 3.0', '"epsilon": true'),
            ('"epsilon": 3.0', '"epsilon": 0'),
            ('"epsilon": 3.0', '"epsilon": 1' + "0" * 5000),
            ('"delta": 1e-06', '"delta": 1'),
            ('"epsilon": 3.0', '"epsilon": 3.0, "sigma": 1.0'),
            ('"epsilon": 3.0', '"epsilon": 0.1, "epsilon": 3.0'),
            ('"epsilon": 3.0,', ""),
            ('"max"', '"mean"'),
            ('"UNCONDITIONAL"', '"SAFE"'),
        ],
    )
    def test_what_has_not_the_form_is_refused(self, old, new):
        text = certificate("gated, max").to_json()
        assert old in text
        with pytest.raises(CertificateError):
            Certificate.from_json(text.replace(old, new, 1))

    @pytest.mark.parametrize("depth", [50, 600, 5000])
    def test_nesting_is_refused_or_found(self, depth):
        """However deep, by a typed error or a failed verification."""
        text = json.dumps(document("row map"))
        widths = json.dumps(document("row map")["steps"][0]["parameters"]["widths"])
        assert widths in text
        with contextlib.suppress(CertificateError):
            assert not Certificate.from_json(text.replace(widths, "[" * depth + "]" * depth, 1)).verify()

    def test_a_file_that_cannot_be_read(self, tmp_path):
        for path in (tmp_path / "nothing.json", tmp_path):
            with pytest.raises(CertificateError, match="cannot read"):
                Certificate.load(path)

    @pytest.mark.parametrize("content", [None, [], {}, {"schema": 1}, {"schema": "ppdp-certificate/1", "digest": 3}])
    def test_verification_of_nonsense_is_false_and_never_an_exception(self, content):
        assert not verify(content)


class TestFigures:
    @zoo
    def test_the_guarantee_follows_from_the_total(self, name):
        one = certificate(name)
        rest = one.delta - one["total"]["allowance"]
        in_front = one["gate"]["delta"] if one["gate"] and one["gate"]["rule"] == "max" else 0.0
        assert one.loss == PrivacyLoss(one.mu, one["total"]["failure"], in_front)
        assert one.loss.epsilon(rest) <= one.epsilon * (1 + 1e-9)
        assert one.epsilon_at(one.delta) <= one.epsilon * (1 + 1e-9)
        assert one.epsilon_at(one.delta) >= one.epsilon * 0.99

    @zoo
    def test_epsilon_at_other_deltas(self, name):
        one = certificate(name)
        gate, per_draw = one["gate"], one["total"]["allowance"] / (1 + math.exp(one.epsilon))
        deltas = np.geomspace(1e-3, 1e-13, 11)
        epsilons = [one.epsilon_at(float(delta)) for delta in deltas]
        assert epsilons == sorted(epsilons)
        for delta, epsilon in zip(deltas, epsilons):
            if math.isfinite(epsilon):
                assert one.loss.delta(epsilon) + (1 + math.exp(epsilon)) * per_draw <= delta * (1 + 1e-9)
                assert gate is None or gate["delta"] <= delta
        assert one.epsilon_at(0.0) == one.epsilon_at(-1.0) == math.inf

    def test_a_delta_that_is_no_number_promises_nothing(self):
        assert certificate("seeded").epsilon_at(math.nan) == math.inf

    @zoo
    def test_everything_released_is_listed(self, name):
        one = document(name)
        sizes = {f"{one['steps'][r['at']]['name']}.{r['statistic']}": r["size"] for r in one["releases"]}
        if one["mechanism"]:
            answer = "theta" if one["mechanism"]["class"] == "LogisticRegression" else "answer"
            sizes[f"{one['mechanism']['name']}.{answer}"] = one["mechanism"]["size"]
        assert {k: math.prod(shape) for k, shape in one["released"]["names"].items()} == sizes

    def test_what_is_not_covered(self):
        assert "exceptions" in document("gated, max")["not_covered"][0]
        assert not any("exceptions" in words for words in document("classes read")["not_covered"])


# ---------------------------------------------------------------- every leaf


def leaves(value: Any, path: tuple = ()):
    if isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*path, key))
    else:
        yield path, value


def elements(value: Any, path: tuple = ()):
    if isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*path, key)
            yield from elements(inner, (*path, key))


def other_values(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, str):
        return [value + "x"]
    if value is None:
        return [1.0]
    scaled = [round(value * 2) + 1, value // 2] if isinstance(value, int) else [value * 1.01, value * 0.5]
    return [v if v != value else value + 1 for v in scaled]


def put(content: Document, path: tuple, value: Any) -> Document:
    changed = copy.deepcopy(content)
    parent = changed
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    return changed


def without(content: Document, path: tuple) -> Document:
    changed = put(content, path, None)
    parent = changed
    for key in path[:-1]:
        parent = parent[key]
    del parent[path[-1]]
    return changed


def sealed(content: Document) -> Document:
    """What a forger hands over: a digest that matches."""
    return Certificate.sealed(content).to_dict()


def pattern(path: tuple) -> str:
    return ".".join("*" if isinstance(key, int) else str(key) for key in path)


# Leaves that only the digest protects. Words: they bind nobody, and no number depends on them.
WORDS = {
    "dataset",
    "facts.*.name",
    "facts.*.origin",
    "facts.*.value",
    "reasons.*",
    "not_covered.*",
    "steps.*.name",
    "steps.*.conditions.*.name",
    "steps.*.conditions.*.statement",
    "mechanism.name",
    "alternatives.*",
    "alternatives.*.route",
    "alternatives.*.noise_scale",
    "alternatives.*.reason",
    "facts.*",
    "versions.numpy",
    "versions.ppdp",
    "versions.python",
    "versions.scikit-learn",
    "versions.scipy",
    "released.sha256",
}

# Numbers that may change without making the guarantee false, where the derivation does not depend on them.
WEAKER = {"epsilon", "delta", "total.allowance", "releases.*.noise_scale"}  # if they grow, less is claimed
WITHOUT_EFFECT = {
    "entrance.distance.mass": "never taken above 2 replaced + toggled",
    "entrance.distance.one_sided": "never taken above replaced + toggled",
    "steps.*.parameters.max_missing": "never taken above the number of rows",
    "steps.*.parameters.widths.*": "slopes matter to rows that have moved before",
    "steps.*.parameters.low": "so do ends of the interval; its size decides the norm",
    "steps.*.parameters.high": "the same",
    "steps.*.parameters.lipschitz": "slopes matter to rows that have moved before",
    "steps.*.parameters.min_std": "a noisy scaler's slope; the norm is that of the clip",
    "steps.*.parameters.with_mean": "the norm is that of the clip",
    "mechanism.parameters.coef_norm": "where the clip decides, and no row has moved",
    "mechanism.parameters.fit_intercept": "the same",
    "mechanism.parameters.weighted": "a replaced row costs as much either way",
}


WITHOUT_MOVES = {"steps.*.parameters.lipschitz", "mechanism.parameters.coef_norm", "mechanism.parameters.fit_intercept"}


each_kind = pytest.mark.parametrize(
    "name", sorted(ZOO.keys() - {"seeded", "keyed", "with a ledger", "classes read", "nothing to do"})
)
some_kinds = pytest.mark.parametrize("name", ["gated, sum", "conditional", "three rows each", "transformer-ended"])


class TestEveryLeaf:
    @some_kinds
    def test_the_digest_finds_every_change(self, name):
        content = document(name)
        for path, value in leaves(content):
            assert not verify(put(content, path, other_values(value)[0])), path
        for path in elements(content):
            assert not verify(without(content, path)), path

    @each_kind
    def test_the_replay_finds_every_change_that_matters(self, name):
        content = document(name)
        moved = any(step["distance"]["moved"] for step in content["steps"])
        unfound = set()
        for path, value in leaves(content):
            for other in other_values(value):
                if path == ("digest",) or not verify(sealed(put(content, path, other))):
                    continue
                place = pattern(path)
                harmless = place in WORDS or place in WITHOUT_EFFECT or (place in WEAKER and other > value)
                if not harmless or (moved and place in WITHOUT_MOVES):
                    unfound.add(place)
        assert not unfound, sorted(unfound)

    @some_kinds
    def test_the_replay_finds_every_removal_that_matters(self, name):
        content = document(name)
        unfound = {
            pattern(path)
            for path in elements(content)
            if path != ("digest",) and verify(sealed(without(content, path)))
        }
        # with_mean is True by default; a stage that changes no number may go: that is another pipeline
        unfound -= WORDS | {"steps.*.parameters.with_mean", "steps.*"}
        assert not unfound, sorted(unfound)


# ---------------------------------------------------------------- forgeries


def rederived(content: Document) -> Document:
    """A skilled forger: everything that follows is computed again, the smallest epsilon included."""
    c = copy.deepcopy(content)
    domain = Domain.from_dict(c["entrance"]["domain"])
    distance = Distance.neighbours(domain.rows_per_unit)
    c["entrance"]["distance"], c["rows_per_unit"] = distance.to_dict(), domain.rows_per_unit
    points, squares, draws = [], [], 1
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
        release["size"], release["bound"] = statistic.size(here), float(statistic.bound(here))
        noise = release["noise_scale"]
        release["mu"] = release["sensitivity"] / noise + lattice_allowance(release["bound"], noise, release["size"])
        squares.append(release["mu"] ** 2)
        draws += release["size"]
    gate, mechanism, failure = c["gate"], c["mechanism"], 0.0
    if gate:
        gate["mu"] = gate_loss(gate["noise_scale"], domain.n)
        gate["threshold"] = gate_threshold(gate["noise_scale"], gate["delta"])
        squares.append(gate["mu"] ** 2)
        failure = gate["delta"] if gate["rule"] == "sum" else 0.0
    if mechanism:
        mechanism["sensitivity"] = lookup(mechanism["formula"], "mechanism")(
            domain, distance, **mechanism["parameters"]
        )
        lattice = lattice_allowance(mechanism["bound"], mechanism["noise_scale"], mechanism["size"])
        mechanism["mu"] = math.sqrt(mechanism["steps"]) * (
            mechanism["sensitivity"] / mechanism["noise_scale"] + lattice
        )
        squares.append(mechanism["mu"] ** 2)
        draws += mechanism["steps"] * mechanism["size"]
    mu, epsilon, allowance = math.sqrt(sum(squares)), c["epsilon"], 0.0
    for _ in range(20):
        allowance = (1 + math.exp(epsilon)) * draws * 2.0**-60 * (1 + 1e-12)
        epsilon = max(PrivacyLoss(mu, failure).epsilon(c["delta"] - allowance), 1e-9) * (1 + 1e-12)
    c["total"] = {"mu": mu, "failure": failure, "allowance": allowance}
    c["epsilon"] = epsilon
    return sealed(c)


@zoo
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


FORGERIES = {
    "a smaller epsilon": ("gated, max", None, change("epsilon", lambda e: e * 0.99)),
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
    "an exact projection called noisy, nothing released": ("gated, max", swap("pca", "pca.public", "noisy"), None),
    "an exact projection called public": ("gated, max", swap("pca", "pca.public", "public"), None),
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
        "unconditional",
        lambda c: (c["releases"].pop(), c["releases"][0].update(serves=["impute", "scale"])),
        None,
    ),
    "two steps of one name": ("gated, max", change("steps.*.name", "clip"), None),
}


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
    "fewer steps": change("mechanism.steps", 1),
    "a smaller clip": lambda c: (c["mechanism"].update(bound=0.01), c["mechanism"]["parameters"].update(clip=0.01)),
    "another column rule for duplicates": swap("dedup", "deduplication.keep-first", "exact"),
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


# ---------------------------------------------------------------- command line, independence


class TestCommandLine:
    def test_exit_statuses(self, tmp_path, capsys):
        good, bad, garbage = (tmp_path / name for name in ("good.json", "bad.json", "garbage.json"))
        certificate("gated, sum").save(good)
        bad.write_text(good.read_text().replace('"replaced": 1', '"replaced": 2', 1))
        garbage.write_text("{}")
        assert main(["verify", str(good)]) == 0
        assert capsys.readouterr().out.startswith("UNCONDITIONAL (3, 1e-06) sha256:")
        assert main(["verify", str(bad)]) == 1
        assert "FAILED" in capsys.readouterr().out
        assert main(["verify", str(garbage)]) == 1
        assert main(["verify", str(tmp_path / "nothing.json")]) == 1
        assert "not a ppdp certificate" in capsys.readouterr().err

    def test_quiet(self, tmp_path, capsys):
        path = tmp_path / "c.json"
        certificate("seeded").save(path)
        assert main(["verify", str(path), "--quiet"]) == 0
        path.write_text("[")
        assert main(["verify", str(path), "--quiet"]) == 1
        assert capsys.readouterr() == ("", "")

    def test_a_forgery_with_a_digest(self, tmp_path):
        path = tmp_path / "c.json"
        forged = document("gated, max")
        forged["epsilon"] = 0.1
        path.write_text(json.dumps(sealed(forged)))
        assert main(["verify", str(path), "--quiet"]) == 1


def imported(module: str) -> set[str]:
    """Modules of ppdp that a module imports, anywhere in its text but for type checkers; packages by their own text."""
    root = Path(ppdp.__file__).parent
    place = root.joinpath(*module.split(".")[1:])
    text = (place / "__init__.py" if place.is_dir() else place.with_suffix(".py")).read_text()
    tree = ast.parse(text)
    hints = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
    }
    found = set()
    for node in ast.walk(tree):
        if id(node) in hints:
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "ppdp":
            for alias in node.names:
                inner = root.joinpath(*node.module.split(".")[1:], alias.name)
                is_module = inner.is_dir() or inner.with_suffix(".py").exists()
                found.add(f"{node.module}.{alias.name}" if is_module else node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.split(".")[0] == "ppdp"}
    return found - {"ppdp"}


def reached(module: str) -> set[str]:
    seen, waiting = set(), {module}
    while waiting:
        one = waiting.pop()
        seen.add(one)
        waiting |= imported(one) - seen
    return seen


def test_verification_knows_neither_planner_nor_pipeline_nor_data():
    known = reached("ppdp.certificate.verify")
    assert "ppdp.bounds.scaling" in known  # the walk is not empty
    stems = ("ppdp.planning", "ppdp.pipeline", "ppdp.execute", "ppdp.transformers", "ppdp.mechanisms", "ppdp.entrance")
    assert [module for module in known if module.startswith((*stems, "ppdp.certificate.issue"))] == []


def test_planning_and_execution_know_nothing_of_certificates():
    for module in ("ppdp.planning.plan", "ppdp.execute"):
        known = reached(module)
        assert "ppdp.bounds.scaling" in known
        assert [one for one in known if one.startswith("ppdp.certificate")] == []
