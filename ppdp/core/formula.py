"""Formulas by id: the one place where planning and verification meet.

A certificate names the formula of every step and its public parameters; ``verify`` looks the same id up
here and computes again. A formula is a pure function of plain numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, TypeVar, overload

from ppdp.core.checks import choice, shown
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.names import is_again, shipped, slips
from ppdp.exceptions import CertificateError, InvalidParameter, UnknownParameter

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

GAUSSIAN, LAPLACE, CHOICE, FLIPS = "Gaussian", "Laplace", "random choice", "random flips"
EXACT_LAWS = (LAPLACE, CHOICE, FLIPS)
"""Laws of noise, by the names that pages give them."""
WAYS = "public", "noisy", "exact"
"""How a stage goes: by public parameters only, fitted from released statistics, or on the rows without noise."""


@dataclass(frozen=True, slots=True)
class Formula:
    """A proved bound."""

    kind: ClassVar[str]
    id: str  # as written in certificates; its meaning never changes
    page: str  # page of ``docs/theory`` with statement and proof
    function: Callable[..., Any]  # the computation, ``function(domain, distance, **parameters)``
    used_by: tuple[str, ...] = ()  # classes that may claim it; empty if any may

    def __call__(self, domain: Domain, distance: Distance, **parameters: Any) -> Any:
        """Compute the bound."""
        return self.function(domain, distance, **parameters)

    def is_of(self, name: str) -> bool:
        """Whether a class of this name may claim it."""
        return not self.used_by or name in self.used_by

    @property
    def shipped(self) -> bool:
        """Whether it is one of ppdp's own."""
        return shipped(self.function)


@dataclass(frozen=True, slots=True)
class Stability(Formula):
    """The stability map of a stage: domain and distance behind it."""

    kind: ClassVar[str] = "stability"
    way: str = "public"  # one of WAYS
    # ``assumes(domain, **parameters)``, the ids of the margins that it rests on.
    assumes: Callable[..., set[str]] = lambda domain, **_: set()
    # Statistics that a noisy stage is fitted from, or that an exact one predicts with once it is released; any one of
    # them will do. Empty if the map of a new row needs none.
    releases: tuple[str, ...] = ()
    fitted: bool = True  # for an exact mode: whether the map of a new row depends on the private rows
    # ``affine(**parameters)``, whether released moments can be carried through it.
    affine: Callable[..., bool] = lambda **_: False
    gaps: bool = False  # whether rows at its input may have gaps
    # Whether it says itself what is known of each row that moved; what others are given is forgotten.
    entrywise: bool = False
    # Whether its stage maps every row by itself, by statistics of the rows at most, and keeps rows matched as they are:
    # then it may act on one group of columns (``docs/theory/column-groups.md``).
    row_by_row: bool = False

    def __call__(self, domain: Domain, distance: Distance, **parameters: Any) -> Any:
        """Compute the bound; what the stage before has proved of sums is lost, and mostly what it has of moves."""
        known = distance.moves if self.entrywise else None
        return self.function(domain.in_groups(()) if domain.groups else domain, distance.moving(known), **parameters)

    def takes_gaps(self, domain: Domain) -> bool:
        """Whether rows have no more gaps here than its stage takes."""
        return self.gaps or not domain.missing_rows


@dataclass(frozen=True, slots=True)
class Release(Formula):
    """The L2 sensitivity of a released statistic, or what stands for it where choices are released."""

    kind: ClassVar[str] = "release"
    law: str = GAUSSIAN  # of its noise; choices cost as much as Gaussian noise of this sensitivity and scale
    rounded: int = 1  # for each number that is released, of how many the rounding is charged
    # ``differing(distance, **parameters)``, to how many of its numbers noise is added that is not the same on both
    # sides, where that is not all of them.
    differing: Callable[..., int] | None = None
    # ``failure(domain, distance, noise_scale, threshold, **parameters)``, where something is released only above a
    # threshold: the probability that it is something of which the other dataset has nothing. None if nothing can fail.
    failure: Callable[..., float] | None = None

    def draws(self, distance: Distance, size: int, parameters: Mapping[str, Any]) -> int:
        """How many drawn numbers can have another law on the other side, for the sampler's part of delta."""
        return size if self.differing is None else self.differing(distance, **parameters)

    def lattice(self, distance: Distance, size: int, parameters: Mapping[str, Any]) -> int:
        """Of how many numbers the rounding is charged."""
        return self.rounded * self.draws(distance, size, parameters)

    def threshold(
        self, domain: Domain, distance: Distance, noise_scale: float, failure: float, parameters: Mapping[str, Any]
    ) -> float | None:
        """The least threshold with at most this probability of a failure; None if nothing can fail."""
        if self.failure is None:
            return None
        sane(0 < failure < 1)
        low, high = 0.0, distance.one_sided + distance.moved + noise_scale
        while self.failure(domain, distance, noise_scale, high, **parameters) > failure:
            low, high = high, 2 * high
        while high - low > 1e-13 * high:
            middle = (low + high) / 2
            fails = self.failure(domain, distance, noise_scale, middle, **parameters) > failure
            low, high = (middle, high) if fails else (low, middle)
        return high


