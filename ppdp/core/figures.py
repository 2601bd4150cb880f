"""Numbers as people read them."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


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
