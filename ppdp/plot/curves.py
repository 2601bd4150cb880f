"""Curves: epsilon against delta, how likely a gate passes, and what a membership attack reached."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from ppdp.certificate.document import Certificate
from ppdp.core.figures import figure
from ppdp.exceptions import InvalidParameter
from ppdp.plot.canvas import BROKEN, FAINT, LINE, LINES, OURS, axes, labelled, plain, words
from ppdp.privacy.gate import Gate
from ppdp.privacy.loss import PrivacyLoss

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

Subject = Certificate | PrivacyLoss
LOWEST, HIGHEST = -12, -2  # powers of ten
GAUSSIAN, OTHER = 81, 21  # points; a loss with parts costs a convolution for each
MARGINS = 241
USUAL = 0.99
RATES = np.concatenate([[0.0], np.geomspace(1e-9, 1.0, 2001)])


def epsilon_delta(certificate_or_loss: Subject | Sequence[tuple[str, Subject]], ax: Axes | None = None) -> Axes:
    """Draw the epsilon that is guaranteed at every delta; a certificate's own pair is marked.

    Where an end of a curve is missing nothing is promised: gate and sampler alone need more delta.

    Parameters
    ----------
    certificate_or_loss : Certificate, PrivacyLoss, or list of (label, Certificate or PrivacyLoss)
        One curve or several; ``plan.loss`` needs no data.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
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
    ax.set(xscale="log", xlim=(10.0**LOWEST, 10.0**HIGHEST), ylim=(0, 1.1 * ax.get_ylim()[1]))
    ax.set(xlabel="δ", ylabel="guaranteed ε")
    if any(label for label, _ in subjects):
        ax.legend(frameon=False)
    return plain(ax)


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


def gate(plan_or_gate: Any, ax: Axes | None = None) -> Axes:
    """Draw how likely the gate passes, against the margin of the data in rows.

    The margin is hypothetical: how many rows must be replaced before a condition fails. The
    dashed line is the margin from which 99 % of runs pass.

    Parameters
    ----------
    plan_or_gate : Plan or Gate
        A plan that tests conditions, or its gate.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    """
    found: Gate = _gate(plan_or_gate)
    ax = axes(ax, 5.6, 3.2)
    margin = found.needed_margin(USUAL)
    top = 1.35 * margin
    each = found.noise.whole and top < MARGINS
    margins = (np.arange(math.ceil(top) + 1.0) if each else np.linspace(0, top, MARGINS)).tolist()
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
    ax.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
    ax.set(xlim=(0, margins[-1]), xlabel="margin: rows to replace before a condition fails")
    ax.set(ylim=(0, 1.03), ylabel="the gate passes")
    return plain(ax)


def _gate(subject: Any) -> Any:
    if isinstance(subject, Gate):
        return subject
    if not hasattr(subject, "gate") or not hasattr(subject, "conditions"):
        raise InvalidParameter(f"a {type(subject).__name__} has no gate to draw.", fix="pass a Plan or a Gate.")
    if subject.gate is None:
        assumed = "it assumes its conditions" if subject.conditions else "it assumes nothing of the data"
        raise InvalidParameter(f"this plan has no gate: {assumed}.", fix="draw a plan that tests conditions.")
    return subject.gate


def membership(report: Any, ax: Axes | None = None) -> Axes:
    """Draw true against false positive rates of a membership attack, and what the certificate allows at most.

    No attack can be above that but by the error of its counts; where nothing is claimed only the attack is drawn.

    Parameters
    ----------
    report : MembershipReport
        Of :func:`ppdp.audit.attack_membership`; private if it is.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    """
    if not hasattr(report, "curve") or not hasattr(report, "certified"):
        fix = "pass what attack_membership(...) returns."
        raise InvalidParameter(f"a {type(report).__name__} is no membership report.", fix=fix)
    ax = axes(ax, 4.4, 4.2)
    allowed = np.minimum(report.certified.allowed(RATES), 1.0)
    # The complement of an event is bounded as well: 1 - q of the one dataset by what 1 - p of the other allows.
    rising = slice(int(np.argmax(allowed >= 1.0)) + 1)
    allowed = np.minimum(allowed, 1.0 - np.interp(1.0 - RATES, allowed[rising], RATES[rising]))
    if report.epsilon < np.inf:
        budget = f"({figure(report.epsilon)}, {figure(report.delta)})"
        ax.plot(RATES, allowed, color=LINE, linestyle="--", label=f"allowed at (ε, δ) = {budget}")
        ax.fill_between(RATES, allowed, 1.0, color=FAINT, alpha=0.12, linewidth=0)
    ax.plot((0, 1), (0, 1), color=FAINT, linewidth=0.8)
    color = BROKEN if report.violated else OURS
    ax.plot(*np.transpose(report.curve), color=color, linewidth=1.8, label=f"attack, AUC {report.auc:.3f}")
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="false positive rate", ylabel="true positive rate")
    ax.legend(frameon=False, loc="lower right", fontsize="small")
    return plain(ax)


FEW = 8  # epsilons: each then has its tick
Points = list[tuple[float, float]]
_WANTED = (
    "privacy_utility draws (epsilon, score) pairs, fitted searches, a mapping of labels to these, or a frame with"
    " columns 'epsilon', 'score' and perhaps 'label'."
)


def privacy_utility(
    results: Any, ax: Axes | None = None, *, baseline: float | Mapping[str, float] | None = None, score: str = "score"
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
    ax.set(xlabel="ε", ylabel=words(score))
    if any(curves) or lines:
        ax.legend(frameon=False, loc="lower right")
    return plain(ax)


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
