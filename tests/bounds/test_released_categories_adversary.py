"""Released categories against an adversary: weights, and categories that only one of two neighbouring datasets has."""

import math

import numpy as np
import pytest
from adversary import DISTANCES, World, attack, named
from neighbours import ROUNDING
from scipy.special import ndtr
from scipy.stats import binomtest

from ppdp.bounds import lookup
from ppdp.core.adjacency import Adjacency
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.categories import Tally, released_categories
from ppdp.data.rows import Rows
from ppdp.exceptions import CertificateError
from ppdp.privacy.noise.sampler import Noise

FORMULA = lookup("release.categories", "release")
N, D = 12, 2
DOMAIN = Domain(n_rows=N, n_features=D)
DRAWN = DOMAIN.but(row_norm=math.sqrt(D), entry_bound=1.0)  # rows that an adversary makes up
BOTH = {"columns": [0, 1], "max_categories": [3, 3]}
ADJACENCIES = [
    Adjacency.replace(),
    Adjacency.replace(4),
    Adjacency.add_remove(3),
    Adjacency.user_level(2),
    Adjacency.change(coordinate=1.0),
]


@pytest.mark.parametrize("distance", [d for d in DISTANCES if not d.reweighted], ids=named)
def test_no_pair_exceeds_the_sensitivity(distance):
    granted = FORMULA(DOMAIN, distance, **BOTH)

    def ratio(pair):
        return Tally.of(coarse(pair.left), [0, 1]).apart(Tally.of(coarse(pair.right), [0, 1])) / granted

    def coarse(rows):  # few categories, so that both datasets have them
        return rows.with_X(np.where(rows.X > 0, 1.0, 0.0))

    reached, _ = attack(World(DRAWN, distance), ratio, draws=40, steps=40)
    assert 0.3 < reached <= ROUNDING


def test_it_is_attained_by_a_row_that_is_replaced():
    left = Rows.of(np.array([[1.0, 1.0], [1.0, 2.0], [2.0, 1.0], [2.0, 2.0]]))
    right = Rows.of(np.array([[1.0, 1.0], [1.0, 2.0], [2.0, 1.0], [1.0, 1.0]]))
    one = Distance(replaced=1)
    assert Tally.of(left, [0, 1]).apart(Tally.of(right, [0, 1])) == pytest.approx(FORMULA(DOMAIN, one, **BOTH))


def test_reweighted_rows_are_refused():
    with pytest.raises(CertificateError):
        FORMULA(DOMAIN, Distance(reweighted=1, mass=0.5, one_sided=0.5), **BOTH)


@pytest.mark.parametrize("adjacency", ADJACENCIES, ids=str)
@pytest.mark.parametrize("failure", [1e-2, 1e-9])
def test_no_way_to_spread_rows_over_fresh_categories_fails_more_often_than_charged(adjacency, failure):
    """Every split of the rows that differ into fresh categories of each column, by the exact probability."""
    domain = Domain(n_rows=100, n_features=2, adjacency=adjacency)
    scale, k = 10.0, max(1, adjacency.rows)
    limit = FORMULA.threshold(domain, domain.neighbours, scale, failure, BOTH)
    splits = [(k - rest, *[1] * rest) for rest in range(k)]
    worst = max(2 * sum(ndtr((weight - limit) / scale) for weight in split) for split in splits)
    assert worst <= failure
    assert worst > 0.3 * failure  # for some of them the other rows of a person hold what is common
    assert FORMULA.failure(domain, domain.neighbours, scale, limit, **BOTH) == pytest.approx(failure, rel=1e-6)


@pytest.mark.parametrize(("rows", "split"), [(1, [1.0]), (4, [4.0]), (4, [1.0] * 4)])
def test_the_release_itself_keeps_what_is_charged(rows, split):
    domain, scale, charged, runs = Domain(n_rows=1000, n_features=1, rows_per_unit=rows), 20.0, 0.02, 4000
    one = {"columns": [0], "max_categories": [3]}
    limit = FORMULA.threshold(domain, domain.neighbours, scale, charged, one)
    own = [f"fresh {i}" for i in range(len(split))]
    tally = Tally((("common", *own),) * runs, (np.array([500.0, *split]),) * runs)
    answer = tally.released([3] * runs, scale, limit, 1000.0, Noise())
    found = released_categories(answer, range(runs), [3] * runs, limit).values()
    assert {text for texts in found for text in texts} <= {"common", *own}
    assert all("common" in texts for texts in found)
    failed = sum(any(text in texts for text in own) for texts in found)
    assert binomtest(failed, runs, charged, alternative="greater").pvalue > 1e-6
    assert failed > charged * runs / 10  # charged for something


def test_ties_and_the_most_categories_are_decided_by_public_rules():
    class Silent(Noise):
        def release(self, value, noise_scale, bound):
            return np.asarray(value, dtype=np.float64)

    tally = Tally((("a", "b", "c", "d", "é"),), (np.array([5.0, 9.0, 9.0, 2.0, 9.0]),))
    answer = tally.released([2], 1.0, 4.0, 10.0, Silent())
    assert released_categories(answer, [7], [2], 4.0) == {7: ("b", "c")}
    assert released_categories(tally.released([9], 1.0, 4.0, 10.0, Silent()), [7], [9], 4.0) == {
        7: ("a", "b", "c", "é")
    }
    for forged in (answer * 0.5, answer[::-1], np.where(answer == 0, 1.0, answer), answer + np.nan):
        with pytest.raises(CertificateError):
            released_categories(forged, [7], [2], 4.0)
