"""What the figures share: an axis to draw on, bars that may spread far, colours that everybody can tell apart."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from ppdp.certificate.pages.derivation import spreads
from ppdp.core.checks import library
from ppdp.exceptions import InvalidParameter

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Blue and orange differ for every kind of colour vision, and all of them in lightness.
OURS, OTHER, BROKEN, LINE, FAINT = "#3b6690", "#adb5bb", "#d08a4e", "#566573", "#7c8a97"
LINES = (("#3b6690", "-"), ("#d08a4e", "--"), ("#2f7f79", "-."), ("#93699f", ":"), ("#566573", (0, (5, 1, 1, 1, 1, 1))))
"""Colour and dashes of the first, second, ... of several curves."""


def axes(ax: Axes | None, width: float, height: float) -> Axes:
    """The axis that was given, or that of a new figure of this size in inches; refused without matplotlib."""
    if ax is not None:
        return ax
    plt = library("matplotlib.pyplot", "matplotlib", '"ppdp[plot]"')
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def embedded(draw: Callable[[Axes], Any], title: str, size: tuple[float, float]) -> str:
    """A picture of so many inches inside a page; nothing where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return ""
    canvas, png = Figure(figsize=size, layout="constrained"), io.BytesIO()
    draw(canvas.subplots())
    canvas.savefig(png, format="png", dpi=160, metadata={"Software": None})
    data = base64.b64encode(png.getvalue()).decode()
    return f'<img alt="{escape(title)}" style="width:100%;max-width:50rem" src="data:image/png;base64,{data}">'


def plain(ax: Axes) -> Axes:
    """The axis without a frame where there is nothing to read."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def bar_axis(ax: Axes, lengths: Sequence[float], before: float, room: float, end: float) -> None:
    """An axis for horizontal bars with room for words behind them: from 0 to ``end``, or logarithmic.

    Where lengths spread far it begins at the ``before``-th part of the least one, and is ``room`` times as long as the
    bars.
    """
    if spreads(list(lengths)):
        low, top = min(length for length in lengths if length > 0), max(lengths)
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter("{x:g}")
        ax.set_xlim(low / before, low / before * (before * top / low) ** room)
    else:
        ax.set_xlim(0, end)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)


def note(ax: Axes, x: float | None, y: float, text: str, color: str | None = None) -> None:
    """Words behind a bar, or where it would begin if it is missing."""
    at = float(ax.get_xlim()[0]) if x is None else x
    ax.annotate(text, (at, y), xytext=(4, 0), textcoords="offset points", va="center", fontsize="small", color=color)


def words(text: str) -> str:
    """Text of a user's choice: no part of it is a formula to be typeset."""
    return text.replace("$", r"\$")


def cut(text: str, most: int) -> str:
    """At most so many characters."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def labelled(subject: Any, kinds: tuple[type, ...], wanted: str) -> list[tuple[str, Any]]:
    """A list of (label, subject), also of a single subject without a label; refused if something is of no such kind."""
    if isinstance(subject, kinds):
        return [("", subject)]
    pairs = list(subject) if isinstance(subject, Sequence) and not isinstance(subject, str) else []
    good = [isinstance(p, (list, tuple)) and len(p) == 2 and isinstance(p[1], kinds) for p in pairs]
    if not good or not all(good):
        raise InvalidParameter(f"this figure shows {wanted}, or a list of (label, the same).")
    return [(str(label), item) for label, item in pairs]
