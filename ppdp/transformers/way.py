"""What a stage can do at a given domain and distance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ppdp.bounds import lookup
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.transformers.condition import Condition

__all__ = ["Ask", "Way"]


@dataclass(frozen=True, slots=True)
class Ask:
    """A statistic that a way needs released with noise.

    Attributes
    ----------
    statistic : str
        A key of :data:`~ppdp.data.releases.STATISTICS`, such as "squares" (mean and mean squares), "moment" (the
        second-moment matrix) or "matrix" (that and the mean).
    purpose : {"fit", "predict"}
        Whether the stage itself is fitted from the release, or only its twin at prediction.
    parameters : mapping
        Public parameters of the release formula.
    """

    statistic: str
    purpose: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Way:
    """One way of doing a stage.

    Attributes
    ----------
    name : {"public", "noisy", "exact"}
        Public parameters only; fitted from released statistics; fitted without noise.
    formula : str
        Id of the stability map.
    parameters : mapping
        Its public parameters, plain numbers.
    domain, distance : Domain, Distance
        After the stage.
    conditions : tuple of Condition
        What the map assumes; () is unconditional.
    asks : tuple of Ask
        What must be released.
    affine : bool
        Whether released moments can be carried through the stage.
    """

    name: str
    formula: str
    parameters: Mapping[str, Any]
    domain: Domain
    distance: Distance
    conditions: tuple[Condition, ...] = ()
    asks: tuple[Ask, ...] = ()
    affine: bool = False

    @classmethod
    def by(
        cls,
        name: str,
        formula: str,
        domain: Domain,
        distance: Distance,
        *,
        conditions: tuple[Condition, ...] = (),
        asks: tuple[Ask, ...] = (),
        affine: bool = False,
        **parameters: Any,
    ) -> Way:
        """The way whose output is computed by a registered stability formula."""
        out, far = lookup(formula, "stability")(domain, distance, **parameters)
        return cls(name, formula, parameters, out, far, conditions, asks, affine)
