"""Who said a fact, and what it asks of a reader, is read off the document once, and never in its favour."""

import pytest
from zoo import ZOO, document

from ppdp.certificate.facts import Origin, Trust, read_fact, read_source
from ppdp.certificate.record import FactRecord


def fact(name, value="1", origin="declared"):
    return read_fact(FactRecord(name=name, value=value, origin=origin))


@pytest.mark.parametrize(
    ("text", "origin", "step", "note"),
    [
        ("declared", Origin.DECLARED, "", ""),
        ("declared; rows above it are clipped", Origin.DECLARED, "", ""),
        ("declared, step 'a, step b'", Origin.SETTING, "'a, step b'", ""),
        ("declared, loosest shown below", Origin.SETTING, "", ""),
        ("parameter of the model; targets are clipped", Origin.MODEL, "", "; targets are clipped"),
        ("default", Origin.DEFAULT, "", ""),
        ("default, step 'clip'", Origin.DEFAULT, "'clip'", ""),
        ("shape of X", Origin.TABLE, "", ""),
        ("schema of X", Origin.TABLE, "", ""),
        ("read from y: not public", Origin.LABELS, "", ""),
        ("imputer 'impute'", Origin.IMPUTER, "'impute'", ""),
        ("stage 'box'", Origin.DERIVED, "", ""),
        ("no imputer in the steps; a gap is an invalid value", Origin.DERIVED, "", ""),
        ("released, step 'box'", Origin.RELEASED, "'box'", ""),
        ("released by the janitor", Origin.OTHER, "", ""),
        ("Default", Origin.OTHER, "", ""),
        ("", Origin.OTHER, "", ""),
    ],
)
def test_who_said_it(text, origin, step, note):
    source = read_source(text)
    assert (source.origin, source.step, source.note, source.text) == (origin, step, note, text)


@pytest.mark.parametrize(
    ("name", "value", "origin", "trust"),
    [
        ("range of age", "0 to 1", "declared, step 'box'", Trust.LIMIT),
        ("range of age", "0 to 1", "released, step 'box'", Trust.NOTHING),
        ("row_norm", "2", "declared; rows above it are clipped", Trust.LIMIT),
        ("classes", "0, 1", "parameter of the model", Trust.LABELS),
        ("classes", "0, 1", "read from y: not public", Trust.NOTHING),
        ("max_iter", "10", "declared, step 'model'", Trust.SETTING),
        ("Lipschitz constant", "1", "declared, step 'map'", Trust.WORD),
        ("map", "the function treats rows one by one", "declared", Trust.WORD),
        ("mechanism", "GaussianNB", "another library is taken at its word", Trust.NOTHING),
        ("gaps", "none", "declared", Trust.NOTHING),
        ("weather", "fine", "released by the janitor", Trust.WORD),
    ],
)
def test_what_it_asks_of_a_reader(name, value, origin, trust):
    assert fact(name, value, origin).trust is trust


def test_ranges_have_a_column():
    assert (fact("range of a b").column, fact("range of a b").comes_out) == ("a b", False)
    out = fact("range of what comes out in every column")
    assert (out.column, out.comes_out, out.is_limit) == ("every column", True, True)
    assert fact("arranged").column == ""


@pytest.mark.parametrize("name", ZOO)
def test_every_origin_that_a_fit_writes_is_known(name):
    for one in document(name)["facts"]:
        read = read_fact(FactRecord(**one))
        assert read.source.origin is not Origin.OTHER or read.name == "mechanism", one  # that one is a reason
