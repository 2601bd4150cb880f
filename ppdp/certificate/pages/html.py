"""The certificate for people: one self-contained page, without scripts and without anything to load."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from importlib.resources import files

from ppdp.certificate.pages import derivation, sections
from ppdp.certificate.pages.fragment import render_fragment
from ppdp.certificate.pages.markup import Element, element, printable_record, to_html
from ppdp.certificate.pages.view import view_of
from ppdp.certificate.record import Record

__all__ = ["html_page", "render_fragment", "render_page"]


@lru_cache(maxsize=1)
def _style() -> str:
    return files("ppdp.certificate.pages").joinpath("page.css").read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _policy() -> str:
    """What a browser may do with the page: paint it with its own style sheet, and nothing else."""
    style = base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'"


def html_page(title: str, main: Element) -> str:
    """One HTML file that reads on a phone, on a screen and on paper; no script in it would run."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy()),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", _style()),
    )
    return "<!DOCTYPE html>\n" + to_html(element("html", head, element("body", main), lang="en")) + "\n"


def render_page(content: Record) -> str:
    """The certificate as a page.

    Parameters
    ----------
    content : Record
        The certificate. Whatever text it holds is shown as text.
    """
    view = view_of(printable_record(content))
    c = view.record
    pair = f"({c.epsilon:g}, {c.delta:g})"
    title = {
        "UNCONDITIONAL": f"UNCONDITIONAL {pair} certificate",
        "CONDITIONAL": f"CONDITIONAL certificate: {pair} if what it assumes holds",
        "SEEDED": "SEEDED certificate: nothing is protected",
    }[c.status]
    parts = (
        sections.opening(view),
        *sections.meaning(view),
        *sections.coverage(view),
        *derivation.stages(view),
        *derivation.releases(view),
        *derivation.gate(c),
        *derivation.mechanism(c),
        *sections.curve(c),
        *sections.facts(view),
        *sections.routes(c),
        sections.closing(c),
    )
    main = element("main", *parts, class_=c.status.lower())
    return html_page(f"{title}: {c.dataset}" if c.dataset else title, main)
