"""What a column, or two of them together, add to the score of a boosted model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ppdp.exceptions import InvalidParameter
from ppdp.plot.canvas import FAINT, LINES, axes, plain, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTHS = 2.0  # of a band, in standard errors
LEAST = 0.01  # of what a column adds, that missing values must add to be shown
FEW = 4  # categories: more of them have slanting names


def shape(release: Any, column: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw what the values of a column add to a score, with a band of two standard errors on each side.

    It has a step for every run of values that add the same, or a bar for every category; a line for every class if
    there are several. Of two columns with a table, named as ``"age, dose"``, what every two groups of their values add
    beside that, in colours; a cross is on what is no more than two standard errors.

    Everything is read off released numbers. The errors are posterior standard deviations, of the noise and of the
    labels. What missing values add is a point at the right end, if enough are missing to tell.

    Parameters
    ----------
    release : Released
        ``release_`` of a pipeline that ends in a gradient boosting model.
    column : str, optional
        Which column, or two with a table; by default the column that moves scores most.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    """
    table = release.to_pandas() if hasattr(release, "to_pandas") else None
    if table is None or not len(table) or not table["statistic"].str.startswith("shape").any():
        raise InvalidParameter("this figure shows the release of a boosted model.", fix="pass pipe.release_.")
    if column is None:
        column = _largest(table)
    lines = table[table["statistic"].str.startswith(("shape", "table")) & (table["column"] == column)]
    if len(lines) and lines["statistic"].str.startswith("table").all():
        return _table(axes(ax, 5.2, 4.2), lines)
    if not len(lines):
        names = ", ".join(dict.fromkeys(table["column"][table["statistic"].str.startswith("shape")]))
        raise InvalidParameter("no shape was released of this column.", fix=f"one of {names}.", parameter="column")
    ax = axes(ax, 4.8, 3.2)
    ax.axhline(0, color=FAINT, linewidth=0.8)
    for (color, _), (statistic, own) in zip(LINES * len(lines), lines.groupby("statistic", sort=False)):
        draw = _steps if own["category"].iloc[:-1].eq("").all() else _bars
        draw(ax, own, color, words(statistic.removeprefix("shape").removeprefix(" of ")))
    if lines["statistic"].nunique() > 1:
        ax.legend(frameon=False, fontsize="small")
    ax.set(xlabel=words(column), ylabel="added to the score")
    return plain(ax)


def _largest(table: Any) -> str:
    importances = table[table["statistic"].str.startswith("importance")]
    return str(importances.groupby("column", sort=False)["value"].sum().idxmax())


def _table(ax: Axes, lines: Any) -> Axes:
    """Groups of the first column from the top down, of the second from left to right; what nobody has is left out."""
    lines = lines[lines["statistic"] == lines.loc[lines["value"].abs().idxmax(), "statistic"]]
    names = lines["category"].str.split("; ", n=1, expand=True)
    groups = [list(dict.fromkeys(names[side])) for side in (0, 1)]
    values, errors = (lines[name].to_numpy().reshape(*map(len, groups)) for name in ("value", "standard_error"))
    known = errors > 0 if np.isfinite(errors).all() else values != 0
    kept = np.ix_(known.any(axis=1), known.any(axis=0))
    values, errors = values[kept], errors[kept]
    most = float(np.abs(values).max())
    drawn = ax.pcolormesh(values, cmap="RdBu_r", vmin=-most, vmax=most, edgecolors="white")
    for row, other in np.argwhere(np.abs(values) <= WIDTHS * errors):
        ax.text(other + 0.5, row + 0.5, "×", ha="center", va="center", color=FAINT)
    first, second = words(lines["column"].iloc[0]).split(", ", 1)
    for axis, of_groups, places, label in (
        (ax.yaxis, groups[0], known.any(axis=1), first),
        (ax.xaxis, groups[1], known.any(axis=0), second),
    ):
        shown = [words(name) for name, here in zip(of_groups, places) if here]
        axis.set_ticks(np.arange(len(shown)) + 0.5, shown, fontsize="x-small")
        axis.set_label_text(label)
    ax.tick_params(axis="x", rotation=30)
    ax.invert_yaxis()
    label = lines["statistic"].iloc[0].removeprefix("table").removeprefix(" of ")
    ax.figure.colorbar(drawn, ax=ax, label=words(f"added to the score of {label}" if label else "added to the score"))
    return ax


def _steps(ax: Axes, lines: Any, color: str, label: str) -> None:
    known = lines["raw_low"].notna().any()
    runs, gap = lines.iloc[:-1], lines.iloc[-1]
    if known:
        runs = runs.sort_values("raw_low")
    low, high = ("raw_low", "raw_high") if known else ("low", "high")
    ends = np.append(runs[low], runs[high].iloc[-1])
    values, errors = runs["value"].to_numpy(), WIDTHS * runs["standard_error"].to_numpy()
    ax.stairs(values + errors, ends, baseline=values - errors, fill=True, color=color, alpha=0.2)
    ax.stairs(values, ends, baseline=None, color=color, label=label)
    if gap["standard_error"] > runs["standard_error"].max() or abs(gap["value"]) < LEAST * np.ptp(runs["value"]):
        return
    beside = ends[-1] + 0.05 * (ends[-1] - ends[0])
    ax.errorbar(beside, gap["value"], WIDTHS * gap["standard_error"], color=color, marker="o", markersize=4)
    place = (beside, 0.02)
    ax.annotate("missing", place, xycoords=("data", "axes fraction"), ha="center", fontsize="x-small", color=FAINT)


def _bars(ax: Axes, lines: Any, color: str, label: str) -> None:
    names = [words(name) for name in lines["category"]]
    ax.errorbar(
        range(len(names)), lines["value"], WIDTHS * lines["standard_error"],
        color=color, marker="o", linestyle="none", capsize=3, label=label,
    )  # fmt: skip
    many = len(names) > FEW
    ax.set_xticks(range(len(names)), names, rotation=30 if many else 0, ha="right" if many else "center")
