"""A contract test for a stage of your own.

Neighbouring datasets try to exceed what the stage promises. Passing is no proof: a bound needs one. But a wrong bound,
an impure map, or a certificate that cannot be recomputed rarely gets through. It needs no test framework; the guide
``docs/guides/own-stage.md`` shows its use.
"""

from __future__ import annotations

import copy
import json
import math
import pickle
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from ppdp.bounds import lookup
from ppdp.core.adjacency import Adjacency
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.noisy_statistics import STATISTICS
from ppdp.data.rows import Array, Rows
from ppdp.exceptions import PpdpError
from ppdp.privacy.noise.sampler import Noise
from ppdp.testing.neighbours import EXCESS, MARGIN_EXCESS, Pair, World, best_of, inhabited, kept, outgrown
from ppdp.transformers.columns.column_subset import class_of
from ppdp.transformers.fit_mode import FitMode
from ppdp.transformers.stage import Stage, modes_of

T = TypeVar("T")

DISTANCES = (
    Adjacency.replace().distance,
    Distance(toggled=1),
    Distance(replaced=1, toggled=2, mass=4, one_sided=2),
    Distance(moved=3, radius=0.1, total=0.2),
    Distance(replaced=2, toggled=1, moved=4, radius=0.05, total=0.12),
    Distance(replaced=1, reweighted=2, mass=3, one_sided=2, moved=2, radius=0.1),
)
CHANGES = Adjacency.change(coordinate=0.3, count=2), Adjacency.change(coordinate={0: 0.3}), Adjacency.change(l1=0.3)
DOMAINS = (Domain(n_features=1), Domain(n_features=3), Domain(n_features=3, row_norm=math.sqrt(3), entry_bound=1.0))


def check_stage(stage: Any, domain: Domain | None = None, *, pairs: int = 15, climbs: int = 40, seed: int = 0) -> float:
    """Hold a stage to the contract of all stages.

    It is copied and cloned; its ways are computed again, by a copy and from the parameters that a certificate would
    hold; and under six distances, with gaps and without, every way is run on random and structured neighbouring
    datasets, which are then varied to come closer to the bound. A formula that says what becomes of a bounded change
    (``entrywise``) is tried under the domain's adjacency as well, or under three changes. On each pair the stage must
    keep what it certifies: distance, norms, gaps, and margins that change by at most 1.

    Parameters
    ----------
    stage : Stage
        Any stage; mechanisms are none.
    domain : Domain, optional
        Facts at its input, and the change by which neighbours differ if they do. Default: ten rows of one and of three
        columns, in a ball and in a box.
    pairs, climbs : int
        How many pairs are drawn, and how many times the best is varied, for each way and distance.
    seed : int
        Of the draws.

    Returns
    -------
    float
        The largest share of a certified radius or total that was used; of a stage behind which no row has moved, of
        the rows that it adds to those that were replaced or toggled. 1: a bound is attained.

    Examples
    --------
    >>> from ppdp.transformers import NormClipper
    >>> 0.9 < check_stage(NormClipper(0.5), pairs=4, climbs=5) <= 1
    True
    """
    demand(isinstance(stage, Stage), stage, "it is no instance of a ppdp stage; a mechanism goes to check_mechanism.")
    rng = np.random.default_rng(seed)
    _check_manners(stage, rng, domain.d if domain else 3)
    refusal, largest = None, dict[bool, float]()  # of ways behind which rows have moved, and of others
    for world in _worlds(domain):
        try:
            ways = modes_of(stage, world.domain, world.distance)
        except PpdpError as error:
            refusal = error
            continue
        _check_purity(stage, ways, world)
        for way in ways if world.distance.moves is None else [way for way in ways if way.record.entrywise]:
            _check_formula(stage, way, world)
            used, _ = best_of(world, partial(_use, stage, way, world), rng, pairs, climbs)
            largest[way.distance.moved > 0] = max(largest.get(way.distance.moved > 0, 0.0), used)
    demand(largest, stage, f"it accepts none of the domains, so nothing was checked: {refusal}")
    return largest.get(True, largest.get(False, 0.0))


def demand(holds: Any, step: Any, failure: str) -> None:
    """Raise AssertionError, naming the class of a step, unless something holds."""
    if not holds:
        raise AssertionError(f"{(step if isinstance(step, type) else type(step)).__name__}: {failure}")


