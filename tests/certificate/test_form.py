"""The function that tells whether a document has its form: it accepts what jsonschema accepts, and nothing else."""

import copy
import random

import pytest
from effort import rounds
from mutants import NAMES, STRANGE, at, issued, places, put

from ppdp.certificate.canonical import _form, _validator, schema
from ppdp.certificate.form import form_of

PLAIN = [value for value in STRANGE if value == value]  # JSON has no NaN


def parts(one):
    """Every part of a schema that is a schema itself."""
    if isinstance(one, dict):
        if one.keys() & {"type", "$ref", "const", "enum", "oneOf", "not"}:
            yield one
        for inner in one.values():
            yield from parts(inner)
    elif isinstance(one, list):
        for inner in one:
            yield from parts(inner)


@pytest.mark.parametrize("version", [1, 2])
def test_every_part_of_the_schema_accepts_what_jsonschema_accepts(version):
    whole = schema(version)
    texts = [
        "x" * 500,
        "x" * 501,
        "max",
        "fit",
        "a\nb",
        "0" * 64,
        "0" * 64 + "\n",
        "2026-11-26T12:00:00+00:00",
        "sha256:" + "0" * 64,
    ]
    lists = [[1, 2], ["a", 1], ["a", 1, 2], [True, 1], ["a", 0], [[["a"], 1.5]], [["a", 1.5]], [["a", True]]]
    small = [{"add_remove": 1}, {"linf": 1, "l1": 0, "columns": 2}, {"epsilon": 1, "delta": 1}, {"delta": 2}, 500, 501]
    for part in parts(whole):
        form, validator = form_of(part, whole), _validator(version).evolve(schema=part)
        for value in [*PLAIN, *texts, *lists, *small]:
            assert form(value) == validator.is_valid(value), (part, value)


def test_a_document_has_its_form_wherever_it_was_changed_as_jsonschema_has_it():
    rng, refused = random.Random(20261126), 0
    changes = rounds(300)
    for _ in range(changes):
        content = issued(rng.choice(NAMES))
        place = rng.choice(places(content))
        if rng.random() < 0.2:
            del at(content, place[:-1])[place[-1]]
        else:
            put(content, place, copy.deepcopy(rng.choice(PLAIN)))
        version = 1 if content.get("schema") == "ppdp-certificate/1" else 2
        accepted = _form(version)(content)
        assert accepted == _validator(version).is_valid(content), place
        refused += not accepted
    assert 0.5 * changes < refused < 0.95 * changes


@pytest.mark.parametrize(
    "unknown",
    [{"uniqueItems": True}, {"const": 1}, {"enum": ["a", 1]}, {"not": {"type": "string"}}, {"type": "any"}],
    ids=str,
)
def test_a_schema_that_it_does_not_know_is_no_form(unknown):
    with pytest.raises(KeyError):
        form_of(unknown)
