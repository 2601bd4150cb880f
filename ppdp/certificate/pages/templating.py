"""Jinja2 templates of the forms of a certificate; whatever text a document holds is shown as text."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from ppdp.certificate.pages.interpretation import rounded_up
from ppdp.certificate.pages.statement import markdown_text, minus, sentences, together, typeset, up
from ppdp.core.figures import figure


def render(template: str, context: dict[str, Any]) -> Markup:
    """A template with its values; in HTML and in Markdown no value becomes markup."""
    return Markup(_environment(template.rpartition(".")[2]).get_template(template).render(context))


@cache
def _environment(kind: str) -> Environment:
    def in_json(words: str) -> str:
        return json.dumps(words, ensure_ascii=False)[1:-1]

    to_text = {"html": typeset, "md": markdown_text, "json": in_json}[kind]
    made = Environment(
        loader=PackageLoader("ppdp.certificate.pages"),
        autoescape=kind == "html",
        undefined=StrictUndefined,
        finalize=lambda value: to_text(value) if isinstance(value, str) and not isinstance(value, Markup) else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        figure=figure,
        up=up,
        number=number,
        bound=lambda value: number(value, upward=True),
        cap=lambda words: words[:1].upper() + words[1:],
        lower_first=lambda words: words[:1].lower() + words[1:],
        minus=minus,
        sentences=sentences,
        verbatim=escape,
        short=lambda value: f"{value:.2f}".rstrip("0").rstrip("."),
        share_up=lambda share: Markup('<data value="{}">{}</data>').format(repr(share), rounded_up(share)),
    )
    return made


def html_page(title: str, main: Markup, foot: str = "") -> str:
    """One HTML file for phone, screen and paper, where ``foot`` stands on every sheet; no script in it would run."""
    style = files("ppdp.certificate.pages").joinpath("page.css").read_text(encoding="utf-8")
    if foot:  # of which each letter but the plainest is its number
        plain = (one if one.isascii() and (one.isalnum() or one in " .-") else f"\\{ord(one):x} " for one in foot)
        style += f'@page {{ @bottom-left {{ content: "{"".join(plain)}"; white-space: pre-wrap; }} }}\n'
    own = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{own}'; base-uri 'none'; form-action 'none'"
    context = {"title": title, "style": Markup(style), "policy": Markup(policy), "main": Markup(together(main))}
    return str(render("shell.html", context))


def number(value: float, digits: int = 4, unit: str = "", *, upward: bool = False) -> Markup:
    """A number for people that carries the document's exact value."""
    return Markup('<data value="{}">{}</data>').format(repr(value), figure(value, digits, upward=upward) + unit)
