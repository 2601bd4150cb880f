"""Deduplication against an adversary: what it certifies is never exceeded, and all of it is reached.

Records are drawn from a handful, so that groups of duplicates appear, grow, and lose their representative. Equal
records are matched wherever they stand; position by position :meth:`Distance.by_position` must hold.
"""

import math
from collections import Counter
from functools import cache

import numpy as np
import pytest
from adversary import World, named
from effort import rounds
from neighbours import ROUNDING, Chain, Pair, as_multisets, by_position, shares

from ppdp.bounds import lookup
from ppdp.bounds.deduplication import diameter_of, later
from ppdp.core.adjacency import Adjacency
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.rows import Rows
from ppdp.transformers import Deduplicator, GridDeduplicator, LSHDeduplicator, RowMap
from ppdp.transformers.deduplicate.lsh_deduplicator import first_everywhere, largest_load, windowed

ONE = Adjacency.replace().distance

N = 7
DOMAIN = Domain(n_rows=N, n_features=2, row_norm=2.0, min_present=N)
COUNTS = [
    Distance(replaced=1),
    Distance(replaced=2),
    Distance(toggled=1),
    Distance(replaced=1, toggled=2),
    Distance(replaced=1, toggled=2, mass=4, one_sided=2),
    Distance(replaced=1, toggled=1, mass=2, one_sided=2),
]
HARD = {
    "whole record": Deduplicator(),
    "key": Deduplicator([0]),
    "unanimous": Deduplicator(label_rule="unanimous"),
    "first label": Deduplicator(label_rule="first"),
    "unanimous key": Deduplicator([0], label_rule="unanimous"),
    "centre": GridDeduplicator(0.6),
    "unanimous centre": GridDeduplicator(0.6, label_rule="unanimous"),
    "centre, first label": GridDeduplicator(0.6, label_rule="first"),
    "first in cell": GridDeduplicator(0.6, keep="first", label_rule="first"),
    "unanimous first": GridDeduplicator(0.6, keep="first", label_rule="unanimous"),
    "vectors": LSHDeduplicator(bands=2, rows_per_band=1, mode="simhash"),
    "sets": LSHDeduplicator(bands=2, rows_per_band=1),
    "window": LSHDeduplicator(bands=2, rows_per_band=1, rule="window", window=2, similarity=0.5),
    "window of vectors": LSHDeduplicator(bands=1, rows_per_band=1, mode="simhash", rule="window", window=3),
}
SOFT = {
    "cells": GridDeduplicator(0.6, keep="soft"),
    "cells of any label": GridDeduplicator(0.6, keep="soft", label_rule="first"),
    "one band": LSHDeduplicator(bands=1, rows_per_band=1, rule="soft"),
    "three bands": LSHDeduplicator(bands=3, rows_per_band=1, rule="soft"),
}
MOVING = GridDeduplicator([0.6, 0.6], keep="first")


def each(stages):
    return pytest.mark.parametrize("stage", stages.values(), ids=list(stages))


def wherever(pair, free):
    """Equal records are matched, so it does not matter which slots are free."""
    return as_multisets(pair)


def records(rows):
    """Weight of every record."""
    whole = rows.X if rows.y is None else np.column_stack([rows.X, rows.y])
    weights = Counter()
    for record, weight in zip(whole + 0.0, rows.weight):
        weights[record.tobytes()] += weight
    return weights


def weighed(pair):
    """Mass and one-sided mass, equal records matched wherever they stand."""
    left, right = records(pair.left), records(pair.right)
    more = [sum(max(0.0, a[record] - b[record]) for record in a) for a, b in ((left, right), (right, left))]
    return sum(more), max(more)


def weighed_by_position(pair):
    """The same slot by slot."""
    left, right = pair.left, pair.right
    equal = (left.X == right.X) | (np.isnan(left.X) & np.isnan(right.X))
    common = np.where(equal.all(axis=1) & (left.y == right.y), np.minimum(left.weight, right.weight), 0.0)
    only = (left.weight - common).sum(), (right.weight - common).sum()
    return sum(only), max(only)


