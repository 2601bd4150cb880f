"""The account of everything spent on the same private data."""

from __future__ import annotations

import html
import json
import math
import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import astuple, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ppdp.exceptions import ImpossibleBudget, InvalidParameter, LedgerError
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.parts import Part
from ppdp.spends import MOST, Entry, composed, refuse_mixture, refuse_overspend, total_epsilon

__all__ = ["Entry", "Ledger"]

_DEFAULT_DATASET = "default"
_OUTCOMES = ("released", "refused", "failed")
_FIX_MEMORY = "give Ledger(path=...)."
_PATIENCE = 120.0  # seconds to wait for another process to finish its operation
_FILE_KIND = 0x70706470  # "ppdp": tells a ledger from any other SQLite file
_SCHEMA = (
    f"PRAGMA application_id = {_FILE_KIND}",
    "CREATE TABLE budget (epsilon REAL, delta REAL)",
    "CREATE TABLE entries (id INTEGER PRIMARY KEY, dataset TEXT NOT NULL, label TEXT NOT NULL, "
    "mu REAL NOT NULL, delta REAL NOT NULL, total_variation REAL NOT NULL, rows_per_unit INTEGER NOT NULL, "
    "status TEXT NOT NULL, time TEXT NOT NULL, parts TEXT NOT NULL)",
)

# One operation at a time per process, and none while the process forks: SQLite's own table of locks
# would otherwise be copied into the child in the middle of somebody else's transaction.
_ACCESS = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_ACCESS.acquire, after_in_parent=_ACCESS.release, after_in_child=_ACCESS.release)


_COLUMNS = ", ".join(field.name for field in fields(Entry))


