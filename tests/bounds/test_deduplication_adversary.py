"""Deduplication against an adversary: what it certifies is never exceeded, and all of it is reached.

Records are drawn from a handful, so that groups of duplicates appear, grow, and lose their representative. Equal
records are matched wherever they stand; position by position :meth:`Distance.by_position` must hold.
"""

import math

import numpy as np
import pytest
from adversary import World, named
from neighbours import Chain, Pair, as_multisets, by_position, shares

from ppdp.distance import Distance
from ppdp.domain import Domain
from ppdp.rows import Rows
from ppdp.transformers import Deduplicator, RowMap

N = 7
DOMAIN = Domain(n_rows=N, n_features=2, row_norm=2.0)
COUNTS = [
    Distance(replaced=1),
    Distance(replaced=2),
    Distance(toggled=1),
    Distance(replaced=1, toggled=2),
    Distance(replaced=1, toggled=2, mass=4, one_sided=2),
]
ANY_KEY = pytest.mark.parametrize("key", [None, [0]], ids=["whole record", "key"])


def wherever(pair, free):
    """Equal records are matched, so it does not matter which slots are free."""
    return as_multisets(pair)


def handful(world, rng, values):
    """A pair whose records come from few values, in any order, with its free slots."""
    free = world.roles[1].stop
    X = rng.choice(values, size=(N, 2))
    Z = X.copy()
    Z[:free] = rng.choice(values, size=(free, 2))
    y = rng.integers(2, size=N).astype(float)
    u = np.where(np.arange(N) < free, rng.integers(2, size=N), y).astype(float)
    w = (rng.random(N) < 0.8).astype(float)
    v = np.where(np.arange(N) < len(world.free), rng.random(N) < 0.8, w).astype(float)
    pair = world.legal(Pair(Rows(X, y, w), Rows(Z, u, v)))
    order = rng.permutation(N)  # which duplicate comes first decides which slot is kept
    rows = [Rows(r.X[order], r.y[order], r.weight[order]) for r in (pair.left, pair.right)]
    return Pair(*rows), np.flatnonzero(np.isin(order, world.free))


def most(chain, world, measure, certified, values=(0.0, -0.0, 1.0, np.nan), pairs=500):
    """The largest share of any certified number over many pairs."""
    rng = np.random.default_rng(0)
    largest = 0.0
    for _ in range(pairs):
        pair, free = handful(world, rng, np.asarray(values))
        largest = max(largest, *shares(measure(pair.mapped(chain.run), free), certified).values())
    return largest


@ANY_KEY
@pytest.mark.parametrize("distance", COUNTS, ids=named)
def test_no_pair_exceeds_the_counts(distance, key):
    world = World(DOMAIN, distance, gaps=N, labels=True, deleted=True)
    chain = Chain.of([Deduplicator(key)], DOMAIN, distance)
    assert 0.5 <= most(chain, world, wherever, chain.distance) <= 1
    assert 0.5 <= most(chain, world, by_position, chain.distance.by_position()) <= 1


@pytest.mark.parametrize("keys", [(None, None), (None, [0]), ([0], None), ([1], [0])], ids=str)
def test_no_pair_exceeds_the_counts_of_two_in_a_row(keys):
    """Between them a public map makes new duplicates, so that the second deletes as well."""
    coarser = RowMap(np.floor, out_ranges=(-1, 2))
    for distance in (Distance(replaced=1), Distance(replaced=1, toggled=1)):
        world = World(DOMAIN, distance, gaps=N, labels=True)
        chain = Chain.of([Deduplicator(keys[0]), coarser, Deduplicator(keys[1])], DOMAIN, distance)
        for measure, certified in ((wherever, chain.distance), (by_position, chain.distance.by_position())):
            assert most(chain, world, measure, certified, values=(0.0, 0.25, 0.5, 1.0), pairs=300) <= 1


