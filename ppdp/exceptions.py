"""Every error that ppdp raises on purpose.

Each carries a ``code`` for machines, and the ``stage`` and the ``parameter`` concerned and a ``fix`` for people.

An error never holds a value, a count or a name that was read off the private rows. What it quotes (names of columns, of
files, of steps) is somebody else's, so it is escaped here, once: no message moves the cursor of a terminal.
"""

from __future__ import annotations

import json
import sysconfig
import traceback
from functools import partial
from pathlib import Path
from typing import Any, Self
from unicodedata import category

__all__ = [
    "BudgetExceeded",
    "CertificateError",
    "CompositionWarning",
    "DiagnosticWarning",
    "DiskFull",
    "DomainMismatch",
    "ExportError",
    "HeaderWarning",
    "ImpossibleBudget",
    "InvalidInput",
    "InvalidParameter",
    "InvalidValue",
    "LedgerError",
    "MissingBound",
    "MissingBudget",
    "NoRoute",
    "NoiseWarning",
    "NonNumericData",
    "PpdpError",
    "PrivacyRefusal",
    "RowsChanged",
    "SignatureError",
    "StageFailed",
    "UnknownParameter",
    "UnknownStage",
    "UnsupportedOrder",
    "WorkerLost",
    "escaped",
    "said_by",
]


def escaped(text: str) -> str:
    r"""Every character that is neither printable nor a space as an escape of JSON.

    Examples
    --------
    >>> escaped("clinic" + chr(27) + "[2J")
    'clinic\\u001b[2J'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or category(c) == "Zs" else json.dumps(c)[1:-1] for c in text)


def said_by(error: object) -> str:
    """What another library says in an error, on one line.

    Examples
    --------
    >>> said_by(ValueError("two" + chr(10) + "  lines"))
    'ValueError: two lines'
    """
    return " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")


class PpdpError(BaseException):
    """Base of all errors of ppdp; all but :class:`BudgetExceeded` are an ``Exception`` as well.

    Parameters
    ----------
    message : str
        What is wrong, in public words.
    stage : str, optional
        Name of the pipeline step concerned.
    fix : str, optional
        What to change.
    parameter : str, optional
        Name of the parameter concerned: of the step, or of the pipeline or its domain where no step is named.
    """

    code = "error"
    spent = False
    """Whether a ledger counts the fit as spent."""
    advice: Any = None
    """What would help, of a plan that failed: worked out when it is read, from public facts."""
    details: str | None = None
    """Reasons at length, said last: what to do stands before them."""

    def __init_subclass__(cls, *, code: str | None = None) -> None:
        cls.code = code or cls.code

    def __init__(
        self, message: str, *, stage: str | None = None, fix: str | None = None, parameter: str | None = None
    ) -> None:
        self.message, self.stage, self.fix, self.parameter = escaped(message), stage, fix and escaped(fix), parameter
        text = f"stage {stage!r}: {self.message}" if stage else self.message
        super().__init__(f"{text} Fix: {self.fix}" if fix else text)

    def __str__(self) -> str:
        return " ".join(
            [super().__str__(), *(escaped(str(one)) for one in (self.advice, self.details) if one is not None)]
        )

    def charged(self) -> Self:
        """The same error of a fit that a ledger has on its account; said once."""
        if self.spent:
            return self
        error = self._with(message=f"{self.message} The ledger counts this fit as spent.")
        error.spent = True
        return error.with_traceback(self.__traceback__)

    def at(self, step: str) -> Self:
        """The same error with the name of the pipeline's step instead of its class."""
        return self._with(stage=step if self.stage else None)

    def _with(self, **changed: Any) -> Self:
        return type(self)(**{name: getattr(self, name) for name in _GIVEN} | changed)

    def __reduce__(self) -> tuple[Any, ...]:
        kind = partial(type(self), **{name: getattr(self, name) for name in _GIVEN[1:]})
        return kind, (self.message,), {"details": self.details, "spent": self.spent}

    def _render_traceback_(self) -> list[str]:
        """What IPython and notebooks show: the line of the user's that led here, and the words."""
        frames = traceback.extract_tb(self.__traceback__)
        own = [frame for frame in frames if not frame.filename.startswith(_LIBRARIES)]
        shown = own[-1:] or frames[-1:]
        lines = [line.rstrip() for line in traceback.format_list(shown)]
        hidden = len(frames) - len(shown)
        more = (
            [f"  ({hidden} more: import sys, traceback; traceback.print_exception(sys.last_value))"] if hidden else []
        )
        return [*lines, *more, f"{type(self).__name__}: {self}"]