class Ledger:
    """The account of everything spent on the same private data, with or without a limit.

    Share one ledger between all pipelines that are fitted on the same people. A spend is recorded
    before any row is looked at and never comes back, whatever happens afterwards: copies, clones,
    folds, worker processes and killed processes neither lose nor duplicate one.

    Parameters
    ----------
    path : path-like, optional
        An SQLite file on a local disk, made if it does not exist; threads and processes may share
        it. Without it the account lives in the memory of this process only and cannot be pickled.
    epsilon, delta : float, optional
        The limit, for each dataset by itself; give both or neither. An existing file keeps the
        limit it was made with: giving none takes the file's.

    Notes
    -----
    Every entry is dominated by the pair "infinite loss with probability ``delta``, else N(0, 1)
    against N(mu, 1)". Dominating pairs compose adaptively, also where an entry was chosen from
    earlier outputs, so the total of a dataset is::

        δ(ε) = d0 + (1 - d0) δ_G(ε; sqrt(Σ mu²)) + (1 + exp(ε)) Σ tv,   d0 = 1 - Π(1 - delta)

    The last term pays for noise that follows its law only up to a total variation distance ``tv``.
    Failure probabilities add; the maximum in their place is false (``docs/theory/accounting.md``). Pure spends
    add their epsilons. The two kinds are kept apart: whoever may choose the kind of the next spend after seeing
    the outcome of the last one gains more than any sum of the two says.

    Examples
    --------
    >>> ledger = Ledger(epsilon=1.0, delta=1e-6)
    >>> first = ledger.reserve(mu=0.2, label="first model")
    >>> ledger.settle(first, "released")
    >>> round(ledger.epsilon(1e-6), 3), len(ledger)
    (0.834, 1)
    >>> ledger.reserve(mu=0.2, label="second model")
    Traceback (most recent call last):
    ...
    ppdp.exceptions.BudgetExceeded: ...
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
    ) -> None:
        budget = _checked_budget(epsilon, delta)
        self.path = None if path is None else Path(path).expanduser().resolve()
        self._owner = os.getpid()
        if self.path is None:
            self._memory = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
            weakref.finalize(self, self._memory.close)
        with self._transaction(mode="rwc") as database:
            self.budget = _open(database, budget)  # the limit (epsilon, delta), if there is one

    def reserve(
        self,
        *,
        mu: float,
        delta: float = 0.0,
        allowance: float = 0.0,
        epsilon: float = 0.0,
        dataset: str | None = None,
        label: str = "",
        rows_per_unit: int = 1,
        parts: Sequence[Part] = (),
    ) -> int:
        """Record a spend before any row is looked at; it counts from this moment on.

        Parameters
        ----------
        mu : float
            Gaussian differential privacy parameter of everything that will be released.
        delta : float, default=0.0
            Probability with which nothing is promised. A gate's delta belongs here, also where the
            certificate of a single fit takes the maximum: that holds for one fit, not for two.
        allowance : float, default=0.0
            The part of delta that was set aside for imperfect noise, ``(1 + exp(epsilon)) tv``.
        epsilon : float, default=0.0
            The epsilon at which the allowance was set aside; the total charges it at its own, larger
            one. With 0 nothing is assumed and the allowance is charged most dearly.
        dataset : str, optional
            Name of the private data; all spends without a name are on one dataset, ``"default"``.
        label : str, default=""
            What the spend is for; public.
        rows_per_unit : int, default=1
            Rows that one person may own. Spends for different units do not add up, so one dataset has one.
        parts : sequence of Part
            What is not Gaussian. A ledger takes Gaussian spends, or pure ones (Laplace, exponential), but not both.

        Returns
        -------
        int
            The number of the entry, for :meth:`settle`.

        Raises
        ------
        BudgetExceeded
            If the total of this dataset would pass the limit; nothing is recorded then.
        LedgerError
            If the spend cannot be recorded: look at no row then.
        """
        if not (0 <= mu < math.inf and 0 <= delta <= 1 and 0 <= allowance <= 1 and 0 <= epsilon <= MOST):
            raise InvalidParameter("a spend needs a finite mu >= 0, epsilon >= 0, delta and allowance in [0, 1].")
        name = _DEFAULT_DATASET if dataset is None else dataset
        now = datetime.now(UTC).isoformat(timespec="seconds")
        total_variation = float(allowance) / (1 + math.exp(epsilon))
        recipes = json.dumps([part.to_dict() for part in parts])
        money = float(mu), float(delta), total_variation
        spend = Entry(0, name, label, *money, rows_per_unit, "reserved", now, recipes)
        with self._transaction() as database:
            earlier = _select(database, name)
            if any(entry.rows_per_unit != rows_per_unit for entry in earlier):
                raise LedgerError(
                    f"the account of {name!r} protects another number of rows per person than {rows_per_unit}.",
                    fix="declare the same Domain(rows_per_unit=...) for every fit, or open another ledger.",
                )
            refuse_mixture([*earlier, spend])
            if self.budget is not None:
                refuse_overspend([*earlier, spend], *self.budget)
            database.execute("INSERT INTO entries VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)", astuple(spend)[1:])
            return int(database.execute("SELECT last_insert_rowid()").fetchone()[0])

    def settle(self, entry_id: int, status: str) -> None:
        """Note that a reservation was ``"released"``, ``"refused"`` or ``"failed"``; the spend stays."""
        if status not in _OUTCOMES:
            raise InvalidParameter(f"a reservation ends as one of {_OUTCOMES}, got {status!r}.")
        with self._transaction() as database:
            change = database.execute("UPDATE entries SET status = ? WHERE id = ?", (status, entry_id))
            if change.rowcount != 1:
                raise LedgerError(f"there is no entry {entry_id!r} in this ledger.")

    def entries(self, dataset: str | None = None) -> tuple[Entry, ...]:
        """Everything recorded for one dataset, or (``None``) for all, in the order of recording."""
        with self._database() as database:
            return _select(database, dataset)

    def spent(self, dataset: str | None = None) -> PrivacyLoss:
        """Total privacy loss of one dataset, or (``None``) as if all datasets were the same people.

        Imperfect noise is not in it: its price depends on epsilon, and :meth:`epsilon` charges it.
        """
        return composed(self.entries(dataset))

    def epsilon(self, delta: float, dataset: str | None = None) -> float:
        """Total epsilon at this delta in [0, 1), all included; infinite if delta is too small.

        Of one dataset, or (``None``) as if all datasets were the same people.
        """
        if not 0 <= delta < 1:
            raise InvalidParameter(f"delta must lie in [0, 1), got {delta!r}.")
        return total_epsilon(self.entries(dataset), delta)

    def __len__(self) -> int:
        return len(self.entries())

    def __bool__(self) -> bool:
        return True  # an empty ledger is still a ledger: ``if ledger`` must not skip the account

    def __sklearn_clone__(self) -> Ledger:
        return self

    def __copy__(self) -> Ledger:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Ledger:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self.path is None:
            raise LedgerError("a ledger in memory cannot be pickled: copies would spend apart.", fix=_FIX_MEMORY)
        return _reopen, (str(self.path),)

    def __repr__(self) -> str:
        place = [] if self.path is None else [f"path={str(self.path)!r}"]
        limit = [] if self.budget is None else ["epsilon={!r}, delta={!r}".format(*self.budget)]
        return f"Ledger({', '.join(place + limit)})"

    def _repr_html_(self) -> str:
        import pandas as pd  # only notebooks need it, workers start without

        entries = self.entries()
        table = pd.DataFrame(entries[-20:], columns=[field.name for field in fields(Entry)])
        caption = html.escape(f"{self!r}: the last of {len(entries)} entries")
        return f"<p>{caption}</p>{table.to_html(index=False)}"

    @contextmanager
    def _database(self, mode: str = "rw") -> Iterator[sqlite3.Connection]:
        """Open the account for one operation; ``mode="rw"`` never makes a new, empty one."""
        try:
            with _ACCESS:
                if self.path is not None:
                    address = f"{self.path.as_uri()}?mode={mode}"
                    connection = sqlite3.connect(address, timeout=_PATIENCE, isolation_level=None, uri=True)
                    with closing(connection) as file:
                        file.execute("PRAGMA synchronous = EXTRA")  # a commit outlives a power cut
                        yield file
                elif self._owner == os.getpid():
                    yield self._memory
                else:
                    raise LedgerError("a ledger in memory belongs to one process.", fix=_FIX_MEMORY)
        except sqlite3.Error as error:
            raise LedgerError(
                f"the account at {str(self.path)!r} cannot be used: {error}.",
                fix="give the path of a ledger, or of a new file, on a local disk that can be written.",
            ) from error

    @contextmanager
    def _transaction(self, mode: str = "rw") -> Iterator[sqlite3.Connection]:
        """Everything or nothing, and nobody else in between."""
        with self._database(mode) as database, database:
            database.execute("BEGIN IMMEDIATE")
            yield database


def _reopen(path: str) -> Ledger:
    if not (os.path.exists(path) and os.path.getsize(path)):
        raise LedgerError(
            f"the ledger {path!r} is gone; an empty one in its place would forget what was spent.",
            fix="bring the file back, or share its folder with the worker.",
        )
    return Ledger(path)


def _checked_budget(epsilon: float | None, delta: float | None) -> tuple[float, float] | None:
    if epsilon is None and delta is None:
        return None
    if epsilon is None or delta is None:
        raise InvalidParameter("epsilon and delta make a limit together.", fix="give both or neither.")
    if not (0 < epsilon < math.inf and 0 < delta < 1):
        raise ImpossibleBudget(f"a limit needs a finite epsilon > 0 and 0 < delta < 1, got {epsilon!r} and {delta!r}.")
    return float(epsilon), float(delta)


def _open(database: sqlite3.Connection, budget: tuple[float, float] | None) -> tuple[float, float] | None:
    """Make a new account, or check an existing one and take over its limit."""
    if database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
        for statement in _SCHEMA:
            database.execute(statement)
        database.execute("INSERT INTO budget VALUES (?, ?)", budget or (None, None))
        return budget
    if database.execute("PRAGMA application_id").fetchone()[0] != _FILE_KIND:
        raise LedgerError("the file is a database, but not a ledger.", fix="give another path.")
    if database.execute("PRAGMA quick_check").fetchone()[0] != "ok":
        raise LedgerError("the ledger file is damaged.", fix="restore it from a backup; do not start a new one.")
    epsilon, delta = database.execute("SELECT epsilon, delta FROM budget").fetchone()
    recorded = _checked_budget(epsilon, delta)
    if budget not in (None, recorded):
        raise LedgerError(
            f"the ledger was made with the limit (epsilon, delta) = {recorded}, not {budget}.",
            fix="give no limit (the file's is then used), or another path.",
        )
    return recorded


def _select(database: sqlite3.Connection, dataset: str | None) -> tuple[Entry, ...]:
    rows = database.execute(
        f"SELECT {_COLUMNS} FROM entries WHERE dataset = ifnull(?, dataset) ORDER BY id", (dataset,)
    )
    return tuple(Entry(*row) for row in rows)
