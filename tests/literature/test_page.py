"""The errata page is what the program writes, and says all that it should."""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

from evidence import evidence

import ppdp
from literature import __main__ as program
from literature import claims
from literature.page import SOURCES, page

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
