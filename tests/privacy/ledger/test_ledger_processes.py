"""The ledger among threads, processes and sudden deaths."""

import contextlib
import math
import multiprocessing
import os
import random
import signal
import threading
import time

import pytest
from effort import rounds
from forked import ended, fork, forks

from ppdp.exceptions import BudgetExceeded, LedgerError
from ppdp.privacy.gaussian import gaussian_mu
from ppdp.privacy.ledger.file import insert
from ppdp.privacy.ledger.ledger import Ledger
from ppdp.privacy.ledger.privacy_filter import Entry
from ppdp.privacy.loss import PrivacyLoss

HELD = 0.89  # of a limit's delta is for what mechanisms spend, the rest for gates and imperfect noise


@pytest.fixture(params=["memory", "file"])
def make(request, tmp_path):
    """Build a ledger of either kind; the tests that use this hold for both."""
    path = tmp_path / "account.sqlite" if request.param == "file" else None
    return lambda **limit: Ledger(path, **limit)


# ---------------------------------------------------------------- many at once


def in_threads(count, work):
    problems = []

    def guarded(number):
        try:
            work(number)
        except Exception as problem:
            problems.append(problem)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


def test_threads_neither_lose_nor_duplicate_a_spend(make):
    ledger, numbers, turns = make(), [], rounds(8)

    def work(worker):
        for turn in range(turns):
            number = ledger.reserve(mu=0.01, label=f"{worker}/{turn}")
            ledger.settle(number, "released")
            numbers.append(number)

    in_threads(8, work)
    entries = ledger.entries()
    assert sorted(numbers) == [e.id for e in entries] == sorted({e.id for e in entries})
    assert {e.label for e in entries} == {f"{w}/{t}" for w in range(8) for t in range(turns)}
    assert {e.status for e in entries} == {"released"}
    assert ledger.spent().mu == pytest.approx(0.01 * math.sqrt(8 * turns), rel=1e-12)


def test_racing_threads_cannot_pass_the_limit_together(make):
    ledger = make(epsilon=1.0, delta=1e-6)
    share, admitted = gaussian_mu(1.0, HELD * 1e-6) / math.sqrt(10), []

    def work(_):
        for _ in range(5):
            try:
                admitted.append(ledger.reserve(mu=share))
            except BudgetExceeded:
                time.sleep(0)

    in_threads(8, work)
    assert len(admitted) == len(ledger) == 10


def spend_ten(ledgers, worker, together):
    together.wait(60)
    for turn in range(10):
        for ledger in ledgers:
            with contextlib.suppress(BudgetExceeded):
                ledger.reserve(mu=0.01, label=f"{worker}/{turn}")


def test_processes_neither_lose_nor_duplicate_a_spend_nor_pass_the_limit_together(tmp_path):
    room_for_20 = {"epsilon": 0.1, "delta": PrivacyLoss(0.01 * math.sqrt(20)).delta(0.1) / HELD}
    limits = {"free.sqlite": {}, "limited.sqlite": room_for_20}
    ledgers = [Ledger(tmp_path / name, **limit) for name, limit in limits.items()]
    forked = "forkserver" in multiprocessing.get_all_start_methods()  # off a new process, which alone imports
    context = multiprocessing.get_context("forkserver" if forked else "spawn")
    if forked:
        context.set_forkserver_preload([__name__])
    together = context.Barrier(3)
    workers = [context.Process(target=spend_ten, args=(ledgers, worker, together)) for worker in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 3
    every = {f"{worker}/{turn}" for worker in range(3) for turn in range(10)}
    for ledger, admitted in zip(ledgers, (30, 20)):
        labels = [e.label for e in ledger.entries()]
        assert len(labels) == len(set(labels) & every) == admitted
        assert len({e.id for e in ledger.entries()}) == len(labels)


@forks
def test_forking_in_the_middle_of_other_threads_spends_is_safe(tmp_path):
    ledger = Ledger(tmp_path / "account.sqlite")
    done, turns = threading.Event(), rounds(6)

    def keep_spending():
        while not done.is_set():
            ledger.reserve(mu=0.01, label="parent")
            time.sleep(0.001)

    thread = threading.Thread(target=keep_spending)
    thread.start()
    codes = [ended(fork(lambda: ledger.reserve(mu=0.01, label="child"))) for _ in range(turns)]
    done.set()
    thread.join()
    assert codes == [0] * turns
    assert sum(e.label == "child" for e in ledger.entries()) == turns


# ---------------------------------------------------------------- sudden death


def die():
    os.kill(os.getpid(), signal.SIGKILL)


@forks
def test_a_process_killed_right_after_reserving_has_spent(tmp_path):
    ledger = Ledger(tmp_path / "account.sqlite")

    def work():
        ledger.reserve(mu=0.25)
        die()

    assert ended(fork(work)) == -signal.SIGKILL
    assert ledger.spent() == Ledger(ledger.path).spent() == PrivacyLoss(0.25)


@forks
def test_a_process_killed_before_the_commit_leaves_the_account_as_it_was(tmp_path):
    ledger = Ledger(tmp_path / "account.sqlite", 1.0, 1e-6)
    ledger.reserve(mu=0.1)

    def work():
        with ledger._store.transaction() as database:
            database.execute("PRAGMA cache_size = 1")  # pages go to the disk before the commit
            for _ in range(2000):
                insert(
                    database, ledger._store.terms, Entry(0, "default", "x" * 100, 0.1, 0.0, 0.0, 1, "reserved", "now")
                )
            die()

    size = ledger.path.stat().st_size
    assert ended(fork(work)) == -signal.SIGKILL
    assert ledger.path.stat().st_size > size  # half a transaction did reach the file
    survivor = Ledger(ledger.path)
    assert len(survivor) == 1
    assert survivor.budget == (1.0, 1e-6)


@forks
def test_random_kills_leave_what_was_announced_and_at_most_one_more_each(tmp_path):
    path, draw, announced = tmp_path / "account.sqlite", random.Random(0), {}
    for life in map(str, range(15)):
        reader, writer = os.pipe()

        def work(writer=writer, life=life):
            ledger = Ledger(path)
            while True:
                os.write(writer, b"%d\n" % ledger.reserve(mu=0.01, label=life))

        child = fork(work)
        os.close(writer)
        with open(reader, "rb") as announcements:
            seen = [announcements.readline() for _ in range(draw.randint(1, 3))]
            time.sleep(draw.uniform(0, 0.03))
            os.kill(child, signal.SIGKILL)
            announced[life] = [int(line) for line in [*seen, *announcements]]
        assert ended(child) == -signal.SIGKILL
        entries = Ledger(path).entries()
        for label, numbers in announced.items():
            recorded = [e.id for e in entries if e.label == label]
            assert numbers == recorded[: len(numbers)]
            assert len(recorded) - len(numbers) in (0, 1)
    assert sum(map(len, announced.values())) > 15


@forks
def test_a_forked_child_cannot_spend_from_its_copy_of_a_ledger_in_memory():
    ledger = Ledger()

    def spend():
        with pytest.raises(LedgerError, match="one process"):
            ledger.reserve(mu=0.1)

    assert ended(fork(spend)) == 0
