"""What would help where no route exists, or where what exists is of little use: made from plans, so it needs no data.

It is worked out when somebody reads it, for at most some seconds, so that failing stays fast.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ppdp.core.domain import Domain
from ppdp.core.figures import figure
from ppdp.exceptions import PpdpError
from ppdp.pipeline.planning.plan import Plan

PATIENCE = 2.0  # seconds, unless somebody has more
MOST = 20.0  # larger epsilons promise next to nothing
SHOWN = 4
_STRIDE = 8  # of usual epsilons: somewhat more than a factor of two
# What people write: 24 steps of a tenth in every power of ten (the E24 series).
_STEPS = (10, 11, 12, 13, 15, 16, 18, 20, 22, 24, 27, 30, 33, 36, 39, 43, 47, 51, 56, 62, 68, 75, 82, 91)


@dataclass(frozen=True, slots=True)
class Change:
    """One step left out or replaced, at the same epsilon."""

    words: str
    plan: Plan

    @property
    def strained(self) -> bool:
        """Whether its plan warns of noise or of its gate."""
        return self.plan.strained

    @property
    def noise_scale(self) -> float:
        """Noise of the last step; NaN without one."""
        return math.nan if self.plan.mechanism is None else self.plan.mechanism.noise_scale

    def __str__(self) -> str:
        return f"{self.words}{_noise(self.plan)}{', with the same warning' if self.strained else ''}"


@dataclass(eq=False, repr=False)
class Advice:
    """What would help a pipeline.

    Parameters
    ----------
    pipe : Pipeline
        As it is; never fitted.
    domain : Domain, optional
        Public facts for its plan.
    route : bool
        Whether it has a plan, though one that warns.
    pace : float
        Seconds that its own plan took: where time is short, nothing is begun that would take longer.
    seconds : float, default=2.0
        How long it may look for an answer.

    Attributes
    ----------
    least_epsilon : float or None
        The smallest of usual epsilons above its own at which there is a route; None if none was found up to 20.
    clear_epsilon : float or None
        The smallest at which the plan does not warn that noise drowns the signal, or of its gate.
    changes : tuple of Change
        Single steps to leave out or to replace, those that warn of nothing and have the least noise first.
    """

    pipe: Any
    domain: Domain | None
    route: bool
    pace: float
    seconds: float = PATIENCE
    _plans: dict[float, Plan | None] = field(default_factory=dict, init=False)
    _end: float = field(default=math.inf, init=False)

    def within(self, seconds: float) -> Advice:
        """The same, with so much time for each answer."""
        return Advice(self.pipe, self.domain, self.route, self.pace, seconds)

    @cached_property
    def least_epsilon(self) -> float | None:
        return self._least(lambda plan: not plan.hopeless)

    @cached_property
    def clear_epsilon(self) -> float | None:
        return self._least(lambda plan: not plan.strained)

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        found = []
        self._begin()
        for words, steps in self._variants():
            if not self._time_is_left:
                break
            plan = self._planned(steps=steps)
            if plan is not None and not plan.hopeless:
                found.append(Change(words, plan))
        return tuple(sorted(found, key=lambda change: (change.strained, change.noise_scale)))

    def _variants(self) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
        """The steps with one of them replaced or left out."""
        steps = list(self.pipe.steps)
        for i, (name, step) in enumerate(steps):
            if not hasattr(step, "instead"):
                continue
            for words, other in step.instead():
                yield f"{words} for {name!r}", [*steps[:i], (name, other), *steps[i + 1 :]]
            if len(steps) > 1:
                yield f"no {name!r}", [*steps[:i], *steps[i + 1 :]]

    def _least(self, good: Callable[[Plan], bool]) -> float | None:
        """The first of usual epsilons whose plan is good: in strides, then by bisection."""
        usual = _usual(float(self.pipe.epsilon))
        self._begin()
        places = [*range(0, len(usual), _STRIDE), *range(len(usual))[-1:]]
        high = next((at for at in places if self._time_is_left and self._good(usual[at], good)), None)
        if high is None:
            return None
        low = max(high - _STRIDE + 1, 0)
        while low < high and self._time_is_left:
            middle = (low + high) // 2
            low, high = (low, middle) if self._good(usual[middle], good) else (middle + 1, high)
        return usual[high]

    def _good(self, epsilon: float, good: Callable[[Plan], bool]) -> bool:
        if epsilon not in self._plans:
            self._plans[epsilon] = self._planned(epsilon=epsilon)
        plan = self._plans[epsilon]
        return plan is not None and good(plan)

    def _begin(self) -> None:
        self._end = time.monotonic() + self.seconds

    @property
    def _time_is_left(self) -> bool:
        return time.monotonic() + self.pace < self._end

    def _planned(self, **changes: Any) -> Plan | None:
        """The plan of the pipeline with changes; None if it has none."""
        pipe = type(self.pipe)(**{**self.pipe.get_params(deep=False), **changes})
        try:
            plan: Plan = pipe.plan_for(self.domain)
        except PpdpError:
            return None
        return plan

    def __str__(self) -> str:
        if self.pace > self.seconds:
            return f"One plan takes {self.pace:.0f} s here: .advice.within(seconds=...) looks for what would help."
        own, helpful = float(self.pipe.epsilon), "; ".join(map(str, self.changes[:SHOWN]))
        return f"{self._larger()} At epsilon = {own:g}: {helpful or 'no change of a single step helps'}.".strip()

    def _larger(self) -> str:
        """What a larger epsilon gives; nothing is said where it is beyond the usual ones."""
        if not _usual(float(self.pipe.epsilon)):
            return ""
        clear, least = self.clear_epsilon, None if self.route else self.least_epsilon
        first = f"The smallest epsilon with a route is {least:g}{_noise(self._plans[least])}" if least else ""
        if clear is None:
            return f"{first or f'No epsilon up to {MOST:g} was found to help'}."
        told = f"epsilon = {clear:g}{_noise(self._plans[clear])}"
        if least is None:
            return f"From {told} on there is no such warning."
        return f"{first}." if least == clear else f"{first}; from {told} on it is a good one."

    __repr__ = __str__

    def __reduce__(self) -> Any:
        """A copy in another process has none."""
        return type(None), ()


def _usual(epsilon: float) -> list[float]:
    """Epsilons that people write, above this one."""
    if not 0 < epsilon < MOST:
        return []
    powers = range(math.floor(math.log10(epsilon)) - 1, 1)
    found = [float(f"{step}e{power}") for power in powers for step in _STEPS]
    return [*(one for one in found if epsilon < one < MOST), MOST]


def _noise(plan: Plan | None) -> str:
    """Its noise in words."""
    if plan is None or plan.mechanism is None:
        return ""
    return (
        f" (noise {figure(plan.mechanism.noise_scale, 3)} on values up to {figure(plan.mechanism.question.bound, 3)})"
    )
