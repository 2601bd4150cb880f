"""The arithmetic of distances against all splits of the unmatched weight between the two datasets."""

import itertools

import numpy as np
import pytest
from adversary import DISTANCES, named

from ppdp.core.distance import Distance


def splits(distance):
    """Every (left, right) of unmatched weight that the distance admits, on a grid of quarters."""
    steps = np.arange(0, distance.one_sided + 0.25, 0.25)
    for left, right in itertools.product(steps, steps):
        if max(left, right) <= distance.one_sided and left + right <= distance.mass:
            yield left, right


@pytest.mark.parametrize("distance", [*DISTANCES, Distance(replaced=2, mass=3, one_sided=1.5)], ids=named)
@pytest.mark.parametrize("toggled", [0.5, 0.7, 1.0])
def test_unmatched_is_the_worst_split(distance, toggled):
    """Two rows that stand against each other cost 1, one alone between half of that and all of it."""
    paired, single = distance.unmatched
    worst = max(min(a, b) + toggled * abs(a - b) for a, b in splits(distance))
    assert paired + toggled * single == pytest.approx(worst)
    assert paired + single == pytest.approx(distance.one_sided)


@pytest.mark.parametrize("distance", DISTANCES, ids=named)
def test_a_sum_of_contributions_changes_by_at_most_the_shift(distance):
    """Theorem E, attained: contributions of norm 1 reversed or removed, moved ones by their move."""
    lipschitz = 3.0
    unmatched = max(left + right for left, right in splits(distance))
    lengths = np.zeros(int(distance.moved))
    rest = distance.total
    for i in range(len(lengths)):  # as few rows as possible carry the moves
        lengths[i] = min(rest, distance.radius)
        rest -= lengths[i]
    moves = np.minimum(lipschitz * lengths, 2.0).sum()
    assert distance.shift(1.0, lipschitz) == pytest.approx(unmatched + moves)


def test_rows_that_move_twice_move_by_the_sum():
    first = Distance(replaced=1, moved=3, radius=0.1, total=0.2)
    again = first.widened(n_rows=10, rows=5, radius=0.2, total=0.6)
    assert (again.replaced, again.moved) == (1, 8)
    assert again.radius == pytest.approx(0.3)
    assert again.total == pytest.approx(0.8)
    assert first.widened(n_rows=3, rows=5, radius=0.2).moved == 2
