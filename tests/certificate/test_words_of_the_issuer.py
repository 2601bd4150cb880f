"""What a release is for and who answers for it: words of the issuer, shown and signed, and proved by nothing."""

import hashlib
import json
from datetime import date

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from documents import render_card, render_fragment, render_page, render_text
from issue_golden import FOLDER
from studies import PIPELINE, write_study
from zoo import document

from ppdp import Certificate, Ledger, Pipeline, PrivateSearchCV, load
from ppdp.certificate import StatusList, verify
from ppdp.certificate.issue_record import OF_THE_ISSUER
from ppdp.certificate.issuer import UNPROVED
from ppdp.cli.main import main
from ppdp.exceptions import CertificateError, InvalidParameter
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
    times = 0 if render is render_page else 2  # the page says it in other words
    content["issued"] |= {"purpose": "<b>*shifts*</b>\u202e", "responsible": "Ann"}
    shown = render(content).replace("’", "'")
    assert shown.count(UNPROVED) == times or render is render_text
    assert "".join(shown.split()).count("".join(UNPROVED.split())) == times
    assert ("None of this is proved." in shown) == ("Purpose, as stated:" in shown) == (render is render_page)
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


def test_a_search_reads_what_is_attached_before_it_spends(tmp_path):
    file = tmp_path / "policy.txt"
    file.write_text("policy")

    def gone(answer, predicted):
        file.unlink(missing_ok=True)
        return float(answer == predicted)

    one = pipeline(statements={"attachments": [file]})
    search = PrivateSearchCV(one, {"model__max_grad_norm": [0.5, 1.0]}, scoring=gone).fit(X, Y)
    assert [attached["name"] for attached in search.certificate_["issued"]["attachments"]] == ["policy.txt"]


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
    before, _, stated = capsys.readouterr().out.partition(f"{UNPROVED}:\n")
    assert "Ann Author" not in before
    assert "  responsible: Ann Author, Clinic\n" in stated
    assert json.loads((tmp_path / "out" / "certificate.json").read_text())["issued"]["purpose"] == WORDS["purpose"]
    for words, place in (("x" * 501, "pipeline.purpose"), ("two\\nlines", "pipeline.purpose")):
        file.write_text(PIPELINE.replace("[pipeline]\n", f'[pipeline]\npurpose = "{words}"\n'))
        assert main([*fit[:-1], "other"]) == 2
        assert place in capsys.readouterr().err
    assert not (tmp_path / "other").exists()


# ---------------------------------------------------------------- sources, and what else the issuer states


SOURCES = {"clip": "Protocol 2.4", "classes": "Codebook 3.1"}
DAY, EARLIER = "2087-06-30", "sha256:" + 64 * "0"
OTHERS = {*WORDS, "review_by", "supersedes", "attachments"}
STATED = {name: f"said of {name}" for name in OF_THE_ISSUER if name not in OTHERS}
STATED |= {"review_by": DAY, "supersedes": EARLIER}


def test_a_source_stands_beside_its_fact_and_inside_the_digest():
    steps = [("clip", NormClipper(2.0)), ("model", LogisticRegression(classes=(0, 1), max_iter=5))]
    told = Pipeline(steps, sources=SOURCES).fit(X, Y).certificate_
    facts = {fact["name"]: fact.get("source") for fact in told["facts"]}
    assert (facts["largest norm of a row"], facts["classes"], facts["max_iter"]) == (
        "Protocol 2.4",
        "Codebook 3.1",
        None,
    )
    assert told.verify()
    for shown in (told.to_text(full=True), told.to_html(), told.to_model_card(), told._repr_html_()):
        assert "Codebook 3.1" in shown
        assert "None is stated for 1 of 3" in " ".join(shown.replace("\u00a0", " ").split())
    content = told.to_dict()
    content["facts"][0]["source"] = "Somebody's word"
    assert not verify(content)
    alike = Pipeline(steps, sources="Protocol").fit(X, Y).certificate_
    assert {fact.get("source") for fact in alike["facts"] if fact["name"] in facts} == {"Protocol", None}


@pytest.mark.parametrize("sources", [{"clipp": "x"}, {"a row": "x"}, {"n_rows": "x"}, {"clip": ""}, "two\nlines", 3])
def test_a_source_of_nothing_that_is_declared_is_refused_before_anything_is_spent(sources):
    one = pipeline(sources=sources)
    with Ledger() as account:
        for fitted in (one, PrivateSearchCV(one, {"model__max_grad_norm": [0.5, 1.0]})):
            with pytest.raises(InvalidParameter, match="sources") as refused:
                fitted.fit(X, Y)
            assert refused.value.parameter == "sources"
    assert account.entries() == ()


