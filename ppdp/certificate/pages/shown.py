"""What people are shown of a document: what it says if it holds, else only that it does not and why.

Nothing is computed from, and no word is taken out of, a document that does not hold.
"""

from __future__ import annotations

from collections.abc import Sequence

from ppdp.certificate.pages.fragment import render_fragment, render_refusal
from ppdp.certificate.pages.html import html_page, render_page
from ppdp.certificate.pages.layout import items
from ppdp.certificate.pages.markup import element, printable
from ppdp.certificate.pages.text import render_text
from ppdp.certificate.replay.verify import Verification

__all__ = ["fragment", "page", "text"]

STATUS = "DOES NOT HOLD"
MEANING = "It does not verify, so it promises nothing, and nothing of what it says is shown."
MOST_PROBLEMS, MOST_LETTERS = 20, 300


def text(found: Verification) -> str:
    """For a terminal."""
    if found.record is not None:
        return render_text(found.record)
    return "\n".join([f"{STATUS} - {MEANING}", *(f"  - {problem}" for problem in _problems(found))])


def page(found: Verification) -> str:
    """As a page."""
    if found.record is not None:
        return render_page(found.record)
    main = element(
        "main",
        element(
            "header",
            element("h1", element("span", STATUS, class_="status")),
            element("p", MEANING, class_="lede"),
            items(_problems(found), class_="reasons"),
        ),
        class_="refused",
    )
    return html_page("A certificate that DOES NOT HOLD", main)


def fragment(found: Verification) -> str:
    """For a notebook."""
    if found.record is not None:
        return render_fragment(found.record)
    return render_refusal(STATUS, MEANING, _problems(found))


def _problems(found: Verification) -> Sequence[str]:
    """The first of what is wrong; whoever wrote the document chose some of these words."""
    shown = [printable(problem[:MOST_LETTERS]) for problem in found.problems[:MOST_PROBLEMS]]
    more = len(found.problems) - len(shown)
    return [*shown, f"and {more} more"] if more > 0 else shown
