"""Markup as a tree: no text of a document can become a tag, because nothing is ever pasted together."""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element, tostring

from ppdp.certificate.record import Record, read_as, written
from ppdp.core.figures import figure

__all__ = [
    "Element",
    "bound",
    "element",
    "number",
    "printable",
    "printable_record",
    "to_html",
]


def element(tag: str, *children: Element | str | None, **attributes: str | float | None) -> Element:
    """One element with its children; ``class_`` means class, ``stroke_width`` means stroke-width.

    Parameters
    ----------
    tag : str
        Name.
    *children : Element, str or None
        Strings become text; None is left out.
    **attributes : str, float or None
        None is left out.
    """
    named = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    node = Element(tag, {name: str(value) for name, value in named.items() if value is not None})
    last: Element | None = None
    for child in children:
        if isinstance(child, Element):
            node.append(child)
            last = child
        elif child is not None and last is None:
            node.text = (node.text or "") + child
        elif child is not None and last is not None:
            last.tail = (last.tail or "") + child
    return node


def to_html(node: Element) -> str:
    """The tree as HTML; text and attributes are escaped here and nowhere else."""
    return tostring(node, encoding="unicode", method="html")


def printable(value: Any) -> Any:
    """The document with every invisible character shown as U+FFFD: none may reorder or hide what is read."""
    if isinstance(value, str):
        return "".join(c if c.isprintable() else "\ufffd" for c in value)
    if isinstance(value, dict):
        return {printable(k): printable(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [printable(v) for v in value]
    return value


def printable_record(c: Record) -> Record:
    """A certificate without such characters."""
    return read_as(Record, printable(written(c)))


def number(value: float, digits: int = 4, unit: str = "", *, upward: bool = False) -> Element:
    """A number for people that carries the document's exact value."""
    return element("data", figure(value, digits, upward=upward) + unit, value=repr(value))


def bound(value: float) -> Element:
    """A guarantee: never shown smaller than it is."""
    return number(value, upward=True)
