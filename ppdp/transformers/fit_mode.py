"""What a stage can do at a given domain and distance, and what that assumes of the data."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any

from ppdp.bounds import lookup
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import AT, Stability
from ppdp.core.keywords import check_names
from ppdp.data.rows import Rows
from ppdp.data.stream import Stream
from ppdp.exceptions import DiskFull, InvalidInput, WorkerLost

Measure = Callable[[Any, float], float]


@dataclass(frozen=True, slots=True)
class Condition:
    """An assumption, with its distance to failure."""

    name: str  # short, such as "eigengap"
    statement: str  # what is assumed, in public words
    formula: str  # id of the formula that gives ``unit``
    unit: float  # how much the measured quantity can change along one neighbouring pair, for the incoming Distance
    largest: float  # margin that any data can have, from public facts
    measure: Measure  # ``measure(rows, unit) -> float``, the margin

    @classmethod
    def by(cls, formula: str, domain: Domain, distance: Distance, measure: Measure, **parameters: Any) -> Condition:
        """The condition of a registered margin, for the parameters of the stage's formula."""
        record = lookup(formula, "margin")
        unit = float(record(domain, distance))
        name = record.name or formula
        statement = record.statement(domain, **parameters) if record.statement else name
        largest = record.largest(domain, unit, **parameters) if record.largest and unit else math.inf
        return cls(name, statement, formula, unit, largest, measure)

    def margin(self, rows: Rows | Any) -> float:
        """Lower bound on how many rows must be replaced before the condition fails.

        Changes by at most 1 when one row is replaced (among data on which the earlier conditions
        hold); 0 where the condition fails, and 0 for whatever cannot be measured. Infinite where no replaced rows can
        make the condition fail, or where the number is too large for a float.

        Raises
        ------
        InvalidInput, DiskFull, WorkerLost
            If rows in blocks cannot be read, or not all of them.
        """
        streamed = isinstance(rows, Stream)
        try:
            margin = float(self.measure(rows if streamed else Rows.of(rows), self.unit))
        except Exception as error:
            if streamed and isinstance(error, (InvalidInput, DiskFull, WorkerLost)):
                raise
            return 0.0  # an exception raised by private values would be an output
        return 0.0 if math.isnan(margin) else max(0.0, margin)


@dataclass(frozen=True, slots=True)
class StatisticRequest:
    """A statistic that a fit mode needs released with noise: to be fitted from, or to map new rows."""

    statistic: str  # a key of STATISTICS, such as "squares" (mean and mean squares) or "moment" (second moments)
    parameters: Mapping[str, Any] = field(default_factory=dict)  # of the release formula

    @property
    def group(self) -> str:
        """The group of columns that it is of; "" if it is of all."""
        return self.statistic.partition(AT)[2]


@dataclass(frozen=True, slots=True)
class FitMode:
    """One way of fitting a stage, or its public map; what its formula says of it is read there."""

    formula: str  # id of the stability map
    parameters: Mapping[str, Any]  # of it: public, plain numbers
    domain: Domain  # after the stage
    distance: Distance  # after the stage
    conditions: tuple[Condition, ...] = ()  # what the map assumes; () is unconditional
    request: StatisticRequest | None = None  # what must be released
    shared: FitMode | None = None  # instead, where moments that serve it were released before
    longer: FitMode | None = None  # instead, right in front of a last step that clips what rows add by itself

    @property
    def record(self) -> Stability:
        """The proved bound."""
        return lookup(self.formula, "stability")

    @property
    def name(self) -> str:
        """Whether it depends on public parameters only, is fitted from released statistics ("noisy"), or "exact"."""
        return self.record.way

    @property
    def affine(self) -> bool:
        """Whether released moments can be carried through the stage."""
        return self.record.affine(**self.parameters)

    def behind(self, change: Callable[[Domain], Domain]) -> FitMode:
        """The same way, with another domain after it."""
        shared, longer = (way and way.behind(change) for way in (self.shared, self.longer))
        return replace(self, domain=change(self.domain), shared=shared, longer=longer)

    @property
    def scaled_columns(self) -> list[int] | None:
        """Positions of the columns that a scaler of some columns changes; None of all other stages."""
        return self.parameters.get("columns") if self.formula.startswith("scaling.") else None

    @property
    def private(self) -> bool:
        """Whether the map of a new row depends on private rows, without any noise."""
        return self.name == "exact" and self.record.fitted

    @classmethod
    def by(
        cls,
        formula: str,
        domain: Domain,
        distance: Distance,
        *,
        measures: Mapping[str, Measure] | None = None,
        request: StatisticRequest | None = None,
        **parameters: Any,
    ) -> FitMode:
        """The way of a registered formula, from domain and distance at the input; ``measures`` of its margins."""
        record = lookup(formula, "stability")
        try:
            assumed, (out, far) = record.assumes(domain, **parameters), record(domain, distance, **parameters)
        except TypeError:
            check_names(formula, signature(record.function), (domain, distance), parameters, record.function)
            raise
        conditions = tuple(
            Condition.by(margin, domain, distance, measure, **parameters)
            for margin, measure in (measures or {}).items()
            if margin in assumed
        )
        return cls(formula, parameters, out, far, conditions, request)
