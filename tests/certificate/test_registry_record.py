"""Records for the deployments registry: its fields, the certificate's figures, and nothing that says otherwise."""

import copy
import json
from datetime import date

import pytest
import zoo
from documents import registry_sections
from jsonschema import Draft202012Validator

from ppdp import Certificate
from ppdp.certificate.share.registry_record import check_record, record_schema
from ppdp.exceptions import CertificateError, ExportError, InvalidParameter

yaml = pytest.importorskip("yaml")

FACTS = {
    "name": "Free light chains",
    "curators": {"Our clinic": "Nonprofit"},
    "description": "A model of mortality.",
    "intended_use": "Research.",
    "region": "Olmsted County, Minnesota",
    "publication_date": date(2026, 11, 21),
    "authors": ["Ann Author"],
}
PEOPLE_ALSO_SAY = {
    "basic": {"data_product_sector": "Healthcare"},
    "deployment_model": {
        "trust_assumptions": "The clinic is trusted.",
        "actors": "The clinic; everybody.",
        "release_type": "One release",
        "data_source_type": "Static",
    },
    "implementation": {"justification": "Asked the patients.", "utility": "Accuracy 0.83."},
    "administrative": {
        "evidence_sources": {
            "paper": {"evidence_source_type": "Peer-reviewed publication", "article": {"title": "T", "year": 2026}}
        }
    },
}
# Read off the registry's template of a record: what is there, section by section.
TEMPLATE = {
    "basic": "name data_curators description intended_use data_product_type data_product_region data_product_sector"
    " publication_date",
    "dp_variant": "variant_name data_domain unprotected_quantities",
    "privacy_loss": "privacy_unit privacy_unit_details number_of_privacy_units privacy_parameters"
    " privacy_parameters_details",
    "deployment_model": "model_name model_name_details trust_assumptions actors release_type release_type_details"
    " data_source_type data_source_type_details access_type access_type_details",
    "implementation": "preprocessing_and_hyperparameter_tuning mechanisms composition post_processing justification"
    " utility additional_information",
    "administrative": "evidence_sources status registry_authors tier",
}


KINDS = ["unconditional", "gated, sum", "gated, Laplace", "on a ladder", "conditional", "transformer-ended"]
KINDS += ["three rows each", "a histogram", "a whole count", "medians chosen", "diffprivlib's naive Bayes"]


def record(kind="unconditional", **changes):
    return zoo.certificate(kind).to_registry_record(**{**FACTS, **changes})


def test_the_schema_is_one_and_names_the_fields_of_the_registrys_template():
    Draft202012Validator.check_schema(record_schema())
    sections = record_schema()["properties"]["deployment"]["properties"]
    assert {name: set(one["properties"]) for name, one in sections.items()} == {
        name: set(fields.split()) for name, fields in TEMPLATE.items()
    }


@pytest.mark.parametrize("name", KINDS)
def test_certificates_of_all_kinds_make_records_that_survive_yaml_and_json(name):
    made = record(name, conditional=True, further=PEOPLE_ALSO_SAY)
    check_record(made)
    assert yaml.safe_load(yaml.safe_dump(made, sort_keys=False, allow_unicode=True)) == made
    assert json.loads(json.dumps(made)) == made


def test_the_certificates_figures_are_in_it():
    for name in ("gated, max", "conditional", "a whole count", "three rows each"):
        c, made = zoo.certificate(name), record(name, conditional=True)["deployment"]
        assert made["privacy_loss"]["privacy_parameters"] == {"epsilon": c.epsilon, "delta": c.delta}
        assert made["dp_variant"]["variant_name"] == "Approximate DP"
        told = json.dumps(made, ensure_ascii=False)
        assert c.digest in told
        assert made["privacy_loss"]["privacy_parameters_details"].startswith(f"{c.status}: ")
        assert all(words.rstrip(". ") in told for words in (*c["not_covered"], *c["reasons"], *c["warnings"]))
        assert all(f"{step['name']} ({step['class']}, {step['way']})" in told for step in c["steps"])
        assert made["implementation"]["mechanisms"].endswith(f"ppdp {c['versions']['ppdp']}.")


def test_a_certificate_is_evidence_where_somebody_answers_for_it():
    plain = zoo.certificate("unconditional")
    assert "evidence_sources" not in record()["deployment"]["administrative"]
    stated = plain.stating(responsible="Ann Author, Our clinic", attachments={"audit.json": plain.digest})
    made = stated.to_registry_record(**FACTS, further=PEOPLE_ALSO_SAY)
    check_record(made)
    sources = made["deployment"]["administrative"]["evidence_sources"]
    assert sources.keys() == {"paper", "certificate", "attachment_1"}
    assert plain.digest in sources["certificate"]["misc"]["title"]
    assert sources["attachment_1"]["misc"] == {
        "title": "audit.json",
        "author": "Ann Author, Our clinic",
        "year": int(plain["issued"]["date"][:4]),
        "note": plain.digest,
    }


@pytest.mark.parametrize("words", ['"}, "x": {"', "\\", "a\nb", "{{ 7 * 7 }}{% raw %}", "{# #}", "\ud800"])
def test_a_name_is_text(words):
    content = zoo.document("conditional")
    content["steps"][0]["name"] = content["mechanism"]["class"] = words
    sections = registry_sections(content)
    assert sections.keys() == TEMPLATE.keys() - {"basic", "administrative"}
    assert f"stage by stage: {words} (" in sections["implementation"]["preprocessing_and_hyperparameter_tuning"]
    assert f"{words} (learning." in sections["implementation"]["mechanisms"]


