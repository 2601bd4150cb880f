"""The ledger's tables: made, checked, brought up to date, read and written."""

from __future__ import annotations

import sqlite3
from dataclasses import astuple, dataclass, fields

from ppdp.accounts import ACCOUNTINGS, best_order
from ppdp.checks import choice, number
from ppdp.exceptions import ImpossibleBudget, InvalidParameter, LedgerError
from ppdp.spends import Entry

__all__ = ["Terms", "insert", "open_account", "select"]

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
_COLUMNS = [field.name for field in fields(Entry)]


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
    """

    limit: tuple[float, float] | None
    accounting: str
    order: float | None

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


def open_account(database: sqlite3.Connection, given: Terms, accounting: str | None) -> Terms:
    """Make a new account on the terms given, or check an existing one and take over its terms."""
    if database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
        for statement in (*_SCHEMA, *_ADDED):
            database.execute(statement)
        row = (*(given.limit or (None, None)), given.accounting, given.order)
        database.execute("INSERT INTO budget VALUES (?, ?, ?, ?)", row)
        return given
    if database.execute("PRAGMA application_id").fetchone()[0] != _FILE_KIND:
        raise LedgerError("the file is a database, but not a ledger.", fix="give another path.")
    if database.execute("PRAGMA quick_check").fetchone()[0] != "ok":
        raise LedgerError("the ledger file is damaged.", fix="restore it from a backup; do not start a new one.")
    recorded = _recorded(database)
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


def select(database: sqlite3.Connection, dataset: str | None) -> tuple[Entry, ...]:
    """Entries of one dataset, or (``None``) of all, in the order of recording."""
    columns = ", ".join(_COLUMNS)
    rows = database.execute(f"SELECT {columns} FROM entries WHERE dataset = ifnull(?, dataset) ORDER BY id", (dataset,))
    return tuple(Entry(*row) for row in rows)


def insert(database: sqlite3.Connection, spend: Entry) -> int:
    """Record a spend; its number."""
    names, marks = ", ".join(_COLUMNS[1:]), ", ".join("?" for _ in _COLUMNS[1:])
    database.execute(f"INSERT INTO entries ({names}) VALUES ({marks})", astuple(spend)[1:])
    return int(database.execute("SELECT last_insert_rowid()").fetchone()[0])


def _recorded(database: sqlite3.Connection) -> Terms:
    """Terms of the file, which is brought up to date if it is of the first version."""
    columns = {row[1] for row in database.execute("PRAGMA table_info(budget)")}
    if "accounting" not in columns:
        for statement in _ADDED:
            database.execute(statement)
        terms = Terms.of(*database.execute("SELECT epsilon, delta FROM budget").fetchone())
        database.execute("UPDATE budget SET renyi_order = ?", (terms.order,))
    epsilon, delta, accounting, order = database.execute(
        "SELECT epsilon, delta, accounting, renyi_order FROM budget"
    ).fetchone()
    return Terms(None if epsilon is None else (epsilon, delta), accounting, order)
