"""Weights of cells and sums around centres: no pair moves them further than is certified, and corners come close."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from effort import found
from neighbours import ROUNDING

from ppdp import Distance, Domain
from ppdp.bounds import lookup
from ppdp.bounds.k_means import of_answers
from ppdp.data.noisy_statistics import STATISTICS
from ppdp.data.rows import Rows
from ppdp.mechanisms import KMeans
from ppdp.testing.answers import RecordingNoise

N = 12
FACTS = Domain(n_rows=N, n_features=2, max_missing=0, row_norm=math.sqrt(2), entry_bound=1.0)
CORNER = np.array([1.0, 1.0])
MODEL = KMeans(2, max_depth=2, max_iter=2)


def rows(first, weight=1.0):
    """One row, and two clusters that keep their places."""
    X = np.array([first, *[[0.5, 0.5]] * 6, *[[-0.5, -0.5]] * 5])
    return Rows(X, None, np.array([weight, *[1.0] * (N - 1)]))


def shares(distance, pair):
    """What is used of the sensitivity of each answer, all earlier ones being the same."""
    question = MODEL.query_spec(FACTS)
    assert question.formula == "learning.k-means"
    left = RecordingNoise(silent=True)
    MODEL.release(pair[0], question, left, 0.01)
    right = RecordingNoise(given=[asked.answer for asked in left.asked], silent=True)
    MODEL.release(pair[1], question, right, 0.01)
    certified = of_answers(FACTS, distance, **question.parameters)
    assert len(certified) == len(left.asked) == question.steps
    return [
        np.linalg.norm(one.value - other.value) / bound for one, other, bound in zip(left.asked, right.asked, certified)
    ]


TIGHT = {
    "replaced": (Distance(replaced=1), rows(CORNER), rows(-CORNER)),
    "vanished": (Distance(toggled=1), rows(CORNER), rows(0 * CORNER, 0.0)),
    "half of it": (Distance(reweighted=1, mass=0.5, one_sided=0.5), rows(CORNER), rows(CORNER, 0.5)),
    "moved": (Distance(moved=1, radius=3.0, total=3.0), rows(CORNER), rows(-CORNER)),
}


@pytest.mark.parametrize("what", TIGHT)
def test_every_part_of_the_distance_is_attained(what):
    distance, *pair = TIGHT[what]
    of_cells, of_sums = np.split(np.array(shares(distance, pair)), [MODEL.max_depth])
    assert of_cells.min() > 0.99
    assert of_sums.min() > 0.99
    assert found(max(*of_cells, *of_sums)) <= ROUNDING


@pytest.mark.parametrize("what", TIGHT)
def test_a_stage_releases_as_much_as_is_certified(what):
    distance, *pair = TIGHT[what]
    known, asked = STATISTICS["clusters"], {"n_clusters": 2}
    release = SimpleNamespace(noise_scale=0.01, parameters=asked)
    first = [known.measure(rows, FACTS, asked) for rows in pair]
    second = [known.further(rows, first[0], FACTS, release) for rows in pair]
    apart = np.hypot(*(np.linalg.norm(np.subtract(*answers)) for answers in (first, second)))
    assert 0.99 < found(apart / lookup("release.clusters", "release")(FACTS, distance, **asked)) <= ROUNDING
