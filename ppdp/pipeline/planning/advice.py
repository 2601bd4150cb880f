"""What would help where no route exists, or where what exists is of little use: made from plans, so it needs no data.

A larger epsilon and more rows are looked for among plans. A step changes in which units the noise is, so a step is only
advised to be left out or replaced where that was tried: on simulated rows, the same for both, of wide and of narrow
columns. It is worked out when somebody reads it, for at most some seconds, so that failing stays fast.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ppdp.core.domain import Domain
from ppdp.core.figures import figure
from ppdp.exceptions import PpdpError
from ppdp.pipeline.forecast import Run, guessing, scorable, trial_scores
from ppdp.pipeline.planning.plan import Plan

PATIENCE = 2.0  # seconds, unless somebody has more
MOST = 20.0  # larger epsilons promise next to nothing
SHOWN = 4
_GAIN = 0.05  # of a score, at least, over what guesses and, with twice the error of the trial, over what there is
_LARGEST = 1_000_000  # cells of simulated rows that are tried
_STRIDE = 8  # of usual epsilons: somewhat more than a factor of two
# What people write: 24 steps of a tenth in every power of ten (the E24 series).
_STEPS = (10, 11, 12, 13, 15, 16, 18, 20, 22, 24, 27, 30, 33, 36, 39, 43, 47, 51, 56, 62, 68, 75, 82, 91)


@dataclass(frozen=True, slots=True)
class StepChange:
    """One step left out or replaced, at the same epsilon."""

    words: str  # which one
    plan: Plan  # that then follows; it warns of nothing
    # Of a model on simulated rows, with the change and without it, where it gains least. Without a route it is
    # compared with guessing. None of what is no model, where there is no route without the change.
    scores: tuple[float, float] | None

    @property
    def gain(self) -> float:
        """By how much the score is higher."""
        return 0.0 if self.scores is None else self.scores[0] - self.scores[1]

    def __str__(self) -> str:
        if self.scores is None:
            return self.words
        return f"{self.words} (score {self.scores[0]:.2g} instead of {self.scores[1]:.2g} on simulated rows)"


@dataclass(eq=False, repr=False)
class Advice:
    """What would help a pipeline."""

    pipe: Any  # as it is; never fitted
    domain: Domain | None  # public facts for its plan
    route: bool  # whether it has a plan, though one that warns
    pace: float  # seconds that its own plan took: where time is short, nothing is begun that would take longer
    plan: Callable[[Any, Domain | None], Plan]  # how a pipeline is planned for public facts
    seconds: float = PATIENCE  # how long it may look for an answer
    by_epsilon: bool = True  # whether it is news that no larger epsilon helps: not where the order of steps is wrong
    run: Run | None = None  # how a pipeline is fitted to simulated rows; without it no step is advised
    _plans: dict[tuple[str, float], Plan | None] = field(default_factory=dict, init=False)
    _end: float = field(default=math.inf, init=False)

    def within(self, seconds: float) -> Advice:
        """The same, with so much time for each answer."""
        return Advice(self.pipe, self.domain, self.route, self.pace, self.plan, seconds, self.by_epsilon, self.run)

    @cached_property
    def least_epsilon(self) -> float | None:
        """The smallest of usual epsilons above its own at which there is a route; None if there is none up to 20."""
        return self._least("epsilon", _usual(float(self.pipe.epsilon)), lambda plan: not plan.unpassable_gates)

    @cached_property
    def clear_epsilon(self) -> float | None:
        """The smallest at which the plan warns neither of noise nor of its gate."""
        return self._least("epsilon", _usual(float(self.pipe.epsilon)), lambda plan: not plan.has_warnings)

    @cached_property
    def clear_rows(self) -> int | None:
        """The smallest of usual numbers of rows, up to a thousand times its own, at which it does not."""
        n = None if self.domain is None else self.domain.n_rows
        rows = self._least("n_rows", [] if n is None else _more(n), lambda plan: not plan.has_warnings)
        return None if rows is None else int(rows)

    @cached_property
    def changes(self) -> tuple[StepChange, ...]:
        """Single steps to leave out or to replace that were tried and help, those that gain most first."""
        helpful = []
        self._begin()
        for words, steps in self._variants():
            if not self._time_is_left:
                break
            plan = self._planned(steps=steps)
            if plan is not None and not plan.has_warnings and (change := self._tried(words, steps, plan)) is not None:
                helpful.append(change)
        return tuple(sorted(helpful, key=lambda change: -change.gain))

    def _tried(self, words: str, steps: list[tuple[str, Any]], plan: Plan) -> StepChange | None:
        """The change, if it helps on simulated rows; where nothing can be scored, if only it gives a route."""
        if not scorable(plan):
            return None if self.route else StepChange(words, plan, None)
        if self.run is None or plan.domain.n * max(plan.domain.d, plan.end[0].d) > _LARGEST:
            return None
        pipes = [
            type(self.pipe)(**{**self.pipe.get_params(deep=False), "steps": given})
            for given in (self.pipe.steps, steps)
        ]
        before, after = (
            trial_scores(pipe.set_params(domain=self.domain), self.run, self.pipe.steps[0][1], self._end)
            for pipe in pipes
        )
        if after is None or not self._time_is_left:
            return None
        before = np.full_like(after, guessing(plan)) if before is None else before
        gains = (after - before).mean(axis=1)
        noise = (after - before).std(axis=1) / math.sqrt(after.shape[1])
        at = int(gains.argmin())
        learns = bool((after.mean(axis=1) > guessing(plan) + _GAIN).all())
        helps = learns and bool((gains > _GAIN + 2 * noise).all())
        return StepChange(words, plan, (float(after[at].mean()), float(before[at].mean()))) if helps else None

    def _variants(self) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
        """The steps with one of them replaced or left out."""
        steps = list(self.pipe.steps)
        for i, (name, step) in enumerate(steps):
            if not hasattr(step, "instead"):
                continue
            for words, replacement in step.instead():
                yield f"{words} for {name!r}", [*steps[:i], (name, replacement), *steps[i + 1 :]]
            if len(steps) > 1 and hasattr(step, "fit_modes"):
                yield f"no {name!r}", [*steps[:i], *steps[i + 1 :]]

    def _least(self, name: str, usual: Sequence[float], good: Callable[[Plan], bool]) -> float | None:
        """The first of these values whose plan is good: in strides, then by bisection."""
        self._begin()
        places = [*range(0, len(usual), _STRIDE), *range(len(usual))[-1:]]
        high = next((at for at in places if self._time_is_left and self._good(name, usual[at], good)), None)
        if high is None:
            return None
        low = max(high - _STRIDE + 1, 0)
        while low < high and self._time_is_left:
            middle = (low + high) // 2
            low, high = (low, middle) if self._good(name, usual[middle], good) else (middle + 1, high)
        return usual[high]

    def _good(self, name: str, value: float, good: Callable[[Plan], bool]) -> bool:
        key = name, value
        if key not in self._plans:
            self._plans[key] = self._planned(**{name: value})
        plan = self._plans[key]
        return plan is not None and good(plan)

    def _begin(self) -> None:
        self._end = time.monotonic() + self.seconds

    @property
    def _time_is_left(self) -> bool:
        return time.monotonic() + self.pace < self._end

    def _planned(self, n_rows: float | None = None, **changes: Any) -> Plan | None:
        """The plan of the pipeline with changes; None if it has none."""
        pipe = type(self.pipe)(**{**self.pipe.get_params(deep=False), **changes})
        domain = self.domain if n_rows is None or self.domain is None else self.domain.but(n_rows=int(n_rows))
        try:
            return self.plan(pipe, domain)
        except PpdpError:
            return None

    def __str__(self) -> str:
        if self.pace > self.seconds:
            return f"One plan takes {self.pace:.0f} s here: .advice.within(seconds=...) looks for what would help."
        epsilon, helpful = float(self.pipe.epsilon), "; ".join(map(str, self.changes[:SHOWN]))
        gives = "it helps to take" if self.route else "there is a route with"
        return f"{self._larger()}{f' At epsilon = {epsilon:g} {gives} {helpful}.' if helpful else ''}".strip()

    def _larger(self) -> str:
        """What a larger epsilon gives, or more rows; nothing is said of an epsilon beyond the usual ones."""
        usual, rows = _usual(float(self.pipe.epsilon)), self.clear_rows
        clear, least = self.clear_epsilon, None if self.route else self.least_epsilon
        more = f"{rows:,} rows" if rows else ""
        if clear is None and least is None:
            none = f"No epsilon up to {MOST:g} was found to help." if usual and self.by_epsilon else ""
            return f"{none} {f'{more} would do.' if rows else ''}".strip()
        first = "" if least is None else f"The smallest epsilon with a route is {least:g}{self._noise_at(least)}"
        if clear is None:
            return f"{first}; {more} would do." if rows else f"{first}."
        clear_from = f"epsilon = {clear:g}{self._noise_at(clear)}{f', or {more},' if rows else ''} on"
        if least is None:
            return f"From {clear_from} there is no such warning."
        return f"{first}." if least == clear and not rows else f"{first}; from {clear_from} it is a good one."

    def _noise_at(self, epsilon: float) -> str:
        return _noise(self._plans[("epsilon", epsilon)])

    __repr__ = __str__

    def __reduce__(self) -> Any:
        """A copy in another process has none."""
        return type(None), ()


def _usual(epsilon: float) -> list[float]:
    """Epsilons that people write, above this one."""
    if not 0 < epsilon < MOST:
        return []
    powers = range(math.floor(math.log10(epsilon)) - 1, 1)
    usual = [float(f"{step}e{power}") for power in powers for step in _STEPS]
    return [*(one for one in usual if epsilon < one < MOST), MOST]


def _more(n: int) -> list[float]:
    """Numbers of rows that people write, above this one and up to a thousand times as many."""
    powers = range(len(str(n)) - 2, len(str(n)) + 3)
    usual = [round(float(f"{step}e{power}")) for power in powers for step in _STEPS]
    return [rows for rows in usual if n < rows <= 1000 * n]


def _noise(plan: Plan | None) -> str:
    """Its noise in words."""
    if plan is None or plan.mechanism is None:
        return ""
    return (
        f" (noise {figure(plan.mechanism.noise_scale, 3)} on values up to {figure(plan.mechanism.question.bound, 3)})"
    )
