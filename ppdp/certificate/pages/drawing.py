"""The figures of a certificate's page, as inline SVG without text that must scale."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from xml.etree.ElementTree import Element

from ppdp.certificate.pages.derivation import Point, spreads
from ppdp.certificate.pages.interpretation import (
    FALSE_ALARMS,
    detection_power,
    gaussian_missed,
    gaussian_summary,
    powers_in_words,
)
from ppdp.certificate.pages.typography import element
from ppdp.certificate.record import Record

WIDTH, HEIGHT = 360.0, 228.0  # of the curve, in its own units
LEFT, RIGHT, TOP, BOTTOM = 48.0, 342.0, 26.0, 182.0
SAMPLES = 60
ALARMS = [(i / SAMPLES) ** 2 for i in range(SAMPLES + 1)]  # denser where a curve is steep
SHARES = {f"{25 * i}\u00a0%": i / 4 for i in range(5)}
TICK = 0.6

Paint = Callable[[str], Mapping[str, str]]


def by_class(part: str) -> dict[str, str]:
    """Painted by the style sheet of the page."""
    return {"class_": part}


def distance_bars(points: Sequence[Point], paint: Paint = by_class) -> tuple[Element, ...]:
    """One bar for each point: unmatched rows, then rows that moved; a tick where the point before ended.

    ``paint`` gives the attributes of the parts "bar", "track", "unmatched", "moved" and "before".
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


def power_curve(content: Record) -> Element:
    """What a test detects at most, against its false alarms; dashed: blind guessing, dotted: the Gaussian parameter."""
    summary = gaussian_summary(content)
    title = "What a test detects at most, against its false alarms"
    told = f"At most {powers_in_words(content)}. Blind guessing detects as often as it raises a false alarm."
    marks = [(_across(alarm), _up(detection_power(content, alarm))) for alarm in FALSE_ALARMS]
    gauss = _curve(lambda alarm: 1 - gaussian_missed(summary, alarm)) if summary.error else None
    across, up = ({words: at(share) for words, share in SHARES.items()} for at in (_across, _up))
    return element(
        "svg",
        element("title", title),
        element("desc", told),
        *(element("line", class_="grid", x1=LEFT, x2=RIGHT, y1=_short(y), y2=_short(y)) for y in up.values()),
        *(element("text", words, x=LEFT - 6, y=_short(y + 4), text_anchor="end") for words, y in up.items()),
        *(element("text", words, x=_short(x), y=BOTTOM + 22, text_anchor="middle") for words, x in across.items()),
        element("text", "false alarms", x=RIGHT, y=BOTTOM + 40, text_anchor="end"),
        element("text", "detections", x=0, y=TOP - 14),
        element("line", class_="blind", x1=LEFT, y1=BOTTOM, x2=RIGHT, y2=TOP),
        element("path", class_="gauss", d=gauss) if gauss else None,
        element("path", class_="power", d=_curve(lambda alarm: detection_power(content, alarm))),
        *(element("circle", class_="mark", cx=_short(x), cy=_short(y), r=3) for x, y in marks),
        class_="curve-figure",
        viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
        role="img",
        aria_label=f"{title}. {told}",
    )


def _across(share: float) -> float:
    """Place on the axis from left to right."""
    return LEFT + (RIGHT - LEFT) * share


def _up(share: float) -> float:
    """Place on the axis from the bottom to the top."""
    return BOTTOM - (BOTTOM - TOP) * share


def _curve(share: Callable[[float], float]) -> str:
    """A share at every rate of false alarms."""
    points = ((_across(alarm), _up(share(alarm))) for alarm in ALARMS)
    return " ".join(f"{'M' if i == 0 else 'L'}{x:.2f} {y:.2f}" for i, (x, y) in enumerate(points))


def _short(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
