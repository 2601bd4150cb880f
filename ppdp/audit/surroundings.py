"""What stands beside the row that is replaced: where batches are sampled it hides more or less of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ppdp.audit.output import attack_output
from ppdp.audit.plans import AnswerTarget
from ppdp.audit.target import PlanTarget
from ppdp.data.rows import Rows
from ppdp.pipeline.planning.plan import Plan
from ppdp.testing.neighbours import Pair, differing

__all__ = ["best_surroundings"]

TRIAL_RUNS, TRIAL_CONFIDENCE = 4000, 0.9  # of runs that are not counted afterwards
CLEAR = 0.02  # by so much of a probability other rows must do better: so few runs may err by about as much


def best_surroundings(plan: Plan, pair: Pair, margin: float, n_jobs: int | None) -> Pair:
    """The pair, or that with all other rows zeros or copies of the row that is replaced if it is told apart better.

    Parameters
    ----------
    plan : Plan
        With a mechanism.
    pair : tuple of Rows
        Before the first stage.
    margin : float
        Every condition holds with a larger margin than this, in rows.
    n_jobs : int, optional
        Processes.
    """
    answers = AnswerTarget.of(plan, margin)

    def told(candidate: Pair) -> float:
        trial = PlanTarget("a trial", plan, *candidate)
        return attack_output(trial, runs=TRIAL_RUNS, confidence=TRIAL_CONFIDENCE, n_jobs=n_jobs).excess

    found = [(told(pair) + CLEAR, pair)]
    found += [(told(other), other) for other in _others(pair) if answers.uses(other) is not None]
    return max(found, key=lambda one: one[0])[1]


def _others(pair: Pair) -> Iterator[Pair]:
    left, right = pair
    same = ~differing(pair)
    if same.all():
        return
    slot = int(np.argmin(same))
    yield _surrounded(left, same), _surrounded(right, same)
    for donor in pair:
        yield _surrounded(left, same, donor, slot), _surrounded(right, same, donor, slot)


def _surrounded(rows: Rows, where: np.ndarray, donor: Rows | None = None, slot: int = 0) -> Rows:
    """The rows with others in some places: zeros, or copies of one row with its label."""
    X, y = rows.X.copy(), rows.y
    X[where] = 0.0 if donor is None else donor.X[slot]
    if y is not None and donor is not None and donor.y is not None:
        y = np.where(where, donor.y[slot], y)
    return Rows(X, y, rows.weight, X).settled()
