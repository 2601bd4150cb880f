"""Text as people read it, with nothing in it that cannot be seen, and markup as a tree, with which figures are drawn.

No text can become a tag, because nothing of a tree is ever pasted together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from xml.etree.ElementTree import Element, tostring

from ppdp.core.figures import figure

_QUOTED = re.compile(r"(?<![\w=])'([^']+)'(?!\w)")
_APOSTROPHE = re.compile(r"(?<=\w)'(?=\w)")
_MINUS = re.compile(r"(?<![\w-])-(?=\d)")
_TOGETHER = re.compile(
    r" (?==[ \u00a0])|(?<=\d) (?=%)|(?<=[εδμσ] =) |(?<=[εδμσ]\u00a0=) |(?<=\d) (?=to [-−]?\d)|(?<=\d to) (?=[-−]?\d)"
)
_TEXT = re.compile(r"<(style|title|desc|code)\b.*?</\1>|>[^<]+", re.DOTALL)
_MARKS = re.compile(r"[\\`*_\[\]<>|&#~$]|^[-+=]")
_NUMBERED = re.compile(r"^(\d+)([.)])(?=\s|$)")
_LINKED = re.compile(r"@|/(?=/)|www(?=\.)|:(?=[\w+-]+:)", re.IGNORECASE)
_SPACES = re.compile(r"[^\S\u00a0\u202f]+")  # but for those within a number
_JOINER = "\u2060"


def up(value: float) -> str:
    """A figure that is never smaller than its value."""
    return figure(value, upward=True)


def capitalised(words: str) -> str:
    """The same as the beginning of a sentence."""
    return words[:1].upper() + words[1:]


def sentences(parts: Iterable[str]) -> str:
    """Each of these, but for empty ones, as a sentence."""
    return " ".join(part.rstrip(". ") + "." for part in parts if part)


def typeset(words: str) -> str:
    """Quotation marks and apostrophes as print has them.

    Examples
    --------
    >>> typeset("one person's rows in the step 'log'")
    'one person’s rows in the step “log”'
    """
    return _APOSTROPHE.sub("’", _QUOTED.sub(r"“\1”", words))


def minus(words: str) -> str:
    """Minus signs as print has them."""
    return _MINUS.sub("−", words)


def together(html: str) -> str:
    """The text between tags so that no line ends within ``ε = 1`` or ``-1 to 1``."""
    return _TEXT.sub(lambda found: found[0] if found[1] else _TOGETHER.sub("\u00a0", found[0]), html)


def markdown_text(value: str) -> str:
    """Text that no Markdown reader takes for markup, in one line.

    Readers look for addresses, names and emoji after escapes and entities are resolved, so only a character in between
    stops them: a word joiner, which has no width.
    """
    words = _LINKED.sub(rf"\g<0>{_JOINER}", " ".join(filter(None, _SPACES.split(value))))
    words = _NUMBERED.sub(r"\1\\\2", _MARKS.sub(r"\\\g<0>", words))
    return words.replace(_JOINER, f"&#{ord(_JOINER)};")


def printable(value: Any) -> Any:
    """The document with every invisible character shown as U+FFFD: none may reorder or hide what is read."""
    if isinstance(value, str):
        return "".join(c if c.isprintable() else "\ufffd" for c in value)
    if isinstance(value, dict):
        return {printable(k): printable(v) for k, v in value.items()}
    return [printable(v) for v in value] if isinstance(value, (list, tuple)) else value


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


def bound(value: float) -> Element:
    """A guarantee, never shown smaller than it is, that carries the document's exact value."""
    return element("data", figure(value, upward=True), value=repr(value))


def to_html(node: Element) -> str:
    """The tree as HTML; text and attributes are escaped here and nowhere else."""
    return tostring(node, encoding="unicode", method="html")
