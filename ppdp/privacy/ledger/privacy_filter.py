"""Spends, and how they add up when each may be chosen after the outcomes of all before: ``docs/theory/ledger.md``.

An account has a public limit for each of three things, set before anything was seen: what mechanisms spend, the
probability of failures, and the imperfection of noise. Whoever keeps below all three on every path keeps the promise,
however kinds and parameters are chosen; a limit on their sum alone would be passed by trading one for another.
"""

from __future__ import annotations

import functools
import json
import math
import operator
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize, special

from ppdp.core.adjacency import Adjacency
from ppdp.core.boundary import outside
from ppdp.core.names import dataset_name
from ppdp.exceptions import BudgetExceeded, CompositionWarning, LedgerError
from ppdp.privacy.gaussian import gaussian_delta, gaussian_epsilon
from ppdp.privacy.loss import PrivacyLoss, parts_at_order
from ppdp.privacy.losses import Part
from ppdp.privacy.renyi import renyi_delta

_WITHOUT_RELEASE = {"failed": "failed", "refused": "refused by a gate", "reserved": "not ended"}
ACCOUNTINGS = ("auto", "gaussian", "pure", "renyi")

FAILURE_SHARE, SAMPLING_SHARE = 0.1, 0.01  # of a limit's delta: set aside for gates, and for imperfect noise
_FORGIVEN = 1 + 1e-9  # rounding in the split of a plan that fills the limit to the last digit
_AMPLE = 10.0  # a limit above this is lowered where it would charge imperfect noise too dearly for
_FITS = 20  # spends like the first one
MOST = 600.0  # an epsilon beyond any meaning, whose exponential is still a number


@dataclass(frozen=True, slots=True)
class Entry:
    """One spend, as the ledger recorded it."""

    id: int  # number in the ledger
    dataset: str  # name of the private data
    label: str  # what the spend was for
    mu: float  # Gaussian differential privacy parameter
    delta: float  # probability with which nothing is promised
    total_variation: float  # distance of the noise that was drawn from the noise of the theory
    rows_per_unit: int  # rows that one person may own
    status: str  # ``"reserved"``, ``"released"``, ``"refused"`` or ``"failed"``; all of them count as spent
    time: str  # when it was reserved: ISO 8601, UTC
    parts: str = "[]"  # what is not Gaussian: a JSON list of :class:`~ppdp.privacy.losses.Part`
    block: str = ""  # public name of the rows it looked at, if not all; "" for all
    gate: str = ""  # public name of the gate in front of it
    # Earlier entry whose gate stands in front of this one as well, so that its ``delta`` is charged there.
    behind: int | None = None
    neighbours: str = ""  # which datasets are neighbours, as JSON; "" where they differ by replaced rows

    @property
    def adjacency(self) -> Adjacency:
        """Which datasets are neighbours."""
        if self.neighbours:
            return Adjacency.from_dict(json.loads(self.neighbours))
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
        asked, other = spend.adjacency, earlier[0].adjacency
        differ = (
            f"keeps {other.rows} rows of each person, not {asked.rows}"
            if asked.bounds_contributions and other.bounds_contributions
            else f"does not protect {asked.unit}: it protects {other.unit}"
        )
        fix = "declare the same adjacency (or rows_per_unit) for every fit, or open another ledger."
        raise LedgerError(f"the ledger of {spend.dataset!r} {differ}.", fix=fix)
    if spend.block and not spend.adjacency.one_row:
        what = "blocks are for people with one row each: a person with several may be in several blocks."
        raise LedgerError(what, fix="charge the whole dataset: ledger in place of ledger.block(...).")


def warn_of_another_case(entries: Sequence[Entry], name: str) -> None:
    """Warn of a new dataset whose name is that of another one but for capitals: each has a limit of its own."""
    known = {dataset_name(entry.dataset) for entry in entries}
    if name not in known and (other := next((one for one in known if one.casefold() == name.casefold()), None)):
        what = f"the ledger has {other!r}, and {name!r} is another dataset, with a limit of its own."
        warnings.warn(f"{what} Fix: dataset={other!r} for the same people.", CompositionWarning, stacklevel=outside())


