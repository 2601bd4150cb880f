"""Bars of noise, which may spread over many powers of ten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ppdp.certificate.pages.points import spreads
from ppdp.core.figures import figure
from ppdp.plot.canvas import words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["noise_axis", "note", "spare"]


def noise_axis(ax: Axes, noises: Sequence[float | None], step: str, budget: tuple[float, float]) -> None:
    """From 0, or logarithmic where noises spread far; with room on the right for words.

    Parameters
    ----------
    ax : matplotlib Axes
        With the bars.
    noises : sequence of float or None
        Their lengths.
    step : str
        Whose noise it is.
    budget : tuple of (epsilon, delta)
        For what.
    """
    known = [noise for noise in noises if noise]
    low, top = min(known), max(known)
    if spreads(known):
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter("{x:g}")
        ax.set_xlim(low / 3, low / 3 * (3 * top / low) ** 1.35)
    else:
        ax.set_xlim(0, 1.4 * top)
    epsilon, delta = map(figure, budget)
    ax.set_xlabel(f"noise of '{words(step)}' at (ε, δ) = ({epsilon}, {delta})")
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)


def spare(ax: Axes) -> float:
    """Where a bar that is missing would begin."""
    return float(ax.get_xlim()[0])


def note(ax: Axes, x: float, y: float, text: str, color: str) -> None:
    """Words behind a bar."""
    ax.annotate(text, (x, y), xytext=(4, 0), textcoords="offset points", va="center", fontsize="small", color=color)
