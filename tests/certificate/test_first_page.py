"""Page one, the checklist and the glossary: what a reviewer asks is answered, and nothing more than is known."""

import re
import string
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from documents import record_of, render_page
from pages import ROWS, Reader, answers, mean
from scipy.stats import norm
from zoo import certificate, document

from ppdp import Certificate, Domain, Pipeline, make_pipeline
from ppdp.certificate.pages.glossary import GLOSSARY, used
from ppdp.certificate.pages.summary import _seldom
from ppdp.certificate.pages.tradeoff import missed, right_at, right_of_two_rows, times_in_100
from ppdp.certificate.pages.trust import shortened
from ppdp.certificate.record import Fact
from ppdp.certificate.share import paper
from ppdp.exceptions import ExportError, InvalidParameter
from ppdp.mechanisms import GaussianMechanism
from ppdp.transformers import Deduplicator, MeanImputer, MinMaxScaler

QUESTIONS = (
    "For one person",
    "Who is protected",
    "Against whom",
    "Released",
    "Altered rows",
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
    assert re.search(r"an attacker who must guess .* times? in 100|right every time", found["For one person"], re.I)
    assert found["For one person"].endswith("Your organisation decides.") == (name != "seeded")


def test_a_rare_result_tells_more_as_page_one_says_and_the_second_sheet():
    content = document("unconditional")
    found = of("unconditional")
    guesses = re.search(
        r"most (\d+) times in 100; .* gains at most (\d+) right guesses in 100\. At even chances, .*\(falsely in 1 of"
        r" 100 cases\) does so rightly in at most ([\d.]+) of 100: at most (\d+) of 100 claims are right; claims that"
        r" are right more than 90 times in 100 come in (less than|at most) 1 of [\d\s]+ true cases",
        found["For one person"],
    )
    right, more, rare = (int(guesses[i]) for i in (1, 2, 4))
    assert right - more == 50
    power = 1 - missed(record_of(content), 0.01)
    table = r"Right alarms, at most 1\s% ([\d.]+)\s% ([\d.]+)\s%"
    shown = re.search(table, Reader(render_page(content)).text).groups()
    assert 0 <= float(shown[0]) - 100 * power < 0.01
    told = float(shown[0])
    assert told == float(guesses[3])
    assert 0 <= float(shown[1]) - 100 * told / (told + 1) < 0.011, "as whoever divides what is shown finds it"
    assert right < float(shown[1]) <= rare < float(shown[1]) + 1


def test_what_releases_nothing_has_a_page_as_well():
    pipe = make_pipeline(MinMaxScaler(ranges=(0, 1)), epsilon=1.0).fit(ROWS)
    found = answers(pipe.certificate_.to_html())["For one person"]
    assert re.search(r"gains at most [01] right guesses in 100.* come in less than 1 of 1\s000\s000 true cases", found)


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.0, "less than 1 of 1 000 000"),
        (1e-6, "less than 1 of 1 000 000"),
        (1.01e-6, "at most 1 of 990 000"),
        (0.0123, "at most 1 of 81"),
        (0.4, "at most 1 of 2"),
        (0.6, "any number of"),
        (1.0, "any number of"),
    ],
)
def test_how_seldom_something_comes_is_never_told_too_rare(share, words):
    assert _seldom(share).replace("\u202f", " ") == f"{words} true cases"


@pytest.mark.parametrize(("name", "provided"), [("conditional", True), ("seeded", False)])
def test_what_a_release_adds_is_promised_with_its_if_or_not_at_all(name, provided):
    found = of(name)["For one person"]
    assert ("who suspected it" in found and "times in 100 come in" in found) == provided
    assert "Who suspected" not in found


def test_a_title_and_what_ppdp_is_stand_before_the_claim():
    content = document("three rows each")
    text = Reader(render_page(content)).text
    assert text.startswith("Privacy certificate: people ppdp is a program that adds noise to results")
    assert text.index("ppdp is a program") < text.index("UNCONDITIONAL (ε, δ)")


