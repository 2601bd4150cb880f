"""The chain of an account: for every entry a link over it and the link before, so that one link tells of all entries.

A link stands on the certificate of its entry, and a process remembers the last one that it has seen in a file. So a
file that is put back to an older copy, which would give back what was spent, is noticed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import fields
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

from ppdp.exceptions import LedgerError
from ppdp.privacy.ledger.privacy_filter import Entry

Link = tuple[int, str]
"""How many entries there are, and the link of the last one."""

_COLUMNS = [field.name for field in fields(Entry)]
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
