"""Every error that ppdp raises on purpose.

::

    PpdpError                     carries .code (for machines), .stage and .fix (for people)
    ├── InvalidParameter          a public parameter is impossible                    (ValueError)
    │   ├── UnknownStage          a step is not a ppdp transformer or mechanism
    │   ├── ImpossibleBudget      epsilon or delta cannot be met or means nothing
    │   └── UnsupportedOrder      a stage cannot stand where it stands
    ├── InvalidInput              the public form of the data is wrong                (ValueError)
    │   ├── DomainMismatch        declared and actual shape or schema differ
    │   ├── NonNumericData        a column is not numeric                             (TypeError too)
    │   └── InvalidValue          undeclared NaN or infinity, or an undeclared label
    ├── MissingBound              a public bound that the certificate needs is not declared (ValueError)
    ├── MissingBudget             a mechanism was fitted alone without a noise scale  (ValueError)
    ├── NoRoute                   no way through the stages can be certified within the budget (ValueError)
    ├── PrivacyRefusal            the gate did not pass; the charge stays             (RuntimeError)
    ├── StageFailed               a step raised an error of its own on private rows   (RuntimeError)
    ├── BudgetExceeded            the ledger refuses an over-spend, before any data   (no Exception: see there)
    ├── LedgerError               the ledger cannot be used like that                 (RuntimeError)
    ├── ExportError               a release may not leave like that, or a file is not what it says (ValueError)
    └── CertificateError          a certificate is malformed or does not verify       (ValueError)
        └── SignatureError        a signature is malformed or not one of this certificate and key

``CompositionWarning`` is the one warning: fits add up, and nothing keeps their account.

An error never holds a value, a count or a name that was read off the private rows. What it quotes (names of columns, of
files, of steps) is somebody else's, so it is escaped here, once: no message moves the cursor of a terminal.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar
from unicodedata import category

__all__ = [
    "BudgetExceeded",
    "CertificateError",
    "CompositionWarning",
    "DomainMismatch",
    "ExportError",
    "ImpossibleBudget",
    "InvalidInput",
    "InvalidParameter",
    "InvalidValue",
    "LedgerError",
    "MissingBound",
    "MissingBudget",
    "NoRoute",
    "NonNumericData",
    "PpdpError",
    "PrivacyRefusal",
    "SignatureError",
    "StageFailed",
    "UnknownStage",
    "UnsupportedOrder",
    "escaped",
]


E = TypeVar("E", bound="PpdpError")


def escaped(text: str) -> str:
    r"""Every character that is neither printable nor a space as an escape of JSON.

    Examples
    --------
    >>> escaped("clinic" + chr(27) + "[2J")
    'clinic\\u001b[2J'
    """
    return "".join(c if c.isprintable() or category(c) == "Zs" else json.dumps(c)[1:-1] for c in text)


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
    """

    code = "error"

    def __init__(self, message: str, *, stage: str | None = None, fix: str | None = None) -> None:
        self.message, self.stage, self.fix = escaped(message), stage, fix and escaped(fix)
        text = f"stage {stage!r}: {self.message}" if stage else self.message
        super().__init__(f"{text} Fix: {self.fix}" if fix else text)

    def charged(self: E) -> E:
        """The same error of a fit that a ledger has on its account."""
        told = f"{self.message} The ledger counts this fit as spent."
        return type(self)(told, stage=self.stage, fix=self.fix).with_traceback(self.__traceback__)

    def at(self: E, step: str) -> E:
        """The same error with the name of the pipeline's step instead of its class."""
        return type(self)(self.message, stage=step if self.stage else None, fix=self.fix)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.stage, self.fix)


def _rebuild(kind: type[PpdpError], message: str, stage: str | None, fix: str | None) -> PpdpError:
    return kind(message, stage=stage, fix=fix)


class InvalidParameter(PpdpError, ValueError):
    """A public parameter is impossible."""

    code = "invalid-parameter"


class UnknownStage(InvalidParameter, TypeError):
    """A step is neither a ppdp transformer nor a mechanism, or stands in the wrong place."""

    code = "unknown-stage"


class ImpossibleBudget(InvalidParameter):
    """The privacy budget cannot be met, or would mean nothing (delta of 1/n and more)."""

    code = "impossible-budget"


class UnsupportedOrder(InvalidParameter):
    """A stage cannot stand where it stands."""

    code = "unsupported-order"


class InvalidInput(PpdpError, ValueError):
    """The public form of the data is wrong."""

    code = "invalid-input"


class DomainMismatch(InvalidInput):
    """Declared and actual shape or schema differ."""

    code = "domain-mismatch"


class NonNumericData(InvalidInput, TypeError):
    """A column does not hold numbers."""

    code = "non-numeric"


class InvalidValue(InvalidInput):
    """Undeclared NaN or infinity, or an undeclared label."""

    code = "invalid-value"


class MissingBound(PpdpError, ValueError):
    """A public bound that the certificate needs is not declared."""

    code = "missing-bound"


class MissingBudget(PpdpError, ValueError):
    """A mechanism was fitted alone, without a noise scale."""

    code = "missing-budget"


class NoRoute(PpdpError, ValueError):
    """No way through the stages can be certified within the budget."""

    code = "no-route"


class PrivacyRefusal(PpdpError, RuntimeError):
    """The gate did not pass: nothing else was released. A ledger keeps the charge for the whole plan."""

    code = "refused"


class StageFailed(PpdpError, RuntimeError):
    """A step raised an error of its own on private rows; its words may quote them and are not shown."""

    code = "stage-failed"


class BudgetExceeded(PpdpError):
    """The ledger refuses an over-spend, before any row is looked at.

    Like ``KeyboardInterrupt`` it is no ``Exception``: a search that turns errors of fits into scores (``error_score``
    of scikit-learn, ``except Exception`` in a loop of one's own) ends with it and does not go on without the budget.
    """

    code = "budget-exceeded"


class LedgerError(PpdpError, RuntimeError):
    """The ledger cannot be used like that."""

    code = "ledger"


class ExportError(PpdpError, ValueError):
    """A release may not leave like that, or a file is not what it says."""

    code = "export"


class CertificateError(PpdpError, ValueError):
    """A certificate is malformed or does not verify."""

    code = "certificate"


class SignatureError(CertificateError):
    """A signature is malformed, or it is not one of this certificate with this key."""

    code = "signature"


class CompositionWarning(UserWarning):
    """Several fits of this process looked at the same data, and no ledger adds them up."""
