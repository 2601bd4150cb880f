"""Which engine reads what a user passes in place of an array."""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from ppdp.core.checks import choice
from ppdp.data import engine as engines
from ppdp.data.engine import arrow
from ppdp.data.engine.source import BlockSource
from ppdp.data.engine.tasks import chosen, of_files, read_by
from ppdp.exceptions import InvalidParameter

_MODULES = {found.name: import_module(f"{engines.__name__}.{found.name}") for found in iter_modules(engines.__path__)}
ENGINES: tuple[Any, ...] = (*(one for one in _MODULES.values() if hasattr(one, "opened") and one is not arrow), arrow)
"""Modules with a function ``opened(data)``; the first that knows the data reads them, Arrow if no other one does."""
CLUSTERS: dict[str, Any] = {name: one.on_workers for name, one in _MODULES.items() if hasattr(one, "on_workers")}
"""Functions ``on_workers(client)`` by engine: contexts in which workers read files."""


def opened_source(data: Any) -> BlockSource | None:
    """The rows where they are, by public form alone; None if they are in memory."""
    if isinstance(data, BlockSource):
        return data
    source: BlockSource | None = next((found for one in ENGINES if (found := one.opened(data)) is not None), None)
    workers = chosen()
    return of_files(source, workers) if workers is not None and type(source) is arrow.ArrowSource else source


def engine(name: str, client: Any = None) -> AbstractContextManager[None]:
    """Choose which engine reads files, for every fit in a ``with`` block.

    Parameters
    ----------
    name : {"arrow", "dask", "ray"}
        "arrow" reads them here, as without this block; the others on the workers of a cluster.
    client : distributed.Client or str, optional
        Dask's client, or the address of the cluster. Default: the one that is open in this process, else processes on
        this machine, for as long as the block takes.

    Examples
    --------
    >>> with engine("arrow"):
    ...     pass
    """
    if choice("engine", name, ["arrow", *CLUSTERS]) in CLUSTERS:
        context: AbstractContextManager[None] = CLUSTERS[name](client)
        return context
    if client is not None:
        raise InvalidParameter("files that are read here need no client.", fix='engine("dask", client).')
    return read_by(None)
