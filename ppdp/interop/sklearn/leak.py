"""What an estimator tells, in plain words, and what is known of a class."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

__all__ = ["CHOOSES", "NOTHING", "SEVERITIES", "UNKNOWN", "UNREADABLE", "Given", "Known", "Leak", "worst"]

Given = Mapping[str, Any]
Holds = Callable[[Given], bool]

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


@dataclass(frozen=True, slots=True)
class Known:
    """A class of scikit-learn.

    Attributes
    ----------
    leak : Leak
        What fitting it tells.
    role : {"", "map", "map anywhere", "imputer", "scaler", "components", "projection", "model"}
        What becomes of it; empty if nothing. A "map" is public at the entrance, "anywhere" also behind stages that look
        at the rows.
    twin : callable, optional
        Makes what stands for it of a step: see :mod:`~ppdp.interop.sklearn.twins`.
    harmless : callable, optional
        Whether it looks at no value with these parameters.
    otherwise : tuple of (callable, Leak)
        Parameters with which it looks at something else than usual.
    """

    leak: Leak
    role: str = ""
    twin: Callable[..., Any] | None = None
    harmless: Holds | None = None
    otherwise: tuple[tuple[Holds, Leak], ...] = ()

    def leak_with(self, given: Given) -> Leak:
        """What fitting it with these parameters tells."""
        if self.harmless is not None and self.harmless(given):
            return replace(self.leak, severity="none", leaks=NOTHING)
        return next((leak for holds, leak in self.otherwise if holds(given)), self.leak)
