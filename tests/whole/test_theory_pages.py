"""Every bound has a page with its proof, and the pages and the code name each other."""

import re
from pathlib import Path

import pytest

from ppdp import Adjacency, Domain
from ppdp.bounds import FORMULAS
from ppdp.core.formula import Formula
from ppdp.mechanisms.base import Mechanism
from ppdp.testing import REGISTRY

ROOT = Path(__file__).parents[2]
THEORY = ROOT / "docs" / "theory"
INDEX = THEORY / "README.md"
PAGES = sorted(page for page in THEORY.glob("*.md") if page != INDEX)
HEADINGS = ["Statement", "Assumptions", "Proof", "What is wrong in print", "Numbers", "Code"]

every_formula = pytest.mark.parametrize("formula", FORMULAS.values(), ids=list(FORMULAS))
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def listed(page: Path) -> list[str]:
    """Formula ids on the page's line "Formulas: ..."."""
    line = re.search(r"^Formulas: (.*)$", text(page), flags=re.M)
    return re.findall(r"`([^`]+)`", line[1]) if line else []


@every_formula
def test_formula_says_what_it_computes_and_is_proved_on_its_page_which_links_its_code(formula: Formula) -> None:
    page = THEORY / f"{formula.page}.md"
    assert (formula.function.__doc__ or "").strip()
    assert formula.id in listed(page)
    assert f"](../../{formula.function.__module__.replace('.', '/')}.py)" in text(page)


@every_page
def test_page_proves_its_own_formulas_only(page: Path) -> None:
    assert {FORMULAS[name].page for name in listed(page)} <= {page.stem}


@pytest.mark.parametrize("page", [p for p in PAGES if "\nFormulas: " in text(p)], ids=lambda page: page.stem)
def test_page_has_its_parts_in_order(page: Path) -> None:
    headings = re.findall(r"^## (.*)$", text(page), flags=re.M)
    assert [heading for heading in headings if heading in HEADINGS] == HEADINGS


@every_page
def test_index_leads_to_the_page_and_lists_its_formulas(page: Path) -> None:
    (row,) = [line for line in text(INDEX).splitlines() if line.startswith("|") and f"]({page.name})" in line]
    assert re.findall(r"`([^`/]+)`", row) == listed(page)


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
        formulas = [one.question(domain).formula]
    else:
        formulas = [way.formula for way in one.ways(domain, Adjacency.replace().distance)]
    assert formulas
    named = set(re.findall(r"docs/theory/([\w-]+)\.md", kind.__doc__ or ""))
    assert {FORMULAS[name].page for name in formulas} <= named


LETTERS = re.compile(r"[αβγδεηκλμνπρστφψωΔΣΦ‖≤≥√∑]|\b[nd] =|\w_\d")


@every_page
def test_page_begins_with_plain_sentences(page: Path) -> None:
    """What it shows, for whom, and what follows for a user, before any letter."""
    title, opening = text(page).split("\n\n")[:2]
    words = opening.split()
    assert title.startswith("# ")
    assert opening[0].isalpha()
    assert 30 <= len(words) <= 90
    assert 2 <= len(re.findall(r"[.](?:\s|$)", opening)) <= 5
    assert "for" in words
    assert not LETTERS.search(opening)


def test_the_map_of_lemmas_is_that_of_the_pages() -> None:
    """A page that uses a lemma of another one stands behind its name in the index, and no other does."""
    entries = re.findall(r"^\* (.*(?:\n  .*)*)", text(INDEX).split("## Which page uses which lemma")[1], flags=re.M)
    for entry in entries:
        homes, users = entry.split(":")[0], entry.split(":", 1)[1]
        for name in re.findall(r"\*\*((?:Lemma|Theorem) [A-Z])\*\*", homes):
            uses = re.compile(rf"\b{name}\b")
            named = {page.name for page in PAGES if uses.search(" ".join(text(page).split()))}
            proved = {page.name for page in PAGES if f"**{name}" in text(page)}
            assert set(re.findall(r"\]\((.*?)\)", users)) == named - proved, name
