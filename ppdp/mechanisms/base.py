"""What every mechanism shares: sensitivity, privacy map, calibration."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from inspect import cleandoc
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from ppdp.bounds import lookup
from ppdp.core.boundary import outside
from ppdp.core.checks import positive
from ppdp.core.declared import Value, constants
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.keywords import Answering, under_earlier_name, unwritten
from ppdp.data.rows import Array, Rows
from ppdp.data.unit_conversion import Answers, Columns
from ppdp.data.validation import validated
from ppdp.data.weights import balanced_factors
from ppdp.exceptions import DiagnosticWarning, ImpossibleBudget, InvalidParameter, MissingBudget
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.noise.sampler import Noise, gaussian_scale, lattice_allowance

# Where a release may tell the weight of the rows, as a noisy share of their number, and its standard error: no array of
# a pipeline, which warns where stages have left few rows.
PRESENT = "weight present"

_FAR = 1.5  # times the longest row
_LOOKED_AT = 2**12  # rows, evenly


@dataclass(frozen=True, slots=True)
class QuerySpec:
    """What a mechanism asks of the rows, all public; learning rate, share and factors change no cost of an answer."""

    formula: str  # id of its sensitivity
    parameters: Mapping[str, Any]  # of the formula
    steps: int  # how many times it is answered, adaptively
    size: int  # how many numbers each answer has
    bound: float  # on each of them
    kind: str = "mechanism"  # the formula is the sensitivity of a Gaussian mechanism; "privacy": the map of another one
    start: float | None = None  # about how much noise a mechanism that is not Gaussian will need
    warnings: tuple[str, ...] = ()  # what a user should know before spending
    learning_rate: float = 0.0  # length of a step of what is trained
    given: float | None = None  # the noise scale, where it follows from the parameters and none is solved for
    share: float = 1.0  # of the rows, how many the first half of the steps look at
    factors: tuple[float, ...] = ()  # as what part of a row the loss of each class counts; empty if all weigh the same
    largest_weight: float = 1.0  # of a row: over it weights are parts of a row, and penalties beside their losses
    drowning: float = 0.0  # noise of scale 1 over what is told, where that is less than the numbers of an answer

    @classmethod
    def asked(
        cls,
        formula: str,
        kind: Literal["mechanism", "privacy"],
        domain: Domain,
        parameters: Mapping[str, Any],
        steps: int = 1,
        **more: Any,
    ) -> QuerySpec:
        """The question whose answers have the size and bound that its formula says."""
        shape = lookup(formula, kind).shape
        assert shape is not None
        return cls(formula, parameters, steps, *shape(domain, **parameters), kind=kind, **more)

    @property
    def gaussian(self) -> bool:
        """Whether Gaussian noise is added to every answer."""
        return self.kind == "mechanism"

    def privacy_map(self, domain: Domain, distance: Distance, noise_scale: float) -> PrivacyLoss:
        """Cost of all answers at this distance with this noise."""
        if self.gaussian:
            return self.loss(self.sensitivity(domain, distance), noise_scale)
        privacy_map = lookup(self.formula, "privacy")
        loss: PrivacyLoss = privacy_map(domain, distance, noise_scale=noise_scale, **self.parameters)
        return loss

    def calibrated(
        self, domain: Domain, distance: Distance, mu: float, rest: PrivacyLoss, budget: tuple[float, float]
    ) -> float:
        """Least noise scale with which all stays within (epsilon, delta), of which ``mu`` is left to a Gaussian one."""
        if self.gaussian:
            return self.noise_scale(self.sensitivity(domain, distance), mu)
        from ppdp.privacy.gaussian import least_noise

        start = self.given or self.start or max(self.bound, 1e-9)
        loss = self.privacy_map(domain, distance, start)
        if not loss.mu and not loss.parts:
            raise _nothing_to_protect()
        if self.given is not None:
            cost = compose_behind_gate(rest, loss).epsilon(budget[1])
            if cost > budget[0]:
                what = f"what is asked costs epsilon = {cost:.3g} with its test, and no noise is solved for."
                raise ImpossibleBudget(what)
            return self.given

        def together(noise_scale: float) -> PrivacyLoss:
            return compose_behind_gate(rest, self.privacy_map(domain, distance, noise_scale))

        tolerance = 1e-3 if budget[1] else 1e-9
        scale = least_noise(lambda scale: _Coarse(together(scale)), *budget, start=start, tolerance=tolerance)
        while (cost := together(scale).epsilon(budget[1])) > budget[0]:
            if math.isinf(cost):  # too fine to compute with so little noise: no small step leads out of that
                scale = least_noise(together, *budget, start=scale, tolerance=1e-2)
            else:
                scale *= 1 + 1e-3
        return scale

    def sensitivity(self, domain: Domain, distance: Distance) -> float:
        """L2 sensitivity of one answer."""
        return float(lookup(self.formula, "mechanism")(domain, distance, **self.parameters))

    def balanced(self, counts: Array, error: float) -> QuerySpec:
        """The same, with weights of classes by released numbers of their rows, of this standard error."""
        factors, largest = balanced_factors(counts, error)
        parameters = {key: value / largest if key == "alpha" else value for key, value in self.parameters.items()}
        return replace(self, parameters=parameters, factors=factors, largest_weight=self.largest_weight * largest)

    def loss(self, sensitivity: float, noise_scale: float) -> PrivacyLoss:
        """Cost of all answers with this noise: ``√steps (sensitivity/σ + lattice)``."""
        lattice = lattice_allowance(self.bound, noise_scale, self.size)
        return PrivacyLoss(math.sqrt(self.steps) * (sensitivity / noise_scale + lattice))

    def noise_scale(self, sensitivity: float, mu: float) -> float:
        """Least noise whose cost is at most ``mu``; refused if none is, or if the answer needs no noise."""
        if sensitivity == 0:
            raise _nothing_to_protect()
        return gaussian_scale(sensitivity, mu / math.sqrt(self.steps), self.bound, self.size)


def _nothing_to_protect() -> InvalidParameter:
    return InvalidParameter(
        "the answer is the same for all neighbouring datasets, so there is nothing that noise could protect.",
        fix="compute it as a public number, or protect whole rows: Adjacency.replace().",
    )


@dataclass(frozen=True, slots=True)
class _Coarse:
    """A loss whose epsilon is found quickly, and a little too large."""

    loss: PrivacyLoss

    def epsilon(self, delta: float) -> float:
        return self.loss.epsilon(delta, interval=2.0**-10)


def compose_behind_gate(rest: PrivacyLoss, loss: PrivacyLoss) -> PrivacyLoss:
    """A mechanism's loss behind everything else; a gate in front stays in front of both.

    :class:`InvalidParameter` if the mechanism can fail by itself: no gate may then be taken to be in front of
    everything.
    """
    if loss.failure or loss.gate:
        raise InvalidParameter("the privacy map of a mechanism must not fail.")
    return replace(rest, mu=math.hypot(rest.mu, loss.mu), parts=rest.parts + loss.parts)


def twin_of(
    mechanism: Any, question: QuerySpec, noise_scale: float | None, released: Mapping[str, Array], domain: Domain
) -> Any:
    """A copy of a last step that holds what it released."""
    twin: Any = clone(mechanism).set_params(noise_scale=noise_scale)
    twin.settle(question)
    twin.read(released, domain, question)
    twin.n_features_in_ = domain.d
    twin._longest = min(domain.row_norm or math.inf, (domain.entry_bound or math.inf) * math.sqrt(domain.d))
    return twin


class SharedDocstring:
    """Mixin whose subclasses also show the parameters, attributes and notes that only their bases describe."""

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        for base in cls.__mro__[1:]:
            if issubclass(base, SharedDocstring) and base.__doc__ and cls.__doc__:
                cls.__doc__ = _completed(cls.__doc__, base.__doc__)


_SECTION = re.compile(r"\n\n(Parameters|Attributes|Notes)\n-+\n")


def _completed(docstring: str, shared: str) -> str:
    """A docstring with what only another one has: parameters, attributes, and paragraphs of notes."""
    head, *parts = _SECTION.split(cleandoc(docstring))
    sections = {"Parameters": "", "Attributes": "", "Notes": "", **dict(zip(parts[::2], parts[1::2]))}
    _, *parts = _SECTION.split(cleandoc(shared))
    for title, text in zip(parts[::2], parts[1::2]):
        gap = "\n\n" if title == "Notes" else "\n"
        entries, inherited = (re.split(rf"{gap}(?=\S)", section) for section in (sections[title], text))
        names = {entry.partition(" : ")[0] for entry in entries}
        entries += [entry for entry in inherited if entry.partition(" : ")[0] not in names]
        sections[title] = gap.join(filter(None, entries))
    return "\n\n".join([head, *(f"{title}\n{'-' * len(title)}\n{text}" for title, text in sections.items() if text)])


class Mechanism(Answering, BaseEstimator):
    """A step that releases something with noise; the last step of a pipeline.

    Every mechanism has the parameters ``noise_scale``, the standard deviation on the released value per step, which a
    pipeline sets, and ``random_state``. Subclasses give :meth:`query_spec`, :meth:`release` and :meth:`read`, and
    :meth:`settle` where a question sets parameters. See ``docs/guides/own-stage.md``.

    Attributes
    ----------
    needs_y : bool
        Whether it cannot do without labels or targets.
    predicts : bool
        Whether new rows are mapped through the stages before it.
    fills_gaps : bool
        Whether its rows may have missing values.
    takes_codes : bool
        Whether it takes categories as codes, so that nothing need make columns of 0 and 1 of them.
    noise_borne : float
        Noise over the largest answer, beyond which a model of a clear signal may do no better than a constant.
    """

    needs_y = False
    predicts = False
    fills_gaps = False
    takes_codes = False
    noise_borne = 0.25
    _longest = math.inf  # public norm of the rows that it takes in a pipeline

    def _new_rows(self, X: Any, **how: Any) -> Array:
        """New rows as they come to this step, checked; a warning where they are as they came to the first one."""
        check_is_fitted(self)
        X = validated(self, X, dtype=np.float64, reset=False, **how)
        with np.errstate(over="ignore"):
            lengths = np.sqrt(np.nansum(X[:: -(-len(X) // _LOOKED_AT)] ** 2, axis=1))
        if np.median(lengths) > _FAR * self._longest:
            what = f"most of these rows are more than {_FAR:g} times as long as a row can be behind the steps in front"
            told = f"{what} of this {type(self).__name__}. Fix: pipe.predict(X), which takes rows as in the table."
            warnings.warn(told, DiagnosticWarning, stacklevel=outside())
        return X

    @property
    def counts_rows(self) -> bool:
        """Whether it reads its rows again behind the training, which then writes over none of them."""
        return False

    def row_factors(self, question: QuerySpec) -> Array:
        """By which rows of each class are to be weighed before :meth:`release`: by none if it reads them again as well,
        for then they weigh as they do without, and it weighs them itself for the training.
        """
        return np.array(() if self.counts_rows else question.factors)

    @property
    def clips_rows(self) -> bool:
        """Whether it learns from long rows, and clips what they add by itself, so that their norm makes no noise."""
        return False

    @property
    def writes_units(self) -> bool:
        """Whether some parameter holds numbers in the units of columns."""
        return False

    @property
    def in_memory(self) -> bool:
        """Whether it needs all rows in memory; else it may be given a :class:`~ppdp.data.stream.Stream` to sum over."""
        return True

    @property
    def samples_rows(self) -> bool:
        """Whether it reads some of the rows at a time, wherever they stand."""
        return False

    def passes(self, question: QuerySpec, domain: Domain) -> int:
        """How often all rows are read, at most, for the answers to a question; fewer if training ends before."""
        return question.steps

    def declarations(self) -> tuple[str, ...]:
        """What the privacy map takes from the user's word, in public words."""
        return ()

    def declared(self, domain: Domain) -> tuple[Value, ...]:
        """Ranges and constants that the user declares: name, value, and "declared" or "default", in public words."""
        return tuple(constants(self, domain.feature_names))

    def assumptions(self) -> tuple[tuple[str, str], ...]:
        """What is taken on somebody else's word, and on whose; certificates are then CONDITIONAL."""
        return ()

    noise_scale: float | None
    random_state: Any

    @property
    def guard(self) -> tuple[str, ...]:
        """The stage that says what it assumes of the rows, which a pipeline puts in front of it: its class, and the
        parameters that it takes from here; empty if it assumes nothing.
        """
        return ()

    _example: ClassVar[Mapping[str, Any]] = {"noise_scale": 1e-3}  # parameters of the example

    @classmethod
    def example(cls) -> Any:
        """An instance that can be fitted alone on any data, for contract tests."""
        return cls(**cls._example)

    def query_spec(self, domain: Domain, mu: float | None = None) -> QuerySpec:
        """What is asked of rows with these public facts; ``mu`` is the budget, for defaults that depend on it.

        Sees no data. Checks the parameters.
        """
        spec: QuerySpec = under_earlier_name(self, "question", "query_spec")(domain, mu)
        return spec

    def in_units(self, columns: Columns) -> Self:
        """The same mechanism with numbers of its parameters in the units of its rows, where a user writes raw ones."""
        return self

    def query_spec_at(self, domain: Domain, distance: Distance, mu: float | None = None) -> QuerySpec:
        """The query at this distance, where defaults follow from it; else :meth:`query_spec`."""
        if hasattr(type(self), "question_at"):
            spec: QuerySpec = under_earlier_name(self, "question_at", "query_spec_at")(domain, distance, mu)
            return spec
        return self.query_spec(domain, mu)

    def privacy_map(self, domain: Domain, distance: Distance) -> PrivacyLoss:
        """Privacy loss at this distance, for the mechanism's ``noise_scale``.

        :class:`MissingBudget` if ``noise_scale`` is not set.
        """
        return self.query_spec_at(domain, distance).privacy_map(domain, distance, self.own_noise_scale())

    def calibrate(self, domain: Domain, distance: Distance, loss: PrivacyLoss, delta: float = 1e-6) -> Self:
        """The same mechanism with the least noise that costs at most ``loss``.

        That is ``loss.mu`` for a Gaussian mechanism, else ``loss.epsilon(delta)``.
        """
        question = self.query_spec_at(domain, distance, loss.mu)
        budget = loss.epsilon(delta), delta
        scale = question.calibrated(domain, distance, loss.mu, PrivacyLoss(), budget)
        calibrated: Self = clone(self).set_params(noise_scale=scale)
        calibrated.settle(question)
        return calibrated

    def settle(self, question: QuerySpec) -> None:
        """Write defaults that depended on the budget into parameters."""

    @property
    def weighs(self) -> bool:
        """Whether its bound holds of losses that count as a part of a row."""
        return False

    @property
    def balances(self) -> bool:
        """Whether classes weigh by the numbers of their rows, which are then released in front of it."""
        return False

    def release(self, rows: Rows, question: QuerySpec, noise: Noise, noise_scale: float) -> dict[str, Array]:
        """Run on private rows; everything returned leaves, with its noise, which ``noise`` alone draws.

        What stands under :data:`PRESENT` is kept by no release.
        """
        raise unwritten(self, "release(rows, question, noise, noise_scale)")

    def read(self, released: Mapping[str, Array], domain: Domain, question: QuerySpec) -> None:
        """Set fitted attributes from what was released, and from nothing else."""
        raise unwritten(self, "read(released, domain, question)")

    def answers(self, columns: Columns, domain: Domain, question: QuerySpec) -> list[Answers]:
        """What it has read, number by number, in raw units; what is missing here is shown as it was released."""
        return []

    def share_left(self, domain: Domain, question: QuerySpec) -> tuple[float, float] | None:
        """Noisy share of the rows that are present with a value, and its standard error, if what it read tells it."""
        return None

    typical_rows = ""  # of which rows :meth:`typical` speaks, in words

    def typical(self, domain: Domain, question: QuerySpec) -> Array:
        """An answer with which errors of its numbers are told before there is any: nobody is absent, means are 0."""
        answer = np.zeros(question.size)
        if question.parameters.get("weighted"):
            answer[-1] = question.bound
        return answer

    def queries(self, X: Array) -> Array:
        """New rows as they stand beside released ones; without noise, and only of a fitted mechanism."""
        return X

    def own_noise_scale(self) -> float:
        """The parameter ``noise_scale`` of a mechanism that is used alone; :class:`MissingBudget` if it is not set."""
        if self.noise_scale is None:
            fix = "use it as the last step of ppdp.Pipeline(..., epsilon=...), or set noise_scale."
            raise MissingBudget("noise_scale is not set.", stage=type(self).__name__, fix=fix)
        return positive("noise_scale", self.noise_scale, self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.fills_gaps
        return tags