def exceeded(found, distance):
    """Whether mass or one-sided mass are larger than a distance allows."""
    return found[0] > distance.mass * ROUNDING or found[1] > distance.one_sided * ROUNDING


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


@cache
def drawn(distance, pairs=80, values=(0.0, -0.0, 0.25, 1.0, np.nan), deleted=False):
    """Legal pairs with their free slots."""
    pairs = rounds(pairs)
    world, rng = World(DOMAIN, distance, gaps=N, labels=True, deleted=deleted), np.random.default_rng(0)
    found = [handful(world, rng, np.asarray(values)) for _ in range(pairs)]
    kept = [(pair, free) for pair, free in found if not exceeded(weighed_by_position(pair), distance)]
    assert len(kept) > pairs / 5
    return kept


def most(chain, pairs):
    """The largest share of any certified number over many pairs, and the same slot by slot."""
    found = [0.0, 0.0]
    for pair, free in pairs:
        out = pair.mapped(chain.run)
        used = shares(as_multisets(out), chain.distance), shares(by_position(out, free), chain.distance.by_position())
        found = [max(before, *use.values()) for before, use in zip(found, used)]
    return found


@each(HARD)
@pytest.mark.parametrize("distance", COUNTS, ids=named)
@pytest.mark.repeated("distance")
def test_no_pair_exceeds_the_counts(distance, stage):
    chain, pairs = Chain.of([stage], DOMAIN.but(min_present=0), distance), drawn(distance, deleted=True)
    assert all(0.2 <= share <= 1 for share in most(chain, pairs))


@each(SOFT)
@pytest.mark.parametrize("distance", COUNTS, ids=named)
@pytest.mark.repeated("stage")
def test_no_pair_exceeds_the_weights(distance, stage):
    certified = Chain.of([stage], DOMAIN.but(min_present=0), distance)
    assert certified.distance.reweighted == N
    for pair, _ in drawn(distance, deleted=True):
        out = pair.mapped(certified.run)
        assert (out.left.weight > 0).tolist() == (pair.left.weight > 0).tolist()
        assert not exceeded(weighed(out), certified.distance)
        assert not exceeded(weighed_by_position(out), certified.distance.by_position())


def representatives(rows, sides):
    """The row that each cell, mask and label is left with."""
    cells = MOVING._origin(2)
    keys = np.column_stack([np.floor((rows.X - cells * sides) / sides), rows.y])
    return {np.nan_to_num(key, nan=-99.0).tobytes(): x for key, x, w in zip(keys, rows.X, rows.weight) if w}


@pytest.mark.parametrize("distance", COUNTS, ids=named)
def test_no_pair_exceeds_the_moves_inside_cells(distance):
    chain = Chain.of([MOVING], DOMAIN.but(min_present=0), distance)
    certified = chain.distance
    assert certified.radius == diameter_of(DOMAIN, MOVING.cell_width) >= 0.6 * math.sqrt(2)
    for pair, free in drawn(distance, deleted=True):
        out = pair.mapped(chain.run)
        left, right = representatives(out.left, 0.6), representatives(out.right, 0.6)
        moves = [np.linalg.norm(np.nan_to_num(left[key] - right[key])) for key in left.keys() & right.keys()]
        moves = [move for move in moves if move]
        absorbed = max(0, len(moves) - int(certified.moved))
        lost, gained = len(left.keys() - right.keys()) + absorbed, len(right.keys() - left.keys()) + absorbed
        assert max(moves, default=0) <= certified.radius
        assert lost + gained <= certified.mass
        assert max(lost, gained) <= certified.one_sided
        assert max(lost, gained, lost + gained - distance.replaced) <= certified.replaced + certified.toggled
        assert max(shares(by_position(out, free), certified.by_position()).values()) <= 1


