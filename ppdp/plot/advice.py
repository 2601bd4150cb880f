"""What other ways through the same stages would cost."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any

from ppdp.core.figures import figure
from ppdp.exceptions import InvalidParameter
from ppdp.plot.bars import noise_axis, note, spare
from ppdp.plot.canvas import FAINT, LINE, OTHER, OURS, axes, cut, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["advice"]

MOST = 20  # routes


def advice(plan: Any, ax: Axes | None = None) -> Axes:
    """Draw the noise of every route, the chosen one on top, with the reason where one is not offered.

    Of a ladder every rung is drawn: the data decide which of them is used.

    Parameters
    ----------
    plan : Plan
        Needs no data.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        One row for each route, of the twenty best.

    Raises
    ------
    InvalidParameter
        If there is no plan, or it has no noise to compare.
    """
    if not hasattr(plan, "alternatives"):
        raise InvalidParameter(f"a {type(plan).__name__} gives no advice.", fix="pass pipe.plan(domain).")
    shown = plan.ranked()[:MOST]
    noises = [route.noise_scale for route in shown]
    if plan.mechanism is None or not any(noises):
        raise InvalidParameter(
            "this plan has no last step whose noise could be compared.", fix="add a mechanism as the last step."
        )
    ax = axes(ax, 8.6, 1.0 + 0.36 * len(shown))
    at = [i for i, noise in enumerate(noises) if noise is not None]
    ax.barh(
        at,
        [noise for noise in noises if noise is not None],
        height=0.6,
        color=[OURS if shown[i].status == "chosen" or plan.rungs else OTHER for i in at],
    )
    noise_axis(ax, noises, plan.mechanism.name, (plan.epsilon, plan.delta))
    for i, route in enumerate(shown):
        if route.noise_scale is None:
            note(ax, spare(ax), i, f"not offered: {words(cut(route.reason, 72))}", FAINT)
        else:
            chosen = ", chosen" if route.status == "chosen" else ""
            note(ax, route.noise_scale, i, figure(route.noise_scale, 3) + chosen, LINE)
    ax.set_yticks(range(len(shown)), [fill(words(route.route), 48) for route in shown], fontsize="small")
    ax.set_ylim(len(shown) - 0.4, -0.6)
    return ax
