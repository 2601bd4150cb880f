"""``ppdp ledger``, and the account that ``ppdp fit`` charges."""

from __future__ import annotations

import json
import math
from argparse import Namespace
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ppdp.cli.main import NO, YES
from ppdp.cli.output import Misuse, refuse, say, table
from ppdp.exceptions import LedgerError, PpdpError, escaped

if TYPE_CHECKING:
    from ppdp.privacy.ledger.ledger import Ledger

_HELD = "its entry is there, with all before it."
_LACKED = (
    "its entry, or one before it, is not there as it was: the ledger was put back to an older copy, or went on without"
    " it. Enter it again; how is in docs/guides/command-line.md."
)
_FIX_LIMIT = "--limit EPSILON DELTA makes one, as in --limit 3 1e-5."


@dataclass(frozen=True, slots=True)
class Balance:
    """What was spent on one dataset."""

    dataset: str
    delta: float  # where epsilon is told: that of the limit, if there is one
    spent: float | None  # epsilon of all entries together; None if no epsilon covers them at this delta
    limit: float | None  # its epsilon
    remaining: float | None
    protects: str | None  # what, if that is less than everything about a row

    def __str__(self) -> str:
        spent = "no epsilon covers what was spent" if self.spent is None else f"spent epsilon {self.spent:.4g}"
        of_what = "" if self.protects is None else f" (protects {escaped(self.protects)}, and nothing else in it)"
        told = f"{escaped(self.dataset)}{of_what}: {spent} at delta {self.delta:g}"
        if self.remaining is None or self.limit is None:
            return f"{told}, without a limit"
        return f"{told}, of a limit of {self.limit:g}; {self.remaining:.4g} is left of it"


def ledger(options: Namespace) -> int:
    """Print what an account holds, and what is left of its limit."""
    account = _opened(options.path, place=str(options.path), fix="the path that was given to `ppdp fit --ledger`.")
    if account.budget is not None and options.delta is not None:
        refuse("the limit has a delta.", place="--delta", fix="leave it out; it is for ledgers without a limit.")
    entries = account.entries()
    balances = [balance(account, name, options.delta) for name in sorted({entry.dataset for entry in entries})]
    held = {str(path): _holds(account, path) for path in options.certificate}
    status = NO if False in held.values() else YES
    if options.json:
        found: dict[str, Any] = {"limit": account.budget, "accounting": account.accounting}
        found |= {"entries": [asdict(entry) for entry in entries], "datasets": [asdict(one) for one in balances]}
        found |= {"certificates": held} if held else {}
        say(json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False))
        return status
    limit = "no limit" if account.budget is None else "limit ({:g}, {:g}) for each dataset".format(*account.budget)
    lines = [[escaped(w) for w in (str(e.id), e.time, e.status, e.dataset, e.block, e.label)] for e in entries]
    shown = table(("", "time", "status", "dataset", "block", "what for"), lines) if lines else "  nothing was spent"
    compared = [f"{escaped(path)}: {_HELD if there else _LACKED}" for path, there in held.items()]
    say("\n".join([f"{options.path}: {limit}", shown, *map(str, balances), *compared]))
    return status


def _holds(account: Ledger, path: Path) -> bool:
    """Whether an account holds the entry of the certificate in a file."""
    from ppdp.cli.certificate_files import carried

    certificate = carried(path)
    try:
        return account.holds(certificate)
    except LedgerError as error:
        raise Misuse(error.message, place=str(path), fix="a certificate that was charged to this ledger.") from None


def balance(account: Ledger, dataset: str | None, delta: float | None = None) -> Balance:
    """What was spent on one dataset, or on the one without a name, at the delta of the limit or else at this one."""
    from ppdp.core.names import dataset_name
    from ppdp.privacy.ledger.ledger import DELTA

    name = dataset_name(dataset)
    limit, at = account.budget or (None, DELTA if delta is None else delta)
    spent = account.epsilon(at, name)
    remaining = None if limit is None else max(0.0, limit - spent)
    less = (entry.adjacency.unit for entry in account.entries(name) if not entry.adjacency.row_level)
    return Balance(name, at, spent if math.isfinite(spent) else None, limit, remaining, next(less, None))


def account_of(options: Namespace) -> Ledger | None:
    """The account that a fit is charged to; a new one only with a limit."""
    if options.ledger is None:
        if options.limit is not None:
            refuse("a limit needs a ledger.", place="--limit", fix="add --ledger PATH.")
        return None
    if not options.ledger.absolute().parent.is_dir():
        refuse(f"the folder of {str(options.ledger)!r} is not there.", place="--ledger", fix="make it first.")
    if options.limit is None:
        return _opened(options.ledger, place="--ledger", fix=_FIX_LIMIT)
    from ppdp.privacy.ledger.ledger import Ledger

    try:
        return Ledger(options.ledger, *options.limit)
    except PpdpError as error:
        raise Misuse(error.message, place="--ledger", fix=error.fix or _FIX_LIMIT) from None


def _opened(path: Path, *, place: str, fix: str) -> Ledger:
    """An account that is there: an empty one in the place of a mistyped one would forget what was spent."""
    from ppdp.privacy.ledger.ledger import Ledger

    if not (path.is_file() and path.stat().st_size):
        refuse(f"no ledger at {str(path)!r}.", place=place, fix=fix)
    try:
        return Ledger(path)
    except PpdpError as error:
        raise Misuse(error.message, place=place, fix=error.fix or fix) from None
