"""Which engine reads what a user passes in place of an array."""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from ppdp.core.checks import choice
from ppdp.data import engine as engines
from ppdp.data.engine import arrow, dask
from ppdp.data.engine.source import BlockSource
from ppdp.exceptions import InvalidParameter

_MODULES = (import_module(f"{engines.__name__}.{found.name}") for found in iter_modules(engines.__path__))
ENGINES: tuple[Any, ...] = (*(one for one in _MODULES if hasattr(one, "opened") and one is not arrow), arrow)
"""Modules with a function ``opened(data)``; the first that knows the data reads them, Arrow if no other one does."""


def opened_source(data: Any) -> BlockSource | None:
    """The rows where they are; None if they are in memory. Only public form is read.

    :class:`InvalidInput` if there are no rows in what was passed, or it cannot be read.
    """
    if isinstance(data, BlockSource):
        return data
    return next((found for engine in ENGINES if (found := engine.opened(data)) is not None), None)


def engine(name: str, client: Any = None) -> AbstractContextManager[None]:
    """Choose which engine reads files, for every fit in a ``with`` block.

    Parameters
    ----------
    name : {"arrow", "dask"}
        "arrow" reads them here, as without this block; "dask" on the workers of a cluster.
    client : distributed.Client or str, optional
        The cluster of Dask, or the address of its scheduler. Default: the client that is open, else a cluster of
        processes on this machine, for as long as the block takes.

    Examples
    --------
    >>> with engine("arrow"):
    ...     pass
    """
    if choice("engine", name, ["arrow", "dask"]) == "dask":
        return dask.chosen(client)
    if client is not None:
        raise InvalidParameter("only Dask has a client.", fix='engine("dask", client).')
    return dask.here()
