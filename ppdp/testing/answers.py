"""What mechanisms add noise to, on two datasets, and how far apart that may be."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise, repeat
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from ppdp.bounds import FORMULAS, lookup
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.rows import Array, Rows
from ppdp.mechanisms.base import QuerySpec
from ppdp.mechanisms.query.signs import ANGLE, FLIPS
from ppdp.pipeline.planning.plan import PlannedMechanism
from ppdp.privacy.noise.sampler import Noise
from ppdp.testing.neighbours import Pair

T = TypeVar("T")

PUSH = 10.0  # how far the first answer leads a model, in bounds on answers
REHEARSED = 5  # steps on all rows, in place of those on sampled batches


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """What noise was added to, once; ``coins`` counts the draws of other random bits before, such as for batches."""

    law: str
    value: Array
    noise_scale: float
    bound: float
    answer: Any
    coins: int


class RecordingNoise(Noise):
    """Stands in for the noise: gives the answers that it was told, draws the others, and remembers what was asked.

    Coins that decide which rows are in a batch are a stream of their own. So two runs with the same seed and answers
    differ in nothing but the rows. Where it is silent other answers are the exact values, and the best candidate of a
    choice.
    """

    def __init__(self, seed: int = 0, given: Sequence[Any] = (), *, silent: bool = False) -> None:
        super().__init__(np.random.default_rng([seed, 0]))
        self._source = Noise(np.random.default_rng([seed, 1]))
        self.given, self.silent = given, silent
        self.asked: list[RecordedAnswer] = []
        self.coins = 0

    def answer(self, law: str, value: ArrayLike, noise_scale: float, bound: float, draw: Callable[[Noise], T]) -> T:
        """Give or draw an answer, and remember what was asked."""
        exact = np.array(value, dtype=np.float64)
        found: Any = self.given[len(self.asked)] if len(self.asked) < len(self.given) else None
        if found is None or (law != "choice" and np.shape(found) != exact.shape):
            silent: Any = int(exact.argmax()) if law == "choice" else exact
            found = silent if self.silent else draw(self._source)
        self.asked.append(RecordedAnswer(law, exact, noise_scale, bound, found, self.coins))
        return cast("T", found if law == "choice" else np.array(found))

    def random_bytes(self, count: int) -> bytes:
        self.coins += 1
        return super().random_bytes(count)


@dataclass(frozen=True, slots=True)
class Exact:
    """How far apart a mechanism's answers without noise are on a pair, and the most that is claimed of that."""

    claimed: float
    apart: Callable[[Pair], float]


def law_of(question: QuerySpec) -> str | None:
    """By which law noise is drawn: "gaussian", "sampled", "laplace", "exponential" or "flips"; None if unknown.

    The formula says it. That a mechanism of another library, or of your own, has methods of the same names says nothing
    of its noise.
    """
    return "gaussian" if question.gaussian else _LAWS.get(question.formula)


_LAWS = {
    **dict.fromkeys(("learning.poisson", "learning.fixed-size", "learning.hidden"), "sampled"),
    **dict.fromkeys(("laplace.sum", "laplace.mean", "laplace.count", "laplace.histogram", "laplace.rows"), "laplace"),
    **dict.fromkeys((f"signs.{flips}" for flips in (*FLIPS, ANGLE)), "flips"),
    **dict.fromkeys(("exponential.utility", "exponential.quantile"), "exponential"),
}
"""Of the formulas that are not Gaussian: where their law is none of these, answers are not compared."""


