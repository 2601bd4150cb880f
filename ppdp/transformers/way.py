"""What a stage can do at a given domain and distance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ppdp.bounds import lookup
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import Stability
from ppdp.data.rows import Rows
from ppdp.transformers.condition import Condition

__all__ = ["Ask", "Way"]


@dataclass(frozen=True, slots=True)
class Ask:
    """A statistic that a way needs released with noise: to be fitted from, or for its twin at prediction.

    Attributes
    ----------
    statistic : str
        A key of :data:`~ppdp.data.releases.STATISTICS`, such as "squares" (mean and mean squares), "moment" (the
        second-moment matrix) or "matrix" (that and the mean).
    parameters : mapping
        Public parameters of the release formula.
    """

    statistic: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Way:
    """One way of doing a stage; what its formula says of it is read there.

    Attributes
    ----------
    formula : str
        Id of the stability map.
    parameters : mapping
        Its public parameters, plain numbers.
    domain, distance : Domain, Distance
        After the stage.
    conditions : tuple of Condition
        What the map assumes; () is unconditional.
    ask : Ask, optional
        What must be released.
    """

    formula: str
    parameters: Mapping[str, Any]
    domain: Domain
    distance: Distance
    conditions: tuple[Condition, ...] = ()
    ask: Ask | None = None

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
        measures: Mapping[str, Callable[[Rows, float], float]] | None = None,
        ask: Ask | None = None,
        **parameters: Any,
    ) -> Way:
        """The way whose output is computed by a registered stability formula.

        Parameters
        ----------
        formula : str
            Its id.
        domain, distance : Domain, Distance
            At the input.
        measures : mapping, optional
            How to measure the margins that the formula may assume, by id; see :class:`Condition`.
        ask : Ask, optional
            What must be released.
        **parameters
            Those of the formula.
        """
        found = lookup(formula, "stability")
        assumed = found.assumes(domain, **parameters)
        conditions = tuple(
            Condition.by(margin, domain, distance, measure, **parameters)
            for margin, measure in (measures or {}).items()
            if margin in assumed
        )
        out, far = found(domain, distance, **parameters)
        return cls(formula, parameters, out, far, conditions, ask)
