"""Copies of what fits on private rows: what a clone keeps, and who pays for the fits of a pickle."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from ppdp.core.domain import Domain
from ppdp.exceptions import LedgerError
from ppdp.privacy.ledger.fits import Charge, charged_to, open_ledger, travelled

__all__ = ["Copied", "Marks", "as_part"]


@dataclass(frozen=True, slots=True)
class Marks:
    """What an estimator remembers beside its parameters and what its fit has released.

    Attributes
    ----------
    promised : Domain, optional
        Facts for which it was planned, and which its next fit must have.
    owed : str, optional
        Account that paid for the fit of which this is a pickled copy; a new fit is charged to it, too.
    charged : Charge, optional
        Who paid for its fit in this process.
    part : bool
        Whether another estimator takes it along in a pickle.
    """

    promised: Domain | None = None
    owed: str | None = None
    charged: Charge | None = None
    part: bool = False


class Copied:
    """Copies, clones and pickles of an estimator with the parameters ``ledger`` and ``dataset``.

    A pickle takes the open ledger along, or counts as a fit that nobody saw. One that is fitted is made to be kept and
    read anywhere, so it only notes the account: it is not fitted again without it.
    """

    ledger: Any
    dataset: Any
    __sklearn_is_fitted__: Any
    _marks = Marks()

    @property
    def marks(self) -> Marks:
        """What it remembers beside parameters and released values."""
        return self._marks

    def mark(self, **marks: Any) -> None:
        """Change some of that."""
        self._marks = replace(self._marks, **marks)

    def __copy__(self) -> Self:
        return self._twin(self.__dict__)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self._twin(copy.deepcopy(self.__dict__, memo))

    def __sklearn_clone__(self) -> Self:
        cloned: Self = super().__sklearn_clone__()  # type: ignore[misc]
        kept = Marks(self.marks.promised, self.marks.owed)
        if kept != Marks():
            cloned._marks = kept
        return cloned

    def _twin(self, state: Mapping[str, Any]) -> Self:
        """A copy in this process, which is not on its way to another one."""
        twin = object.__new__(type(self))
        twin.__dict__ |= state
        return twin

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]
        marks = replace(self.marks, charged=None)
        state["_marks"] = marks
        if self.ledger is not None or marks.part:
            return state
        opened = open_ledger()
        if self.__sklearn_is_fitted__():
            return state if opened is None else {**state, "_marks": replace(marks, owed=opened.account)}
        if opened is None:
            travelled(self.dataset)
        return {**state, "ledger": opened}  # which refuses to be pickled if it is in memory

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[misc]
        if self.marks.part:
            self.mark(part=False)
        elif self.ledger is None and not self._was_paid():
            travelled(self.dataset)

    def _was_paid(self) -> bool:
        """Whether its fit was charged to a ledger."""
        certificate = getattr(self, "certificate_", None)
        issued = None if certificate is None else certificate.record.issued
        return issued is not None and issued.ledger is not None

    def _refuse_to_owe(self) -> None:
        """Refuse to fit a copy without the ledger under which it was pickled.

        Raises
        ------
        LedgerError
            If another one, or none, would be charged.
        """
        inner = getattr(self, "estimator", None)
        owed = self.marks.owed or (inner.marks.owed if isinstance(inner, Copied) else None)
        ledger = charged_to(self.ledger)
        if owed is not None and (ledger is None or ledger.account != owed):
            raise LedgerError(
                f"this fitted copy was pickled in the with-block of the ledger {owed}, and a new fit is charged to it.",
                fix="set_params(ledger=...) in the copy, or send a clone, which takes along a ledger with a path.",
            )


def as_part(estimator: Any) -> Any:
    """An estimator that is pickled as a part of another one, which takes the account along."""
    if not isinstance(estimator, Copied):
        return estimator
    part = copy.copy(estimator)
    part.mark(part=True)
    return part
