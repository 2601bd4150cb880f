"""Formulas by id: the one place where planning and verification meet.

A certificate names the formula of every step and its public parameters; ``verify`` looks the same id up
here and computes again. A formula is a pure function of plain numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.exceptions import CertificateError

__all__ = ["FORMULAS", "Formula", "formula", "lookup", "sane", "whole"]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Formula:
    """A proved bound.

    Attributes
    ----------
    id : str
        Stable name, as written in certificates. Its meaning never changes.
    kind : {"stability", "release", "margin", "mechanism", "privacy"}
        What it computes: (domain, distance) after a stage; the L2 sensitivity of a release; what one
        unit of a condition's margin is; the L2 sensitivity of one step of a Gaussian mechanism; the privacy loss of
        any other mechanism, ``function(domain, distance, noise_scale=..., **parameters)``.
    page : str
        Page of ``docs/theory`` with statement and proof.
    function : callable
        The computation, ``function(domain, distance, **parameters)``.
    way : str
        For a stability map: the way that it belongs to.
    used_by : tuple of str
        Classes whose formula it is.
    shape : callable, optional
        For a mechanism: ``shape(domain, **parameters)``, how many numbers an answer has, and a public bound on each.
    steps : callable, optional
        For a mechanism: ``steps(domain, **parameters)``, how many answers its parameters mean.
    arrays : callable, optional
        For a mechanism that releases several arrays: ``arrays(steps, size)``, their shapes by name.
    statement : callable, optional
        For a margin: ``statement(domain, **parameters)``, what is assumed, from the parameters of the stage's formula.
    largest : callable, optional
        For a margin: ``largest(domain, unit, **parameters)``, the largest margin that any data can have.
    level : callable, optional
        For a margin that is a measured quantity less a public threshold: ``level(domain, unit, **parameters)``, the
        threshold in rows. Without it margins of different thresholds are different functions of the rows.
    threshold : tuple of str
        The parameters that follow from that threshold, its own name first; no other changes the measured quantity.
    assumes : callable, optional
        For a stability map: ``assumes(domain, **parameters)``, the ids of the margins that it rests on.
    releases : tuple of str
        For a stability map: the statistics that a noisy way is fitted from, or that the twin of an exact way predicts
        with; any one of them will do. Empty if the map of a new row needs none.
    fitted : bool
        For an exact way: whether the map of a new row depends on the private rows.
    affine : callable
        For a stability map: ``affine(**parameters)``, whether released moments can be carried through it.
    gaps : bool
        For a stability map: whether rows at its input may have gaps.
    predicts : bool
        For a mechanism: whether new rows are mapped through the stages before it.
    law : str
        For a privacy loss: by which law noise is drawn, in words; pages say nothing of a law that is not named here.
    hides_iterates : bool
        For a mechanism: whether of all its answers one iterate is released.
    relies : str
        For a mechanism: what it takes on somebody else's word, so that a certificate is CONDITIONAL.
    """

    id: str
    kind: str
    page: str
    function: Callable[..., Any]
    way: str = ""
    used_by: tuple[str, ...] = ()
    shape: Callable[..., tuple[int, float]] | None = None
    steps: Callable[..., int] | None = None
    arrays: Callable[[int, int], dict[str, list[int]]] | None = None
    statement: Callable[..., str] | None = None
    largest: Callable[..., float] | None = None
    level: Callable[..., float] | None = None
    threshold: tuple[str, ...] = ()
    assumes: Callable[..., set[str]] = lambda domain, **_: set()
    releases: tuple[str, ...] = ()
    fitted: bool = True
    affine: Callable[..., bool] = lambda **_: False
    gaps: bool = False
    predicts: bool = False
    law: str = ""
    hides_iterates: bool = False
    relies: str = ""

    def __call__(self, domain: Domain, distance: Distance, **parameters: Any) -> Any:
        """Compute the bound; no stage can keep what the one before it has proved of sums."""
        return self.function(domain, replace(distance) if self.kind == "stability" else distance, **parameters)


FORMULAS: dict[str, Formula] = {}


def formula(
    name: str, *, kind: str, page: str, way: str = "", used_by: tuple[str, ...] = (), **facts: Any
) -> Callable[[F], F]:
    """Register a function as the formula ``name``, proved on ``docs/theory/<page>.md``.

    ``facts`` are further attributes of :class:`Formula`.
    """

    def register(function: F) -> F:
        """Enter the function."""
        FORMULAS[name] = Formula(name, kind, page, function, way, used_by, **facts)
        return function

    return register


def sane(holds: bool) -> None:
    """Refuse parameters for which a bound means nothing.

    Estimators check theirs with better words; this is for certificates that anybody may have written.

    Raises
    ------
    CertificateError
        If they do not hold.
    """
    if not holds:
        raise CertificateError("the parameters of a formula are impossible.")


def whole(*counts: Any) -> bool:
    """Whether these are whole numbers; half a row or band means nothing."""
    return all(type(count) is int for count in counts)


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
