"""Certificates as documents: their form, their copies, and the guarantee that their figures state."""

import contextlib
import copy
import json
import math
import pickle
from operator import attrgetter
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from zoo import ZOO, certificate, document, zoo

import ppdp
from ppdp import Certificate
from ppdp.certificate import verify
from ppdp.certificate.canonical import schema
from ppdp.exceptions import CertificateError, InvalidParameter
from ppdp.privacy.loss import PrivacyLoss


class TestDocument:
    @pytest.mark.repeated("name", keep=28)
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

    @pytest.mark.parametrize("name", ZOO)
    @pytest.mark.repeated("name", keep=28)
    def test_has_the_shipped_form(self, name):
        jsonschema.Draft202012Validator(schema()).validate(json.loads(certificate(name).to_json()))

    def test_the_form_ships(self):
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
            None,
            7,
        ],
        ids=range(13),
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
        assert one.loss == PrivacyLoss(one.mu, one["total"]["failure"], in_front, one.loss.parts)
        assert one.loss.epsilon(rest) <= one.epsilon * (1 + 1e-9)
        assert one.epsilon_at(one.delta) <= one.epsilon * (1 + 1e-9)
        assert one.epsilon_at(one.delta) >= one.epsilon * 0.99

    @zoo
    @pytest.mark.repeated("name", keep=52)
    def test_epsilon_at_other_deltas(self, name):
        one = certificate(name)
        gate, per_draw = one["gate"], one["total"]["allowance"] / (1 + math.exp(one.epsilon))
        deltas = np.geomspace(1e-3, 1e-13, 6)
        epsilons = [one.epsilon_at(float(delta)) for delta in deltas]
        assert epsilons == sorted(epsilons)
        for delta, epsilon in zip(deltas, epsilons):
            if math.isfinite(epsilon):
                assert one.loss.delta(epsilon) + (1 + math.exp(epsilon)) * per_draw <= delta * (1 + 1e-9)
                assert gate is None or gate["delta"] <= delta
        assert one.epsilon_at(-1.0) == math.inf
        pure = one.to_dict()["total"]["allowance"] == 0  # nothing is drawn whose law is not exact
        assert one.epsilon_at(0.0) == (one.loss.epsilon(0.0) if pure else math.inf)

    def test_a_delta_that_is_no_number_promises_nothing(self):
        assert certificate("seeded").epsilon_at(math.nan) == math.inf

    @zoo
    def test_everything_released_is_listed(self, name):
        one = document(name)
        sizes = {f"{one['steps'][r['at']]['name']}.{r['statistic']}": r["size"] for r in one["releases"]}
        listed = {k: math.prod(shape) for k, shape in one["released"]["names"].items()}
        own = {k: listed.pop(k) for k in list(listed) if k not in sizes}
        assert listed == sizes
        if (mechanism := one["mechanism"]) is None:
            assert not own
            return
        called, size = mechanism["name"], mechanism["size"]
        parts = {  # of models that are released by these
            "learning.boosting": (
                "baseline",
                "edges",
                "errors",
                "groups",
                "importances",
                "pair_errors",
                "pairs",
                "shapes",
                "shares",
            ),
            "learning.k-means": ("centers", "counts", "errors"),
            "learning.newton-threshold": ("counts", "errors", "path", "theta"),
            "learning.logistic-gradient-threshold": ("counts", "path", "theta"),
            "learning.hinge-gradient-threshold": ("counts", "path", "theta"),
        }
        parts["learning.boosting-threshold"] = (*parts["learning.boosting"], "counts")
        if mechanism["formula"] in parts:
            assert own.keys() == {f"{called}.{part}" for part in parts[mechanism["formula"]]}
            return
        trained = mechanism["formula"].startswith("learning.") and mechanism["formula"] != "learning.class-moments"
        answer = "model" if mechanism["formula"].startswith("diffprivlib") else "theta" if trained else "answer"
        made_of_moments = ("learning.squared-moments", "learning.squared-sketch")
        if mechanism["formula"] in made_of_moments:  # coefficients, one for each column
            size = one["entrance"]["domain"]["n_features"] + 1
        if mechanism["formula"] == "learning.newton":  # whose answers hold more than gradients
            parameters, behind = mechanism["parameters"], one["steps"][-1]["domain"]
            size = parameters.get("n_classes", 1) * (behind["n_features"] + parameters["fit_intercept"])
            assert own.pop(f"{called}.errors", (size + 3) * size) == (size + 3) * size
        if mechanism["formula"] == "learning.fresh-projections":  # whose steps have as many coordinates as the rank
            size = own.pop(f"{called}.path") // mechanism["steps"]
        assert own.pop(f"{called}.{answer}") == size
        assert own.pop(f"{called}.matrix", 0) == (3 * 4 if mechanism["formula"] == "signs.angle" else 0)
        assert all(k == f"{called}.path" and trained and count % size == 0 for k, count in own.items())

    def test_what_is_not_covered(self):
        assert "exceptions" in document("gated, max")["not_covered"][0]
        assert not any("exceptions" in words for words in document("classes read")["not_covered"])


