"""Stages for some columns each, side by side."""

from __future__ import annotations

from typing import Any

from ppdp.core.checks import shown
from ppdp.exceptions import InvalidParameter, UnknownStage
from ppdp.transformers.columns.block import Block
from ppdp.transformers.columns.column_map import ColumnMap


def make_column_map(*parts: tuple[Any, Any]) -> ColumnMap:
    """A public stage made of stages for some columns each, as ``make_column_transformer`` makes one.

    It comes first in a pipeline and takes columns as they are: numbers, text, dates, truth values, with or without
    gaps. Columns that no part names are left out, whatever they hold.

    Parameters
    ----------
    *parts : tuple of (stage, columns)
        ``MinMaxScaler(ranges=...)``, ``CategoryEncoder``, ``DateEncoder`` or ``RowMap(function, out_ranges=...)``, and
        the names of its columns, or their positions. What looks at rows stands behind, for all columns.

    Raises
    ------
    UnknownStage
        If a stage is not public.

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


def _block(stage: Any, columns: Any) -> Block:
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
        raise UnknownStage(
            f"{kind.__module__}.{kind.__qualname__} is no public stage for some columns.",
            fix=(
                "put a ColumnTransformer of scikit-learn into ppdp.Pipeline as it is."
                if foreign
                else "MinMaxScaler(ranges=...), CategoryEncoder, DateEncoder or RowMap here, others behind it."
            ),
        )
    return Block(plain, maps(plain))


_FIX = 'make_column_map((MinMaxScaler(ranges=...), ["age"]), (CategoryEncoder(...), ["sex"])).'
