"""Which rows stay and where they stand: Theorem K of ``docs/theory/distance.md``, on all outcomes of all draws."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from effort import rounds
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from ppdp import Adjacency, Domain
from ppdp.data.rows import Rows
from ppdp.data.slot_assignment import assign_slots
from ppdp.privacy.noise.sampler import Noise


def kept(ids, most, noise, n_slots=64):
    """Which rows have a slot."""
    X = np.arange(1.0, len(ids) + 1)[:, None]
    facts = Domain(n_rows=n_slots, n_features=1, adjacency=Adjacency.user_level(most))
    rows = assign_slots(Rows.of(X, X[:, 0]), facts, noise, np.asarray(ids))
    assert (rows.weight == (rows.X[:, 0] > 0)).all()
    assert (rows.y == rows.X[:, 0]).all()
    return rows.X[rows.weight > 0, 0].astype(int) - 1


def test_everybody_keeps_so_many_rows_and_nobody_none():
    ids = np.array([4, 4, 4, 4, -1, 0, 2, 2, 2, 4, -1])
    for seed in range(20):
        stay = kept(ids, 2, Noise(seed))
        assert Counter(ids[stay].tolist()) == {4: 2, 0: 1, 2: 2}
    assert len(kept([-1, -1], 2, Noise(0))) == len(kept([], 2, Noise(0))) == 0


def test_every_row_of_a_person_stays_equally_often():
    runs, noise, seen = rounds(2400), Noise(3), np.zeros(7)
    for _ in range(runs):
        seen[kept([0, 0, 0, 0, 0, 1, 1], 2, noise)] += 1
    assert np.abs(seen[:5] / runs - 0.4).max() < 0.04
    assert (seen[5:] == runs).all()


class Given:
    """Words that are given, in place of random ones."""

    def __init__(self, *words):
        self._words = list(words)

    def words(self, count):
        return np.asarray(self._words.pop(0), dtype=np.uint64)


def law(values, ids, most, n_slots):
    """How often each array of slots comes out of all orders of the rows and of the slots, which are equally likely."""
    facts = Domain(n_rows=n_slots, n_features=1, adjacency=Adjacency.user_level(most))
    rows, found = Rows.of(np.array(values)[:, None]), Counter()
    for order in itertools.permutations(range(len(ids))):
        for slots in itertools.permutations(range(n_slots)):
            found[tuple(assign_slots(rows, facts, Given(order, slots), np.array(ids)).X[:, 0].tolist())] += 1
    return found


def coupled(one, other, most):
    """Whether two laws can be coupled so that no more than so many slots differ, by the flow from one to the other."""
    unit = math.lcm(one.total(), other.total())
    left, right = list(one), list(other)
    differ = (np.array(left)[:, None] != np.array(right)[None]).sum(axis=2)
    a, b = np.nonzero(differ <= most)
    size = len(left) + len(right) + 2
    ends = [(0, 1 + i, one[x] * unit // one.total()) for i, x in enumerate(left)]
    ends += [(1 + len(left) + j, size - 1, other[x] * unit // other.total()) for j, x in enumerate(right)]
    middle = [(1 + i, 1 + len(left) + j, unit) for i, j in zip(a, b)]
    start, end, room = map(np.array, zip(*ends, *middle))
    graph = csr_array((room.astype(np.int32), (start, end)), shape=(size, size))
    return maximum_flow(graph, 0, size - 1).flow_value == unit


NEIGHBOURS = {  # values and persons of two datasets: those of person 0 are others, and persons 1 and 2 stay
    "cut to one": ((1, [1, 2, 11, 12], [1, 1, 0, 0]), (1, [1, 2, 21], [1, 1, 0]), 3),
    "a person more": ((1, [1, 2, 3], [1, 1, 2]), (1, [1, 2, 3, 21], [1, 1, 2, 0]), 3),
    "cut to two": ((2, [1, 2, 11], [1, 2, 0]), (2, [1, 2, 21, 22, 23], [1, 2, 0, 0, 0]), 4),
}


def test_a_row_that_changes_persons_changes_two_slots_and_no_fewer():
    """Corollary U: what a replaced row does, its id included, where persons were cut."""
    one = law([1, 2, 3, 4, 11], [0, 0, 1, 1, 0], 2, 4)
    other = law([1, 2, 3, 4, 21], [0, 0, 1, 1, 1], 2, 4)
    assert coupled(one, other, 2)
    assert not coupled(one, other, 1)


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_all_rows_of_a_person_change_so_many_slots_and_no_fewer(name):
    """Theorem K, on all outcomes: there is a coupling within k slots, and none within fewer."""
    (k, values, ids), (_, others, own), n_slots = NEIGHBOURS[name]
    one, other = law(values, ids, k, n_slots), law(others, own, k, n_slots)
    assert coupled(one, other, k)
    assert not coupled(one, other, k - 1)
