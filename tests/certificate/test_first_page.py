"""Page one, the checklist and the glossary: what a reviewer asks is answered, and nothing more than is known."""

import re
import string
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from documents import missed, record_of, render_page
from pages import ROWS, Reader, answers, mean
from scipy.optimize import brentq
from scipy.stats import norm
from zoo import certificate, document

from ppdp import Certificate, Domain, Ledger, Pipeline, make_pipeline
from ppdp.certificate import formats
from ppdp.certificate.facts import read_fact
from ppdp.certificate.pages.interpretation import outcome_in_words, right_at, right_of_two_rows, times_in_100
from ppdp.certificate.pages.page import seldom
from ppdp.certificate.pages.statement import GLOSSARY, terms_in
from ppdp.certificate.record import FactRecord
from ppdp.exceptions import ExportError, InvalidParameter
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.transformers import Deduplicator, MeanImputer, MinMaxScaler

QUESTIONS = (
    "For one person",
    "Who is protected",
    "Against whom",
    "What comes out",
    "Usefulness",
    "Taken on trust",
    "Spent on these people so far",
    "Again next month?",
    "May it be published?",
    "Not covered",
    "Made by",
    "How to check it",
)
ROOT = Path(__file__).parents[2]


def of(name):
    return answers(render_page(document(name)))


# ---------------------------------------------------------------- ten questions


@pytest.mark.parametrize(
    "name", ["unconditional", "conditional", "seeded", "three rows each", "added rows", "persons", "changed signs"]
)
def test_every_question_has_an_answer_the_detection_sentence_first(name):
    found = of(name)
    assert tuple(found) == QUESTIONS
    assert all(found.values())
    promise = r"an attacker who knows .* and must guess .* times? in 100|right every time"
    assert re.search(promise, found["For one person"], re.I)
    assert found["For one person"].endswith("Your organisation decides.") == (name != "seeded")


def test_a_rare_result_tells_more_as_page_one_says_and_the_second_sheet():
    content = document("unconditional")
    found = of("unconditional")
    guesses = re.search(
        r"most (\d+) times in 100, averaged over noise; .* before, this release adds at most (\d+) right guesses .*"
        r"if chance makes the noise hide little .at most 1 time in (\d+)., right at most (\d+) in 100 on average;"
        r" over 90 % sure at most 1 time in (\d+)",
        found["For one person"],
    )
    right, more, seldom_surest, rare, seldom_mostly = map(int, guesses.groups())
    assert right - more == 50
    power = 1 - missed(record_of(content), 0.01)
    table = r"Right alarms, at most 1\s% ([\d.]+)\s% ([\d.]+)\s%"
    shown = re.search(table, Reader(render_page(content)).text).groups()
    assert 0 <= float(shown[0]) - 100 * power < 0.01
    told = float(shown[0])
    beyond = norm.isf(0.01)  # of two normal distributions, each guessed where its likelihood is this far ahead
    wrong, truly = norm.sf(beyond), norm.sf(beyond - record_of(content).total.mu)  # of guesses at even chances
    assert 0.9 < seldom_surest * (wrong + truly) <= 1
    assert 0 <= rare - 100 * truly / (wrong + truly) < 1.01
    mu = record_of(content).total.mu
    mostly = brentq(lambda x: norm.sf(x - mu) - 9 * norm.sf(x), 0, 9)  # where 90 of 100 guesses of either are right
    assert 0.9 < seldom_mostly * (norm.sf(mostly - mu) + norm.sf(mostly)) <= 1
    assert 0 <= float(shown[1]) - 100 * told / (told + 1) < 0.011, "as whoever divides what is shown finds it"
    assert right < float(shown[1]) <= rare < float(shown[1]) + 1


@pytest.mark.parametrize(
    ("epsilon", "delta", "factor", "one_in"),
    [(1, 1e-6, "2.72", "1000000"), (0.001, 3e-7, "1.01", "3300000"), (3, 0.007, "20.1", "140"), (800, 0, "any", None)],
)
def test_what_epsilon_and_delta_bound_is_never_told_too_small(epsilon, delta, factor, one_in):
    """A program that publishes one row drawn at random is (0, 1/n)-private."""
    c = record_of({**document("unconditional"), "epsilon": epsilon, "delta": delta})
    words = outcome_in_words(c).replace("\u202f", "")
    assert f"by at most {factor}" in words
    assert (f"plus 1 in {one_in} (" in words) == ("one row at random has 1 in 3000" in words) == (one_in is not None)


@pytest.mark.parametrize(
    ("stated", "file"),
    [
        ("https://our.clinic/withdrawn.json", "withdrawn.json"),
        ("https://our.clinic/lists/withdrawn.json, https://our.clinic/lists/withdrawn.json.sig", "withdrawn.json"),
        ("https://our.clinic/withdrawn.json (and .sig)", "withdrawn.json"),
        ("ask the data board", "LIST"),
    ],
)
def test_the_command_takes_the_list_of_withdrawn_certificates_not_its_signature(stated, file):
    content = document("unconditional")
    content["issued"] |= {"status_list": stated}
    assert f"--status {file} " in answers(render_page(content))["How to check it"] + " "


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.0, "less than 1 time in 1 000 000"),
        (1e-6, "less than 1 time in 1 000 000"),
        (1.01e-6, "at most 1 time in 990 000"),
        (0.0123, "at most 1 time in 81"),
        (0.4, "at most 1 time in 2"),
        (0.6, "any number of times"),
        (1.0, "any number of times"),
    ],
)
def test_how_seldom_something_comes_is_never_told_too_rare(share, words):
    assert seldom(share).replace("\u202f", " ") == words


