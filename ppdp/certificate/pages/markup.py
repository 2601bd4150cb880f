"""Markup as a tree, with which figures are drawn: no text can become a tag, because nothing is ever pasted together."""

from __future__ import annotations

from xml.etree.ElementTree import Element, tostring

from ppdp.core.figures import figure


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