TWO = {
    "records twice": (Deduplicator(), Deduplicator()),
    "records, key": (Deduplicator(), Deduplicator([0])),
    "key, records": (Deduplicator([0]), Deduplicator()),
    "keys": (Deduplicator([1]), Deduplicator([0])),
    "records, unanimous": (Deduplicator(), Deduplicator(label_rule="unanimous")),
    "unanimous, centre": (Deduplicator(label_rule="unanimous"), GridDeduplicator(0.6)),
    "centre, sets": (GridDeduplicator(0.3), LSHDeduplicator(bands=2, rows_per_band=1)),
    "records, window": (Deduplicator(), LSHDeduplicator(bands=1, rows_per_band=1, rule="window", window=2)),
}


@pytest.mark.parametrize("distance", [Distance(replaced=1), Distance(replaced=1, toggled=1)], ids=named)
@pytest.mark.parametrize("stages", TWO.values(), ids=list(TWO))
@pytest.mark.repeated("distance")
def test_no_pair_exceeds_the_counts_of_two_in_a_row(stages, distance):
    """Between them a public map makes new duplicates, so that the second deletes as well."""
    coarser = RowMap(np.floor, out_ranges=(-1, 2))
    pairs = drawn(distance, values=(0.0, 0.25, 0.5, 1.0))
    chain = Chain.of([stages[0], coarser, stages[1]], DOMAIN.but(min_present=0), distance)
    assert max(most(chain, pairs)) <= 1


@pytest.mark.parametrize("first", [Deduplicator(), Deduplicator([0])], ids=["records", "key"])
@each(SOFT)
@pytest.mark.repeated("first")
def test_no_pair_exceeds_the_weights_behind_another_rule(first, stage):
    chain = Chain.of([first, stage], DOMAIN, ONE)
    for pair, _ in drawn(ONE):
        out = pair.mapped(chain.run)
        assert not exceeded(weighed(out), chain.distance)
        assert not exceeded(weighed_by_position(out), chain.distance.by_position())


def moved_pairs(pairs, seed):
    """Slot 0 replaced, slots 1 and 2 moved by at most 1/2, 3/4 together; values in few cells."""
    distance = Distance(replaced=1, moved=2, radius=0.5, total=0.75)
    world = World(DOMAIN, distance, labels=True)
    rng = np.random.default_rng(seed)
    for _ in range(pairs):
        X = rng.choice([0.0, 0.5, 1.0], size=(N, 2))
        Z = X + np.where(np.arange(N)[:, None] < 3, rng.choice([0.0, 0.5, -0.5], size=(N, 2)), 0.0)
        y = rng.integers(2, size=N).astype(float)
        yield world.legal(Pair.of(X, Z, (y, np.where(np.arange(N) == 0, 1 - y, y))))


@each({name: stage for name, stage in HARD.items() if "window" not in name})
def test_rows_that_moved_count_as_replaced(stage):
    many = DOMAIN.but(n_rows=40)  # of few rows none may have moved
    chain = Chain.of([stage], many, Distance(replaced=1, moved=2, radius=0.5, total=0.75))
    assert chain.distance.moved == 0
    used = most(chain, [(pair, range(3)) for pair in moved_pairs(rounds(60), 2)])
    assert all(0.2 <= share <= 1 for share in used)


RAW = {
    "whole record": Deduplicator(compare="raw"),
    "unanimous": Deduplicator(label_rule="unanimous", compare="raw"),
    "first label": Deduplicator(label_rule="first", compare="raw"),
    "cells": GridDeduplicator(0.6, keep="first", compare="raw"),
    "vectors": LSHDeduplicator(bands=2, rows_per_band=1, mode="simhash", compare="raw"),
    "weights": GridDeduplicator(0.6, keep="soft", compare="raw"),
    "bands": LSHDeduplicator(bands=3, rows_per_band=1, rule="soft", compare="raw"),
}