def test_no_promise_without_its_if():
    promises = of("conditional")["For one person"].split(". ")
    assert [promise.startswith("Provided that the assumptions hold, ") for promise in promises] == [True] * 3 + [False]
    assert of("seeded")["For one person"].startswith("Provided that no one can predict what the seed draws, ")
    assert "gains" not in of("seeded")["For one person"]
    assert of("seeded")["May it be published?"].startswith("No.")


def test_a_stage_that_looks_for_duplicates_is_not_taken_for_one_that_looks_for_people():
    steps = [("range", MinMaxScaler(ranges=(0, 1))), ("dedup", Deduplicator()), ("mean", GaussianMechanism())]
    declared = Pipeline(steps, domain=Domain(rows_per_unit=1)).fit(ROWS).certificate_.to_html()
    assert "(“dedup”) is no check" in answers(declared)["Who is protected"]
    assert "(“all”, “window”, “soft”) does not help" in of("bands")["Who is protected"]
    assert not any("Removing" in of(name)["Who is protected"] for name in ("conditional", "persons"))


def test_two_rows_of_one_person_are_guessed_no_better_than_said():
    """Of Gaussian noise two rows cost twice the mu; a ledger's limit is held against randomized response."""
    c = record_of(document("unconditional"))
    exact = norm.cdf(c.total.mu)
    assert exact <= right_of_two_rows(c) <= exact + 0.02
    shown = of("unconditional")["Who is protected"]
    assert f"right at most {times_in_100(right_of_two_rows(c))} times in 100, not" in shown
    assert "times in 100" not in of("conditional")["Who is protected"], "the table between may break what is assumed"
    for epsilon, delta in ((0.1, 0.0), (3.0, 1e-5), (800.0, 0.1)):
        attacked = delta + (1 - delta) / (1 + np.exp(-epsilon))  # which tells all with probability delta
        assert attacked <= right_at(epsilon, delta) <= min(1.0, attacked + 1e-8)


def test_a_signature_is_named_only_if_it_was_checked():
    keys = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
    one, key = mean(), keys.Ed25519PrivateKey.generate()
    signature = one.sign(key)
    page = one.to_html(signature=signature, public_key=key.public_key())
    assert f"{signature.key} (of its DER form)" in answers(page)["Made by"]
    options = "--signature certificate.json.sig --public-key public.pem"
    assert f"ppdp verify certificate.json {options}" in answers(page)["How to check it"]
    assert [Reader(page).text.count(f"ppdp {name} certificate.json {options}") for name in ("verify", "show")] == [2, 2]
    assert "certificate.json.sig, public.pem" in answers(page)["May it be published?"]
    assert "pip install '.[sign]'" in page
    assert ".sig" not in "".join(answers(one.to_html()).values())
    content = one.to_dict()
    content["issued"]["date"] = "2020-01-01T00:00:00+00:00"
    other = Certificate(content).to_html(signature=signature, public_key=key.public_key())
    assert "DOES NOT HOLD" in other
    with pytest.raises(InvalidParameter, match="public key"):
        one.to_html(signature=signature)


# ---------------------------------------------------------------- digits


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("range of a", "0.1 to 42.25", "0.1 to 42.25"),
        ("range of a", "-1.23456789 to 1.23456789", "-1.235 to 1.235, rounded outwards"),
        ("range of a", "-0.00012345678 to 123456.789", "-0.0001235 to 1.235E+5, rounded outwards"),
        ("range of a", "12345678 to 0.3333333333333333", "12345678 to 0.3334, rounded outwards"),
        ("range of a", "2019-01-01 to 2020-12-31", "2019-01-01 to 2020-12-31"),
        ("row_norm", "1.7320508075688772", "1.733, rounded up"),
        ("bins", "1.7320508075688772", "1.7320508075688772"),
    ],
)
def test_few_digits_that_stay_true(name, value, shown):
    assert ", ".join(filter(None, read_fact(FactRecord(name=name, value=value, origin="declared")).rounded)) == shown


def test_the_page_shows_few_digits_and_the_document_has_all():
    issued = mean()
    assert "0 to 0.3333333333333333" in issued.to_json()
    assert "0.3333333333333333" not in issued.to_html() + issued.to_text(full=True) + issued.to_model_card()
    assert "range of every column 0 to 0.3334, rounded outwards" in Reader(issued.to_html()).text


# ---------------------------------------------------------------- settings, checklist, glossary, paper


