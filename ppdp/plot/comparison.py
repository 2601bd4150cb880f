"""The usual claims beside what is certified."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ppdp.core.figures import figure
from ppdp.exceptions import InvalidParameter
from ppdp.plot.bars import noise_axis, note, spare
from ppdp.plot.canvas import BROKEN, FAINT, LINE, OTHER, OURS, axes, cut, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["comparison"]


def comparison(comparison: Any, ax: Axes | None = None) -> Axes:
    """Draw the noise of the usual practices and of the chosen route, with the epsilon that each can prove.

    A hatched bar is noise that does not keep what is claimed for it.

    Parameters
    ----------
    comparison : Comparison
        Of ``pipe.compare(domain)``; needs no data.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        One row for each practice.

    Raises
    ------
    InvalidParameter
        If it is no comparison.
    """
    if not hasattr(comparison, "practices"):
        raise InvalidParameter(f"a {type(comparison).__name__} is no comparison.", fix="pass pipe.compare(domain).")
    ax = axes(ax, 8.0, 2.9)
    practices = comparison.practices
    for i, practice in enumerate(practices):
        if practice.noise_scale is not None:
            _bar(ax, i, practice.noise_scale, practice.status)
    budget = comparison.epsilon, comparison.delta
    noise_axis(ax, [practice.noise_scale for practice in practices], comparison.last_step, budget)
    for i, practice in enumerate(practices):
        missing = practice.noise_scale is None
        end = spare(ax) if practice.noise_scale is None else practice.noise_scale
        note(ax, end, i, _words(practice), FAINT if missing else LINE)
    ax.set_yticks(range(len(practices)), [practice.name for practice in practices])
    ax.set_ylim(len(practices) - 0.4, -0.6)
    return ax


def _bar(ax: Axes, y: float, noise: float, status: str) -> None:
    if status == "does not hold":
        ax.barh(y, noise, height=0.6, facecolor="white", edgecolor=BROKEN, hatch="////")
    else:
        ax.barh(y, noise, height=0.6, color=OURS if status == "chosen" else OTHER)


def _words(practice: Any) -> str:
    """Noise and what it proves."""
    if practice.noise_scale is None:
        return f"not offered: {words(cut(practice.reason, 80))}"
    proved = "nothing" if practice.provable == math.inf else f"ε = {figure(practice.provable, upward=True)}"
    claims = f"claims ε = {figure(practice.claimed)}, " if practice.status == "does not hold" else ""
    return f"{figure(practice.noise_scale, 3)}: {claims}proves {proved}"
