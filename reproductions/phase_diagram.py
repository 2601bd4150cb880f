"""When does non-private pre-processing pay? PCA of rank 1, over rows n, columns d, eigengap and epsilon.

    python reproductions/phase_diagram.py

**The paper** answers by two examples (Figure 3, Table 4) and "typically [...] a minimal, constant-order increase". No
diagram.

**Here** exact, soft and noisy PCA and no pre-processing are compared by the error that privacy adds, for a model and
for two statistics, by the formulas of ``_prices.py``, which also says what they leave out. Coloured is the way with the
least error, where that is below 1 (model) or 0.1 (statistics).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from _page import Section, run, shown
from _prices import ASKED, ERRORS, EXACT, LENGTH, MODEL, NOISY, NONE, RIDGES, SHARES, SOFT, WAYS, WORST, Case, World

from ppdp.plot.canvas import LINES, OTHER, OURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = np.ndarray[Any, Any]
COLUMNS = (100, 6000)
WORLDS = tuple((d, epsilon) for epsilon in (1.0, 0.1) for d in COLUMNS)
USEFUL = {MODEL: 1.0, WORST: 0.1, LENGTH: 0.1}
NOTHING = "no way is useful"
COLOURS = {NOTHING: "#f1f3f5", NONE: OTHER, EXACT: LINES[1][0], SOFT: LINES[3][0], NOISY: OURS}
GATES = (
    ("a gate for 5 % of the budget passes", "-"),
    ("that gate, if one row moved the gap by 12.2/n (paper)", ":"),
)


@dataclass(frozen=True)
class Cell:
    """What was found for one use at one place of the grid.

    Attributes
    ----------
    case : Case
        The place.
    use : str
        One of USEFUL.
    errors : dict
        Least error by way.
    """

    case: Case
    use: str
    errors: dict[str, float]

    @classmethod
    def of(cls, case: Case, use: str) -> Cell:
        """Price everything."""
        return cls(case, use, case.errors(use, ASKED[use]))

    def best(self) -> str:
        """The way with the least error, if it is useful."""
        name = min(self.errors, key=lambda way: self.errors[way], default=NOTHING)
        return name if self.errors.get(name, math.inf) < USEFUL[self.use] else NOTHING

    def times(self, way: str, other: str) -> float:
        """Error of a way in units of that of another one; infinite where it cannot be taken."""
        return self.errors.get(way, math.inf) / self.errors[other]

    @property
    def gates(self) -> float:
        """Rows, in units of those that the usual gate needs."""
        return self.case.world.n * self.case.gap / (2 * self.case.world.margin())


def survey(sizes: Array, gaps: Array) -> Iterator[Cell]:
    """Every use at every place."""
    for (d, epsilon), n in product(WORLDS, sizes):
        world = World(round(n), d, epsilon)
        for case in (Case(world, float(gap)) for gap in gaps):
            yield from (Cell.of(case, use) for use in USEFUL)


def draw(sizes: Array, gaps: Array, cells: list[Cell]) -> Figure:
    """A row of panels for each use."""
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    shades = list(COLOURS)
    figure = Figure(figsize=(13, 9), layout="constrained")
    panels = figure.subplots(len(USEFUL), len(WORLDS), sharex=True, sharey=True)
    for (use, row), (column, (d, epsilon)) in product(zip(USEFUL, panels), enumerate(WORLDS)):
        ax: Axes = row[column]
        here = [shades.index(cell.best()) for cell in cells if cell.use == use and _world(cell) == (d, epsilon)]
        table = np.reshape(here, (len(sizes), len(gaps))).T
        ax.pcolormesh(sizes, gaps, table, cmap=ListedColormap(list(COLOURS.values())), vmin=-0.5, vmax=4.5)
        margin = World(10**6, d, epsilon).margin()
        for unit, (_, dashes) in zip((2.0, 12.2), GATES):
            ax.plot(unit * margin / gaps, gaps, color="black", linewidth=1, linestyle=dashes)
        ax.set(xscale="log", yscale="log", xlim=(sizes[0], sizes[-1]), ylim=(gaps[0], gaps[-1]))
        ax.set_title(f"{use}, d = {d:,}, ε = {epsilon:g}", fontsize=10)
    for ax in panels[-1]:
        ax.set_xlabel("rows n")
    for ax in panels[:, 0]:
        ax.set_ylabel("eigengap (rows of norm 1)")
    drawn = {cell.best() for cell in cells}
    handles: list[Any] = [
        Patch(color=shade, label=way if way == NOTHING else f"{way} is best")
        for way, shade in COLOURS.items()
        if way in drawn
    ]
    for label, dashes in GATES:
        handles += panels[0][0].plot([], [], color="black", linewidth=1, linestyle=dashes, label=label)
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def _world(cell: Cell) -> tuple[int, float]:
    return cell.case.world.d, cell.case.world.epsilon


def build(section: Section) -> None:
    """Price everything on a grid."""
    count = (5, 5) if section.quick else (61, 41)
    sizes, gaps = np.geomspace(100, 1e8, count[0]), np.geomspace(0.003, 0.9, count[1])
    cells = list(survey(sizes, gaps))
    useful = [cell for cell in cells if cell.best() != NOTHING]
    section.text(
        f"δ = 10⁻⁹, {count[0]} numbers of rows from 100 to 10⁸, {count[1]} eigengaps (uncentred) from 0.003 to 0.9; "
        "rows of norm 1, rank 1, all other eigenvalues equal. Only the error that privacy adds is compared, by "
        "formulas (in `_prices.py`, with what they leave out), not by experiments, and every way at its best setting "
        f"in hindsight: {len(SHARES)} shares of the budget for a gate or a release, {len(RIDGES)} ridges. *Worst "
        "statistic*: the mean of 1-Lipschitz functions of projected rows that a turn of the projector changes most; "
        "*mean length* of projected rows: one that it changes little. A way is useful at an error below 1 (model) or "
        "0.1 (statistics)."
    )
    section.picture(draw(sizes, gaps, cells), "the best way over rows and eigengap, for a model and two statistics")
    section.text(
        "The way with the least error, as a share of the settings where some way is useful; *-* was not asked."
    )
    lines = [
        (use, f"{d:,}", f"{len(_of(useful, use, d)):,} of {len(_of(cells, use, d)):,}", *_shares(useful, use, d))
        for use, d in product(USEFUL, COLUMNS)
    ]
    section.table(("use", "d", "useful", *WAYS), lines)
    section.text("Errors at an eigengap of 0.3; *-* where no gate would pass or nothing is left of the signal.")
    columns = [pair for pair in ERRORS if pair != (LENGTH, EXACT)]
    header = (f"{'statistics' if pair == (WORST, EXACT) else pair[0]}: {pair[1]}" for pair in columns)
    section.table(("setting", "n", *header), _examples(columns))
    section.text(" ".join(verdicts(cells)))


def _of(cells: list[Cell], use: str, d: int) -> list[Cell]:
    return [cell for cell in cells if cell.use == use and cell.case.world.d == d]


def _shares(useful: list[Cell], use: str, d: int) -> list[str]:
    return [_share(_of(useful, use, d), way) if way in ASKED[use] else "-" for way in WAYS]


def _share(cells: list[Cell], way: str) -> str:
    """In how many settings this way is best, rounded towards one half: 0 % and 100 % say none and all."""
    percent = 100 * sum(cell.best() == way for cell in cells) / len(cells)
    return f"{math.ceil(percent) if percent < 50 else math.floor(percent)} %"


def _examples(columns: list[tuple[str, str]]) -> Iterator[list[object]]:
    """Lines of the table of errors."""
    for (d, epsilon), n in product(WORLDS, (1000, 10_000, 1_000_000)):
        case = Case(World(n, d, epsilon), 0.3)
        found = {use: case.errors(use, ways) for use, ways in ASKED.items()}
        yield [f"d = {d:,}, ε = {epsilon:g}", f"{n:,}", *(found[use].get(way, "-") for use, way in columns)]


def verdicts(cells: list[Cell]) -> Iterator[str]:
    """What the grid says; words that no longer hold are refused."""
    useful = [cell for cell in cells if cell.best() != NOTHING]
    worst, length = ({d: _of(useful, use, d) for d in COLUMNS} for use in (WORST, LENGTH))
    yield from _of_models([cell for cell in useful if cell.use == MODEL])
    gains = {d: [cell.times(NOISY, EXACT) for cell in worst[d]] for d in COLUMNS}
    gates = _first([cell for cell in cells if cell.use == WORST])
    yield _held(
        "**For the worst statistic, exact PCA is best nearly everywhere on this grid**: in "
        f"{_named({d: _share(worst[d], EXACT) for d in COLUMNS})} of the useful settings, in the median by a factor of "
        f"{_both(gains, np.median)} against noisy PCA, whose noise grows with d. It is useful from "
        f"{shown(min(gates))} to {shown(max(gates))} times as many rows as a gate for 5 % of the budget needs, by "
        "the gap; a gate with a larger share passes earlier.",
        all(sum(cell.best() == EXACT for cell in worst[d]) > 0.9 * len(worst[d]) for d in COLUMNS)
        and bool(np.median(gains[COLUMNS[0]]) < np.median(gains[COLUMNS[1]]))
        and min(gates) < 1,
    )
    reach = {d: [cell.gates for cell in length[d] if cell.best() == EXACT] for d in COLUMNS}
    few, many = (len(reach[d]) / len(length[d]) for d in COLUMNS)
    yield _held(
        "**For the mean length, noisy PCA is best more often than not on this grid**; exact PCA is in "
        f"{_named({d: _share(length[d], EXACT) for d in COLUMNS})} of the useful settings, and nowhere beyond "
        f"{_both(reach, max)} times the rows of that gate.",
        few < many < 0.5,
    )
    yield (
        "So, on this grid, non-private PCA pays for statistics that a turn of the projector changes most, and for "
        "others where columns are many and rows few; for a model it does not."
    )


def _of_models(models: list[Cell]) -> Iterator[str]:
    """The first verdict, from the settings in which a model is useful."""
    least = {way: shown(min(cell.times(way, NONE) for cell in models)) for way in (EXACT, SOFT, NOISY)}
    yield _held(
        "**For a model that predicts new rows, no PCA is best anywhere on this grid**: the error of exact PCA is at "
        f"least {least[EXACT]}, of soft PCA {least[SOFT]} and of noisy PCA {least[NOISY]} times that of no "
        "pre-processing.",
        all(cell.best() == NONE for cell in models),
    )


def _held(words: str, condition: bool) -> str:
    """The words, if they are true of the numbers."""
    if not condition:
        raise RuntimeError(f"no longer true: {words}")
    return words


def _first(cells: list[Cell]) -> list[float]:
    """From how many times the rows of the usual gate exact PCA is useful, for every gap of every world."""
    found: dict[tuple[int, float, float], float] = {}
    for cell in cells:
        if cell.errors.get(EXACT, math.inf) < USEFUL[cell.use]:
            found.setdefault((*_world(cell), cell.case.gap), cell.gates)
    return list(found.values())


def _both(values: dict[int, list[float]], of: Callable[[list[float]], Any]) -> str:
    return _named({d: shown(float(of(found))) if found else "0" for d, found in values.items()})


def _named(values: dict[int, str]) -> str:
    return " and ".join(f"{value} (d = {d:,})" for d, value in values.items())


def main(arguments: list[str] | None = None) -> str:
    """Run the command."""
    return run("phase_diagram", __doc__, build, arguments)


if __name__ == "__main__":
    main()