@each(RAW)
def test_no_pair_exceeds_the_counts_of_raw_keys(stage):
    """Rows that moved since stay moved: the decision was taken before, on rows of which one was replaced."""
    distance = Distance(replaced=1, moved=N - 1, radius=0.5)
    certified = Chain.of([stage], DOMAIN, distance)
    assert (certified.distance.moved, certified.distance.radius) == (N - 1, 0.5)
    rng = np.random.default_rng(3)
    complete = [one for one in drawn(ONE, 120) if one[0].left.weight.all() and one[0].right.weight.all()]
    assert len(complete) > 50
    for pair, free in complete:
        shift = rng.uniform(-0.2, 0.2, size=(2, 2))  # a fitted map: all rows move alike, on either side otherwise
        sides = [
            certified.run(Rows(rows.X + move, rows.y, rows.weight, raw=rows.X))
            for rows, move in zip((pair.left, pair.right), shift)
        ]
        used = shares(by_position(Pair(*sides), free), certified.distance)
        weights = np.array([rows.weight for rows in sides])
        mass = sum(weights[:, i].sum() if i in free else abs(np.diff(weights[:, i])).item() for i in range(N))
        assert mass <= certified.distance.mass * ROUNDING
        assert certified.distance.reweighted or max(used.values()) <= ROUNDING


def test_a_decision_keeps_weight_that_others_left_unmatched():
    before = Distance(replaced=2, moved=3, radius=0.1)  # one of the two was replaced by a map in between
    after = later(before, Distance(replaced=1, toggled=2, mass=4, one_sided=2))
    assert (after.replaced, after.toggled, after.moved, after.mass, after.one_sided) == (2, 2, 3, 6, 3)


# The worst that one unmatched record can do, as (left, right) by slot; records are (key, rest, label), None is absent.
LONE = {"replaced": [((0, 0, 0), (1, 0, 0))], "toggled": [((0, 0, 0), None)]}
COPIED = {  # records whose equal copies stand further down
    "replaced": [((0, 0, 0), (1, 0, 0)), ((0, 0, 0), (0, 0, 0)), ((1, 0, 0), (1, 0, 0))],
    "toggled": [((0, 0, 0), None), ((0, 0, 0), (0, 0, 0))],
}
OUSTING = {  # records smaller than the one that represented their group
    "replaced": [((0, 0, 0), (1, 0, 0)), ((0, 0.1, 0), (0, 0.1, 0)), ((1, 0.1, 0), (1, 0.1, 0))],
    "toggled": [((0, 0, 0), None), ((0, 0.1, 0), (0, 0.1, 0))],
}
RELABELLED = {  # records that change the smallest label of their group
    "replaced": [((0, 0, 0), (1, 0, 0)), ((0, 0, 1), (0, 0, 1)), ((1, 0, 1), (1, 0, 1))],
    "toggled": [((0, 0, 0), None), ((0, 0, 1), (0, 0, 1))],
}
TORN = {  # on the left a new key, on the right the first label that disagrees: both lose a record on the right
    "replaced": [((0, 0, 0), (1, 0, 1)), ((1, 0, 0), (1, 0, 0))],
    "toggled": [((0, 0, 0), None)],
}
HALVED = {  # on the left a new cell, on the right a second row of one
    "replaced": [((0, 0, 0), (1, 0, 0)), ((1, 0.1, 0), (1, 0.1, 0))],
    "toggled": [((0, 0, 0), None)],
}


def assembled(pieces, replaced, toggled):
    """A pair of so many pieces, each with records of its own, and its free slots."""
    slots, free = [], []
    for kind, count in (("replaced", replaced), ("toggled", toggled)):
        for _ in range(count):
            base = 2.0 * len(slots)
            free += [len(slots)] if kind == "replaced" else []
            slots += [[None if r is None else (base + r[0], *r[1:]) for r in slot] for slot in pieces[kind]]
    sides = []
    for side in zip(*slots):
        table = np.array([(0.0, 0.0, 0.0) if record is None else record for record in side])
        sides.append(Rows(table[:, :2], table[:, 2], np.array([float(record is not None) for record in side])))
    return Pair(*sides), free