def exact_answers(mechanism: PlannedMechanism, domain: Domain, distance: Distance) -> Exact:
    """What a planned mechanism answers without noise, in the metric of what is claimed of it at its input.

    Where the law of its noise is not known: the sum of its rows, and how far their distance lets that move. Of signs
    that have no pure loss: the rows whose signs they are.
    """
    question = mechanism.question
    law = law_of(question)
    if law == "gaussian":
        assert mechanism.sensitivity is not None
        parts = _parts(question, domain, distance)
        return Exact(mechanism.sensitivity, partial(_gaussian, mechanism.stage, question, mechanism.noise_scale, parts))
    if law == "sampled":
        whole = _on_all_rows(question, domain)
        stage = clone(mechanism.stage).set_params(solver="dpgd")
        return Exact(whole.sensitivity(domain, distance), partial(_gaussian, stage, whole, mechanism.noise_scale, []))
    if law is None:
        most = distance.shift(domain.row_norm or 1.0, 1.0)
        return Exact(most, lambda pair: float(np.linalg.norm(np.subtract(*(rows.weight @ rows.X for rows in pair)))))
    loss = question.privacy_map(domain, distance, mechanism.noise_scale)
    asked = partial(_asked, mechanism.stage, question, mechanism.noise_scale)
    if law == "flips" and math.isinf(loss.epsilon(0.0)):
        claimed = lookup("query.rows", "mechanism")(domain, distance)
        return Exact(claimed, lambda pair: _most(question, _changes(*asked(pair))))
    if law == "flips":
        return Exact(loss.epsilon(0.0), lambda pair: _told(mechanism, *asked(pair)))
    return Exact(loss.epsilon(0.0) * mechanism.noise_scale, lambda pair: _apart(law, *asked(pair)))


def _on_all_rows(question: QuerySpec, domain: Domain) -> QuerySpec:
    """The mean gradient of all rows: its clip and Lipschitz constant are those of sampled batches."""
    of_batches = {"loss", "batch_size", "steps", "epochs", "step_size"}
    given = {name: value for name, value in question.parameters.items() if name not in of_batches}
    formula = f"learning.{question.parameters['loss']}-gradient"
    shape = lookup(formula, "mechanism").shape
    assert shape is not None
    size, bound = shape(domain, **given)
    steps = min(REHEARSED, question.steps)
    return replace(question, formula=formula, parameters=given, steps=steps, size=size, bound=bound, kind="mechanism")


def _apart(law: str, one: Sequence[RecordedAnswer], other: Sequence[RecordedAnswer]) -> float:
    """L1 distance of what Laplace noise is added to; of choices the range of the changes of utilities, all together."""
    changes = _changes(one, other)
    return float(sum(np.abs(change).sum() if law == "laplace" else np.ptp(change) for change in changes))


def _told(mechanism: PlannedMechanism, one: Sequence[RecordedAnswer], other: Sequence[RecordedAnswer]) -> float:
    """The largest privacy loss of any signs, flipped at random."""
    stage = clone(mechanism.stage).set_params(noise_scale=mechanism.noise_scale)
    stage.settle(mechanism.question)
    sides = [np.clip(side.value.ravel(), -side.bound, side.bound) for side in (one[0], other[0])]
    flips = [stage.flip_probability(values) for values in sides]
    p, q = (np.where(values < 0, flip, 1 - flip) for values, flip in zip(sides, flips))
    plus, minus = np.log(p / q), np.log((1 - p) / (1 - q))
    return float(max(np.maximum(plus, minus).sum(), np.maximum(-plus, -minus).sum()))


def _asked(
    stage: Any, question: QuerySpec, noise_scale: float, pair: Pair, given: Sequence[Any] = ()
) -> tuple[list[RecordedAnswer], list[RecordedAnswer]]:
    """What is asked on both datasets, all earlier answers being those of the left one or ``given``."""
    left = RecordingNoise(given=given, silent=True)
    stage.release(pair[0], question, left, noise_scale)
    right = RecordingNoise(given=[asked.answer for asked in left.asked], silent=True)
    stage.release(pair[1], question, right, noise_scale)
    return left.asked, right.asked


def _gaussian(stage: Any, question: QuerySpec, noise_scale: float, parts: Sequence[float], pair: Pair) -> float:
    """L2 distance of the exact answers on both datasets, all earlier ones being the same; the root of the mean square
    over the batches of a pass.

    Once with the answers that the left dataset gives; if there are several, once more after a first answer that leads
    both to where they differ more.
    """
    apart = _changes(*_asked(stage, question, noise_scale, pair))
    found = _most(question, apart, parts)
    first = next((difference for difference in apart if difference.any()), None)
    if len(apart) == 1 or first is None:
        return found
    lead = -PUSH * question.bound * first / np.linalg.norm(first)
    return max(found, _most(question, _changes(*_asked(stage, question, noise_scale, pair, [lead])), parts))


def _parts(question: QuerySpec, domain: Domain, distance: Distance) -> list[float]:
    """What is claimed of each answer over the root of their mean square, where they differ."""
    of_answers = getattr(FORMULAS.get(question.formula), "each", None)
    if of_answers is None:
        return []
    each = np.array(of_answers(domain, distance, **question.parameters))
    return list(each / np.sqrt((each**2).mean()))


