"""Tables in and out: pandas, polars, Arrow and NumPy.

A table is opened without a look at its cells. They become numbers later, each by itself, and whatever stands in one of
them raises nothing, for the error would quote it.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence, Set
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from ppdp.core.boundary import suppressed
from ppdp.core.names import slips
from ppdp.data.cells import numbers, objects
from ppdp.exceptions import DomainMismatch

Array = NDArray[np.float64]
_NO_CELL = object()  # stands where a row says that there is a cell, and gives none


def readable(X: Any) -> Any:
    """The same table in a form that scikit-learn reads with column names and gaps in every supported version."""
    if isinstance(X, np.ma.MaskedArray):
        return numbers(X).values if X.dtype.kind in "biuf" else objects(X)
    module = type(X).__module__
    if module.startswith("pyarrow") and hasattr(X, "to_pandas"):
        return X.to_pandas(ignore_metadata=True)
    return X.to_pandas() if module.startswith("polars") and hasattr(X, "to_pandas") else X


def opened(X: Any) -> Any:
    """A table as a pandas frame or an array, of which no cell was decoded.

    Lists of rows of one length become matrices of objects; frames of polars and Arrow keep the types of their columns.
    What is no table comes back as it is, or as an array of another dimension.
    """
    module = type(X).__module__
    if module.startswith("pyarrow") and hasattr(X, "to_pandas"):
        import pandas as pd

        # all columns, of their names: pandas writes beside them which ones were its index
        return X.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True)
    if module.startswith("polars") and hasattr(X, "get_columns"):
        import pandas as pd

        return pd.DataFrame({one.name: _of_polars(one) for one in X.get_columns()})
    if _is_listed(X):
        return _of_list(X)
    if issparse(X):
        return canonical(X)
    if hasattr(X, "iloc"):
        return by_places(X)
    return X if isinstance(X, np.ndarray) else np.asarray(X)


def by_places(values: Any) -> Any:
    """A frame or a column of pandas without its index, whose cells may be anything, and are looked up for any name."""
    import pandas as pd

    values = values.copy(deep=False)
    values.index = pd.RangeIndex(len(values))
    return values


def named(X: Any) -> list[str] | None:
    """Names of the columns of an opened table; None if they have none."""
    names = list(getattr(X, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def in_order(X: Any, names: Sequence[str], needed: Set[str]) -> Any:
    """The columns of these names in this order, of a table that has all ``needed``; 0 stands for any that lacks."""
    given = named(X)
    if given is None or given == list(names) or len(set(given)) < len(given):
        return X
    absent = [name for name in names if name in needed and name not in given]
    if absent:
        raise DomainMismatch(
            f"X lacks the column(s) {', '.join(map(repr, absent))}, taken by name.",
            fix=slips(absent, sorted(set(given) - set(names))) or "the columns of the fit; others are left out.",
        )
    return X.reindex(columns=list(names), fill_value=0)


def column_alone(X: Any, names: Sequence[str] | None) -> Any:
    """An opened column as a table, of its own name, or of the only one of these."""
    frame = X.to_frame() if hasattr(X, "to_frame") else None
    if names is None or len(names) != 1:
        return X.reshape(-1, 1) if frame is None else frame
    import pandas as pd

    frame = pd.DataFrame({0: pd.Series(X, dtype=object)}) if frame is None else frame
    return frame.set_axis(list(names), axis=1)


def opened_block(table: Any) -> Any:
    """The same of an Arrow table, whose numbers become a matrix at once if it holds nothing else."""
    import pyarrow.types as kinds

    if not all(kinds.is_integer(kind) or kinds.is_floating(kind) for kind in table.schema.types):
        return opened(table)
    values = np.empty((table.num_rows, table.num_columns))
    for position, one in enumerate(table.columns):
        values[:, position] = one.to_numpy()  # gaps are NaN
    return values


def canonical(X: Any) -> Any:
    """The same sparse rows, with columns in order and every one once."""
    X = csr_array(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def column(y: Any) -> Any:
    """Labels as an array of NumPy or pandas, of which none was decoded."""
    module = type(y).__module__
    if module.startswith("polars") and hasattr(y, "to_arrow") and not hasattr(y, "get_columns"):
        y = _of_polars(y)
    elif module.startswith("pyarrow") and hasattr(y, "type"):
        y = of_arrow(y)
    elif module.startswith(("polars", "pyarrow")):
        y = opened(y)
    if hasattr(y, "iloc") and y.ndim == 2 and y.shape[1] == 1:
        y = y.iloc[:, 0]
    if _is_listed(y):
        return np.fromiter(map(inner, y), dtype=object, count=len(y))
    if hasattr(y, "array"):  # positions, not an index, tell whose label it is
        return y.array if not isinstance(y.dtype, np.dtype) else y.to_numpy()
    if isinstance(y, np.ma.MaskedArray) or issparse(y) or not isinstance(getattr(y, "dtype", np.dtype("O")), np.dtype):
        return y
    return np.asarray(y)  # a matrix, or an array of another library, ravels in its own way, or not at all


def arrow_table(X: Any, names: Sequence[str]) -> Any:
    """An Arrow table of an array's columns."""
    import pyarrow as pa

    return pa.table([pa.array(column) for column in X.T], names=[str(name) for name in names])


