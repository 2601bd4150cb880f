"""A public grid: near-duplicates that share a cell, and rows that are moved onto it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ppdp.bounds.rowwise import FINEST
from ppdp.core.checks import choice, integer, length, number
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, largest_entry
from ppdp.data.rows import Array, Rows
from ppdp.data.statistics import clip_norms
from ppdp.data.unit_conversion import Columns
from ppdp.exceptions import DomainMismatch, InvalidParameter
from ppdp.transformers.base import RowWiseTransformer, Statistics
from ppdp.transformers.deduplicate.base import RowSelector
from ppdp.transformers.deduplicate.records import Bits, grouped, hashes_of, present, smallest
from ppdp.transformers.fit_mode import FitMode

LARGEST = np.finfo(float).max
FORMULAS = {"centre": "cell-centre", "first": "cell-first", "soft": "cell-weights"}


@dataclass(eq=False, repr=False)
class GridDeduplicator(RowSelector):
    """Keep one row per occupied cell of a public grid, so that near-duplicates count once.

    The origin of the grid is drawn from the public ``seed``; two rows are in different cells with a probability
    of at most their L1 distance over ``cell_width``. A missing value is a cell of its own.

    Parameters
    ----------
    cell_width : float or sequence of floats, default=0.01
        Side of a cell, in the units of the rows: one number, or one per column.
    keep : {"centre", "first", "soft"}, default="centre"
        "centre": one row at the centre of each cell, clipped to the norm of the rows; it costs nothing. "first": the
        lexicographically smallest row of each cell. "soft": every row, with weight 1 / (rows in its cell).
    label_rule : {"record", "unanimous", "first"}, default="record"
        "record": rows with different labels are in different cells. "unanimous": a cell whose labels disagree is
        emptied. "first": the label is not compared; the smallest stays (with "soft": every row has its own).
    seed : int, default=0
        Public seed of the origin of the grid.
    compare : {"current", "raw"}, default="current"
        Which rows are compared: as they are, or as they came into the first stage that is fitted ("first" and "soft").

    Notes
    -----
    **Guarantee** (``docs/theory/deduplication.md``): unconditional. "centre": one replaced record stays one replaced
    record. "first": another row may also move inside its cell, or, where that cannot be said, two rows are switched.
    "soft": the weight that changes is that of one replaced record, spread over many rows. Each covers a whole group of
    near-duplicates in one cell as if they were one row. With "soft" rows are compared in memory.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.50, 0.52], [0.51, 0.51], [3.0, 4.0]])
    >>> GridDeduplicator(cell_width=0.5, keep="first").fit_resample(X)[0]
    array([[0.5 , 0.52],
           [3.  , 4.  ]])
    >>> GridDeduplicator(cell_width=0.5, keep="soft").weights(X)
    array([0.5, 0.5, 1. ])
    """

    cell_width: float | Sequence[float] = 0.01
    keep: str = "centre"
    label_rule: str = "record"
    seed: int = 0
    compare: str = "current"

    @property
    def in_memory(self) -> bool:  # type: ignore[override]
        """Whether rows get weights, which need all of them at once."""
        return self.keep == "soft"

    @property
    def _rewrites(self) -> bool:  # type: ignore[override]
        return self.keep == "centre"

    @property
    def _weighs(self) -> bool:  # type: ignore[override]
        return self.keep == "soft"

    def fit_modes(self, domain: Domain, distance: Distance) -> tuple[FitMode, ...]:
        keep = choice("keep", self.keep, FORMULAS, self)
        labels = choice("label_rule", self.label_rule, ["record", "unanimous", "first"], self)
        seed = integer("seed", self.seed, self, least=0)
        raw = self.takes_raw_keys(domain, distance)
        if keep == "soft" and labels == "unanimous":
            what = "keep='soft' keeps every row, so no label decides."
            fix = "label_rule='record' or label_rule='first'."
            raise InvalidParameter(what, stage="GridDeduplicator", fix=fix, parameter="keep")
        if keep == "centre" and raw:
            what = "the centre of a cell of raw rows is no row of this point."
            fix = "keep='first' with compare='raw', or put it before the first stage that is fitted."
            raise InvalidParameter(what, stage="GridDeduplicator", fix=fix)
        sides = self._sides(domain.d, raw=raw)
        widest = math.inf if raw or domain.row_norm is None else 2 * largest_entry(domain)
        if min(sides) > widest:
            what = f"cell_width = {min(sides):g} is wider than all rows together, {widest:.6g}."
            fix = "cell_width in the units of the rows at this step, far below that."
            raise InvalidParameter(what, stage="GridDeduplicator", fix=fix, parameter="cell_width")
        parameters: dict[str, Any] = {"cell": sides, "seed": seed, "labels": labels}
        if keep != "centre":
            parameters["raw"] = raw
        return (FitMode.by(f"deduplication.{FORMULAS[keep]}", domain, distance, **parameters),)

    def _sides(self, d: int, *, raw: bool) -> list[float]:
        if isinstance(self.cell_width, (str, bytes)) or not isinstance(self.cell_width, (Sequence, np.ndarray)):
            return [length("cell_width", self.cell_width, self)] * (1 if raw else d)
        sides = [length("cell_width", side, self) for side in self.cell_width]
        if len(sides) == d and not raw:
            return sides
        what = f"cell_width has {len(sides)} sides for {'raw rows' if raw else f'{d} columns'}."
        fix = "one number for all columns" + ("." if raw else ", or one per column.")
        raise DomainMismatch(what, stage="GridDeduplicator", fix=fix, parameter="cell_width")

    def prepare(self, rows: Rows, way: FitMode, domain: Domain) -> Statistics:
        entry = LARGEST if domain.entry_bound is None else domain.entry_bound  # a tiny cell may be far away
        bounds = {"row_norm": domain.row_norm, "entry_bound": entry}
        return self._decided(rows, {"sides": np.array(way.parameters["cell"]), **bounds})

    def apply(self, rows: Rows, statistics: Statistics) -> Rows:
        if self.keep != "centre":
            return super().apply(rows, statistics)
        slots, X, _ = present(rows, self.compare)
        sides, cells = statistics["sides"], self._cells(X, statistics)
        weight = statistics["staying"].of(rows) if "staying" in statistics else self._by_cell(rows, cells)
        cells += 0.5  # in place, so that no further table is needed
        cells *= sides
        cells += self._origin(cells.shape[1]) * sides
        _within(cells, statistics)
        cells[weight[slots] == 0] = 0.0
        out = cells if len(slots) == rows.n else np.zeros_like(rows.X)
        if out is not cells:
            out[slots] = cells
        return replace(rows, weight=weight).with_X(out)

    def _cells(self, X: Array, statistics: Statistics) -> Array:
        """The cell of every row."""
        cells = X - self._origin(X.shape[1]) * statistics["sides"]
        cells /= statistics["sides"]
        return np.floor(cells, out=cells)

    def _keys(self, cells: Array, y: Array | None) -> tuple[Array, ...]:
        return (cells,) if y is None or self.label_rule != "record" else (cells, y)

    def _words(self, rows: Rows, statistics: Statistics) -> Bits:
        return hashes_of(*self._keys(self._cells(rows.X, statistics), rows.y))[:, None]

    def _weight(self, rows: Rows, statistics: Statistics) -> Array:
        return self._by_cell(rows, self._cells(present(rows, self.compare)[1], statistics))

    def _by_cell(self, rows: Rows, cells: Array) -> Array:
        """The new weight of every slot, from the cells of the rows that are present."""
        slots, X, y = present(rows, self.compare)
        groups = grouped(*self._keys(cells, y))
        weight = np.zeros(rows.n)
        if self.keep == "soft":
            weight[slots] = groups.of_rows(1.0 / groups.sizes)
            return weight
        if self.keep == "first":
            chosen = smallest(X if y is None else np.column_stack([X, y]), groups)
        else:
            chosen = groups.first if y is None or self.label_rule != "first" else smallest(y[:, None], groups)
        if y is not None and self.label_rule == "unanimous":
            chosen = chosen[groups.constant(y)]
        weight[slots[chosen]] = 1.0
        return weight

    def _origin(self, d: int) -> Array:
        """Where the grid begins, in units of a cell."""
        return np.random.Generator(np.random.PCG64(self.seed)).random(d)


@dataclass(eq=False, repr=False)
class GridQuantizer(RowWiseTransformer):
    """Round every row to a public grid. Costs nothing where no row has moved yet.

    Parameters
    ----------
    cell_width : float, optional
        Side of a cell, in the units of the rows. Default: a tenth of ``row_norm``.
    mode : {"hard", "staircase", "dither"}, default="hard"
        "hard": the nearest centre of a cell. "staircase": the same on the inner part of each cell, with slopes between,
        so that rows that moved a little stay near each other. "dither": in a pipeline every training row has a grid of
        its own, shifted at random, so that rounding errors average out; a new row has none and is rounded as in "hard".
    soft_edge : float, default=0.5
        Share of every cell that is slope, for the mode "staircase"; 1 changes nothing at all.
    seed : int, default=0
        Draws the shifts of the mode "dither". Public: it hides nothing.

    Attributes
    ----------
    cell_ : float
        Side of a cell.
    row_norm_, entry_bound_ : float
        Public bounds of rows and of their entries.

    Notes
    -----
    **Guarantee** (``docs/theory/quantization.md``): row-wise, moves nothing. Rows that an earlier stage moved by Δ are
    at most Δ + cell_width √d apart, or Δ / soft_edge with the staircase: behind a fitted stage use the staircase.

    Missing values stay missing. Rows end within the bounds that they had: those that left them are projected back.

    Examples
    --------
    >>> import numpy as np
    >>> GridQuantizer(cell_width=0.5).fit_transform(np.array([[0.2, 0.3], [-0.6, 1.0]])) + 0.0
    array([[ 0. ,  0.5],
           [-0.5,  1. ]])
    """

    cell_width: float | None = None
    mode: str = "hard"
    soft_edge: float = 0.5
    seed: int = 0

    leakage = "high", "the length of the longest row, unless it is declared"
    statistic_names = ("cell", "row_norm", "entry_bound")

    def fit_modes(self, domain: Domain, distance: Distance) -> tuple[FitMode, ...]:
        norm = float(domain.require("row_norm", "GridQuantizer"))
        widest = 2 * largest_entry(domain)  # in a wider one every entry is rounded to 0
        fix = f"cell_width in the units of the rows at this step, whose entries are up to {widest / 2:.6g}."
        cell = norm / 10
        if self.cell_width is not None:
            cell = number("cell_width", self.cell_width, self, least=FINEST * norm, most=widest, fix=fix)
        mode = choice("mode", self.mode, ["hard", "staircase", "dither"], self)
        ramp = number("soft_edge", self.soft_edge, self, least=1e-6, most=1)
        seed = integer("seed", self.seed, self, least=0)
        of_mode: dict[str, dict[str, Any]] = {"hard": {}, "staircase": {"ramp": ramp}, "dither": {"seed": seed}}
        return (FitMode.by(f"quantization.{mode}", domain, distance, cell=cell, **of_mode[mode]),)

    def prepare(self, rows: Rows, way: FitMode, domain: Domain) -> Statistics:
        return {
            "cell": way.parameters["cell"],
            "row_norm": domain.row_norm,
            "entry_bound": min(domain.entry_bound or np.inf, domain.require("row_norm")),
        }

    def apply(self, rows: Rows, statistics: Statistics) -> Rows:
        if self.mode != "dither":
            return super().apply(rows, statistics)
        shift = np.random.Generator(np.random.PCG64(self.seed)).uniform(-0.5, 0.5, rows.X.shape)
        return rows.with_X(
            _within(statistics["cell"] * (np.rint(rows.X / statistics["cell"] + shift) - shift), statistics)
        )

    def units(self, columns: Columns) -> Columns:
        return columns.noted("rounded to cells")

    def map_rows(self, X: Array, statistics: Statistics) -> Array:
        places = X / statistics["cell"]
        centres = np.rint(places)
        if self.mode == "staircase":
            offset = places - centres
            climbed = np.maximum(np.abs(offset) - (1 - self.soft_edge) / 2, 0.0) / self.soft_edge
            centres += np.copysign(climbed, offset)
        return _within(statistics["cell"] * centres, statistics)


def _within(X: Array, statistics: Statistics) -> Array:
    """Put rows back in the box of entries and in the ball of rows."""
    bound = statistics["entry_bound"]
    return clip_norms(np.clip(X, -bound, bound, out=X), statistics["row_norm"], out=X)
