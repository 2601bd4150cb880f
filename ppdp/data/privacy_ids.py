"""Whose rows are whose: ids, each read by itself, become codes; what they were is kept nowhere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.core.adjacency import Adjacency
from ppdp.data.cells import identifiers
from ppdp.data.column_types import kind_of, type_of_values
from ppdp.data.deferred_input import DeferredTable
from ppdp.data.frames import column
from ppdp.exceptions import InvalidInput, InvalidParameter, InvalidValue

NOBODY = -1  # code of a row without an id
_ROUTED = (
    "fit(X, y, groups=ids); within scikit-learn set_config(enable_metadata_routing=True), then"
    " pipeline.set_fit_request(groups=True), and params={'groups': ids} for cross_validate."
)


def check_groups(X: Any, groups: Any, adjacency: Adjacency) -> None:
    """One id per row of ``X`` where persons are protected, and none elsewhere; only the form is looked at."""
    if groups is None:
        if adjacency.bounds_contributions:
            raise InvalidParameter("Adjacency.user_level needs groups=, one id for each row.", fix=_ROUTED)
        return
    if not adjacency.bounds_contributions:
        raise InvalidParameter(
            f"groups say whose each row is, and what is protected is {adjacency.unit}.",
            fix="adjacency=Adjacency.user_level(max_rows=...), or leave groups out.",
        )
    try:
        ids = X.empty(groups) if isinstance(X, DeferredTable) else column(groups)
        kind, sized = ids.dtype, ids.ndim == 1
        matched = isinstance(X, DeferredTable) or len(ids) == np.shape(X)[0]
    except Exception:  # of a container that does not keep to its own form
        kind, sized, matched = None, False, False
    if not sized:
        raise InvalidInput("groups must be a column of ids.", fix="one id for every row of X.")
    if not _may_be_ids(type_of_values(kind)):
        raise InvalidInput(
            "groups must hold whole numbers or text: other numbers are rounded, and two persons would be one.",
            fix="ids.astype('Int64'), or text.",
        )
    if not matched:
        raise InvalidInput("groups must have one id for every row of X.", fix="ids of the same rows.")


def _may_be_ids(dtype: Any) -> bool:
    """Whether a column of this type may hold whole numbers or text; the type is public."""
    as_bytes = ("decimal", "binary", "large_binary", "fixed_size_binary", "extension<arrow.uuid")
    whole = getattr(dtype, "kind", "O") in "iuUS"
    return whole or kind_of(dtype) in ("text", "unknown") or str(dtype).startswith(as_bytes)


def encode_ids(X: Any, groups: Any, invalid: str) -> NDArray[np.intp] | None:
    """A code for whose each row is, in the order of the rows: equal where ids are; None where nobody says.

    A row without an id stops the fit ("error"), or has the code of nobody ("repair"): were all such rows one person's,
    or each another's, somebody with many of them would change more rows than are certified.
    """
    if groups is None:
        return None
    blocks: Iterable[Any] = (
        [_coded(column(groups))]
        if not isinstance(X, DeferredTable)
        else (X.source.over(lambda _, table: _coded(column(table[groups])), [groups], 1))
    )
    known: dict[Any, int] = {}
    codes = [np.full(0, NOBODY)]
    for own, ids in blocks:
        places = np.array([*(known.setdefault(one, len(known)) for one in ids), NOBODY])
        codes.append(places[own])
    found = np.concatenate(codes)
    if invalid == "error" and (found == NOBODY).any():
        raise InvalidValue(
            "a row has no id (a whole number, text, a UUID, an address or a date), so its person is unknown.",
            fix="an id for every row, or on_invalid='repair' leaves it out.",
            parameter="groups",
        )
    return found


def _coded(values: Any) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Codes of ids among the different ones, which come with them; the last of these for what is no id."""
    import pandas as pd

    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "iu" and not isinstance(values, np.ma.MaskedArray):
        return pd.factorize(np.asarray(values))
    # pandas' table of texts takes some different ones for equal, and which ones depends on other rows.
    places: dict[str | None, int] = {None: NOBODY}
    ids = identifiers(values).values
    codes = np.fromiter((places.setdefault(text, len(places) - 1) for text in ids), np.intp, len(ids))
    return codes, np.array([*places][1:], dtype=object)