def of_arrow(values: Any) -> Any:
    """A column of Arrow as an array of pandas, with its type."""
    import pandas as pd

    return pd.arrays.ArrowExtensionArray(values)


def _of_polars(values: Any) -> Any:
    """A column of polars with its type, where Arrow and pandas have it, else as objects."""
    import pandas as pd

    kind = values.dtype
    lacking = ("Int128", "UInt128", "Object")
    if str(kind) in lacking or (kind.is_nested() and any(one in str(kind) for one in lacking)):
        held = np.fromiter(values.to_list(), dtype=object, count=len(values))
        return pd.Series(held, dtype=object)  # of an array pandas would find a type by what stands in its cells
    return of_arrow(values.to_arrow())


def _is_listed(values: Any) -> bool:
    """Whether they are any objects in a row, of which NumPy would make one type by what they are."""
    typed = (str, bytes, bytearray, memoryview, array)
    return isinstance(values, Sequence) and not hasattr(values, "__array__") and not isinstance(values, typed)


def _of_list(X: Sequence[Any]) -> NDArray[np.object_]:
    """A list of rows of one length as a matrix, any other list as a column."""
    widths = {width_of(row) for row in X}
    width = max(widths, default=-1)
    if len(widths) == 1 and width >= 0:
        held = chain.from_iterable(_held(row, width) for row in X)
        return np.fromiter(held, dtype=object, count=len(X) * width).reshape(len(X), width)
    return np.fromiter(X, dtype=object, count=len(X))


def width_of(row: Any) -> int:
    """Length of a row; -1 for what is none, such as a cell, whose own code may raise anything."""
    with suppressed():
        if isinstance(row, (str, bytes, Mapping, Set)) or getattr(row, "ndim", 1) != 1:
            return -1
        return len(row) if hasattr(row, "__len__") and hasattr(row, "__iter__") else -1
    return -1


def _held(row: Any, width: int) -> Any:
    """The cells of a row, as many as it says, whatever its own code makes of that: no other row's are moved."""
    if type(row) is list or type(row) is tuple:
        return row
    held: list[Any] = []
    with suppressed():
        held.extend(islice(row, width))
    return [*held, *[_NO_CELL] * (width - len(held))]


def inner(cell: Any) -> Any:
    """What stands in a cell of a column that is written as a list of lists."""
    kind = type(cell)  # not compared with others: its own class may raise
    return cell[0] if (kind is list or kind is tuple) and len(cell) == 1 else cell


def cells(y: Any) -> NDArray[Any]:
    """The labels of a column, in a form whose type does not depend on what single ones are."""
    if isinstance(y, np.ma.MaskedArray) or not isinstance(y.dtype, np.dtype):
        return objects(y).ravel()
    return np.asarray(y).ravel()


def matrix(X: Any) -> tuple[Array, list[str]]:
    """An opened table as float64, and which columns hold something else than numbers.

    A missing value is NaN, and what is no number is infinity. Of an array, whose columns have no names, ``[""]`` stands
    for all of them.
    """
    if issparse(X):
        return X.astype(np.float64), []
    if type(X) is np.ndarray and X.dtype.kind in "biuf":
        return np.asarray(X, dtype=np.float64), []
    if not hasattr(X, "columns"):
        values, improper = numbers(X)
        return values, [""] if improper.any() else []
    if all(isinstance(kind, np.dtype) and kind.kind in "biuf" for kind in X.dtypes):
        return X.to_numpy(dtype=np.float64), []
    read = [numbers(X.iloc[:, i]) for i in range(X.shape[1])]
    refused = [str(name) for name, cells_read in zip(X.columns, read) if cells_read.improper.any()]
    return np.column_stack([cells_read.values for cells_read in read]), refused
