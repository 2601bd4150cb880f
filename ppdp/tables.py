"""Tables for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["html_table"]

_CELL = "text-align:left;vertical-align:top;white-space:normal;max-width:34rem"


def html_table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], *, bold: int | None = None) -> str:
    """A table of words; whatever they hold is shown as text.

    Parameters
    ----------
    caption : str
        Above it.
    head : sequence of str
        Names of the columns.
    rows : iterable of sequences of str
        Cells.
    bold : int, optional
        Position of a row that stands out.

    Examples
    --------
    >>> html_table("sums", ["a<b"], [["1"]]).count("a&lt;b")
    1
    """
    top = "".join(f'<th style="{_CELL}">{escape(_visible(name))}</th>' for name in head)
    body = ""
    for i, cells in enumerate(rows):
        style = f"{_CELL};font-weight:600" if i == bold else _CELL
        body += "<tr>" + "".join(f'<td style="{style}">{escape(_visible(cell))}</td>' for cell in cells) + "</tr>"
    title = f'<caption style="text-align:left;white-space:pre-line">{escape(_visible(caption))}</caption>'
    return f"<table>{title}<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _visible(text: str) -> str:
    """No invisible character may reorder or hide what is read."""
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)
