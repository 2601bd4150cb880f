"""A certificate as frozen records, one for every block of the document; made of a document whose form was checked.

What belongs to a formula (its parameters), to a domain, a distance or a part of the privacy loss stays a mapping that
cannot be changed: these have readers of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from types import MappingProxyType, UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from ppdp.certificate.issue_record import OF_A_CHAIN, OF_THE_ISSUER, Issued, LedgerEntry, Pair, PartOf
from ppdp.core.adjacency import Adjacency
from ppdp.core.formula import AT, of_group

Open = Mapping[str, Any]
T = TypeVar("T")

FIRST, SECOND = "ppdp-certificate/1", "ppdp-certificate/2"
SINCE_SECOND = ("part_of", "search", "issued")
SINCE_THIRD = ("diagnostics", "withheld")
OF_A_FACT = ("source",)  # absent where nobody says from where a fact is
OF_A_THRESHOLD = ("failure", "threshold")  # absent where a release has none
OF_SHARES = ("withheld",)  # absent where shares of altered rows were released, or nothing could be altered
# Absent where there is nothing to warn of.
OF_A_MODEL = "share_left", "single_class", "no_range", "others", "no_slope", "unheld"
OPTIONAL = {*OF_THE_ISSUER, *OF_A_FACT, *OF_A_THRESHOLD, *OF_SHARES, *OF_A_MODEL, *OF_A_CHAIN}


@dataclass(frozen=True, slots=True, kw_only=True)
class FactRecord:
    """A public fact and who said so."""

    name: str
    value: str
    origin: str
    source: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntranceRecord:
    """Domain and distance before the first step."""

    domain: Open
    distance: Open


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionRecord:
    """What a step needs of the rows."""

    name: str
    statement: str
    formula: str
    unit: float
    tested: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """A stage, with domain and distance of what comes out."""

    name: str
    class_: str
    way: str
    formula: str
    parameters: Open
    page: str
    conditions: tuple[ConditionRecord, ...]
    domain: Open
    distance: Open

    @property
    def title(self) -> str:
        """Its name, and what it is, and of which columns."""
        return f"{self.name} ({of_group(self.class_ + self.formula[len(self.formula.partition(AT)[0]) :])}, {self.way})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRecord:
    """A noisy statistic from which stages are fitted."""

    at: int
    statistic: str
    purpose: str
    serves: tuple[str, ...]
    formula: str
    parameters: Open
    page: str
    sensitivity: float
    size: int
    bound: float
    noise_scale: float
    mu: float
    failure: float | None = None
    threshold: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismRecord:
    """The last step."""

    name: str
    class_: str
    formula: str
    parameters: Open
    page: str
    sensitivity: float | None
    steps: int
    size: int
    bound: float
    noise_scale: float
    mu: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """What a certificate would say, had this rung been passed."""

    further: int
    parameters: Open
    mechanism: MechanismRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """The rungs and which of them was passed."""

    rung: int
    rungs: tuple[Rung, ...]

    @property
    def place(self) -> str:
        """Which of them that is, in words."""
        return f"rung {self.rung + 1} of {len(self.rungs)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRecord:
    """The noisy test of all conditions."""

    kind: str
    noise_scale: float
    delta: float
    threshold: float
    rule: str
    mu: float | None
    ladder: Ladder | None
    page: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """Privacy loss of everything together, and what the sampler of the noise needs of delta."""

    mu: float
    failure: float
    allowance: float
    parts: tuple[Open, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Of how many rows something was altered, as a share of all, with noise."""

    kind: str
    column: str | None
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostics:
    """Noisy shares of the rows that the run altered."""

    formula: str
    parameters: Open
    page: str
    sensitivity: float
    size: int
    bound: float
    noise_scale: float
    mu: float | None  # None where the noise is Laplace noise in whole numbers
    shares: tuple[Share, ...]

    @property
    def error(self) -> float:
        """Standard error of each share."""
        return self.noise_scale * (1.0 if self.mu is not None else 2**0.5) / self.bound


