"""The certificate for people: what stands on the page, and that nothing in a document can become markup."""

import base64
import copy
import hashlib
import math
import re

import pytest
from documents import detection_power, points_of, render_fragment, render_page
from pages import Reader, every_kind, real_documents, replaced

from ppdp.certificate import Certificate
from ppdp.certificate.facts import Origin, read_source
from ppdp.certificate.pages.statement import printable
from ppdp.core.figures import figure

STRAIGHT = str.maketrans("“”’", "'''")  # quotation marks as they are typed
FREE_TEXT = "\x1f<script>alert('&amp;\"')</script>{{ 7 * 7 }}{% raw %}"

both = pytest.mark.parametrize("render", [render_page, render_fragment])


@pytest.fixture(scope="module", name="documents")
def documents_of_every_kind():
    return real_documents()


def strings_of(value, path=()):
    """Every string of a document with its place."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from strings_of(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from strings_of(inner, (*path, i))


# ---------------------------------------------------------------- form


@every_kind
@both
def test_is_well_formed_and_loads_nothing(documents, kind, render):
    page = render(documents[kind])
    reader = Reader(page)
    assert not {"script", "link", "img", "iframe", "object", "form", "base"} & set(reader.tags)
    assert not {"src", "href", "srcset", "action", "data"} & {name for _, name, _ in reader.attributes}
    assert not [name for _, name, _ in reader.attributes if name.startswith("on")]
    seen = re.sub("sha256-[^']+", "", page)  # by chance anything may stand in a hash
    assert not re.search(r"https?:|//\w|url\(|@import|expression\(|javascript:", seen)


@every_kind
def test_page_is_one_document_that_declares_its_encoding(documents, kind):
    page = render_page(documents[kind])
    reader = Reader(page)
    assert page.startswith("<!DOCTYPE html>")
    assert [reader.tags.count(tag) for tag in ("html", "head", "body", "main", "h1", "style")] == [1] * 6
    assert ("meta", "charset", "utf-8") in reader.attributes
    assert ("html", "lang", "en") in reader.attributes
    assert page.encode("utf-8").decode("utf-8") == page


@every_kind
def test_the_page_forbids_a_browser_all_but_its_own_style(documents, kind):
    page = render_page(documents[kind])
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]+)">', page)
    style = re.search("<style>(.*)</style>", page, re.DOTALL)[1]
    own = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{own}'; base-uri 'none'; form-action 'none'"
    assert page.index(policy) < page.index("<style>")
    assert "style" not in {name for _, name, _ in Reader(page).attributes}, "which the policy forbids"


@every_kind
def test_fragment_cannot_restyle_a_notebook_nor_be_restyled_by_class(documents, kind):
    reader = Reader(render_fragment(documents[kind]))
    assert reader.tags[0] == "div"
    assert not {"style", "html", "head", "body"} & set(reader.tags)
    assert not {"class", "id"} & {name for _, name, _ in reader.attributes}


@every_kind
def test_fragment_takes_the_notebooks_ink(documents, kind):
    styles = [value for _, name, value in Reader(render_fragment(documents[kind])).attributes if name == "style"]
    painted = [s for s in styles if re.search(r"(?<![\w-])color:(?!inherit)", s)]
    assert len(painted) == 1, "only the badge has its own text colour"
    assert "background:#" in painted[0], "and its own ground"


@every_kind
def test_certificate_shows_these_pages(documents, kind):
    certificate = Certificate(documents[kind])
    assert certificate.to_html() == render_page(documents[kind])
    assert certificate._repr_html_() == render_fragment(documents[kind])


def test_rendering_changes_nothing(documents):
    for document in documents.values():
        before = copy.deepcopy(document)
        render_page(document), render_fragment(document)
        assert document == before


# ---------------------------------------------------------------- hostile text


@both
@every_kind
def test_no_string_of_a_document_becomes_markup(documents, kind, render):
    fixed = {"schema", "status", "way", "rule", "kind", "invalid", "digest", "sha256"}
    fixed |= {"formula", "statistic", "purpose"}
    document = documents[kind]
    hostile = document
    for path, _ in strings_of(document):
        if path[-1] not in fixed:
            hostile = replaced(hostile, path, FREE_TEXT)
    reader = Reader(render(hostile))
    assert reader.text.translate(STRAIGHT).count("alert('&amp;") >= 5
    assert "script" not in reader.tags
    assert set(reader.tags) <= {*Reader(render(document)).tags, "dt", "dd"}


@pytest.mark.parametrize(
    "path",
    [
        ("dataset",),
        ("adjacency",),
        ("facts", 0, "name"),
        ("facts", 0, "value"),
        ("facts", 0, "origin"),
        ("steps", 1, "name"),
        ("steps", 1, "class"),
        ("steps", 1, "page"),
        ("steps", 2, "conditions", 0, "statement"),
        ("mechanism", "name"),
        ("alternatives", 0, "route"),
        ("alternatives", 0, "reason"),
        ("not_covered", 0),
        ("versions", "numpy"),
    ],
)
def test_hostile_text_is_shown_as_text(documents, path):
    reader = Reader(render_page(replaced(documents["gated"], path, FREE_TEXT)))
    assert FREE_TEXT.replace("\x1f", "\ufffd") in reader.text.translate(STRAIGHT)


def test_hostile_names_of_parameters_and_arrays_are_shown_as_text(documents):
    document = copy.deepcopy(documents["gated"])
    document["steps"][0]["parameters"] = {FREE_TEXT: 1.0}
    document["mechanism"]["parameters"] = {FREE_TEXT: FREE_TEXT}
    document["released"]["names"] = {FREE_TEXT: [5]}
    reader = Reader(render_page(document))
    assert "script" not in reader.tags
    assert reader.text.count("alert") == 4


def test_invisible_characters_can_neither_hide_nor_reorder(documents):
    spoof = "safe\u202e\u2066\u200b\x00\ud800\n"
    for render in (render_page, render_fragment):
        page = render(replaced(documents["conditional"], ("reasons", 0), spoof))
        assert "safe" + "\ufffd" * 6 in page
        page.encode("utf-8")
    assert printable({"é 漢字": ("a b", 1, None, True)}) == {"é 漢字": ["a b", 1, None, True]}


# ---------------------------------------------------------------- first words


ONLY_IF = r"Guarantee, if the \d+ points under “Taken on trust” are true:"


@every_kind
@both
def test_first_words_are_status_and_guarantee(documents, kind, render):
    c = documents[kind]
    pair = f"(ε, δ) = ({figure(c['epsilon'])}, {figure(c['delta'])})"
    promise = {
        "UNCONDITIONAL": f"{pair}-differential privacy, end to end",
        "CONDITIONAL": f"if what is assumed below holds, {pair}-differential privacy, end to end",
        "SEEDED": "nothing is protected; without a seed",
    }[c["status"]]
    first, text = c["status"], Reader(render(c)).text
    if render is render_page:  # a title, and what ppdp is; a word that people take for more stands behind
        title, _, text = text.partition(" Terms: annex (later sheets). ")
        assert re.fullmatch("Privacy certificate.* ppdp is a program .*", title)
        first = ONLY_IF if first == "UNCONDITIONAL" else first
    assert re.match(f"{first} {re.escape(promise)}", text)
    assert ("-differential privacy, end to end" in render(c)) == (c["status"] != "SEEDED")


@both
def test_a_promise_is_never_made_without_its_reservation(documents, render):
    def promise(kind):
        return re.search(
            r"(Provided that [^,]*, )?(the attacker|an attacker.s test .*?) detects at most",
            Reader(render(documents[kind])).text,
            re.I,
        )

    assert promise("unconditional")[1] is None
    assert promise("gated")[1] is None
    assert promise("conditional")[1] == "Provided that the assumptions hold, "
    assert promise("classes read")[1] == "Provided that the assumptions hold, "
    provided = "Provided that no one can predict what the seed draws"
    assert promise("seeded")[1] == f"{provided}, "
    assert promise("seeded, assumed")[1] == f"{provided} and the assumptions hold, "


# ---------------------------------------------------------------- numbers


def numbers_that_matter(c):
    """What a reader must be able to find: guarantee, noise, sensitivity, cost, sizes, gate."""
    yield from (c["epsilon"], c["delta"], c["total"]["mu"])
    for one in (*c["releases"], *([c["mechanism"]] if c["mechanism"] else [])):
        yield from (one["sensitivity"], one["noise_scale"], one["mu"], one["size"])
    if c["mechanism"]:
        yield from (c["mechanism"]["bound"], c["mechanism"]["steps"]) if c["mechanism"]["steps"] > 1 else ()
    if c["gate"]:
        yield from (c["gate"]["threshold"], c["gate"]["noise_scale"], c["gate"]["mu"], c["gate"]["delta"])
    yield from (a["noise_scale"] for a in c["alternatives"] if a["noise_scale"] is not None)
    yield from (point.rows for point in points_of(c))
    yield from (detection_power(c, alarm) for alarm in (0.01, 0.05))


@every_kind
def test_every_number_of_the_document_is_on_the_page(documents, kind):
    assert set(numbers_that_matter(documents[kind])) <= Reader(render_page(documents[kind])).values


@every_kind
@both
def test_what_is_shown_is_the_number_behind_it(documents, kind, render):
    raised = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
    shown = Reader(render(documents[kind])).data
    assert len(shown) >= 4
    for value, text in shown:
        text = text.replace("\u202f", "").replace("\u00a0×\u00a010", "e").replace(" rows", "")
        text = re.sub(r"^10(?=[⁻⁰¹²³⁴⁵⁶⁷⁸⁹])", "1e", text).translate(raised)
        if text.endswith("%") and value < 1:
            assert 0 <= float(text.removesuffix("\u00a0%")) / 100 - value < 1e-4, "powers are rounded up"
        else:
            assert math.isclose(float(text.removesuffix("\u00a0%")), value, rel_tol=1e-3), (value, text)


@every_kind
def test_guarantees_are_never_shown_smaller_than_they_are(documents, kind):
    certificate = Certificate(documents[kind])
    rows = re.findall(
        r'<data value="([^"]+)">10⁻[^<]+</data></div></td><td[^>]*><div><data value="([^"]+)">([\d.]+)</data>',
        render_page(documents[kind]),
    )
    assert rows
    for delta, epsilon, shown in rows:
        assert certificate.epsilon_at(float(delta)) <= float(epsilon) * (1 + 1e-9)
        assert float(shown) >= float(epsilon)


@pytest.mark.parametrize("value", [1e-6, 2.5e-17, 0.00123456, 0.1, 1, 7874, 48.1266, 90.80821, 12345, 4.2e9, 1e300])
def test_figures_round_and_never_down_where_it_matters(value):
    for upward in (False, True):
        text = figure(value, upward=upward).replace("\u202f", "").replace("\u00a0×\u00a010", "e")
        text = re.sub(r"^10(?=[⁻⁰¹²³⁴⁵⁶⁷⁸⁹])", "1e", text)
        number = float(text.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")))
        assert math.isclose(number, value, rel_tol=1.1e-3)
        assert number >= value or not upward


# ---------------------------------------------------------------- contents


@every_kind
def test_page_names_everything(documents, kind):
    c, text = documents[kind], Reader(render_page(documents[kind])).text.translate(STRAIGHT)
    for step in c["steps"]:
        assert {step["name"], step["class"], step["way"], step["page"]} <= set(re.findall(r"[\w.-]+", text))
        assert all(condition["statement"] in text for condition in step["conditions"])
    for point in points_of(c):
        assert ", ".join(point.labels).replace("\u00a0", " ") in text
    for fact in c["facts"]:
        assert fact["value"] in text or (fact["name"] == "gaps" and "any row may have some, in any column" in text)
        declared = f"declared, step {c['mechanism']['name']!r}" if c["mechanism"] else ""
        read = read_source(fact["origin"]).origin is Origin.TABLE
        assert ("read off the table" if read else fact["origin"].replace("parameter of the model", declared)) in text
    assert all(words in text for words in c["not_covered"])
    assert all(a["route"] in text and a["reason"] in text for a in c["alternatives"])
    assert all(f"{name} {version}" in text for name, version in c["versions"].items())
    assert all(name in text for name in c["released"]["names"])
    assert all(words in text for words in (c["digest"], c["schema"], c["released"]["sha256"]))
    assert "ppdp verify certificate.json" in text