_LIBRARIES = (*(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")), str(Path(__file__).parent))

_GIVEN = ("message", "stage", "fix", "parameter")


class InvalidParameter(PpdpError, ValueError, code="invalid-parameter"):
    """A public parameter is impossible."""


class UnknownParameter(InvalidParameter, TypeError, code="unknown-parameter"):
    """A class or a function has no parameter of this name, or needs one; the fix says what to write in its place."""


class UnknownStage(InvalidParameter, TypeError, code="unknown-stage"):
    """A step is neither a ppdp transformer nor a mechanism, or stands in the wrong place."""


class ImpossibleBudget(InvalidParameter, code="impossible-budget"):
    """The privacy budget cannot be met, or would mean nothing (delta of 1/n and more)."""


class UnsupportedOrder(InvalidParameter, code="unsupported-order"):
    """A stage cannot stand where it stands."""


class InvalidInput(PpdpError, ValueError, code="invalid-input"):
    """The public form of the data is wrong."""


class DomainMismatch(InvalidInput, code="domain-mismatch"):
    """Declared and actual shape or schema differ."""


class NonNumericData(InvalidInput, TypeError, code="non-numeric"):
    """A column does not hold numbers."""


class InvalidValue(InvalidInput, code="invalid-value"):
    """Undeclared NaN or infinity, or an undeclared label."""


class RowsChanged(InvalidInput, code="rows-changed"):
    """Rows that are read in blocks are not those of the last pass over them."""


class WorkerLost(PpdpError, RuntimeError, code="worker-lost"):
    """Workers that held rows were lost, more often than their scheduler allows; nothing was released."""


class DiskFull(PpdpError, RuntimeError, code="disk-full"):
    """There is no room for the private file that rows in blocks are kept in; nothing was released."""


class MissingBound(PpdpError, ValueError, code="missing-bound"):
    """A public bound that the certificate needs is not declared."""


class MissingBudget(PpdpError, ValueError, code="missing-budget"):
    """A mechanism was fitted alone, without a noise scale."""


class NoRoute(PpdpError, ValueError, code="no-route"):
    """No way through the stages can be certified within the budget."""


class PrivacyRefusal(PpdpError, RuntimeError, code="refused"):
    """A private test of the data (the gate, propose-test-release) failed, so nothing else was released.

    A ledger keeps the charge for the whole plan.
    """


class StageFailed(PpdpError, RuntimeError, code="stage-failed"):
    """A step raised an error of its own on private rows; its words may quote them and are not shown."""


class BudgetExceeded(PpdpError, code="budget-exceeded"):
    """The ledger refuses an over-spend, before any row is looked at.

    Like ``KeyboardInterrupt`` it is no ``Exception``: a search that turns errors of fits into scores (``error_score``
    of scikit-learn, ``except Exception`` in a loop of one's own) ends with it and does not go on without the budget.
    """


class LedgerError(PpdpError, RuntimeError, code="ledger"):
    """The ledger cannot be used like that."""


class ExportError(PpdpError, ValueError, code="export"):
    """A release may not leave like that, or a file is not what it says."""


class CertificateError(PpdpError, ValueError, code="certificate"):
    """A certificate is malformed or does not verify."""


class SignatureError(CertificateError, code="signature"):
    """A signature is malformed, or it is not one of this certificate with this key."""


class DiagnosticWarning(UserWarning):
    """A label, category, range, unit, column, id, day or ledger may be another: shares, types or names say so."""


class CompositionWarning(UserWarning):
    """Several fits of this process looked at the same data, and no ledger limits what they tell together."""


class HeaderWarning(UserWarning):
    """Names of columns read as the cells of a row: a certificate would publish the values of the first person."""


class NoiseWarning(UserWarning):
    """The plan of a fit says that what it releases is of little use, for its noise is too large, or keeps a bias."""
