"""Mean labels of categories: no pair moves what is released, or rows behind it, further than is certified."""

import math
from functools import partial

import numpy as np
import pytest
from adversary import DISTANCES, LABELS, largest_share, named
from neighbours import ROUNDING

from ppdp import Adjacency, Distance, Domain
from ppdp.bounds import lookup
from ppdp.data.histograms import weights_by_label
from ppdp.data.rows import Rows

N, CELLS = 14, 4
FURTHER = (
    Distance(replaced=1, reweighted=2, mass=3, one_sided=2, moved=2, radius=1.0),
    Adjacency.user_level(max_rows=3).distance,
    Adjacency.add_remove(rows=2).distance,
)


def used(facts, distance, columns, pair):
    parameters = {"columns": columns, "cells": CELLS}
    tables = [weights_by_label(rows, facts, columns, CELLS) for rows in pair]
    return float(np.linalg.norm(tables[0] - tables[1])) / lookup("release.label-means", "release")(
        facts, distance, **parameters
    )


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("distance", [*DISTANCES, *FURTHER], ids=named)
@pytest.mark.repeated("distance")
def test_no_pair_exceeds_the_sensitivity(distance, labels):
    told, drawn = LABELS[labels]
    facts = Domain(n_rows=N, n_features=3, row_norm=3.0, entry_bound=2.0, max_missing=4, **told)
    for columns in ([1], [0, 1, 2]):
        share = partial(used, facts, distance, columns)
        most = largest_share(facts, distance, share, draws=20, steps=60, labels=drawn, gaps=4)
        # Small moves rarely cross the edge of a cell; the pair below does.
        assert (0.0 if distance.moved else 0.4) < most <= ROUNDING


def rows(cells, y, weight):
    return Rows(
        np.array(cells, dtype=float)[:, None] * np.ones(2), np.array(y, dtype=float), np.array(weight, dtype=float)
    )


# What differs of two datasets in which all else is equal: cells, labels and weights on both sides.
TIGHT = {
    "replaced": (Distance(replaced=1), ([0], [1], [1]), ([1], [1], [1])),
    "another label": (Distance(replaced=1), ([0], [1], [1]), ([0], [-1], [1])),
    "toggled": (Distance(toggled=1), ([0], [1], [1]), ([0], [0], [0])),
    "two removed": (Adjacency.add_remove(2).distance, ([1, 1], [1, 1], [1, 1]), ([0, 0], [0, 0], [0, 0])),
    "a person": (Adjacency.user_level(3).distance, ([1] * 3, [1] * 3, [1] * 3), ([0] * 3, [1] * 3, [1] * 3)),
    "moved": (Distance(moved=1, radius=1.0), ([0], [1], [1]), ([1], [1], [1])),
    "reweighted": (Distance(reweighted=1, mass=0.5, one_sided=0.5), ([1], [1], [1]), ([1], [1], [0.5])),
}


@pytest.mark.parametrize("what", TIGHT)
def test_every_part_of_the_distance_is_attained(what):
    distance, *sides = TIGHT[what]
    facts = Domain(n_rows=9, n_features=2, row_norm=3.0, entry_bound=2.0, y_range=(0.0, 1.0))
    rest = 9 - len(sides[0][0])
    pair = [rows(*([*own, *[fill] * rest] for own, fill in zip(side, (1, 1, 1)))) for side in sides]
    assert 1 - 1e-8 <= used(facts, distance, [0, 1], pair) <= ROUNDING


def test_what_a_replaced_and_an_added_row_cost():
    formula, facts = lookup("release.label-means", "release"), Domain(n_rows=100, n_features=3, classes=(0, 1))
    one = {"columns": [0, 2], "cells": 50}
    assert formula(facts, Adjacency.replace().distance, **one) == pytest.approx(2.0, rel=1e-8)
    assert formula(facts, Adjacency.add_remove().distance, **one) == pytest.approx(math.sqrt(2), rel=1e-8)
