"""Bars: how far neighbouring datasets are pushed apart, stage by stage, and what other ways would cost in noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

from ppdp.certificate.document import Certificate
from ppdp.certificate.pages.derivation import Point, points_of
from ppdp.core.figures import figure
from ppdp.exceptions import InvalidParameter
from ppdp.plot.canvas import BROKEN, FAINT, LINE, OTHER, OURS, axes, bar_axis, cut, note, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROUTES = ("#2f7f79", "#adb5bb", "#93699f", "#c2a14d", "#566573")
ENTRANCE = "entrance"
THICK = 0.56  # of the room between two stages

Path = tuple[Point, ...]
MOST = 20  # routes
LOOKS = {"does not hold": {"facecolor": "white", "edgecolor": BROKEN, "hatch": "////"}, "chosen": {"color": OURS}}


def distance(certificate_or_plan: Any, ax: Axes | None = None) -> Axes:
    """Draw the distance of neighbouring datasets at the entrance and after every stage.

    The length of a bar is the most that a sum of the rows can change, in units of what one replaced row can change
    it: ``(R mass + min(total, 2 R moved)) / 2R`` where rows have norm at most R (``docs/theory/distance.md``). The
    scale is logarithmic where the lengths spread far. It needs no data: a plan is enough.

    Parameters
    ----------
    certificate_or_plan : Certificate, Plan, or list of (label, Certificate or Plan)
        One pipeline as a waterfall, or several side by side.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    """
    single = not isinstance(certificate_or_plan, (list, tuple))
    pairs = [("", certificate_or_plan)] if single else certificate_or_plan
    if not pairs or not all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in pairs):
        raise InvalidParameter("distance draws a Certificate, a Plan, or a list of (label, Certificate or Plan).")
    labels, paths = [str(label) for label, _ in pairs], [_path(subject) for _, subject in pairs]
    names = _merged([[point.name for point in path] for path in paths])
    ax = axes(ax, 7.2, 1.0 + 0.3 * len(names) * max(2, len(paths)))
    if single:
        _waterfall(ax, paths[0])
    else:
        _side_by_side(ax, labels, paths, names)
    levels = [level for path in paths for point in path for level in (point.rows, point.unmatched)]
    shortest = min((level for level in levels if level > 0), default=1.0)
    bar_axis(ax, levels, 2, 1.25, 1.25 * max(*levels, 4 * shortest))
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlabel("distance of neighbouring datasets, in replaced rows")
    return ax


def _path(subject: Any) -> Path:
    if isinstance(subject, Certificate):
        return points_of(subject.record)
    if hasattr(subject, "steps") and hasattr(subject, "distance"):
        entrance = Point("", subject.distance, subject.domain.row_norm)
        return entrance, *(Point(s.name, s.way.distance, s.way.domain.row_norm) for s in subject.steps)
    raise InvalidParameter(f"a {type(subject).__name__} has no distance to draw.", fix="pass a Certificate or a Plan.")


def _merged(lists: Sequence[Sequence[str]]) -> list[str]:
    """Every stage once, in an order that keeps each pipeline's own as far as they agree."""
    merged: list[str] = []
    for names in lists:
        at = 0
        for name in names:
            if name not in merged:
                merged.insert(at, name)
            at = merged.index(name) + 1
    return merged


def _waterfall(ax: Axes, path: Path) -> None:
    """Unmatched rows, then rows that moved; a line leads each length on to the next stage."""
    at = range(len(path))
    unmatched = [point.unmatched for point in path]
    moved = [point.rows - point.unmatched for point in path]
    ax.barh(at, unmatched, height=THICK, color=OURS, label="replaced or toggled")
    if any(moved):
        ax.barh(at, moved, left=unmatched, height=THICK, color=BROKEN, label="moved")
        ax.legend(frameon=False, loc="upper right")
    for i, (before, _) in enumerate(pairwise(path)):
        ax.plot([before.rows] * 2, [i + THICK / 2, i + 1 + THICK / 2], color=FAINT, linewidth=0.8)
    for i, point in enumerate(path):
        note(ax, point.rows, i, figure(point.rows))
    ax.set_yticks(at, [f"{words(point.name) or ENTRANCE}\n{', '.join(point.labels)}" for point in path])


def _side_by_side(ax: Axes, labels: Sequence[str], paths: Sequence[Path], names: Sequence[str]) -> None:
    """One bar for each pipeline that has the stage."""
    thick = THICK * 1.4 / len(paths)
    for k, (label, path) in enumerate(zip(labels, paths)):
        shift = (k - (len(paths) - 1) / 2) * thick
        at = [names.index(point.name) + shift for point in path]
        ax.barh(
            at, [point.rows for point in path], height=0.9 * thick, color=ROUTES[k % len(ROUTES)], label=words(label)
        )
        for y, point in zip(at, path):
            note(ax, point.rows, y, figure(point.rows))
    ax.set_yticks(range(len(names)), [words(name) or ENTRANCE for name in names])
    ax.legend(frameon=False, loc="upper right")


class _Row(NamedTuple):
    """A bar with its name and the words behind it; no bar where there is no noise."""

    name: str
    noise: float | None
    looks: Mapping[str, Any]
    told: str


def advice(plan: Any, ax: Axes | None = None) -> Axes:
    """Draw the noise of the twenty best routes, the chosen one on top, with the reason where one is not offered.

    Parameters
    ----------
    plan : Plan
        Needs no data.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    """
    if not hasattr(plan, "alternatives"):
        raise InvalidParameter(f"a {type(plan).__name__} gives no advice.", fix="pass pipe.plan(domain).")
    shown = plan.ranked()[:MOST]
    noises = [route.noise_scale for route in shown]
    if plan.mechanism is None or not any(noises):
        what = "this plan has no last step whose noise could be compared."
        raise InvalidParameter(what, fix="add a mechanism as the last step.")
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