READ = {name: attrgetter(name) for name in ("status", "epsilon", "delta", "mu", "digest", "loss")} | {
    "a field": lambda one: one["steps"],
    "hash": hash,
    "epsilon_at": lambda one: one.epsilon_at(1e-6),
    "to_model_card": Certificate.to_model_card,
    "to_registry_record": lambda one: one.to_registry_record(
        name="n", curators={}, description="d", intended_use="i", region="r", publication_date="2026-11-21", authors=[]
    ),
}


class TestBrokenDocuments:
    @pytest.mark.parametrize("read", READ)
    @pytest.mark.parametrize("content", [{}, {"schema": "ppdp-certificate/1"}, [], None, "certificate"], ids=str)
    @pytest.mark.repeated("content")
    def test_what_cannot_be_read_is_a_typed_error(self, content, read):
        with pytest.raises(CertificateError):
            READ[read](Certificate(content))

    @pytest.mark.parametrize(
        ("kind", "place", "value"),
        [
            ("on a ladder", ("gate", "ladder", "rung"), 7),
            ("on a ladder", ("gate", "kind"), "none"),
            ("Poisson samples", ("total", "parts", 0, "kind"), "none"),
            ("Poisson samples", ("total", "mu"), -1.0),
            ("gated, max", ("steps", 0, "distance"), {}),
            ("gated, max", ("mechanism", "formula"), None),
            ("gated, max", ("epsilon",), "three"),
            ("gated, max", ("facts",), 3),
        ],
    )
    def test_where_only_one_thing_is_broken(self, kind, place, value):
        content = document(kind)
        at = content
        for key in place[:-1]:
            at = at[key]
        at[place[-1]] = value
        one, failed = Certificate(content), 0
        for name in READ:
            try:
                READ[name](one)
            except CertificateError:
                failed += 1
        assert failed >= 3  # card, record and epsilon_at at least; nothing fails otherwise

    def test_what_json_cannot_hold(self):
        for content in ({"epsilon": math.nan}, {"epsilon": object()}):
            with pytest.raises(CertificateError, match="broken"):
                Certificate(content).to_json()

    def test_an_error_about_another_argument_stays_what_it_is(self):
        one = certificate("gated, max")
        with pytest.raises(KeyError, match="no such field"):
            one["no such field"]
        with pytest.raises(TypeError):
            one.epsilon_at("1e-6")


def test_a_later_form_needs_a_newer_ppdp():
    later = json.dumps({**document("unconditional"), "schema": "ppdp-certificate/4"})
    with pytest.raises(CertificateError, match=r"reads up to ppdp-certificate/3: a newer ppdp is needed.* --upgrade"):
        Certificate.from_json(later)


@pytest.mark.parametrize("path", ["a\0b", 3, None])
def test_what_is_no_path_is_a_typed_error(path):
    for use in (certificate("unconditional").save, Certificate.load):
        with pytest.raises(InvalidParameter, match="path must be the path of a file"):
            use(path)
