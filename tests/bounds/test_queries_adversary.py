"""Every query against an adversary: exact answers of neighbours, measured as the mechanism's noise measures them."""

import itertools
import math

import numpy as np
import pytest
from adversary import DISTANCES, domains, named
from neighbours import ROUNDING, Pair

from ppdp import Adjacency, Distance, Domain
from ppdp import transformers as S
from ppdp.bounds import lookup
from ppdp.data.rows import Rows
from ppdp.mechanisms import ExponentialMechanism, GaussianMechanism, LaplaceMechanism
from ppdp.mechanisms.base import QuerySpec
from ppdp.testing.neighbours import World
from ppdp.testing.stages import through

REWEIGHTED = (
    Distance(reweighted=2, moved=2, radius=0.1),
    Distance(replaced=1, reweighted=3, mass=3.5, one_sided=2.5, moved=1, radius=0.2),
)
GRID = [-0.5, -0.25, 0.0, 0.25, 0.5]


def closeness(X):
    """Utility of three candidates: how near a row is to each of three points; 1-Lipschitz."""
    return 1 - np.abs(X[:, :1] - np.array([-0.5, 0.0, 0.5])) / 2


def slope(X):
    """Two candidates, each of which loses what the other gains; 1/2-Lipschitz."""
    return 0.5 + np.column_stack([X[:, 0], -X[:, 0]]) / 2


MECHANISMS = {
    "gaussian mean": GaussianMechanism(),
    "gaussian sum": GaussianMechanism("sum"),
    "gaussian count": GaussianMechanism("count"),
    "gaussian covariance": GaussianMechanism("covariance"),
    "gaussian histogram": GaussianMechanism("histogram", bins=GRID),
    "gaussian rows": GaussianMechanism("rows"),
    "laplace mean": LaplaceMechanism(),
    "laplace sum": LaplaceMechanism("sum"),
    "laplace count": LaplaceMechanism("count"),
    "laplace histogram": LaplaceMechanism("histogram", bins=GRID),
    "median": ExponentialMechanism(candidates=GRID),
    "fine median": ExponentialMechanism(candidates=[-0.005, 0.005]),
    "upper quantile": ExponentialMechanism(q=0.8, candidates=GRID),
    "utility": ExponentialMechanism("utility", candidates=GRID[:3], utility=closeness, lipschitz=0.5),
    "slope": ExponentialMechanism("utility", candidates=["up", "down"], utility=slope, lipschitz=0.5),
    "steep utility": ExponentialMechanism("utility", candidates=GRID[:3], utility=closeness, sensitivity=0.6),
}
SCALE = 1e-3  # what rounding to the lattice adds is then negligible
queries = pytest.mark.parametrize("name", MECHANISMS)


def use(name, domain, distance):
    """Share of the certified sensitivity, L1 shift or range that a pair of datasets uses."""
    mechanism = MECHANISMS[name]
    question = mechanism.query_spec(domain)
    if question.gaussian:
        bound = question.sensitivity(domain, distance)
    else:
        (part,) = question.privacy_map(domain, distance, SCALE).parts
        facts = part.to_dict()
        bound = facts["range"] * SCALE if "range" in facts else facts["shift"]

    def measured(left, right):
        if isinstance(mechanism, ExponentialMechanism):
            both = (mechanism.utilities(rows, question) for rows in (left, right))
            return max(float(np.ptp(one - other)) for one, other in zip(*both))
        one, other = (mechanism.answer(rows, question) for rows in (left, right))
        assert np.abs(one).max() <= question.bound * ROUNDING
        return float(np.linalg.norm(one - other, 2 if question.gaussian else 1))

    def share(left, right):
        return measured(left, right) / bound

    return share


