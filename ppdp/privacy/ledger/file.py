"""The ledger's tables: made, checked, brought up to date, read and written.

An account has a random name of its own, and every row a checksum over all that it holds and that name; the number of
entries stands in the row of the terms. So a file that was swapped, or in which a bit was flipped, is noticed by
whatever is done next.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from typing import Any

from ppdp.core.checks import choice, number
from ppdp.exceptions import ImpossibleBudget, InvalidParameter, LedgerError
from ppdp.privacy.ledger.adaptive import ACCOUNTINGS, best_order
from ppdp.privacy.ledger.spends import Entry

__all__ = ["Terms", "agreed", "begin", "begin_file", "insert", "open_account", "read", "settle"]

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
_COLUMNS = [field.name for field in fields(Entry)]
_TERMS = "epsilon, delta, accounting, renyi_order, account, entries, checksum"
_NAME_BYTES = 8


@dataclass(frozen=True, slots=True)
class Terms:
    """What a ledger was made with.

    Attributes
    ----------
    limit : (epsilon, delta) or None
        For each dataset by itself.
    accounting : str
        How spends are added up.
    order : float or None
        Public Rényi order; there is one if there is a limit.
    account : str
        Random public name of this account.
    """

    limit: tuple[float, float] | None
    accounting: str
    order: float | None
    account: str = ""

    @classmethod
    def of(cls, epsilon: float | None, delta: float | None, accounting: str = "auto") -> Terms:
        """Terms from what a user gives.

        Raises
        ------
        InvalidParameter
            If they are not terms at all.
        """
        choice("accounting", accounting, ACCOUNTINGS)
        if (epsilon is None) != (delta is None):
            raise InvalidParameter("epsilon and delta make a limit together.", fix="give both or neither.")
        if epsilon is None or delta is None:
            if accounting == "renyi":
                raise InvalidParameter(
                    "Rényi accounting needs a limit: its order follows from it.", fix="give epsilon and delta."
                )
            return cls(None, accounting, None)
        limit = (
            number("epsilon", epsilon, above=0, kind=ImpossibleBudget),
            number("delta", delta, above=0, kind=ImpossibleBudget),
        )
        if limit[1] >= 1:
            raise ImpossibleBudget(f"delta must be below 1, got {delta!r}.")
        return cls(limit, accounting, best_order(*limit))


def begin(database: sqlite3.Connection, terms: Terms) -> Terms:
    """Make the tables of a new account, with a name that no other one has."""
    for statement in (*_SCHEMA, *_ADDED, *_NAMED):
        database.execute(statement)
    named = replace(terms, account=secrets.token_hex(_NAME_BYTES))
    _write_terms(database, named, 0, f"INSERT INTO budget ({_TERMS}) VALUES (?, ?, ?, ?, ?, ?, ?)")
    return named


def begin_file(path: Path, terms: Terms) -> None:
    """Make the file of a new account, whole or not at all; leave one alone that somebody else has made meanwhile."""
    draft = path.parent / f".{path.name}.{secrets.token_hex(_NAME_BYTES)}"
    try:
        with closing(sqlite3.connect(draft, isolation_level=None)) as database, database:
            database.execute("BEGIN IMMEDIATE")
            begin(database, terms)
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)  # unlike a renaming, this never takes the place of a file
    except (OSError, sqlite3.Error) as error:
        raise LedgerError(
            f"the account at {str(path)!r} cannot be used: {getattr(error, 'strerror', error)}.",
            fix="give the path of a ledger, or of a new file, on a local disk that can be written.",
        ) from None
    finally:
        draft.unlink(missing_ok=True)


def open_account(database: sqlite3.Connection, given: Terms, accounting: str | None) -> Terms:
    """Check an existing account, bring it up to date, and take over its terms.

    Raises
    ------
    LedgerError
        If it is none, is damaged, or was made on other terms than those that are given.
    """
    if database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
        raise LedgerError(
            "the file is empty: what was spent may have stood in it, so no account is begun in its place.",
            fix="restore it from a backup; if it never was a ledger, remove it or give another path.",
        )
    if database.execute("PRAGMA application_id").fetchone()[0] != _FILE_KIND:
        raise LedgerError("the file is a database, but not a ledger.", fix="give another path.")
    if database.execute("PRAGMA quick_check").fetchone()[0] != "ok":
        raise _damaged()
    _update(database)
    recorded, _ = read(database)
    if given.limit not in (None, recorded.limit):
        raise LedgerError(
            f"the ledger was made with the limit (epsilon, delta) = {recorded.limit}, not {given.limit}.",
            fix="give no limit (the file's is then used), or another path.",
        )
    if accounting not in (None, recorded.accounting):
        raise LedgerError(
            f"the ledger was made with accounting={recorded.accounting!r}, not {accounting!r}.",
            fix="give none (the file's is then used), or another path.",
        )
    return recorded


def read(database: sqlite3.Connection) -> tuple[Terms, tuple[Entry, ...]]:
    """Terms and all entries in the order of recording, every row of them checked.

    Raises
    ------
    LedgerError
        If a row is not as it was written, or one is missing.
    """
    epsilon, delta, accounting, order, account, count, checksum = database.execute(
        f"SELECT {_TERMS} FROM budget"
    ).fetchone()
    rows = database.execute(f"SELECT {', '.join(_COLUMNS)}, checksum FROM entries ORDER BY id").fetchall()
    entries = tuple(Entry(*row[:-1]) for row in rows)
    limit = None if epsilon is None else (epsilon, delta)
    sound = checksum == _checksum(account, (epsilon, delta, accounting, order, count)) and [
        row[-1] for row in rows
    ] == [_checksum(account, astuple(entry)) for entry in entries]
    if not sound or [entry.id for entry in entries] != list(range(1, count + 1)):
        raise _damaged()
    return Terms(limit, accounting, order, account), entries


def agreed(terms: Terms, account: str) -> None:
    """Refuse another account than the one that was opened: a file that was swapped."""
    if terms.account != account:
        raise LedgerError(
            f"the file now holds another account ({terms.account}) than the one that was opened ({account}).",
            fix="bring the file back; one account has one path for as long as anybody uses it.",
        )


def insert(database: sqlite3.Connection, terms: Terms, spend: Entry) -> int:
    """Record a spend; its number. Its rows were read, and so checked, in the same transaction."""
    count = database.execute("SELECT entries FROM budget").fetchone()[0] + 1
    entry = replace(spend, id=count)
    names, marks = ", ".join((*_COLUMNS, "checksum")), ", ".join("?" for _ in (*_COLUMNS, "checksum"))
    values = (*astuple(entry), _checksum(terms.account, astuple(entry)))
    database.execute(f"INSERT INTO entries ({names}) VALUES ({marks})", values)
    _write_terms(database, terms, count)
    return count


def settle(database: sqlite3.Connection, terms: Terms, entry: Entry, status: str) -> None:
    """Note how a reservation ended."""
    settled = replace(entry, status=status)
    database.execute(
        "UPDATE entries SET status = ?, checksum = ? WHERE id = ?",
        (status, _checksum(terms.account, astuple(settled)), entry.id),
    )


def _update(database: sqlite3.Connection) -> None:
    """Bring the file of an earlier version up to date."""
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
    epsilon, delta, accounting, order = database.execute(
        "SELECT epsilon, delta, accounting, renyi_order FROM budget"
    ).fetchone()
    limit = None if epsilon is None else (epsilon, delta)
    terms = Terms(limit, accounting, order, secrets.token_hex(_NAME_BYTES))
    entries = [
        Entry(*row) for row in database.execute(f"SELECT {', '.join(_COLUMNS)} FROM entries ORDER BY id").fetchall()
    ]
    for entry in entries:
        settle(database, terms, entry, entry.status)
    _write_terms(database, terms, len(entries))


def _write_terms(
    database: sqlite3.Connection,
    terms: Terms,
    count: int,
    statement: str = f"UPDATE budget SET ({_TERMS}) = (?, ?, ?, ?, ?, ?, ?)",
) -> None:
    body = (*(terms.limit or (None, None)), terms.accounting, terms.order)
    database.execute(statement, (*body, terms.account, count, _checksum(terms.account, (*body, count))))


def _checksum(account: str, values: Sequence[Any]) -> str:
    return hashlib.sha256(json.dumps([account, *values]).encode()).hexdigest()


def _damaged() -> LedgerError:
    return LedgerError("the ledger file is damaged.", fix="restore it from a backup; do not start a new one.")
