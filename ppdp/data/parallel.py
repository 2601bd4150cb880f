"""Passes over many rows: blocks that fit a processor's cache, several at a time."""

from __future__ import annotations

import functools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import chain, islice
from typing import Any, TypeVar

import numpy as np

from ppdp.core.rounding import BLOCK

S = TypeVar("S")
T = TypeVar("T")

CACHED = 2**17  # entries
NARROW = 128  # columns
PIECE = 2**15  # rows that a thread takes at a time: with fewer, threads wait for the interpreter more than they work
HELD = 1.5  # items for every thread: one at work, and one that waits for every other thread
MOST = 8  # threads

_HERE = threading.local()


@functools.cache
def workers() -> int:
    """How many threads can work at once: one for each processor that this process may use."""
    from joblib import cpu_count

    return min(MOST, cpu_count())


def blocks(n: int, d: int) -> Iterator[slice]:
    """Slices of at most ``BLOCK`` rows that fit a processor's cache."""
    rows = min(BLOCK, max(64, CACHED // max(d, 1)))
    return (slice(start, start + rows) for start in range(0, n, rows))


def pieces(n: int) -> Iterator[slice]:
    """Slices of :data:`PIECE` rows, but for the last one."""
    return (slice(start, min(start + PIECE, n)) for start in range(0, n, PIECE))


def in_parallel(task: Callable[[S], T], items: Iterable[S], d: int, most: int = MOST) -> Iterator[T]:
    """Results of a task for every item, in order, from at most so many threads; only a few items are held at once.

    Products of matrices with few columns are faster with one thread each, several at a time: the threads of one such
    product would wait for each other. A task that has tasks of its own does them one after the other.
    """
    _keep_memory()
    rest, first = iter(items), list[S]()
    try:
        for item in islice(rest, 2):
            first.append(item)
    except Exception as error:  # it follows what was there before
        rest = map(_raise, [error])
    rest, threads = chain(first, rest), min(most, workers())
    if len(first) < 2 or threads < 2 or d > NARROW or hasattr(_HERE, "works"):
        with threads_for(d):
            for item in rest:
                yield task(item)
        return
    from concurrent.futures import Future

    silent = np.geterr()  # threads of their own would warn, of private rows
    waiting: deque[tuple[S, Future[T]]] = deque()
    held: deque[Future[T]] = deque()  # in the order of the items

    def done_one() -> bool:
        try:
            item, result = waiting.popleft()
        except IndexError:
            return False
        try:
            result.set_result(task(item))
        except BaseException as error:
            result.set_exception(error)  # whoever asks for the results gets it in its turn
            if not isinstance(error, Exception):  # but nobody waits for that of an interrupt
                raise
        return True

    def go_on() -> None:
        with np.errstate(**silent):
            while done_one():
                pass

    def ask_for_more() -> None:
        nonlocal rest
        while len(held) < HELD * threads:
            result: Future[T] = Future()
            try:
                waiting.append((next(rest), result))
            except StopIteration:
                return
            except Exception as error:  # it follows what was ready before
                result.set_exception(error)
                rest = iter(())
            held.append(result)

    helpers: list[Future[None]] = []
    with threads_for(d):
        try:
            while True:
                ask_for_more()
                if not held:
                    return
                helpers = [helper for helper in helpers if not helper.done()]
                if waiting:
                    helpers += [_others(threads).submit(go_on) for _ in range(threads - 1 - len(helpers))]
                while not held[0].done() and _without_others(done_one):
                    pass
                yield held.popleft().result()
        finally:  # nothing looks at rows any more once this ends
            waiting.clear()
            for helper in helpers:
                if not helper.cancel() and not hasattr(_HERE, "works"):  # no helper waits for itself
                    helper.exception()


def _raise(error: Exception) -> Any:
    raise error


def _without_others(act: Callable[[], T]) -> T:
    """What a thread of several does has no threads of its own."""
    _HERE.works = True
    try:
        return act()
    finally:
        del _HERE.works


def alone() -> None:
    """From here on this thread does its tasks one after the other: others work beside it."""
    _keep_memory()
    _HERE.works = True


@functools.cache
def _keep_memory() -> None:
    """What one block leaves, the next one finds: to be given it anew by the system takes a quarter of a pass.

    The C library keeps up to twice as much as the largest array that it ever took back; nobody writes to this one.
    """
    np.empty(2**25 - 2**13, dtype=np.uint8)


@functools.cache
def _others(threads: int) -> Any:
    """Threads beside the one that asks: to start them takes longer than to go through 100,000 rows."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(threads - 1, "ppdp", alone)


if hasattr(os, "register_at_fork"):  # a forked process has no threads but one
    os.register_at_fork(after_in_child=_others.cache_clear)


def threads_for(d: int) -> AbstractContextManager[Any]:
    """Linear algebra of d columns: few of them get no threads of their own.

    Threads that waited for each other over a small matrix go on spinning, and the next pass over all rows is slower.
    """
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
