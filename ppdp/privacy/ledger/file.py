"""Where an account lies, and its tables: made, checked, brought up to date, read and written.

An account has a random name of its own, and every row a checksum over all that it holds and that name; the number of
entries stands in the row of the terms. So a file that was swapped, or in which a bit was flipped, is noticed by
whatever is done next. A link over each entry and the link before stands on the certificate of the entry, and a process
remembers the last one that it has seen in a file: one that is put back to an older copy, which would give back what was
spent, is noticed as well.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import sqlite3
import threading
import warnings
import weakref
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass, fields, replace
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

from ppdp.core.boundary import outside
from ppdp.core.checks import choice, number
from ppdp.exceptions import DiagnosticWarning, ImpossibleBudget, InvalidParameter, LedgerError
from ppdp.privacy.ledger.privacy_filter import ACCOUNTINGS, Entry, best_order

Link = tuple[int, str]  # how many entries there are, and the link of the last one

_SEEN: dict[str, Link] = {}  # by account, in this process: a copy at another path is the same account
AGAIN = "enter what is missing again, from the certificates: `ppdp ledger PATH --certificate FILE` says of each whether"
AGAIN += " it is there, and docs/guides/command-line.md how it is entered."


def checksum(account: str, values: Sequence[Any]) -> str:
    """Of what a row holds, under the name of its account."""
    return hashlib.sha256(json.dumps([account, *values]).encode()).hexdigest()


def written(entry: Entry, *but: str) -> list[Any]:
    """What an entry holds, of what versions before the fourth wrote, where it has nothing more."""
    without = (*but, "neighbours") if entry.neighbours == "" else but
    return [getattr(entry, name) for name in _COLUMNS if name not in without]


def links(account: str, entries: Sequence[Entry], before: str = "") -> Iterator[str]:
    """One for every entry, behind that of the entry before; how it ended is no part of it: that is noted later."""

    def linked(last: str, entry: Entry) -> str:
        return checksum(account, [last, *written(entry, "status")])

    return islice(accumulate(entries, linked, initial=before), 1, None)


def last_link(account: str, entries: Sequence[Entry], before: str = "") -> str:
    """That of the last one, which tells of all of them."""
    return list(links(account, entries, before))[-1]


def refuse_older(path: Path, account: str, entries: Sequence[Entry]) -> None:
    """Refuse a file that lacks, or holds otherwise, an entry that this process has seen in it."""
    count, last = seen(account)
    if count == 0 or (len(entries) >= count and last_link(account, entries[:count]) == last):
        return
    raise LedgerError(
        f"the ledger at {str(path)!r} went back: it held {count} entries, and now holds {len(entries)}"
        + (" of them." if len(entries) < count else ", others than those."),
        fix=f"bring the newer file back. If it is gone, {AGAIN}",
    )


def remember(account: str, entries: Sequence[Entry]) -> None:
    """Note what a file holds, once it is on the disk."""
    count, last = seen(account)
    if len(entries) > count:
        _SEEN[account] = len(entries), last_link(account, entries[count:], last)


def seen(account: str) -> Link:
    """What this process has seen in the file of an account."""
    return _SEEN.get(account, (0, ""))


def expect(account: str, link: Link) -> None:
    """Note what another process has seen."""
    if link[0] > seen(account)[0]:
        _SEEN[account] = link


_FILE_KIND = 0x70706470  # "ppdp": tells a ledger from any other SQLite file
_SCHEMA = (
    f"PRAGMA application_id = {_FILE_KIND}",
    "CREATE TABLE budget (epsilon REAL, delta REAL)",
    "CREATE TABLE entries (id INTEGER PRIMARY KEY, dataset TEXT NOT NULL, label TEXT NOT NULL, "
    "mu REAL NOT NULL, delta REAL NOT NULL, total_variation REAL NOT NULL, rows_per_unit INTEGER NOT NULL, "
    "status TEXT NOT NULL, time TEXT NOT NULL, parts TEXT NOT NULL)",
)
_ADDED = (  # since the first version, whose files are still opened
    "ALTER TABLE budget ADD COLUMN accounting TEXT NOT NULL DEFAULT 'auto'",
    "ALTER TABLE budget ADD COLUMN renyi_order REAL",
    "ALTER TABLE entries ADD COLUMN block TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE entries ADD COLUMN gate TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE entries ADD COLUMN behind INTEGER",
)
_NAMED = (  # since the second
    "ALTER TABLE budget ADD COLUMN account TEXT",
    "ALTER TABLE budget ADD COLUMN entries INTEGER",
    "ALTER TABLE budget ADD COLUMN checksum TEXT",
    "ALTER TABLE entries ADD COLUMN checksum TEXT",
)
_NEIGHBOURS = "ALTER TABLE entries ADD COLUMN neighbours TEXT NOT NULL DEFAULT ''"  # since the third
_COLUMNS = [field.name for field in fields(Entry)]

_TERMS = "epsilon, delta, accounting, renyi_order, account, entries, checksum"
_NAME_BYTES = 8
_LONGEST = 255 - len("-journal")  # bytes of a name, beside which SQLite writes another one
_FIX_MEMORY = "give Ledger(path=...)."
_NEW = (
    "there was no ledger at {0!r}: a new one is made there, without a limit, and nothing that was spent before is in"
    " it. Fix: the path of the one that is there, Ledger(PATH); or Ledger({0!r}, epsilon=3, delta=1e-6), of a new one."
)
_FIX_LOST = f"bring the file back as it was last. A backup gives back what was spent since: with one, {AGAIN}"
_PATIENCE = 120.0  # seconds to wait for another process to finish its operation

# One operation at a time per process, and none while the process forks: SQLite's own table of locks
# would otherwise be copied into the child in the middle of somebody else's transaction.
_ACCESS = threading.RLock()
_AT_WORK: list[int] = []  # held with the lock: whether this thread is in the middle of an operation
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_ACCESS.acquire, after_in_parent=_ACCESS.release, after_in_child=_ACCESS.release)


@dataclass(frozen=True, slots=True)
class Terms:
    """What a ledger was made with, under a random public name.

    The ``limit`` (epsilon, delta) is for each dataset by itself; only where there is one, there is a public Rényi
    ``order``.
    """

    limit: tuple[float, float] | None
    accounting: str
    order: float | None
    account: str = ""

    @classmethod
    def of(cls, epsilon: float | None, delta: float | None, accounting: str = "auto") -> Terms:
        """Terms from what a user gives; raises :class:`InvalidParameter` if they are not terms at all."""
        choice("accounting", accounting, ACCOUNTINGS)
        if (epsilon is None) != (delta is None):
            what = "epsilon and delta make a limit together."
            raise InvalidParameter(what, fix="give both or neither.", parameter="epsilon")
        if epsilon is None or delta is None:
            if accounting == "renyi":
                what = "Rényi accounting needs a limit: its order follows from it."
                raise InvalidParameter(what, fix="give epsilon and delta.")
            return cls(None, accounting, None)
        limit = (
            number("epsilon", epsilon, above=0, kind=ImpossibleBudget),
            number("delta", delta, above=0, kind=ImpossibleBudget),
        )
        if limit[1] >= 1:
            what = f"delta must be below 1, got {delta!r}."
            raise ImpossibleBudget(what, fix="Ledger(epsilon=1.0, delta=1e-5).", parameter="delta")
        return cls(limit, accounting, best_order(*limit))


class Store:
    """Where an account lies: a file, made if it does not exist, or (no path) the memory of one process.

    A new account is made on the ``given`` terms; an existing one must have their limit, if they say one, and this
    ``accounting``, if one is given. ``terms`` are those of the account.
    """

    def __init__(self, path: Path | None, given: Terms, accounting: str | None) -> None:
        self.path, self._owner = path, os.getpid()
        if path is None:
            self._memory = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
            weakref.finalize(self, self._memory.close)
            with self.transaction() as database:
                self.terms = _begin(database, given)
            return
        if not os.path.lexists(path):
            if given.limit is None:
                warnings.warn(_NEW.format(str(path)), DiagnosticWarning, stacklevel=outside())
            _begin_file(path, given)
        with self.transaction() as database:
            self.terms = _open(database, given, accounting)
            _, entries = self._sound(database)
        self._remember(entries)

    def saved_path(self) -> str:
        """Where copies of it meet; an account in memory has no such place."""
        if self.path is None:
            raise LedgerError("a ledger in memory cannot be pickled: copies would spend apart.", fix=_FIX_MEMORY)
        return str(self.path)

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        """Open the account for one operation; never makes a new, empty one."""
        try:
            with _ACCESS, _at_work():
                if self.path is not None:
                    address = f"{self.path.as_uri()}?mode=rw"
                    connection = sqlite3.connect(address, timeout=_PATIENCE, isolation_level=None, uri=True)
                    with closing(connection) as file:
                        file.execute("PRAGMA synchronous = EXTRA")  # a commit outlives a power cut
                        yield file
                elif self._owner == os.getpid():
                    yield self._memory
                else:
                    raise LedgerError("a ledger in memory belongs to one process.", fix=_FIX_MEMORY)
        except (sqlite3.Error, UnicodeDecodeError, TypeError) as error:  # rows of a damaged file may be anything
            raise _unusable(self.path, error) from error

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Everything or nothing, and nobody else in between."""
        with self._database() as database, database:
            database.execute("BEGIN IMMEDIATE")
            yield database

    @contextmanager
    def account(self) -> Iterator[tuple[sqlite3.Connection, list[Entry]]]:
        """A transaction on the account that was opened, with its entries; every row was checked.

        Whoever inserts an entry appends it, so that it is remembered once the transaction has ended.
        """
        with self.transaction() as database:
            terms, entries = self._sound(database)
            agreed(terms, self.terms.account)
            yield database, entries
        self._remember(entries)

    def _sound(self, database: sqlite3.Connection) -> tuple[Terms, list[Entry]]:
        """Terms and entries of a file that did not go back to an older copy."""
        terms, entries = _read(database)
        if self.path is not None:
            refuse_older(self.path, terms.account, entries)
        return terms, list(entries)

    def _remember(self, entries: Sequence[Entry]) -> None:
        if self.path is not None:
            with _ACCESS:
                remember(self.terms.account, entries)


