"""Every bound has a page with its proof, and the pages and the code name each other."""

import re
from functools import cache
from pathlib import Path

import pytest

from ppdp import Adjacency, Domain
from ppdp.bounds import FORMULAS
from ppdp.mechanisms.base import Mechanism
from ppdp.testing import REGISTRY

ROOT = Path(__file__).parents[2]
THEORY = ROOT / "docs" / "theory"
INDEX = THEORY / "README.md"
PAGES = sorted(page for page in THEORY.glob("*.md") if page != INDEX)
HEADINGS = ["Statement", "Assumptions", "Proof", "What is wrong in print", "Numbers", "Code"]


@cache
def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def listed(page: Path) -> list[str]:
    """Formula ids on the page's line "Formulas: ..."."""
    line = re.search(r"^Formulas: (.*)$", text(page), flags=re.M)
    return re.findall(r"`([^`]+)`", line[1]) if line else []


def test_formulas_say_what_they_compute_and_are_proved_on_their_page_which_links_their_code() -> None:
    for formula in (one for one in FORMULAS.values() if one.shipped):  # tests and pages register others
        page = THEORY / f"{formula.page}.md"
        assert (formula.function.__doc__ or "").strip(), formula.id
        assert formula.id in listed(page)
        assert f"](../../{formula.function.__module__.replace('.', '/')}.py)" in text(page), formula.id


def test_pages_prove_their_own_formulas_only() -> None:
    for page in PAGES:
        assert {FORMULAS[name].page for name in listed(page)} <= {page.stem}


def test_pages_have_their_parts_in_order() -> None:
    for page in (page for page in PAGES if "\nFormulas: " in text(page)):
        headings = re.findall(r"^## (.*)$", text(page), flags=re.M)
        assert [heading for heading in headings if heading in HEADINGS] == HEADINGS, page.stem


def test_index_leads_to_the_pages_and_lists_their_formulas() -> None:
    for page in PAGES:
        rows = [line for line in text(INDEX).splitlines() if line.startswith("| [") and f"]({page.name})" in line]
        assert [re.findall(r"`([^`/]+)`", row) for row in rows] == [listed(page)], page.stem


def test_code_refers_to_pages_that_exist() -> None:
    sources = "\n".join(text(source) for source in (ROOT / "ppdp").rglob("*.py"))
    named = set(re.findall(r"docs/theory/([\w-]+)\.md", sources)) | {formula.page for formula in FORMULAS.values()}
    assert named <= {page.stem for page in PAGES}


@pytest.mark.parametrize("kind", REGISTRY.values(), ids=list(REGISTRY))
def test_stages_and_mechanisms_say_where_their_formulas_are_proved(kind: type) -> None:
    facts = {"n_rows": 10_000, "n_features": 3, "row_norm": 1.0, "entry_bound": 1.0, "classes": (0, 1)}
    gaps = None if getattr(kind, "fills_gaps", False) else 0
    domain, one = Domain(**facts, y_range=(0.0, 1.0), max_missing=gaps), kind.example()
    if issubclass(kind, Mechanism):
        formulas = [one.query_spec(domain).formula]
    else:
        formulas = [way.formula for way in one.fit_modes(domain, Adjacency.replace().distance)]
    assert formulas
    named = set(re.findall(r"docs/theory/([\w-]+)\.md", kind.__doc__ or ""))
    assert {FORMULAS[name].page for name in formulas} <= named


LETTERS = re.compile(r"[αβγδεηκλμνπρστφψωΔΣΦ‖≤≥√∑]|\b[nd] =|\w_\d")


def test_pages_begin_with_plain_sentences() -> None:
    """What it shows, for whom, and what follows for a user, before any letter."""
    for page in PAGES:
        title, opening = text(page).split("\n\n")[:2]
        words = opening.split()
        assert title.startswith("# "), page.stem
        assert opening[0].isalpha(), page.stem
        assert 30 <= len(words) <= 90, page.stem
        assert 2 <= len(re.findall(r"[.](?:\s|$)", opening)) <= 5, page.stem
        assert "for" in words, page.stem
        assert not LETTERS.search(opening), page.stem


def test_the_map_of_lemmas_is_that_of_the_pages() -> None:
    """A page that uses a lemma of another one stands behind its name in the index, and no other does."""
    words = {page: " ".join(text(page).split()) for page in PAGES}
    entries = re.findall(r"^\* (.*(?:\n  .*)*)", text(INDEX).split("## Which page uses which lemma")[1], flags=re.M)
    for entry in entries:
        homes, users = entry.split(":")[0], entry.split(":", 1)[1]
        for name in re.findall(r"\*\*((?:Lemma|Theorem) [A-Z])\*\*", homes):
            uses = re.compile(rf"\b{name}\b")
            named = {page.name for page in PAGES if uses.search(words[page])}
            proved = {page.name for page in PAGES if f"**{name}" in text(page)}
            assert set(re.findall(r"\]\((.*?)\)", users)) == named - proved, name


def test_sources_of_the_pages_can_be_cited() -> None:
    references = (THEORY / "references.bib").read_text("utf-8").lower()
    told = [text(page).split("## Sources")[1] for page in PAGES if "## Sources" in text(page)]
    titles = {" ".join(title.split()).lower() for sources in told for title in re.findall(r"\*([^*]+)\*", sources)}
    assert len(titles) > 20
    assert [title for title in titles if f"title = {{{title}}}" not in references] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_with_a_proof_lead_to_its_tests(page):
    text = page.read_text("utf-8")
    links = re.findall(r"\]\(\.\./\.\./(tests/[\w/]+\.py)\)", text)
    assert links or not re.search(r"\n## (Statement|Proof)", text)
    assert all((ROOT / link).is_file() for link in links)
