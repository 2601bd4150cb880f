"""When does non-private pre-processing pay? PCA of rank 1, over rows n, columns d, eigengap and epsilon.

    python reproductions/phase_diagram.py

**The paper** answers by two examples (Figure 3, Table 4) and "typically a minimal, constant-order increase". No
diagram.

**Here** every way to use PCA is priced by ppdp's stability maps, plans and gates, for rows of norm 1 whose second
moment has one eigenvalue above d - 1 equal ones; the eigengap then fixes how long the signal is, s² = (1 + (d - 1)
gap) / d. More components only make gaps smaller. Two uses:

* *A model that predicts new rows*, by noisy gradients: standard deviation of a score, over what the signal puts there,
  at the same number of steps. No pre-processing: (2 / n mu) / s². Exact PCA: rows are clipped to s behind it, but new
  rows cannot be projected, as the projector is private. Soft PCA: best of many ridges. Noisy PCA: projects new rows
  too; the signal that its noisy direction keeps is that of a rank-one matrix in Gaussian noise (Benaych-Georges and
  Nadakuditi 2011). Gradients are taken to be 1-Lipschitz in the row, in favour of the non-private ways.
* *One statistic of projected rows*, a mean of 1-Lipschitz functions with a range of s: its noise, and how far the
  noisy projector moves rows (root mean square), over s. Not projecting is no answer here.

Coloured is the way with the least error, where that is below 1 (model) or 0.1 (statistic).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from _page import Section, run, shown

from ppdp import Pipeline
from ppdp.distance import Distance
from ppdp.domain import Domain
from ppdp.exceptions import PpdpError
from ppdp.gate import Gate
from ppdp.mechanisms import GaussianMechanism
from ppdp.plot.canvas import BROKEN, LINES, OTHER, OURS
from ppdp.privacy.gaussian import gaussian_mu
from ppdp.transformers import PCA, NormClipper, SoftPCA

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = np.ndarray[Any, Any]
DELTA = 1e-9
"""Below 1/n for every n here, as plans demand."""
GATE_SHARE = 0.05
WORLDS = ((100, 1.0), (6000, 1.0), (100, 0.1), (6000, 0.1))
WAYS = ("nothing useful", "no pre-processing", "exact PCA", "soft PCA", "noisy PCA")
COLOURS = ("#f1f3f5", OTHER, BROKEN, LINES[3][0], OURS)
USEFUL = {"model": 1.0, "statistic": 0.1}


@dataclass(frozen=True)
class World:
    """What is the same for every eigengap.

    Attributes
    ----------
    n, d : int
        Rows and columns.
    epsilon : float
        End to end, at DELTA.
    """

    n: int
    d: int
    epsilon: float

    @cached_property
    def domain(self) -> Domain:
        """Rows in the unit ball."""
        return Domain(n_rows=self.n, n_features=self.d, row_norm=1.0, max_missing=0)

    @cached_property
    def mu(self) -> float:
        """The budget."""
        return gaussian_mu(self.epsilon, DELTA)

    @cached_property
    def margin(self) -> float:
        """Rows of margin with which a gate for 5 % of the budget passes 99 times in 100."""
        gate = Gate.of_budget(self.mu * math.sqrt(GATE_SHARE), DELTA, adding=False, n_rows=self.n)
        return gate.needed_margin()

    @cached_property
    def release(self) -> tuple[float, float]:
        """Noise of a released second moment, and what it leaves of the budget."""
        stages = [("clip", NormClipper(1.0)), ("pca", PCA(1, statistics="noisy")), ("mean", GaussianMechanism())]
        plan = Pipeline(stages, epsilon=self.epsilon, delta=DELTA).plan(Domain(n_rows=self.n, n_features=self.d))
        (release,) = plan.releases
        return release.noise_scale, math.sqrt(self.mu**2 - release.mu**2)


@dataclass(frozen=True)
class Spectrum:
    """One leading eigenvalue and d - 1 equal ones, of rows of norm 1."""

    gap: float
    d: int

    @property
    def high(self) -> float:
        """The leading eigenvalue: the squared length of the signal."""
        return (1 + (self.d - 1) * self.gap) / self.d

    @property
    def low(self) -> float:
        """All others."""
        return self.high - self.gap

    def kept(self, noise: float) -> float:
        """Squared cosine of the leading eigenvector and that of the noisy matrix."""
        return max(0.0, 1 - noise**2 * self.d / self.gap**2)


def exact_moves(world: World, gap: float) -> Distance | None:
    """Behind exact PCA with the widest gap that a gate can test; None where it would not pass."""
    tested = gap - 2 * world.margin / world.n
    if tested <= 0:
        return None
    return PCA(1, min_gap=tested, statistics="exact").stability_map(world.domain, Distance.neighbours())[1]


def model_errors(world: World, gap: float) -> dict[str, float]:
    """Noise of a score over its signal, for every way."""
    spectrum = Spectrum(gap, world.d)
    s, n, mu = math.sqrt(spectrum.high), world.n, world.mu
    errors = {"no pre-processing": 2 / (n * mu * s**2), "soft PCA": soft_error(world, spectrum)}
    moves = exact_moves(world, gap)
    if moves is not None:
        errors["exact PCA"] = moves.shift(s, 1.0) / (n * mu * math.sqrt(1 - GATE_SHARE) * s**2)
    noise = priced(lambda: world.release)
    if noise and spectrum.kept(noise[0]):
        errors["noisy PCA"] = 2 / (n * noise[1] * spectrum.kept(noise[0]))
    return errors


def soft_error(world: World, spectrum: Spectrum) -> float:
    """The same for soft PCA with the best ridge."""
    best = math.inf
    for ridge in spectrum.high * np.geomspace(0.03, 30, 7):
        distance = SoftPCA(float(ridge), statistics="exact").stability_map(world.domain, Distance.neighbours())[1]
        keep, leak = (value / (value + ridge) for value in (spectrum.high, spectrum.low))
        norm = math.sqrt(spectrum.high * keep**2 + (world.d - 1) * spectrum.low * leak**2)
        best = min(best, distance.shift(norm, 1.0) / (world.n * world.mu * spectrum.high * keep))
    return best


def statistic_errors(world: World, gap: float) -> dict[str, float]:
    """Error of a statistic over its range, for the two ways that project."""
    spectrum, errors = Spectrum(gap, world.d), {}
    s = math.sqrt(spectrum.high)
    moves = exact_moves(world, gap)
    if moves is not None:
        errors["exact PCA"] = moves.shift(s / 2, 1.0) / (world.n * world.mu * math.sqrt(1 - GATE_SHARE) * s)
    noise = priced(lambda: world.release)
    if noise:
        lost = 1 - spectrum.kept(noise[0])
        moved = math.sqrt(lost * (spectrum.high + spectrum.low) / spectrum.high)
        errors["noisy PCA"] = math.hypot(1 / (world.n * noise[1]), moved)
    return errors


def priced(price: Callable[[], tuple[float, float]]) -> tuple[float, float] | None:
    """None where no plan can be made."""
    try:
        return price()
    except PpdpError:
        return None


ERRORS = {"model": model_errors, "statistic": statistic_errors}


def best(use: str, world: World, gap: float) -> tuple[str, float]:
    """The way with the least error, and that error."""
    errors = ERRORS[use](world, gap)
    name = min(errors, key=lambda way: errors[way], default=WAYS[0])
    error = errors.get(name, math.inf)
    return (name, error) if error < USEFUL[use] else (WAYS[0], error)


def draw(sizes: Array, gaps: Array, found: dict[tuple[str, int, float], Array]) -> Figure:
    """A row of panels for each use."""
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    figure = Figure(figsize=(13, 6.4), layout="constrained")
    panels = figure.subplots(2, len(WORLDS), sharex=True, sharey=True)
    for (use, row), (column, (d, epsilon)) in product(zip(ERRORS, panels), enumerate(WORLDS)):
        ax: Axes = row[column]
        ax.pcolormesh(sizes, gaps, found[use, d, epsilon], cmap=ListedColormap(COLOURS), vmin=-0.5, vmax=4.5)
        world = World(10**6, d, epsilon)
        for unit, dashes in ((2.0, "-"), (12.2, ":")):
            ax.plot(unit * world.margin / gaps, gaps, color="black", linewidth=1, linestyle=dashes)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlim(sizes[0], sizes[-1])
        ax.set_title(f"{use}, d = {d:,}, ε = {epsilon:g}", fontsize=10)
        if use == "statistic":
            ax.set_xlabel("rows n")
        if column == 0:
            ax.set_ylabel("eigengap (rows of norm 1)")
    handles: list[Any] = [Patch(color=colour, label=way) for colour, way in zip(COLOURS, WAYS)]
    handles += panels[0][0].plot([], [], color="black", linewidth=1, label="the gate can pass")
    handles += panels[0][0].plot([], [], color="black", linewidth=1, linestyle=":", label="with the printed 12.2/n")
    figure.legend(handles=handles, loc="outside lower center", ncols=7, frameon=False, fontsize=9)
    return figure


def build(section: Section) -> None:
    """Price everything on a grid."""
    count = (13, 9) if section.quick else (61, 41)
    sizes, gaps = np.geomspace(100, 1e8, count[0]), np.geomspace(0.003, 0.9, count[1])
    found, wins, gains = {}, dict.fromkeys(product(ERRORS, WAYS), 0), []
    for use, (d, epsilon) in product(ERRORS, WORLDS):
        table = np.zeros((len(gaps), len(sizes)))
        for j, n in enumerate(sizes):
            world = World(round(n), d, epsilon)
            for i, gap in enumerate(gaps):
                name, error = best(use, world, float(gap))
                table[i, j] = WAYS.index(name)
                wins[use, name] += 1
                if (use, name) == ("statistic", "exact PCA"):
                    gains.append(ERRORS[use](world, float(gap)).get("noisy PCA", math.inf) / error)
        found[use, d, epsilon] = table
    section.text("δ = 10⁻⁹. The way with the least error, as a share of all settings where some way is useful.")
    section.picture(draw(sizes, gaps, found), "the best way over rows and eigengap, for a model and for a statistic")
    rows = [[use, *(_share(wins, use, way) for way in WAYS[1:])] for use in ERRORS]
    section.table(("use", *WAYS[1:]), rows)
    section.text(
        "Error of every way at an eigengap of 0.3; *-* where a gate would refuse or nothing is left of the signal."
    )
    settings = list(product(WORLDS, (1000, 10_000, 1_000_000)))
    for use in ERRORS:
        ways = WAYS[1:] if use == "model" else (WAYS[2], WAYS[4])
        lines = [(*_named(d, e, n), *_errors(ERRORS[use](World(n, d, e), 0.3), ways)) for (d, e), n in settings]
        section.table((use, "n", *ways), lines)
    finite = [gain for gain in gains if math.isfinite(gain)]
    section.text(
        "**For a model that predicts, non-private PCA never pays**, neither exact nor soft: its moves cost more "
        "than what it takes away, and new rows cannot be projected. Where the signal is a small part of a row and "
        "rows are many, noisy PCA pays; else no pre-processing is best. **For one statistic of projected rows it "
        f"pays wherever the gate passes**, by a factor of {shown(float(np.median(finite)))} in the median against "
        "noisy PCA, and most where columns are many: the moves do not grow with d, the noise of a matrix does. So: "
        "non-private where statistics are needed once, private where they are used again."
    )


def _share(wins: dict[tuple[str, str], int], use: str, way: str) -> str:
    useful = sum(wins[use, name] for name in WAYS[1:])
    return f"{100 * wins[use, way] / useful:.0f} %"


def _named(d: int, epsilon: float, n: int) -> tuple[str, str]:
    return f"d = {d:,}, ε = {epsilon:g}", f"{n:,}"


def _errors(errors: dict[str, float], ways: tuple[str, ...]) -> list[object]:
    return [errors.get(way, "-") for way in ways]


def main(arguments: list[str] | None = None) -> str:
    """Run the command."""
    return run("phase_diagram", __doc__, build, arguments)


if __name__ == "__main__":
    main()
