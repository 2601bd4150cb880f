"""The section of a model card says what the certificate says, and no name in it becomes markup."""

import html
import re

import numpy as np
import pytest
from documents import render_card
from pages import real_documents
from sklearn.linear_model import LogisticRegression

from ppdp import Certificate, make_pipeline
from ppdp.certificate.pages.statement import markdown_text
from ppdp.exceptions import CertificateError, InvalidParameter
from ppdp.mechanisms import GaussianMechanism
from ppdp.transformers import NormClipper

HOSTILE = [
    "<script>alert(1)</script>",
    "[x](http://x)",
    "a | b",
    "`x`",
    "**UNCONDITIONAL**",
    "a\n\n# b",
    "$x$",
    "&lt;",
    "https://evil.example/login HTTP://evil.example //evil.example",
    "www.evil.example WWW.evil.example",
    "@torvalds a@evil.example",
    ":tada:",
    "- nested",
    "+ nested",
    "1. nested",
    "2) nested",
    "-",
    "3.",
    "---",
    "===",
    "- - -",
]


def words(markdown):
    """What a reader sees; a word joiner is not seen."""
    return re.sub(r"\\(.)", r"\1", markdown).replace("&#8288;", "")


def named(document, name):
    return Certificate.sealed({**document, "dataset": name}).to_dict()


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
            "SEEDED": "nothing is protected; without a seed",
        }[c["status"]]
        assert render_card(c).startswith(f"**{c['status']}**: {promise}")


def test_bounds_are_never_shown_smaller_than_they_are():
    rows = np.zeros((1000, 2))
    pipe = make_pipeline(NormClipper(), GaussianMechanism(), epsilon=1.0000001, delta=1.23451e-7)
    text = pipe.fit(rows).certificate_.to_model_card()
    assert "(1.001, 1.235\u00a0×\u00a010⁻⁷)" in text


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_is_text(documents, name):
    text = render_card(named(documents["unconditional"], name))
    (line,) = [line for line in text.splitlines() if line.startswith("| Data | ")]
    shown = line.removeprefix("| Data | ").removesuffix(" |")
    assert not re.search(r"(?<!\\)[`*_\[\]<>|&#~$]", shown.replace("&#8288;", ""))
    assert words(shown) == "".join(c if c.isprintable() else "\ufffd" for c in name)


@pytest.mark.parametrize("name", HOSTILE)
def test_no_reader_finds_markup_addresses_or_names_in_text(name):
    """Also those who look for them after escapes and entities are resolved."""
    reader = pytest.importorskip("markdown_it").MarkdownIt("gfm-like", {"linkify": False})
    (item,) = re.findall(r"<li>(.*?)</li>", reader.render(f"* {markdown_text(name)}"), re.DOTALL)
    seen = html.unescape(item)
    assert "<" not in item
    assert seen.replace("\u2060", "") == " ".join(name.split())
    assert not re.search(r"(?i)//|www\.|@\w|:\w+:", seen)


@pytest.mark.parametrize(
    "change", [{"epsilon": 0.001}, {"status": "UNCONDITIONAL** <script>"}, {"dataset": "another"}, {"steps": 3}]
)
def test_a_certificate_that_does_not_hold_gets_no_card(documents, change):
    with pytest.raises(CertificateError, match="does not hold"):
        Certificate({**documents["unconditional"], **change}).to_model_card()
    with pytest.raises(CertificateError, match="does not hold"):
        Certificate({}).to_model_card()


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
