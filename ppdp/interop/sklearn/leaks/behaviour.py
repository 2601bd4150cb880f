"""What a user's function does with made-up rows: whether it treats each by itself.

The function is run, on a copy where one can be made of it; what it prints or warns of is not shown, and NumPy's global
generator is left as it was. No row of a user is needed.
"""

from __future__ import annotations

import contextlib
import copy
import io
import warnings
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.transformers.rowwise.probe import CROWD, made_up_rows

APART = "apart"
MIXED = "mixed"
UNSTEADY = "unsteady"
UNTRIED = "untried"
WIDTHS = (3, 2, 1, *range(4, 33))  # numbers of columns, until one is found that it takes
NEAR = 1e-9  # of the largest number in a row: sums in another order differ by less
REPLACED = 1e3

Table = Any
Function = Callable[[Any], Any]


def tried(function: Function) -> str:
    """Run a function on made-up rows: together, twice, backwards, one at a time, in a crowd, and with one replaced.

    APART: no row changed another one's result. MIXED: one did. UNSTEADY: the same rows have other results when it is
    called again. UNTRIED: it takes none of the tables that were tried, or makes nothing of them.
    """
    try:
        function = function if isinstance(function, FunctionType) else copy.deepcopy(function)
    except Exception:  # then a call could change what the user holds
        return UNTRIED
    with _quiet():
        for table in _tables(function):
            together = _result(function, table)
            if together is not None and not _is_nothing(together):
                found = _compared(function, table, together)
                return found if found != APART else _with_gaps(function, table)
    return UNTRIED


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    state = np.random.get_state()  # noqa: NPY002
    try:
        with (
            np.errstate(all="ignore"),
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        np.random.set_state(state)  # noqa: NPY002


def _tables(function: Function) -> Iterator[Table]:
    """Arrays of several widths, then frames with every column that the code names."""
    for width in WIDTHS:
        yield made_up_rows(width, gaps=False)
    import pandas as pd

    names = list(dict.fromkeys(_words(function))) or ["x0", "x1", "x2"]
    yield pd.DataFrame(made_up_rows(len(names), gaps=False), columns=names)


def _words(function: Any) -> Iterator[str]:
    """Strings that stand in the code of a function."""
    code = getattr(getattr(function, "func", function), "__code__", None)
    waiting: list[Any] = [code]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str) and one.isprintable():
            yield one
        elif isinstance(one, tuple | frozenset):
            waiting += one
        elif isinstance(one, CodeType):
            waiting += one.co_consts


def _rows(table: Table, chosen: Any) -> Table:
    """Some rows, as a table of its own."""
    return table.iloc[chosen].reset_index(drop=True) if hasattr(table, "iloc") else table[chosen].copy()


def _result(function: Function, table: Table) -> NDArray[Any] | None:
    """One row of numbers or words for each row; None if it fails, or gives something else."""
    try:
        out = function(_rows(table, np.arange(len(table))))
        out = out.toarray() if hasattr(out, "toarray") else out
        found = np.asarray(out)
        if found.ndim == 0 or len(found) != len(table):
            return None
        found = found.reshape(len(found), -1)
        if not np.issubdtype(found.dtype, np.number) and found.dtype != bool:
            return np.asarray(found.astype(str))
        return found.astype(np.float64)
    except (Exception, SystemExit):  # a user's function may raise anything
        return None


def _is_nothing(found: NDArray[Any]) -> bool:
    """Whether nothing can be seen in it."""
    return found.size == 0 or (found.dtype == np.float64 and bool(np.isnan(found).all()))


def _compared(function: Function, table: Table, together: NDArray[Any]) -> str:
    if not _agree(together, _result(function, table)):
        return UNSTEADY
    places = np.arange(len(table))
    orders = [places[::-1], *places[:, None], np.tile(places, CROWD)]  # backwards, one at a time, in a crowd
    if not all(_agree(together[order], _result(function, _rows(table, order))) for order in orders):
        return MIXED
    replaced = _result(function, _replaced(table))
    return APART if replaced is None or _agree(together[1:], replaced[1:]) else MIXED


def _replaced(table: Table) -> Table:
    """The same rows with another first one; a function that fails on it says nothing of the others."""
    changed = table.copy()
    if hasattr(changed, "iloc"):
        changed.iloc[0] = -REPLACED * changed.iloc[0]
    else:
        changed[0] *= -REPLACED
    return changed


def _with_gaps(function: Function, table: Table) -> str:
    """The same for rows with gaps, if it takes them."""
    gapped = made_up_rows(table.shape[1], gaps=True)
    if hasattr(table, "iloc"):
        gapped = type(table)(gapped, columns=table.columns)
    together = _result(function, gapped)
    return APART if together is None else _compared(function, gapped, together)


def _agree(one: NDArray[Any], other: NDArray[Any] | None) -> bool:
    if other is None or one.shape != other.shape:
        return False
    if one.dtype != np.float64 or other.dtype != np.float64:
        return bool((one.astype(str) == other.astype(str)).all())
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    largest = np.nanmax(np.where(np.isfinite(one), np.abs(one), 0.0), axis=1, keepdims=True)
    return bool((same | (np.abs(one - other) <= NEAR * largest)).all())
