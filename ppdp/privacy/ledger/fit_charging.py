"""Who pays for a fit: a ledger or nobody; this process counts all of them: ``docs/theory/ledger.md``, 9.

A process knows how often it fitted, and to what name of data; it never looks at values to find out whether rows are the
same. What it cannot know (fits elsewhere, what a search around a fit chose) it says.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from types import FrameType
from typing import Any, Protocol

from ppdp.core.adjacency import Adjacency
from ppdp.core.boundary import outside
from ppdp.core.names import DEFAULT_DATASET, dataset_name
from ppdp.core.progress import holding
from ppdp.exceptions import CompositionWarning, LedgerError, PpdpError, PrivacyRefusal
from ppdp.privacy.ledger.privacy_filter import MOST, Entry, total_epsilon
from ppdp.privacy.loss import PrivacyLoss

# Somebody else's loops around a fit: what they choose by private scores, or fit by themselves, no account of fits sees.
_SEARCH_LIBRARIES = ("sklearn", "imblearn", "skopt", "optuna", "dask_ml", "mlxtend")
_NOT_SEARCHING = ("sklearn.base", "sklearn.utils")


class LedgerLike(Protocol):
    """What a fit needs of a :class:`ppdp.Ledger`."""

    in_block: str

    @property
    def account(self) -> str:
        """Its random public name."""

    @property
    def reserve(self) -> Callable[..., int]:
        """Records a spend, and tells its number."""

    def settle(self, entry_id: int, status: str) -> None:
        """Say how the spend ended."""

    def position(self, entry_id: int, delta: float) -> dict[str, Any]:
        """Where the spend stands, and the total with it."""


_LOCK = threading.RLock()
_OPEN_LEDGERS: list[tuple[LedgerLike, int]] = []  # whose with-blocks are open, and the threads that opened them
_PAID: ContextVar[bool] = ContextVar("_PAID", default=False)
_FORKED: list[int] = []  # not empty in a copy of another process


def _forked() -> None:
    global _LOCK
    _LOCK = threading.RLock()  # a thread that is not here may have held it
    _FORKED.append(os.getpid())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


@dataclass(frozen=True, slots=True)
class FitCost:
    """What a fit or a search costs, as it was planned."""

    epsilon: float
    delta: float
    loss: PrivacyLoss  # everything that it releases
    failure: float  # probability with which nothing is promised, where other spends stand beside it
    allowance: float  # part of delta for imperfect noise, at epsilon
    adjacency: Adjacency  # which datasets are neighbours

    @property
    def variation(self) -> float:
        """Total variation distance of its noise from the theory's."""
        return self.allowance / (1 + math.exp(min(self.epsilon, MOST)))


@dataclass(frozen=True, slots=True)
class ComposedFits:
    """Sums over fits: of their guarantees, and of what exact Gaussian accounting makes of them."""

    fits: int = 0
    epsilon: float = 0.0
    delta: float = 0.0
    largest: float = 0.0
    mu: float = 0.0
    failure: float = 0.0
    variation: float = 0.0
    gaussian: bool = True

    @classmethod
    def of(cls, cost: FitCost) -> ComposedFits:
        """Of one fit."""
        sums = cost.epsilon, cost.delta, cost.epsilon, cost.loss.mu, cost.failure, cost.variation
        return cls(1, *sums, not cost.loss.parts)

    def __add__(self, other: ComposedFits) -> ComposedFits:
        return ComposedFits(
            self.fits + other.fits,
            self.epsilon + other.epsilon,
            self.delta + other.delta,
            max(self.largest, other.largest),
            math.hypot(self.mu, other.mu),
            self.failure + (1 - self.failure) * other.failure,
            self.variation + other.variation,
            self.gaussian and other.gaussian,
        )

    def for_people_with(self, times: float) -> ComposedFits:
        """For people with so many times the rows: group privacy, fit by fit."""
        if times == 1:
            return self
        if math.isinf(times):
            return replace(self, epsilon=MOST, delta=1.0, gaussian=False)
        delta = self.delta * times * math.exp(min((times - 1) * self.largest, MOST))
        return replace(self, epsilon=times * self.epsilon, delta=delta, gaussian=False)

    @property
    def together(self) -> tuple[float, float]:
        """(epsilon, delta) of all of them: sums, or what exact Gaussian accounting makes of it at the same delta."""
        if not self.gaussian or self.delta >= 1:
            return self.epsilon, min(self.delta, 1.0)
        entry = Entry(0, "", "", self.mu, self.failure, self.variation, 1, "released", "")
        return min(self.epsilon, total_epsilon([entry], self.delta, None)), self.delta


