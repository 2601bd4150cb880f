"""Rows on the workers of a Dask cluster: tasks go there, results come back, and no row does.

This process alone plans, spends and draws noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial, reduce
from itertools import chain, count, pairwise
from typing import Any, TypeVar
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from ppdp.core.progress import paced
from ppdp.data.cells import carried
from ppdp.data.column_types import kind_of as kind_of_column
from ppdp.data.engine import arrow
from ppdp.data.engine.cluster import (
    Failed,
    client_class,
    connected,
    current_client,
    kind_here,
    kind_of,
    let_go,
    open_client,
    results,
    unlike,
)
from ppdp.data.engine.source import BlockSource, aligned
from ppdp.data.parallel import PIECE, alone, threads_for
from ppdp.data.rows import Rows
from ppdp.exceptions import DomainMismatch, InvalidInput, PpdpError, RowsChanged

T = TypeVar("T")
Job = tuple[Any, Sequence[Any]]  # what makes blocks of parts that are there, and these parts
Grouped = tuple[Any, NDArray[np.uint64], NDArray[np.intp]]  # what is known of a block, a table, where parts of it end
Cut = tuple[int, int, int]  # of a part: where it begins and ends, and how many rows there are in all

TASKS, MOST = 64, 16  # into how many tasks few rows are split, and how many blocks each has of many

_CLIENT: ContextVar[Any] = ContextVar("client", default=None)


def opened(data: Any) -> BlockSource | None:
    """A source for a ``dask.dataframe.DataFrame``, and for files where this engine was chosen."""
    if type(data).__module__.partition(".")[0] == "dask":
        import dask.dataframe as dd

        return _of_frame(data, _CLIENT.get() or current_client()) if isinstance(data, dd.DataFrame) else None
    files = arrow.opened(data) if _CLIENT.get() is not None else None
    return _of_files(files, _CLIENT.get()) if type(files) is arrow.ArrowSource else files


@contextmanager
def chosen(client: Any) -> Iterator[None]:
    """In this context files are read by the workers of a client, or of one at an address."""
    Client = client_class()
    with ExitStack() as stack:
        if not isinstance(client, Client):
            client = (client is None and open_client()) or stack.enter_context(connected(Client, client))
        stack.enter_context(here(client))
        yield


@contextmanager
def here(client: Any = None) -> Iterator[None]:
    """In this context files are read by this process, or by a client's workers."""
    token = _CLIENT.set(client)
    try:
        yield
    finally:
        _CLIENT.reset(token)


