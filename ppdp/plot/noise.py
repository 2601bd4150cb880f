"""Bars of noise: what other ways through the same stages would cost, and what the usual claims are worth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

from ppdp.core.figures import figure
from ppdp.exceptions import InvalidParameter
from ppdp.plot.canvas import BROKEN, FAINT, LINE, OTHER, OURS, axes, bar_axis, cut, note, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 20  # routes
LOOKS = {"does not hold": {"facecolor": "white", "edgecolor": BROKEN, "hatch": "////"}, "chosen": {"color": OURS}}


class _Row(NamedTuple):
    """A bar with its name and the words behind it; no bar where there is no noise."""

    name: str
    noise: float | None
    looks: Mapping[str, Any]
    told: str


def advice(plan: Any, ax: Axes | None = None) -> Axes:
    """Draw the noise of every route, the chosen one on top, with the reason where one is not offered.

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
    rows = []
    for route, noise in zip(shown, noises):
        told = f"not offered: {words(cut(route.reason, 72))}" if noise is None else figure(noise, 3)
        chosen = route.status == "chosen"
        looks = {"color": OURS if chosen else OTHER}
        rows.append(_Row(fill(words(route.route), 48), noise, looks, told + (", chosen" if chosen else "")))
    ax = axes(ax, 8.6, 1.0 + 0.36 * len(rows))
    return _draw(ax, rows, plan.mechanism.name, (plan.epsilon, plan.delta), fontsize="small")


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
    rows = [_Row(p.name, p.noise_scale, LOOKS.get(p.status, {"color": OTHER}), _words(p)) for p in comparison.practices]
    budget = comparison.epsilon, comparison.delta
    return _draw(axes(ax, 8.0, 2.9), rows, comparison.last_step, budget)


def _words(practice: Any) -> str:
    """Noise and what it proves."""
    if practice.noise_scale is None:
        return f"not offered: {words(cut(practice.reason, 80))}"
    proved = "nothing" if practice.provable == math.inf else f"ε = {figure(practice.provable, upward=True)}"
    claims = f"claims ε = {figure(practice.claimed)}, " if practice.status == "does not hold" else ""
    return f"{figure(practice.noise_scale, 3)}: {claims}proves {proved}"


def _draw(ax: Axes, rows: list[_Row], step: str, budget: tuple[float, float], **ticks: Any) -> Axes:
    """Bars of the noise of a step at this (epsilon, delta), from top to bottom."""
    for i, row in enumerate(rows):
        if row.noise is not None:
            ax.barh(i, row.noise, height=0.6, **row.looks)
    known = [row.noise for row in rows if row.noise]
    bar_axis(ax, known, 3, 1.35, 1.4 * max(known))
    for i, row in enumerate(rows):
        note(ax, row.noise, i, row.told, FAINT if row.noise is None else LINE)
    epsilon, delta = map(figure, budget)
    ax.set_xlabel(f"noise of '{words(step)}' at (ε, δ) = ({epsilon}, {delta})")
    ax.set_yticks(range(len(rows)), [row.name for row in rows], **ticks)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    return ax