def test_statements_are_kept_shown_and_signed(tmp_path):
    report = tmp_path / "audit.json"
    report.write_text("{}")
    one = pipeline(**WORDS, statements={**STATED, "attachments": [report]}).fit(X, Y).certificate_
    attached = [{"name": "audit.json", "sha256": "sha256:" + hashlib.sha256(b"{}").hexdigest()}]
    assert one["issued"].items() >= {**STATED, "attachments": attached}.items()
    assert one.verify()
    assert Certificate.from_json(one.to_json()).to_dict() == one.to_dict()
    page = one.to_html()
    for words in ("audit.json", EARLIER[:19], *list(STATED.values())[:-1]):
        assert words in page
    plain = pipeline(**WORDS).fit(X, Y).certificate_
    later = plain.stating(review_by=date(2087, 6, 30), supersedes=one, attachments={"audit.json": EARLIER})
    assert (later["issued"]["supersedes"], later.digest, later == plain) == (one.digest, plain.digest, True)
    assert later.verify()
    with pytest.raises(InvalidParameter, match="no statement 'x'"):
        plain.stating(x=1)
    with pytest.raises(CertificateError, match="no place"):
        Certificate.load(FOLDER / "0.1.0" / "unconditional.json").stating(review_by=DAY)


@pytest.mark.parametrize(
    "stated",
    [
        {"review_by": "30.6.2027"},
        {"review_by": "2087-02-30"},
        {"supersedes": "sha256:00"},
        {"limit_set_by": "\u202e"},
        {"attachments": ["no such file"]},
        {"attachments": {"a/b": EARLIER}},
        {"attachments": []},
        {"attachments": 3},
        {"attachments": [None]},
        {"attachments": {"a": "sha256:0"}},
        {"purpose": "twice"},
        {"reviewed": DAY},
        "2087-06-30",
    ],
)
def test_a_statement_that_cannot_be_read_is_refused_before_anything_is_spent(stated):
    with Ledger() as account, pytest.raises(InvalidParameter):
        pipeline(statements=stated).fit(X, Y)
    assert account.entries() == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("review_by", "2087-02-30"),
        ("supersedes", None),
        ("attachments", [{"name": "a", "sha256": EARLIER}] * 2),
        ("attachments", [{"name": "../a", "sha256": EARLIER}]),
        ("attachments", []),
    ],
)
def test_a_document_whose_statements_cannot_be_true_does_not_hold(name, value):
    content = document("unconditional")
    content["issued"][name] = content["digest"] if value is None else value
    assert not verify(content)


def test_files_beside_and_a_list_of_withdrawn_certificates_are_looked_up(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_study(tmp_path)
    folder = tmp_path / "study"
    folder.mkdir()
    (folder / "policy.txt").write_text("policy")
    stated = 'statements = {review_by = 2020-01-01, attachments = ["policy.txt"]}\nsources = {classes = "Protocol"}\n'
    (folder / "study.toml").write_text(PIPELINE.replace("[pipeline]\n", f"[pipeline]\n{stated}"))
    assert main(["fit", "study/study.toml", "--data", "study.csv", "--out", "out"]) == 0
    digest = json.loads((tmp_path / "out" / "certificate.json").read_text())["digest"]

    def verified(*options):
        code = main(["verify", "out", "--json", *options])
        found = json.loads(capsys.readouterr().out)
        return code, found["attachments"], len(found["unmet"])

    capsys.readouterr()
    assert verified() == (0, {"policy.txt": "absent"}, 0)
    (tmp_path / "out" / "policy.txt").write_text("policy")
    assert verified() == (0, {"policy.txt": "same"}, 0)
    (tmp_path / "out" / "policy.txt").write_text("another")
    assert verified() == (1, {"policy.txt": "another"}, 1)
    (tmp_path / "out" / "policy.txt").unlink()
    assert main(["verify", "out"]) == 0
    assert "REVIEW WAS DUE" in capsys.readouterr().out
    day = {"since": "2026-01-02", "reason": "A range was read off the rows"}
    for withdrawn, published, expected in (
        ({}, "2999-01-01", 0),
        ({EARLIER: day}, "2999-01-01", 0),
        ({digest: {**day, "superseded_by": EARLIER}}, "2999-01-01", 1),
        ({}, "2020-01-01", 2),
    ):
        StatusList(published, published, withdrawn).save("list.json")
        code, _, unmet = verified("--status", "list.json")
        assert (code, unmet) == (min(expected, 1), expected)
    for broken in ("{}", "[]", '{"schema": "ppdp-status-list/1"}'):
        (tmp_path / "list.json").write_text(broken)
        assert main(["verify", "out", "--status", "list.json"]) == 2
        assert "ppdp-status-list/1" in capsys.readouterr().err
