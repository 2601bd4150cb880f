"""The rows themselves as an answer: what an adversary can change, slot by slot, against the certified length."""

import itertools
import math

import numpy as np
import pytest
from neighbours import ROUNDING

from ppdp import Adjacency, Distance, Domain
from ppdp.bounds import lookup
from ppdp.data.rows import Rows
from ppdp.mechanisms import GaussianMechanism
from ppdp.mechanisms.base import Question
from ppdp.testing.neighbours import World
from ppdp.testing.stages import through
from ppdp.transformers import (
    Deduplicator,
    GridDeduplicator,
    GridQuantizer,
    LSHDeduplicator,
    RandomProjection,
    StandardScaler,
)

ROWS = GaussianMechanism("rows")
BALL = Domain(n_rows=12, n_features=2, row_norm=1.0)


def certified(distance, domain=BALL):
    return lookup("query.rows", "mechanism")(domain, distance)


def apart(left, right):
    """Length of the difference of two answers."""
    question = Question("query.rows", {}, 1, 1, 1.0)
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
    "records": Deduplicator(),
    "cells": GridDeduplicator(cell=0.4),
    "cells, softly": GridDeduplicator(cell=0.4, keep="soft"),
    "cells, the first": GridDeduplicator(cell=0.4, keep="first"),
    "bands": LSHDeduplicator(bands=3, mode="simhash"),
    "bands, a window": LSHDeduplicator(bands=3, mode="simhash", rule="window"),
    "bands, softly": LSHDeduplicator(bands=3, mode="simhash", rule="soft"),
    "scaled exactly": StandardScaler(statistics="exact"),
    "cells, scaled": (GridDeduplicator(cell=0.4, keep="soft"), StandardScaler(statistics="exact")),
    "projected": RandomProjection(2),
    "grid": GridQuantizer(cell=0.3, mode="staircase"),
}


@pytest.mark.parametrize("name", STAGES)
def test_no_neighbours_exceed_it_behind_a_stage(name):
    stages = STAGES[name] if isinstance(STAGES[name], tuple) else (STAGES[name],)
    domain, distance = Domain(n_rows=12, n_features=3, row_norm=1.0, max_missing=0), Adjacency.replace().distance
    world, rng, used = World(domain, distance), np.random.default_rng(0), []
    pairs = [world.drawn(rng) for _ in range(30)]
    pairs += [world.varied(pair, rng, 0.3) for pair in pairs]
    for stage in stages:
        way = next(way for way in stage.ways(domain, distance) if way.name in ("exact", "public"))
        pairs = [through(stage, way, domain, pair) for pair in pairs]
        domain, distance = way.domain, way.distance
    bound = certified(distance, domain)
    used = [apart(*pair) / bound for pair in pairs]
    assert max(used) <= ROUNDING
    assert max(used) > 0.1