def refuse_another_gate(earlier: Sequence[Entry], spend: Entry, delta: float) -> None:
    """One gate's delta covers what is run behind it only on the same rows, and only once it has passed."""
    first = next((entry for entry in earlier if entry.id == spend.behind), None)
    if first is None or first.block != spend.block or first.status != "released":
        what = f"no entry {spend.behind} of the same rows was released, so no gate has passed."
        raise LedgerError(what, fix="run and settle the fit with the gate first, and name its entry.")
    if not spend.gate or first.gate != spend.gate or first.behind is not None or first.delta < delta:
        what = f"entry {spend.behind} was not behind this gate."
        raise LedgerError(what, fix="leave out behind=; each gate then pays its own delta.")


class PrivacyFilter(ABC):
    """One way to add up spends that is a privacy filter."""

    @abstractmethod
    def amount(self, entries: Sequence[Entry]) -> float:
        """What is added up; raises :class:`LedgerError` for a spend that has no place here."""

    @abstractmethod
    def delta(self, amount: float, epsilon: float) -> float:
        """Smallest delta at this epsilon of everything that comes to at most this amount."""

    @abstractmethod
    def epsilon(self, amount: float, delta: float) -> float:
        """Smallest epsilon at this delta of everything that comes to at most this amount."""


@dataclass(frozen=True, slots=True)
class GaussianAccount(PrivacyFilter):
    """Root of the sum of squares; pure spends count as the Gaussian release that dominates them, unless ``strict``."""

    strict: bool = False

    def amount(self, entries: Sequence[Entry]) -> float:
        loss = composed(entries)
        if loss.parts and self.strict:
            raise _refusal("Gaussian and other spends", "Gaussian", "'gaussian' (for pure ones) or 'renyi' (for all)")
        if not all(math.isfinite(part.pure) for part in loss.parts):
            raise _refusal("Spends that are neither Gaussian nor pure", "Gaussian", "'renyi'")
        return math.hypot(loss.mu, *(math.sqrt(part.count) * pure_mu(part.pure / part.count) for part in loss.parts))

    def delta(self, amount: float, epsilon: float) -> float:
        return gaussian_delta(amount, epsilon)

    def epsilon(self, amount: float, delta: float) -> float:
        return gaussian_epsilon(amount, delta)


@dataclass(frozen=True, slots=True)
class PureAccount(PrivacyFilter):
    """Sum of epsilons."""

    def amount(self, entries: Sequence[Entry]) -> float:
        loss = composed(entries)
        if loss.mu or not all(math.isfinite(part.pure) for part in loss.parts):
            raise _refusal("Pure and other spends", "pure", "'gaussian' or 'renyi'")
        return math.fsum(part.pure for part in loss.parts)

    def delta(self, amount: float, epsilon: float) -> float:
        return 0.0 if amount <= epsilon * _FORGIVEN else 1.0

    def epsilon(self, amount: float, delta: float) -> float:
        return amount if delta >= 0 else math.inf


@dataclass(frozen=True, slots=True)
class RenyiAccount(PrivacyFilter):
    """Sum of Rényi divergences at one order, public and fixed before anything was seen."""

    order: float

    def amount(self, entries: Sequence[Entry]) -> float:
        loss = composed(entries)
        total = parts_at_order(loss.mu, loss.parts, self.order)
        if math.isinf(total) and len(entries) > 1:
            fix = "more noise, a limit with a larger epsilon (its order is smaller), or a ledger of its own for it."
            raise LedgerError(f"a spend has no known Rényi divergence at the ledger's order {self.order:.4g}.", fix=fix)
        return total

    def delta(self, amount: float, epsilon: float) -> float:
        return renyi_delta(lambda _: amount, epsilon, (self.order,))

    def epsilon(self, amount: float, delta: float) -> float:
        if delta <= 0:
            return math.inf
        found = amount + math.log1p(-1 / self.order) - math.log(self.order * delta) / (self.order - 1)
        return max(0.0, found + 1e-12 * (1 + abs(found)))


