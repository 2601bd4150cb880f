"""A ledger's file is the account that was opened, or nothing is done with it."""

import pickle
import signal
import sqlite3

import numpy as np
import pytest

from ppdp.exceptions import LedgerError
from ppdp.privacy.ledger.ledger import Ledger

FLIPS = 400


@pytest.fixture
def path(tmp_path):
    return tmp_path / "account.sqlite"


def test_an_empty_file_is_not_reborn_with_a_full_budget(path):
    Ledger(path, 1.0, 1e-6).reserve(mu=0.1)
    path.write_bytes(b"")
    with pytest.raises(LedgerError, match="empty"):
        Ledger(path, 1.0, 1e-6)
    assert path.read_bytes() == b""


def test_a_database_without_tables_is_not_taken_for_a_new_account(path):
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE t (x)")
        database.execute("DROP TABLE t")
    database.close()
    with pytest.raises(LedgerError, match="empty"):
        Ledger(path)


def test_a_file_that_was_swapped_is_refused_by_whoever_had_opened_the_other(path, tmp_path):
    ledger = Ledger(path)
    entry = ledger.reserve(mu=0.1)
    other = Ledger(tmp_path / "other.sqlite")
    other.reserve(mu=0.2)
    travelling = pickle.dumps(ledger)
    other.path.replace(path)
    for use in (lambda: ledger.settle(entry, "released"), lambda: ledger.reserve(mu=0.1), ledger.entries):
        with pytest.raises(LedgerError, match="another ledger"):
            use()
    with pytest.raises(LedgerError, match="another ledger"):
        pickle.loads(travelling)
    assert [(e.mu, e.status) for e in Ledger(path).entries()] == [(0.2, "reserved")]


def test_a_flipped_bit_never_changes_what_was_spent_in_silence(path):
    ledger = Ledger(path, 50.0, 1e-5)
    for number in range(12):
        ledger.settle(ledger.reserve(mu=0.1 + number / 100, label=f"model {number}"), "released")
    before, content = ledger.entries(), path.read_bytes()
    used = [place for place, byte in enumerate(content) if byte]
    rng = np.random.default_rng(0)
    for _ in range(FLIPS):
        flipped = bytearray(content)
        flipped[rng.choice(used)] ^= 1 << int(rng.integers(8))
        path.write_bytes(flipped)
        for reader in (lambda: Ledger(path), lambda: ledger):
            try:
                found = reader()
                assert (found.entries(), found.budget) == (before, (50.0, 1e-5))
            except LedgerError:
                continue


@pytest.mark.parametrize("change", ["DELETE FROM entries WHERE id = 3", "UPDATE entries SET mu = mu / 2 WHERE id = 1"])
def test_a_row_that_is_gone_or_other_is_noticed(path, change):
    ledger = Ledger(path)
    for _ in range(3):
        ledger.reserve(mu=0.1)
    with sqlite3.connect(path) as database:
        database.execute(change)
    database.close()
    with pytest.raises(LedgerError, match="damaged"):
        ledger.reserve(mu=0.1)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")
@pytest.mark.parametrize("in_a_file", [False, True])
def test_a_spend_inside_another_one_is_refused_and_loses_neither(path, in_a_file):
    ledger = Ledger(path if in_a_file else None)
    refused = []

    def interrupt(*_):
        try:
            ledger.reserve(mu=0.5, label="inner")
        except LedgerError as error:
            refused.append(error)

    previous = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with ledger._store.transaction():
            signal.raise_signal(signal.SIGUSR1)
        ledger.reserve(mu=0.1, label="outer")
    finally:
        signal.signal(signal.SIGUSR1, previous)
    assert len(refused) == 1
    assert "interrupted" in str(refused[0])
    assert [entry.label for entry in ledger.entries()] == ["outer"]


def test_a_file_of_an_earlier_version_gets_a_name_and_keeps_its_spends(path):
    ledger = Ledger(path, 3.0, 1e-5)
    ledger.reserve(mu=0.3)
    with sqlite3.connect(path) as database:
        for column in ("account", "entries", "checksum"):
            database.execute(f"ALTER TABLE budget DROP COLUMN {column}")
        database.execute("ALTER TABLE entries DROP COLUMN checksum")
    database.close()
    again = Ledger(path)
    assert [entry.mu for entry in again.entries()] == [0.3]
    assert again.account == Ledger(path).account != ledger.account
