"""What is attacked: something that releases, two datasets for it, and what is certified of it."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ppdp.audit.scores import Score, joined, numbers_of, scores
from ppdp.core.checks import number
from ppdp.core.domain import Domain
from ppdp.data.rows import Array, Rows
from ppdp.data.summary import column_sums
from ppdp.exceptions import InvalidParameter, PrivacyRefusal
from ppdp.pipeline.execute import Outcome, execute
from ppdp.pipeline.planning.plan import Plan
from ppdp.pipeline.search.candidates import select
from ppdp.pipeline.search.plan import Selection
from ppdp.privacy.gate import Gate
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.losses import Pure
from ppdp.privacy.noise.sampler import Noise
from ppdp.testing.answers import RecordingNoise
from ppdp.testing.confidence import Certified, check_claim
from ppdp.testing.neighbours import EXCESS, World, differing, outgrown

_TEST_DELTA, _TEST_SCALE = 0.05, 0.7  # of a gate that is tested: an error of one row then multiplies what passes
_POWERS = {"gaussian": 2, "laplace": 1, "whole-laplace": 1}  # of the distance, by which log-likelihoods fall


class Target(ABC):
    """Something that releases, with two neighbouring datasets.

    The datasets are made up: many releases of one dataset hide nothing of it.
    """

    name: str
    _refused: ClassVar[Array] = np.zeros(1)

    @property
    @abstractmethod
    def certified(self) -> Certified:
        """What is certified."""

    @abstractmethod
    def outcome(self, side: int, noise: Noise) -> Array:
        """One run on the left (0) or right (1) dataset.

        The first number tells what happened, 0 for a refusal; the others were released. Runs must be independent.
        """

    def exact(self) -> tuple[Array, Array, int] | None:
        """What is released of the two datasets without noise, and the power by which it falls, where that is known."""
        return None

    def statistics(self, left: Array, right: Array) -> dict[str, Score]:
        """Functions of an outcome that are tried, made from outcomes on either dataset that are not counted."""
        return scores(left, right, self.exact())

    def outcomes(self, side: int, runs: int, noise: Noise) -> Array:
        """Independent runs, shape (runs, 1 + width), as :func:`~ppdp.audit.scores.joined` puts them together."""
        return joined([self.outcome(side, noise)[None, :] for _ in range(runs)])


@dataclass(frozen=True)
class _PlanTarget(Target):
    """The execution of a plan on two neighbouring datasets of its domain."""

    name: str
    plan: Plan
    left: Rows
    right: Rows

    def __post_init__(self) -> None:
        _check_pair(self.plan, self.left, self.right)

    @property
    def _sampler(self) -> float:
        """Total variation of everything that is drawn."""
        return self.plan.allowance / (1 + math.exp(self.plan.epsilon))

    def _executed(self, plan: Plan, side: int, noise: Noise) -> Outcome | None:
        """What was released; None for a refusal."""
        try:
            with np.errstate(all="ignore"):
                return execute(plan, (self.left, self.right)[side], noise)
        except PrivacyRefusal:
            return None


@dataclass(frozen=True)
class PlanTarget(_PlanTarget):
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

    @property
    def certified(self) -> Certified:
        return Certified(self.plan.loss, self.plan.epsilon, self.plan.delta, self._sampler)

    def outcome(self, side: int, noise: Noise) -> Array:
        """All released numbers, or a refusal."""
        found = self._executed(self.plan, side, noise)
        if found is None:
            return self._refused
        return np.concatenate([[1.0], *(np.ravel(array) for array in found.released.values())])

    def exact(self) -> tuple[Array, Array, int] | None:
        """What is released without noise; None if that is refused, or noise is neither Gaussian nor Laplace's."""
        runs = RecordingNoise(silent=True), RecordingNoise(silent=True)
        left, right = (self.outcome(side, run) for side, run in enumerate(runs))
        powers = {_POWERS.get(one.law, 0) for run in runs for one in run.asked}
        if left[0] != right[0] or left[0] == 0 or powers not in ({1}, {2}) or (powers == {2} and self.plan.loss.parts):
            return None
        return left[1:], right[1:], min(powers)


