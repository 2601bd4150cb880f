"""Every numbered item of the papers has one entry, which leads to claims and files that exist."""

from pathlib import Path

import pytest

import ppdp
from literature import claims
from literature.items import FATES, ITEMS, NUMBERED
from literature.page import SOURCES

ROOT = Path(ppdp.__file__).parents[1]
every_paper = pytest.mark.parametrize("paper", SOURCES)


@every_paper
def test_nothing_that_a_paper_numbers_is_without_an_entry(paper):
    places = [item.place for item in ITEMS[paper]]
    assert len(places) == len(set(places))
    assert len(NUMBERED[paper]) == len(set(NUMBERED[paper])) > 20
    assert set(NUMBERED[paper]) <= set(places)
    sections = ("Section", "Appendix", "Equation", "(")
    assert all(place.startswith(sections) for place in set(places) - set(NUMBERED[paper]))


@every_paper
def test_every_claim_belongs_to_an_item_and_every_item_says_what_became_of_it(paper):
    own = {found.id for found in claims() if found.paper == paper}
    assert {name for item in ITEMS[paper] for name in item.claims} == own
    for item in ITEMS[paper]:
        assert item.fate in FATES, item
        assert item.words or item.claims, item
        assert item.claims or item.fate != "judged", item
        assert item.where or item.fate not in ("implemented", "refused", "reproduced", "stand-in"), item
        assert item.fate != "refused" or item.words, item
        assert all((ROOT / path).exists() for path in item.where), item
        scripts = any(path.startswith("reproductions/") for path in item.where)
        assert scripts or item.fate not in ("reproduced", "stand-in"), item


def test_what_needs_the_paper_s_data_says_what_was_used_for_them():
    used = [item for paper in ITEMS for item in ITEMS[paper] if item.fate == "stand-in"]
    assert len(used) > 10
    assert all(item.words for item in used)