@queries
@pytest.mark.parametrize("distance", [*DISTANCES, *REWEIGHTED], ids=named)
@pytest.mark.repeated("distance")
def test_no_pair_exceeds_what_is_certified(name, distance):
    rng = np.random.default_rng(0)
    moves_only = distance.mass == 0 and "count" in name
    for domain in [] if moves_only else [domains(10, 1, max_missing=0)[1], *domains(10, 3, max_missing=0)[::2]]:
        world, share = World(domain, distance), use(name, domain, distance)
        pairs = [world.drawn(rng) for _ in range(15)]
        used = [share(*pair) for pair in pairs]
        pair, most = pairs[int(np.argmax(used))], max(used)
        for step in range(15):
            trial = world.varied(pair, rng, 0.5 * 0.9**step)
            used.append(share(*trial))
            pair, most = (trial, used[-1]) if used[-1] >= most else (pair, most)
        assert max(used) <= ROUNDING


@pytest.mark.parametrize("name", ["gaussian count", "laplace count"])
def test_rows_that_move_are_all_still_there(name):
    domain, moves = Domain(n_rows=10, n_features=1, row_norm=1.0), Distance(moved=3, radius=0.1)
    question = MECHANISMS[name].query_spec(domain)
    assert question.privacy_map(domain, moves, 1.0).epsilon(1e-6) <= 1e-6


@pytest.mark.parametrize("name", ["gaussian mean", "gaussian covariance", "laplace mean"])
@pytest.mark.parametrize("distance", [DISTANCES[0], DISTANCES[4]], ids=named)
@pytest.mark.repeated("distance")
def test_where_no_row_can_be_deleted_no_share_is_released(name, distance):
    domain = Domain(n_rows=10, n_features=2, row_norm=1.0, max_missing=0, min_present=10)
    rng, world, share = np.random.default_rng(0), World(domain, distance), use(name, domain, distance)
    assert max(share(*world.drawn(rng)) for _ in range(60)) <= ROUNDING
    size = MECHANISMS[name].query_spec(domain).size
    assert size == MECHANISMS[name].query_spec(domain.but(min_present=0)).size - 1


def corner(d, sign=1.0):
    """A row at a corner of the box and, the box having norm sqrt(d), on the ball."""
    return [sign] * d


UP, DOWN, GONE = corner(2), corner(2, -1.0), None
ONE, TOGGLE, MOVED = Distance(replaced=1), Distance(toggled=1), Distance(moved=1, radius=0.02)
KEEP_FIRST = DISTANCES[2]
NEAR = [1 - 0.02 / math.sqrt(2)] * 2
PAIRS = {"a": (ONE, [UP], [DOWN]), "b": (TOGGLE, [UP], [GONE]), "c": (MOVED, [UP], [NEAR])}
PAIRS["d"] = (KEEP_FIRST, [UP, GONE, UP], [DOWN, DOWN, GONE])
PAIRS["e"] = (ONE, [UP], [GONE])
PAIRS["f"] = (MOVED, [[0.01, 0.01]], [[-0.001, -0.001]])
PAIRS["g"] = (Distance(replaced=1, toggled=3), [UP, UP, UP, UP], [DOWN, GONE, GONE, GONE])

ATTAINED = [
    *[
        (name, kind, 1.0)
        for name in ("gaussian mean", "gaussian sum", "laplace mean", "laplace sum")
        for kind in "abcd"
    ],
    *[("gaussian rows", kind, 1.0) for kind in "abcdg"],
    *[("gaussian covariance", kind, 1.0) for kind in "abd"],
    ("gaussian covariance", "c", 0.98),
    *[(name, kind, 1.0) for name in ("gaussian count", "laplace count") for kind in "be"],
    *[(name, kind, 1.0) for name in ("gaussian histogram", "laplace histogram") for kind in "abdfg"],
]


@pytest.mark.parametrize(("name", "kind", "least"), ATTAINED)
def test_every_part_of_the_distance_is_attained(name, kind, least):
    distance, left, right = PAIRS[kind]
    pair = Pair.in_front(30, left, right)
    domain = Domain(n_rows=30, n_features=2, row_norm=math.sqrt(2), entry_bound=1.0)
    assert least - 1e-7 <= use(name, domain, distance)(pair.left, pair.right) <= ROUNDING


def rows_of(values, rest=(-1.0,) * 2 + (0.0,) * 5 + (1.0,) * 3):
    """One column: the given values, None for a row that is absent, then the rest."""
    column = [0.0 if v is None else v for v in values]
    weight = [v is not None for v in values] + [True] * len(rest)
    return Rows(np.array([*column, *rest])[:, None], None, np.array(weight, dtype=float))


