"""The account in a file: one for everybody, never silently another one."""

import pickle
import sqlite3

import pytest

from ppdp.exceptions import BudgetExceeded, LedgerError
from ppdp.ledger import Ledger


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
