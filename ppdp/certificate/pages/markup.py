"""Markup as a tree: no text of a document can become a tag, because nothing is ever pasted together."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context
from typing import Any
from xml.etree.ElementTree import Element, tostring

from ppdp.certificate.record import Record, read_as, written

__all__ = [
    "Element",
    "bound",
    "element",
    "figure",
    "number",
    "power_of_ten",
    "printable",
    "printable_record",
    "to_html",
]

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


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


def figure(value: float, digits: int = 4, *, upward: bool = False) -> str:
    """A number for people; ``upward`` for what may not be understated.

    Examples
    --------
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
    power = power_of_ten(int(exponent))
    return power if mantissa == "1" else f"{mantissa}\u00a0×\u00a0{power}"


def power_of_ten(exponent: int) -> str:
    """``10⁻⁶`` for -6."""
    return "10" + str(exponent).translate(_RAISED)


def number(value: float, digits: int = 4, unit: str = "", *, upward: bool = False) -> Element:
    """A number for people that carries the document's exact value."""
    return element("data", figure(value, digits, upward=upward) + unit, value=repr(value))


def bound(value: float) -> Element:
    """A guarantee: never shown smaller than it is."""
    return number(value, upward=True)
