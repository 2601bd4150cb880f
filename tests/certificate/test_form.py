"""The quick test of a document's form says what jsonschema says."""

import random

import pytest
from effort import rounds
from mutants import CHANGES, NAMES, issued

from ppdp.certificate.canonical import schema, validator
from ppdp.certificate.form import quick_test

DIGEST = "sha256:" + 64 * "0"
PLAIN = [
    None,
    True,
    False,
    0,
    1,
    2,
    -1,
    1.0,
    0.0,
    0.5,
    -0.5,
    1e9,
    "",
    "x",
    "\n",
    "a\x1fb",
    16 * "1",
    64 * "a",
    600 * "x",
]
PLAIN += [DIGEST, DIGEST + "\n", "ppdp-certificate/2", "UNCONDITIONAL", "sum", "search"]
LISTS = [[], *([one] for one in PLAIN), *([one, 1] for one in PLAIN), [[["x", 1.0]]]]
VALUES = [*PLAIN, *LISTS, {}, {"x": 1}, {"x": None}]
KEYWORDS = {"type", "const", "enum", "$ref", "oneOf", "not", "pattern"}


def forms(one):
    """A form and all inside it."""
    if isinstance(one, dict) and one.keys() & KEYWORDS:
        yield one
    for inner in one.values() if isinstance(one, dict) else one if isinstance(one, list) else ():
        yield from forms(inner)


def test_of_every_form_in_the_schema():
    said = set()
    for form in forms(schema()):
        passes, whole = quick_test(form | {"$defs": schema()["$defs"]}), validator().evolve(schema=form)
        for value in VALUES:
            said.add(answer := whole.is_valid(value))
            assert passes(value) == answer, (form, value)
    assert said == {True, False}


def test_of_certificates_and_their_mutants():
    passes, answers = quick_test(schema(1)), []
    for number in range(rounds(2 * len(CHANGES))):
        content = issued(NAMES[number % len(NAMES)])
        assert passes(content)
        CHANGES[number % len(CHANGES)](random.Random(number), content)
        answers.append(passes(content))
        assert answers[-1] == validator(1).is_valid(content), number
    assert set(answers) == {True, False}


def test_a_keyword_that_it_does_not_know_is_none_of_the_schema():
    with pytest.raises(NotImplementedError, match="patternProperties in a JSON schema"):
        quick_test({"properties": {"x": {"patternProperties": {}}}})
