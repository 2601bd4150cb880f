"""What is attacked: something that releases, two datasets for it, and what is certified of it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.artefact.description import describe
from ppdp.artefact.members import hashed
from ppdp.audit.confidence import Certified
from ppdp.certificate.issue import content_hash
from ppdp.exceptions import InvalidParameter, PrivacyRefusal
from ppdp.execute import Outcome, execute
from ppdp.gate import Gate
from ppdp.planning.plan import Plan
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.noise import Noise
from ppdp.rows import Rows

__all__ = ["FunctionTarget", "GateTarget", "PlanTarget", "Target", "joined"]

Array = NDArray[np.float64]

_REFUSED = np.zeros(1)
_TEST_DELTA, _TEST_SCALE = 0.05, 0.7  # of a gate that is tested: an error of one row then multiplies what passes


class Target(ABC):
    """Something that releases, with two neighbouring datasets.

    The datasets are made up: many releases of one dataset hide nothing of it.
    """

    name: str

    @property
    @abstractmethod
    def certified(self) -> Certified:
        """What is certified."""

    @property
    @abstractmethod
    def digest(self) -> str:
        """SHA-256 of everything public that decides what is released, both datasets included."""

    @abstractmethod
    def outcome(self, side: int, noise: Noise) -> Array:
        """One run on the left (0) or right (1) dataset.

        The first number tells what happened, 0 for a refusal; the others were released.
        """

    def shift(self) -> Array | None:
        """By how much the released numbers of the two datasets differ, where that is known."""
        return None

    def outcomes(self, side: int, runs: int, noise: Noise) -> Array:
        """Independent runs, shape (runs, 1 + width)."""
        return joined([self.outcome(side, noise)[None, :] for _ in range(runs)])


@dataclass(frozen=True)
class PlanTarget(Target):
    """The execution of a plan, as ``fit`` does it.

    Attributes
    ----------
    name : str
        For people.
    plan : Plan
        What is executed.
    left, right : Rows
        Neighbouring datasets, made up, best those on which it loses most.
    """

    name: str
    plan: Plan
    left: Rows
    right: Rows

    @property
    def certified(self) -> Certified:
        """The plan's loss and its promise."""
        return Certified(self.plan.loss, self.plan.epsilon, self.plan.delta, _sampler(self.plan))

    @property
    def digest(self) -> str:
        """Of the plan and the datasets."""
        return _digest(self.name, self.plan, self.left, self.right)

    def outcome(self, side: int, noise: Noise) -> Array:
        """What was released, or a refusal."""
        try:
            found = _executed(self.plan, (self.left, self.right)[side], noise)
        except PrivacyRefusal:
            return _REFUSED
        return _vector(found)

    def shift(self) -> Array | None:
        """Difference of what is released without noise; None if that is refused, or not Gaussian."""
        if self.plan.loss.parts:
            return None
        left, right = (self.outcome(side, _Silent()) for side in (0, 1))
        return left[1:] - right[1:] if left[0] == right[0] > 0 else None


@dataclass(frozen=True)
class GateTarget(Target):
    """Whether the gate of a plan lets the data pass, with so much noise and delta that one row too many is seen.

    The gate is replaced by one of the same kind and rungs with delta 0.05 and noise of one row; what a margin is, the
    threshold, the noise and the comparison are the plan's own code.

    Attributes
    ----------
    name : str
        For people.
    plan : Plan
        With a gate.
    left, right : Rows
        Neighbouring datasets, made up.
    fails : bool
        Whether a condition (of the rung) is false on one of the two. That is said by whoever makes the datasets and
        not read off the margins, which are under audit. If so, they pass with probability at most delta, and what
        stands behind the gate may then tell them apart: passing counts as telling the side. If not, passing or not
        is one noisy answer.
    rung : int, default=-1
        Of a ladder: the loosest rung that counts; -1 for any.
    """

    name: str
    plan: Plan
    left: Rows
    right: Rows
    fails: bool
    rung: int = -1

    def __post_init__(self) -> None:
        if self.plan.gate is None:
            raise InvalidParameter("a GateTarget needs a plan with a gate.", fix="a stage with a condition.")

    @cached_property
    def tested(self) -> Plan:
        """The plan with the gate that is tested."""
        gate = self.plan.gate
        assert gate is not None
        found = Gate.of(gate.kind, _TEST_SCALE, _TEST_DELTA, adding=gate.adding, n_rows=gate.n_rows, rungs=gate.rungs)
        return replace(self.plan, gate=found)

    @property
    def certified(self) -> Certified:
        """``docs/theory/gate.md``, Theorem 4: delta on a pair that fails, else the loss of the noisy margin."""
        gate, off = self.tested.gate, _sampler(self.plan)
        assert gate is not None
        if self.fails:
            return Certified(PrivacyLoss(gate=_TEST_DELTA), 0.0, _TEST_DELTA, off)
        return Certified(gate.loss, gate.loss.epsilon(_TEST_DELTA), _TEST_DELTA, off)

    @property
    def digest(self) -> str:
        """Of the plan with the gate that is tested, and the datasets."""
        return _digest(f"{self.name} {self.fails} {self.rung}", self.tested, self.left, self.right)

    def outcome(self, side: int, noise: Noise) -> Array:
        """Whether it passed, or which side it was."""
        try:
            found = _executed(self.tested, (self.left, self.right)[side], noise)
        except PrivacyRefusal:
            return _REFUSED
        passed = self.rung < 0 or found.rung <= self.rung
        return np.array([float(passed * (1 + side * self.fails))])


