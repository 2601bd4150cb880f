"""Clusters against an adversary: one row decides about others no more than certified, and all of that is reached.

Rows stand on a grid on which their distances are often exactly η, 3η, 4η or 8η. Certified is what the smallest
``max_cluster`` gives for which the condition holds on both sides.
"""

import numpy as np
import pytest
from adversary import World, named
from effort import rounds
from neighbours import ROUNDING, Pair, as_multisets, by_position, shares
from worst_cases import CIRCLE, KISSES, twice

from ppdp.bounds import lookup
from ppdp.bounds.deduplication import KISSING, decided, reach
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.rows import Rows
from ppdp.transformers import ClusterDeduplicator, ClusterQuantizer
from ppdp.transformers.deduplicate import clusters
from ppdp.transformers.deduplicate.clusters import SLACK, Comparable, centres, crowding

N, ETA = 13, 10.0
STAGES = {"clusters.deduplicate": ClusterDeduplicator, "clusters.quantize": ClusterQuantizer}
DISTANCES = [
    Distance(replaced=1),
    Distance(replaced=2),
    Distance(toggled=1),
    Distance(replaced=1, toggled=2, mass=4, one_sided=2),
    Distance(moved=2, radius=2.0, total=3.0),
    Distance(replaced=1, toggled=1, moved=1, radius=1.0),
]
STEPS = np.array([0, 0, 1, 5, 9, 10, 10, 11, 20, 21, 25, 29, 30, 30, 31, 40, 41])

every_stage = pytest.mark.parametrize("formula", STAGES)
every_distance = pytest.mark.parametrize("distance", DISTANCES, ids=named)
both_conditions = pytest.mark.parametrize("low_dimension", [False, True], ids=["8 eta", "2 eta"])


def domain(d):
    """So many rows that no count is capped by their number."""
    return Domain(n_rows=10**6, n_features=d, row_norm=1e6)


def grid_rows(n, d, rng):
    """Rows that are steps of interesting length away from one another."""
    X = np.zeros((n, d))
    near, columns = rng.integers(np.arange(1, n)), rng.integers(d, size=n - 1)
    steps = rng.choice(STEPS, n - 1) * rng.choice([-1, 1], n - 1)
    for i, (other, column, step) in enumerate(zip(near, columns, steps), 1):
        X[i] = X[other]
        X[i, column] += step
    return X


def drawn(world, rng, gaps):
    """A legal pair on the grid: replaced and toggled rows join or leave clusters anywhere."""
    d = world.domain.d
    X = grid_rows(N, d, rng)[rng.permutation(N)]
    Z = X.copy()
    free = world.roles[1].stop
    Z[:free] = grid_rows(N, d, rng)[rng.permutation(N)[:free]] + X[rng.integers(N)]
    Z[world.roles[2]] += rng.integers(-1, 2, size=Z[world.roles[2]].shape)
    if gaps:
        X[rng.random(X.shape) < 0.05] = np.nan
        Z[free:] = np.where(np.isnan(X[free:]), np.nan, Z[free:])
    y = rng.integers(4, size=(2, N)) > 0  # one label is rare
    w = (rng.random((2, N)) < 0.9).astype(float)
    return world.legal(Pair(Rows(X, y[0].astype(float), w[0]), Rows(Z, y[1].astype(float), w[1])))


def crowded(rows, low_dimension=False, eta=ETA, most=10**6):
    return crowding(Comparable.of(rows.X, rows.y, rows.weight), reach(low_dimension) * eta * SLACK, most)


def applied(formula, pair, eta=ETA):
    return pair.mapped(lambda rows: STAGES[formula](eta).apply(rows, {}))


def certified(formula, pair, distance, low_dimension=False, eta=ETA):
    most = max(crowded(rows, low_dimension, eta) for rows in (pair.left, pair.right))
    bound = lookup(formula, "stability")
    d = pair.left.X.shape[1]
    return bound(domain(d), distance, eta=eta, max_cluster=most, low_dimension=low_dimension)[1]


@every_stage
@every_distance
@both_conditions
@pytest.mark.repeated("formula", "low_dimension")
def test_no_pair_exceeds_the_bounds(formula, distance, low_dimension):
    rng = np.random.default_rng(3)
    largest = 0.0
    for trial in range(rounds(60)):
        world = World(Domain(n_rows=N, n_features=1 + trial % 3, row_norm=1e6), distance, N, labels=True, deleted=True)
        pair = drawn(world, rng, gaps=trial % 5 == 0)
        found = by_position(applied(formula, pair), world.free)
        largest = max(largest, *shares(found, certified(formula, pair, distance, low_dimension)).values())
    assert 0.2 < largest <= ROUNDING


