"""Epsilon as a function of delta."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ppdp.certificate.document import Certificate
from ppdp.core.figures import figure
from ppdp.plot.canvas import FAINT, LINES, axes, labelled, plain, words
from ppdp.privacy.loss import PrivacyLoss

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

Subject = Certificate | PrivacyLoss
LOWEST, HIGHEST = -12, -2  # powers of ten
GAUSSIAN, OTHER = 81, 21  # points; a loss with parts costs a convolution for each


def epsilon_delta(certificate_or_loss: Subject | Sequence[tuple[str, Subject]], ax: Axes | None = None) -> Axes:
    """Draw the epsilon that is guaranteed at every delta; a certificate's own pair is marked.

    Where an end of a curve is missing nothing is promised: gate and sampler alone need more delta.

    Parameters
    ----------
    certificate_or_loss : Certificate, PrivacyLoss, or list of (label, Certificate or PrivacyLoss)
        One curve or several; ``plan.loss`` needs no data.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes
        With a logarithmic axis of delta.

    Raises
    ------
    InvalidParameter
        If there is nothing here that has a loss.
    """
    subjects = labelled(certificate_or_loss, (Certificate, PrivacyLoss), "a Certificate or a PrivacyLoss")
    ax = axes(ax, 5.6, 3.4)
    for k, (label, subject) in enumerate(subjects):
        color, dashes = LINES[k % len(LINES)]
        deltas, epsilons = _curve(subject)
        ax.plot(deltas, epsilons, color=color, linestyle=dashes, label=words(label), linewidth=1.8)
        if isinstance(subject, Certificate):
            here = subject.delta or 10.0**LOWEST, subject.epsilon
            ax.plot(*here, "o", color=color, markersize=6, clip_on=False)
            ax.annotate(
                f"certified: ({figure(subject.epsilon)}, {figure(subject.delta)})",
                here,
                xytext=(7, 6),
                textcoords="offset points",
                fontsize="small",
            )
        if math.isinf(epsilons[0]) and len(subjects) == 1:
            _void(ax, deltas[0], deltas[np.isfinite(epsilons)].min(initial=deltas[-1]))
    ax.set_xscale("log")
    ax.set_xlim(10.0**LOWEST, 10.0**HIGHEST)
    ax.set_ylim(0, 1.1 * ax.get_ylim()[1])
    ax.set_xlabel("δ")
    ax.set_ylabel("guaranteed ε")
    if any(label for label, _ in subjects):
        ax.legend(frameon=False)
    plain(ax)
    return ax


def _void(ax: Axes, low: float, high: float) -> None:
    ax.axvspan(low, high, color=FAINT, alpha=0.12, linewidth=0)
    middle = math.sqrt(low * high), 0.5
    ax.annotate(
        "nothing promised", middle, xycoords=("data", "axes fraction"), ha="center", fontsize="small", color=FAINT
    )


def _curve(subject: Subject) -> tuple[np.ndarray, np.ndarray]:
    """Deltas from small to large with what is guaranteed there."""
    loss = subject.loss if isinstance(subject, Certificate) else subject
    own = {subject.delta} - {0.0} if isinstance(subject, Certificate) else set()
    grid = np.logspace(LOWEST, HIGHEST, OTHER if loss.parts else GAUSSIAN)
    deltas = np.array(sorted({*grid.tolist(), *own}))
    at = subject.epsilon_at if isinstance(subject, Certificate) else subject.epsilon
    return deltas, np.array([at(delta) for delta in deltas.tolist()])