def planned(stage, pair, distance):
    domain = Domain(n_rows=pair.left.n, n_features=2, row_norm=1e3)
    return Chain.of([stage], domain, distance)


@pytest.mark.parametrize(("replaced", "toggled"), [(1, 0), (0, 1), (2, 0), (2, 3)])
def test_every_count_is_attained(replaced, toggled):
    distance = Distance(replaced=replaced, toggled=toggled)

    def used(stage, pieces, measure):
        pair, free = assembled(pieces, replaced, toggled)
        chain = planned(stage, pair, distance)
        certified = chain.distance if measure is wherever else chain.distance.by_position()
        return shares(measure(pair.mapped(chain.run), free), certified)

    names = ("mass", "one_sided", "slots")
    for free in (Deduplicator(), GridDeduplicator(0.5)):
        assert [used(free, LONE, wherever)[name] for name in names] == [1, 1, 1]
    for stage, pieces in (
        (Deduplicator([0]), OUSTING),
        (Deduplicator(label_rule="first"), RELABELLED),
        (GridDeduplicator(0.5, label_rule="first"), RELABELLED),
        (GridDeduplicator(0.5, keep="first", label_rule="first"), OUSTING),
    ):
        assert [used(stage, pieces, wherever)[name] for name in names[:2]] == [1, 1]
        assert [used(stage, pieces, by_position)[name] for name in names] == [1, 1, 1]
    for stage in (Deduplicator(label_rule="unanimous"), GridDeduplicator(0.5, label_rule="unanimous")):
        assert [used(stage, TORN, wherever)[name] for name in names] == [1, 1, 1]
    copied = used(Deduplicator(), COPIED, by_position)
    assert copied["mass"] == copied["slots"] == 1
    # A toggled record switches one copy on the other side, which by_position does not know to be there.
    assert copied["one_sided"] == pytest.approx((2 * replaced + toggled) / (2 * replaced + 1.5 * toggled))


@pytest.mark.parametrize(("replaced", "toggled"), [(1, 0), (0, 1), (2, 0), (2, 3)])
def test_every_weight_is_attained(replaced, toggled):
    pair, _ = assembled(HALVED, replaced, toggled)
    chain = planned(GridDeduplicator(0.5, keep="soft"), pair, Distance(replaced=replaced, toggled=toggled))
    assert weighed(pair.mapped(chain.run)) == (chain.distance.mass, chain.distance.one_sided)


def test_a_move_inside_a_cell_is_attained():
    """The replaced row leaves its cell to another one in the far corner, and gains a cell."""
    origin = MOVING._origin(2) * 0.6
    corner, opposite = origin + 1e-9, origin + 0.6 - 1e-9
    elsewhere = origin + 0.9
    domain = Domain(n_rows=2, n_features=2, row_norm=4.0)
    chain = Chain.of([MOVING], domain, ONE)
    left, right = Rows.of(np.array([corner, opposite]), [0, 0]), Rows.of(np.array([elsewhere, opposite]), [0, 0])
    kept = [rows.X[rows.weight > 0] for rows in map(chain.run, (left, right))]
    assert np.linalg.norm(kept[0][0] - kept[1][-1]) >= chain.distance.radius * (1 - 1e-7)
    assert chain.distance.moved == chain.distance.replaced == 1


