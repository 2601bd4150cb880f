"""Rows on the workers of a cluster: tasks go there, results come back, and no row does.

This process alone plans, spends and draws noise. A worker answers with what a task returned, or with the error that the
task raised: libraries for clusters write one that is raised into a log, with the rows.
"""

from __future__ import annotations

import functools
import platform
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import chain, count, pairwise
from typing import Any, TypeVar
from weakref import WeakSet

import numpy as np
import scipy.linalg  # with its library, which is one of the kinds
from numpy.typing import NDArray

from ppdp import __version__
from ppdp.core.progress import holding, paced
from ppdp.data.engine import arrow
from ppdp.data.engine.source import BlockSource, aligned
from ppdp.data.parallel import PIECE, alone, kinds, threads_for
from ppdp.data.rows import Rows
from ppdp.exceptions import InvalidInput, InvalidParameter, PpdpError, WorkerLost

T = TypeVar("T")
Job = tuple[Any, Sequence[Any]]  # what makes blocks of parts that are there, and these parts
Grouped = tuple[Any, NDArray[np.uint64], NDArray[np.intp]]  # what is known of a block, a table, where parts of it end
Cut = tuple[int, int, int]  # of a part: where it begins and ends, and how many rows there are in all

ANSWER = 5.0  # seconds in which a cluster does
MOST = 16  # blocks of a task of many rows; few rows are a task for every processor, for each takes time to be sent


@dataclass(frozen=True, slots=True)
class Failed:
    """What stopped a task: an error of ours, or the name of another."""

    what: PpdpError | str

    def error(self) -> BaseException:
        """To be raised here."""
        return self.what if isinstance(self.what, PpdpError) else type(self.what, (Exception,), {})()


class Workers(ABC):
    """Processes of one ``kind``, which decides their last bits, that run tasks: functions of this package."""

    kind: tuple[str, ...]

    @abstractmethod
    def at_once(self) -> int:
        """How many tasks they run at once, as far as is known."""

    @abstractmethod
    def shared(self, content: bytes) -> Any:
        """What many tasks take, sent to a worker once."""

    @abstractmethod
    def task(self, function: Callable[..., Any], *given: Any) -> Any:
        """A result to come; what is given may be one, too."""

    @abstractmethod
    def split_task(self, function: Callable[..., Any], parts: int, *given: Any) -> Sequence[Any]:
        """A result to come that is a list of so many, each of which stays where it is until it is asked for."""

    @abstractmethod
    def held(self, tasks: Sequence[Any]) -> Sequence[Any]:
        """Results that workers keep until they are let go."""

    @abstractmethod
    def results(self, tasks: Sequence[Any]) -> Iterator[Any]:
        """What tasks returned, as they end; :class:`WorkerLost` if some cannot."""

    @abstractmethod
    def let_go(self, tasks: Sequence[Any]) -> None:
        """What nobody waits for is forgotten, or not even begun."""

    def answers(self, tasks: Sequence[Any]) -> Iterator[Any]:
        """The results, of which an error is raised here."""
        for result in self.results(tasks):
            if isinstance(result, Failed):
                raise result.error()
            yield result


_CHOSEN: ContextVar[Workers | None] = ContextVar("workers", default=None)


def chosen() -> Workers | None:
    """The workers that read files in this context."""
    return _CHOSEN.get()


def read_by(workers: Workers | None) -> AbstractContextManager[None]:
    """In this context files are read by this process, or by workers."""
    return holding(_CHOSEN, workers)


