"""The membership attack: whether a row was among those that a model was trained on, told from how well it is fitted.

Either many models are trained, with a canary and without it, or one model with a coin for each of many canaries.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import bisect

from ppdp.audit.learners import Learner, learner_of_function, learner_of_plan
from ppdp.audit.output import judged
from ppdp.audit.pairs import worst_pair
from ppdp.audit.report import MembershipReport
from ppdp.audit.scores import Score
from ppdp.audit.target import Target
from ppdp.audit.trials import check_jobs, make_trials
from ppdp.core.adjacency import Adjacency
from ppdp.core.boundary import discreet
from ppdp.core.checks import integer
from ppdp.core.domain import Domain
from ppdp.data.rows import Rows
from ppdp.exceptions import InvalidParameter
from ppdp.pipeline.fit import prepare_rows
from ppdp.pipeline.pipeline import Pipeline
from ppdp.pipeline.planning.plan import Plan
from ppdp.privacy.noise.sampler import Noise
from ppdp.testing.confidence import Certified, check_confidence, guessed_at_most
from ppdp.testing.neighbours import Pair, World, differing

Array = NDArray[np.float64]
Random = np.random.Generator

SLICE_MODELS = 10  # of each kind, trained together
PAIRS = 200  # of neighbouring datasets that are tried for a canary
REFERENCES = 5  # models without the canary that choose its label
_REFUSED = -4e100  # below every score
_LARGE = 60.0  # an epsilon that no guesses refute
_HALVINGS = 5  # of the number of canaries that are guessed


@dataclass(frozen=True)
class _Canary(Target):
    """A learner with rows among which is a canary, and without it; a run trains, and scores the canary."""

    name: str
    learner: Learner
    left: Rows
    right: Rows

    @property
    def certified(self) -> Certified:
        return self.learner.certified

    def outcome(self, side: int, noise: Noise) -> Array:
        score = self.learner.fit((self.left, self.right)[side], noise)
        if score is None:
            return self._refused
        return np.append(1.0, score(_at(self.left, differing((self.left, self.right)).nonzero()[0][:1])))

    def statistics(self, left: Array, right: Array) -> dict[str, Score]:
        return {"score of the canary": _score}


def _score(outcomes: Array) -> Array:
    return np.where(outcomes[:, 0] > 0, outcomes[:, -1], _REFUSED)


def _at(rows: Rows, slots: Any) -> Rows:
    return Rows.of(rows.X[slots], np.asarray(rows.y)[slots])


@discreet
def attack_membership(
    subject: Any,
    X: Any = None,
    y: Any = None,
    *,
    canaries: int = 1,
    canary: tuple[Any, Any] | None = None,
    models: int = 1000,
    confidence: float = 1 - 1e-4,
    private: bool = True,
    domain: Domain | None = None,
    claimed: Any = None,
    delta: float = 1e-6,
    n_jobs: int | None = None,
    seed: int = 0,
    random_state: int | None = None,
) -> MembershipReport:
    """Tell from a model whether a row was trained on, and what that proves of its epsilon.

    With one canary half of the models are trained with it, and half with the row in whose place it stands. It is a
    random row as long as the longest, with the label that models without it find least likely; of a pipeline without
    rows, the row of the worst pair that is found. A fifth of the models chooses a threshold; the others are counted.

    With several canaries one model is trained, and a coin decides for each of them whether it is there: Steinke, Nasr
    and Jagielski, "Privacy auditing with one (1) training run" (2023), with the bound of ``docs/theory/membership.md``.
    Nothing is charged or released.

    Parameters
    ----------
    subject : Pipeline, Plan or callable
        What ends in a model; or ``train(X, y)``, which returns ``score(X, y)``: one number for every row, larger where
        the model fits it better. All that is random in it must come from the operating system.
    X : array-like of shape (n, d), optional
        Rows, the first of which make place for canaries; of a pipeline they are made up by default.
    y : array-like of shape (n,), optional
        Their labels.
    canaries : int, default=1
        More than one: one training.
    canary : tuple of row and label, optional
        The canary, which takes the place of the first row of X, instead of one that is drawn.
    models : int, default=1000
        How many are trained for one canary, rounded up to whole slices of 20; at least 40.
    confidence : float, default=1 - 1e-4
        Of the lower bound on epsilon, and of a refutation.
    private : bool, default=True
        Whether X and y are private: then the report is.
    domain : Domain, optional
        Of a pipeline without rows: public facts, as for ``Pipeline.plan``. Few rows tell more.
    claimed : PrivacyLoss or (float, float), optional
        What is claimed of a function for one replaced row: a loss, or (epsilon, delta).
    delta : float, default=1e-6
        Where the epsilon of a function is compared, unless two numbers are claimed.
    n_jobs : int, optional
        Processes; -1 for as many as there are processors.
    seed : int, default=0
        Of the canaries.
    random_state : int, optional
        Seeds coins and a pipeline's noise, for tests of the audit itself.

    Examples
    --------
    >>> from ppdp import make_pipeline
    >>> from ppdp.mechanisms import LogisticRegression
    >>> from ppdp.transformers import NormClipper
    >>> pipe = make_pipeline(NormClipper(), LogisticRegression((0, 1), max_iter=2), epsilon=3.0)
    >>> report = attack_membership(pipe, domain=Domain(n_rows=20, n_features=1), models=40, random_state=0)
    >>> report.violated
    False
    """
    started, known = time.monotonic(), integer("seed", seed, least=0)
    rng = np.random.default_rng(np.random.SeedSequence(known, spawn_key=(1,)))  # another stream than that of the rows
    slices = -(-integer("models", models, least=4 * SLICE_MODELS) // (2 * SLICE_MODELS))
    once, confidence = integer("canaries", canaries) > 1, check_confidence(confidence)
    check_jobs(n_jobs)
    data = "made-up" if X is None else "private" if private else "public"
    if canary is not None and (once or X is None):
        raise InvalidParameter("canary= is one canary among rows.", fix="X, y and canaries=1.")
    drawn = _Drawn(canaries, canary, rng, Noise() if random_state is None else Noise(random_state))
    if isinstance(subject, Plan | Pipeline):
        learner, pair = _planned(subject, X, y, domain, seed, drawn)
    else:
        learner, pair = _called(subject, X, y, claimed, delta, drawn)
    if not differing(pair).any():
        raise InvalidParameter("the canary is the row in whose place it stands.", fix="another canary or seed.")
    target = _Canary(f"membership, {data} rows", learner, *pair)
    if once:
        told, inside, epsilon_low, violated, refused = _once(target, confidence, random_state)
    else:
        told, inside, epsilon_low, violated, refused = _often(target, confidence, random_state, slices, n_jobs)
    return MembershipReport(
        epsilon=target.certified.epsilon,
        delta=target.certified.delta,
        steps=learner.steps,
        n_rows=pair[0].n,
        seed=seed,
        seconds=time.monotonic() - started,
        neighbours="" if learner.adjacency.bounded else learner.adjacency.words,
        certified=target.certified,
        data=data,
        models=1 if once else 2 * SLICE_MODELS * slices,
        canaries=canaries,
        refused=refused,
        **_rates(told, inside),
        epsilon_low=epsilon_low,
        refuted=violated,
        confidence=confidence,
    )


Told = tuple[Array, NDArray[np.bool_], float, bool, int]
"""Scores, whether the canary was there, the bound on epsilon, whether the claim is refuted, how many were refused."""


def _rates(told: Array, inside: NDArray[np.bool_]) -> dict[str, Any]:
    """The curve of all thresholds, and what is read off it."""
    from sklearn.metrics import auc, roc_curve

    if not told.size or not 0 < inside.sum() < inside.size:  # of few coins
        return {"curve": ((0.0, 0.0), (1.0, 1.0)), "auc": 0.5, "balanced": 0.5}
    false, true, _ = roc_curve(inside, told)
    points = tuple(zip(false.tolist(), true.tolist()))
    return {"curve": points, "auc": float(auc(false, true)), "balanced": float((1 + true - false).max() / 2)}


class _Drawn(NamedTuple):
    """How many canaries there are, and from what they and their labels are drawn."""

    number: int
    given: tuple[Any, Any] | None
    rng: Random
    noise: Noise

    def put(self, X: Any, y: Any) -> tuple[Any, Any]:
        """X and y with the canary that was given."""
        X, y = np.array(X), np.array(y)
        X[0], y[0] = self.given or (X[0], y[0])
        return X, y

    def among(self, learner: Learner, rows: Rows) -> Rows:
        """Rows of which the first ones are canaries."""
        if self.number > rows.n:
            raise InvalidParameter(f"{self.number} canaries need as many rows.", fix="fewer canaries.")
        X, y, longest = rows.X.copy(), np.array(rows.y), np.linalg.norm(np.nan_to_num(rows.X), axis=1).max()
        drawn = self.rng.standard_normal((self.number, X.shape[1]))
        X[: self.number] = longest * drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
        y[: self.number] = self.rng.choice(learner.labels, self.number)
        if self.number == 1:
            y[0] = self._label(learner, rows, X[:1])
        return Rows(X, y, rows.weight, X)

    def _label(self, learner: Learner, rows: Rows, canary: Array) -> float:
        """The least likely one."""
        candidates = Rows.of(canary.repeat(len(learner.labels), axis=0), learner.labels)
        models = [score for _ in range(REFERENCES) if (score := learner.fit(rows, self.noise)) is not None]
        return learner.labels[np.mean([score(candidates) for score in models], axis=0).argmin() if models else 0]


def _refuse_others(adjacency: Adjacency) -> None:
    """Refuse neighbours that do not differ by replaced rows."""
    if not adjacency.bounded:
        problem = f"canaries take the place of rows, and here {adjacency.words}."
        raise InvalidParameter(problem, fix="Adjacency.replace(), or one canary among rows that are made up.")


def _planned(subject: Any, X: Any, y: Any, domain: Domain | None, seed: int, drawn: _Drawn) -> tuple[Learner, Pair]:
    """The learner of a pipeline, and its rows with all canaries and without them."""
    if X is not None and isinstance(subject, Plan):
        raise InvalidParameter("a Plan does not know how to read rows.", fix="pass the Pipeline.")
    if X is not None:
        _refuse_others(subject.neighbours)
        plan, rows = prepare_rows(subject, X, y)
        learner = learner_of_plan(plan)
    else:
        plan = subject if isinstance(subject, Plan) else subject.plan(domain)
        learner = learner_of_plan(plan)
        if drawn.number == 1:
            margin = 0.0 if plan.gate is None else plan.gate.needed_margin()
            return learner, worst_pair(plan, evaluations=PAIRS, seconds=None, margin=margin, seed=seed)[:2]
        made_up = drawn.rng.standard_normal((plan.domain.n, plan.domain.d)) * (plan.domain.row_norm or 1.0)
        rows = Rows.of(made_up, drawn.rng.choice(learner.labels, plan.domain.n))
    _refuse_others(plan.domain.adjacency)
    given = None if drawn.given is None else prepare_rows(subject, *drawn.put(X, y))[1]
    both = given or drawn.among(learner, rows), rows
    world = World(
        plan.domain, Adjacency.replace(drawn.number).distance, plan.domain.missing_rows, labels=learner.labels
    )
    return learner, world.legal(*(np.stack([getattr(one, name) for one in both]) for name in ("X", "weight", "y")))


def _called(train: Any, X: Any, y: Any, claimed: Any, delta: float, drawn: _Drawn) -> tuple[Learner, Pair]:
    """The learner of a function, and its rows with all canaries and without them."""
    shapes = [np.shape(X), np.shape(y)]
    if not callable(train) or len(shapes[0]) != 2 or shapes[1] != shapes[0][:1]:
        fix = "attack_membership(train, X, y), where train(X, y) returns score(X, y)."
        raise InvalidParameter("what is attacked is a Pipeline, or a function with rows and labels.", fix=fix)
    classes, codes = np.unique(np.asarray(y), return_inverse=True)
    learner, rows = learner_of_function(train, classes, claimed, delta), Rows.of(X, codes)
    if drawn.given is None:
        return learner, (drawn.among(learner, rows), rows)
    there, labels = drawn.put(X, y)
    if labels[0] not in classes:
        raise InvalidParameter("the label of the canary is that of no row.", fix="a label of another row.")
    return learner, (Rows.of(there, np.searchsorted(classes, labels)), rows)


def _often(target: _Canary, confidence: float, random_state: int | None, slices: int, n_jobs: int | None) -> Told:
    """Many trainings, as the output attack makes and judges them."""
    trials = make_trials(target, slices, slice_runs=SLICE_MODELS, n_jobs=n_jobs, random_state=random_state)
    found = judged(target, trials, confidence=confidence)
    sides = [np.concatenate([_score((one.left, one.right)[side]) for one in trials.slices]) for side in (0, 1)]
    inside = np.repeat([True, False], [side.size for side in sides])
    return np.concatenate(sides), inside, found.epsilon_low, found.violated, found.refused


def _once(target: _Canary, confidence: float, random_state: int | None) -> Told:
    """One training: how much better each canary is fitted than the row it replaces; best and worst are guessed."""
    told, inside = _tossed(target, random_state)
    certified, low, violated = target.certified, 0.0, False
    order, counts = np.argsort(told, kind="stable"), {max(2, inside.size >> k) for k in range(_HALVINGS)}
    doubt = (1 - confidence) / len(counts)
    for count in counts if told.size else ():
        right = int((~inside[order[: count // 2]]).sum() + inside[order[count // 2 - count :]].sum())
        chance = partial(guessed_at_most, right, count, inside.size)
        if chance(0.0, certified.delta) <= doubt:
            low = max(low, bisect(lambda epsilon: chance(epsilon, certified.delta) - doubt, 0.0, _LARGE) - 1e-9)  # noqa: B023
        violated |= min(chance(*point) for point in certified.profile) + certified.off <= doubt
    return told, inside, low, violated, int(not told.size)


def _tossed(target: _Canary, random_state: int | None) -> tuple[Array, NDArray[np.bool_]]:
    """What one model told of every canary, nothing if it was refused, and how the coins fell."""
    slots = differing((target.left, target.right)).nonzero()[0]
    coins, seeded = map(np.random.default_rng, np.random.SeedSequence(random_state).spawn(2))
    inside, there = coins.random(slots.size) < 0.5, np.ones(target.left.n, dtype=bool)
    there[slots] = inside
    mixed = [
        np.where(there, *(np.asarray(getattr(one, name)).T for one in (target.left, target.right))).T
        for name in ("X", "y")
    ]
    noise = Noise() if random_state is None else Noise(seeded)
    score = target.learner.fit(Rows(mixed[0], mixed[1], target.left.weight, mixed[0]), noise)
    told = np.empty(0) if score is None else score(_at(target.left, slots)) - score(_at(target.right, slots))
    return told, inside
