"""The wording of every form of a certificate, kept in files: after a change, read what differs and run ``--update``."""

import json
from functools import cache
from pathlib import Path

import pytest
from pages import Reader

from ppdp import Certificate

HERE = Path(__file__).parent
GOLDEN, OURS = HERE / "golden" / "0.2.0", HERE / "snapshots" / "documents"

WHOLE_PAGES = ("unconditional", "conditional", "on-a-ladder", "a-vote", "persons")
FIRST_PAGES = (
    "seeded",
    "three-rows-each",
    "added-rows",
    "changed-signs",
    "transformer-ended",
    "rows",
    "a-histogram",
    "part-of-a-search",
    "a-search",
    "diffprivlib-naive-bayes",
    "named",
    "first-of-a-ledger",
    "third-of-a-ledger",
)
FORMS = {
    "glance.txt": str,
    "full.txt": lambda one: one.to_text(full=True),
    "card.md": Certificate.to_model_card,
    "notebook.txt": lambda one: lines_of(one._repr_html_()),
    "registry.json": lambda one: json.dumps(registry(one), indent=1, ensure_ascii=False),
}
OTHER_FORMS = ("unconditional", "conditional", "persons")


@cache
def kept(name):
    """A certificate that was issued once, and holds."""
    file = f"{name}.json"
    return Certificate.load(OURS / file if (OURS / file).exists() else GOLDEN / file)


def lines_of(page):
    return Reader(page).lines + "\n"


def registry(one):
    return one.to_registry_record(
        name="Ward",
        curators={"Clinic": "Nonprofit"},
        description="What",
        intended_use="For",
        region="Here",
        publication_date="2026-11-29",
        authors=["Ann Author"],
        conditional=True,
    )


@pytest.mark.parametrize("name", WHOLE_PAGES)
def test_whole_pages(name, snapshot):
    snapshot(f"{name}.page.txt", lines_of(kept(name).to_html()))


@pytest.mark.parametrize("name", FIRST_PAGES)
def test_first_pages(name, snapshot):
    page = kept(name).to_html()
    snapshot(f"{name}.first.txt", lines_of(page[page.index("<header") : page.index("</header>") + 9]))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", OTHER_FORMS)
def test_other_forms(name, form, snapshot):
    snapshot(f"{name}.{form}", FORMS[form](kept(name)).rstrip("\n") + "\n")
