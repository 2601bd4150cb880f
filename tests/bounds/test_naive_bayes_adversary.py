"""Moments of classes: no pair moves them further than is certified, and corners that change their class come close."""

import math
from functools import partial

import numpy as np
import pytest
from adversary import DISTANCES, largest_share, named
from effort import found
from neighbours import ROUNDING

from ppdp import Adjacency, Distance, Domain
from ppdp.bounds import lookup
from ppdp.data.rows import Rows
from ppdp.mechanisms import GaussianNB
from ppdp.testing.answers import RecordingNoise

N = 12
BOX = {"row_norm": math.sqrt(3), "entry_bound": 1.0}


def domain(count, **facts):
    return Domain(n_rows=N, n_features=3, max_missing=0, classes=tuple(range(count)), **facts)


def used(facts, distance, pair):
    model = GaussianNB()
    question = model.query_spec(facts)
    one, other = (model.release(rows, question, RecordingNoise(silent=True), 1.0)["answer"] for rows in pair)
    certified = lookup("learning.class-moments", "mechanism")(facts, distance, **question.parameters)
    return float(np.linalg.norm(one - other)) / certified


@pytest.mark.parametrize("facts", [BOX, {"row_norm": 1.0}, {"row_norm": 1.0, "entry_bound": 0.7}], ids=str)
@pytest.mark.parametrize("distance", [*DISTANCES, Adjacency.user_level(max_rows=3).distance], ids=named)
@pytest.mark.repeated("facts")
def test_no_pair_exceeds_the_sensitivity(distance, facts):
    facts = domain(3, **facts)
    share = partial(used, facts, distance)
    assert 0.2 < largest_share(facts, distance, share, draws=15, steps=60, labels=(0.0, 1.0, 2.0)) <= ROUNDING


def rows(*first):
    X, y, weight = (np.array([part, *[rest] * (N - 1)]) for part, rest in zip(first, (np.zeros(3), 0.0, 1.0)))
    return Rows(X.astype(float), y.astype(float), weight.astype(float))


CORNER = np.array([1.0, -1.0, 1.0])
TIGHT = {
    "another class": (Distance(replaced=1), rows(CORNER, 0, 1), rows(-CORNER, 1, 1)),
    "vanished": (Distance(toggled=1), rows(CORNER, 1, 1), rows(0 * CORNER, 0, 0)),
    "half of it": (Distance(reweighted=1, mass=0.5, one_sided=0.5), rows(CORNER, 1, 1), rows(CORNER, 1, 0.5)),
    "moved": (Distance(moved=1, radius=0.01, total=0.01), rows(CORNER, 1, 1), rows(CORNER * (1 - 0.01 / 3**0.5), 1, 1)),
}


@pytest.mark.parametrize("what", TIGHT)
def test_every_part_of_the_distance_is_attained(what):
    distance, *pair = TIGHT[what]
    assert 0.99 <= found(used(domain(2, **BOX), distance, pair)) <= ROUNDING