@pytest.mark.parametrize(
    ("name", "distance", "left", "right"),
    [
        ("median", ONE, [-1.0], [1.0]),
        ("median", TOGGLE, [1.0], [None]),
        ("median", KEEP_FIRST, [-1.0, -1.0, None], [1.0, None, 1.0]),
        ("fine median", MOVED, [0.01], [-0.01]),
        ("upper quantile", TOGGLE, [1.0, *[0.0] * 9], [None, *[0.0] * 9]),
    ],
    ids=["replaced", "toggled", "keep-first", "moved", "toggled, no median"],
)
def test_the_range_of_a_quantile_is_attained(name, distance, left, right):
    """On the one side of the quantile ranks come closer to what is wanted, on the other they go away from it."""
    first, second = rows_of(left), rows_of(right)
    domain = Domain(n_rows=first.n, n_features=1, row_norm=1.0)
    assert 1 - 1e-6 <= use(name, domain, distance)(first, second) <= ROUNDING


@pytest.mark.parametrize(
    ("distance", "left", "right"),
    [(ONE, [1.0], [-1.0]), (TOGGLE, [1.0], [None]), (MOVED, [0.02], [0.0])],
    ids=["replaced", "toggled", "moved"],
)
def test_the_range_of_a_utility_is_attained(distance, left, right):
    """Opposite candidates; a row that vanishes takes from all, so its range is half of a replaced row's."""
    first, second = rows_of(left), rows_of(right)
    domain = Domain(n_rows=first.n, n_features=1, row_norm=1.0)
    assert 1 - 1e-6 <= use("slope", domain, distance)(first, second) <= ROUNDING


def test_a_row_moved_by_nothing_stays_in_its_cell():
    domain = Domain(n_rows=10, n_features=1, row_norm=1.0)
    still = Distance(moved=3, radius=0.0)
    for name in ("gaussian histogram", "laplace histogram", "median"):
        question = MECHANISMS[name].query_spec(domain)
        if question.gaussian:
            assert question.sensitivity(domain, still) == 0
        else:
            assert question.privacy_map(domain, still, 1.0).epsilon(0.0) < 1e-9


def test_pairs_are_pairs():
    """The ruler sees a difference where there is one."""
    pair = Pair.of(np.zeros((10, 1)), np.eye(10, 1))
    domain = Domain(n_rows=10, n_features=1, row_norm=1.0)
    assert all(use(name, domain, ONE)(pair.left, pair.right) > 0 for name in MECHANISMS if "count" not in name)


ROWS = GaussianMechanism("rows")
BALL = Domain(n_rows=12, n_features=2, row_norm=1.0)


def certified(distance, domain=BALL):
    return lookup("query.rows", "mechanism")(domain, distance)


def apart(left, right):
    """Length of the difference of two answers."""
    question = QuerySpec("query.rows", {}, 1, 1, 1.0)
    return float(np.linalg.norm(ROWS.answer(left, question) - ROWS.answer(right, question)))


def largest(distance):
    """Largest length by trying all ways to share weight and moves in steps, slot by slot."""
    unmatched = [2] * int(distance.replaced) + [1] * int(distance.toggled + distance.reweighted)
    square = 0.0
    for weights in itertools.product(*(np.linspace(0, most, 4 * most + 1) for most in unmatched)):
        if sum(weights) <= distance.mass + 1e-12:
            square = max(square, sum(w * w for w in weights))
    moves, step = 0.0, min(distance.radius, 2.0)
    for lengths in itertools.product(np.linspace(0, step, 5), repeat=int(distance.moved)):
        if sum(lengths) <= distance.total + 1e-12:
            moves = max(moves, sum(m * m for m in lengths))
    return math.sqrt(square + moves)


