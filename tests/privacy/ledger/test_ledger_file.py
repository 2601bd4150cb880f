"""The account in a file: one for everybody, the one that was opened, never silently another one."""

import pickle
import signal
import sqlite3
import warnings

import numpy as np
import pytest

from ppdp.exceptions import BudgetExceeded, CompositionWarning, DiagnosticWarning, InvalidParameter, LedgerError
from ppdp.privacy.ledger.ledger import Ledger
from ppdp.privacy.losses import Pure


def test_a_file_is_the_same_account_whoever_opens_it(tmp_path):
    path = tmp_path / "account.sqlite"
    first = Ledger(path, epsilon=1, delta=1e-6)
    first.reserve(mu=0.2, label="one")
    for second in (Ledger(path), Ledger(str(path)), Ledger(path, 1.0, 1e-6)):
        assert second.budget == (1.0, 1e-6)
        assert second.entries() == first.entries()
        with pytest.raises(BudgetExceeded):
            second.reserve(mu=0.2)
    Ledger(path).reserve(mu=0.1, label="two")
    assert [e.label for e in first.entries()] == ["one", "two"]


@pytest.mark.parametrize("made_with", [(None, None), (1.0, 1e-6)])
@pytest.mark.parametrize("opened_with", [(2.0, 1e-6), (1.0, 1e-5)])
def test_another_limit_than_the_recorded_one_is_refused(tmp_path, made_with, opened_with):
    path = tmp_path / "account.sqlite"
    Ledger(path, *made_with).reserve(mu=0.1)
    with pytest.raises(LedgerError, match="limit"):
        Ledger(path, *opened_with)
    assert len(Ledger(path)) == 1


