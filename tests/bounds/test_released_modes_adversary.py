"""Counts of categories that fill gaps: no pair moves them further than is certified, and some move them so far."""

from functools import partial

import numpy as np
import pytest
from adversary import DISTANCES, largest_share, named
from neighbours import ROUNDING

from ppdp import Adjacency, Distance, Domain
from ppdp.bounds import lookup
from ppdp.data.histograms import modes, weights_of_values
from ppdp.data.rows import Rows

N = 14
FORMULA = lookup("release.modes", "release")
TWO = {"columns": [0, 2], "sizes": [3, 2], "values": [-1.0, 0.0, 1.0, 0.0, 1.0]}
DOMAIN = Domain(n_rows=N, n_features=3, row_norm=3.0, entry_bound=2.0, max_missing=4)
FURTHER = (Adjacency.user_level(max_rows=3).distance, Adjacency.add_remove(rows=2).distance)


def used(distance, pair):
    """Entries to whole numbers, so that categories are hit."""
    left, right = (weights_of_values(rows.with_X(np.rint(rows.X)), **TWO) for rows in pair)
    return float(np.linalg.norm(left - right)) / FORMULA(DOMAIN, distance, **TWO)


@pytest.mark.parametrize("distance", [*DISTANCES, *FURTHER], ids=named)
@pytest.mark.repeated("distance")
def test_no_pair_exceeds_the_sensitivity(distance):
    most = largest_share(DOMAIN, distance, partial(used, distance), draws=20, steps=60, gaps=4)
    assert (0.0 if distance.moved else 0.3) < most <= ROUNDING


# What differs of two datasets in which all else is equal: cells and weights on both sides.
TIGHT = {
    "replaced": (Distance(replaced=1), ([0], [1]), ([1], [1])),
    "toggled": (Distance(toggled=1), ([0], [1]), ([0], [0])),
    "a person": (Adjacency.user_level(3).distance, ([1] * 3, [1] * 3), ([0] * 3, [1] * 3)),
    "moved": (Distance(moved=1, radius=1.0), ([0], [1]), ([1], [1])),
    "reweighted": (Distance(reweighted=1, mass=0.5, one_sided=0.5), ([1], [1]), ([1], [0.5])),
}


@pytest.mark.parametrize("what", TIGHT)
def test_every_part_of_the_distance_is_attained(what):
    distance, *sides = TIGHT[what]
    pair = []
    for cells, weight in sides:
        X = np.array([*cells, *[1] * (N - len(cells))], dtype=float)[:, None] * np.ones(3)
        pair.append(Rows(X, None, np.array([*weight, *[1] * (N - len(weight))], dtype=float)))
    assert 1 - 1e-8 <= used(distance, pair) <= ROUNDING


def test_a_cell_of_no_category_counts_nowhere_and_the_first_of_the_largest_is_the_mode():
    X = np.array([[0.0, np.nan], [0.0, 5.0], [2.0, 7.0], [np.nan, 7.0], [0.5, np.inf]])
    asked = {"columns": [0, 1], "sizes": [2, 3], "values": [0.0, 2.0, 5.0, 6.0, 7.0]}
    counts = weights_of_values(Rows.of(X), **asked)
    assert counts.tolist() == [2, 1, 1, 0, 2]
    assert modes(counts, **asked) == {0: 0.0, 1: 7.0}
    assert modes(np.zeros(5), **asked) == {0: 0.0, 1: 5.0}
