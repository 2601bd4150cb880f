"""What a stability map assumes of the data."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ppdp.bounds import lookup
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.rows import Rows

__all__ = ["Condition"]


@dataclass(frozen=True, slots=True)
class Condition:
    """An assumption, with its distance to failure.

    Attributes
    ----------
    name : str
        Short name, such as ``"eigengap"``.
    statement : str
        What is assumed, in public words.
    formula : str
        Id of the formula that gives ``unit``.
    unit : float
        How much the measured quantity can change along one neighbouring pair, for the incoming Distance.
    largest : float
        The largest margin that any data can have, from public facts.
    measure : callable
        ``measure(rows, unit) -> float``, the margin; see :meth:`margin`.
    """

    name: str
    statement: str
    formula: str
    unit: float
    largest: float
    measure: Callable[[Rows, float], float]

    @classmethod
    def by(
        cls,
        formula: str,
        domain: Domain,
        distance: Distance,
        measure: Callable[[Rows, float], float],
        **parameters: Any,
    ) -> Condition:
        """The condition of a registered margin, for the parameters of the stage's formula."""
        found = lookup(formula, "margin")
        unit = float(found(domain, distance))
        name = found.name or formula
        statement = found.statement(domain, **parameters) if found.statement else name
        largest = found.largest(domain, unit, **parameters) if found.largest and unit else math.inf
        return cls(name, statement, formula, unit, largest, measure)

    def margin(self, rows: Rows | Any) -> float:
        """Lower bound on how many rows must be replaced before the condition fails.

        Changes by at most 1 when one row is replaced (among data on which the earlier conditions
        hold); 0 where the condition fails, and 0 for whatever cannot be measured. Infinite where no replaced rows can
        make the condition fail, or where the number is too large for a float.

        Parameters
        ----------
        rows : Rows or array of shape (n, d)
            The rows at the input of the stage.
        """
        try:
            margin = float(self.measure(Rows.of(rows), self.unit))
        except Exception:
            return 0.0  # an exception raised by private values would be an output
        return 0.0 if math.isnan(margin) else max(0.0, margin)