@every_stage
def test_rows_that_match_in_another_order(formula):
    """A copy leaves one slot and appears in another: by position two toggles, as multisets nothing."""
    distance = Distance(replaced=1, reordered=2)
    world = World(Domain(n_rows=N, n_features=2, row_norm=1e6), Distance(replaced=1, toggled=2))
    rng = np.random.default_rng(4)
    largest = 0.0
    for _ in range(rounds(120)):
        pair = drawn(world, rng, gaps=False)
        left, right = (Rows(r.X.copy(), None, np.ones(N)) for r in (pair.left, pair.right))
        right.X[2], left.weight[2], right.weight[1] = left.X[1], 0.0, 0.0
        pair = Pair(left.settled(), right.settled())
        promise, out = certified(formula, pair, distance), applied(formula, pair)
        used = shares(by_position(out, [0]), promise.by_position())
        if formula == "clusters.deduplicate":
            used |= {f"{name}, as multisets": share for name, share in shares(as_multisets(out), promise).items()}
        largest = max(largest, *used.values())
    assert 0.2 < largest <= ROUNDING


@every_distance
@both_conditions
@pytest.mark.repeated("low_dimension")
def test_crowding_changes_by_at_most_its_unit(distance, low_dimension):
    unit = lookup("clusters.crowding", "margin")(domain(2), distance)
    rng = np.random.default_rng(6)
    largest = 0.0
    for trial in range(rounds(60)):
        world = World(Domain(n_rows=N, n_features=1 + trial % 3, row_norm=1e6), distance, N, labels=True, deleted=True)
        pair = drawn(world, rng, gaps=trial % 5 == 0)
        change = abs(crowded(pair.left, low_dimension) - crowded(pair.right, low_dimension))
        largest = max(largest, change / unit)
    assert 0.3 < largest <= 1


def peeled(X, radius):
    """Crowding by the definition: take away a row with the fewest neighbours, again and again."""
    near = np.linalg.norm(X[:, None] - X[None], axis=2) <= radius
    left, most = list(range(len(X))), 1
    while left:
        counts = near[np.ix_(left, left)].sum(axis=1)
        most = max(most, int(counts.min()))
        left.pop(int(counts.argmin()))
    return most


def test_crowding_is_what_it_is_defined_as():
    rng = np.random.default_rng(6)
    for trial in range(80):
        X = grid_rows(30, 1 + trial % 3, rng)
        rows, truth = Comparable.of(X, None, np.ones(30)), peeled(X, 3 * ETA)
        assert [crowding(rows, 3 * ETA, most) for most in (1, 4, 1000)] == [min(truth, 2), min(truth, 5), truth]


def test_a_margin_is_measured_in_replaced_rows():
    X = np.vstack([np.zeros((5, 1)), [[1000.0], [2000.0]]])
    for keys, unit in (("current", 4.0), ("raw", 2.0)):
        stage = ClusterDeduplicator(ETA, max_cluster=8, compare=keys)
        facts = Domain(n_rows=70, n_features=1, rows_per_unit=2, min_present=70)
        distance = Distance(replaced=2, toggled=2) if keys == "current" else Distance(replaced=2, moved=60, radius=1)
        (condition,) = stage.conditions(facts, distance)
        assert condition.unit == unit
        assert condition.margin(X) == (8 + 1 - 5) / unit
        assert condition.margin(np.zeros((9, 1))) == 0
        assert condition.margin(X[5:]) == condition.largest == 8 / unit


# ------------------------------------------------------------------------------------------- what is attained


def used(formula, pair, eta, low_dimension=False):
    found = by_position(applied(formula, pair, eta), [0])
    return shares(found, certified(formula, pair, Distance(replaced=1), low_dimension, eta))


def test_what_is_certified_for_neighbours_is_attained():
    pair = twice(CIRCLE, (0, 0))
    deleted, moved = (used(formula, pair, 5.0) for formula in STAGES)
    assert [deleted["slots"], deleted["mass"], moved["moved"]] == [1, 1, 1]
    assert moved["total"] == pytest.approx(1)
    assert crowded(pair.left, eta=5.0) == 13


