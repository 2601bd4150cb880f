"""How far neighbouring datasets are pushed apart, stage by stage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ppdp.certificate.document import Certificate
from ppdp.certificate.markup import figure
from ppdp.certificate.points import Point, points_of, spreads
from ppdp.exceptions import InvalidParameter
from ppdp.planning.plan import Plan

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["distance"]

UNMATCHED, MOVED, MUTED = "#3b6690", "#d08a4e", "#7c8a97"
ROUTES = ("#3b6690", "#d08a4e", "#5f8f5a", "#8b5e9c", "#7c8a97")
ENTRANCE = "entrance"
HEADROOM = 1.25

Routes = Sequence[tuple[str, Certificate | Plan]]


def distance(of: Certificate | Plan | Routes, ax: Axes | None = None) -> Axes:
    """Draw the distance of neighbouring datasets after every stage.

    A height is the most that a sum of the rows can change, in units of what one replaced row can change it:
    ``(R mass + min(total, 2 R moved)) / 2R`` where rows have norm at most R (``docs/theory/distance.md``). One
    pipeline is drawn as a waterfall, several as steps. The scale is logarithmic where the heights spread far.

    Parameters
    ----------
    of : Certificate, Plan, or list of (label, Certificate or Plan)
        One pipeline, or several to compare.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes

    Raises
    ------
    InvalidParameter
        If ``of`` is none of these.
    """
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.subplots(figsize=(7.2, 3.8), layout="constrained")[1]
    if isinstance(of, (Certificate, Plan)):
        levels = _waterfall(ax, _points(of))
    else:
        levels = _steps(ax, [(label, _points(one)) for label, one in _routes(of)])
    if spreads(levels):
        ax.set_yscale("log")
        ax.set_ylim(min(levels) / 2, max(levels) * HEADROOM**3)
    else:
        ax.set_ylim(0, max(levels) * HEADROOM)
    ax.set_ylabel("distance, in replaced rows")
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(axis="x", length=0)
    return ax


def _routes(of: Any) -> Routes:
    pairs = list(of) if isinstance(of, (list, tuple)) else []
    if not pairs or not all(isinstance(p, (list, tuple)) and len(p) == 2 for p in pairs):
        raise InvalidParameter("distance draws a Certificate, a Plan, or a list of (label, Certificate or Plan).")
    return pairs


def _points(of: Any) -> tuple[Point, ...]:
    if isinstance(of, Certificate):
        return points_of(of.to_dict())
    if isinstance(of, Plan):
        after = [(step.name, step.way.distance, step.way.domain.row_norm) for step in of.steps]
        return tuple(Point(*at) for at in [("", of.distance, of.domain.row_norm), *after])
    raise InvalidParameter(f"a {type(of).__name__} has no distance to draw.", fix="pass a Certificate or a Plan.")


def _waterfall(ax: Axes, points: Sequence[Point]) -> list[float]:
    """Unmatched rows, what the stages before moved, and what this stage adds or takes away."""
    at = range(len(points))
    unmatched = [point.unmatched for point in points]
    levels = [point.rows for point in points]
    ax.bar(at, unmatched, width=0.6, color=UNMATCHED, label="replaced or toggled")
    if any(level > floor for level, floor in zip(levels, unmatched)):
        moves = [level - floor for level, floor in zip(levels, unmatched)]
        ax.bar(at, moves, bottom=unmatched, width=0.6, color=MOVED, label="moved")
        ax.legend(frameon=False, loc="upper left")
    for i, (before, point) in enumerate(zip(levels, points[1:])):
        ax.plot([i + 0.3, i + 1.3], [before, before], color=MUTED, linewidth=0.8)
    for i, point in enumerate(points):
        ax.annotate(
            "\n".join([figure(point.rows), *point.labels]),
            (i, point.rows),
            xytext=(0, 4),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize="small",
        )
    ax.set_xticks(list(at), [point.name or ENTRANCE for point in points])
    return levels
