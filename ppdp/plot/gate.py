"""How likely a gate passes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ppdp.exceptions import InvalidParameter
from ppdp.plot.canvas import FAINT, LINE, LINES, axes, plain
from ppdp.privacy.gate import Gate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS = 241
USUAL = 0.99


def gate(plan_or_gate: Any, ax: Axes | None = None) -> Axes:
    """Draw how likely the gate passes, against the margin of the data in rows.

    The margin is how many rows must be replaced before a condition fails: a thought, not a measurement of data. The
    dashed line is the margin from which 99 % of runs pass.

    Parameters
    ----------
    plan_or_gate : Plan or Gate
        A plan that tests conditions, or its gate.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        Probabilities against margins.

    Raises
    ------
    InvalidParameter
        If there is no gate here.
    """
    found: Gate = _gate(plan_or_gate)
    ax = axes(ax, 5.6, 3.2)
    margin = found.needed_margin(USUAL)
    top = 1.35 * margin
    each = found.noise.whole and top < POINTS
    margins = (np.arange(math.ceil(top) + 1.0) if each else np.linspace(0, top, POINTS)).tolist()
    color, dashes = LINES[0]
    passing = [1 - found.refusal_probability(m) for m in margins]
    style = "steps-pre" if found.noise.whole else "default"
    ax.plot(margins, passing, color=color, linestyle=dashes, linewidth=1.8, drawstyle=style)
    ax.axvline(margin, color=color, linestyle=(0, (2, 2)), linewidth=0.9)
    ax.annotate(
        f"99 % from {math.ceil(margin)} rows",
        (margin, 0.05),
        xytext=(3, 0),
        textcoords="offset points",
        rotation=90,
        fontsize="small",
        color=LINE,
    )
    ax.axhline(USUAL, color=FAINT, linewidth=0.6)
    ax.set_xlim(0, margins[-1])
    ax.set_ylim(0, 1.03)
    ax.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
    ax.set_xlabel("margin: rows to replace before a condition fails")
    ax.set_ylabel("the gate passes")
    plain(ax)
    return ax


def _gate(subject: Any) -> Any:
    if isinstance(subject, Gate):
        return subject
    if not hasattr(subject, "gate") or not hasattr(subject, "conditions"):
        raise InvalidParameter(f"a {type(subject).__name__} has no gate to draw.", fix="pass a Plan or a Gate.")
    if subject.gate is None:
        assumed = "it assumes its conditions" if subject.conditions else "it assumes nothing of the data"
        raise InvalidParameter(f"this plan has no gate: {assumed}.", fix="draw a plan that tests conditions.")
    return subject.gate
