"""What all figures share: an axis to draw on, and colours that everybody can tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ppdp.exceptions import InvalidParameter

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["BROKEN", "FAINT", "LINE", "LINES", "OTHER", "OURS", "axes", "cut", "labelled", "plain", "words"]

# Blue and orange differ for every kind of colour vision, and all of them in lightness.
OURS, OTHER, BROKEN, LINE, FAINT = "#3b6690", "#adb5bb", "#d08a4e", "#566573", "#7c8a97"
LINES = (("#3b6690", "-"), ("#d08a4e", "--"), ("#2f7f79", "-."), ("#93699f", ":"), ("#566573", (0, (5, 1, 1, 1, 1, 1))))
"""Colour and dashes of the first, second, ... of several curves."""


def axes(ax: Axes | None, width: float, height: float) -> Axes:
    """The axis that was given, or that of a new figure of this size in inches.

    Raises
    ------
    InvalidParameter
        If matplotlib is not installed.
    """
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise InvalidParameter("matplotlib is not installed.", fix='pip install "ppdp[plot]"') from None
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def plain(ax: Axes) -> None:
    """No frame where there is nothing to read."""
    ax.spines[["top", "right"]].set_visible(False)


def words(text: str) -> str:
    """Text of a user's choice: no part of it is a formula to be typeset."""
    return text.replace("$", r"\$")


def cut(text: str, most: int) -> str:
    """At most so many characters."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def labelled(subject: Any, kinds: tuple[type, ...], wanted: str) -> list[tuple[str, Any]]:
    """A list of (label, subject), also of a single subject without a label.

    Raises
    ------
    InvalidParameter
        If something is of no such kind.
    """
    if isinstance(subject, kinds):
        return [("", subject)]
    pairs = list(subject) if isinstance(subject, Sequence) and not isinstance(subject, str) else []
    good = [isinstance(p, (list, tuple)) and len(p) == 2 and isinstance(p[1], kinds) for p in pairs]
    if not good or not all(good):
        raise InvalidParameter(f"this figure shows {wanted}, or a list of (label, the same).")
    return [(str(label), item) for label, item in pairs]
