"""Bars of noise, which may spread over many powers of ten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ppdp.certificate.points import spreads

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["noise_axis", "note", "spare"]


def noise_axis(ax: Axes, noises: Sequence[float | None], label: str) -> None:
    """From 0, or logarithmic where noises spread far; with room on the right for words."""
    known = [noise for noise in noises if noise]
    low, top = min(known), max(known)
    if spreads(known):
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter("{x:g}")
        ax.set_xlim(low / 3, low / 3 * (3 * top / low) ** 1.35)
    else:
        ax.set_xlim(0, 1.4 * top)
    ax.set_xlabel(label)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)


def spare(ax: Axes) -> float:
    """Where a bar that is missing would begin."""
    return float(ax.get_xlim()[0])


def note(ax: Axes, x: float, y: float, text: str, color: str) -> None:
    """Words behind a bar."""
    ax.annotate(text, (x, y), xytext=(4, 0), textcoords="offset points", va="center", fontsize="small", color=color)