def _worlds(domain: Domain | None) -> Iterator[World]:
    for facts in DOMAINS if domain is None else (domain,):
        known = facts.but(n_rows=facts.n_rows or 10, row_norm=facts.row_norm or 1.0)
        if known.classes is None and known.y_range is None:
            known = known.but(classes=(0, 1))  # those of the labels that are drawn
        changes = CHANGES if facts.adjacency.row_level else (facts.adjacency,)
        told = [change.entrance_distance(facts.d, facts.feature_names) for change in changes]
        for gaps, distance in product((0, 4), (*DISTANCES, *told)):
            yield World(inhabited(known.but(max_missing=gaps).in_groups(facts.groups), distance), distance, gaps)


def _check_manners(stage: Any, rng: np.random.Generator, width: int) -> None:
    """Clone, copy and pickle; what a fitted stage does survives its pickle."""
    check_copies(stage)
    if not hasattr(stage, "transform"):
        return
    X = rng.uniform(-0.5, 0.5, (10, width))
    try:
        fitted = clone(stage).fit(X, np.arange(10) % 2)
    except PpdpError:
        return  # other columns than it takes, which its ways will say as well
    out = np.asarray(fitted.transform(X))
    demand(np.array_equal(fitted.transform(X), out), stage, "transform gives other rows the second time.")
    demand(np.array_equal(_copied(fitted).transform(X), out), stage, "a pickled copy transforms otherwise.")


def check_copies(step: Any) -> None:
    """Clone and pickle keep its parameters."""
    try:
        cloned = repr(clone(step))
    except RuntimeError:  # scikit-learn's words for an __init__ that changes one, or leaves it out
        cloned = ""
    demand(cloned == repr(step), step, "clone changes its parameters; __init__ must keep them as they are given.")
    demand(repr(_copied(step)) == repr(step), step, "a pickled copy has other parameters.")


def retold(step: Any) -> Iterator[tuple[Any, str]]:
    """Who must say the same of public facts as a step has said."""
    yield from ((step, "the second time"), (_copied(step), "in a copy"), (clone(step), "in a clone"))


def check_parameters(step: Any, named: Any) -> dict[str, Any]:
    """The parameters of a formula as a certificate would hold them."""
    try:
        plain = json.loads(json.dumps(dict(named.parameters), allow_nan=False))
    except (TypeError, ValueError):
        plain = None
    demand(plain is not None, step, f"the parameters of {named.formula} are not plain numbers, words and lists.")
    return dict(plain)


def _copied(step: Any) -> Any:
    """Through pickle; where its class cannot be imported by name, through the same protocol."""
    kind = type(step)
    importable = getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind
    return pickle.loads(pickle.dumps(step)) if importable else copy.deepcopy(step)


def _check_purity(stage: Any, ways: tuple[FitMode, ...], world: World) -> None:
    """The ways depend on parameters, domain and distance, and on nothing else."""
    expected = [_facts(way) for way in ways]
    for other, words in retold(stage):
        found = [_facts(way) for way in other.fit_modes(world.domain, world.distance)]
        demand(found == expected, stage, f"its ways are others {words} ({world}).")


def _facts(way: FitMode) -> tuple[Any, ...]:
    return way.name, way.formula, repr(dict(way.parameters)), way.domain, way.distance


def _check_formula(stage: Any, way: FitMode, world: World) -> None:
    """A certificate that names the formula and its parameters can be recomputed."""
    plain = check_parameters(stage, way)
    found = lookup(way.formula, "stability")
    again = found(world.domain, world.distance, **plain)
    demand(again == (way.domain, way.distance), stage, f"another distance or domain follows from {way.formula}.")
    demand(found.is_of(class_of(stage, way.formula)), stage, f"{way.formula} does not list it in used_by.")
    asked = {way.request.statistic} if way.request is not None else set()
    served = bool(asked) == (way.name == "noisy" or bool(found.releases)) and asked <= set(found.releases)
    needed, got = (" or ".join(map(repr, one)) or "no release" for one in (found.releases, asked))
    words = f"{way.formula} is for releases=({needed}), and its mode has request=StatisticRequest({got})."
    demand(served, stage, words)
    assumed = sorted(condition.formula for condition in way.conditions)
    demand(assumed == sorted(found.assumes(world.domain, **plain)), stage, f"{way.formula} assumes something else.")
    words = f"{way.formula} does not say gaps=True, so fit_modes must refuse rows with missing values."
    demand(found.takes_gaps(world.domain), stage, words)


