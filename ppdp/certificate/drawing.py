"""The figures of a certificate's page, as inline SVG without text that must scale."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ppdp.certificate.document import Certificate
from ppdp.certificate.markup import Element, element, figure, power_of_ten
from ppdp.certificate.points import Point, spreads

__all__ = ["Paint", "budget_bar", "distance_bars", "epsilon_curve"]

WIDTH, HEIGHT = 360.0, 216.0  # of the curve, in its own units
LEFT, RIGHT, TOP, BOTTOM = 34.0, 350.0, 26.0, 182.0
SAMPLES = 96
TICK = 0.6

Paint = Callable[[str], Mapping[str, str]]


def by_class(part: str) -> dict[str, str]:
    """Painted by the style sheet of the page."""
    return {"class_": part}


def distance_bars(points: Sequence[Point], paint: Paint = by_class) -> tuple[Element, ...]:
    """One bar for each point: unmatched rows, then rows that moved; a tick where the point before ended.

    Parameters
    ----------
    points : sequence of Point
        The entrance first.
    paint : callable
        Attributes of the parts "bar", "track", "unmatched", "moved" and "before".
    """
    at = _scale([level for point in points for level in (point.unmatched, point.rows)])
    ends = [at(point.rows) for point in points]
    return tuple(
        _bar(
            paint,
            ("unmatched", 0.0, at(point.unmatched)),
            ("moved", at(point.unmatched), end),
            ("before", before - TICK / 2, before + TICK / 2 if before else 0.0),
        )
        for point, end, before in zip(points, ends, [0.0, *ends])
    )


def budget_bar(share: float) -> Element:
    """A bar for a share of the whole budget."""
    return _bar(by_class, ("share", 0.0, 100 * min(share, 1.0)))


def _bar(paint: Paint, *parts: tuple[str, float, float]) -> Element:
    """A bar of length 100 with its parts (name, from, to)."""
    return element(
        "svg",
        *(
            element("rect", x=_short(start), width=_short(end - start), height=10, **paint(part))
            for part, start, end in (("track", 0.0, 100.0), *parts)
            if end > start
        ),
        viewBox="0 0 100 10",
        preserveAspectRatio="none",
        aria_hidden="true",
        **paint("bar"),
    )


def _scale(levels: list[float]) -> Callable[[float], float]:
    """Position on a bar of length 100; logarithmic where the levels spread far."""
    positive = [level for level in levels if level > 0] or [1.0]
    low, top = min(positive), max(positive)
    if spreads(levels):
        return lambda level: 96 * math.log(2 * level / low) / math.log(2 * top / low) if 2 * level > low else 0.0
    full = max(top, 4 * low)  # a distance that never grows is to look short
    return lambda level: 96 * level / full


def epsilon_curve(content: Mapping[str, Any]) -> Element:
    """Epsilon against delta, with the certified point; empty where nothing is promised."""
    certificate = Certificate(dict(content))
    low = min(-12, math.floor(math.log10(certificate.delta)) - 2)
    high = min(0, max(-3, math.ceil(math.log10(certificate.delta)) + 2))
    deltas = sorted({certificate.delta, *(10.0 ** (low + (high - low) * i / SAMPLES) for i in range(SAMPLES + 1))})
    curve = [(delta, certificate.epsilon_at(delta)) for delta in deltas]
    promised = [(delta, epsilon) for delta, epsilon in curve if math.isfinite(epsilon)]
    top, step = _nice_top(max([certificate.epsilon, *(epsilon for _, epsilon in promised)]))

    def x(delta: float) -> float:
        return LEFT + (RIGHT - LEFT) * (math.log10(delta) - low) / (high - low)

    def y(value: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * value / top

    path = " ".join(f"{'M' if i == 0 else 'L'}{x(d):.2f} {y(e):.2f}" for i, (d, e) in enumerate(promised))
    start = promised[0][0] if promised else deltas[-1]
    here = x(certificate.delta), y(certificate.epsilon)
    levels = [i * step for i in range(round(top / step) + 1)]
    ticks = range(low, high + 1, max(1, math.ceil((high - low) / 5)))
    return element(
        "svg",
        element("title", "epsilon as a function of delta"),
        *(element("line", class_="grid", x1=LEFT, x2=RIGHT, y1=_short(y(v)), y2=_short(y(v))) for v in levels),
        element("rect", class_="void", x=LEFT, y=TOP, width=_short(x(start) - LEFT), height=BOTTOM - TOP)
        if start > deltas[0]
        else None,
        element("text", "nothing promised", x=_short((LEFT + x(start)) / 2), y=(TOP + BOTTOM) / 2, text_anchor="middle")
        if x(start) > LEFT + 100
        else None,
        *(element("text", figure(v, 3), x=LEFT - 6, y=_short(y(v) + 4), text_anchor="end") for v in levels),
        *(element("text", power_of_ten(t), x=_short(x(10.0**t)), y=BOTTOM + 16, text_anchor="middle") for t in ticks),
        element("text", "δ", x=RIGHT, y=BOTTOM + 30, text_anchor="end"),
        element("text", "ε", x=LEFT - 6, y=TOP - 14, text_anchor="end"),
        element("path", class_="curve", d=path or None),
        element("line", class_="drop", x1=_short(here[0]), x2=_short(here[0]), y1=_short(here[1]), y2=BOTTOM),
        element("circle", class_="here", cx=_short(here[0]), cy=_short(here[1]), r=4),
        class_="curve-figure",
        viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
        role="img",
    )


def _nice_top(value: float) -> tuple[float, float]:
    """A round upper end and a round step for an axis from 0."""
    size = 10.0 ** math.floor(math.log10(max(value, 1e-9)))
    step = next(size * m for m in (0.2, 0.5, 1.0, 2.0, 5.0) if value <= 5 * size * m)
    return step * math.ceil(value / step * (1 - 1e-9)), step


def _short(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