def pure_mu(epsilon: float) -> float:
    """Gaussian parameter that dominates every mechanism of this pure epsilon: ``2 Φ⁻¹(e^ε / (1 + e^ε))``; attained.

    Source: ``docs/theory/ledger.md``, 3.
    """
    tail = float(special.ndtri_exp(-np.logaddexp(0.0, epsilon)))  # Φ⁻¹(1 / (1 + e^ε)), not above 0
    return max(0.0, -2 * tail) * (1 + 1e-12) + (1e-15 if epsilon else 0.0)


def best_order(epsilon: float, delta: float) -> float:
    """The order at which a limit leaves most room for Gaussian spends."""
    held = (delta - (FAILURE_SHARE + SAMPLING_SHARE) * delta) / (1 - FAILURE_SHARE * delta)

    def room(log_excess: float) -> float:
        excess = math.exp(log_excess)
        order = 1 + excess
        return (epsilon + (math.log(order) + math.log(held)) / excess - math.log(excess / order)) / order

    grid = np.linspace(-8.0, 25.0, 331)
    best = float(grid[np.argmax([room(float(u)) for u in grid])])
    found = optimize.minimize_scalar(lambda u: -room(u), bounds=(best - 0.2, best + 0.2), method="bounded")
    return 1 + math.exp(float(found.x))


def account_for(entries: Iterable[Entry], accounting: str, order: float | None) -> PrivacyFilter:
    """The account of these spends; "auto" is decided by the first of them, before any outcome was seen."""
    if accounting == "auto":
        first = next((loss for entry in entries if (loss := entry.loss).mu or loss.parts), PrivacyLoss())
        if not first.parts:
            return GaussianAccount(strict=True)
        if not first.mu and all(math.isfinite(part.pure) for part in first.parts):
            return PureAccount()
    if accounting == "gaussian":
        return GaussianAccount()
    if accounting == "pure":
        return PureAccount()
    if order is None:
        what = "spends that are neither Gaussian nor pure need a ledger with a limit."
        raise LedgerError(what, fix="Ledger(epsilon=..., delta=...): its Rényi order follows from them.")
    return RenyiAccount(order)


def total_epsilon(entries: Sequence[Entry], delta: float, account: PrivacyFilter | None) -> float:
    """Smallest epsilon with δ(epsilon) <= delta; without an account, of spends that were all declared in advance.

    The sampling term grows with epsilon, so epsilon climbs from below until it meets itself; the last step charges the
    term at ``ahead >= epsilon``, hence its answer is valid.
    """
    loss = composed(entries)
    amount = account.amount(entries) if account is not None else 0.0

    def held(rest: float) -> float:
        if loss.failure >= 1 or rest < loss.failure:
            return math.inf
        rest = (rest - loss.failure) / (1 - loss.failure) * (1 - 1e-12)
        alone = PrivacyLoss(loss.mu, parts=loss.parts)
        if account is None:
            return alone.epsilon(rest)
        found = account.epsilon(amount, rest)
        return min(found, alone.epsilon(rest)) if len(entries) == 1 and isinstance(account, RenyiAccount) else found

    epsilon = held(delta)
    for _ in range(100):
        ahead = epsilon + 1e-9 * (1 + epsilon)
        epsilon = held(delta - sampling(entries, ahead))
        if epsilon <= ahead:
            return epsilon
    return math.inf