def test_no_promise_without_its_if():
    assert of("conditional")["For one person"].startswith("Provided that the assumptions hold, an attacker")
    assert of("conditional")["May it be published?"].startswith("Not yet. Yes when (a) what is assumed holds, which")
    seeded = of("seeded")
    assert seeded["For one person"].startswith("Provided that nobody can predict the noise, an attacker")
    assert seeded["Against whom"].startswith("Nobody")
    assert seeded["May it be published?"].startswith("No.")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "unconditional",
            "Each of the 3000 rows of the table. Nobody has confirmed that each is a different person. Protected alike:"
            " what the rows hold, and whether a named person is in the table; the number of rows, 3000, is public. A"
            " person with two rows has weaker protection",
        ),
        ("three rows each", "Every person in the table “people”, at most 3 rows each (declared, not checked). Pro"),
        ("added rows", "Every person, in the table or not, at most 2 rows each (declared, not checked). Pro"),
        ("persons", "Every person in the table (one id = one person), with all their rows. At most 3"),
        ("changed signs", "Only how far the values of any one row are off"),
    ],
)
def test_who_is_protected_on_whose_word(name, words):
    said = of(name)["Who is protected"]
    assert said.startswith(words)
    assert ("whether a named person is in the table" in said) == (name != "changed signs")
    assert ("the number of rows, 3000, is public" in said) == (name in ("unconditional", "three rows each"))


def test_a_stage_that_looks_for_duplicates_is_not_taken_for_one_that_looks_for_people():
    assert "Removing duplicates (“dedup”) does not help: the two may differ." in of("unconditional")["Who is protected"]
    assert "(“all”, “window”, “soft”) does not help" in of("bands")["Who is protected"]
    steps = [("range", MinMaxScaler(ranges=(0, 1))), ("dedup", Deduplicator()), ("mean", GaussianMechanism())]
    declared = Pipeline(steps, domain=Domain(rows_per_unit=1)).fit(ROWS).certificate_.to_html()
    said = "Removing duplicates (“dedup”) is no check of one row each: it looks for equal rows, not for people."
    assert said in answers(declared)["Who is protected"]
    assert not any("Removing" in of(name)["Who is protected"] for name in ("conditional", "persons"))


def test_which_file_belongs_to_the_page():
    found = of("unconditional")["May it be published?"]
    assert found.startswith(
        "Not yet. Yes when (a) the issuer confirms in writing what “Taken on trust” asks, and lists what else of these"
    )
    assert re.search(
        r"\(b\) “How to check it” succeeds; \(c\) your organisation accepts that list, “Nobody’s word”, “Not"
        r" covered”, “For one person”, and the accuracy on other people \(ask the issuer\); \(d\) it is lawful"
        r"\. Then publish the model, as",
        found,
    )
    assert "Nothing else: it may tell of private rows. The model in another format: only if made" in found
    assert ".parquet" not in found
    for name, first in (
        ("rows", "the released rows, as the .parquet table"),
        ("a histogram", "the noisy answer, as the .zip file or folder that ppdp exported or the .parquet table"),
        ("transformer-ended", "the fitted steps, as the .zip file"),
    ):
        assert first in of(name)["May it be published?"]
        assert "model" not in of(name)["May it be published?"]


def test_what_holds_of_people_in_general_is_not_hidden():
    found = of("unconditional")["Not covered"]
    assert "whether a run stops (a faulty entry); this one did not" in found
    assert "what holds of people in general, and so of anyone" in found
    two = times_in_100(right_of_two_rows(record_of(document("unconditional"))))
    group = f"a family or group: protected less than one person (two people: right at most {two} times in 100)"
    assert group in found
    assert Reader(render_page(document("unconditional"))).text.count(group) == 2, "also where the details stand"
    assert "(two people" not in of("conditional")["Not covered"], "the table between may break what is assumed"
    assert "several changes: protected less than one " in of("changed signs")["Not covered"]
    assert "whether a run stops" not in of("classes read")["Not covered"], "it repairs what is invalid"
    assert "whether a run stops (a faulty entry, a row without an id, too many rows)" in of("persons")["Not covered"]


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


