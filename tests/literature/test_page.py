"""Items, refusals and the page that is made of them."""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from evidence import evidence

import ppdp
from literature import __main__ as program
from literature import claims, projections
from literature.items import FATES, ITEMS, NUMBERED
from literature.page import SOURCES, page
from ppdp import Domain, Pipeline, lint
from ppdp.exceptions import InvalidParameter, UnsupportedOrder
from ppdp.mechanisms import WishartMechanism
from ppdp.privacy import SketchLoss
from ppdp.transformers import NormClipper, RandomProjection

ROOT = Path(ppdp.__file__).parents[1]
PAGE = ROOT / "docs" / "errata.md"
ERRORS = [error for source in SOURCES.values() for error in source.errors]


class TestPage:
    def test_is_what_the_program_writes(self, tmp_path, monkeypatch, capsys):
        """To a file, and to the terminal without one."""
        target = tmp_path / "errata.md"
        kept = [replace(found, evidence=partial(evidence, found.id)) for found in claims()]
        monkeypatch.setattr(program, "claims", lambda: kept)
        assert program.main([str(target)]) == program.main([]) == 0
        assert capsys.readouterr().out == PAGE.read_text("utf-8")
        assert target.read_text("utf-8") == PAGE.read_text("utf-8"), "run python -m literature docs/errata.md"

    def test_has_a_row_and_a_section_for_every_claim(self):
        text = PAGE.read_text("utf-8")
        for found in claims():
            assert f"](#{found.id}) |" in text
            assert text.count(f'<a id="{found.id}"></a>') == 1

    def test_counts_by_status_and_names_the_errors(self):
        text = " ".join(PAGE.read_text("utf-8").split())
        for paper, source in SOURCES.items():
            own = [found.status for found in claims() if found.paper == paper]
            verb = "is" if own.count("false") == 1 else "are"
            counted = f"Of {len(own)} claims {own.count('false')} {verb} false, {own.count('misprint')} misprint"
            assert counted in text
            assert f"go back to {len(source.errors)} independent errors" in text or len(source.errors) == 1
        assert all(error.words in text for error in ERRORS)

    def test_the_front_page_counts_the_same(self):
        text = (ROOT / "README.md").read_text("utf-8")
        assert f"{len(claims('false'))} of {len(claims())} claims are false as printed" in text
        assert f"by {len(ERRORS)} independent errors" in text

    def test_says_which_text_was_checked_and_who_was_asked(self):
        text = " ".join(PAGE.read_text("utf-8").split())
        assert "arXiv 2403.13041" in text
        assert "in November 2026, is the text of the proceedings" in text
        assert "Its authors have not been asked" in text

    def test_defines_its_symbols_and_writes_powers_of_ten_in_one_way(self):
        text = PAGE.read_text("utf-8")
        for symbol in ("Δ₂", "Δ_∞", "d₁₂", "Smooth RDP", "p", "κ", "M_G, M_L, M_E", "A_GD", "β", "L, μ"):
            assert f"**{symbol}" in text, symbol
        assert not re.search(r"10\^|\de-\d", text)

    def test_anything_else_is_refused(self, capsys):
        assert program.main(["--help"]) == program.main(["a.md", "b.md"]) == 2
        assert "python -m literature" in capsys.readouterr().err

    def test_of_nothing_is_its_head(self):
        assert page(()).startswith("# Errata of the literature")


# ---------------- items


every_paper = pytest.mark.parametrize("paper", SOURCES)


@every_paper
def test_nothing_that_a_paper_numbers_is_without_an_entry(paper):
    places = [item.place for item in ITEMS[paper]]
    assert len(places) == len(set(places))
    assert len(NUMBERED[paper]) == len(set(NUMBERED[paper])) > 20
    assert set(NUMBERED[paper]) <= set(places)
    sections = ("Section", "Appendix", "Equation", "(")
    assert all(place.startswith(sections) for place in set(places) - set(NUMBERED[paper]))


def test_places_of_a_body_that_only_its_appendices_name_have_an_entry():
    named = {"Definition 2.2", "Theorem 2.1", "Lemma 4.3"}
    assert named <= {item.place for item in ITEMS[projections.PAPER] if item.fate == "absent"}


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


# ---------------- what is refused


class TestRefused:
    """Where a user would try what these papers promise, the refusal says why."""

    @pytest.mark.parametrize(
        ("query", "reason"),
        [("rows", "products are symmetric for the one dataset"), ("mean", "told apart by its length")],
    )
    def test_more_than_a_direction_under_a_secret_matrix(self, query, reason):
        steps = [("clip", NormClipper()), ("projection", WishartMechanism(20, 0.99, query))]
        with pytest.raises(UnsupportedOrder, match=reason):
            Pipeline(steps, epsilon=1.0, delta=1e-3).plan(Domain(n_rows=500, n_features=8))

    def test_a_sketch_without_noise_or_a_floor(self):
        with pytest.raises(InvalidParameter, match="protects nothing"):
            SketchLoss(rank=4, shift=0.1)

    def test_a_projection_that_is_kept_secret(self):
        with pytest.raises(InvalidParameter, match="secret does not make it private"):
            RandomProjection(4, seed=None).fit(np.ones((5, 8)))

    def test_rows_that_only_a_projection_hides(self):
        """They may be mapped, and nothing covers them."""
        assert "no certificate covers" in Pipeline.fit_transform.__doc__
        assert "images of private rows stay private" in lint(RandomProjection(4)).findings[0].leaks
