"""The pair of datasets on which runs are made: the worst that is found, what stands beside it, and how it is kept."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ppdp.audit.output import judged
from ppdp.audit.plans import answer_target
from ppdp.audit.search import search
from ppdp.audit.stability import StabilityReport
from ppdp.audit.target import PlanTarget
from ppdp.audit.trials import make_trials
from ppdp.bounds import lookup
from ppdp.core.checks import integer, number, positive
from ppdp.data.rows import Rows
from ppdp.exceptions import InvalidParameter
from ppdp.pipeline.planning.plan import Plan
from ppdp.testing.answers import held, law_of
from ppdp.testing.neighbours import Pair, World, differing

SIDES = "left", "right"
TRIAL_RUNS, TRIAL_CONFIDENCE = 4000, 0.9  # of runs that are not counted afterwards
_TRIAL_SLICES = 4  # of which the first chooses
CLEAR = 0.02  # by so much of a probability other rows must do better: so few runs may err by about as much


def worst_pair(
    plan: Plan, *, evaluations: int = 20_000, seconds: float | None = 60.0, margin: float = 0.0, seed: int = 0
) -> tuple[Rows, Rows, float]:
    """Neighbouring datasets on which what a plan answers without noise differs most.

    Parameters
    ----------
    plan : Plan
        With a mechanism or released statistics.
    evaluations : int, default=20000
        Pairs that are tried.
    seconds : float or None, default=60
        Longest time; the result is a function of the seed unless it runs out.
    margin : float, default=0.0
        Every condition holds with a larger margin than this, in rows, on both datasets; ``gate.needed_margin()`` makes
        sure that the gate usually passes.
    seed : int, default=0
        Of everything that is random.

    Returns
    -------
    left, right : Rows
        Before the first stage.
    ratio : float
        Share of what is claimed of the answers that is attained; of another library's, of the shift of its rows' sum.

    Raises
    ------
    InvalidParameter
        If a parameter is impossible, or the conditions held on no pair.
    """
    if not isinstance(plan, Plan):
        fix = "pass what pipeline.plan(domain) returns."
        raise InvalidParameter(f"a {type(plan).__name__} is no plan.", fix=fix)
    budget, seed = integer("evaluations", evaluations), integer("seed", seed, least=0)
    longest = math.inf if seconds is None else positive("seconds", seconds)
    target = answer_target(plan, number("margin", margin))
    done = search(target, evaluations=budget, seconds=longest, seed=seed)
    best = done.best.get("answer")
    if best is None:
        fix = "more evaluations, or more rows."
        raise InvalidParameter("the conditions of the plan held on none of the pairs.", fix=fix)
    return *best.pair, best.ratio


def pair_to_attack(
    plan: Plan, evaluations: int, seconds: float, seed: int, n_jobs: int | None, stability: StabilityReport
) -> tuple[Pair | None, str]:
    """The worst pair that is found, or why there is none; without a gate the stability attack searched already."""
    margin = plan.gate.needed_margin() if plan.gate is not None else 0.0
    name = answer_target(plan).name
    pair = next((f.pair for f in stability.findings if plan.gate is None and f.name == name), None)
    try:
        if pair is None:
            pair = worst_pair(plan, evaluations=evaluations, seconds=seconds, margin=margin, seed=seed)[:2]
    except InvalidParameter as error:
        return None, str(error)
    asked = plan.mechanism and plan.mechanism.question
    in_places = asked and getattr(lookup(asked.formula, asked.kind), "rows", False)  # whatever the other rows are
    if asked and law_of(asked) == "flips":
        pair = _best(plan, pair, _crossing(answer_target(plan).world, pair), margin, n_jobs)
    elif plan.loss.parts and not in_places:
        pair = best_surroundings(plan, pair, margin, n_jobs)
    return pair, ""


def best_surroundings(plan: Plan, pair: Pair, margin: float, n_jobs: int | None) -> Pair:
    """The pair, or that with all other rows zeros or copies of the row that is replaced if it is told apart better.

    Every condition holds with a larger margin than this, in rows.
    """
    return _best(plan, pair, _others(pair), margin, n_jobs)


def _best(plan: Plan, pair: Pair, others: Iterator[Pair], margin: float, n_jobs: int | None) -> Pair:
    """The pair, or another one that is told apart better."""
    answers = answer_target(plan, margin)

    def told(candidate: Pair) -> float:
        trial = PlanTarget("a trial", plan, *candidate)
        runs = make_trials(trial, _TRIAL_SLICES, slice_runs=TRIAL_RUNS // (2 * _TRIAL_SLICES), n_jobs=n_jobs)
        return judged(trial, runs, confidence=TRIAL_CONFIDENCE).excess

    found, tried = [(told(pair) + CLEAR, pair)], {held(pair)}
    for other in others:
        if held(other) not in tried and answers.uses(other) is not None:
            found.append((told(other), other))
        tried.add(held(other))
    return max(found, key=lambda one: one[0])[1]


def _crossing(world: World, pair: Pair) -> Iterator[Pair]:
    """The same with a row that goes across the middle of its ranges, as far as it can: there signs tell most."""
    tables, weights, labels = (np.stack([getattr(rows, name) for rows in pair]) for name in ("X", "weight", "y"))
    low, high = world.box or (np.zeros(world.domain.d),) * 2
    for change in world.far:
        ends = (low + high - change) / 2, (low + high + change) / 2
        tables[:, world.roles[3]] = np.stack(ends)[:, None]
        yield world.legal(tables.copy(), weights, labels)


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


def pair_to_dict(pair: Pair) -> dict[str, Any]:
    """Both datasets in full; gaps are null."""
    return {side: _listed(rows) for side, rows in zip(SIDES, pair)}


def _listed(rows: Rows) -> dict[str, Any]:
    X = rows.X.astype(object)
    X[np.isnan(rows.X)] = None
    return {"X": X.tolist(), "y": None if rows.y is None else rows.y.tolist(), "weight": rows.weight.tolist()}