@dataclass(frozen=True, slots=True, kw_only=True)
class AlternativeRecord:
    """A route that was weighed."""

    route: str
    noise_scale: float | None
    status: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedRecord:
    """Shapes and hashes of what left; ``single_class`` if a model predicts one class whatever the row is, and the share
    of rows left at most, if stages have left few, columns of ``no_range``, shares of the rows of ``others`` than
    released categories, by column, ``no_slope`` where no coefficient of a regression is clearly other than 0, and what
    is likely held, if ``unheld``: all follow from released numbers.
    """

    names: Mapping[str, tuple[int, ...]]
    sha256: str
    inference: str
    share_left: float | None = None
    single_class: str | None = None
    no_range: tuple[str, ...] | None = None
    others: Mapping[str, float] | None = None
    no_slope: bool | None = None
    unheld: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FitRecord(Pair):
    """What one fit of a search costs."""

    mu: float
    failure: float
    variation: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionRecord:
    """How the best candidate was chosen."""

    rows: int
    rows_per_unit: int
    candidates: int
    temperature: float | None
    scored: int
    noise_scale: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRecord:
    """Everything that a search released."""

    fits: tuple[FitRecord, ...]
    refits: tuple[FitRecord, ...]
    selection: SelectionRecord
    parameters: tuple[Open, ...]
    outcomes: tuple[str, ...]
    best_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The whole document; None is what the first form did not have."""

    schema: str
    status: str
    reasons: tuple[str, ...]
    epsilon: float
    delta: float
    adjacency: str
    rows_per_unit: int
    dataset: str | None
    part_of: PartOf | None = None
    search: SearchRecord | None = None
    facts: tuple[FactRecord, ...]
    entrance: EntranceRecord
    steps: tuple[StepRecord, ...]
    releases: tuple[ReleaseRecord, ...]
    diagnostics: Diagnostics | None = None
    withheld: str | None = None
    gate: GateRecord | None
    mechanism: MechanismRecord | None
    total: Total
    alternatives: tuple[AlternativeRecord, ...]
    warnings: tuple[str, ...]
    invalid: str
    not_covered: tuple[str, ...]
    released: ReleasedRecord
    versions: Mapping[str, str]
    issued: Issued | None = None
    digest: str = ""

    @property
    def neighbours(self) -> Adjacency:
        """Which datasets are neighbours."""
        other = self.entrance.domain.get("adjacency")
        return Adjacency.replace(self.rows_per_unit) if other is None else Adjacency.from_dict(other)

    @property
    def domains(self) -> list[Mapping[str, Any]]:
        """What is known of the rows at the entrance and behind every step."""
        return [self.entrance.domain, *(step.domain for step in self.steps)]

    @property
    def ledger(self) -> LedgerEntry | None:
        """What its ledger said of it; None without one."""
        return None if self.issued is None else self.issued.ledger

    @property
    def conditional(self) -> list[int]:
        """Positions of the steps that have conditions."""
        return [i for i, step in enumerate(self.steps) if step.conditions]

    @property
    def conditions(self) -> tuple[ConditionRecord, ...]:
        """Those of all steps."""
        return tuple(condition for step in self.steps for condition in step.conditions)


def read_as(kind: type[T], document: Any) -> T:
    """A document, or a part of one, as the record of its kind; nothing is converted, so its form is checked before."""
    of_kind: Any = kind
    return cast(T, _reader(of_kind)(document))


@cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    """How a part of a document becomes a record of its kind."""
    inner, origin = get_args(kind), get_origin(kind)
    if layout := _layout(kind):
        readers = [(name, key, _reader(of)) for name, key, of in layout]
        return lambda document: kind(**{name: read(document[key]) for name, key, read in readers if key in document})
    if origin is tuple:
        of_one = _reader(inner[0])
        return lambda document: tuple(map(of_one, document))
    if origin is UnionType:
        of_some = _reader(inner[0])
        return lambda document: None if document is None else of_some(document)
    return _frozen


def written(part: Any) -> Any:
    """What a record is read from: the document, or a block of it."""
    if isinstance(part, (str, float, int)):  # as most parts are
        return part
    kind: Any = type(part)
    if layout := _layout(kind):
        unknown = unknown_to(part.schema) if isinstance(part, Record) else ()
        said = ((name, key, getattr(part, name)) for name, key, _ in layout if name not in unknown)
        return {key: written(value) for name, key, value in said if value is not None or name not in OPTIONAL}
    if isinstance(part, Mapping):
        return {key: written(value) for key, value in part.items()}
    return [written(value) for value in part] if isinstance(part, (list, tuple)) else part


def unknown_to(schema: str) -> tuple[str, ...]:
    """Blocks that an earlier form of the document does not have."""
    return {FIRST: (*SINCE_SECOND, *SINCE_THIRD), SECOND: SINCE_THIRD}.get(schema, ())


@cache
def _layout(kind: Any) -> tuple[tuple[str, str, Any], ...]:
    """Name, key in the document, and type of every field; nothing for what is no record."""
    if not is_dataclass(kind):
        return ()
    types = get_type_hints(kind)
    return tuple((field.name, field.name.rstrip("_"), types[field.name]) for field in fields(kind))


def _frozen(value: Any) -> Any:
    """What nobody can change."""
    if isinstance(value, (str, float, int)):  # most are, and an abstract class takes long to ask
        return value
    if isinstance(value, Mapping):
        return MappingProxyType({key: _frozen(inner) for key, inner in value.items()})
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
