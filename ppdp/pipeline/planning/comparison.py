"""What the usual claims are worth beside what ppdp certifies, for one pipeline; needs no data."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from ppdp.core.adjacency import Adjacency
from ppdp.core.figures import figure
from ppdp.core.tables import html_table, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEAD = ("practice", "claims", "provable", "noise", "status", "why")


@dataclass(frozen=True, slots=True)
class Practice:
    """One way of doing the same pipeline."""

    name: str  # what it is called
    claimed: float  # the epsilon it claims
    provable: float  # the least epsilon that can be proved for its noise; infinite if none can
    noise_scale: float | None  # of the last step; None if it has none
    status: str  # of the claim: "does not hold", "holds", "not offered" or "chosen"
    reason: str  # why, in public words


@dataclass(frozen=True, slots=True)
class Comparison:
    """The usual practices beside the chosen route, in public numbers; shows itself as a table and a picture.

    Attributes
    ----------
    epsilon, delta : float
        The budget of all of them.
    domain : str
        The public facts, in words.
    rows_per_unit : int
        How many rows one person may own.
    last_step : str
        Name of the step whose noise is compared.
    practices : tuple of Practice
        Naive claim, group privacy, all-exact route, all-noisy route, ours.
    """

    epsilon: float
    delta: float
    domain: str
    rows_per_unit: int
    last_step: str
    practices: tuple[Practice, ...]

    def __getitem__(self, name: str) -> Practice:
        """A practice by its name."""
        return {practice.name: practice for practice in self.practices}[name]

    def to_dict(self) -> dict[str, Any]:
        """Plain values that are JSON: None for what cannot be proved."""
        found = asdict(self)
        found["practices"] = [
            {key: None if value == math.inf else value for key, value in practice.items()}
            for practice in found["practices"]
        ]
        return found

    def plot(self, ax: Axes | None = None) -> Axes:
        """Bars of noise with what each claim is worth; see :func:`ppdp.plot.comparison`."""
        from ppdp import plot

        return plot.comparison(self, ax)

    @property
    def title(self) -> str:
        """What is compared, in one line."""
        return (
            f"(ε, δ) = ({figure(self.epsilon)}, {figure(self.delta)}) for {Adjacency.replace(self.rows_per_unit).unit},"
            f" {self.domain}"
        )

    @property
    def footnote(self) -> str:
        """What the numbers mean."""
        return (
            f"noise: of {self.last_step!r}. Naive claim and group privacy count the noise of {self.last_step!r} alone,"
            " and hold only while all fitted statistics stay secret."
        )

    def __repr__(self) -> str:
        cells = [_HEAD, *(_cells(practice) for practice in self.practices)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(_HEAD) - 1)]
        lines = ["  ".join([*(cell.ljust(w) for cell, w in zip(row, widths)), row[-1]]).rstrip() for row in cells]
        return "\n  ".join(["COMPARISON: nothing has been certified", self.title, *lines, self.footnote])

    def _repr_html_(self) -> str:
        from ppdp.plot.canvas import embedded

        chosen = [practice.status for practice in self.practices].index("chosen")
        table = html_table(
            f"COMPARISON: nothing has been certified\n{self.title}", _HEAD, map(_cells, self.practices), bold=chosen
        )
        picture = embedded(self.plot, self.title, (8, 2.9))
        return f"<div>{table}<div>{escape(visible(self.footnote))}</div>{picture}</div>"


def _cells(practice: Practice) -> tuple[str, ...]:
    noise = "" if practice.noise_scale is None else figure(practice.noise_scale, 3)
    provable = "nothing" if practice.provable == math.inf else f"ε = {figure(practice.provable, upward=True)}"
    if practice.status == "not offered":
        provable = ""
    return practice.name, f"ε = {figure(practice.claimed)}", provable, noise, practice.status, practice.reason
