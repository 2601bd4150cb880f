"""Stages for some columns each, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ppdp.core.checks import shown
from ppdp.core.declared import Value
from ppdp.core.domain import Domain
from ppdp.exceptions import InvalidParameter, UnknownStage
from ppdp.transformers.base import RowWiseTransformer
from ppdp.transformers.columns.column_group import ColumnGroup
from ppdp.transformers.columns.column_stage import ColumnStage
from ppdp.transformers.columns.maps import FunctionMap


@dataclass(eq=False, repr=False)
class ColumnMap(ColumnStage):
    """Public maps of sets of columns, side by side: what a ``ColumnTransformer`` does when it looks at no value.

    :meth:`Pipeline.from_sklearn <ppdp.Pipeline.from_sklearn>` makes it.

    Parameters
    ----------
    blocks : sequence of ColumnGroup
        Columns and what is done with them. Columns that no block takes are left out, whatever they hold.
    ranges : mapping, pair, or sequence of pairs, optional
        Public (low, high) of the columns that come in, to which they are clipped. A mapping may leave columns out.
    max_norm : float, optional
        Public norm to which every row that comes out is clipped.

    Notes
    -----
    **Guarantee** (``docs/theory/row-wise.md``, `row-wise.row-map`): row-wise, moves nothing. What comes out is clipped
    to the box and the ball that follow from the maps. Labels that are no numbers are read by their public categories.
    A row without gaps never gains one, nor does any row if every column is filled: 0 stands for what is not a number.
    """

    blocks: Sequence[ColumnGroup] = (ColumnGroup(None),)
    ranges: Any = None
    max_norm: float | None = None

    statistic_names = ("names", "reach", "norm", "found")

    def blocks_for(self, names: Sequence[str] | None, count: int) -> Sequence[ColumnGroup]:
        return self.blocks

    @property
    def _start_ranges(self) -> Any:
        return self.ranges

    _example: ClassVar = {"ranges": (-10, 10)}

    @property
    def fills_gaps(self) -> bool:  # type: ignore[override]
        """Whether columns may have gaps, all of which it fills."""
        return any(block.expects for block in self.blocks) and all(block.fills for block in self.blocks)

    @property
    def reads_cells(self) -> bool:
        """Whether some columns hold no numbers, so that it must come first."""
        return any(block.reads_cells for block in self.blocks)

    @property
    def takes_texts(self) -> bool:
        """Whether some columns hold texts that are mapped whole."""
        return any(block.takes_texts for block in self.blocks)

    def named_columns(self) -> tuple[str, ...] | None:
        """Names of the columns, for a plan without data; None if none is named, or if their order matters."""
        if _by_order(self.ranges) or any(block.ordered for block in self.blocks):
            return None
        return tuple(self._asked(self.blocks)) or None

    def declared(self, domain: Domain) -> tuple[Value, ...]:
        """Ranges, and what the maps take from the user's word, with the columns it is for."""
        return (*RowWiseTransformer.declared(self, domain), *super().declared(domain))

    def declarations(self) -> tuple[str, ...]:
        maps = [step for block in self.blocks for step in block.maps]
        functions = [step.step for step in maps if isinstance(step, FunctionMap)]
        words = [f"the function of {name!r} treats rows one by one (tested on made-up rows)" for name in functions]
        return (*words, *(step.declares for step in maps if step.declares is not None))


def make_column_map(*parts: tuple[Any, Any]) -> ColumnMap:
    """A public stage made of stages for some columns each, as ``make_column_transformer`` makes one.

    It comes first in a pipeline and takes columns as they are: numbers, text, dates, truth values, with or without
    gaps. Columns that no part names are left out, whatever they hold.

    Parameters
    ----------
    *parts : tuple of (stage, columns)
        ``MinMaxScaler(ranges=...)``, ``CategoryEncoder``, ``DateEncoder`` or ``RowMap(function, out_ranges=...)``, and
        the names of its columns, or their positions. What looks at rows stands behind, for all columns.

    Examples
    --------
    >>> import pandas as pd
    >>> from ppdp.transformers import CategoryEncoder, DateEncoder, MinMaxScaler
    >>> columns = make_column_map(
    ...     (MinMaxScaler(ranges=(0, 100)), ["age"]),
    ...     (CategoryEncoder({"sex": ["F", "M"]}, other=None), ["sex"]),
    ...     (DateEncoder(("2000-01-01", "2020-01-01")), ["seen"]),
    ... )
    >>> X = pd.DataFrame({"age": [50, 100], "sex": ["F", "M"], "seen": ["2000-01-01", "2020-01-01"], "id": [7, 8]})
    >>> columns.fit_transform(X)
    array([[ 0.,  1.,  0., -1.],
           [ 1.,  0.,  1.,  1.]])
    """
    if not parts or any(not isinstance(part, tuple) or len(part) != 2 for part in parts):
        raise InvalidParameter("parts must be (stage, columns) pairs, at least one.", fix=_FIX)
    return ColumnMap(tuple(_block(stage, columns) for stage, columns in parts))


def _block(stage: Any, columns: Any) -> ColumnGroup:
    """A part with the columns as a list of names or positions."""
    listed = [columns] if isinstance(columns, (str, int)) else list(columns) if hasattr(columns, "__iter__") else []
    plain = [column.item() if hasattr(column, "item") else column for column in listed]
    if not plain or any(isinstance(column, bool) or not isinstance(column, (str, int)) for column in plain):
        raise InvalidParameter(f"{shown(columns)} are no columns.", stage=type(stage).__name__, fix=_FIX)
    maps = getattr(stage, "column_maps", None)
    if maps is None or isinstance(stage, type):
        kind = stage if isinstance(stage, type) else type(stage)
        foreign = kind.__module__.partition(".")[0] == "sklearn"
        if isinstance(stage, str):
            what = f"{shown(stage)} is no stage, and columns that no part names are left out anyhow."
            raise UnknownStage(what, fix="leave the pair out; of columns that are to stay, MinMaxScaler(ranges=...).")
        fix = (
            "ppdp.Pipeline.from_sklearn(pipe, ...), which takes a whole ColumnTransformer of scikit-learn."
            if foreign
            else "MinMaxScaler(ranges=...), CategoryEncoder, DateEncoder or RowMap here, others behind it."
        )
        raise UnknownStage(f"{kind.__module__}.{kind.__qualname__} is no public stage for some columns.", fix=fix)
    return ColumnGroup(plain, maps(plain))


_FIX = 'make_column_map((MinMaxScaler(ranges=...), ["age"]), (CategoryEncoder(...), ["sex"])).'


def _by_order(ranges: Any) -> bool:
    """Whether the order of the columns tells which range is whose."""
    if isinstance(ranges, Mapping):
        return not all(isinstance(name, str) for name in ranges)
    return isinstance(ranges, (Sequence, np.ndarray)) and any(isinstance(one, (Sequence, np.ndarray)) for one in ranges)