def test_almost_all_may_be_deleted_on_one_side():
    """Left, z spoils a cluster, so that nothing is deleted; right, it makes one."""
    spoiled = np.vstack([np.zeros((12, 2)), CIRCLE])
    y = np.repeat([0.0, 1.0], 12)
    pair = Pair.of(np.vstack([(10, 0), spoiled]), np.vstack([(0, 0), spoiled]), (np.append(0.0, y), np.append(1.0, y)))
    assert used("clusters.deduplicate", pair, 5.0)["one_sided"] == 24 / 25


def test_a_row_moves_by_twice_eta():
    pair = Pair.of([(-0.001, 1), (0, 0)], [(-0.001, -1), (0, 0)])
    assert 0.999 < used("clusters.quantize", pair, 1 + 1e-5)["radius"] <= 1


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("copies", [3, 5])
def test_kissing_clusters_attain_the_bound_of_few_columns(d, copies):
    eta, kissing = KISSES[d]
    pair = twice(np.repeat(np.array(kissing, float), copies, axis=0), np.zeros(d))
    found = used("clusters.deduplicate", pair, eta, low_dimension=True)
    assert [found["slots"], found["mass"]] == [1, 1]
    assert certified("clusters.deduplicate", pair, Distance(replaced=1), True, eta).toggled == 2 * KISSING[d] * (
        copies - 1
    )


def test_a_cluster_of_two_rows_may_cost_two():
    """z spoils the first row of each pair, so that the second represents it: more than the one that is deleted."""
    pair = twice([(-29, 0), (-29, 9), (29, 0), (32, 0)], (0, 0))
    sides, spoiled = 2, 2
    assert by_position(applied("clusters.deduplicate", pair), [0]).toggled == sides * spoiled * 2
    assert crowded(pair.left, low_dimension=True) == 2
    assert decided(domain(2), 2, True, moves=False) == KISSING[2] * 2


# ------------------------------------------------------------------------------------- what one row may look at


def test_the_first_in_order_represents_wherever_it_stands():
    rng = np.random.default_rng(7)
    for trial in range(60):
        X = grid_rows(30, 1 + trial % 3, rng)
        y = rng.integers(2, size=30).astype(float)
        order = rng.permutation(30)
        plain, shuffled = Rows(X, y, np.ones(30)), Rows(X[order], y[order], np.ones(30))
        for formula in STAGES:
            out = applied(formula, Pair(plain, shuffled))
            assert as_multisets(out).changed == 0


def test_labels_and_gaps_and_deleted_rows_keep_to_themselves():
    X = np.array([[0.0], [1.0], [2.0], [np.nan], [3.0]])
    rows = Rows(X, np.array([0.0, 0, 1, 0, 0]), np.array([1.0, 1, 1, 1, 0]))
    assert ClusterDeduplicator(ETA).apply(rows, {}).weight.tolist() == [1, 0, 1, 1, 0]
    assert ClusterQuantizer(ETA).apply(rows, {}).X[:3, 0].tolist() == [0, 0, 2]
    assert crowded(rows) == 2


def test_pieces_give_what_all_at_once_gives(monkeypatch):
    rng = np.random.default_rng(8)
    tables = [(grid_rows(120, 2, rng), rng.integers(2, size=120).astype(float) if k % 2 else None) for k in range(6)]

    def found(X, y):
        rows = Comparable.of(X, y, np.ones(len(X)))
        return centres(rows, ETA).tolist(), crowding(rows, 3 * ETA, 1000), crowding(rows, 3 * ETA, 3)

    whole = [found(X, y) for X, y in tables]
    monkeypatch.setattr(clusters, "AT_ONCE", 40)
    assert [found(X, y) for X, y in tables] == whole


@pytest.mark.parametrize("scale", [1e-60, 1e-9, 1.0, 1e60])
def test_scale_and_place_do_not_matter(scale):
    """Powers of two apart, everything is exact: tiny rows, huge rows, and rows far from the origin."""
    rng = np.random.default_rng(9)
    factor = 2.0 ** np.floor(np.log2(scale))
    for _ in range(20):
        X = grid_rows(30, 2, rng)
        rows = [Comparable.of(Z, None, np.ones(30)) for Z in (X, X * factor, (X + 2.0**40) * factor)]
        found = [centres(r, eta).tolist() for r, eta in zip(rows, (ETA, ETA * factor, ETA * factor))]
        assert found[0] == found[1] == found[2]


def test_no_rows_at_all():
    nobody = Comparable.of(np.full((3, 2), np.nan), np.zeros(3), np.ones(3))
    assert (centres(nobody, ETA).size, crowding(nobody, ETA, 5)) == (0, 1)