@contextmanager
def _at_work() -> Iterator[None]:
    """One operation at a time, also of one thread: what interrupts an operation must not begin another inside it."""
    if _AT_WORK:
        what = "the ledger is in the middle of an operation that this one has interrupted."
        raise LedgerError(what, fix="no fits or spends in signal handlers and finalizers.")
    try:
        _AT_WORK.append(1)
        yield
    finally:
        _AT_WORK.clear()


def _unusable(path: Path | None, error: Exception) -> LedgerError:
    return LedgerError(
        f"the ledger at {str(path)!r} cannot be used: {getattr(error, 'strerror', error)}.",
        fix="give the path of a ledger, or of a new file, on a local disk that can be written.",
    )


def _begin(database: sqlite3.Connection, terms: Terms) -> Terms:
    """Make the tables of a new account, with a name that no other one has."""
    for statement in (*_SCHEMA, *_ADDED, *_NAMED, _NEIGHBOURS, "INSERT INTO budget DEFAULT VALUES"):
        database.execute(statement)
    named = replace(terms, account=secrets.token_hex(_NAME_BYTES))
    _write_terms(database, named, 0)
    return named


def _begin_file(path: Path, terms: Terms) -> None:
    """Make the file of a new account, whole or not at all; leave one alone that somebody else has made meanwhile."""
    if len(os.fsencode(path.name)) > _LONGEST:
        raise LedgerError(f"the name of the file has more than {_LONGEST} bytes.", fix="a shorter one.")
    draft = path.parent / f".ppdp-{secrets.token_hex(_NAME_BYTES)}"
    try:
        with closing(sqlite3.connect(draft, isolation_level=None)) as database, database:
            database.execute("BEGIN IMMEDIATE")
            _begin(database, terms)
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)  # unlike a renaming, this never takes the place of a file
    except (OSError, sqlite3.Error) as error:
        raise _unusable(path, error) from None
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def _open(database: sqlite3.Connection, given: Terms, accounting: str | None) -> Terms:
    """Check an existing account, bring it up to date, and take over its terms."""
    if database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
        what = "the file is empty: what was spent may have stood in it, so no ledger is begun in its place."
        raise LedgerError(what, fix=f"{_FIX_LOST} If it never was a ledger, remove it or give another path.")
    if database.execute("PRAGMA application_id").fetchone()[0] != _FILE_KIND:
        raise LedgerError("the file is a database, but not a ledger.", fix="give another path.")
    if database.execute("PRAGMA quick_check").fetchone()[0] != "ok":
        raise _damaged()
    _update(database)
    recorded, _ = _read(database)
    if given.limit not in (None, recorded.limit):
        what = f"the ledger was made with the limit (epsilon, delta) = {recorded.limit}, not {given.limit}."
        raise LedgerError(what, fix="give no limit (the file's is then used), or another path.")
    if accounting not in (None, recorded.accounting):
        what = f"the ledger was made with accounting={recorded.accounting!r}, not {accounting!r}."
        raise LedgerError(what, fix="give none (the file's is then used), or another path.")
    return recorded