def test_units_are_counted_only_where_a_row_is_one():
    assert record()["deployment"]["privacy_loss"]["number_of_privacy_units"] == 3000
    several = record("three rows each")["deployment"]["privacy_loss"]
    assert "number_of_privacy_units" not in several
    assert several["privacy_unit"] == "Person level: any 3 rows of one person"


def test_what_leaves_follows_from_the_last_step():
    kinds = {"a sum": "Summary statistics", "unconditional": "Machine learning model"}
    kinds |= {"transformer-ended": "Machine learning model", "rows": "Dataset", "a Laplace mean": "Summary statistics"}
    kinds |= {"Laplace rows": "Dataset", "signs": "Dataset", "a report": "Summary statistics"}
    for name, kind in kinds.items():
        assert record(name)["deployment"]["basic"]["data_product_type"] == kind
    assert record(product_type="Dataset")["deployment"]["basic"]["data_product_type"] == "Dataset"


@pytest.mark.parametrize(
    ("name", "noise", "exact"),
    [
        ("a sum", "Gaussian noise, sigma ", "Gaussian"),
        ("Poisson samples", "5 x 12 numbers, Gaussian noise, sigma ", "Gaussian"),
        ("fixed batches", "5 x 4 numbers, Gaussian noise, sigma ", "Gaussian"),
        ("a hidden pass", "one iterate of 4 numbers is released, Gaussian noise, sigma ", "Gaussian"),
        ("a whole count", "1 numbers, Laplace noise, scale ", "Laplace"),
        ("a Laplace mean", "Laplace noise, scale ", "Laplace"),
        ("medians chosen", "random choice, scale ", None),
        ("diffprivlib's naive Bayes", "drawn by diffprivlib, scale ", None),
    ],
)
def test_noise_is_named_and_only_our_own_is_said_to_be_exact(name, noise, exact):
    told = record(name, conditional=True)["deployment"]["implementation"]["mechanisms"]
    assert noise in told
    assert ("drawn exactly on a public lattice" in told) == (exact is not None)
    assert exact is None or f"{exact} noise is drawn exactly on a public lattice" in told


@pytest.mark.parametrize(
    ("name", "composed"),
    [
        (
            "unconditional",
            "Gaussian releases compose to mu = 0.6478 (Gaussian DP; rho = 0.2098 of zero-concentrated DP). Other",
        ),
        ("a whole count", "Everything together, that is 1 x discrete-laplace"),
        (
            "Poisson samples",
            "Gaussian releases compose to mu = 0.07933 (Gaussian DP). Everything together, also 5 x poisson",
        ),
        ("a vote", "Gaussian releases compose to mu = 0.1449 (Gaussian DP). Everything together, also 1 x discrete"),
    ],
)
def test_what_composes_to_a_mu_is_what_costs_one(name, composed):
    assert record(name)["deployment"]["implementation"]["composition"].startswith(composed)


def test_a_draft_with_an_address_a_day_and_a_tier():
    made = record()
    assert made["url_slug"] == "free-light-chains-our-clinic-2026"
    assert made["deployment"]["basic"]["publication_date"] == "2026-11-21"
    assert made["deployment"]["administrative"] == {"status": "Draft", "registry_authors": ["Ann Author"], "tier": 2}
    assert record(further=PEOPLE_ALSO_SAY)["deployment"]["administrative"]["tier"] == 3


class TestRefusals:
    def test_what_may_not_leave(self):
        for name in ("seeded", "classes read"):
            with pytest.raises(ExportError):
                record(name, conditional=True)
        with pytest.raises(ExportError, match="CONDITIONAL"):
            record("conditional")

    @pytest.mark.parametrize("change", [{"epsilon": 0.001}, {"dataset": "another"}, {"status": "PROVED"}])
    def test_what_does_not_hold(self, change):
        with pytest.raises(CertificateError, match="does not hold"):
            Certificate({**zoo.document("unconditional"), **change}).to_registry_record(**FACTS)

    @pytest.mark.parametrize(
        ("section", "field"),
        [
            ("privacy_loss", "privacy_parameters"),
            ("implementation", "mechanisms"),
            ("basic", "name"),
            ("administrative", "status"),
            ("administrative", "tier"),
        ],
    )
    def test_nobody_says_otherwise_than_the_certificate(self, section, field):
        with pytest.raises(InvalidParameter, match=f"{field} of '{section}' follows"):
            record(further={section: {field: "other"}})

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"curators": {"Our clinic": "Hospital"}}, "one of 'Government', 'Industry', 'Nonprofit'"),
            ({"curators": ["Our clinic"]}, "curators must be a mapping"),
            ({"curators": {}}, "data_curators"),
            ({"publication_date": "1/1/2026"}, "must be a day"),
            ({"product_type": "Guess"}, "data_product_type"),
            ({"authors": []}, "registry_authors"),
            ({"name": ""}, "basic/name"),
            ({"further": {"privacy": {}}}, "no section 'privacy'"),
            ({"further": {"implementation": {"cost": "none"}}}, "implementation is not as the registry has it"),
            ({"further": {"implementation": "none"}}, "no section 'implementation' of fields"),
        ],
    )
    def test_what_the_registry_would_not_read(self, changes, words):
        with pytest.raises(InvalidParameter, match=words):
            record(**changes)

    @pytest.mark.parametrize("where", [("deployment", section) for section in ("basic", "administrative")])
    def test_what_must_be_there(self, where):
        made = copy.deepcopy(record())
        del made[where[0]][where[1]]
        with pytest.raises(InvalidParameter, match="required"):
            check_record(made)

    def test_a_source_is_one_thing(self):
        two = {"x": {"article": {"title": "T"}, "book": {"title": "T"}}}
        with pytest.raises(InvalidParameter, match="evidence_sources/x"):
            record(further={"administrative": {"evidence_sources": two}})