@dataclass(frozen=True)
class FunctionTarget(Target):
    """Anything that releases.

    Attributes
    ----------
    name : str
        For people, and for the digest: a name stands for one function.
    release : callable
        ``release(side, noise)`` with side 0 or 1: the released numbers, None for a refusal.
    loss : PrivacyLoss
        What is claimed.
    delta : float, default=1e-6
        Where epsilon is compared.
    """

    name: str
    release: Callable[[int, Noise], Any]
    loss: PrivacyLoss
    delta: float = 1e-6

    @property
    def certified(self) -> Certified:
        """The loss."""
        return Certified(self.loss, self.loss.epsilon(self.delta), self.delta)

    @property
    def digest(self) -> str:
        """Of name and claim."""
        return _hash(self.name, repr(self.loss), repr(self.delta))

    def outcome(self, side: int, noise: Noise) -> Array:
        """What the function says."""
        found = self.release(side, noise)
        return _REFUSED if found is None else np.append(1.0, np.asarray(found, dtype=np.float64).ravel())


def joined(parts: Sequence[Array]) -> Array:
    """Outcomes one below the other; what fewer numbers were released is filled with zeros."""
    width = max((part.shape[1] for part in parts), default=1)
    if all(part.shape[1] == width for part in parts):
        return np.concatenate(parts)
    return np.concatenate([np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in parts])


class _Silent(Noise):
    """No noise at all, to see what it is added to."""

    def _standard_cells(self, size: int) -> NDArray[np.int64]:
        return np.zeros(size, dtype=np.int64)


def _executed(plan: Plan, rows: Rows, noise: Noise) -> Outcome:
    with np.errstate(all="ignore"):
        return execute(plan, rows, noise)


def _vector(found: Outcome) -> Array:
    """All released numbers behind the rung that was passed."""
    return np.concatenate([[2.0 + found.rung], *(np.ravel(array) for array in found.released.values())])


def _sampler(plan: Plan) -> float:
    """Total variation of everything that is drawn."""
    return plan.allowance / (1 + math.exp(plan.epsilon))


def _digest(name: str, plan: Plan, left: Rows, right: Rows) -> str:
    """Of public numbers and of the datasets, which are made up."""
    ladder = [plan.on(rung) for rung in range(len(plan.rungs))] or [plan]
    arrays = {f"{side}.X": rows.X for side, rows in (("left", left), ("right", right))}
    arrays |= {f"{side}.y": rows.y for side, rows in (("left", left), ("right", right)) if rows.y is not None}
    arrays |= {"left.weight": left.weight, "right.weight": right.weight}
    return _hash(name, *map(_described, ladder), content_hash(arrays))


def _described(plan: Plan) -> str:
    """Everything of a plan that decides what is released and what is certified."""
    steps: list[tuple[str, Any]] = [(step.name, step.stage) for step in plan.steps]
    ways = [(s.way.name, s.way.formula, s.way.parameters, s.way.domain, s.way.distance) for s in plan.steps]
    found: list[Any] = [plan.epsilon, plan.delta, plan.domain, plan.distance, ways, plan.releases, plan.gate, plan.loss]
    if plan.mechanism is not None:
        steps.append((plan.mechanism.name, plan.mechanism.stage))
        found += [plan.mechanism.question, plan.mechanism.noise_scale]
    return f"{describe(steps, None)} {found!r}"


def _hash(*words: str) -> str:
    from importlib.metadata import version

    return hashed("\n".join([version("ppdp"), *words]).encode())
