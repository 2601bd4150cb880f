"""The section of a model card says what the certificate says, and no name in it becomes markup."""

import re

import pytest
import zoo
from pages import real_documents
from sklearn.linear_model import LogisticRegression

from ppdp import Certificate
from ppdp.certificate.card import render_card
from ppdp.exceptions import InvalidParameter


def words(markdown):
    """What a reader sees."""
    return re.sub(r"\\(.)", r"\1", markdown)


@pytest.fixture(scope="module", name="documents")
def documents_of_every_kind():
    return real_documents()


def test_the_first_word_is_the_status(documents):
    found = {re.match(r"\*\*(\w+)\*\*", render_card(c))[1] for c in documents.values()}
    assert found == {"UNCONDITIONAL", "CONDITIONAL", "SEEDED"}
    for c in documents.values():
        promise = {
            "UNCONDITIONAL": "(ε, δ) = (1, 10⁻⁶)-differential privacy, end to end: of everything",
            "CONDITIONAL": "if what is assumed below holds, (ε, δ) = (1, 10⁻⁶)-differential privacy, end to end: of",
            "SEEDED": "nothing is protected; with secret noise",
        }[c["status"]]
        assert render_card(c).startswith(f"**{c['status']}**: {promise}")


def test_everything_that_a_reader_needs_is_said(documents):
    for c in documents.values():
        text = words(render_card(c))
        for said in (c["adjacency"], c["digest"], *c["not_covered"], *c["reasons"], *c["warnings"]):
            assert said in text
        assert "| ε | 1 |" in text
        assert "| δ | 10⁻⁶ |" in text
        assert "| Unit of privacy | any one row; that a person owns one row only is assumed, nobody decl" in text
        assert all(step["name"] in text for step in c["steps"])
        assert all(f"{f['name']} = {f['value']} ({f['origin']})" in text for f in c["facts"])


def test_what_it_rests_on_stands_before_the_figures(documents):
    text = render_card(documents["conditional"])
    first = text.index("assumes")
    assert first < text.index("| ε |")
    assert text.index("Provided that the assumptions hold, whoever knows") > first
    assert "for tests only" in render_card(documents["seeded"])
    assert "Provided" not in render_card(documents["unconditional"])


def test_bounds_are_never_shown_smaller_than_they_are(documents):
    text = render_card({**documents["unconditional"], "epsilon": 1.0000001, "delta": 1.23451e-7})
    assert "(1.001, 1.235\u00a0×\u00a010⁻⁷)" in text


def test_persons_with_several_rows():
    assert "any 3 rows of one person" in zoo.certificate("three rows each").to_model_card()


@pytest.mark.parametrize(
    "name",
    ["<script>alert(1)</script>", "[x](http://x)", "a | b", "`x`", "**UNCONDITIONAL**", "a\n\n# b", "$x$", "&lt;"],
)
def test_a_name_is_text(documents, name):
    text = render_card({**documents["unconditional"], "dataset": name})
    (line,) = [line for line in text.splitlines() if line.startswith("| Data | ")]
    shown = line.removeprefix("| Data | ").removesuffix(" |")
    assert not re.search(r"(?<!\\)[`*_\[\]<>|&#~$]", shown)
    assert words(shown) == "".join(c if c.isprintable() else "\ufffd" for c in name)


class TestWithSkops:
    def test_the_section_is_added_and_takes_the_place_of_an_earlier_one(self, documents):
        cards = pytest.importorskip("skops.card")
        card = cards.Card(LogisticRegression(), template=None)
        card.add(Purpose="To show.")
        first, second = (Certificate(documents[name]) for name in ("seeded", "unconditional"))
        first.to_model_card(card)
        text = second.to_model_card(card)
        shown = card.render()
        assert f"# Privacy\n\n{text}" in shown
        assert shown.count("# Privacy") == 1
        assert "To show." in shown
        assert "SEEDED" not in shown

    def test_with_the_usual_template_as_well(self, documents):
        cards = pytest.importorskip("skops.card")
        card = cards.Card(LogisticRegression())
        text = Certificate(documents["gated"]).to_model_card(card)
        assert card.select("Privacy").content == text

    @pytest.mark.parametrize("card", ["card.md", 3, dict])
    def test_what_is_no_card_is_refused(self, documents, card):
        with pytest.raises(InvalidParameter, match="skops"):
            Certificate(documents["gated"]).to_model_card(card)