@dataclass(frozen=True)
class GateTarget(_PlanTarget):
    """Whether the gate of a plan lets the data pass, with so much noise and delta that one row too many is seen.

    The gate is replaced by one of the same kind with delta 0.05 and noise of one row; what a margin is, the
    threshold, the noise and the comparison are the plan's own code.

    Attributes
    ----------
    name, plan, left, right
        As of a :class:`PlanTarget`; the plan has a gate.
    fails : bool
        Whether a condition is false on one of the two. That is said by whoever makes the datasets and
        not read off the margins, which are under audit. If so, they pass with probability at most delta, and what
        stands behind the gate may then tell them apart: passing counts as telling the side. If not, passing or not
        is one noisy answer.
    """

    fails: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.plan.gate is None:
            raise InvalidParameter("a GateTarget needs a plan with a gate.", fix="a stage with a condition.")

    @cached_property
    def tested(self) -> Plan:
        """The plan with the gate that is tested."""
        gate = self.plan.gate
        assert gate is not None
        found = Gate.of(gate.kind, _TEST_SCALE, _TEST_DELTA, adding=gate.adding, n_rows=gate.n_rows)
        return replace(self.plan, gate=found)

    @property
    def certified(self) -> Certified:
        """``docs/theory/gate.md``, Theorem 4: delta on a pair that fails, else the loss of the noisy margin."""
        gate, off = self.tested.gate, self._sampler
        assert gate is not None
        if self.fails:
            return Certified(PrivacyLoss(gate=_TEST_DELTA), 0.0, _TEST_DELTA, off)
        return Certified(gate.loss, gate.loss.epsilon(_TEST_DELTA), _TEST_DELTA, off)

    def outcome(self, side: int, noise: Noise) -> Array:
        """Whether it passed, or which side it was."""
        found = self._executed(self.tested, side, noise)
        if found is None:
            return self._refused
        return np.array([1.0 + side * self.fails])


class _ClaimedTarget(Target):
    """A target with a loss that is claimed of it, and a delta at which epsilon is compared."""

    loss: PrivacyLoss
    delta: float

    @property
    def certified(self) -> Certified:
        return Certified(self.loss, self.loss.epsilon(self.delta), self.delta)


@dataclass(frozen=True)
class SelectionTarget(_ClaimedTarget):
    """The choice of a candidate by its scores, as :class:`~ppdp.PrivateSearchCV` makes it.

    Attributes
    ----------
    name : str
        For people.
    selection : Selection
        How it is chosen, and which scores are released.
    loss : PrivacyLoss
        What is claimed; the selection's own, unless a bug is planted.
    left, right : ndarray of shape (rows, candidates)
        Scores in [0, 1] of the validation rows, one of them replaced.
    delta : float, default=1e-6
        Where epsilon is compared, in [0, 1).
    """

    name: str
    selection: Selection
    loss: PrivacyLoss
    left: Array
    right: Array
    delta: float = 1e-6

    def __post_init__(self) -> None:
        if not isinstance(self.selection, Selection):
            problem = f"selection must be a Selection, not a {type(self.selection).__name__}."
            raise InvalidParameter(problem, fix="as PrivateSearchCV plans one.")
        check_claim(self.loss, self.delta)

    def outcome(self, side: int, noise: Noise) -> Array:
        """The chosen candidate and the noisy scores."""
        scores = (self.left, self.right)[side]
        chosen, noisy = select(column_sums(Rows.of(scores), 1.0), self.selection, noise)
        return np.array([1.0, chosen, *noisy])


@dataclass(frozen=True)
class FunctionTarget(_ClaimedTarget):
    """Anything that releases.

    Attributes
    ----------
    name : str
        For people.
    release : callable
        ``release(side, noise)`` with side 0 or 1: the released numbers, None for a refusal. All that is random in it
        must come from ``noise`` or from the operating system, such as by ``np.random.default_rng()`` within the call.
        A generator that is made once outside starts anew in every process, so runs that are taken for independent
        repeat one another; that is refused where it is seen.
    loss : PrivacyLoss
        What is claimed.
    delta : float, default=1e-6
        Where epsilon is compared, in [0, 1).
    """

    name: str
    release: Callable[[int, Noise], Any]
    loss: PrivacyLoss
    delta: float = 1e-6

    def __post_init__(self) -> None:
        if not callable(self.release):
            problem = f"release must be a function, not a {type(self.release).__name__}."
            raise InvalidParameter(problem, fix="release(side, noise).")
        check_claim(self.loss, self.delta)

    def outcome(self, side: int, noise: Noise) -> Array:
        found = self.release(side, noise)
        return self._refused if found is None else np.append(1.0, numbers_of(found))


