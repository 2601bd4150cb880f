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
    ├── PrivacyRefusal            the gate did not pass; its cost was spent           (RuntimeError)
    ├── BudgetExceeded            the ledger refuses an over-spend, before any data   (RuntimeError)
    ├── LedgerError               the ledger cannot be used like that                 (RuntimeError)
    ├── ExportError               a release may not leave like that, or a file is not what it says (ValueError)
    └── CertificateError          a certificate is malformed or does not verify       (ValueError)
        └── SignatureError        a signature is malformed or not one of this certificate and key

An error never holds a value, a count or a name that was read off the private rows.
"""

from __future__ import annotations

from typing import Any, TypeVar

__all__ = [
    "BudgetExceeded",
    "CertificateError",
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
    "UnknownStage",
    "UnsupportedOrder",
]


E = TypeVar("E", bound="PpdpError")


class PpdpError(Exception):
    """Base of all errors of ppdp.

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
        self.message, self.stage, self.fix = message, stage, fix
        text = f"stage {stage!r}: {message}" if stage else message
        super().__init__(f"{text} Fix: {fix}" if fix else text)

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
    """The gate did not pass. The gate's own cost was spent, nothing else was released."""

    code = "refused"


class BudgetExceeded(PpdpError, RuntimeError):
    """The ledger refuses an over-spend, before any row is looked at."""

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
