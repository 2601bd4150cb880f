"""A certificate at a glance: every kind in twelve lines, with what a reader must know first."""

import re
from dataclasses import replace

import pytest
from pages import Reader
from zoo import ZOO, certificate

from ppdp.certificate.pages.renderers import CUT, LINES, WIDTH, render_brief
from ppdp.certificate.pages.statement import Statement, Topic, typeset
from ppdp.certificate.pages.statements import view_of

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
