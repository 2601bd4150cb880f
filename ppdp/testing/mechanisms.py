"""A contract test for a mechanism of your own.

Neighbouring datasets try to exceed what its question says, what is released is compared where the noise is the same,
and many releases are told apart where it is not. Passing is no proof: a privacy map needs one. It needs no test
framework; the guide ``docs/guides/own-stage.md`` shows its use.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_regressor

from ppdp.bounds import lookup
from ppdp.core.adjacency import Adjacency
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.rows import Array, Rows
from ppdp.exceptions import PpdpError
from ppdp.pipeline.planning.plan import PlannedMechanism
from ppdp.pipeline.steps import guard_of
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.noise.sampler import Noise
from ppdp.testing.answers import Exact, RecordingNoise, exact_answers, held, kept_in, law_of, misasked
from ppdp.testing.confidence import Certified, at_least, at_most
from ppdp.testing.neighbours import EXCESS, Pair, World, best_of, inhabited
from ppdp.testing.stages import check_copies, check_parameters, demand, retold
from ppdp.transformers.fit_mode import Condition

MU, DELTA = 3.0, 1e-6  # what it may cost while it is tried: so much that half of the noise shows in few runs
DISTANCES = (
    Adjacency.replace().distance,
    Distance(toggled=1),
    Distance(replaced=1, toggled=1, moved=4, radius=0.05, total=0.12, mass=3, one_sided=2),
)
CHANGE = Adjacency.change(coordinate=0.3, count=2)
WIDTHS = 1, 3
FEWEST, CHOOSING = 400, 0.25  # runs on each side, and the share of them that chooses an event
DOUBT = 1e-6  # with which a right mechanism is called wrong because of its noise
LEVELS = np.linspace(0.01, 0.99, 99)


def check_mechanism(
    mechanism: Any,
    domain: Domain | None = None,
    *,
    pairs: int = 8,
    climbs: int = 24,
    runs: int = 4000,
    seconds: float = 2.0,
    seed: int = 0,
) -> float:
    """Hold a mechanism to the contract of all mechanisms.

    It is copied and cloned; its question is asked again, of copies and once it has seen rows; it is calibrated, and
    releases on random and structured neighbouring datasets, which are then varied to come closer to what is claimed.
    Noise must be added as the question says, and no further apart may be what it is added to. With the same noise both
    datasets must release the same if they are asked the same, and the mechanism must keep nothing else, change no row
    and repeat itself. With fresh noise the releases on the worst pair must not tell the two datasets apart better than
    its privacy map says.

    Parameters
    ----------
    mechanism : Mechanism
        Any mechanism; stages are none.
    domain : Domain, optional
        Facts at its input; where neighbours differ by a change, by which one. Default: ten rows of one and of three
        columns in the unit ball, two classes, targets from 0 to 1, and changes of two columns.
    pairs, climbs : int
        How many pairs are drawn, and how many times the best is varied, for each distance.
    runs : int
        Releases on the worst pair, on both datasets together.
    seconds : float
        Longest time for these.
    seed : int
        Of the draws and the noise.

    Returns
    -------
    float
        The largest share of what is claimed of the answers that was used; 1: it is attained.

    Examples
    --------
    >>> from ppdp.mechanisms import GaussianMechanism
    >>> 0.9 < check_mechanism(GaussianMechanism(), pairs=4, runs=800) <= 1
    True
    """
    contract = all(hasattr(mechanism, name) for name in ("query_spec", "release", "read"))
    demand(contract, mechanism, "a mechanism has question, release and read; a stage goes to check_stage.")
    check_copies(mechanism)
    rng = np.random.default_rng(seed)
    shares: list[float] = []
    refusal = None
    for world in _worlds(mechanism, domain):
        try:
            trial = Trial.of(mechanism, world)
        except PpdpError as error:
            refusal = error
            continue
        used, pair = trial.worst(rng, pairs, climbs)
        trial.check_replay(pair, seed)
        if not shares:
            trial.check_noise(pair, runs, seconds, seed)
        shares.append(used)
    demand(shares, mechanism, f"it accepts none of the domains, so nothing was checked: {refusal}")
    return max(shares)


def _worlds(mechanism: Any, domain: Domain | None) -> Iterator[World]:
    labels = (-1.0, 0.0, 1.0) if is_regressor(mechanism) else (0.0, 1.0)
    own: dict[str, Any] = {"y_range": (0.0, 1.0)} if is_regressor(mechanism) else {"classes": (0, 1)}
    answers = own if mechanism.needs_y else {}
    for facts in [Domain(n_features=width, **answers) for width in WIDTHS] if domain is None else [domain]:
        known = facts.but(n_rows=facts.n_rows or 10, row_norm=facts.row_norm or 1.0, max_missing=0)
        changed = CHANGE if known.adjacency.row_level else known.adjacency
        for distance in (*DISTANCES, changed.entrance_distance(known.d, known.feature_names)):
            yield World(inhabited(known, distance), distance, labels=labels)


@dataclass(frozen=True)
class Trial:
    """A mechanism that was calibrated for one kind of neighbours."""

    given: Any
    world: World
    planned: PlannedMechanism
    exact: Exact
    conditions: tuple[Condition, ...]  # what it assumes of the rows

    @classmethod
    def of(cls, mechanism: Any, world: World) -> Trial:
        """Calibrate a mechanism for the neighbours of a world."""
        domain, distance = world.domain, world.distance
        _check_question(mechanism, domain)
        question = mechanism.query_spec_at(domain, distance, MU)
        budget = PrivacyLoss(MU).epsilon(DELTA), DELTA
        scale = question.calibrated(domain, distance, MU, PrivacyLoss(), budget)
        sensitivity = question.sensitivity(domain, distance) if question.gaussian else None
        stage = clone(mechanism).set_params(noise_scale=scale)
        stage.settle(question)
        loss = question.privacy_map(domain, distance, scale)
        planned = PlannedMechanism("mechanism", stage, question, sensitivity, scale, loss)
        guard = guard_of(mechanism)
        conditions = () if guard is None else guard.fit_modes(domain, distance)[0].conditions
        return cls(mechanism, world, planned, exact_answers(planned, domain, distance), conditions)

    def require(self, holds: Any, failure: str) -> None:
        """Fail in these words, and say for which neighbours, unless something holds."""
        if not holds:
            demand(False, self.given, f"{failure} ({self.world}).")

    def worst(self, rng: np.random.Generator, pairs: int, climbs: int) -> tuple[float, Pair]:
        """The largest share of the claim on drawn pairs, and on the way up from the best of them."""
        self._check_asked(self.world.drawn(rng))
        return best_of(self.world, self.use, rng, pairs, climbs)

    def use(self, pair: Pair) -> float:
        """How much of what is claimed of its answers a pair uses."""
        if any(condition.margin(rows) <= 0 for condition in self.conditions for rows in pair):
            return 0.0
        apart, known = self.exact.apart(pair), law_of(self.planned.question) is not None
        words = f"its answers without noise are {apart:.6g} apart, and at most {self.exact.claimed:.6g} is claimed: the"
        words += " noise is too little. Bound what one row does before you add, and divide by the public number of rows"
        self.require(not known or apart <= self.exact.claimed * EXCESS, words)
        return apart / self.exact.claimed if self.exact.claimed else 0.0

    def _check_asked(self, pair: Pair) -> None:
        """Noise is added as the question says, on both datasets."""
        for rows in pair:
            noise = RecordingNoise()
            self._released(self.planned.stage, rows, noise)
            wrong = next(misasked(self.planned.question, self.planned.noise_scale, noise.asked), None)
            words = "; call noise.release(value, noise_scale, question.bound), or its like, with what release was given"
            self.require(wrong is None, f"{wrong}{words}")

    def _released(self, stage: Any, rows: Rows, noise: Noise) -> dict[str, Array]:
        """What a mechanism releases on rows that it may look at and must not change."""
        before = held(rows)
        released = self._numbers(stage, rows, noise)
        self._unchanged(rows, before)
        return released

    def _unchanged(self, rows: Rows, before: Any) -> None:
        self.require(held(rows) == before, "it changes the rows that it is given; work on copies")

    def _numbers(self, stage: Any, rows: Rows, noise: Noise) -> dict[str, Array]:
        """What a mechanism releases."""
        p = self.planned
        with np.errstate(all="ignore"):
            released = stage.release(rows, p.question, noise, p.noise_scale)
        named = isinstance(released, Mapping) and released and all(isinstance(name, str) for name in released)
        self.require(named, "what it releases is not a mapping of names to arrays")
        arrays = {name: np.asarray(array) for name, array in released.items()}
        self.require(all(array.dtype.kind in "fiub" for array in arrays.values()), "it releases what is no number")
        return arrays

    def check_replay(self, pair: Pair, seed: int) -> None:
        """Both datasets with the same noise: nothing but the answers depends on the rows."""
        p = self.planned
        stages = [clone(p.stage) for _ in range(3)]
        kept = kept_in(stages[0])
        left, again = (RecordingNoise(seed), RecordingNoise(seed))
        one, twice = self._released(stages[0], pair[0], left), self._released(stages[0], pair[0], again)
        words = "it releases something else with the same seed: all that is random must come from the noise it is given"
        self.require(_same(one, twice), words)
        seen, unseen = (repr(stage.query_spec(self.world.domain, MU)) for stage in stages[:2])
        self.require(seen == unseen, f"its question is another one once it has seen rows; {_PUBLIC}")
        self.require(kept_in(stages[0]) == kept, "release keeps something in the mechanism, which leaves with it")
        right = RecordingNoise(seed, [asked.answer for asked in left.asked])
        other = self._released(stages[1], pair[1], right)
        forms = [{name: (array.shape, array.dtype) for name, array in each.items()} for each in (one, other)]
        self.require(forms[0] == forms[1], "names, shapes or types of what it releases depend on the rows")
        if law_of(p.question) is None:
            return
        words = "with the same noisy answers it releases something else of another dataset: some number leaves"
        self.require(_same(one, other), f"{words} without its noise; release nothing but what noise.release returned")
        words = "it releases the same with other noise: no noise reaches what it releases"
        fresh = self._released(stages[2], pair[0], RecordingNoise(seed + 1))
        self.require(p.question.kind != "mechanism" or not _same(one, fresh), words)
        for stage, array in zip(stages[:2], (one, other)):
            stage.read(array, self.world.domain, p.question)
        self.require(kept_in(stages[0]) == kept_in(stages[1]), "read sets attributes from more than what was released")

    def check_noise(self, pair: Pair, runs: int, seconds: float, seed: int) -> None:
        """Many releases of both datasets: no event chosen in the first part may be likelier than is certified."""
        noises = [Noise(np.random.default_rng([seed, side])) for side in (0, 1)]
        sides: tuple[list[Array], list[Array]] = [], []
        started, before = time.monotonic(), [held(rows) for rows in pair]
        while len(sides[0]) < max(runs // 2, FEWEST):
            if len(sides[0]) >= FEWEST and time.monotonic() - started > seconds:
                break
            for rows, noise, outcomes in zip(pair, noises, sides):
                released = self._numbers(self.planned.stage, rows, noise)
                outcomes.append(np.concatenate([array.ravel().astype(np.float64) for array in released.values()]))
        for rows, then in zip(pair, before):
            self._unchanged(rows, then)
        loss = self.planned.loss
        certified = Certified(loss, loss.epsilon(DELTA), DELTA)
        words = "what it releases tells the two datasets apart better than its privacy map says: it adds less noise"
        self.require(
            not _told_apart(np.array(sides[0]), np.array(sides[1]), certified),
            f"{words} than it claims, or of another law",
        )


_PUBLIC = "it must follow from parameters and public facts alone"


def _check_question(mechanism: Any, domain: Domain) -> None:
    """The question depends on parameters and public facts, and a certificate can hold it."""
    question = mechanism.query_spec(domain, MU)
    for other, words in retold(mechanism):
        again = repr(other.query_spec(domain, MU)) == repr(question)
        demand(again, mechanism, f"its question is another one {words}; {_PUBLIC}.")
    check_parameters(mechanism, question)
    found = lookup(question.formula, question.kind)
    known = any(found.is_of(kind.__name__) for kind in type(mechanism).__mro__)
    demand(known, mechanism, f"{question.formula} does not list it in used_by.")


def _same(one: Mapping[str, Array], other: Mapping[str, Array]) -> bool:
    return one.keys() == other.keys() and all(one[name].tobytes() == other[name].tobytes() for name in one)


def _told_apart(left: Array, right: Array, certified: Certified) -> bool:
    """Whether counts refute a privacy map, on the direction in which the means of both sides differ most."""
    cut = int(CHOOSING * len(left))
    centre, scale = left[:cut].mean(axis=0), left[:cut].std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    one, other = ((side - centre) / scale for side in (left, right))
    shift = one[:cut].mean(axis=0) - other[:cut].mean(axis=0)
    spread = np.cov(one[:cut].T).reshape(len(shift), -1) + 0.1 * np.eye(len(shift))
    directions = [np.linalg.solve(spread, shift), *np.eye(len(shift))[np.argsort(-np.abs(shift))[:2]]]
    doubt, refuted, parts = DOUBT / len(directions), False, (slice(cut), slice(cut, None))
    for direction in directions:
        values = [side @ direction for side in (one, other)]
        thresholds = np.unique(np.quantile(np.concatenate([side[:cut] for side in values]), LEVELS))
        chosen, counted = ([(side[part, None] > thresholds).sum(axis=0) for side in values] for part in parts)
        likely = at_least(chosen[0], cut, 0.05), at_most(chosen[1], cut, 0.05)
        best = int(np.argmax(certified.excess(*likely)))
        p, q = certified.bounds(counted[0][best], counted[1][best], len(left) - cut, doubt / 2)
        refuted |= certified.refuted(p, q)
    return refuted