class TaskSource(BlockSource):
    """Rows of which every worker has some: a task takes several blocks, which ``ends`` counts in rows."""

    local = False

    def __init__(self, workers: Workers, schema: Any, jobs: Sequence[Job], ends: Sequence[int]) -> None:
        self.workers, self.schema, self.jobs, self.ends, self.n = workers, schema, jobs, ends, ends[-1]
        self.kept: Sequence[Any] = ()  # what workers hold for these rows
        self.open: WeakSet[TaskSource] = WeakSet([self])  # all rows that were made of the same

    def tables(self, names: Sequence[str]) -> Iterator[Any]:
        raise InvalidInput("rows that workers hold stay with them.", fix="pass files, without this engine.")

    def over(
        self, task: Callable[[int, Any], T], names: Sequence[str], width: int, merge: Callable[[T, T], T] | None = None
    ) -> Iterator[T]:
        gather = list if merge is None else partial(_merged, merge)
        found = self.workers.answers(self._tasks(task, names, width, gather))
        for some in paced(found, self.n, max(1, self.n // max(1, len(self.jobs)))):
            yield from some

    def held(self, task: Callable[[int, Any], Rows], names: Sequence[str], width: int) -> TaskSource:
        parts = self.workers.held(self._tasks(task, names, width, list))
        other = self._next([(_as_it_is, [part]) for part in parts], self.ends)
        other.kept = parts
        return other

    @property
    def keeps(self) -> bool:
        """Whether workers hold these rows."""
        return bool(self.kept)

    def taken(self, batch: NDArray[np.intp]) -> TaskSource:
        """Some of rows that are held, ascending, held in turn: as blocks of these rows alone."""
        parts, cuts = [], np.searchsorted(batch, self.ends).tolist()
        for (_, held), (a, b) in zip(self.jobs, pairwise(cuts)):
            if a < b:
                parts.append(self.workers.task(_picked, batch[a:b].tobytes(), *held))
        sample = self._next(*assembled(self.workers, parts, sorted(set(cuts)), _sampled))
        return sample.held(_numbered, (), 1) if parts else sample

    @contextmanager
    def grouped(
        self, task: Callable[[int, Any], Grouped], names: Sequence[str], width: int, parts: int, compare: Any
    ) -> Iterator[tuple[Iterator[Any], Iterator[Any]]]:
        """As the base has it; tables go from worker to worker."""
        workers = self.workers
        common, jobs = self._common(task, tuple(names), width, partial(_by_part, parts)), zip(self.ends, self.jobs)
        split = [workers.split_task(_run, parts + 1, common, *_task(first, job)) for first, job in jobs]
        comparing = self._common(compare)
        tasks = [workers.task(_compared, comparing, *tables) for tables in list(zip(*split))[1:]]
        known = workers.answers([own[0] for own in split])
        yield chain.from_iterable(known), chain.from_iterable(workers.answers(tasks))

    def close(self) -> None:
        """Let workers forget all rows that they hold."""
        for other in list(self.open):
            if other.kept:
                self.workers.let_go(other.kept)
                other.kept = other.jobs = ()

    def _next(self, jobs: Sequence[Job], ends: Sequence[int]) -> TaskSource:
        """Other rows, for as long as these are open."""
        other = TaskSource(self.workers, None, jobs, ends)
        other.open = self.open
        other.open.add(other)
        return other

    def _common(self, *given: Any) -> Any:
        """What every one of some tasks takes."""
        import cloudpickle

        return self.workers.shared(cloudpickle.dumps((self.workers.kind, *given)))

    def _tasks(self, task: Any, names: Sequence[str], width: int, gather: Any) -> list[Any]:
        common = self._common(task, tuple(names), width, gather)
        return [self.workers.task(_run, common, *_task(first, job)) for first, job in zip(self.ends, self.jobs)]


def of_files(files: arrow.ArrowSource, workers: Workers) -> TaskSource:
    """Row groups of files; a task begins at the first block that begins in one, and may end in the next."""
    groups = list(files.groups())
    starts = np.cumsum([0, *(group.n for group in groups)])
    n, least = int(starts[-1]), _blocks(int(starts[-1]), workers) * PIECE
    ends = [0]
    for start in starts[1:].tolist():
        end = min(n, -(-start // PIECE) * PIECE)
        if end - ends[-1] >= least or (end == n and end > ends[-1]):
            ends.append(end)
    jobs: list[Job] = []
    for a, b in pairwise(ends):
        jobs.append((partial(_read, arrow.rows_between(groups, starts, a, b)), ()))
    return TaskSource(workers, files.schema, jobs, ends)


def assembled(workers: Workers, parts: Sequence[Any], starts: Sequence[int], make: Any) -> tuple[list[Job], list[int]]:
    """Tasks over parts of any length, every one of whole blocks but the last."""
    n = starts[-1]
    ends = [*range(0, n, _blocks(n, workers) * PIECE), n]
    jobs: list[Job] = []
    for a, b in pairwise(ends):
        used = [i for i, (first, last) in enumerate(pairwise(starts)) if max(a, first) < min(b, last)]
        cuts = [(max(a - starts[i], 0), min(b, starts[i + 1]) - starts[i], starts[i + 1] - starts[i]) for i in used]
        jobs.append((partial(make, cuts), [parts[i] for i in used]))
    return jobs, ends


def looked_at(workers: Workers, parts: Sequence[Any], form: Callable[[Any], T]) -> tuple[list[int], list[T]]:
    """Where each of some parts begins, and where the last ends; and the form of those that have rows."""
    seen = workers.answers([workers.task(_seen, form, number, part) for number, part in enumerate(parts)])
    in_order = sorted(seen, key=lambda one: one[0])
    return np.cumsum([0, *(n for _, n, _ in in_order)]).tolist(), [found for _, n, found in in_order if n]


@functools.cache
def kind_here() -> tuple[str, ...]:
    """What decides the last bits here. Bounds count on rows that are equal being mapped equally, wherever they are."""
    found = str((np.show_config(mode="dicts") or {}).get("SIMD Extensions"))
    return platform.machine(), found, *kinds(), np.__version__, scipy.__version__, __version__


def unlike() -> InvalidParameter:
    """The error of workers that are not of one kind."""
    return InvalidParameter(
        "workers of the cluster differ in their processors or in their versions of numpy, scipy or ppdp.",
        fix="workers of one kind: what equal rows become must be equal to the last bit.",
    )


def lost(library: str) -> WorkerLost:
    """The error of workers that do not come back."""
    words = f"workers of {library}, or the way to them, were lost for good."
    return WorkerLost(words, fix="workers that run, with more memory.")


def _blocks(n: int, workers: Workers) -> int:
    """How many blocks a task takes at least."""
    return min(MOST, max(1, -(-n // (PIECE * max(1, workers.at_once())))))


def _task(first: int, job: Job) -> tuple[Any, ...]:
    """What a task takes beside what it shares."""
    import cloudpickle

    make, parts = job
    return cloudpickle.dumps(make), first, *parts


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


def _read(rows: BlockSource, names: Sequence[str], parts: Any) -> Iterator[Any]:
    return aligned(rows.tables(names))


def _seen(form: Callable[[Any], Any], number: int, part: Any) -> Any:
    try:
        return number, len(part), form(part) if len(part) else None
    except InvalidInput as error:
        return Failed(error.with_traceback(None))


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
    return map(_in_place, parts[0])


def _in_place(block: Rows) -> Rows:
    """A block as if it were made here: what another worker sent may begin at any byte, and sums would tell."""
    numbers: dict[str, Any] = {name: getattr(block, name) for name in ("X", "y", "weight", "norms", "factor")}
    for name, own in numbers.items():
        numbers[name] = None if own is None else np.require(own, None, "A")
    return replace(block, **numbers)