def _read(database: sqlite3.Connection) -> tuple[Terms, tuple[Entry, ...]]:
    """Terms and all entries in the order of recording, every row of them checked."""
    terms = database.execute(f"SELECT {_TERMS} FROM budget").fetchone()
    epsilon, delta, accounting, order, account, count, stored = terms
    rows = database.execute(f"SELECT {', '.join(_COLUMNS)}, checksum FROM entries ORDER BY id").fetchall()
    entries = tuple(Entry(*row[:-1]) for row in rows)
    limit = None if epsilon is None else (epsilon, delta)
    sound = stored == checksum(account, (epsilon, delta, accounting, order, count)) and [row[-1] for row in rows] == [
        _checksum_of(account, entry) for entry in entries
    ]
    if not sound or [entry.id for entry in entries] != list(range(1, count + 1)):
        raise _damaged()
    return Terms(limit, accounting, order, account), entries


def agreed(terms: Terms, account: str) -> None:
    """Refuse another account than the one that was opened: a file that was swapped."""
    if terms.account != account:
        what = f"the file now holds another ledger ({terms.account}) than the one that was opened ({account})."
        raise LedgerError(what, fix="bring the file back; one ledger has one path for as long as anybody uses it.")


def insert(database: sqlite3.Connection, terms: Terms, spend: Entry) -> int:
    """Record a spend; its number. Its rows were read, and so checked, in the same transaction."""
    count = database.execute("SELECT entries FROM budget").fetchone()[0] + 1
    entry = replace(spend, id=count)
    names, marks = ", ".join((*_COLUMNS, "checksum")), ", ".join("?" for _ in (*_COLUMNS, "checksum"))
    values = (*astuple(entry), _checksum_of(terms.account, entry))
    database.execute(f"INSERT INTO entries ({names}) VALUES ({marks})", values)
    _write_terms(database, terms, count)
    return count


