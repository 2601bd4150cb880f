"""Tables for notebooks and terminals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_CELL = "text-align:left;vertical-align:top;white-space:normal;max-width:34rem;padding:2px 10px 2px 0"
_SPACES = "\n\u00a0\u202f"  # of captions and of numbers


def html_table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], *, bold: int | None = None) -> str:
    """A table of words under a caption, one row perhaps in bold; whatever they hold is shown as text.

    Examples
    --------
    >>> html_table("sums", ["a<b"], [["1"]]).count("a&lt;b")
    1
    """
    top = "".join(f'<th style="{_CELL}">{escape(visible(name))}</th>' for name in head)
    body = ""
    for i, cells in enumerate(rows):
        style = f"{_CELL};font-weight:600" if i == bold else _CELL
        body += "<tr>" + "".join(f'<td style="{style}">{escape(visible(cell))}</td>' for cell in cells) + "</tr>"
    title = f'<div style="white-space:pre-line;margin-top:.4rem">{escape(visible(caption))}</div>'
    return f"{title}<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of cells, in columns of equal width."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]


def visible(text: str) -> str:
    """The text with U+FFFD for invisible characters: none may reorder or hide what is read."""
    return "".join(c if c.isprintable() or c in _SPACES else "\ufffd" for c in text)
