"""Nothing of a document is shown that was not verified; at a glance it has twelve lines."""

import copy
import re
from dataclasses import replace

import pytest
from pages import Reader
from zoo import ZOO, certificate, document, sealed

from ppdp import Certificate
from ppdp.certificate import document as document_module
from ppdp.certificate.pages.renderers import CUT, LINES, WIDTH, render_brief
from ppdp.certificate.pages.statement import Statement, Topic, typeset
from ppdp.certificate.pages.statements import view_of
from ppdp.exceptions import CertificateError

SHOWN = {"repr": repr, "text": Certificate.to_text, "page": Certificate.to_html, "notebook": Certificate._repr_html_}
every_form = pytest.mark.parametrize("form", SHOWN)


def read(form, one):
    shown = SHOWN[form](one)
    return Reader(shown).text if shown.startswith("<") else shown


def forged():
    """What promises epsilon 3 for 150 answers, each of which is dear to account for."""
    content = document("Poisson samples")
    (part,) = content["total"]["parts"]
    content["total"]["parts"] = [{**part, "rate": part["rate"] * (1 - i / 1000)} for i in range(150)]
    content["dataset"] = "hospital"
    return Certificate(sealed(content))


@every_form
def test_of_a_document_that_does_not_hold_only_that_is_shown_and_why(form):
    shown = read(form, forged())
    assert shown.startswith("DOES NOT HOLD")
    assert "total.parts: other parts follow." in shown
    assert not any(word in shown for word in ("UNCONDITIONAL", "differential", "1e-06", "10⁻⁶", "hospital", "covered"))


@every_form
@pytest.mark.parametrize("content", [{}, [], None, "certificate", {"schema": "ppdp-certificate/1"}], ids=str)
def test_showing_never_fails(form, content):
    assert read(form, Certificate(content)).startswith("DOES NOT HOLD")


@every_form
def test_nothing_is_computed_of_what_does_not_hold(form, monkeypatch):
    monkeypatch.setattr(document_module.Certificate, "loss", property(lambda _: pytest.fail("it was computed")))
    SHOWN[form](forged())


def test_an_epsilon_at_another_delta_is_part_of_what_was_verified():
    with pytest.raises(CertificateError, match="guarantees nothing"):
        forged().epsilon_at(1e-5)


@every_form
def test_who_wrote_a_document_chooses_no_word_that_is_shown(form):
    content = document("unconditional")
    content["steps"][0]["formula"] = "\x1b[2J<b>" + "x" * 5000
    shown = SHOWN[form](Certificate(sealed(content)))
    assert "\x1b" not in shown
    assert "<b>" not in shown or not shown.startswith("<")
    assert "x" * 1000 not in shown


def test_a_list_of_problems_ends():
    content = document("unconditional")
    content["facts"] = [{"name": "n_rows", "value": "1", "origin": "declared"}] * 1000
    shown = Certificate(sealed(content)).to_text(full=True)
    assert len(shown.splitlines()) < 30
    assert "more" in shown.splitlines()[-1]


def test_what_holds_is_verified_once(monkeypatch):
    one, asked = Certificate(document("unconditional")), []
    real = Certificate.verify
    monkeypatch.setattr(Certificate, "verify", lambda self: asked.append(1) or real(self))
    first = [SHOWN[form](one) for form in SHOWN]
    assert [SHOWN[form](one) for form in SHOWN] == first
    assert asked == [1]


def test_a_copy_of_a_certificate_is_verified_again():
    one = certificate("unconditional")
    assert one.to_text(full=True).startswith("UNCONDITIONAL")
    changed = copy.copy(one)
    object.__setattr__(changed, "_content", {**one.to_dict(), "epsilon": 0.1})
    assert changed.to_text(full=True).startswith("DOES NOT HOLD")


def test_what_does_not_hold_is_asked_again():
    """A formula of the user's own is unknown until its module is imported."""
    content = document("unconditional")
    one = Certificate(content)
    object.__setattr__(one, "_content", {**content, "epsilon": 0.1})
    assert one.to_text(full=True).startswith("DOES NOT HOLD")
    object.__setattr__(one, "_content", content)
    assert one.to_text(full=True).startswith("UNCONDITIONAL")


# ---------------- at a glance


NAMED = ("protects", "released", "rests on", "not covered", "digest", "the rest")


@pytest.mark.parametrize("name", ZOO)
@pytest.mark.repeated("name", keep=40)
def test_print_has_twelve_lines_and_says_what_is_promised_to_whom_and_upon_what(name):
    one = certificate(name)
    lines = str(one).splitlines()
    beside = len(lines) - len(lines[next(i for i, line in enumerate(lines) if line.startswith(one.status)) :])
    assert len(lines) <= LINES
    assert f"({one.epsilon:g}, {one.delta:g})-differential" in lines[beside]
    assert max(map(len, lines[beside + 1 :])) <= WIDTH
    found = [match[1] for line in lines[beside + 1 :] if (match := re.match(r"  (\w+(?: \w+)?)  ", line))]
    assert [words for words in found if words in NAMED] == list(NAMED)
    assert ("because" in found) == (one.status != "UNCONDITIONAL")
    assert any(one.digest in line for line in lines)
    assert one.record.neighbours.unit in " ".join(str(one).split())
    assert lines == one.to_text(full=True).splitlines()[: beside + 1] + lines[beside + 1 :]


@pytest.mark.parametrize("name", ZOO)
@pytest.mark.repeated("name", keep=28)
def test_a_notebook_shows_the_same_before_all_that_is_folded(name):
    one = certificate(name)
    glance, folded = one._repr_html_().split("<details")
    assert glance.count("<div") - 1 <= LINES
    shown = Reader(glance + "</div>").text
    assert all(f"{words.capitalize()}: " in shown for words in NAMED)
    assert one.digest in shown
    assert all(typeset(words) in Reader("<div><details" + folded).text for words in one.record.not_covered)


def test_what_is_cut_says_so():
    long = Statement(Topic.RESTS_ON, "word " * 500), Statement(Topic.WARNING, "loud " * 99)
    view = replace(view_of(certificate("conditional").record), statements=long)
    lines = render_brief(view).splitlines()
    assert len(lines) == LINES
    assert max(map(len, lines[1:])) <= WIDTH
    assert {"loud", "word"} <= {line.split()[-2] for line in lines if line.endswith(CUT)}
    assert sum(line.endswith(" more)") for line in lines) >= 1, "of a list whole parts, and a count"
