"""Passes over many rows: blocks that fit a processor's cache, several at a time."""

from __future__ import annotations

import functools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from itertools import chain, islice, pairwise
from typing import Any, TypeVar

import numpy as np

from ppdp.core.rounding import BLOCK

S = TypeVar("S")
T = TypeVar("T")

CACHED = 2**18  # entries
NARROW, WIDE = 128, 1024  # columns of which linear algebra gets no threads, and of which no block has one of its own
PIECE = 2**15  # rows that a thread takes at a time: with fewer, threads wait for the interpreter more than they work
LEAST = 2**13  # rows of a thread, where few are shared among threads
ENTRIES = 2**20  # of a block that is read: of wide rows it has fewer
HELD = 1.5  # items for every thread: one at work, and one that waits for every other thread
MOST = 8  # threads
ROOM = 3 * 2**26  # bytes of rows that are held in memory, or of a part of a file: in a private file they take longer

_HERE = threading.local()


@functools.cache
def workers() -> int:
    """How many threads can work at once: one for each processor that this process may use."""
    from joblib import cpu_count

    return min(MOST, cpu_count())


def blocks(n: int, d: int) -> Iterator[slice]:
    """Slices of at most :data:`PIECE` rows that nearly fit a processor's cache; smaller ones take longer to call."""
    rows = min(PIECE, max(64, CACHED // max(d, 1)))
    return (slice(start, start + rows) for start in range(0, n, rows))


def block_rows(d: int) -> int:
    """How many rows of d columns a block that is read holds: :data:`PIECE`, or a part of it that is whole products."""
    return max(BLOCK, min(PIECE, 1 << (ENTRIES // max(d, 1)).bit_length() - 1))


def pieces(n: int) -> Iterator[slice]:
    """Slices of at most :data:`PIECE` rows, nearly alike and as many for every thread; each is whole products."""
    threads = max(1, min(workers(), n // LEAST))
    products, count = -(-n // BLOCK), max(1, -(-n // (PIECE * threads)) * threads)
    ends = (min(n, BLOCK * (products * i // count)) for i in range(count + 1))
    return (slice(first, last) for first, last in pairwise(ends) if first < last)


def in_parallel(task: Callable[[S], T], items: Iterable[S], d: int, most: int = MOST) -> Iterator[T]:
    """Results of a task for every item, in order, from at most so many threads; only a few items are held at once.

    Products of matrices are faster with one thread each, several at a time: the threads of one product wait for each
    other, and go on spinning behind it. Of many columns that is so where all threads have an item; of very many what
    tasks hold would fill memory. A task that has tasks of its own does them one after the other. An error of an item,
    or of what gives the items, comes in its turn, and no task runs any more once it is raised.
    """
    _keep_memory()
    silent = np.geterr()  # threads of their own would warn, of private rows

    def run(pair: tuple[Any, Exception | None]) -> T:
        item, error = pair
        if error is not None:
            raise error
        with np.errstate(**silent):
            return task(item)

    given, threads = _with_error(items), min(most, workers())
    enough = 2 if d <= NARROW else max(2, threads)
    first = list(islice(given, enough))
    given = chain(first, given)
    apart = len(first) == enough and threads > 1 and d <= WIDE and not hasattr(_HERE, "works")
    with threads_for(0 if apart else d):
        if not apart:
            for pair in given:
                yield run(pair)
            return
        results: deque[Future[T]] = deque()
        try:
            for pair in given:
                results.append(_pool(threads).submit(_without_others, run, pair))
                if len(results) >= HELD * threads:
                    yield results.popleft().result()
            while results:
                yield results.popleft().result()
        finally:  # nothing looks at rows any more once this ends
            for result in results:
                result.cancel()
            if not hasattr(_HERE, "works"):  # no thread of the pool waits for itself
                wait(results)


def _with_error(items: Iterable[S]) -> Iterator[tuple[S | None, Exception | None]]:
    """Every item, and behind them the error that ended them."""
    try:
        for item in items:
            yield item, None
    except Exception as error:
        yield None, error


def alone() -> None:
    """From here on this thread does its tasks one after the other: others work beside it."""
    _keep_memory()
    _HERE.works = True


@functools.cache
def _keep_memory() -> None:
    """What one block leaves, the next one finds: new memory takes a quarter of a pass. Nobody writes to this array."""
    np.empty(2**25 - 2**13, dtype=np.uint8)


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads that stay: to start them takes longer than to go through 100,000 rows."""
    return ThreadPoolExecutor(threads, "ppdp")


def _without_others(task: Callable[[S], T], item: S) -> T:
    """What a thread of the pool does has no threads of its own."""
    alone()
    return task(item)


if hasattr(os, "register_at_fork"):  # a forked process has no threads but one
    os.register_at_fork(after_in_child=_pool.cache_clear)


def threads_for(d: int) -> AbstractContextManager[Any]:
    """Linear algebra of d columns: few of them get no threads, which would go on spinning into the next pass."""
    return _Single() if d <= NARROW else nullcontext()


class _Single:
    """One thread for linear algebra; nearly free where it has no more, as within a step of many."""

    def __enter__(self) -> None:
        self._before = [(library, count) for library in _of_algebra() if (count := library.num_threads) != 1]
        for library, _ in self._before:
            library.set_num_threads(1)

    def __exit__(self, *_: object) -> None:
        for library, count in self._before:
            library.set_num_threads(count)


def kinds() -> list[str]:
    """Processors for which the libraries of linear algebra chose their products."""
    return sorted({str(found.get("architecture")) for found in _libraries().info() if found["user_api"] == "blas"})


@functools.cache
def _of_algebra() -> list[Any]:
    return [library for library in _libraries().lib_controllers if library.user_api == "blas"]


@functools.cache
def _libraries() -> Any:
    """The libraries of linear algebra that are loaded: looking for them takes longer than a few products."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