def test_who_made_it_when_and_how_to_check_it(tmp_path):
    plain = answers(mean().to_html())
    assert plain["Made by"].startswith("The certificate does not say who is responsible. Made on ")
    assert "without it, the author is unproven" in plain["Made by"]
    asked = "Have {} confirm every point but “Nobody’s word”, and say where each limit, label and setting comes from."
    assert f"nobody is named as responsible. {asked.format('the issuer')}" in plain["Taken on trust"]
    named = mean(responsible="Ann Author, Clinic", purpose="Planning")
    found = answers(named.to_html())
    assert found["Made by"].startswith("Responsible: “Ann Author, Clinic”. Made on ")
    assert (
        f"on {named['issued']['date'][:10]} (UTC), with ppdp {named['versions']['ppdp']}. Who ran" in found["Made by"]
    )
    asked = (
        "Have “Ann Author” confirm every point but “Nobody’s word”, and say where each limit, label and setting comes"
    )
    assert asked in found["Taken on trust"]
    assert (
        "Telephone “Ann Author” (number known from elsewhere), have the digest read out; if different, refuse."
        in found["How to check it"]
    )
    assert "Purpose: Planning" in found["Released"]
    assert named.digest in found["How to check it"]


def test_a_signature_is_named_only_if_it_was_checked():
    keys = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
    one, key = mean(), keys.Ed25519PrivateKey.generate()
    signature = one.sign(key)
    page = one.to_html(signature=signature, public_key=key.public_key())
    assert answers(page)["Made by"].endswith(f"read out the key by telephone. {signature.key}")
    options = "--signature certificate.json.sig --public-key public.pem"
    assert f"ppdp verify certificate.json {options} ppdp verify FILE Both must" in answers(page)["How to check it"]
    assert f"ppdp show certificate.json {options} --pdf again.pdf" in answers(page)["How to check it"]
    assert "certificate.json, certificate.json.sig, public.pem; this page" in answers(page)["May it be published?"]
    assert ".sig" not in "".join(answers(one.to_html()).values())
    installed = "pip install '.[sign]' installs it. Then, where certificate.json lies, ppdp verify certificate.json"
    assert f"{installed} {options}" in Reader(page).text
    assert "pip install . installs it" in Reader(one.to_html()).text
    assert " and this digest, the first one also the key above" in answers(page)["How to check it"]
    content = one.to_dict()
    content["issued"]["date"] = "2020-01-01T00:00:00+00:00"
    other = Certificate(content).to_html(signature=signature, public_key=key.public_key())
    assert "DOES NOT HOLD" in other
    with pytest.raises(InvalidParameter, match="public key"):
        one.to_html(signature=signature)


def test_what_people_say_is_text():
    content = document("unconditional")
    content["issued"] |= {"responsible": "<script>x</script>", "purpose": "<b>y"}
    page = render_page(content)
    assert "script" not in Reader(page).tags
    assert "<script>x</script>" in answers(page)["Made by"]


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
    assert shortened(Fact(name=name, value=value, origin="declared")) == shown


def test_the_page_shows_few_digits_and_the_document_has_all():
    issued = mean()
    assert "0 to 0.3333333333333333" in issued.to_json()
    assert "0.3333333333333333" not in issued.to_html() + issued.to_text(full=True) + issued.to_model_card()
    assert "range of every column 0 to 0.3334, rounded outwards" in Reader(issued.to_html()).text


# ---------------------------------------------------------------- settings, checklist, glossary, paper


