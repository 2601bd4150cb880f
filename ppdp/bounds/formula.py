"""Formulas by id: the one place where planning and verification meet.

A certificate names the formula of every step and its public parameters; ``verify`` looks the same id up
here and computes again. A formula is a pure function of plain numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from ppdp.exceptions import CertificateError

__all__ = ["FORMULAS", "Formula", "formula", "lookup"]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Formula:
    """A proved bound.

    Attributes
    ----------
    id : str
        Stable name, as written in certificates. Its meaning never changes.
    kind : {"stability", "release", "margin", "mechanism"}
        What it computes: (domain, distance) after a stage; the L2 sensitivity of a release; what one
        unit of a condition's margin is; the L2 sensitivity of one step of a mechanism.
    page : str
        Page of ``docs/theory`` with statement and proof.
    function : callable
        The computation, ``function(domain, distance, **parameters)``.
    """

    id: str
    kind: str
    page: str
    function: Callable[..., Any]

    def __call__(self, *args: Any, **parameters: Any) -> Any:
        """Compute the bound."""
        return self.function(*args, **parameters)


FORMULAS: dict[str, Formula] = {}


def formula(name: str, *, kind: str, page: str) -> Callable[[F], F]:
    """Register a function as the formula ``name``, proved on ``docs/theory/<page>.md``."""

    def register(function: F) -> F:
        """Enter the function."""
        FORMULAS[name] = Formula(name, kind, page, function)
        return function

    return register


def lookup(name: str, kind: str) -> Formula:
    """Find a formula.

    Raises
    ------
    CertificateError
        If there is no such formula of that kind.
    """
    found = FORMULAS.get(name)
    if found is None or found.kind != kind:
        raise CertificateError(f"no {kind} formula is called {name!r}.", fix="use the ppdp version that issued it.")
    return found
