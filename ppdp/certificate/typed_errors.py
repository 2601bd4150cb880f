"""What is told of a document that nobody issued: one typed error, whatever is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from ppdp.exceptions import CertificateError

__all__ = ["broken", "typed"]


class _Verifiable(Protocol):
    def verify(self) -> Any:
        """True in a condition if the document holds."""


Self = TypeVar("Self", bound=_Verifiable)
P = ParamSpec("P")
T = TypeVar("T")


def broken() -> CertificateError:
    """What is told of a document that cannot be read."""
    return CertificateError("the document is broken: no ppdp issued it.", fix="ask `ppdp verify` why.")


def typed(method: Callable[Concatenate[Self, P], T]) -> Callable[Concatenate[Self, P], T]:
    """A method of a certificate; what fails on a document that does not hold is a CertificateError.

    An error on a document that holds stays what it is: it is about the other arguments.
    """

    @wraps(method)
    def read(self: Self, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(self, *args, **kwargs)
        except CertificateError:
            raise
        except Exception:
            if self.verify():
                raise
        raise broken()

    return read