@dataclass(frozen=True, slots=True)
class Margin(Formula):
    """What one unit of the margin of a condition is: how much one neighbouring pair can change what is measured."""

    kind: ClassVar[str] = "margin"
    name: str = ""  # what the condition is called, such as ``"eigengap"``
    # ``statement(domain, **parameters)``, what is assumed, from the parameters of the stage's formula.
    statement: Callable[..., str] | None = None
    # ``largest(domain, unit, **parameters)``, the largest margin that any data can have.
    largest: Callable[..., float] | None = None
    # For a measured quantity less a public threshold: ``level(domain, unit, **parameters)``, the threshold in rows.
    # Without it margins of different thresholds are different functions of the rows.
    level: Callable[..., float] | None = None
    # The parameters that follow from that threshold, its own name first; no other changes the measured quantity.
    threshold: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer(Formula):
    """What is proved of the answers of a mechanism."""

    # ``shape(domain, **parameters)``, how many numbers an answer has, and a public bound on each.
    shape: Callable[..., tuple[int, float]] | None = None
    steps: Callable[..., int] | None = None  # ``steps(domain, **parameters)``, how many answers its parameters mean
    # Where several arrays are released: ``arrays(domain, steps, size, **parameters)``, their shapes by name.
    arrays: Callable[..., dict[str, list[int]]] | None = None
    predicts: bool = False  # whether new rows are mapped through the stages before it
    gaps: bool = False  # whether rows at its input may have gaps
    hides_iterates: bool = False  # whether of all its answers one iterate is released
    by_position: bool = False  # whether the order of the rows must not come from what they hold
    rows: bool = False  # whether the rows themselves are released, in their places
    unseeded: bool = False  # whether its randomness must be nobody's to know beforehand, so that a seed is refused
    # ``told(names, **parameters)``, what is in its answer, of columns with these names, in words.
    told: Callable[..., str] | None = None
    tells: str = ""  # what it does with the rows at its input, in words, where that is no plain answer to a question
    # What is taken on somebody else's word, so that a certificate is CONDITIONAL; ``relies(**parameters)``, where it
    # depends on them.
    relies: str | Callable[..., str] = ""
    # The stability formula that must stand directly in front, with the same parameters, because it assumes of the rows
    # what is needed here; empty if nothing is.
    behind: str = ""
    # ``counts(**parameters)``, where counts of rows are in its answer: how many rows noise of scale 1 is there.
    counts: Callable[..., float | None] | None = None
    # ``draws(domain, **parameters)``, how many numbers are drawn, where that is not one for every number answered.
    draws: Callable[..., int] | None = None

    def assumed(self, parameters: Mapping[str, Any]) -> str:
        """What is taken on somebody else's word with these parameters; empty if nothing is."""
        return self.relies(**parameters) if callable(self.relies) else self.relies


@dataclass(frozen=True, slots=True)
class MechanismSensitivity(Answer):
    """The L2 sensitivity of one answer of a Gaussian mechanism."""

    kind: ClassVar[str] = "mechanism"
    # ``each(domain, distance, **parameters)``, the sensitivity of every answer, where they are not all the same; the
    # formula is then the root of their mean square.
    each: Callable[..., list[float]] | None = None


@dataclass(frozen=True, slots=True)
class PrivacyMap(Answer):
    """The privacy loss of any other mechanism, ``function(domain, distance, noise_scale=..., **parameters)``."""

    kind: ClassVar[str] = "privacy"
    law: str = ""  # by which law noise is drawn, in words; pages say nothing of a law that is not named here


KINDS = {record.kind: record for record in (Stability, Release, Margin, MechanismSensitivity, PrivacyMap)}

AT = "@"
"""Stands between the name of a formula or statistic and that of the group of columns that it is taken of."""


def of_group(name: str) -> str:
    """The same in words: a formula or statistic, and of which group of columns it is.

    >>> of_group("means@numbers"), of_group("means")
    ("means of 'numbers'", 'means')
    """
    inner, at, group = name.partition(AT)
    return f"{inner} of {group!r}" if at else name


class OfGroups(dict[str, T]):
    """What is known by name, and the same for one group of columns, as ``"name@group"``."""

    of_group: Callable[[T, str], T]

    def __missing__(self, name: str) -> T:
        inner, at, group = name.partition(AT)
        if not (at and group and inner in self):
            raise KeyError(f"{name!r} is none of {', '.join(self)}")
        return self.of_group(self[inner], group)

    def get(self, name: str, default: Any = None) -> Any:
        """The entry, or what is given instead."""
        try:
            return self[name]
        except KeyError:
            return default