def settle(database: sqlite3.Connection, terms: Terms, entry: Entry, status: str) -> None:
    """Note how a reservation ended."""
    settled = replace(entry, status=status)
    database.execute(
        "UPDATE entries SET status = ?, checksum = ? WHERE id = ?",
        (status, _checksum_of(terms.account, settled), entry.id),
    )


def _update(database: sqlite3.Connection) -> None:
    """Bring the file of an earlier version up to date."""
    if "neighbours" not in {row[1] for row in database.execute("PRAGMA table_info(entries)")}:
        database.execute(_NEIGHBOURS)
    columns = {row[1] for row in database.execute("PRAGMA table_info(budget)")}
    if "accounting" not in columns:
        for statement in _ADDED:
            database.execute(statement)
        terms = Terms.of(*database.execute("SELECT epsilon, delta FROM budget").fetchone())
        database.execute("UPDATE budget SET renyi_order = ?", (terms.order,))
    if "account" in columns:
        return
    for statement in _NAMED:
        database.execute(statement)
    stored = database.execute("SELECT epsilon, delta, accounting, renyi_order FROM budget").fetchone()
    epsilon, delta, accounting, order = stored
    limit = None if epsilon is None else (epsilon, delta)
    terms = Terms(limit, accounting, order, secrets.token_hex(_NAME_BYTES))
    rows = database.execute(f"SELECT {', '.join(_COLUMNS)} FROM entries ORDER BY id").fetchall()
    for entry in (Entry(*row) for row in rows):
        settle(database, terms, entry, entry.status)
    _write_terms(database, terms, len(rows))


def _write_terms(database: sqlite3.Connection, terms: Terms, count: int) -> None:
    body = (*(terms.limit or (None, None)), terms.accounting, terms.order)
    database.execute(
        f"UPDATE budget SET ({_TERMS}) = (?, ?, ?, ?, ?, ?, ?)",
        (*body, terms.account, count, checksum(terms.account, (*body, count))),
    )


def _checksum_of(account: str, entry: Entry) -> str:
    return checksum(account, written(entry))


def _damaged() -> LedgerError:
    return LedgerError("the ledger file is damaged.", fix=f"{_FIX_LOST} Do not start a new one.")