def test_a_new_file_without_a_limit_is_said(tmp_path):
    with pytest.warns(DiagnosticWarning, match="no ledger at .*mistyped.db") as said:
        Ledger(tmp_path / "mistyped.db")
    assert len(said) == 1
    assert said[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Ledger(tmp_path / "mistyped.db").budget is None
        assert Ledger(tmp_path / "account.sqlite", 1.0, 1e-6).budget == Ledger(tmp_path / "account.sqlite").budget
        assert Ledger().budget is None
        warnings.simplefilter("error", DiagnosticWarning)
        with pytest.raises(DiagnosticWarning):
            Ledger(tmp_path / "other.db")
    assert not (tmp_path / "other.db").exists()


def test_a_name_that_differs_in_capitals_alone_is_said_once():
    ledger = Ledger(epsilon=3.0, delta=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("error", CompositionWarning)
        for name in ("clinic", "clinic ", "ward"):
            ledger.reserve(mu=0.01, dataset=name)
        with pytest.raises(CompositionWarning, match="dataset='clinic'"):
            ledger.reserve(mu=0.01, dataset="Clinic")
        assert len(ledger) == 3
        warnings.simplefilter("ignore", CompositionWarning)
        ledger.reserve(mu=0.01, dataset="Clinic")
        warnings.simplefilter("error", CompositionWarning)
        ledger.reserve(mu=0.01, dataset="Clinic")


def test_a_relative_path_still_means_the_same_file_after_chdir(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = Ledger("account.sqlite")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    ledger.reserve(mu=0.1)
    assert len(Ledger(tmp_path / "account.sqlite")) == 1


@pytest.mark.parametrize("damage", ["text", "truncated", "scrambled", "foreign"])
def test_a_file_that_is_no_sound_ledger_is_refused_and_left_alone(tmp_path, damage):
    path = tmp_path / "account.sqlite"
    if damage == "text":
        path.write_bytes(b"mu,delta\n0.5,1e-6\n" * 100)
    elif damage == "foreign":
        other = sqlite3.connect(path)
        other.execute("CREATE TABLE entries (id INTEGER)")
        other.close()
    else:
        ledger = Ledger(path)
        for number in range(100):
            ledger.reserve(mu=0.1, label=f"{number} " * 50)
        content = path.read_bytes()
        half = content[: len(content) // 2]
        path.write_bytes(half if damage == "truncated" else half.ljust(len(content), b"?"))
    content = path.read_bytes()
    with pytest.raises(LedgerError):
        Ledger(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("loss", ["deleted", "emptied"])
def test_a_lost_file_is_an_error_never_a_new_empty_account(tmp_path, loss):
    path = tmp_path / "account.sqlite"
    ledger = Ledger(path)
    ledger.reserve(mu=0.1)
    pickled = pickle.dumps(ledger)
    path.unlink() if loss == "deleted" else path.write_bytes(b"")
    for use in (ledger.entries, ledger.spent, lambda: ledger.reserve(mu=0.1), lambda: pickle.loads(pickled)):
        with pytest.raises(LedgerError):
            use()
    assert not path.exists() if loss == "deleted" else path.read_bytes() == b""


def test_a_folder_that_is_not_there_is_an_error_with_a_fix(tmp_path):
    with pytest.raises(LedgerError, match="Fix:"):
        Ledger(tmp_path / "nowhere" / "account.sqlite")


class TestFilesOfTheFirstVersion:
    @pytest.fixture
    def old(self, tmp_path):
        """A file as the first version made it, with a Gaussian spend on it."""
        path = tmp_path / "old.sqlite"
        database = sqlite3.connect(path)
        for statement in (
            "PRAGMA application_id = 1886413936",
            "CREATE TABLE budget (epsilon REAL, delta REAL)",
            "CREATE TABLE entries (id INTEGER PRIMARY KEY, dataset TEXT NOT NULL, label TEXT NOT NULL, "
            "mu REAL NOT NULL, delta REAL NOT NULL, total_variation REAL NOT NULL, rows_per_unit INTEGER NOT NULL, "
            "status TEXT NOT NULL, time TEXT NOT NULL, parts TEXT NOT NULL)",
            "INSERT INTO budget VALUES (1.0, 1e-6)",
            "INSERT INTO entries VALUES (NULL, 'default', 'old', 0.1, 1e-8, 1e-16, 1, 'released', "
            "'2026-01-01T00:00:00+00:00', '[]')",
        ):
            database.execute(statement)
        database.commit()
        database.close()
        return path

    def test_are_opened_with_everything_on_them(self, old):
        for _ in range(2):
            ledger = Ledger(old)
            assert ledger.budget == (1.0, 1e-6)
            assert ledger.accounting == "auto"
            (entry,) = ledger.entries()
            assert (entry.label, entry.mu, entry.block, entry.gate, entry.behind) == ("old", 0.1, "", "", None)
        with pytest.raises(BudgetExceeded):
            ledger.reserve(mu=0.3)
        ledger.reserve(mu=0.1)
        assert len(Ledger(old)) == 2
        with pytest.raises(LedgerError, match="cannot share"):
            ledger.reserve(mu=0.0, parts=[Pure(epsilon=0.1)])

    def test_decide_by_their_first_spend_like_new_ones(self, old):
        ledger = Ledger(old)
        mixture = {"mu": 0.01, "parts": [Pure(epsilon=0.1)]}
        ledger.reserve(dataset="other", **mixture)
        ledger.reserve(dataset="other", **mixture)
        assert len(ledger.entries("other")) == 2


class TestAccounting:
    def test_is_recorded_and_cannot_be_changed(self, tmp_path):
        path = tmp_path / "account.sqlite"
        first = Ledger(path, 1.0, 1e-6, "renyi")
        first.reserve(mu=0.1)
        for second in (Ledger(path), Ledger(path, 1.0, 1e-6), pickle.loads(pickle.dumps(first))):
            assert second.accounting == "renyi"
            assert second.epsilon(1e-6) == first.epsilon(1e-6)
            assert "accounting='renyi'" in repr(second)
        for other in ("auto", "pure"):
            with pytest.raises(LedgerError, match="accounting"):
                Ledger(path, accounting=other)

    @pytest.mark.parametrize("accounting", ["Renyi", "zcdp", "", 3])
    def test_is_one_of_a_few(self, tmp_path, accounting):
        with pytest.raises(InvalidParameter, match="accounting"):
            Ledger(tmp_path / "account.sqlite", 1.0, 1e-6, accounting)
        assert list(tmp_path.iterdir()) == []

    def test_at_an_order_needs_a_limit(self, tmp_path):
        with pytest.raises(InvalidParameter, match="order"):
            Ledger(tmp_path / "account.sqlite", accounting="renyi")
        assert list(tmp_path.iterdir()) == []


# ---------------- the file is the account that was opened


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
