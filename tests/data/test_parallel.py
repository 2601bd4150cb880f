"""Passes over rows: pieces cover all of them, results come in order, and nothing goes on behind a caller's back."""

import _thread
import math
import mmap
import os
import platform
import signal
import subprocess
import sys
import threading
import time

import pytest

from ppdp.core.rounding import BLOCK
from ppdp.data import parallel
from ppdp.data.parallel import PIECE, in_parallel, pieces, workers


@pytest.fixture(autouse=True)
def asked_by_a_thread_that_has_others(monkeypatch):
    monkeypatch.setattr(parallel, "_HERE", threading.local())


@pytest.mark.parametrize("n", [0, 1, BLOCK, BLOCK + 1, 100_000, 3 * PIECE, 50 * PIECE + 7])
def test_pieces_are_whole_blocks_that_cover_every_row_once(n):
    parts = list(pieces(n))
    assert [row for part in parts for row in range(n)[part]] == list(range(n))
    assert all(part.start % BLOCK == 0 and part.stop - part.start <= PIECE for part in parts)


@pytest.mark.parametrize(
    ("n", "threads", "count"), [(3 * PIECE + 1, 2, 4), (100_000, 3, 6), (20_000, 8, 2), (9999, 2, 1)]
)
def test_every_thread_has_as_many_rows_and_never_few(n, threads, count, monkeypatch):
    monkeypatch.setattr(parallel, "workers", lambda: threads)
    sizes = [part.stop - part.start for part in pieces(n)]
    assert len(sizes) == count
    assert max(sizes) - min(sizes) <= 2 * BLOCK


@pytest.mark.parametrize(
    ("cores", "most", "d", "items", "threads"),
    [(1, 8, 4, 40, 1), (2, 8, 4, 40, 2), (5, 8, 4, 40, 5), (5, 2, 4, 40, 2), (5, 8, 640, 40, 5), (5, 8, 640, 3, 1)],
)
def test_results_come_in_order_whoever_made_them(monkeypatch, cores, most, d, items, threads):
    monkeypatch.setattr(parallel, "workers", lambda: cores)
    parallel._pool.cache_clear()
    seen = set()

    def task(item):
        time.sleep(0.002 * (item % 3))
        seen.add(threading.get_ident())
        return item

    assert list(in_parallel(task, range(items), d, most)) == list(range(items))
    assert min(2, threads) <= len(seen) <= threads
    parallel._pool.cache_clear()


def test_no_more_than_a_few_items_are_held():
    given = []

    def items():
        for item in range(50):
            given.append(item)
            yield item

    for place, _ in enumerate(in_parallel(lambda item: item, items(), 4)):
        assert len(given) <= place + 1 + math.ceil(parallel.HELD * workers())


def test_tasks_of_a_task_are_done_by_its_own_thread():
    def outer(item):
        mine = threading.get_ident()
        return all(in_parallel(lambda _: threading.get_ident() == mine, range(4), 4))

    assert all(in_parallel(outer, range(8), 4))
    assert not hasattr(parallel._HERE, "works")  # and then this thread asks others again


def test_the_first_failure_is_the_one_of_the_first_item_and_nothing_goes_on_after_it():
    running = []

    def task(item):
        running.append(item)
        time.sleep(0.01 if item == 1 else 0)
        if item >= 1:
            raise ValueError(item)
        return item

    results = in_parallel(task, range(100), 4)
    assert next(results) == 0
    with pytest.raises(ValueError, match="1"):
        next(results)
    before = list(running)
    time.sleep(0.05)
    assert running == before
    assert len(before) < 20


@pytest.mark.parametrize("came", [0, 1, 2, 6])
def test_what_fails_to_come_follows_what_came_before(came):
    def items():
        yield from range(came)
        raise ValueError("no more")

    results = in_parallel(lambda item: item, items(), 4)
    assert [next(results) for _ in range(came)] == list(range(came))
    with pytest.raises(ValueError, match="no more"):
        next(results)


@pytest.mark.parametrize("cores", [1, 2])
def test_a_task_that_says_it_is_the_end_does_not_end_the_pass(monkeypatch, cores):
    monkeypatch.setattr(parallel, "workers", lambda: cores)

    def task(item):
        if item == 3:
            raise StopIteration
        return item

    with pytest.raises(RuntimeError):
        list(in_parallel(task, range(10), 4))


def test_an_interrupt_ends_the_pass_at_once():
    done = []

    def task(item):
        if item == 1:
            _thread.interrupt_main()
        time.sleep(0.02)
        done.append(item)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            list(in_parallel(task, range(50), 4))
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(done) < 10


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another library of C keeps memory by rules of its own")
def test_the_memory_of_a_block_goes_to_the_next_and_not_back_to_the_system():
    script = """
import resource
import numpy as np
from ppdp.data.parallel import in_parallel
def pages(blocks):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    assert sum(in_parallel(lambda block: len([np.ones(2**19) for _ in range(4)]), range(blocks), 4)) == 4 * blocks
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
pages(4)
print(pages(40) / 40)
"""
    of_a_block = 4 * 2**22 / mmap.PAGESIZE
    own = {
        name: value for name, value in os.environ.items() if not name.startswith(("MALLOC", "GLIBC"))
    }  # as Dask sets one
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=own)
    assert float(found.stdout) < of_a_block / 4
