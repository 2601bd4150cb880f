"""Moments by label: no pair moves them further than is certified, and corners come close."""

import math
from functools import partial

import numpy as np
import pytest
from adversary import DISTANCES, LABELS, largest_share, named
from effort import found
from neighbours import ROUNDING

from ppdp import Adjacency, Distance, Domain
from ppdp.bounds import lookup
from ppdp.data.label_moments import measured
from ppdp.data.rows import Rows

N = 12
BOX, BALL = {"row_norm": math.sqrt(3), "entry_bound": 1.0}, {"row_norm": 1.0}


def domain(**facts):
    return Domain(n_rows=N, n_features=3, max_missing=0, **facts)


def used(facts, distance, pair, **light):
    one, other = (measured(rows, facts, **light) for rows in pair)
    name = "release.light-label-moments" if light else "release.label-moments"
    return float(np.linalg.norm(one - other)) / lookup(name, "release")(facts, distance, **light)


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("bounds", [BOX, BALL, {"row_norm": 1.0, "entry_bound": 0.7}], ids=str)
@pytest.mark.parametrize("distance", [*DISTANCES, Adjacency.user_level(max_rows=3).distance], ids=named)
@pytest.mark.repeated("bounds")
@pytest.mark.repeated("labels")
def test_no_pair_exceeds_the_sensitivity(distance, bounds, labels):
    told, drawn = LABELS[labels]
    facts = domain(**bounds, **told)
    share = partial(used, facts, distance)
    assert 0.2 < largest_share(facts, distance, share, draws=15, steps=60, labels=drawn) <= ROUNDING
    assert largest_share(facts, distance, partial(share, weight=0.3), draws=5, steps=10, labels=drawn) <= ROUNDING


def rows(*first):
    X, y, weight = (np.array([part, *[rest] * (N - 1)]) for part, rest in zip(first, (np.zeros(3), 0.0, 1.0)))
    return Rows(X.astype(float), y.astype(float), weight.astype(float))


CORNER = np.array([1.0, -1.0, 1.0])
NEAR = Distance(moved=1, radius=0.01, total=0.01)
TIGHT = {
    "opposite": (Distance(replaced=1), BOX, rows(CORNER, 1, 1), rows(-CORNER, 1, 1)),
    "opposite in a ball": (Distance(replaced=1), BALL, rows(CORNER / 3**0.5, 1, 1), rows(-CORNER / 3**0.5, 1, 1)),
    "vanished": (Distance(toggled=1), BOX, rows(CORNER, 1, 1), rows(0 * CORNER, 0, 0)),
    "half of it": (Distance(reweighted=1, mass=0.5, one_sided=0.5), BOX, rows(CORNER, 1, 1), rows(CORNER, 1, 0.5)),
    "moved": (NEAR, BOX, rows(CORNER, 1, 1), rows(CORNER * (1 - 0.01 / 3**0.5), 1, 1)),
}


@pytest.mark.parametrize("what", TIGHT)
@pytest.mark.parametrize("labels", [{"classes": (0, 1)}, {"y_range": (0, 1)}], ids=str)
def test_every_part_of_the_distance_is_attained(what, labels):
    distance, bounds, *pair = TIGHT[what]
    light = used(domain(**bounds, **labels), distance, pair, weight=0.4)
    assert 0.98 <= light <= ROUNDING
    assert 0.98 <= found(used(domain(**bounds, **labels), distance, pair)) <= ROUNDING


def test_another_class_costs_no_more_than_the_opposite_row():
    facts = domain(**BOX, classes=(0, 1))
    for other in (CORNER, -CORNER, 0 * CORNER, [1.0, 1.0, 0.0]):
        assert used(facts, Distance(replaced=1), (rows(CORNER, 0, 1), rows(np.array(other), 1, 1))) <= 1
