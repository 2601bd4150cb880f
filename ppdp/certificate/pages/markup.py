"""Markup as a tree: no text of a document can become a tag, because nothing is ever pasted together."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import cache, partial
from importlib.resources import files
from typing import Any
from xml.etree.ElementTree import Element, tostring

from ppdp.core.figures import figure

_TOGETHER = re.compile(
    r" (?==[ \u00a0])|(?<=\d) (?=%)|(?<=[εδμσ] =) |(?<=[εδμσ]\u00a0=) |(?<=\d) (?=to [-−]?\d)|(?<=\d to) (?=[-−]?\d)"
)
_QUOTED = re.compile(r"(?<![\w=])'([^']+)'(?!\w)")
_APOSTROPHE = re.compile(r"(?<=\w)'(?=\w)")
_MINUS = re.compile(r"(?<![\w-])-(?=\d)")
Cell = Element | str | None | tuple[Element | str | None, ...]


def element(tag: str, *children: Element | str | None, **attributes: str | float | None) -> Element:
    """One element with its children, of which strings become text; what is None is left out.

    ``class_`` means class, ``stroke_width`` means stroke-width.
    """
    named = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    node = Element(tag, {name: str(value) for name, value in named.items() if value is not None})
    for child in children:
        if isinstance(child, Element):
            node.append(child)
        elif child is not None and len(node):
            node[-1].tail = (node[-1].tail or "") + child
        elif child is not None:
            node.text = (node.text or "") + child
    return node


code, h2, p, small = (partial(element, tag) for tag in ("code", "h2", "p", "small"))


def number(value: float, digits: int = 4, unit: str = "", *, upward: bool = False) -> Element:
    """A number for people that carries the document's exact value."""
    return element("data", figure(value, digits, upward=upward) + unit, value=repr(value))


def bound(value: float) -> Element:
    """A guarantee: never shown smaller than it is."""
    return number(value, upward=True)


def items(texts: Sequence[str], class_: str | None = None) -> Element:
    """A list of sentences."""
    return element("ul", *(element("li", text) for text in texts), class_=class_)


def points(*cells: Cell, class_: str | None = None) -> Element:
    """A list of points, each of words and elements; None is left out."""
    given = (cell for cell in cells if cell is not None)
    return element("ul", *(element("li", *_parts(cell)) for cell in given), class_=class_)


def pairs(*lines: tuple[str, Cell] | None) -> Element:
    """Names with their values; None is left out."""
    children = []
    for name, value in (line for line in lines if line is not None):
        children += [element("dt", name), element("dd", *_parts(value))]
    return element("dl", *children)


def folded() -> Sequence[Element]:
    """What a screen shows behind it only when asked, and paper always; ``details`` that are closed are not printed."""
    box = element("input", type="checkbox", id="behind", class_="behind")
    return box, element("label", "Show everything behind this page", for_="behind", class_="behind")


def table(heads: Sequence[tuple[str, str]], lines: Sequence[Sequence[Cell]], class_: str | None = None) -> Element:
    """A table; the head of each column is (words, class)."""
    rows = []
    for line in lines:
        cells = []
        for i, ((words, kind), content) in enumerate(zip(heads, line)):
            body = element("div", *_parts(content)) if any(part is not None for part in _parts(content)) else None
            cells.append(element("td", body, class_=kind or None, data_label=words if i and words else None))
        rows.append(element("tr", *cells))
    head = element("tr", *(element("th", words, class_=kind or None, scope="col") for words, kind in heads))
    return element("table", element("thead", head), element("tbody", *rows), class_=class_)


def explained(meanings: Iterable[tuple[str, str]]) -> Element | None:
    """A line that says what words mean, where they need it."""
    parts: list[Element | str] = []
    for word, meaning in meanings:
        parts += ["; " if parts else "", element("b", word), f": {meaning}"]
    return p(*parts, ".", class_="note") if parts else None


def begun(words: str) -> str:
    """The same as the beginning of a sentence."""
    return words[:1].upper() + words[1:]


def typeset(words: str) -> str:
    """Quotation marks, apostrophes and minus signs as print has them.

    Examples
    --------
    >>> typeset("one person's rows in the step 'log': -1 to 2")
    'one person’s rows in the step “log”: −1 to 2'
    """
    return minus(_APOSTROPHE.sub("’", _QUOTED.sub(r"“\1”", words)))


def minus(words: str) -> str:
    """Minus signs as print has them."""
    return _MINUS.sub("−", words)


def printed(node: Element) -> Element:
    """The tree with quotation marks as print has them, where no line ends within ``ε = 1`` or ``-1 to 1``."""
    for one in node.iter():
        if one.tag not in ("desc", "code"):  # what is read aloud, and what is typed
            one.text = one.text and _set(one.text)
        one.tail = one.tail and _set(one.tail)
    return node


def _set(words: str) -> str:
    return _TOGETHER.sub("\u00a0", _APOSTROPHE.sub("’", _QUOTED.sub(r"“\1”", words)))


def _parts(content: Cell) -> tuple[Element | str | None, ...]:
    return content if isinstance(content, tuple) else (content,)


def to_html(node: Element) -> str:
    """The tree as HTML; text and attributes are escaped here and nowhere else."""
    return tostring(node, encoding="unicode", method="html")


@cache
def _style() -> str:
    return files("ppdp.certificate.pages").joinpath("page.css").read_text(encoding="utf-8")


def _foot(words: str) -> str:
    """The style that prints these words at the foot of every sheet; but for the plainest, each letter is its number."""
    plain = (one if one.isascii() and (one.isalnum() or one in " .-") else f"\\{ord(one):x} " for one in words)
    return f'@page {{ @bottom-left {{ content: "{"".join(plain)}"; white-space: pre-wrap; }} }}\n'


def html_page(title: str, main: Element, foot: str = "") -> str:
    """One HTML file that reads on a phone, on a screen and on paper, where ``foot`` stands on every sheet.

    A browser may paint it with its own style sheet, and nothing else: no script in it would run.
    """
    style = _style() + (_foot(foot) if foot else "")
    own = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{own}'; base-uri 'none'; form-action 'none'"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", style),
    )
    return "<!DOCTYPE html>\n" + to_html(element("html", head, element("body", main), lang="en")) + "\n"


def printable(value: Any) -> Any:
    """The document with every invisible character shown as U+FFFD: none may reorder or hide what is read."""
    if isinstance(value, str):
        return "".join(c if c.isprintable() else "\ufffd" for c in value)
    if isinstance(value, dict):
        return {printable(k): printable(v) for k, v in value.items()}
    return [printable(v) for v in value] if isinstance(value, (list, tuple)) else value