def _most(question: QuerySpec, differences: Sequence[Array], parts: Sequence[float] = ()) -> float:
    batches = question.steps // question.parameters.get("epochs", question.steps)
    lengths = zip(map(np.linalg.norm, differences), chain(parts, repeat(1.0)))
    squares = np.array([float(length / part) ** 2 for length, part in lengths])
    return float(np.sqrt(squares.reshape(-1, batches).mean(axis=1).max()))


def _changes(one: Sequence[RecordedAnswer], other: Sequence[RecordedAnswer]) -> list[Array]:
    return [(a.value - b.value).ravel() for a, b in zip(one, other)]


def replayed_answers(
    mechanism: PlannedMechanism,
    domain: Domain,
    distance: Distance,
    one: Sequence[RecordedAnswer],
    other: Sequence[RecordedAnswer],
) -> tuple[float, float] | None:
    """How far apart what a mechanism asked on two datasets is, earlier answers being the same, and what is claimed.

    On a batch whose rows are known a sampled gradient may differ by what all rows together change of its sum. None
    where the law of the noise is not known. What was asked has the same shapes on both; see :func:`misasked`.
    """
    question, law = mechanism.question, law_of(mechanism.question)
    if law is None:
        return None
    claimed = exact_answers(mechanism, domain, distance).claimed
    if law == "flips":
        pure = math.isfinite(question.privacy_map(domain, distance, mechanism.noise_scale).epsilon(0.0))
        return _told(mechanism, one, other) if pure else _most(question, _changes(one, other)), claimed
    if law in ("laplace", "exponential"):
        return _apart(law, one, other), claimed
    changes = _changes(one, other)
    if law == "gaussian":
        return _most(question, changes, _parts(question, domain, distance)), claimed
    largest = max(float(np.linalg.norm(change)) for change in changes)
    return largest, domain.n / question.parameters["batch_size"] * claimed


def misasked(question: QuerySpec, noise_scale: float, asked: Sequence[RecordedAnswer]) -> Iterator[str]:
    """What of the noise is not as a mechanism's question and scale say, in words that tell nothing of the rows."""
    law = law_of(question)
    if law is None:
        return
    choice = law == "exponential"
    laws = {"laplace": {"laplace", "whole-laplace"}, "exponential": {"choice"}, "flips": {"flips"}}.get(
        law, {"gaussian"}
    )
    if len(asked) != (question.size if choice else question.steps):
        yield "it adds noise another number of times than its question says (steps; of choices size)"
    if any(one.law not in laws for one in asked):
        yield f"it draws noise by another law than its formula {question.formula} is about"
    if any(one.noise_scale != noise_scale for one in asked):
        yield "it adds noise of another scale than it was told"
    if any(one.bound != question.bound for one in asked):
        yield "it clamps what it adds noise to at another bound than its question says"
    if not choice and any(one.value.size != question.size for one in asked):
        yield "it adds noise to more or fewer numbers than its question says (size)"
    fresh = [0, *(one.coins for one in asked)]
    if question.formula in ("learning.poisson", "learning.fixed-size") and any(a == b for a, b in pairwise(fresh)):
        yield "it answers twice on one secret batch, and every step must sample its own"


def kept_in(step: Any) -> Any:
    """Everything that a step and its classes hold, in a form that can be compared."""
    kinds = [vars(kind) for kind in type(step).__mro__[:-1]]
    own = [
        {name: one for name, one in kind.items() if not name.startswith("_") and not callable(one)} for kind in kinds
    ]
    return held(vars(step)), held(own)


def held(value: Any) -> Any:
    """The same for any value: equal if all numbers are, bit by bit."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, repr(value.tolist()) if value.dtype == object else value.tobytes()
    if isinstance(value, Mapping):
        return tuple((str(name), held(one)) for name, one in value.items())
    if isinstance(value, (list, tuple, set, frozenset)):
        return type(value).__name__, tuple(map(held, value))
    if isinstance(value, Rows) or hasattr(value, "get_params"):
        names = value.__slots__ if isinstance(value, Rows) else vars(value)
        return type(value).__name__, tuple((name, held(getattr(value, name))) for name in names)
    return repr(value)
