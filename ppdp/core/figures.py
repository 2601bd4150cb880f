"""Numbers and tables as people read them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, Context
from html import escape

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def figure(value: float, digits: int = 4, *, upward: bool = False) -> str:
    """A number for people; ``upward`` for what may not be understated.

    >>> figure(1e-06), figure(7874), figure(0.25000000025), figure(0.25000000025, upward=True)
    ('10⁻⁶', '7874', '0.25', '0.2501')
    >>> figure(3.4712e-05).split(), figure(123456.7).split()
    (['3.471', '×', '10⁻⁵'], ['123', '457'])
    """
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "∞"
    if upward:
        value = float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(repr(value)))
    if (value == int(value) and abs(value) < 1e6) or 1e4 <= abs(value) < 1e6:
        return f"{value:_.0f}".replace("_", "\u202f") if abs(value) >= 1e4 else f"{value:.0f}"
    if 1e-3 <= abs(value) < 1e4:
        return f"{value:.{digits}g}"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    power = "10" + str(int(exponent)).translate(_RAISED)
    return power if mantissa == "1" else f"{mantissa}\u00a0×\u00a0{power}"


_CELL = "text-align:left;vertical-align:top;white-space:normal;max-width:34rem;padding:2px 10px 2px 0"
_SPACES = "\n\u00a0\u202f"  # of captions and of numbers


def html_table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], *, bold: int | None = None) -> str:
    """A table of words under a caption, one row perhaps in bold; whatever they hold is shown as text.

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