class DaskSource(BlockSource):
    """Rows of which every worker has some: a task of Dask takes several blocks.

    Attributes
    ----------
    client : distributed.Client
        To whom tasks are given.
    jobs : sequence of (callable, sequence)
        One for every task.
    ends : sequence of int
        Where the rows of each begin, and where the last end.
    """

    local = False

    def __init__(self, client: Any, schema: Any, jobs: Sequence[Job], ends: Sequence[int], kind: Any = None) -> None:
        self.client, self.schema, self.jobs, self.ends, self.n = client, schema, jobs, ends, ends[-1]
        self.kind = kind or kind_of(client)
        self.futures: list[Any] = []  # of what workers hold for these rows
        self.open: WeakSet[DaskSource] = WeakSet([self])  # all rows that were made of the same

    def tables(self, names: Sequence[str]) -> Iterator[Any]:
        raise InvalidInput("rows that Dask holds stay with its workers.", fix="pass files, without this engine.")

    def over(
        self, task: Callable[[int, Any], T], names: Sequence[str], width: int, merge: Callable[[T, T], T] | None = None
    ) -> Iterator[T]:
        gather = list if merge is None else partial(_merged, merge)
        found = results(self.client, self._tasks(task, names, width, gather))
        for some in paced(found, self.n, max(1, self.n // max(1, len(self.jobs)))):
            yield from some

    def held(self, task: Callable[[int, Any], Rows], names: Sequence[str], width: int) -> DaskSource:
        """The rows that a task makes of every block, which workers hold for as long as they are asked for."""
        from distributed import futures_of

        parts = self.client.persist(self._tasks(task, names, width, list))
        other = self._next([(_as_it_is, [part]) for part in parts], self.ends)
        other.futures = futures_of(parts)
        return other

    def taken(self, batch: NDArray[np.intp]) -> DaskSource:
        """Some of rows that are held, ascending, held in turn: as blocks of these rows alone."""
        from dask import delayed

        picked, parts, cuts = delayed(_picked, pure=False), [], np.searchsorted(batch, self.ends).tolist()
        for (_, held), (a, b) in zip(self.jobs, pairwise(cuts)):
            if a < b:
                parts.append(picked(batch[a:b].tobytes(), *held))
        sample = self._next(*_assembled(parts, sorted(set(cuts)), _sampled))
        return sample.held(_numbered, (), 1) if parts else sample

    @contextmanager
    def grouped(
        self, task: Callable[[int, Any], Grouped], names: Sequence[str], width: int, parts: int, compare: Any
    ) -> Iterator[tuple[Iterator[Any], Iterator[Any]]]:
        """As the base has it; tables go from worker to worker."""
        from dask import delayed

        item, found = delayed(_item, pure=False), delayed(_compared, pure=False)
        split = self.client.persist(self._tasks(task, names, width, partial(_by_part, parts)))
        common = self._common(compare)
        known = results(self.client, [item(own, 0) for own in split])
        tasks = [found(common, *(item(own, part) for own in split)) for part in range(1, parts + 1)]
        yield chain.from_iterable(known), chain.from_iterable(results(self.client, tasks))

    def close(self) -> None:
        """Let workers forget all rows that they hold."""
        for other in list(self.open):
            let_go(other.futures)

    def _next(self, jobs: Sequence[Job], ends: Sequence[int]) -> DaskSource:
        """Other rows, for as long as these are open."""
        other = DaskSource(self.client, None, jobs, ends, self.kind)
        other.open = self.open
        other.open.add(other)
        return other

    def _common(self, *given: Any) -> Any:
        """What every one of some tasks takes, which a worker is sent once."""
        import cloudpickle
        from dask import delayed

        return delayed(cloudpickle.dumps((self.kind, *given)), pure=False)

    def _tasks(self, task: Any, names: Sequence[str], width: int, gather: Any) -> list[Any]:
        import cloudpickle
        from dask import delayed

        common, run = self._common(task, tuple(names), width, gather), delayed(_run, pure=False)
        jobs = zip(self.ends, self.jobs)
        return [run(common, cloudpickle.dumps(make), first, *parts) for first, (make, parts) in jobs]


def _run(common: bytes, own: bytes, first: int, *parts: Any) -> Any:
    """On a worker: results of a task for blocks, as they are to be gathered."""
    import cloudpickle

    def work(task: Any, names: Any, width: int, gather: Any) -> Any:
        with threads_for(width):
            return gather(map(task, count(first, PIECE), cloudpickle.loads(own)(names, parts)))

    return _answer(common, parts, work)


def _compared(common: bytes, *tables: Any) -> Any:
    """On a worker: what is found in a part, of which these are the tables, unless it is empty."""

    def work(compare: Callable[[Any], Any]) -> list[Any]:
        some = [table for table in tables if len(table)]
        return [compare(np.concatenate(some))] if some else []

    return _answer(common, tables, work)


def _answer(common: bytes, parts: Sequence[Any], work: Callable[..., Any]) -> Any:
    """What comes of work with what many tasks share, if all parts are there; or why it does not."""
    import cloudpickle

    for part in parts:
        if isinstance(part, Failed):
            return part
    alone()
    try:
        kind, *given = cloudpickle.loads(common)
        if kind != kind_here():
            raise unlike()
        with np.errstate(all="ignore"):
            return work(*given)
    except PpdpError as error:
        return Failed(error.with_traceback(None))
    except Exception as error:
        return Failed(type(error).__name__)


def _merged(merge: Callable[[T, T], T], found: Iterator[T]) -> list[T]:
    return [reduce(merge, found)]


def _by_part(parts: int, found: Iterable[Grouped | None]) -> list[Any]:
    """What tasks know of blocks, in a list; then for every part the rows of all of them."""
    some = [result for result in found if result is not None]
    tables = zip(*(np.split(table, ends[:-1]) for _, table, ends in some))
    return [[known for known, _, _ in some], *(map(np.concatenate, tables) if some else [()] * parts)]


def _item(found: Any, which: int) -> Any:
    return found if isinstance(found, Failed) else found[which]


def _of_files(files: arrow.ArrowSource, client: Any) -> DaskSource:
    """Row groups of files; a task begins at the first block that begins in one, and may end in the next."""
    groups = list(files.groups())
    starts = np.cumsum([0, *(group.n for group in groups)])
    n, least = int(starts[-1]), _blocks(int(starts[-1])) * PIECE
    ends = [0]
    for start in starts[1:].tolist():
        end = min(n, -(-start // PIECE) * PIECE)
        if end - ends[-1] >= least or (end == n and end > ends[-1]):
            ends.append(end)
    jobs: list[Job] = []
    for a, b in pairwise(ends):
        jobs.append((partial(_read, arrow.rows_between(groups, starts, a, b)), ()))
    return DaskSource(client, files.schema, jobs, ends)


def _blocks(n: int) -> int:
    """How many blocks a task takes at least."""
    return min(MOST, max(1, n // (PIECE * TASKS)))


def _read(rows: BlockSource, names: Sequence[str], parts: Any) -> Iterator[Any]:
    return aligned(rows.tables(names))


def _of_frame(frame: Any, client: Any) -> DaskSource:
    """Partitions of a frame, whose lengths are computed first: blocks are put together of them."""
    import pandas as pd
    import pyarrow as pa
    from dask import delayed

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
    counted = [delayed(_counted, pure=False)(number, part) for number, part in enumerate(parts)]
    lengths = [length for _, length in sorted(results(client, counted))]
    jobs, ends = _assembled(parts, np.cumsum([0, *lengths]).tolist(), partial(_tabled, schema))
    rows = DaskSource(client, schema, jobs, ends)
    rows.untyped = tuple(name for name, kind in frame.dtypes.items() if str(kind) == "object")
    return rows


def _counted(number: int, frame: Any) -> tuple[int, int]:
    return number, len(frame)


def _assembled(parts: Sequence[Any], starts: Sequence[int], make: Any) -> tuple[list[Job], list[int]]:
    """Tasks over parts of any length, every one of whole blocks but the last."""
    n = starts[-1]
    ends = [*range(0, n, _blocks(n) * PIECE), n]
    jobs: list[Job] = []
    for a, b in pairwise(ends):
        used = [i for i, (first, last) in enumerate(pairwise(starts)) if max(a, first) < min(b, last)]
        cuts = [(max(a - starts[i], 0), min(b, starts[i + 1]) - starts[i], starts[i + 1] - starts[i]) for i in used]
        jobs.append((partial(make, cuts), [parts[i] for i in used]))
    return jobs, ends


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


def _picked(indices: bytes, blocks: Any) -> Any:
    """Some of the rows of blocks, in a list."""
    if isinstance(blocks, Failed):
        return blocks
    batch, found = np.frombuffer(indices, dtype=np.intp), []
    for block in blocks:
        first, last = np.searchsorted(batch, [block.first, block.first + block.n])
        found.append(block.part(batch[first:last] - block.first))
    return Rows.joined(found)


def _sampled(cuts: Sequence[Cut], names: Sequence[str], parts: Sequence[Rows]) -> Iterator[Rows]:
    return Rows.joined([rows.part(slice(first, last)) for (first, last, _), rows in zip(cuts, parts)]).blocks()


def _numbered(first: int, rows: Rows) -> Rows:
    return replace(rows, first=first)


def _as_it_is(names: Sequence[str], parts: Sequence[Iterable[Any]]) -> Iterable[Any]:
    return parts[0]