@dataclass(slots=True)
class DatasetHistory:
    """All fits of this process on one dataset, by account ("": none) and adjacency."""

    travels: int = 0  # pipelines that went to another process, or came from one, and may be fitted there unseen
    tallies: dict[tuple[str, Adjacency], ComposedFits] = field(default_factory=dict)
    pending: dict[int, tuple[str, FitCost]] = field(default_factory=dict)  # fits that may not begin, by ticket
    warned: set[tuple[str, int]] = field(default_factory=set)  # accounts, and the powers of two of fits warned of

    @property
    def every(self) -> dict[tuple[str, Adjacency], ComposedFits]:
        """Fits that have begun, and those that are about to."""
        tallies = dict(self.tallies)
        for account, cost in self.pending.values():
            key = account, cost.adjacency
            tallies[key] = tallies.get(key, ComposedFits()) + ComposedFits.of(cost)
        return tallies

    @property
    def fits(self) -> int:
        """How many."""
        return sum(tally.fits for tally in self.tallies.values()) + len(self.pending)

    def begin(self, ticket: int) -> None:
        """Count a fit for good, however it ends, for why it stops may be due to the rows."""
        if ticket in self.pending:
            account, cost = self.pending[ticket]
            key = account, cost.adjacency
            self.tallies[key] = self.tallies.get(key, ComposedFits()) + ComposedFits.of(cost)
            del self.pending[ticket]  # last: a process that is forked in between counts it twice, not never

    def together(self, adjacency: Adjacency) -> tuple[float, float]:
        """(epsilon, delta) of all of them for these neighbours."""
        scaled = (
            fits.for_people_with(adjacency.group_factor(planned_for)) for (_, planned_for), fits in self.every.items()
        )
        return sum(scaled, ComposedFits()).together


_HISTORIES: dict[str, DatasetHistory] = {}
_TICKETS = count(1)


@dataclass(frozen=True, slots=True)
class FitCharge:
    """What is known of a fit when it begins: the account that pays for it, and its place among those of its process."""

    ledger: LedgerLike | None
    entry: int  # its number there
    dataset: str  # public name of the data
    adjacency: Adjacency  # which datasets are neighbours
    fit: int  # which fit of this process on these data it is
    inside: str | None  # somebody else's search or estimator around it
    date: str

    def settle(self, status: str) -> None:
        """Note in the ledger how it ended."""
        if self.ledger is not None:
            try:
                self.ledger.settle(self.entry, status)
            except LedgerError as error:
                raise error.charged() from None

    @contextmanager
    def settling(self) -> Iterator[None]:
        """In this context the fit runs; how it ends is noted, and an error says whether a ledger was charged.

        A fit that is begun by a step of this one is no part of what this one pays for.
        """
        status = "failed"
        try:
            with holding(_PAID, False):
                yield
            status = "released"
        except PpdpError as error:
            status = "refused" if isinstance(error, PrivacyRefusal) else "failed"
            raise (error if self.ledger is None else error.charged()) from None
        finally:
            self.settle(status)

    def other_fits(self) -> dict[str, Any]:
        """What this process knows by now of other fits on these data, as far as the ledger has not paid for them."""
        with _LOCK:
            history = _HISTORIES.get(self.dataset, DatasetHistory())
            elsewhere = self.ledger is None or any(account != self.ledger.account for account, _ in history.every)
            together = history.together(self.adjacency) if elsewhere and history.fits > 1 else None
        worker = self.ledger is None and (bool(_FORKED) or multiprocessing.parent_process() is not None)
        return {
            "fit": self.fit if elsewhere else None,
            "together": None if together is None else dict(zip(("epsilon", "delta"), together)),
            "travels": max(history.travels, int(worker)),
        }

    def issued(self, delta: float) -> dict[str, Any]:
        """The block ``issued`` of the certificate; without a limit the total is told at ``delta``."""
        ledger = None if self.ledger is None else self.ledger.position(self.entry, delta)
        return {"date": self.date, **self.other_fits(), "inside": self.inside, "ledger": ledger}


def push_ledger(ledger: LedgerLike) -> None:
    """Charge fits to this ledger from now on, in all threads; refused if the block of another account is open."""
    with _LOCK:
        if _OPEN_LEDGERS and _OPEN_LEDGERS[-1][0].account != ledger.account:
            what = "the with-block of another ledger is open, and one fit is charged to one ledger."
            raise LedgerError(what, fix="one ledger for both, or close the outer block first.")
        _OPEN_LEDGERS.append((ledger, threading.get_ident()))


def pop_ledger(ledger: LedgerLike) -> None:
    """End what :func:`push_ledger` began, in this thread if it can be."""
    with _LOCK:
        opened = [place for place, (one, _) in enumerate(_OPEN_LEDGERS) if one is ledger]
        in_thread = [place for place in opened if _OPEN_LEDGERS[place][1] == threading.get_ident()]
        del _OPEN_LEDGERS[(in_thread or opened)[-1]]


def open_ledger() -> LedgerLike | None:
    """The ledger whose with-block is open: the innermost of this thread, or else that of the others."""
    with _LOCK:
        innermost = {thread: ledger for ledger, thread in _OPEN_LEDGERS}
    in_thread = innermost.get(threading.get_ident())
    if in_thread is not None or not innermost:
        return in_thread
    if len({ledger.in_block for ledger in innermost.values()}) > 1:
        what = "other threads have opened several blocks of the ledger, and nothing tells to which this fit belongs."
        raise LedgerError(what, fix="give the pipeline its block, Pipeline(..., ledger=ledger.block(...)).")
    return next(iter(innermost.values()))