@pytest.mark.parametrize(
    ("distance", "attained"),
    [
        (Distance(replaced=1), True),
        (Distance(toggled=3), True),
        (Distance(replaced=1, toggled=2, mass=4, one_sided=2), True),
        (Distance(replaced=2, toggled=2, mass=5), True),
        (Distance(replaced=2, toggled=2, mass=2), True),
        (Distance(replaced=1, toggled=1, mass=2.5), False),
        (Distance(moved=3, radius=0.2), True),
        (Distance(moved=3, radius=0.2, total=0.4), True),
        (Distance(moved=3, radius=0.2, total=0.3), False),
        (Distance(moved=2, radius=9.0), True),
        (Distance(replaced=1, moved=2, radius=0.5), True),
        (Distance(replaced=2, toggled=1, moved=2, radius=0.05, total=0.05), True),
    ],
    ids=lambda value: value.describe() if isinstance(value, Distance) else "",
)
def test_the_bound_is_the_largest_that_slots_can_differ_by(distance, attained):
    """Exactly, where weight and moves come in whole slots."""
    bound, most = certified(distance), largest(distance)
    assert bound >= most
    assert (bound <= most * (1 + 1e-8)) == attained


@pytest.mark.parametrize("smaller", [0.01, 0.25, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("to", [-1.0, -0.2, 0.0, 0.5])
def test_a_reweighted_row_may_move_as_well(smaller, to):
    """Both in the same slot and along the same line, where lengths add."""
    spent, move = 1.0 - smaller, 1.0 - to
    distance = Distance(reweighted=1, mass=spent, one_sided=spent, moved=1, radius=move, total=smaller * move)
    left, right = np.zeros((2, 12, 2))
    left[0, 0], right[0, 0] = 1.0, to
    weight = np.ones(12)
    other = np.r_[smaller, weight[1:]]
    length = apart(Rows(left, None, weight), Rows(right, None, other))
    assert length == pytest.approx(spent + smaller * move)
    assert length <= certified(distance) * ROUNDING


def test_no_more_than_all_rows_can_change():
    crowd = Distance(replaced=100, moved=50, radius=1.0)
    assert certified(crowd) == pytest.approx(2 * math.sqrt(12), rel=1e-8)


def test_rows_that_match_in_another_order_are_charged_for_it():
    assert certified(Distance(replaced=1, reordered=4)) == pytest.approx(math.sqrt(4 + 4), rel=1e-8)


STAGES = {
    "records": S.Deduplicator(),
    "cells": S.GridDeduplicator(cell_width=0.4),
    "cells, softly": S.GridDeduplicator(cell_width=0.4, keep="soft"),
    "cells, the first": S.GridDeduplicator(cell_width=0.4, keep="first"),
    "bands": S.LSHDeduplicator(bands=3, mode="simhash"),
    "bands, a window": S.LSHDeduplicator(bands=3, mode="simhash", rule="window"),
    "bands, softly": S.LSHDeduplicator(bands=3, mode="simhash", rule="soft"),
    "scaled exactly": S.StandardScaler(fit_mode="exact"),
    "cells, scaled": (S.GridDeduplicator(cell_width=0.4, keep="soft"), S.StandardScaler(fit_mode="exact")),
    "projected": S.RandomProjection(2),
    "grid": S.GridQuantizer(cell_width=0.3, mode="staircase"),
}


@pytest.mark.parametrize("name", STAGES)
def test_no_neighbours_exceed_it_behind_a_stage(name):
    stages = STAGES[name] if isinstance(STAGES[name], tuple) else (STAGES[name],)
    domain, distance = Domain(n_rows=12, n_features=3, row_norm=1.0, max_missing=0), Adjacency.replace().distance
    world, rng, used = World(domain, distance), np.random.default_rng(0), []
    pairs = [world.drawn(rng) for _ in range(30)]
    pairs += [world.varied(pair, rng, 0.3) for pair in pairs]
    for stage in stages:
        way = next(way for way in stage.fit_modes(domain, distance) if way.name in ("exact", "public"))
        pairs = [through(stage, way, domain, pair) for pair in pairs]
        domain, distance = way.domain, way.distance
    bound = certified(distance, domain)
    used = [apart(*pair) / bound for pair in pairs]
    assert max(used) <= ROUNDING
    assert max(used) > 0.1
