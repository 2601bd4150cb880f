"""Frames of Dask, and the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import numpy as np

from ppdp.data.cells import carried
from ppdp.data.column_types import kind_of as kind_of_column
from ppdp.data.engine.cluster import client_class, connected, current_client, kind_of, open_client, patiently
from ppdp.data.engine.source import BlockSource, aligned
from ppdp.data.engine.tasks import Cut, Failed, TaskSource, Workers, assembled, chosen, lengths, lost, read_by
from ppdp.exceptions import DomainMismatch, InvalidInput, RowsChanged


def opened(data: Any) -> BlockSource | None:
    """A source for a ``dask.dataframe.DataFrame``."""
    if type(data).__module__.partition(".")[0] != "dask":
        return None
    import dask.dataframe as dd

    if not isinstance(data, dd.DataFrame):
        return None
    workers = chosen()
    return _of_frame(data, workers if isinstance(workers, DaskWorkers) else DaskWorkers(current_client()))


@contextmanager
def on_workers(client: Any) -> Iterator[None]:
    """In this context files are read by the workers of a client, or of one at an address."""
    Client = client_class()
    with ExitStack() as stack:
        if not isinstance(client, Client):
            client = (client is None and open_client()) or stack.enter_context(connected(Client, client))
        stack.enter_context(read_by(DaskWorkers(client)))
        yield


class DaskWorkers(Workers):
    """The workers of a client."""

    def __init__(self, client: Any) -> None:
        self.client, self.kind = client, kind_of(client)

    def shared(self, content: bytes) -> Any:
        from dask import delayed

        return delayed(content, pure=False)

    def task(self, function: Callable[..., Any], *given: Any) -> Any:
        from dask import delayed

        return delayed(function, pure=False)(*given)

    def split_task(self, function: Callable[..., Any], parts: int, *given: Any) -> Sequence[Any]:
        [whole] = self.held([self.task(function, *given)])
        return [self.task(_item, whole, part) for part in range(parts)]

    def held(self, tasks: Sequence[Any]) -> Sequence[Any]:
        return self.client.persist(tasks)

    def results(self, tasks: Sequence[Any]) -> Iterator[Any]:
        from distributed import as_completed

        if self.client.status != "running":
            raise lost("Dask")
        futures = self.client.compute(tasks)
        try:
            for future, result in patiently(self.client, as_completed(futures, self.client.loop, True, False)):
                if future.status == "error" and type(future.exception()).__name__ != "KilledWorker":
                    raise InvalidInput("a partition of the frame cannot be computed.", fix="frame.compute() says why.")
                if future.status != "finished":
                    raise lost("Dask")
                yield result
        finally:
            for future in futures:
                future.release()

    def let_go(self, tasks: Sequence[Any]) -> None:
        from distributed import futures_of

        for future in futures_of(tasks):
            future.release()


def _item(found: Any, which: int) -> Any:
    return found if isinstance(found, Failed) else found[which]


def _of_frame(frame: Any, workers: DaskWorkers) -> TaskSource:
    """Partitions of a frame, whose lengths are computed first: blocks are put together of them."""
    import pandas as pd
    import pyarrow as pa

    names = list(frame.columns)
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise InvalidInput("columns must have names, all different.", fix="frame.columns = [...].")
    form = _with_texts(pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in frame.dtypes.items()}))
    try:
        schema = pa.Schema.from_pandas(form, preserve_index=False)
    except (pa.ArrowException, TypeError):
        fix = "frame.astype(...) to numbers, text, categories or dates; sparse columns to dense ones."
        raise InvalidInput("some column has a type that Arrow does not have.", fix=fix) from None
    parts = frame.to_delayed()
    jobs, ends = assembled(parts, lengths(workers, parts), partial(_tabled, schema))
    rows = TaskSource(workers, schema, jobs, ends)
    rows.untyped = tuple(name for name, kind in frame.dtypes.items() if str(kind) == "object")
    return rows


def _tabled(schema: Any, cuts: Sequence[Cut], names: Sequence[str], frames: Sequence[Any]) -> Iterator[Any]:
    import pyarrow as pa

    wanted = pa.schema([schema.field(name) for name in names])

    def tables() -> Iterator[Any]:
        for (first, last, n), frame in zip(cuts, frames):
            if len(frame) != n:
                raise RowsChanged("the rows changed between two passes.", fix="fit frame.persist().")
            try:
                yield _table(_with_texts(frame.iloc[first:last][wanted.names]), wanted)
                continue
            except (pa.ArrowException, KeyError, TypeError, ValueError):
                pass
            raise DomainMismatch(
                "some partition lacks a column, or has it with another type than the frame says.",
                fix="give all partitions the types of the frame.",
            )

    return aligned(tables())


def _with_texts(frame: Any) -> Any:
    """A frame with texts for categories that are objects, of which Arrow takes one type alone."""
    import pandas as pd

    mixed = {name: kind for name, kind in frame.dtypes.items() if getattr(kind, "categories", None) is not None}
    for name in (name for name, kind in mixed.items() if kind_of_column(kind.categories.dtype) in ("text", "unknown")):
        column = frame[name].array
        places, texts = pd.factorize(carried(column.categories))
        codes = np.append(places, -1)[column.codes]  # what is missing has the code -1
        frame = frame.assign(**{name: pd.Categorical.from_codes(codes, pd.Index(texts, dtype="string"))})
    return frame


def _table(frame: Any, schema: Any) -> Any:
    """A frame as a table of Arrow, whose text has no halves of characters."""
    import pyarrow as pa

    try:
        return pa.Table.from_pandas(frame, schema, preserve_index=False)
    except UnicodeError:
        whole = frame.copy(deep=False)
        for name in frame.select_dtypes("string"):
            whole[name] = frame[name].astype(object).str.encode("utf-8", "replace").str.decode("utf-8")
        return pa.Table.from_pandas(whole, schema, preserve_index=False)
