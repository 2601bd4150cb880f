"""Tables and lists of a certificate's page."""

from __future__ import annotations

from collections.abc import Sequence

from ppdp.certificate.pages.markup import Element, element

__all__ = ["Cell", "items", "pairs", "table"]

Cell = Element | str | None | tuple[Element | str | None, ...]


def table(heads: Sequence[tuple[str, str]], lines: Sequence[Sequence[Cell]], class_: str | None = None) -> Element:
    """A table; the head of each column is (words, class)."""
    rows = []
    for line in lines:
        cells = []
        for i, ((words, kind), content) in enumerate(zip(heads, line)):
            children = content if isinstance(content, tuple) else (content,)
            body = element("div", *children) if any(child is not None for child in children) else None
            cells.append(element("td", body, class_=kind or None, data_label=words if i and words else None))
        rows.append(element("tr", *cells))
    head = element("tr", *(element("th", words, class_=kind or None, scope="col") for words, kind in heads))
    return element("table", element("thead", head), element("tbody", *rows), class_=class_)


def items(texts: Sequence[str], class_: str | None = None) -> Element:
    """A list of sentences."""
    return element("ul", *(element("li", text) for text in texts), class_=class_)


def pairs(*lines: tuple[str, Cell] | None) -> Element:
    """Names with their values; None is left out."""
    children = []
    for pair in lines:
        if pair is not None:
            name, content = pair
            children.append(element("dt", name))
            children.append(element("dd", *(content if isinstance(content, tuple) else (content,))))
    return element("dl", *children)
