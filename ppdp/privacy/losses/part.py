"""What a privacy loss is, and what is recorded of one: ``docs/theory/accounting.md``.

Composition, ledger and pages know what a :class:`Loss` is, and no kind. A kind of its own is one subclass of
:class:`Part`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import ppdp.privacy.pld as pld
import ppdp.privacy.renyi as renyi
from ppdp.core.names import is_again
from ppdp.exceptions import InvalidParameter


@dataclass(frozen=True, kw_only=True)
class Loss:
    """Privacy loss of one mechanism, run ``count`` times, each run free to depend on the ones before.

    What is not known of it stays as it is here: it is then composed in the ways that are known.
    """

    count: int = 1
    known_alone: ClassVar[bool] = False  # whether nothing that is composed is below what is known of it alone

    @property
    def pure(self) -> float:
        """Epsilon of all runs at delta 0; infinite if there is none."""
        return math.inf

    def curve(self) -> renyi.Curve | None:
        """Rényi curve of all runs, if there is a good one."""
        return None

    def pure_curve(self) -> renyi.Curve:
        """What purity alone gives: losses within [-ε, ε] have a range of 2ε."""
        return renyi.repeated(renyi.bounded_range_curve(2 * self.pure / self.count), self.count)

    def distribution(self, interval: float) -> pld.LossDistribution | None:
        """Distribution of the privacy loss of all runs on this grid, if there is one."""
        if not math.isfinite(self.pure):
            return None
        return pld.pure_distribution(self.pure / self.count, interval) * self.count

    @property
    def distributed(self) -> bool:
        """Whether there is a distribution; what has none is known by its curve only."""
        return math.isfinite(self.pure) or type(self).distribution is not Loss.distribution

    def epsilon_alone(self, delta: float) -> float:
        """Epsilon of all runs and nothing else at a delta above 0, where that is known better; infinite if not."""
        return math.inf

    def delta_alone(self, epsilon: float) -> float:
        """The same the other way round; 1 if not."""
        return 1.0

    def beside(self, mu: float) -> Loss | None:
        """One loss for both of this and Gaussian releases of parameter ``mu``, where that is better; None if not."""
        return None

    def renyi(self, order: float) -> float:
        """Rényi divergence of all runs at this order; infinite if none is known."""
        curve = self.curve()
        return math.inf if curve is None else curve(order)


class Part(Loss, ABC):
    """A loss that is not Gaussian, as a public recipe: its numbers are recorded, and anybody can compose it again.

    A kind is a dataclass of numbers that names itself; from then on it is known wherever recipes are read::

        @dataclass(frozen=True, kw_only=True)
        class Staircase(Part):
            kind = "staircase"
            epsilon: float

    Attributes
    ----------
    kind : str
        Its name in certificates and ledgers; the meaning of a name never changes.
    count : int
        Runs.
    idealised : str
        What is proved for real numbers only, in words that certificates show; empty if floats are covered.
    """

    kind: ClassVar[str]
    idealised: ClassVar[str] = ""

    def __init_subclass__(cls, **facts: Any) -> None:
        super().__init_subclass__(**facts)
        if "kind" in cls.__dict__:
            known = KINDS.get(cls.kind)
            if known is not None and not is_again(cls, known):
                raise InvalidParameter(f"{cls.kind!r} is the name of {known.__qualname__}.", fix="another kind.")
            KINDS[cls.kind] = cls

    def __post_init__(self) -> None:
        for name in self.facts():
            value = getattr(self, name)
            if hasattr(value, "item"):  # NumPy's numbers would not be written to JSON
                value = value.item()
                object.__setattr__(self, name, value)
            least = 1 if name == "count" else 0
            if not isinstance(value, (int, float)) or not least <= value < math.inf:
                raise InvalidParameter(f"the numbers of a {self.kind!r} part must be finite and not negative.")

    @abstractmethod
    def words(self) -> str:
        """What counts of it, for people."""

    @classmethod
    def facts(cls) -> tuple[str, ...]:
        """Names of its public numbers, as they are recorded: ``count`` first."""
        return "count", *sorted(field.name for field in fields(cls) if field.name != "count")

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return {"kind": self.kind, **{name: getattr(self, name) for name in self.facts()}}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Part:
        """Inverse of :meth:`to_dict`.

        :class:`InvalidParameter` if there is no such kind, or its numbers are others.
        """
        kind, facts = data.get("kind"), {name: value for name, value in data.items() if name != "kind"}
        known = KINDS.get(kind) if isinstance(kind, str) else None
        if known is None or set(facts) != set(known.facts()):
            raise InvalidParameter(f"no part of a privacy loss is {kind!r} with these numbers.")
        return known(**{**facts, "count": int(facts["count"])})

    def describe(self) -> str:
        """One line of its numbers."""
        numbers = ", ".join(f"{name.replace('_', ' ')} {getattr(self, name):.4g}" for name in self.facts()[1:])
        return f"{self.count} x {self.kind} ({numbers})"

    @property
    def times(self) -> str:
        """How often, in words: nothing for once."""
        return "" if self.count == 1 else f"{self.count} times "


KINDS: dict[str, type[Part]] = {}
"""Classes of losses by the word that a certificate names them with."""
