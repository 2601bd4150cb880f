"""A ladder of public thresholds for one condition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from ppdp.exceptions import InvalidParameter

MOST_RUNGS = 20


@dataclass(frozen=True, slots=True)
class Ladder:
    """Public values for one threshold of one step, of which the data decide with one noisy margin.

    ``Pipeline(gate=Ladder("pca__min_gap", (0.4, 0.2, 0.1)))`` tests all three; the tightest value that passes gives the
    bound, and the mechanism gets the noise that this bound needs. Epsilon and delta are the same on every rung.

    Parameters
    ----------
    parameter : str
        As in ``set_params``: the name of a step, two underscores, the name of its parameter.
    values : sequence
        The tightest first.

    Notes
    -----
    **Guarantee** (``docs/theory/gate.md``, Theorem 5): the deltas of gate and mechanism add. The margins of the rungs
    must differ by public numbers only (so does a number of rows, or an eigengap, less its threshold); anything else is
    refused, since one noise does not make several margins private.
    """

    parameter: str
    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.parameter, str) or self.parameter.count("__") != 1:
            raise InvalidParameter("a Ladder needs the name of a step's parameter.", fix="Ladder('pca__min_gap', ...).")
        if not isinstance(self.values, Sequence) or isinstance(self.values, (str, bytes)):
            raise InvalidParameter("the values of a Ladder must be a sequence, the tightest first.")
        if not 2 <= len(self.values) <= MOST_RUNGS:
            raise InvalidParameter(f"a Ladder needs 2 to {MOST_RUNGS} values.")
        object.__setattr__(self, "values", tuple(self.values))

    @property
    def step(self) -> str:
        """Name of the step."""
        return self.parameter.split("__")[0]

    @property
    def name(self) -> str:
        """Name of its parameter."""
        return self.parameter.split("__")[1]

    def stages(self, stages: Sequence[tuple[str, Any]]) -> list[list[tuple[str, Any]]]:
        """The stages of every rung.

        Raises
        ------
        InvalidParameter
            If there is no such step or parameter.
        """
        found = dict(stages).get(self.step)
        if found is None or self.name not in found.get_params(deep=False):
            raise InvalidParameter(
                f"the ladder's parameter {self.parameter!r} is not one of a stage.", fix="name a step before the last."
            )
        return [
            [(key, clone(stage).set_params(**{self.name: value}) if stage is found else stage) for key, stage in stages]
            for value in self.values
        ]