FORMULAS: OfGroups[Formula] = OfGroups()
"""Every formula that a certificate may name, by its id."""


def formula(name: str, /, *, kind: str, page: str, **facts: Any) -> Callable[[F], F]:
    """Register a function as the formula with this id, proved on ``docs/theory/<page>.md``.

    ``facts`` are further attributes of the record that it becomes: :class:`Stability`, :class:`Release`,
    :class:`Margin`, :class:`MechanismSensitivity` or :class:`PrivacyMap`, by its kind.

    Raises
    ------
    InvalidParameter
        If another function has this name, or a fact is none. A function of yours may be defined again under its name,
        as a cell of a notebook is; what ppdp ships may not.
    """
    record = KINDS[choice(f"kind of {name!r}", kind, KINDS)]
    _check_facts(name, record, page, facts)

    def register(function: F) -> F:
        known = FORMULAS.get(name)
        if known is not None and not is_again(function, known.function):
            what = f"the formula {name!r} exists already, in {known.function.__module__}."
            raise InvalidParameter(what, fix="another name: what certificates call by this one never changes.")
        FORMULAS[name] = record(name, page, function, **facts)
        return function

    return register


def _check_facts(name: Any, record: type[Formula], page: Any, facts: Mapping[str, Any]) -> None:
    """Refuse what a record of this kind cannot say, before anything is planned with it."""
    known = [one.name for one in fields(record) if one.name not in ("id", "page", "function")]
    if unknown := [fact for fact in facts if fact not in known]:
        what = f"a formula of kind {record.kind!r} has no fact {unknown[0]!r}."
        raise UnknownParameter(what, fix=slips(unknown, known) or f"one of {', '.join(known)}.")
    choice(f"way of {name!r}", facts.get("way", "public"), WAYS)
    for what, text in (("the name of a formula", name), ("page", page)):
        if not isinstance(text, str) or not text or AT in text:
            fix = "such as 'own.mirror'." if text is name else "the name of its page of proofs, without '.md'."
            raise InvalidParameter(f"{what} must be text without {AT!r}, got {shown(text)}.", fix=fix)
    for fact in facts.keys() & {"used_by", "releases", "threshold"}:
        if not isinstance(facts[fact], tuple) or not all(isinstance(one, str) for one in facts[fact]):
            what = f"{fact} of {name!r} must be a tuple of names, got {shown(facts[fact])}."
            raise InvalidParameter(what, fix=f"{fact}=('Name',), in quotes and with the comma.")


def drawn_exactly(name: str) -> bool:
    """Whether a mechanism's noise has exactly the law of the theory, so that no delta is set aside for its sampler."""
    return getattr(FORMULAS.get(name), "law", "") in EXACT_LAWS


def draws_that_count(
    name: str, domain: Domain, distance: Distance, *, steps: int, size: int, parameters: Mapping[str, Any] | None = None
) -> int:
    """How many drawn numbers can have another law on the other side: not those of equal rows in the same places."""
    if drawn_exactly(name):
        return 0
    draws = getattr(FORMULAS.get(name), "draws", None)
    if draws is not None:
        return int(draws(domain, **(parameters or {})))
    slots = math.ceil(min(distance.by_position().changed, domain.n))
    return min(steps * size, slots * domain.d) if getattr(FORMULAS.get(name), "rows", False) else steps * size


def sane(holds: bool) -> None:
    """Refuse parameters for which a bound means nothing, in certificates that anybody may have written."""
    if not holds:
        raise CertificateError("the parameters of a formula are impossible.")


def whole(*counts: Any) -> bool:
    """Whether these are whole numbers; half a row or band means nothing."""
    return all(type(count) is int for count in counts)


@overload
def lookup(name: str, kind: Literal["stability"]) -> Stability: ...
@overload
def lookup(name: str, kind: Literal["margin"]) -> Margin: ...
@overload
def lookup(name: str, kind: Literal["release"]) -> Release: ...
@overload
def lookup(name: str, kind: Literal["mechanism", "privacy"]) -> Answer: ...
@overload
def lookup(name: str, kind: str) -> Formula: ...
def lookup(name: str, kind: str) -> Formula:
    """The formula of this name and kind; :class:`CertificateError` if there is none."""
    found = FORMULAS.get(name)
    if found is None or found.kind != kind:
        fix = "import the module that registers it, or use the ppdp version that issued the certificate."
        what = f"no {kind} formula is called {name!r}; one of your own needs its module (verify --import MODULE)."
        raise CertificateError(what, fix=slips([name], FORMULAS) or fix)
    return found