def banded(b, m=1):
    """Keys in b bands: row 0 is (left) in m-fold buckets of the next rows, (right) in those of the rows after."""
    rows = b * m
    keys = 1000.0 + np.arange(2 * rows * b).reshape(2 * rows, b)
    for i in range(2 * rows):
        keys[i, i // m % b] = i // m
    left, right = np.arange(b), b + np.arange(b)
    return [np.vstack([own, keys]).astype(np.uint64) for own in (left, right)]


@pytest.mark.parametrize("bands", [1, 2, 3])
@pytest.mark.parametrize("window", [None, 1, 2])
def test_every_count_of_bands_is_attained(bands, window):
    n = 2 * bands * (window or 1) + 1
    order = np.arange(n)
    certified = lookup(f"deduplication.bands-{'window' if window else 'first'}", "stability")(
        Domain(n_rows=n, n_features=1), ONE, bands=bands, seed=0, **({"window": window} if window else {})
    )[1]

    def kept(keys):
        return windowed(keys, order, window, lambda i, j: j == 0) if window else first_everywhere(keys, order)

    left, right = map(kept, banded(bands, window or 1))
    assert left[0]
    assert right[0]
    only = int((left & ~right).sum()), int((right & ~left).sum())
    assert sum(only) == certified.toggled
    assert 2 + sum(only) == certified.mass
    assert 1 + max(only) == certified.one_sided


@pytest.mark.parametrize("bands", [1, 2, 3, 14])
def test_every_weight_of_bands_is_attained(bands):
    formula = lookup("deduplication.bands-weights", "stability")
    left, right = banded(bands)
    certified = formula(Domain(n_rows=len(left), n_features=1), ONE, bands=bands, seed=0)[1]
    alone = left.copy()
    alone[0] = 99
    shared, other, lone = (1 / largest_load(keys) for keys in (left, right, alone))
    assert shared[0] + other[0] + np.abs(shared - other)[1:].sum() == certified.mass == max(2, bands + 1)
    assert lone[0] + np.maximum(lone - shared, 0)[1:].sum() == certified.one_sided == 1 + bands / 2


def test_copies_in_one_cell_are_covered_together():
    """A group of near-copies, replaced one and all by others of their cell, has the mass of one row."""
    rng = np.random.default_rng(0)
    y = np.zeros(N)
    for stage in (GridDeduplicator(0.6), GridDeduplicator(0.6, keep="soft")):
        origin = stage._origin(2) * 0.6
        X, Z = origin + rng.uniform(0.01, 0.59, (2, N, 2))
        Z[-1] = X[-1] = origin + 0.9
        pair = Pair.of(X, Z, (y, y))
        assert weighed(pair.mapped(Chain.of([stage], DOMAIN, ONE).run))[0] <= 2 * ROUNDING


def test_without_a_label_the_record_is_the_row():
    for labels in ("record", "unanimous", "first"):
        chain = Chain.of([Deduplicator(label_rule=labels)], DOMAIN, ONE)
        plain = Chain.of([Deduplicator()], DOMAIN, ONE)
        for pair, _ in drawn(ONE):
            bare = pair.mapped(lambda rows: Rows(rows.X, None, rows.weight))
            assert as_multisets(bare.mapped(chain.run)).mass == as_multisets(bare.mapped(plain.run)).mass <= 2


@each(HARD | SOFT | {"moving": MOVING})
def test_what_does_not_differ_does_not_differ_afterwards(stage):
    domain, distance = stage.stability_map(DOMAIN, Distance())
    assert distance == Distance()
    assert domain.but(min_present=N) == DOMAIN


@each(HARD | SOFT | {"moving": MOVING})
def test_as_many_rows_are_left_as_is_certified(stage):
    chain = Chain.of([stage], DOMAIN, ONE)
    rng, fewest = np.random.default_rng(4), N
    for _ in range(60):
        X = np.tile(rng.choice([0.0, 1.0]), (N, 2)) if rng.random() < 0.5 else rng.choice([0.0, 1.0], size=(N, 2))
        y = rng.integers(2, size=N).astype(float)
        fewest = min(fewest, int((chain.run(Rows.of(X, y)).weight > 0).sum()))
    assert fewest >= chain.domain.min_present
    assert fewest <= 2 or stage in SOFT.values()