def test_page_one_says_where_all_facts_and_settings_stand_and_there_they_are():
    page = render_page(document("unconditional"))
    pointer = "All facts and settings stand below."
    assert pointer in answers(page)["Taken on trust"]
    assert "<h2>Public facts</h2>" in page
    wide = make_pipeline(MinMaxScaler([(0, 1 + i) for i in range(60)]), GaussianMechanism()).fit(np.zeros((300, 60)))
    assert (
        "All facts (declared ones beyond the first 50: in certificate.json) and settings stand below."
        in (answers(wide.certificate_.to_html())["Taken on trust"])
    )


def test_the_facts_of_persons_are_those_of_page_one():
    text = Reader(render_page(document("persons"))).text
    facts = text[text.index("Public facts The derivation") : text.index("Settings of the steps Every")]
    assert "whose a row is one id is always one person, and nobody has two ids declared" in facts
    assert "settings all settings of the steps were chosen without looking at these rows declared" in facts
    assert "rows kept of all people, at most 4000" in facts
    assert "chosen by whoever ran the fit; the run itself keeps no more rows of a person" in facts
    assert text.count("if more rows than the limit are left, the run stops") == 2, (
        "among the facts and in the checklist"
    )


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
    steps = MinMaxScaler((0, 1)), MeanImputer(columns=["dose"], statistics="noisy"), GaussianMechanism()
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


def test_the_checklist_says_what_only_the_organisation_can_answer():
    text = Reader(render_page(document("unconditional"))).text
    asked = text[text.index("Checklist after NIST SP 800-226 What") :]
    for topic in ("Unit of privacy", "Bias", "Side channels", "Collection of the data", "Floating point", "Randomness"):
        assert topic in asked
    assert "Bias Not covered." in asked
    assert (
        "What may be learned from a run that breaks off on a faulty entry, from its running time and the memory"
        in asked
    )
    assert "No seed was given" in asked
    seeded = Reader(render_page(document("seeded"))).text
    assert "The noise came from a seed: nothing is protected." in seeded
    theirs = Reader(render_page(document("diffprivlib's naive Bayes"))).text
    assert "drawn by another library" in theirs


def test_the_glossary_has_the_words_of_the_page_and_no_others():
    page = Reader(render_page(document("unconditional"))).text.replace("’", "'")
    words, told = page.split("Words on this page ")
    assert [term for term, _ in used(words)] == [term for term, said in GLOSSARY.items() if said in told]
    assert "The guarantee holds only if" not in told
    assert "gate A noisy" not in told
    assert all(said.endswith(".") and "\n" not in said for said in GLOSSARY.values())
    assert [term for term, _ in used("Sensitivity")] == ["sensitivity"], "at the beginning of a line as well"


def test_the_site_explains_a_word_of_the_page_in_the_same_sentence():
    lines = (ROOT / "docs/reference/glossary.md").read_text("utf-8").splitlines()
    rows = [re.fullmatch(r"\| \*\*(.+?)\*\* \| (.+?\.) \(\[.+\]\(.+\)\) \|", line) for line in lines if "**" in line]
    told = [(name, row[2]) for row in rows for name in row[1].split(", ")]
    names = [name.lower() for name, _ in told if name not in ("CONDITIONAL", "UNCONDITIONAL", "SEEDED")]
    assert len({*names}) == len(names), "a word stands there once"
    assert {name: said for name, said in told if name in GLOSSARY} == dict(GLOSSARY)


def test_a_pdf_is_printed_by_a_browser_or_refused_with_what_to_do(tmp_path, monkeypatch):
    one = certificate("unconditional")
    if any(map(paper.shutil.which, paper.BROWSERS)):
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


def test_records_of_the_first_form_say_that_they_do_not_know():
    first = record_of({**document("unconditional"), "issued": None})
    assert first.issued is None
    found = answers(render_page({**document("unconditional"), "issued": None}))
    assert found["Spent on these people so far"].startswith("Unknown: the certificate has an earlier form")
    assert "Made at an unknown time" in found["Made by"]