@dataclass(frozen=True, slots=True)
class _Limits:
    """What is set aside of a limit's delta, by its first spend and public shares."""

    epsilon: float
    failures: float
    sampling: float
    held: float

    @classmethod
    def of(cls, first: Entry, account: PrivacyFilter, epsilon: float, delta: float) -> _Limits:
        """Limits that admit the first spend if any do, and leave room for gates and imperfect noise behind it."""
        loss, amount = composed([first]), account.amount([first])

        def rest(at: float) -> float:
            return delta - loss.failure - sampling([first], at) - (1 - loss.failure) * account.delta(amount, at)

        if epsilon > _AMPLE and first.total_variation:
            enough = SAMPLING_SHARE * delta / _FITS / first.total_variation - 1
            lower = min(epsilon, math.log(max(enough, math.exp(_AMPLE))))
            epsilon = lower if rest(lower) >= 0 else epsilon
        spare, noise = max(rest(epsilon), 0.0) / 2, sampling([first], epsilon)
        failures = max(loss.failure, min(FAILURE_SHARE * delta, loss.failure + spare))
        noise = max(noise, min(SAMPLING_SHARE * delta, noise + spare))
        return cls(epsilon, failures, noise, (delta - failures - noise) / (1 - failures) if failures < 1 else 0.0)


def refuse_overspend(entries: Sequence[Entry], epsilon: float, delta: float, account: PrivacyFilter) -> None:
    """Raise :class:`BudgetExceeded` unless all these spends together are within the limit."""
    limits = _Limits.of(entries[0], account, epsilon, delta)
    lost, noise = composed(entries).failure, sampling(entries, limits.epsilon)
    amount = account.amount(entries)
    if account.delta(amount, limits.epsilon) > limits.held * _FORGIVEN:
        if len(entries) == 1 and total_epsilon(entries, delta, account) <= epsilon * _FORGIVEN:
            return  # alone it costs what it costs: nothing is ever admitted behind it
        found = account.epsilon(amount, limits.held) if limits.held > 0 else math.inf
        what, limit = f"epsilon = {found:.6g} at delta = {delta:.3g}", f"{limits.epsilon:.6g}"
    elif lost > limits.failures * _FORGIVEN:
        what, limit = f"a probability of failure of {lost:.3g}", f"{limits.failures:.3g} (set aside from delta)"
    elif noise > limits.sampling * _FORGIVEN:
        what, limit = f"delta = {noise:.3g} for imperfect noise", f"{limits.sampling:.3g} (set aside from delta)"
    else:
        return
    raise BudgetExceeded(
        f"the total on dataset {entries[-1].dataset!r} would be {what}, and the ledger's limit is {limit};"
        " nothing was recorded or looked at.",
        fix="spend less here (print the ledger to see how much is left), or agree on a larger limit in a new ledger"
        " that includes what was spent.",
    )


def _refusal(which: str, name: str, others: str) -> LedgerError:
    return LedgerError(
        f"{which} cannot share a {name} ledger when each may depend on the outcome of the last.",
        fix=f"a ledger of its own for each kind, or one opened with accounting={others}.",
    )


def outcomes_in_words(entries: Sequence[Entry]) -> str:
    """How many of them released something, and how the others ended, which are charged as well."""
    count = Counter(entry.status for entry in entries)
    others = [f"{count[status]} {words}" for status, words in _WITHOUT_RELEASE.items() if count[status]]
    releases = f"{count['released']} release{'s' * (count['released'] != 1)}"
    return f"{releases}; charged as well: {', '.join(others)}" if others else releases


def composed_parameters(entries: Sequence[Entry]) -> dict[str, Any]:
    """What spends come to together, if all of them are Gaussian; nothing otherwise."""
    loss = composed(entries)
    if loss.parts:
        return {}
    variation = min(1.0, math.fsum(entry.total_variation for entry in entries))
    return {"composed": {"mu": loss.mu, "failure": loss.failure, "total_variation": variation}}


def of_dataset(entries: Sequence[Entry], name: str) -> tuple[Entry, ...]:
    """Those of one dataset; in an older file a name may stand as it was typed."""
    return tuple(entry for entry in entries if dataset_name(entry.dataset) == name)
