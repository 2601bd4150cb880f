"""Scores against epsilon."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from ppdp.exceptions import InvalidParameter
from ppdp.plot.canvas import FAINT, LINES, axes, plain, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEW = 8  # epsilons: each then has its tick
Points = list[tuple[float, float]]
_WANTED = (
    "privacy_utility draws (epsilon, score) pairs, fitted searches, a mapping of labels to these, or a frame with"
    " columns 'epsilon', 'score' and perhaps 'label'."
)


def privacy_utility(
    results: Any,
    ax: Axes | None = None,
    *,
    baseline: float | Mapping[str, float] | None = None,
    score: str = "score",
) -> Axes:
    """Draw scores against epsilon: a line through the means, a band from the least to the greatest of each epsilon.

    Scores of private rows are private: no certificate covers them, unless a
    :class:`~ppdp.PrivateSearchCV` released them with noise.

    Parameters
    ----------
    results : sequence of pairs or searches, mapping, or frame
        (epsilon, score) pairs, with one pair for each run; fitted searches, which give what they released; a mapping of
        labels to either; or a table with columns "epsilon", "score" and perhaps "label".
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    baseline : float or mapping of labels to floats, optional
        Score without privacy, or of something else that is named, as a dashed line.
    score : str, default="score"
        What the scores are.

    Returns
    -------
    Axes
        Scores against epsilon, on a logarithmic axis where epsilons spread tenfold.

    Raises
    ------
    InvalidParameter
        If there are no such results.
    """
    curves = _curves(results)
    ax = axes(ax, 5.6, 3.4)
    for k, (label, points) in enumerate(curves.items()):
        color, dashes = LINES[k % len(LINES)]
        epsilons = sorted({epsilon for epsilon, _ in points})
        runs = [[score for epsilon, score in points if epsilon == at] for at in epsilons]
        low, high = [min(scores) for scores in runs], [max(scores) for scores in runs]
        ax.fill_between(epsilons, low, high, color=color, alpha=0.15, linewidth=0)
        means = [float(np.mean(scores)) for scores in runs]
        ax.plot(epsilons, means, color=color, linestyle=dashes, marker="o", markersize=4, label=words(label))
    every = sorted({epsilon for points in curves.values() for epsilon, _ in points})
    if every[-1] >= 10 * every[0]:
        ax.set_xscale("log")
        if len(every) <= FEW:
            ax.set_xticks(every)
            ax.minorticks_off()
        ax.xaxis.set_major_formatter("{x:g}")
    lines = baseline if isinstance(baseline, Mapping) else {} if baseline is None else {"without privacy": baseline}
    for label, level in lines.items():
        ax.axhline(level, color=FAINT, linestyle=(0, (4, 3)), linewidth=1.0, label=words(label))
    ax.set_xlabel("ε")
    ax.set_ylabel(words(score))
    if any(curves) or lines:
        ax.legend(frameon=False, loc="lower right")
    plain(ax)
    return ax


def _curves(results: Any) -> dict[str, Points]:
    """Points by label."""
    columns = getattr(results, "columns", None)
    if columns is not None:
        names = set(map(str, columns))
        if not {"epsilon", "score"} <= names or not len(results):
            raise InvalidParameter(_WANTED)
        labels = list(results["label"]) if "label" in names else [""] * len(results)
        table = list(zip(map(str, labels), results["epsilon"], results["score"]))
        return {
            label: _points([(e, s) for k, e, s in table if k == label]) for label in dict.fromkeys(map(str, labels))
        }
    if isinstance(results, Mapping) and results:
        return {str(label): _points(items) for label, items in results.items()}
    return {"": _points(results)}


def _points(items: Any) -> Points:
    """Checked pairs; a search gives its own."""
    if hasattr(items, "summary_"):
        items = [items]
    if not isinstance(items, (list, tuple, np.ndarray)):
        raise InvalidParameter(_WANTED)
    points = [pair for item in items for pair in _pairs(item)]
    if not points:
        raise InvalidParameter(_WANTED)
    return points


def _pairs(item: Any) -> Points:
    if hasattr(item, "summary_"):
        released = item.cv_results_.get("noisy_test_score", [getattr(item, "best_score_", math.nan)])
        return [(item.summary_.epsilon, float(score)) for score in released if math.isfinite(score)]
    pair = tuple(item) if isinstance(item, (list, tuple, np.ndarray)) else ()
    if len(pair) != 2 or not all(isinstance(v, (Real, np.number)) and math.isfinite(v) for v in pair) or pair[0] <= 0:
        raise InvalidParameter(_WANTED)
    return [(float(pair[0]), float(pair[1]))]
