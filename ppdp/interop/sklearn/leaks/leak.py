"""A severity, and the plain words that go with it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["CHOOSES", "NOTHING", "SEVERITIES", "UNKNOWN", "UNREADABLE", "Leak", "worst"]

SEVERITIES = ("none", "declared", "low", "high")


@dataclass(frozen=True, slots=True)
class Leak:
    """What fitting without noise tells about the rows.

    Attributes
    ----------
    severity : {"none", "declared", "low", "high"}
        "none": it looks at no value. "declared": the same, if the user is right about something that nobody can check.
        "low": averages of all rows, in which one row shifts what leaves, and every other row, by a share of about 1/n.
        "high": one row can decide what leaves, or rows are contained in it.
    leaks : str
        What it tells.
    twin : str
        What ppdp has instead; empty if nothing.
    fix : str
        What to do.
    """

    severity: str
    leaks: str
    twin: str = ""
    fix: str = ""


def worst(leaks: Iterable[Leak]) -> Leak:
    """The first of the worst."""
    return max(leaks, key=lambda leak: SEVERITIES.index(leak.severity))


NOTHING = "nothing: every row is mapped by itself"
CHOOSES = Leak("high", "which columns it takes: a function of the data decides", "", "name them: ['age', 'dose'].")
UNREADABLE = Leak(
    "high",
    "unknown: it cannot be read, so assume that it leaks everything",
    "",
    "give a list of (name, estimator): names are strings, estimators are instances, and none contains itself.",
)
UNKNOWN = Leak(
    "high",
    "unknown: assume that it leaks everything",
    "",
    "RowMap for a public map of each row, Public(transformer) if it was fitted on public data.",
)
