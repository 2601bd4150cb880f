"""What a release is for and who answers for it: words of the issuer, shown and signed, and proved by nothing."""

import json

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from documents import render_card, render_fragment, render_page, render_text
from studies import PIPELINE, write_study
from zoo import document

from ppdp import Certificate, Ledger, Pipeline, PrivateSearchCV, load
from ppdp.certificate import verify
from ppdp.certificate.issue_statement import UNPROVED
from ppdp.cli.main import main
from ppdp.exceptions import InvalidParameter
from ppdp.mechanisms import LogisticRegression
from ppdp.transformers import NormClipper

X = np.linspace(-1, 1, 400)[:, None]
Y = (X[:, 0] > 0).astype(int)
WORDS = {"purpose": "Planning of shifts", "responsible": "Ann Author, Clinic"}
FORMS = (render_text, render_card, render_page, render_fragment)


def pipeline(**parameters):
    return Pipeline([("clip", NormClipper()), ("model", LogisticRegression(classes=(0, 1), max_iter=5))], **parameters)


def test_they_stand_beside_the_claim_and_the_signature_covers_them():
    one, plain = pipeline(**WORDS).fit(X, Y).certificate_, pipeline().fit(X, Y).certificate_
    assert {name: one["issued"][name] for name in WORDS} == WORDS
    assert not WORDS.keys() & plain["issued"].keys()
    assert one.verify()
    assert Certificate.from_json(one.to_json()).to_dict() == one.to_dict()
    assert "issued" not in one.claim()
    key = Ed25519PrivateKey.generate()
    signature = one.sign(key)
    content = one.to_dict()
    content["issued"]["responsible"] = "Somebody else"
    other = Certificate(content)
    assert other.verify()
    assert other == one
    assert one.verify(signature=signature, public_key=key.public_key())
    assert not other.verify(signature=signature, public_key=key.public_key())


def test_they_travel_with_an_export_and_with_a_search(tmp_path):
    pipe = pipeline(**WORDS).fit(X, Y)
    pipe.export(tmp_path / "model.zip")
    assert load(tmp_path / "model.zip").certificate_["issued"]["purpose"] == WORDS["purpose"]
    search = PrivateSearchCV(pipeline(**WORDS), {"model__max_grad_norm": [0.5, 1.0]}).fit(X, Y)
    for one in (search.certificate_, search.best_estimator_.certificate_):
        assert {name: one["issued"][name] for name in WORDS} == WORDS
        assert one.verify()


@pytest.mark.parametrize("render", FORMS)
def test_every_form_shows_them_escaped_and_says_that_nothing_proves_them(render):
    content = document("unconditional")
    assert UNPROVED not in render(content)
    times = 1 if render is render_page else 2  # of who made it, the page says it in other words
    content["issued"] |= {"purpose": "<b>*shifts*</b>\u202e", "responsible": "Ann"}
    shown = render(content).replace("’", "'")
    assert shown.count(UNPROVED) == times or render is render_text
    assert "".join(shown.split()).count("".join(UNPROVED.split())) == times
    assert ("None of this is proved." in shown) == (render is render_page)
    assert "\u202e" not in shown
    if render is not render_text:
        assert "<b>*shifts*" not in shown
    assert ("&lt;b&gt;" in shown) == (render in (render_page, render_fragment))


@pytest.mark.parametrize("words", ["", " ", "two\nlines", "\x1b[2J", "\u202eturned", "\ud800", "x" * 501, 3, b"bytes"])
@pytest.mark.parametrize("name", WORDS)
def test_what_cannot_be_shown_is_refused_before_anything_is_spent(name, words):
    with Ledger() as account:
        with pytest.raises(InvalidParameter, match=f"{name} must be public words"):
            pipeline(**{name: words}).fit(X, Y)
        with pytest.raises(InvalidParameter, match=f"{name} must be public words"):
            PrivateSearchCV(pipeline(**{name: words}), {"model__max_grad_norm": [0.5, 1.0]}).fit(X, Y)
    assert account.entries() == ()


def test_a_search_does_not_choose_them():
    with pytest.raises(InvalidParameter, match="cannot be searched for"):
        PrivateSearchCV(pipeline(), {"purpose": ["one", "two"]}).fit(X, Y)


@pytest.mark.parametrize("words", ["", "two\nlines", "\x1b", "x" * 501, None, 3])
def test_a_document_with_other_words_has_not_the_form(words):
    content = document("unconditional")
    content["issued"]["purpose"] = words
    assert not verify(content)


def test_on_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_study(tmp_path)
    said = "".join(f'{name} = "{words}"\n' for name, words in WORDS.items())
    file = tmp_path / "study.toml"
    file.write_text(PIPELINE.replace("[pipeline]\n", f"[pipeline]\n{said}"))
    fit = ["fit", "study.toml", "--data", "study.csv", "--out", "out"]
    assert main(fit) == 0
    capsys.readouterr()
    assert main(["show", "out", "--full"]) == 0
    assert f"Planning of shifts ({UNPROVED})" in capsys.readouterr().out
    assert main(["verify", "out"]) == 0
    assert f"responsible: Ann Author, Clinic ({UNPROVED})" in capsys.readouterr().out
    assert json.loads((tmp_path / "out" / "certificate.json").read_text())["issued"]["purpose"] == WORDS["purpose"]
    for words, place in (("x" * 501, "pipeline.purpose"), ("two\\nlines", "pipeline.purpose")):
        file.write_text(PIPELINE.replace("[pipeline]\n", f'[pipeline]\npurpose = "{words}"\n'))
        assert main([*fit[:-1], "other"]) == 2
        assert place in capsys.readouterr().err
    assert not (tmp_path / "other").exists()
