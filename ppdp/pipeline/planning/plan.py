"""The plan: everything that is decided before any data are seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.facts import Fact, taken_on_trust
from ppdp.mechanisms.base import Question, behind
from ppdp.pipeline.planning.display import PlanDisplay
from ppdp.pipeline.planning.route import PlannedRelease, PlannedStep
from ppdp.privacy.gate import Gate, certain_share
from ppdp.privacy.loss import PrivacyLoss
from ppdp.transformers.condition import Condition

__all__ = ["Alternative", "Plan", "PlannedMechanism", "Rung", "loss_before", "out_of_reach"]


@dataclass(frozen=True, slots=True)
class PlannedMechanism:
    """The last step with its solved noise; a sensitivity has what adds Gaussian noise to every answer."""

    name: str
    stage: Any
    question: Question
    sensitivity: float | None
    noise_scale: float
    loss: PrivacyLoss

    @property
    def relative_noise(self) -> float:
        """What routes are compared by."""
        return self.noise_scale if self.sensitivity is None else self.sensitivity / self.loss.mu

    @property
    def drowns(self) -> bool:
        """Whether the noise is larger than half of what is asked for."""
        q = self.question
        return q.gaussian and self.noise_scale * math.sqrt(q.size / q.steps) > q.bound / 2


@dataclass(frozen=True, slots=True)
class Alternative:
    """One line of the comparison of routes."""

    route: str
    noise_scale: float | None
    status: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Rung:
    """What one rung of a ladder has of its own."""

    steps: tuple[PlannedStep, ...]
    mechanism: PlannedMechanism
    end: tuple[Domain, Distance]


@dataclass(frozen=True, slots=True, repr=False)
class Plan(PlanDisplay):
    """A route with every bound and every noise scale; needs no data.

    Attributes
    ----------
    epsilon, delta : float
        The end-to-end guarantee the plan keeps.
    domain, distance : Domain, Distance
        At the entrance.
    facts : tuple of Fact
        The public facts with their origins.
    steps : tuple of PlannedStep
        Stages with their ways.
    releases : tuple of PlannedRelease
        Statistics to be released with noise.
    gate : Gate or None
        The test of all conditions.
    mechanism : PlannedMechanism or None
        The last step; None for a pipeline that ends in a transformer.
    end : tuple of (Domain, Distance)
        After the last stage.
    allowance : float
        Part of delta set aside for the noise sampler.
    alternatives : tuple of Alternative
        Every route with its final noise; where there are more than 16, the chosen one, each change of one stage, and
        those on which all stages that can be are exact, or noisy.
    warnings : tuple of str
        What a user should know before spending.
    rungs : tuple of Rung
        Of a ladder, the tightest first; the plan itself shows the last one. () without.
    rung : int
        Which of them the plan shows.
    """

    epsilon: float
    delta: float
    domain: Domain
    distance: Distance
    facts: tuple[Fact, ...]
    steps: tuple[PlannedStep, ...]
    releases: tuple[PlannedRelease, ...]
    gate: Gate | None
    mechanism: PlannedMechanism | None
    end: tuple[Domain, Distance]
    allowance: float
    alternatives: tuple[Alternative, ...]
    warnings: tuple[str, ...]
    rungs: tuple[Rung, ...] = ()
    rung: int = -1

    def on(self, rung: int) -> Plan:
        """The plan on a rung of its ladder, or itself without one."""
        if not self.rungs:
            return self
        own = self.rungs[rung]
        return replace(self, steps=own.steps, mechanism=own.mechanism, end=own.end, rung=rung)

    def with_declared(self) -> Plan:
        """The plan with a fact for every range and constant that a step takes from the user's word."""
        steps = [(step.name, step.stage, step.domain) for step in self.steps]
        last = [(self.mechanism.name, self.mechanism.stage, self.end[0])] if self.mechanism is not None else []
        return replace(self, facts=(*self.facts, *taken_on_trust([*steps, *last])))

    @property
    def conditions(self) -> tuple[tuple[str, Condition], ...]:
        """Every condition with the name of its step."""
        return tuple((step.name, condition) for step in self.steps for condition in step.way.conditions)

    @property
    def hopeless(self) -> tuple[str, ...]:
        """Steps whose conditions leave too small a margin for the gate, whatever the data."""
        return () if self.gate is None else tuple(step.name for step in self.steps if out_of_reach(step, self.gate))

    @property
    def drowned(self) -> bool:
        """Whether the noise of the mechanism is larger than half of what it asks for."""
        return self.mechanism is not None and self.mechanism.drowns

    @property
    def ungated(self) -> bool:
        """Whether conditions are assumed instead of tested."""
        return self.gate is None and bool(self.conditions)

    @property
    def loss(self) -> PrivacyLoss:
        """Everything that is released, composed; on a ladder that of the dearest rung."""
        before = loss_before(self.releases, self.gate)
        if self.rungs:
            mu = math.hypot(before.mu, max(rung.mechanism.loss.mu for rung in self.rungs))
            return PrivacyLoss(mu, before.failure / certain_share(mu))
        if self.mechanism is None:
            return before
        return behind(before, self.mechanism.loss)


def loss_before(releases: Sequence[PlannedRelease], gate: Gate | None) -> PrivacyLoss:
    """Loss of the releases and the gate."""
    test = gate.loss if gate is not None else PrivacyLoss()
    mu = math.sqrt(sum(release.mu**2 for release in releases) + test.mu**2)
    delta = gate.delta if gate is not None else 0.0
    adding = gate is not None and gate.adding
    return PrivacyLoss(mu, delta if adding else 0.0, 0.0 if adding else delta, test.parts)


def out_of_reach(step: PlannedStep, gate: Gate) -> bool:
    """Whether the largest possible margin of a condition is too small for the gate."""
    return any(condition.largest < gate.needed_margin() for condition in step.way.conditions)
