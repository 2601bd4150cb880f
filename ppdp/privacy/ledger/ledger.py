"""The account of everything spent on the same private data."""

from __future__ import annotations

import html
import json
import math
import os
from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import ppdp.privacy.ledger.privacy_filter as spends
from ppdp.core.adjacency import Adjacency
from ppdp.core.checks import choice, integer, number, path_of, shown
from ppdp.core.domain import Domain
from ppdp.core.names import dataset_name, no_attribute, public_name
from ppdp.exceptions import InvalidParameter, LedgerError, escaped
from ppdp.privacy.ledger.file import Link, Store, Terms, agreed, expect, insert, last_link, links, seen
from ppdp.privacy.ledger.file import settle as settle_entry
from ppdp.privacy.ledger.fit_charging import pop_ledger, push_ledger
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.losses import Part

DELTA = 1e-6  # where what was spent is told if no limit says
_OUTCOMES = ("released", "refused", "failed")


@runtime_checkable
class Planned(Protocol):
    """What a ledger reads off a plan."""

    epsilon: float
    allowance: float
    domain: Domain

    @property
    def loss(self) -> PrivacyLoss:
        """Everything that will be released."""


class Ledger:
    """A record of everything released about the same private data, with or without a limit (a privacy filter).

    Share one ledger between all pipelines that are fitted on the same people, or fit them in its ``with`` block: every
    fit in it is charged, those of searches and folds included. A spend is recorded before any row is looked at and
    never comes back, whatever happens afterwards: copies, clones, folds, worker processes and killed processes neither
    lose nor duplicate one.

    Parameters
    ----------
    path : path-like, optional
        An SQLite file on a local disk, made if it does not exist, with a warning where no limit is given: the path may
        be mistyped. Threads and processes may share it. Without it the account lives in the memory of this process only
        and cannot be pickled.
    epsilon, delta : float, optional
        The limit, for each dataset by itself; give both or neither. An existing file keeps the
        limit it was made with: giving none takes the file's.
    accounting : {"auto", "gaussian", "pure", "renyi"}, optional
        How spends are added up. "gaussian": exact for Gaussian spends; pure ones count as the Gaussian release that
        dominates them. "pure": epsilons add. "renyi": everything, at one order that follows from the limit; Gaussian
        spends lose 5 to 10 % of their mu. "auto", that of a new ledger: the first spend decides between the three,
        and Gaussian and pure ones are kept apart.

    Notes
    -----
    Each spend may be chosen after the outcomes of all before it, its kind included: an account is a privacy filter.
    A limit's delta is divided in advance: 10 % are for gates (all ``delta``), 1 % for imperfect noise (``allowance``),
    the rest for what mechanisms spend; but the first spend is admitted whatever it needs of each. What was spent
    (:meth:`epsilon`) is the limit that would have covered it (``docs/theory/ledger.md``).

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
        accounting: str | None = None,
    ) -> None:
        if isinstance(path, (int, float)):
            raise InvalidParameter("what comes first is a path.", fix="Ledger(epsilon=1.0, delta=1e-5), by name.")
        given = Terms.of(epsilon, delta, "auto" if accounting is None else accounting)
        self._store = Store(None if path is None else _resolved(path), given, accounting)
        self.path = self._store.path
        self.in_block = ""

    @property
    def budget(self) -> tuple[float, float] | None:
        """The limit (epsilon, delta), if there is one."""
        return self._store.terms.limit

    @property
    def accounting(self) -> str:
        """How spends are added up."""
        return self._store.terms.accounting

    @property
    def account(self) -> str:
        """Random public name of the account, on every certificate that is charged to it."""
        return self._store.terms.account

    def block(self, name: str) -> Ledger:
        """The same account for a fit on one block of rows: all that it reserves is charged to that block.

        Blocks are disjoint sets of rows by a public index, such as a year or a site (never by position where rows are
        added or removed, for one of them shifts the others); a neighbouring dataset differs within one block. One row
        is in one block, so the worst block counts, not the sum. What is charged to a block must have looked at no row
        of another one, pre-processing included: where all rows moved, use :mod:`ppdp.privacy.blocks` and charge all of
        them.
        """
        twin = object.__new__(Ledger)
        twin.__dict__ |= self.__dict__ | {"in_block": public_name("block", name)}
        return twin

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
        adjacency: Adjacency | None = None,
        parts: Sequence[Part] = (),
        gate: str = "",
        behind: int | None = None,
    ) -> int:
        """Record a spend before any row is looked at; it counts from now on. Its number is for :meth:`settle`.

        If the total of its dataset would pass the limit, :class:`BudgetExceeded` is raised and nothing is recorded. If
        it cannot be recorded, :class:`LedgerError` is: look at no row then.

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
        adjacency : Adjacency, optional
            Which datasets are neighbours, if it is not that so many rows are replaced.
        parts : sequence of Part
            What is not Gaussian; of another library's release, say, ``ZeroConcentrated(rho=0.1)``.
        gate : str, default=""
            Public name of the gate in front: of its conditions and of the rows it looked at.
        behind : int, optional
            Earlier, released entry of the same ``gate``, whose delta then covers this spend as well. Your word is taken
            that the rows and conditions are the same, and that this is run only because that gate passed: never name
            an entry of another fold or subset.
        """
        mu, delta = number("mu", mu, least=0), number("delta", delta, least=0, most=1)
        at = number("epsilon", epsilon, least=0, most=spends.MOST)
        total_variation = number("allowance", allowance, least=0, most=1) / (1 + math.exp(at))
        unit = adjacency or Adjacency.replace(integer("rows_per_unit", rows_per_unit))
        neighbours = "" if unit.bounded else json.dumps(unit.to_dict())
        behind = None if behind is None else integer("behind", behind)
        name = dataset_name(dataset)
        names = _word("label", label), _word("gate", gate)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        money = mu, 0.0 if behind is not None else delta, total_variation
        words = _recipes(parts), self.in_block, names[1]
        spend = spends.Entry(0, name, names[0], *money, unit.rows, "reserved", now, *words, behind, neighbours)
        with self._store.account() as (database, entries):
            earlier = spends.of_dataset(entries, name)
            spends.refuse_other_units(earlier, spend)
            spends.warn_of_another_case(entries, name)
            if behind is not None:
                spends.refuse_another_gate(earlier, spend, delta)
            for group in spends.groups((*earlier, spend)):
                if spend in group:
                    account = spends.account_for(group, self.accounting, self._store.terms.order)
                    account.amount(group)  # refuses a kind that has no place there
                    if self.budget is not None:
                        spends.refuse_overspend(group, *self.budget, account)
            entries.append(replace(spend, id=insert(database, self._store.terms, spend)))
        return entries[-1].id

    def reserve_all(self, plans: Sequence[Planned], *, dataset: str | None = None, label: str = "") -> int:
        """Record several plans as one spend, before any of them is run; its number is for :meth:`settle`.

        Kinds and parameters that are all fixed before the first outcome compose tightly, in whatever order they are
        run: alone in its account, such a campaign costs what :class:`PrivacyLoss` makes of it. Run exactly these plans,
        each once and without a ledger of their own.
        """
        if not (isinstance(plans, Sequence) and all(isinstance(plan, Planned) for plan in plans)):
            raise InvalidParameter("a campaign needs a list of plans, of pipelines that were not run yet.")
        units = {plan.domain.adjacency for plan in plans}
        if len(units) != 1:
            raise InvalidParameter("a campaign needs plans for one and the same adjacency.")
        loss = sum((plan.loss for plan in plans), PrivacyLoss())
        variation = math.fsum(plan.allowance / (1 + math.exp(min(plan.epsilon, spends.MOST))) for plan in plans)
        return self.reserve(
            mu=loss.mu,
            delta=loss.failure + (1 - loss.failure) * loss.gate,
            allowance=2 * variation,
            parts=loss.parts,
            dataset=dataset,
            label=label,
            adjacency=units.pop(),
        )

    def settle(self, entry_id: int, status: str) -> None:
        """Note, once, that a reservation was ``"released"``, ``"refused"`` or ``"failed"``; the spend stays."""
        choice("status", status, _OUTCOMES)
        number = integer("entry_id", entry_id)
        with self._store.account() as (database, entries):
            entry = entries[number - 1] if number <= len(entries) else None
            if entry is None or entry.status != "reserved":
                raise LedgerError(f"there is no entry {entry_id!r} in this ledger that is still to be settled.")
            settle_entry(database, self._store.terms, entry, status)

    def entries(self, dataset: str | None = None) -> tuple[spends.Entry, ...]:
        """Everything recorded for one dataset, or (``None``) for all, in the order of recording."""
        with self._store.account() as (_, entries):
            return tuple(entries) if dataset is None else spends.of_dataset(entries, dataset_name(dataset))

    def spent(self, dataset: str | None = None) -> PrivacyLoss:
        """Total privacy loss of one dataset, or (``None``) as if all datasets were the same people.

        As if it had all been declared in advance, and on the same rows. Imperfect noise is not in it: its price depends
        on epsilon, and :meth:`epsilon` charges it.
        """
        return spends.composed(self.entries(dataset))

    def epsilon(self, delta: float | None = None, dataset: str | None = None) -> float:
        """Total epsilon at this delta in [0, 1), all included; infinite if delta is too small.

        By default at the limit's delta. Of one dataset, its worst block, or (``None``) as if all datasets were the same
        people.
        """
        if delta is None:
            if self.budget is None:
                what = "an epsilon belongs to a delta, and this ledger has no limit to take it from."
                raise InvalidParameter(what, fix="ledger.epsilon(delta=1e-5).", parameter="delta")
            delta = self.budget[1]
        if number("delta", delta, least=0) >= 1:
            raise InvalidParameter(f"delta must lie in [0, 1), got {delta!r}.", parameter="delta")
        entries = self.entries(dataset)
        if len({entry.dataset for entry in entries}) > 1:
            return self._total(entries, delta)
        return max(self._total(group, delta) for group in spends.groups(entries))

    def _total(self, entries: tuple[spends.Entry, ...], delta: float) -> float:
        try:
            account = spends.account_for(entries, self.accounting, self._store.terms.order)
            return spends.total_epsilon(entries, delta, account)
        except LedgerError:  # kinds that are apart, each on a dataset of its own
            return spends.total_epsilon(entries, delta, None)

    def position(self, entry_id: int, delta: float) -> dict[str, Any]:
        """Where an entry stands, and what all spends of its dataset came to with it.

        The total is told at the limit's delta, or without a limit at ``delta`` times the number of spends; its epsilon
        is None if none covers them. Runs that ended without a release are told apart. Where all are Gaussian and on the
        same rows, the parameter of them together is there, with what no parameter covers.
        """
        entries = self.entries()
        name = entries[entry_id - 1].dataset
        so_far = spends.of_dataset(entries[:entry_id], dataset_name(name))
        at = self.budget[1] if self.budget is not None else min(len(so_far) * delta, 1 - 2**-53)
        counted = spends.groups(so_far)
        total = max(self._total(group, at) for group in counted)
        return {
            "account": self.account,
            "dataset": name,
            "position": len(so_far),
            "epsilon": total if math.isfinite(total) else None,
            "delta": at,
            "limit": None if self.budget is None else dict(zip(("epsilon", "delta"), self.budget)),
            "head": last_link(self.account, entries[:entry_id]),
            "released": 1 + sum(entry.status == "released" for entry in so_far[:-1]),
            **(spends.composed_parameters(counted[0]) if len(counted) == 1 else {}),
        }

    def holds(self, certificate: Any) -> bool:
        """Whether the entry of a certificate is there, and all before it, as they were when it was issued.

        :class:`LedgerError` if the certificate does not name an entry of this account.
        """
        entry = certificate.record.ledger
        if entry is None or entry.head is None:
            raise LedgerError("the certificate names no entry of a ledger, or is of a version that has no link to it.")
        if entry.account != self.account:
            raise LedgerError(f"the certificate is charged to the ledger {entry.account}, and this is {self.account}.")
        return entry.head in links(self.account, self.entries())

    def __enter__(self) -> Ledger:
        """Charge every fit in the block to this ledger, whatever thread it is in, searches and folds included."""
        push_ledger(self)
        return self

    def __exit__(self, *_: object) -> None:
        pop_ledger(self)

    def __len__(self) -> int:
        return len(self.entries())

    def __bool__(self) -> bool:
        return True  # an empty ledger is still a ledger: ``if ledger`` must not skip the account

    def __copy__(self) -> Ledger:
        return self

    __sklearn_clone__ = __copy__

    def __getattr__(self, name: str) -> Any:
        raise no_attribute(self, name)

    def __deepcopy__(self, memo: dict[int, Any]) -> Ledger:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        path = self._store.saved_path()
        return _reopen, (path, self.in_block, self.account, seen(self.account))

    def __repr__(self) -> str:
        place = [] if self.path is None else [f"path={str(self.path)!r}"]
        limit = [] if self.budget is None else ["epsilon={!r}, delta={!r}".format(*self.budget)]
        kind = [] if self.accounting == "auto" else [f"accounting={self.accounting!r}"]
        block = f".block({self.in_block!r})" if self.in_block else ""
        return f"Ledger({', '.join(place + limit + kind)}){block}"

    def __str__(self) -> str:
        """The limit, and what was spent on each dataset."""
        limit, delta = self.budget or (None, DELTA)
        of_limit = "" if limit is None else f" of {limit:g}"
        spent = [
            f"  {escaped(name)}: epsilon {self.epsilon(delta, name):.4g}{of_limit} spent at delta {delta:g},"
            f" {spends.outcomes_in_words(self.entries(name))}"
            for name in sorted({entry.dataset for entry in self.entries()})
        ]
        return "\n".join([repr(self), *(spent or ["  nothing was spent"])])

    def _repr_html_(self) -> str:
        import pandas as pd  # only notebooks need it, workers start without

        entries = self.entries()
        table = pd.DataFrame(entries[-20:], columns=[field.name for field in fields(spends.Entry)])
        caption = html.escape(f"{self!r}: the last of {len(entries)} entries")
        return f"<p>{caption}</p>{table.to_html(index=False)}"


def _reopen(path: str, block: str, account: str | None = None, known: Link = (0, "")) -> Ledger:
    """The ledger of a pickle; those of the first version do not name the account, nor the last entry that was there."""
    if not (os.path.exists(path) and os.path.getsize(path)):
        what = f"the ledger {path!r} is gone; an empty one in its place would forget what was spent."
        raise LedgerError(what, fix="bring the file back, or share its folder with the worker.")
    if account is not None:
        expect(account, known)
    ledger = Ledger(path)
    if account is not None:
        agreed(ledger._store.terms, account)
    return ledger.block(block) if block else ledger


def _resolved(path: Any) -> Path:
    """Where the account lies, whatever the working directory will be."""
    try:
        return path_of("path", path).expanduser().resolve()
    except (ValueError, RuntimeError) as error:
        raise InvalidParameter(f"path must be the path of a file, got {shown(path)}.") from error


def _word(name: str, value: Any) -> str:
    """A public word as it was typed; it may be empty, and is shown but never compared with another dataset's."""
    if value != "":
        public_name(name, value)
    return str(value)


def _recipes(parts: Any) -> str:
    """JSON of what is not Gaussian."""
    if not (isinstance(parts, Sequence) and all(isinstance(part, Part) for part in parts)):
        raise InvalidParameter("parts must be a sequence of Part.")
    return json.dumps([part.to_dict() for part in parts])
