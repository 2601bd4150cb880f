"""What an estimator tells, in plain words, and what is known of a class."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

Given = Mapping[str, Any]
Holds = Callable[[Given], bool]

SEVERITIES = ("none", "declared", "low", "high")


@dataclass(frozen=True, slots=True)
class Leak:
    """What fitting without noise tells about the rows, as a ``Finding`` of :func:`ppdp.lint` has it."""

    severity: str
    leaks: str
    twin: str = ""
    fix: str = ""


def worst(leaks: Iterable[Leak]) -> Leak:
    """The first of the worst."""
    return max(leaks, key=lambda leak: SEVERITIES.index(leak.severity))


NOTHING = "nothing: every row is mapped by itself"
PROJECTED = f"{NOTHING}; images of private rows stay private"
CHOOSES = Leak("high", "which columns it takes: a function of the data decides", fix="name them: ['age', 'dose'].")
UNREADABLE = Leak(
    "high",
    "unknown: it cannot be read, so assume that it leaks everything",
    fix="give a list of (name, estimator): names are strings, estimators are instances, and none contains itself.",
)
UNKNOWN = Leak(
    "high",
    "unknown: assume that it leaks everything",
    fix="RowMap for a public map of each row, Public(transformer) if it was fitted on public data.",
)


@dataclass(frozen=True, slots=True)
class Known:
    """A class of scikit-learn."""

    leak: Leak  # what fitting it tells
    # What becomes of it: "map" (public at the entrance), "map anywhere" (also behind stages that look at the rows),
    # "imputer", "scaler", "components", "projection" or "model"; empty if nothing.
    role: str = ""
    # Makes of a step what stands for it: a public map (step, facts, columns), a stage or a mechanism (step, facts).
    make: Callable[..., Any] | None = None
    harmless: Holds | None = None  # whether it looks at no value with these parameters
    otherwise: Mapping[Holds, Leak] = field(default_factory=dict)  # where it looks at something else than usual

    def leak_with(self, given: Given) -> Leak:
        """What fitting it with these parameters tells."""
        if self.harmless is not None and self.harmless(given):
            return replace(self.leak, severity="none", leaks=NOTHING)
        return next((leak for holds, leak in self.otherwise.items() if holds(given)), self.leak)
