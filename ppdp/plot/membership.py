"""How well members were told from others, below the curve that a certificate allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ppdp.core.figures import figure
from ppdp.exceptions import InvalidParameter
from ppdp.plot.canvas import BROKEN, FAINT, LINE, OURS, axes, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS = np.concatenate([[0.0], np.geomspace(1e-9, 1.0, 2001)])


def membership(report: Any, ax: Axes | None = None) -> Axes:
    """Draw true against false positive rates of a membership attack, and what the certificate allows at most.

    No attack can be above that but by the error of its counts; where nothing is claimed only the attack is drawn.

    Parameters
    ----------
    report : MembershipReport
        Of :func:`ppdp.audit.attack_membership`; private if it is.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        From 0 to 1 in both directions.

    Raises
    ------
    InvalidParameter
        If it is no such report.
    """
    if not hasattr(report, "curve") or not hasattr(report, "certified"):
        fix = "pass what attack_membership(...) returns."
        raise InvalidParameter(f"a {type(report).__name__} is no membership report.", fix=fix)
    ax = axes(ax, 4.4, 4.2)
    allowed = np.minimum(report.certified.allowed(POINTS), 1.0)
    # The complement of an event is bounded as well: 1 - q of the one dataset by what 1 - p of the other allows.
    rising = slice(int(np.argmax(allowed >= 1.0)) + 1)
    allowed = np.minimum(allowed, 1.0 - np.interp(1.0 - POINTS, allowed[rising], POINTS[rising]))
    if report.epsilon < np.inf:
        budget = f"({figure(report.epsilon)}, {figure(report.delta)})"
        ax.plot(POINTS, allowed, color=LINE, linestyle="--", label=f"allowed at (ε, δ) = {budget}")
        ax.fill_between(POINTS, allowed, 1.0, color=FAINT, alpha=0.12, linewidth=0)
    ax.plot((0, 1), (0, 1), color=FAINT, linewidth=0.8)
    color = BROKEN if report.violated else OURS
    ax.plot(*np.transpose(report.curve), color=color, linewidth=1.8, label=f"attack, AUC {report.auc:.3f}")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.set_xlabel("false positive rate")
    ax.set_ylabel("true positive rate")
    ax.legend(frameon=False, loc="lower right", fontsize="small")
    plain(ax)
    return ax
