"""What a membership attack trains: the plan of a pipeline that ends in a model, or somebody's function.

Both make, of some rows, a scorer: a number for every row that is larger the better the model fits it, such as minus its
loss. That is all that the attack sees of a model.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor

from ppdp.audit.scores import finite
from ppdp.certificate.record import Record, read_as, written
from ppdp.core.adjacency import Adjacency
from ppdp.core.domain import Domain
from ppdp.data.rows import Array, Rows
from ppdp.exceptions import InvalidParameter, PrivacyRefusal
from ppdp.pipeline.certify import draft_record
from ppdp.pipeline.execute import execute
from ppdp.pipeline.planning.plan import Plan
from ppdp.pipeline.release.step_serialization import mapped, released_twins
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.losses import Pure
from ppdp.privacy.noise.sampler import Noise
from ppdp.testing.confidence import Certified, check_claim

Scorer = Callable[[Rows], Array]

_MOST_LABELS = 20  # of more only the ends are tried for a canary


@dataclass(frozen=True)
class Learner:
    """What trains on rows, None for a refusal, with what is certified of it and the ``labels`` of a canary."""

    fit: Callable[[Rows, Noise], Scorer | None]
    certified: Certified
    adjacency: Adjacency
    labels: tuple[float, ...]
    steps: tuple[str, ...]


def learner_of_plan(plan: Plan) -> Learner:
    """The execution of a plan as in ``fit``, uncharged; refused if it has no model, or assumes what nothing tests."""
    last, domain = plan.mechanism, plan.domain
    if last is None or not hasattr(last.stage, "predict"):
        raise InvalidParameter("the pipeline ends in no model.", fix="a last step that predicts, or audit().")
    if not domain.adjacency.row_level:
        problem = "a change of a row is certified, and membership is that a row is there at all."
        raise InvalidParameter(problem, fix="Adjacency.replace().")
    if plan.gate is None and any(step.way.conditions for step in plan.steps):
        problem = "conditions are assumed that may fail on rows with a canary: nothing is certified there."
        raise InvalidParameter(problem, fix='gate="auto".')
    certified = Certified(plan.loss, plan.epsilon, plan.delta, plan.allowance / (1 + math.exp(plan.epsilon)))
    labels = (-1.0, 1.0) if domain.classes is None else tuple(map(float, range(len(domain.classes))))
    record = draft_record(plan, inference="0" * 64, invalid="error", seeded=False)
    fit = partial(_executed, plan, read_as(Record, written(record)))
    steps = (*(step.name for step in plan.steps), last.name)
    return Learner(fit, certified, domain.adjacency, labels, steps)


def learner_of_function(train: Any, classes: NDArray[Any], claimed: Any, delta: float) -> Learner:
    """A function ``train(X, y)`` that returns ``score(X, y)``, and what is claimed of it; labels are positions."""
    if isinstance(claimed, tuple) and len(claimed) == 2:
        epsilon, delta = claimed
        claimed = PrivacyLoss(failure=delta, parts=(Pure(epsilon=epsilon),) if epsilon else ())
    loss = PrivacyLoss(failure=1.0) if claimed is None else claimed
    check_claim(loss, delta)
    labels = np.arange(float(len(classes)))[:: 1 if len(classes) <= _MOST_LABELS else len(classes) - 1]
    certified = Certified(loss, loss.epsilon(delta), delta)
    name = str(getattr(train, "__name__", type(train).__name__))
    return Learner(partial(_called, train, classes), certified, Adjacency.replace(), tuple(labels), (name,))


def _executed(plan: Plan, record: Record, rows: Rows, noise: Noise) -> Scorer | None:
    """The released twins, with which a fitted pipeline predicts."""
    try:
        with np.errstate(all="ignore"):
            found = execute(plan, rows, noise)
    except PrivacyRefusal:
        return None
    steps = [(step.name, step.stage) for step in (*plan.steps, plan.mechanism) if step is not None]
    return partial(_margins, released_twins(record, steps, found.released), plan.domain)


def _margins(twins: list[tuple[str, Any]], domain: Domain, rows: Rows) -> Array:
    """By which margin the class of every row wins, or how far it is predicted to the side of its label."""
    values, model, codes = mapped(twins[:-1], rows.X), twins[-1][1], np.asarray(rows.y)
    if is_regressor(model):
        low, high = domain.require("y_range")
        return np.asarray(codes * (model.predict(values) - low / 2 - high / 2))
    scores = model.decision_function(values) if hasattr(model, "decision_function") else model.predict_proba(values)
    if scores.ndim == 1:
        return np.where(codes > 0, scores, -scores)
    own = np.arange(scores.shape[1]) == codes[:, None]
    return np.asarray(scores[own] - np.where(own, -np.inf, scores).max(axis=1))


def _called(train: Any, classes: NDArray[Any], rows: Rows, noise: Noise) -> Scorer:
    """What the function trains, by noise of its own."""
    score = train(rows.X, classes[np.asarray(rows.y, dtype=np.intp)])
    if not callable(score):
        fix = "return a function score(X, y) of one number for every row."
        raise InvalidParameter(f"train returned a {type(score).__name__}.", fix=fix)
    return partial(_scored, score, classes)


def _scored(score: Any, classes: NDArray[Any], rows: Rows) -> Array:
    found = np.asarray(score(rows.X, classes[np.asarray(rows.y, dtype=np.intp)]), dtype=np.float64)
    if found.shape != (rows.n,):
        fix = "one number for every row, larger where the model fits it better."
        raise InvalidParameter(f"the scores of {rows.n} rows have the shape {found.shape}.", fix=fix)
    return finite(found)