@pytest.mark.parametrize("name", ["unconditional", "on a ladder", "medians chosen", "nothing known", "a histogram"])
def test_every_public_parameter_of_every_step_is_listed(name):
    c = document(name)
    text = Reader(render_page(c)).text
    listed = text[text.index("Settings of the steps Every") : text.index("Checklist after NIST SP 800-226 What")]
    rungs = c["gate"]["ladder"]["rungs"] if c["gate"] and c["gate"]["ladder"] else []
    for part in (*c["steps"], *c["releases"], c["mechanism"], *rungs):
        for key, value in part["parameters"].items():
            assert f"{key} = " in listed or all(f"{key}: {inner} = " in listed for inner in value)
    assert ("of a list of more than 12 values" in listed) == (" values)" in listed)


def test_columns_are_named_and_stages_stand_in_their_order_in_the_settings():
    frame = pd.DataFrame(np.zeros((400, 2)), columns=["age", "dose"])
    steps = MinMaxScaler((0, 1)), MeanImputer(columns=["dose"], fit_mode="noisy"), GaussianMechanism()
    text = Reader(make_pipeline(*steps).fit(frame).certificate_.to_html()).text
    listed = text[text.index("Settings of the steps Every") : text.index("Checklist after NIST SP 800-226 What")]
    assert "columns = [dose]" in listed
    assert listed.index("MinMaxScaler") < listed.index("the noisy means") < listed.index("GaussianMechanism")


def test_the_foot_of_a_sheet_has_its_status_and_no_name_can_end_the_style():
    content = document("conditional")
    content["dataset"] = '</style><script>"}\\ * { color: red } é' + "x" * 90
    page = render_page(content)
    (foot,) = re.findall(r'@bottom-left { content: "(.*)"; white-space: pre-wrap; } }', page)
    assert set(re.sub(r"\\[0-9a-f]+ ", "", foot)) <= {*string.ascii_letters, *string.digits, *" .-"}
    read = re.sub(r"\\([0-9a-f]+) ", lambda one: chr(int(one[1], 16)), foot)
    data, digest, day = content["dataset"], content["digest"], content["issued"]["date"]
    first = f"CONDITIONAL on what is assumed, and on “Taken on trust” · digest {digest[:19]}… · {day[:10]}"
    assert read == f"{first}\nPrivacy certificate: {data[:90]}…"
    assert "script" not in Reader(page).tags


def test_the_glossary_has_the_words_of_the_page_and_no_others():
    page = Reader(render_page(document("unconditional"))).text.replace("’", "'")
    words, told = page.split("Words on this page ")
    assert [term for term, _ in terms_in(words)] == [term for term, said in GLOSSARY.items() if said in told]
    assert "The guarantee holds only if" not in told
    assert "gate A noisy" not in told
    assert all(said.endswith(".") and "\n" not in said for said in GLOSSARY.values())
    assert [term for term, _ in terms_in("The gate passed.")] == ["gate", "row"]
    assert [term for term, _ in terms_in("Sensitivity")] == ["sensitivity"], "at the beginning of a line as well"


def test_the_site_explains_a_word_of_the_page_in_the_same_sentence():
    lines = (ROOT / "docs/reference/glossary.md").read_text("utf-8").splitlines()
    rows = [re.fullmatch(r"\| \*\*(.+?)\*\* \| (.+?\.) \(\[.+\]\(.+\)\) \|", line) for line in lines if "**" in line]
    told = [(name, row[2]) for row in rows for name in row[1].split(", ")]
    names = [name.lower() for name, _ in told if name not in ("CONDITIONAL", "UNCONDITIONAL", "SEEDED")]
    assert len({*names}) == len(names), "a word stands there once"
    assert {name: said for name, said in told if name in GLOSSARY} == dict(GLOSSARY)


def test_a_pdf_is_printed_by_a_browser_or_refused_with_what_to_do(tmp_path, monkeypatch):
    one = certificate("unconditional")
    if any(map(formats.shutil.which, formats.BROWSERS)):
        one.save(tmp_path / "page.pdf")
        assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF-")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ExportError, match="no Chromium or Chrome on PATH") as refused:
        one.save(tmp_path / "other.pdf")
    assert "from any browser" in refused.value.fix
    assert not (tmp_path / "other.pdf").exists()
    broken = tmp_path / "chromium"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(ExportError, match="did not print"):
        one.save(tmp_path / "other.pdf")


def test_labels_and_words_of_the_issuer_are_escaped_once():
    X = np.random.default_rng(0).uniform(-1, 1, (3000, 1))
    labels = np.where(X[:, 0] > 0, ">50K", "R&D")
    pipe = make_pipeline(MinMaxScaler(ranges=(-1, 1)), LogisticRegression(("R&D", ">50K")), epsilon=8.0)
    with Ledger(epsilon=9.0, delta=1e-5):
        page = pipe.set_params(statements={"accuracy": "R&D's <test>"}).fit(X, labels).certificate_.to_html()
    assert "of “R&amp;D”" in page
    assert "of “&gt;50K”" in page
    assert "R&amp;D’s &lt;test&gt;" in page
    assert "&amp;amp;" not in page
    assert "&amp;lt;" not in page
