"""Where the bars and the curve of a certificate's page lie; ``figures.html`` draws them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ppdp.certificate.pages.derivation import Point, spreads
from ppdp.certificate.pages.interpretation import (
    FALSE_ALARMS,
    detection_power,
    gaussian_missed,
    gaussian_summary,
    powers_in_words,
)
from ppdp.certificate.record import Record

LEFT, RIGHT, TOP, BOTTOM = 48.0, 342.0, 26.0, 182.0  # of the square of all rates
SAMPLES = 60
ALARMS = [(i / SAMPLES) ** 2 for i in range(SAMPLES + 1)]  # denser where a curve is steep
TICK = 0.6

Part = tuple[str, float, float]  # of a bar of length 100: its name, and from where to where


def distance_bars(points: Sequence[Point]) -> list[list[Part]]:
    """One bar for each point: unmatched rows, then rows that moved; a tick where the point before ended."""
    at = _scale([level for point in points for level in (point.unmatched, point.rows)])
    ends = [at(point.rows) for point in points]
    return [
        [
            ("unmatched", 0.0, at(point.unmatched)),
            ("moved", at(point.unmatched), end),
            ("before", before - TICK / 2, before + TICK / 2 if before else 0.0),
        ]
        for point, end, before in zip(points, ends, [0.0, *ends])
    ]


def _scale(levels: list[float]) -> Callable[[float], float]:
    """Position on a bar of length 100; logarithmic where the levels spread far."""
    positive = [level for level in levels if level > 0] or [1.0]
    low, top = min(positive), max(positive)
    if spreads(levels):
        return lambda level: 96 * math.log(2 * level / low) / math.log(2 * top / low) if 2 * level > low else 0.0
    full = max(top, 4 * low)  # a distance that never grows is to look short
    return lambda level: 96 * level / full


def power_curve(c: Record) -> dict[str, Any]:
    """What a test detects at most, against its false alarms; also as the Gaussian parameter has it, if that errs."""
    summary = gaussian_summary(c)
    return {
        "detects": powers_in_words(c),
        "marks": [_place(alarm, detection_power(c, alarm)) for alarm in FALSE_ALARMS],
        "power": [_place(alarm, detection_power(c, alarm)) for alarm in ALARMS],
        "gauss": [_place(alarm, 1 - gaussian_missed(summary, alarm)) for alarm in ALARMS] if summary.error else [],
    }


def _place(alarm: float, detected: float) -> tuple[float, float]:
    """Of two rates, from the left and from the top."""
    return LEFT + (RIGHT - LEFT) * alarm, BOTTOM - (BOTTOM - TOP) * detected
