"""Near-duplicates by a public grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ppdp.core.checks import choice, integer, length
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.rows import Array, Rows
from ppdp.data.statistics import clip_norms
from ppdp.exceptions import DomainMismatch, InvalidParameter
from ppdp.transformers.base import Stage, Statistics
from ppdp.transformers.deduplicate.keys import check_order, compared
from ppdp.transformers.deduplicate.records import grouped, present, smallest
from ppdp.transformers.deduplicate.resampler import Resampler
from ppdp.transformers.way import Way

__all__ = ["GridDeduplicator"]

LARGEST = np.finfo(float).max

KEEP = ["centre", "first", "soft"]
LABELS = ["record", "unanimous", "first"]


class GridDeduplicator(Resampler, Stage):
    """Keep one row per occupied cell of a public grid, so that near-duplicates count once.

    The origin of the grid is drawn from the public ``seed``; two rows are in different cells with a probability of at
    most their L1 distance over ``cell``. A gap is a cell value of its own.

    Parameters
    ----------
    cell : float or sequence of floats, default=0.01
        Side of a cell, in the units of the rows: one number, or one per column.
    keep : {"centre", "first", "soft"}, default="centre"
        "centre": one row at the centre of each cell, clipped to the norm of the rows; it costs nothing. "first": the
        lexicographically smallest row of each cell. "soft": every row, with weight 1 / (rows in its cell).
    labels : {"record", "unanimous", "first"}, default="record"
        "record": rows with different labels are in different cells. "unanimous": a cell whose labels disagree is
        emptied. "first": the label is not compared; the smallest stays (with "soft": every row has its own).
    seed : int, default=0
        Public seed of the origin of the grid.
    keys : {"current", "raw"}, default="current"
        Which rows are compared: as they are, or as they came into the first stage that is fitted ("first" and "soft").

    Notes
    -----
    **Guarantee** (``docs/theory/deduplication.md``): unconditional. "centre": one replaced record stays one replaced
    record. "first": another row may also move inside its cell, or, where that cannot be said, two rows are switched.
    "soft": the weight that changes is that of one replaced record, spread over many rows. Each covers a whole group of
    near-duplicates in one cell as if they were one row. Rows are compared in memory.

    There is no ``transform``: a new row is never a duplicate. Use :meth:`fit_resample` outside a pipeline, with "soft"
    :meth:`weights`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.50, 0.52], [0.51, 0.51], [3.0, 4.0]])
    >>> GridDeduplicator(cell=0.5, keep="first").fit_resample(X)[0]
    array([[0.5 , 0.52],
           [3.  , 4.  ]])
    >>> GridDeduplicator(cell=0.5, keep="soft").weights(X)
    array([0.5, 0.5, 1. ])
    """

    def __init__(
        self,
        cell: float | Sequence[float] = 0.01,
        keep: str = "centre",
        labels: str = "record",
        seed: int = 0,
        keys: str = "current",
    ) -> None:
        self.cell = cell
        self.keep = keep
        self.labels = labels
        self.seed = seed
        self.keys = keys

    @property
    def _rewrites(self) -> bool:  # type: ignore[override]
        return self.keep == "centre"

    @property
    def _weighs(self) -> bool:  # type: ignore[override]
        return self.keep == "soft"

    def ways(self, domain: Domain, distance: Distance) -> tuple[Way, ...]:
        """One exact, unconditional way."""
        keep, labels = choice("keep", self.keep, KEEP, self), choice("labels", self.labels, LABELS, self)
        seed = integer("seed", self.seed, self, least=0)
        raw = check_order(self, domain, distance)
        if keep == "soft" and labels == "unanimous":
            raise InvalidParameter(
                "keep='soft' keeps every row, so no label decides.",
                stage="GridDeduplicator",
                fix="labels='record' or labels='first'.",
            )
        if keep == "centre" and raw:
            raise InvalidParameter(
                "the centre of a cell of raw rows is no row of this point.",
                stage="GridDeduplicator",
                fix="keep='first' with keys='raw', or put it before the first stage that is fitted.",
            )
        parameters: dict[str, Any] = {"cell": self._sides(domain.d, raw=raw), "seed": seed, "labels": labels}
        formula = {"centre": "cell-centre", "first": "cell-first", "soft": "cell-weights"}[keep]
        if keep != "centre":
            parameters["raw"] = raw
        return (Way.by(f"deduplication.{formula}", domain, distance, **parameters),)

    def _sides(self, d: int, *, raw: bool) -> list[float]:
        if isinstance(self.cell, (str, bytes)) or not isinstance(self.cell, (Sequence, np.ndarray)):
            return [length("cell", self.cell, self)] * (1 if raw else d)
        sides = [length("cell", side, self) for side in self.cell]
        if len(sides) == d and not raw:
            return sides
        raise DomainMismatch(
            f"cell has {len(sides)} sides for {'raw rows' if raw else f'{d} columns'}.",
            stage="GridDeduplicator",
            fix="one number for all columns" + ("." if raw else ", or one per column."),
        )

    def prepare(self, rows: Rows, way: Way, domain: Domain) -> Statistics:
        return {"sides": np.array(way.parameters["cell"]), "norm": domain.row_norm, "entry": domain.entry_bound}

    def apply(self, rows: Rows, statistics: Statistics) -> Rows:
        if self.keep != "centre":
            return super().apply(rows, statistics)
        cells, weight = self._cells(rows, statistics)
        slots = np.flatnonzero(rows.weight)
        sides = statistics["sides"]
        cells += 0.5  # in place, so that no further table is needed
        cells *= sides
        cells += self._origin(cells.shape[1]) * sides
        np.clip(cells, -LARGEST, LARGEST, out=cells)  # of a tiny cell far away
        self._within(cells, statistics)
        cells[weight[slots] == 0] = 0.0
        out = cells if len(slots) == rows.n else np.zeros_like(rows.X)
        if out is not cells:
            out[slots] = cells
        return replace(rows, weight=weight).with_X(out)

    def _weight(self, rows: Rows, statistics: Statistics) -> Array:
        return self._cells(rows, statistics)[1]

    def _cells(self, rows: Rows, statistics: Statistics) -> tuple[Array, Array]:
        """The cell of every row that is present, and the new weight of every slot."""
        slots, X, y = present(rows, compared(rows, self))
        sides = statistics["sides"]
        cells = X - self._origin(X.shape[1]) * sides
        cells /= sides
        np.floor(cells, out=cells)
        groups = grouped(cells if y is None or self.labels != "record" else np.column_stack([cells, y]))
        weight = np.zeros(rows.n)
        if self.keep == "soft":
            weight[slots] = groups.of_rows(1.0 / groups.sizes)
            return cells, weight
        if self.keep == "first":
            chosen = smallest(X if y is None else np.column_stack([X, y]), groups)
        else:
            chosen = groups.first if y is None or self.labels != "first" else smallest(y[:, None], groups)
        if y is not None and self.labels == "unanimous":
            chosen = chosen[groups.constant(y)]
        weight[slots[chosen]] = 1.0
        return cells, weight

    def _origin(self, d: int) -> Array:
        """Where the grid begins, in units of a cell."""
        return np.random.Generator(np.random.PCG64(self.seed)).random(d)

    @staticmethod
    def _within(centres: Array, statistics: Statistics) -> None:
        """Put centres inside what is declared of rows."""
        if statistics["entry"] is not None:
            np.clip(centres, -statistics["entry"], statistics["entry"], out=centres)
        clip_norms(centres, statistics["norm"], out=centres)
