"""Spends on the same private data: ``docs/theory/ledger.md``."""

from __future__ import annotations

import functools
import json
import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ppdp.core.adjacency import Adjacency
from ppdp.exceptions import LedgerError
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.losses import Part

__all__ = ["MOST", "Entry", "composed", "groups", "refuse_another_gate", "refuse_other_units", "sampling"]

MOST = 600.0  # an epsilon beyond any meaning, whose exponential is still a number


@dataclass(frozen=True, slots=True)
class Entry:
    """One spend, as the ledger recorded it.

    Attributes
    ----------
    id : int
        Number in the ledger.
    dataset : str
        Name of the private data.
    label : str
        What the spend was for.
    mu : float
        Gaussian differential privacy parameter.
    delta : float
        Probability with which nothing is promised.
    total_variation : float
        Distance of the noise that was drawn from the noise of the theory.
    rows_per_unit : int
        Rows that one person may own.
    status : str
        ``"reserved"``, ``"released"``, ``"refused"`` or ``"failed"``; all of them count as spent.
    time : str
        When it was reserved: ISO 8601, UTC.
    parts : str
        What is not Gaussian: a JSON list of :class:`~ppdp.privacy.losses.Part`.
    block : str
        Public name of the rows it looked at, if not all; "" for all.
    gate : str
        Public name of the gate in front of it.
    behind : int or None
        Earlier entry whose gate stands in front of this one as well, so that its ``delta`` is charged there.
    """

    id: int
    dataset: str
    label: str
    mu: float
    delta: float
    total_variation: float
    rows_per_unit: int
    status: str
    time: str
    parts: str = "[]"
    block: str = ""
    gate: str = ""
    behind: int | None = None

    @property
    def adjacency(self) -> Adjacency:
        """Which datasets are neighbours."""
        return Adjacency.replace(self.rows_per_unit)

    @property
    def loss(self) -> PrivacyLoss:
        """What it costs, but for imperfect noise."""
        parts = tuple(Part.from_dict(part) for part in json.loads(self.parts))
        return PrivacyLoss(self.mu, self.delta, parts=parts)


def composed(entries: Iterable[Entry]) -> PrivacyLoss:
    """Everything together, but for imperfect noise."""
    losses = (entry.loss for entry in entries)
    return functools.reduce(operator.add, losses, PrivacyLoss())


def sampling(entries: Iterable[Entry], epsilon: float) -> float:
    """What imperfect noise adds to delta: (1 + exp(epsilon)) times the total variation distance."""
    distance = math.fsum(entry.total_variation for entry in entries)
    return distance * (1 + math.exp(min(epsilon, MOST))) if distance else 0.0


def groups(entries: Sequence[Entry]) -> list[tuple[Entry, ...]]:
    """The spends that one row can be in: those on all rows, and for every block those on all rows or on that block."""
    blocks = sorted({"", *(entry.block for entry in entries)})
    return [tuple(entry for entry in entries if entry.block in ("", block)) for block in blocks]


def refuse_other_units(earlier: Sequence[Entry], spend: Entry) -> None:
    """Units do not add up, and one person's rows may be in several blocks."""
    if any(entry.adjacency != spend.adjacency for entry in earlier):
        raise LedgerError(
            f"the account of {spend.dataset!r} protects another number of rows per person than {spend.rows_per_unit}.",
            fix="declare the same Domain(rows_per_unit=...) for every fit, or open another ledger.",
        )
    if spend.block and not spend.adjacency.single:
        raise LedgerError(
            "blocks are for people with one row each: a person with several may be in several blocks.",
            fix="charge the whole dataset: ledger in place of ledger.block(...).",
        )


def refuse_another_gate(earlier: Sequence[Entry], spend: Entry, delta: float) -> None:
    """One gate's delta covers what is run behind it only on the same rows, and only once it has passed."""
    first = next((entry for entry in earlier if entry.id == spend.behind), None)
    if first is None or first.block != spend.block or first.status != "released":
        raise LedgerError(
            f"no entry {spend.behind} of the same rows was released, so no gate has passed.",
            fix="run and settle the fit with the gate first, and name its entry.",
        )
    if not spend.gate or first.gate != spend.gate or first.behind is not None or first.delta < delta:
        raise LedgerError(
            f"entry {spend.behind} was not behind this gate.",
            fix="leave out behind=; each gate then pays its own delta.",
        )