@dataclass(frozen=True)
class ForeignTarget(Target):
    """A release of another library on two neighbouring datasets.

    What it claims is taken literally: (epsilon, delta)-privacy for this pair. Its noise is its own; only a seeded
    attack, a test of the audit itself, hands it a seed. Its warnings are silenced.

    Attributes
    ----------
    name : str
        For people.
    release : callable
        ``release(data, noise)``: what is published of one dataset; ``noise`` tells whether the run is seeded.
    left, right : object
        Neighbouring datasets, made up, in the form that ``release`` takes.
    epsilon, delta : float
        As claimed.
    library : str
        Whose release it is, as it is called in the package index.
    errors : tuple of exception types, default=()
        That the library raises because of what it is given: such an error is an outcome that an attacker sees. Any
        other error ends the attack.
    """

    name: str
    release: Callable[[Any, Noise], Any]
    left: Any
    right: Any
    epsilon: float
    delta: float = 0.0
    library: str = "ppdp"
    errors: tuple[type[Exception], ...] = ()

    def __post_init__(self) -> None:
        number("epsilon", self.epsilon, least=0)
        number("delta", self.delta, least=0, most=1)

    @cached_property
    def certified(self) -> Certified:
        """The claim, of which nothing is known but its two numbers."""
        parts = (Pure(epsilon=self.epsilon),) if self.epsilon else ()
        return Certified(PrivacyLoss(failure=self.delta, parts=parts), self.epsilon, self.delta)

    def outcome(self, side: int, noise: Noise) -> Array:
        """What was published, or that the library raised one of its errors."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                found = self.release((self.left, self.right)[side], noise)
            except self.errors:
                return self._refused
        return np.append(1.0, numbers_of(found))


def seed_of(noise: Noise) -> int | None:
    """A seed for another library's generator where the attack is seeded; None leaves the noise to the library."""
    return int(noise.standard_lattice(1)[0]) % 2**31 if noise.seeded else None


def _check_pair(plan: Any, left: Any, right: Any) -> None:
    """Two datasets of which the plan certifies something: as they come in behind its entrance, and neighbours."""
    if not isinstance(plan, Plan):
        raise InvalidParameter(f"plan must be a Plan, not a {type(plan).__name__}.", fix="pipeline.plan(domain).")
    for name, rows in (("left", left), ("right", right)):
        if not isinstance(rows, Rows):
            raise InvalidParameter(f"{name} must be Rows, not a {type(rows).__name__}.", fix="Rows.of(X, y).")
        wrong = next((words for words, holds in _facts(plan.domain, rows) if not holds), None)
        if wrong is not None:
            problem = f"{name} is not in the domain of the plan: {wrong}."
            raise InvalidParameter(problem, fix="other rows or a new plan.")
    if (left.y is None) != (right.y is None):
        raise InvalidParameter("only one of the two datasets has labels.", fix="Rows.of(X, y) for both.")
    unit, adjacency = float(np.nanmax(np.abs([left.X, right.X]), initial=1.0)), plan.domain.adjacency
    near = adjacency.bounded or World(plan.domain, plan.domain.neighbours, unit=unit).allows((left, right))
    if not near:
        raise InvalidParameter(f"the two datasets are no neighbours: {adjacency.words}.", fix="another adjacency.")
    apart, most = differing((left, right)), adjacency.rows
    if apart.sum() > most:
        problem = f"the two datasets differ in {apart.sum()} rows, but neighbours in at most {most}."
        raise InvalidParameter(problem, fix="replace fewer rows, or plan with Domain(rows_per_unit=...).")


def _facts(domain: Domain, rows: Rows) -> Iterator[tuple[str, bool]]:
    """What a dataset must be, and whether it is; each may be asked once those before it hold."""
    yield f"X must have the shape ({domain.n}, {domain.d})", np.shape(rows.X) == (domain.n, domain.d)
    yield "there must be one weight for every row", np.shape(rows.weight) == (domain.n,)
    yield "there must be one label for every row", rows.y is None or np.shape(rows.y) == (domain.n,)
    yield "X must not be infinite", not bool(np.isinf(rows.X).any())
    yield "weights must lie in [0, 1]", bool(((rows.weight >= 0) & (rows.weight <= 1)).all())
    yield "too few rows have weight", int(np.count_nonzero(rows.weight)) >= domain.min_present
    yield "too many rows have gaps", int(np.count_nonzero(rows.incomplete)) <= domain.missing_rows
    words = {"row_norm": "a row is longer than row_norm", "entry_bound": "an entry is larger than entry_bound"}
    for name, (largest, bound) in outgrown((rows,), domain).items():
        yield words[name], largest <= EXCESS * bound