def already_charged() -> AbstractContextManager[None]:
    """Fits in this block are parts of something that is charged whole; they are neither charged nor counted again."""
    return holding(_PAID, True)


def is_a_part() -> bool:
    """Whether a fit that is planned here is such a part, whose epsilon nobody has chosen."""
    return _PAID.get()


def charged_to(own: LedgerLike | None) -> LedgerLike | None:
    """The ledger that a fit is charged to: its own, or that of the open with-block; they must be one account."""
    opened = None if _PAID.get() else open_ledger()
    if own is None or opened is None:
        return own or opened
    if own.account != opened.account:
        what = "the pipeline has a ledger of its own and is fitted in the with-block of another one."
        raise LedgerError(what, fix="leave one of them out: set_params(ledger=None), or fit outside the block.")
    return own


def charge(own: LedgerLike | None, cost: FitCost, *, dataset: str | None, label: str) -> FitCharge:
    """Charge a fit before it looks at any value, or count it if no ledger pays for it.

    ``own`` is the ledger of the pipeline or search itself; ``label`` says, for a ledger, what the fit is. A ledger may
    refuse by :class:`BudgetExceeded` or :class:`LedgerError`; a :class:`CompositionWarning` says that this is not the
    first fit on these data that nobody pays for.
    """
    name, now = dataset_name(dataset), datetime.now(UTC).isoformat(timespec="seconds")
    ledger, entry = charged_to(own), 0
    if ledger is not None:
        entry = ledger.reserve(
            mu=cost.loss.mu,
            parts=cost.loss.parts,
            delta=cost.failure,
            allowance=cost.allowance,
            epsilon=cost.epsilon,
            dataset=dataset,
            adjacency=cost.adjacency,
            label=label,
        )
    with _LOCK:
        ticket, history = next(_TICKETS), _history(name)
    try:
        with _LOCK:
            if ledger is None or not _PAID.get():
                history.pending[ticket] = "" if ledger is None else ledger.account, cost
            place = history.fits
        charged = FitCharge(ledger, entry, name, cost.adjacency, place, _search_around(sys._getframe()), now)
        if not _PAID.get():
            _warn_of_pipeline(sys._getframe())
            _warn(charged, history)
        with _LOCK:
            history.begin(ticket)
        return charged
    except BaseException:  # of warnings that are errors, or an interrupt: nothing was looked at
        history.pending.pop(ticket, None)
        if ledger is not None:
            ledger.settle(entry, "failed")
        raise


def mark_pickled(dataset: str | None) -> None:
    """Note that a pipeline left for another process, or came from one, and no ledger goes with it."""
    with _LOCK:
        _history(dataset_name(dataset)).travels += 1


def _history(name: str) -> DatasetHistory:
    history = _HISTORIES[name] = _HISTORIES.get(name) or DatasetHistory()
    return history


def _warn(charge: FitCharge, known: DatasetHistory) -> None:
    """Warn of fits that no ledger adds up, at the second, fourth, eighth of some data: each certificate says it."""
    account = "" if charge.ledger is None else charge.ledger.account
    together = charge.other_fits()["together"]
    warned = account, charge.fit.bit_length()
    if together is None or warned in known.warned:
        return
    which = "data without a name" if charge.dataset == DEFAULT_DATASET else f"the data {charge.dataset!r}"
    apart = "no ledger limits it" if charge.ledger is None else "this ledger has not paid for all"
    come_to = f"epsilon = {together['epsilon']:.4g} at delta = {together['delta']:.3g}"
    if together["delta"] >= 1:
        come_to = "no known bound"
    warnings.warn(
        f"fit {charge.fit} of this process on {which}: what they tell of a person adds up ({come_to}; the certificate's"
        f" first line), and {apart}."
        " Fix: all fits in `with ppdp.Ledger(epsilon=..., delta=...):`; dataset= for other people.",
        CompositionWarning,
        stacklevel=outside(),
    )
    known.warned.add(warned)


def _warn_of_pipeline(frame: FrameType | None) -> None:
    """Warn of steps of somebody else's pipeline around: they are fitted to the same rows."""
    while frame is not None:
        around = frame.f_locals.get("self") if frame.f_globals.get("__name__") == "sklearn.pipeline" else None
        if len(getattr(around, "steps", ())) > 1:
            warnings.warn(
                "this fit stands in a Pipeline of scikit-learn, and its certificate does not include the other steps."
                " Fix: ppdp.Pipeline.from_sklearn(...) of all steps, or a ppdp.Pipeline with all of them.",
                CompositionWarning,
                stacklevel=outside(),
            )
            return
        frame = frame.f_back


def _search_around(frame: FrameType | None) -> str | None:
    """Name of the outermost estimator or function of a library of searches that called."""
    outermost = None
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        if module.partition(".")[0] in _SEARCH_LIBRARIES and not module.startswith(_NOT_SEARCHING):
            code = frame.f_code
            owner = frame.f_locals.get("self") if code.co_varnames[:1] == ("self",) else None
            outermost = code.co_name if owner is None else type(owner).__name__
        frame = frame.f_back
    return outermost