def _use(stage: Any, way: FitMode, world: World, pair: Pair) -> float:
    """How much of the certified radius or total a pair uses, after all that is certified was compared.

    Where no row has moved, how many of the rows are replaced or toggled that only now count as such.
    """
    used, before = attained(stage, way, world, pair), world.distance.replaced + world.distance.toggled
    slots, most = used.get("slots", (0.0, 0.0))
    shares = [used.get(name, (0.0, 0.0)) for name in ("radius", "total")]
    shares = shares if way.distance.moved else [(max(slots - before, 0.0), most - before)]
    return max(value / certified if certified > 0 else 0.0 for value, certified in shares)


def attained(stage: Any, way: FitMode, world: World, pair: Pair) -> dict[str, tuple[float, float]]:
    """What a pair attains of all that is certified, beside its bounds, which hold; nothing if a condition fails."""

    def fails(problem: str) -> None:
        demand(False, stage, f"way {way.name!r} ({world}): {problem}")

    for condition in way.conditions:
        one, other = (condition.margin(rows) for rows in pair)
        change = abs(one - other) if one != other else 0.0  # both may be infinite
        if not change <= MARGIN_EXCESS:
            fails(f"the margin of {condition.name!r} changes by {change:.6g}, more than 1.")
        if min(one, other) <= 0:
            return {}  # nothing is promised of this pair
    out = through(stage, way, world.domain, pair)
    shape = way.domain.n, way.domain.d
    for rows in out:
        if rows.X.shape != shape:
            fails(f"{rows} is not of the shape of the domain.")
    for name, (value, bound) in outgrown(out, way.domain).items():
        if not value <= bound * EXCESS:
            fails(f"a row exceeds {name}, {value:.12g} > {bound}.")
    for rows in out:
        if problem := _misses(way.domain, rows):
            fails(problem)
    used = kept(out, pair, world, way.domain, way.distance)
    for name, (value, certified) in used.items():
        if not value <= certified * EXCESS:
            fails(f"{name} is {value:.12g}, and at most {certified:.12g} is certified.")
    return used


def _misses(domain: Domain, rows: Rows) -> str:
    """Where more is missing than the domain says, or what is deleted is not gone."""
    gone = rows.weight == 0
    if rows.incomplete.sum() > domain.missing_rows:
        return "more rows have gaps than max_missing."
    if len(gone) - np.count_nonzero(gone) < domain.min_present:
        return "fewer rows are left than min_present."
    return "a deleted row is not zero (use Rows.with_X or settled)." if rows.X[gone].any() else ""


class NothingAdded(Noise):
    """In place of a release and of its noise: choices are made by the seed, between the best."""

    noise_scale = 1e-3
    threshold = 0.5

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        super().__init__(0)
        self.parameters = parameters

    def release(self, value: ArrayLike, noise_scale: float, bound: float) -> Array:
        return np.asarray(value, dtype=np.float64)

    def answer(self, law: str, value: ArrayLike, noise_scale: float, bound: float, draw: Callable[[Noise], T]) -> T:
        if law != "choice":
            return draw(self)
        scores = np.nan_to_num(np.ravel(value), nan=-bound)
        best = (scores == scores.max()).nonzero()[0]
        return cast("T", int(best[int.from_bytes(self.random_bytes(8), "little") % len(best)]))


def through(stage: Any, way: FitMode, domain: Domain, pair: Pair) -> Pair:
    """Both datasets behind a stage that goes one way; what it takes from a release is the same for both."""
    if way.name == "exact":
        one, other = (stage.prepare(rows, way, domain) for rows in pair)
    elif way.name == "noisy":
        assert way.request is not None  # what else would it be fitted from
        statistic = STATISTICS[way.request.statistic]
        nothing = NothingAdded(way.request.parameters)
        exact = statistic.measure(pair[0], domain, way.request.parameters)
        answer = statistic.answer(exact, pair[0], domain, nothing, nothing)
        one = other = stage.read(statistic.read(answer, domain, nothing), way, domain)
    else:
        nobody = Rows(np.empty((0, domain.d)), None, np.empty(0))
        one = other = stage.prepare(nobody, way, domain)
    return stage.apply(pair[0], one), stage.apply(pair[1], other)
