"""What a certificate says in words, on the page, in a notebook and in a terminal: only what is true of it."""

import re

import pytest
from documents import record_of, render_fragment, render_page, render_text
from pages import Reader
from zoo import certificate, document

from ppdp import Certificate
from ppdp.certificate.pages.derivation import law_of
from ppdp.certificate.pages.renderers import WIDTH
from ppdp.core.figures import figure
from ppdp.exceptions import InvalidParameter
from ppdp.privacy.losses import Part

both = pytest.mark.parametrize("render", [render_page, render_fragment])
OTHER_LAWS = ("gated, Laplace", "gated, whole", "a Laplace mean", "a vote", "diffprivlib's naive Bayes")


STRAIGHT = str.maketrans("“”’", "'''")  # quotation marks as they are typed


def terminal(content):
    return Certificate(content).to_text(full=True)


everywhere = pytest.mark.parametrize("render", [render_page, render_fragment, terminal])


def plain(words):
    return " ".join(words.split())


def text_of(render, content):
    shown = render(content)
    return Reader(shown).text.translate(STRAIGHT) if shown.startswith("<") else plain(shown)


# ---------------------------------------------------------------- covered, and not


@everywhere
def test_warnings_are_shown(render):
    c = document("a hidden pass")
    assert c["warnings"]
    assert all(warning in text_of(render, c) for warning in c["warnings"])


# ---------------------------------------------------------------- noise that is not Gaussian


@both
@pytest.mark.parametrize("name", OTHER_LAWS)
@pytest.mark.repeated("render")
def test_noise_of_another_law_is_not_called_gaussian(name, render):
    c = document(name)
    text = text_of(render, c)
    assert "Gaussian noise was added" not in text
    assert f"σ = {figure(c['mechanism']['noise_scale'])}" not in text
    assert law_of(record_of(c).mechanism) in text
    assert plain(figure(c["mechanism"]["noise_scale"])) in text


@everywhere
@pytest.mark.parametrize(("kind", "at"), [("gated, whole", "gate"), ("a Laplace mean", "mechanism")])
def test_noise_of_a_law_that_is_not_known_gets_no_name(kind, at, render):
    """Of a formula that somebody's module registered, only that module knows the law."""
    c = document(kind)
    c[at] |= {"kind": "staircase"} if at == "gate" else {"formula": "mine.staircase"}
    assert law_of(getattr(record_of(c), at)) == "a law unknown to this ppdp"
    if at == "mechanism":  # a gate of an unknown kind has no form, so that it is never shown
        shown = plain(render_text(c)) if render is terminal else text_of(render, c)
        assert "a law unknown to this ppdp" in shown
        assert "Gaussian" not in re.sub("GaussianMechanism|Gaussian differential privacy", "", shown)


@everywhere
@pytest.mark.parametrize("name", [*OTHER_LAWS, "fixed batches", "a hidden pass"])
@pytest.mark.repeated("render")
def test_every_part_of_the_loss_is_described(name, render):
    c = document(name)
    text = text_of(render, c)
    for part in c["total"]["parts"]:
        words = plain(Part.from_dict(part).words())
        assert words in text or (render is terminal and words.replace(" × 10⁻⁴", "e-4") in text)


def test_parts_in_words_name_their_numbers():
    (part,) = document("Poisson samples")["total"]["parts"]
    words = Part.from_dict(part).words()
    assert words.startswith("5 noisy sums, each over a random sample of the rows")
    assert f"every row with probability {figure(part['rate'])}" in words
    assert Part.from_dict({"kind": "pure", "count": 2, "epsilon": 0.25}).words() == (
        "2 times a mechanism that is 0.25-differentially private by itself"
    )
    assert "3 random choices" in Part.from_dict({"kind": "bounded-range", "count": 3, "range": 1.0}).words()


@pytest.mark.parametrize("change", [{"kind": "magic"}, {"scale": float("inf")}, {"more": 1.0}])
def test_parts_that_are_none_have_no_words(change):
    with pytest.raises(InvalidParameter):
        Part.from_dict({"kind": "laplace", "count": 1, "scale": 1.0, "shift": 1.0, **change})


def test_a_hidden_pass_releases_one_iterate():
    c = document("a hidden pass")
    assert c["mechanism"]["steps"] > 1
    assert "LogisticRegression 4 - " in text_of(render_page, c)
    assert f"{c['mechanism']['steps']} × " not in text_of(render_page, c)
    assert f"{c['mechanism']['steps']} x " not in certificate("a hidden pass").to_text(full=True)


# ---------------------------------------------------------------- terminal


@pytest.mark.parametrize(
    "name", ["unconditional", "on a ladder", "conditional", "a vote", "a Laplace mean", "fixed batches"]
)
def test_terminal_lines_are_short_plain_and_begin_with_the_status(name):
    one = certificate(name)
    lines = one.to_text(full=True).splitlines()
    condition = " - if what is assumed below holds," if name == "conditional" else ""
    assert lines[0] == f"{one.status}{condition} (3, 1e-06)-differential privacy, end to end"
    assert max(map(len, lines)) <= WIDTH
    assert one.to_text(full=True).isascii()
    assert one.digest in lines[-1]


def test_long_lists_of_public_values_are_cut_short_in_words_only():
    c = document("medians chosen")
    text = text_of(render_page, c)
    assert len(c["mechanism"]["parameters"]["candidates"]) == 63
    assert "[−1, −0.9, −0.8, …, 1] (63 values)" in text
