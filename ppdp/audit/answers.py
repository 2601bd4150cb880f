"""What mechanisms answer without noise, on two datasets, and how far apart that may be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from ppdp.bounds import lookup
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.mechanisms.base import Question
from ppdp.pipeline.planning.plan import PlannedMechanism
from ppdp.privacy.noise.sampler import Noise
from ppdp.testing.neighbours import Pair

__all__ = ["Exact", "exact_answers", "law_of_answers"]

Array = NDArray[np.float64]

PUSH = 10.0  # how far the first answer leads a model, in bounds on answers
REHEARSED = 5  # steps on all rows, in place of those on sampled batches


@dataclass(frozen=True, slots=True)
class Exact:
    """How far apart a mechanism's answers are.

    Attributes
    ----------
    claimed : float
        The most that is claimed.
    apart : callable
        From a pair of datasets at the mechanism's input to how far apart its answers are without noise.
    """

    claimed: float
    apart: Callable[[Pair], float]


def law_of_answers(question: Question) -> str | None:
    """By which law a mechanism's noise is drawn: "gaussian", "sampled", "laplace" or "exponential"; None if unknown.

    The formula says it. That a mechanism of another library, or of your own, has methods of the same names says nothing
    of its noise.
    """
    return "gaussian" if question.gaussian else _LAWS.get(question.formula)


_LAWS = {
    **dict.fromkeys(("learning.poisson", "learning.fixed-size", "learning.hidden"), "sampled"),
    **dict.fromkeys(("laplace.sum", "laplace.mean", "laplace.count", "laplace.histogram"), "laplace"),
    **dict.fromkeys(("exponential.utility", "exponential.quantile"), "exponential"),
}
"""Of the formulas that are not Gaussian: where their law is none of these, answers are not compared."""


def exact_answers(mechanism: PlannedMechanism, domain: Domain, distance: Distance) -> Exact:
    """What a planned mechanism answers without noise, in the metric of what is claimed of it.

    Where the law of its noise is not known: the sum of its rows, and how far their distance lets that move.

    Parameters
    ----------
    mechanism : PlannedMechanism
        With its question and noise.
    domain, distance : Domain, Distance
        At its input.
    """
    question = mechanism.question
    law = law_of_answers(question)
    if law == "gaussian":
        assert mechanism.sensitivity is not None
        return Exact(mechanism.sensitivity, partial(_gaussian, mechanism.stage, question, mechanism.noise_scale))
    if law == "sampled":
        whole = _on_all_rows(question, domain)
        stage = clone(mechanism.stage).set_params(solver="dpgd")
        return Exact(whole.sensitivity(domain, distance), partial(_gaussian, stage, whole, mechanism.noise_scale))
    if law is None:
        return Exact(distance.shift(domain.row_norm or 1.0, 1.0), _sums)
    loss = question.privacy_map(domain, distance, mechanism.noise_scale)
    apart = _moved if law == "laplace" else _spread
    return Exact(loss.epsilon(0.0) * mechanism.noise_scale, partial(apart, mechanism.stage, question))


_OF_BATCHES = frozenset({"loss", "batch_size", "steps", "epochs", "step_size"})


def _on_all_rows(question: Question, domain: Domain) -> Question:
    """The mean gradient of all rows: its clip and Lipschitz constant are those of sampled batches."""
    given = {name: value for name, value in question.parameters.items() if name not in _OF_BATCHES}
    formula = f"learning.{question.parameters['loss']}-gradient"
    shape = lookup(formula, "mechanism").shape
    assert shape is not None
    size, bound = shape(domain, **given)
    steps = min(REHEARSED, question.steps)
    return replace(question, formula=formula, parameters=given, steps=steps, size=size, bound=bound, kind="mechanism")


def _sums(pair: Pair) -> float:
    one, other = (rows.weight @ rows.X for rows in pair)
    return float(np.linalg.norm(one - other))


def _moved(stage: Any, question: Question, pair: Pair) -> float:
    """L1 distance of the answers that Laplace noise is added to."""
    one, other = (stage.answer(rows, question) for rows in pair)
    return float(np.abs(one - other).sum())


def _spread(stage: Any, question: Question, pair: Pair) -> float:
    """Range of the changes of the utilities that choices go by, of all choices together."""
    one, other = (stage.utilities(rows, question) for rows in pair)
    return float(sum(np.ptp(a - b) for a, b in zip(one, other)))


class _Rehearsal:
    """Stands in for the noise: says what it was told to say, then the exact values, and remembers these.

    Its coins are always the same: batches do not depend on the rows.
    """

    def __init__(self, given: Sequence[Array] = ()) -> None:
        self.given, self.asked = list(given), list[Array]()
        self._words = Noise(0)._words

    def release(self, value: ArrayLike, noise_scale: float, bound: float) -> Array:
        """Answer without noise."""
        exact = np.array(value, dtype=np.float64)
        self.asked.append(exact)
        if len(self.asked) > len(self.given):
            self.given.append(exact)
        return self.given[len(self.asked) - 1]


def _gaussian(stage: Any, question: Question, noise_scale: float, pair: Pair) -> float:
    """L2 distance of the exact answers on both datasets, all earlier ones being the same; the root of the mean square
    over the batches of a pass.

    Once with the answers that the left dataset gives; if there are several, once more after a first answer that leads
    both to where they differ more.
    """
    apart = _differences(stage, question, noise_scale, pair, [])
    found = _most(question, apart)
    first = next((difference for difference in apart if difference.any()), None)
    if len(apart) == 1 or first is None:
        return found
    lead = -PUSH * question.bound * first / np.linalg.norm(first)
    return max(found, _most(question, _differences(stage, question, noise_scale, pair, [lead])))


def _most(question: Question, differences: Sequence[Array]) -> float:
    batches = question.steps // question.parameters.get("epochs", question.steps)
    squares = np.array([float(difference @ difference) for difference in differences])
    return float(np.sqrt(squares.reshape(-1, batches).mean(axis=1).max()))


def _differences(stage: Any, question: Question, noise_scale: float, pair: Pair, given: Sequence[Array]) -> list[Array]:
    """Differences of the exact answers, all earlier answers being those of the left dataset or ``given``."""
    left = _Rehearsal(given)
    stage.release(pair[0], question, cast(Noise, left), noise_scale)
    right = _Rehearsal(left.given)
    stage.release(pair[1], question, cast(Noise, right), noise_scale)
    return [(one - other).ravel() for one, other in zip(left.asked, right.asked)]
