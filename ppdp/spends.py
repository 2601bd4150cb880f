"""Spends on the same private data, and what they come to together: ``docs/theory/accounting.md``."""

from __future__ import annotations

import functools
import json
import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass

from ppdp.exceptions import BudgetExceeded, LedgerError
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.parts import Part

__all__ = ["MOST", "Entry", "composed", "refuse_mixture", "refuse_overspend", "sampling", "total_epsilon"]

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
        What is not Gaussian: a JSON list of :class:`~ppdp.privacy.parts.Part`.
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


def total_epsilon(entries: Iterable[Entry], delta: float) -> float:
    """Smallest epsilon with δ(epsilon) <= delta.

    The sampling term grows with epsilon, so epsilon climbs from below until it meets itself; the
    last step charges the term at ``ahead >= epsilon``, hence its answer is valid.
    """
    entries = tuple(entries)
    loss = composed(entries)
    if loss.parts:
        pure = sum(part.pure for part in loss.parts)
        return pure if sampling(entries, pure) <= delta else math.inf
    epsilon = loss.epsilon(delta)
    for _ in range(100):
        ahead = epsilon + 1e-9 * (1 + epsilon)
        epsilon = loss.epsilon(delta - sampling(entries, ahead))
        if epsilon <= ahead:
            return epsilon
    return math.inf


def refuse_mixture(entries: Iterable[Entry]) -> None:
    """Raise :class:`LedgerError` unless all spends are Gaussian or all are pure."""
    loss = composed(entries)
    pure = all(math.isfinite(part.pure) for part in loss.parts)
    if loss.parts and (loss.mu or loss.failure or not pure):
        raise LedgerError(
            "Gaussian and other spends cannot share an account when each may depend on the outcome of the last.",
            fix="a ledger of their own for Laplace and exponential mechanisms without noisy stages or gates.",
        )


def refuse_overspend(entries: Iterable[Entry], epsilon: float, delta: float) -> None:
    """Raise :class:`BudgetExceeded` unless all these spends together are within the limit.

    A plan that fills the limit to the last digit must pass: rounding in its own split of ``mu`` is
    forgiven by 1e-9 of the Gaussian part, which :class:`PrivacyLoss` rounds up by 1e-7 of itself.
    """
    entries = tuple(entries)
    loss = composed(entries)
    if loss.parts and total_epsilon(entries, delta) <= epsilon * (1 + 1e-9):
        return
    room = delta - loss.failure - sampling(entries, epsilon)
    if not loss.parts and loss.delta(epsilon) - loss.failure <= room * (1 + 1e-9):
        return
    if total_epsilon(entries, delta) <= epsilon:  # a limit far above what is spent charges imperfect noise too dearly
        return
    raise BudgetExceeded(
        f"the total on dataset {entries[-1].dataset!r} would be epsilon = {total_epsilon(entries, delta):.6g} at "
        f"delta = {delta:.3g}, and the ledger's limit is {epsilon:.6g}; nothing was recorded or looked at.",
        fix="spend less here, or agree on a larger limit in a new ledger that includes what was spent.",
    )
