"""An older copy of a ledger is noticed: by who has it open, by its process, by pickles and by certificates."""

import os
import pickle
import shutil
import sqlite3

import numpy as np
import pytest

from ppdp import Certificate, Domain, Ledger, make_pipeline
from ppdp.exceptions import BudgetExceeded, LedgerError
from ppdp.mechanisms import GaussianMechanism
from ppdp.privacy.ledger import file as chain
from ppdp.transformers import MinMaxScaler

USES = {
    "entries": Ledger.entries,
    "spent": Ledger.spent,
    "epsilon": lambda ledger: ledger.epsilon(1e-6),
    "reserve": lambda ledger: ledger.reserve(mu=0.1),
    "settle": lambda ledger: ledger.settle(2, "released"),
    "a block": lambda ledger: ledger.block("2020").reserve(mu=0.1),
    "opened again": lambda ledger: Ledger(ledger.path),
    "a copy of it": lambda ledger: pickle.loads(pickle.dumps(ledger)),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "account.sqlite"


@pytest.fixture
def back(path):
    """A ledger, open, whose file was put back to the copy before its second of two spends."""
    ledger = Ledger(path, epsilon=1.0, delta=1e-6)
    ledger.reserve(mu=0.1)
    shutil.copy(path, path.with_suffix(".old"))
    ledger.reserve(mu=0.1)
    shutil.copy(path.with_suffix(".old"), path)
    return ledger


@pytest.mark.parametrize("use", USES)
def test_an_older_copy_is_refused(back, use):
    with pytest.raises(
        LedgerError, match=r"went back: it held 2 entries, and now holds 1 of them.*enter what is missing"
    ):
        USES[use](back)


def test_so_is_one_that_went_on_otherwise(back, path, monkeypatch):
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(chain, "_SEEN", {})  # another process
        Ledger(path).reserve(mu=0.01)
        Ledger(path).reserve(mu=0.01)
    with pytest.raises(LedgerError, match="others than those"):
        back.reserve(mu=0.1)


@pytest.mark.parametrize("make", [shutil.copy, os.link], ids=["a copy", "a link"])
def test_so_is_one_at_another_path(path, tmp_path, make):
    """Of the same account, which would be spent twice."""
    ledger, other = Ledger(path, epsilon=1.0, delta=1e-6), tmp_path / "other.sqlite"
    ledger.reserve(mu=0.1)
    old = path.read_bytes()
    make(path, other)
    ledger.reserve(mu=0.1)
    other.write_bytes(old)
    with pytest.raises(LedgerError, match="went back"):
        Ledger(other).reserve(mu=0.1)


def test_so_is_an_empty_account_of_before(path):
    ledger = Ledger(path, epsilon=1.0, delta=1e-6)
    content = path.read_bytes()
    ledger.reserve(mu=0.2)
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="it held 1 entries, and now holds 0"):
        ledger.reserve(mu=0.2)


def test_a_pickle_takes_along_what_was_seen(back, path, monkeypatch):
    travelling = pickle.dumps(back)
    monkeypatch.setattr(chain, "_SEEN", {})
    with pytest.raises(LedgerError, match="went back"):
        pickle.loads(travelling)


def test_the_newer_file_is_taken_back_and_an_outcome_is_no_entry(back, path, monkeypatch):
    monkeypatch.setattr(chain, "_SEEN", {})
    ledger = Ledger(path)
    number = ledger.reserve(mu=0.1)
    content = path.read_bytes()
    ledger.settle(number, "released")
    path.write_bytes(content)
    assert ledger.entries()[-1].status == "reserved"
    with pytest.raises(BudgetExceeded):
        ledger.reserve(mu=9.0)


def fitted(ledger):
    pipe = make_pipeline(MinMaxScaler(ranges=(0, 1)), GaussianMechanism(), epsilon=0.2, delta=1e-7, ledger=ledger)
    return pipe.set_params(dataset="study", domain=Domain(n_rows=50)).fit(np.zeros((50, 2))).certificate_


def test_a_certificate_tells_whether_a_file_holds_its_entry(path, monkeypatch):
    ledger = Ledger(path, epsilon=1.0, delta=1e-6)
    first = fitted(ledger)
    content = path.read_bytes()
    second = fitted(ledger)
    assert (ledger.holds(first), ledger.holds(second)) == (True, True)
    assert Certificate.from_json(second.to_json()).verify()
    path.write_bytes(content)
    monkeypatch.setattr(chain, "_SEEN", {})
    again = Ledger(path)
    assert (again.holds(first), again.holds(second)) == (True, False)
    again.reserve(mu=0.01, dataset="study")
    assert not again.holds(second)
    with pytest.raises(LedgerError, match="is charged to the ledger"):
        Ledger().holds(first)
    with pytest.raises(LedgerError, match="names no entry"):
        Ledger().holds(fitted(None))


def test_what_is_missing_is_entered_again(path):
    """As the guide says it."""
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    c, other = fitted(ledger), Ledger(epsilon=1.0, delta=1e-6)
    loss = c.loss
    other.reserve(
        mu=loss.mu,
        parts=loss.parts,
        delta=loss.failure + loss.gate,
        allowance=c.record.total.allowance,
        epsilon=c.epsilon,
        dataset=c.record.dataset,
        adjacency=c.record.neighbours,
        label=f"entered again: {c.digest}",
    )
    assert other.epsilon(1e-6) == pytest.approx(ledger.epsilon(1e-6), rel=1e-12)


def test_links_hold_every_field_but_the_outcome(path):
    ledger = Ledger(path)
    for number in range(3):
        ledger.reserve(mu=0.1, label=f"{number}")
    entries = ledger.entries()
    links = list(chain.links(ledger.account, entries))
    assert len(set(links)) == 3
    ledger.settle(2, "failed")
    assert list(chain.links(ledger.account, ledger.entries())) == links
    assert next(chain.links("other", entries)) != links[0]


@pytest.mark.parametrize("letters", [238, 247, 248, 250, 300])
def test_a_name_that_is_too_long_is_an_error_of_the_ledger(tmp_path, letters):
    path = tmp_path / ("a" * letters)
    if letters <= 247:
        assert Ledger(path).reserve(mu=0.1) == 1
        return
    with pytest.raises(LedgerError, match="more than 247 bytes"):
        Ledger(path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["empty", "flipped"])
def test_a_backup_is_not_advised_without_what_was_spent_since(path, damage):
    Ledger(path).reserve(mu=0.1)
    if damage == "empty":
        path.write_bytes(b"")
    else:
        with sqlite3.connect(path) as database:
            database.execute("UPDATE entries SET mu = 0")
        database.close()
    with pytest.raises(LedgerError, match=r"A backup gives back what was spent since.*enter what is missing again"):
        Ledger(path)