@ANY_KEY
def test_rows_that_moved_count_as_replaced(key):
    distance = Distance(replaced=1, moved=2, radius=0.5, total=0.75)
    world = World(DOMAIN, distance, labels=True)
    chain = Chain.of([Deduplicator(key)], DOMAIN, distance)
    assert chain.distance.moved == 0
    rng = np.random.default_rng(2)
    for measure, certified in ((wherever, chain.distance), (by_position, chain.distance.by_position())):
        largest = 0.0
        for _ in range(500):
            X = rng.choice([0.0, 0.5, 1.0], size=(N, 2))
            Z = X + np.where(np.arange(N)[:, None] < 3, rng.choice([0.0, 0.5, -0.5], size=(N, 2)), 0.0)
            y = rng.integers(2, size=N).astype(float)
            pair = world.legal(Pair.of(X, Z, (y, np.where(np.arange(N) == 0, 1 - y, y))))
            largest = max(largest, *shares(measure(pair.mapped(chain.run), range(3)), certified).values())
        assert 0.6 <= largest <= 1


# The worst that one unmatched record can do, as (left, right) by slot; records are (key, rest), None is absent.
LONE = {"replaced": [((0, 0), (1, 0))], "toggled": [((0, 0), None)]}
COPIED = {  # records whose equal copies stand further down
    "replaced": [((0, 0), (1, 0)), ((0, 0), (0, 0)), ((1, 0), (1, 0))],
    "toggled": [((0, 0), None), ((0, 0), (0, 0))],
}
OUSTING = {  # records smaller than the one that represented their group
    "replaced": [((0, 0), (1, 0)), ((0, 1), (0, 1)), ((1, 1), (1, 1))],
    "toggled": [((0, 0), None), ((0, 1), (0, 1))],
}


def assembled(pieces, replaced, toggled):
    """A pair of so many pieces, each with records of its own, and its free slots."""
    slots, free = [], []
    for kind, count in (("replaced", replaced), ("toggled", toggled)):
        for _ in range(count):
            base = 2.0 * len(slots)
            free += [len(slots)] if kind == "replaced" else []
            slots += [[None if r is None else (base + r[0], r[1]) for r in slot] for slot in pieces[kind]]
    sides = []
    for side in zip(*slots):
        X = np.array([(0.0, 0.0) if record is None else record for record in side])
        sides.append(Rows(X, None, np.array([float(record is not None) for record in side])))
    return Pair(*sides), free


@pytest.mark.parametrize(("replaced", "toggled"), [(1, 0), (0, 1), (2, 0), (2, 3)])
def test_every_count_is_attained(replaced, toggled):
    distance = Distance(replaced=replaced, toggled=toggled)

    def used(key, pieces, measure):
        pair, free = assembled(pieces, replaced, toggled)
        chain = Chain.of([Deduplicator(key)], Domain(n_rows=pair.left.n, n_features=2), distance)
        certified = chain.distance if measure is wherever else chain.distance.by_position()
        return shares(measure(pair.mapped(chain.run), free), certified)

    names = ("mass", "one_sided", "slots")
    assert [used(None, LONE, wherever)[name] for name in names] == [1, 1, 1]
    assert [used([0], OUSTING, wherever)[name] for name in names[:2]] == [1, 1]
    assert [used([0], OUSTING, by_position)[name] for name in names] == [1, 1, 1]
    copied = used(None, COPIED, by_position)
    assert copied["mass"] == copied["slots"] == 1
    # A toggled record switches one copy on the other side, which by_position does not know to be there.
    assert copied["one_sided"] == pytest.approx((2 * replaced + toggled) / (2 * replaced + 1.5 * toggled))


def test_without_a_label_the_record_is_the_row():
    world = World(DOMAIN, gaps=N, labels=True)
    chain = Chain.of([Deduplicator()], DOMAIN, world.distance)
    rng = np.random.default_rng(1)
    pairs = [handful(world, rng, np.array([0.0, 1.0, math.nan]))[0] for _ in range(500)]
    masses = [as_multisets(pair.mapped(lambda rows: chain.run(Rows(rows.X, None, rows.weight)))).mass for pair in pairs]
    assert max(masses) == chain.distance.mass == 2
