"""Trimmed means against an adversary: whatever lies between the values, no pair moves them further."""

import math

import numpy as np
import pytest
from adversary import DISTANCES, World, attack, domains, named
from neighbours import ROUNDING, Pair
from worst_cases import outliers_cut

from ppdp.bounds import lookup
from ppdp.bounds.imputation import mean_norm
from ppdp.core.adjacency import Adjacency
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, largest_entry
from ppdp.data.quantiles import trimmed_means
from ppdp.data.rows import Rows
from ppdp.exceptions import CertificateError

N = 9
COUNTS = [(3, 1), (7, 2), (9, 0), (9, 4)]  # n0 and m


def slow_trimmed_mean(column, n0, m):
    """By the words of the definition."""
    values = sorted(v for v in column if not math.isnan(v))
    values = sorted(values + [0.0] * max(0, n0 - len(values)))
    return math.fsum(values[m : len(values) - m]) / (len(values) - 2 * m)


@pytest.mark.parametrize(("n0", "m"), COUNTS)
def test_the_statistic_is_what_its_definition_says(n0, m):
    world = World(Domain(n_rows=N, n_features=3, row_norm=1.0), gaps=N, deleted=True)
    rng = np.random.default_rng(0)
    for _ in range(50):
        rows = world.draw(rng).left
        columns = np.where(rows.weight[:, None] > 0, rows.X, np.nan).T
        expected = [slow_trimmed_mean(column, n0, m) for column in columns]
        np.testing.assert_allclose(trimmed_means(rows, n0, m, 1.0), expected, atol=1e-15)


def ratio_to_bound(domain, distance, n0, m):
    bound = lookup("release.trimmed-means", "release")(domain, distance, min_observed=n0, trimmed=m)

    def ratio(pair):
        left, right = (trimmed_means(rows, n0, m, largest_entry(domain)) for rows in (pair.left, pair.right))
        assert np.linalg.norm(left) <= mean_norm(domain, n0 - 2 * m) * ROUNDING
        return np.linalg.norm(left - right) / bound

    return ratio


@pytest.mark.parametrize("domain", domains(N, 2, 3), ids=named)
@pytest.mark.parametrize("distance", DISTANCES, ids=named)
@pytest.mark.repeated("domain")
def test_no_pair_moves_the_trimmed_means_further(domain, distance):
    world = World(domain, distance, gaps=N, deleted=True)
    for n0, m in COUNTS:
        reached, _ = attack(world, ratio_to_bound(domain, distance, n0, m), draws=20, steps=20)
        assert reached <= ROUNDING


@pytest.mark.parametrize("n", [10, 50, 200])
@pytest.mark.parametrize("d", [1, 3])
def test_a_row_from_corner_to_corner_attains_the_bound(n, d):
    case = outliers_cut(n, d)
    assert case.certified.radius == pytest.approx(2 * math.sqrt(d) / (n - 1 - 2 * (n // 10)), rel=1e-8)
    assert case.reached.radius / case.certified.radius == pytest.approx(1.0, abs=1e-8)


@pytest.mark.parametrize(("n", "least"), [(10, 0.689), (50, 0.953), (200, 0.988)])
def test_changing_masks_reach_the_bound(n, least):
    """A ball: the row reverses one feature and swaps which other one it observes (as for means, three are trimmed)."""
    a, m = math.sqrt(0.5), 1
    rest = np.array([[np.nan] * 3, *[[0, -a, -a]] * (n - 2 - 2 * m), *[[a, a, np.nan], [-a, np.nan, a]] * m])
    pair = Pair.of(np.vstack([[a, a, np.nan], rest]), np.vstack([[-a, np.nan, a], rest]))
    n0 = int(min((~np.isnan(rows.X)).sum(axis=0).min() for rows in (pair.left, pair.right)))
    domain = Domain(n_rows=n, n_features=3, row_norm=1.0)
    ratio = ratio_to_bound(domain, Adjacency.replace().distance, n0, m)
    assert least <= ratio(pair) <= ROUNDING


@pytest.mark.parametrize("distance", [Distance(toggled=1), Distance(moved=3, radius=0.1, total=0.2)], ids=named)
def test_toggles_and_moves_reach_the_bound(distance):
    domain = Domain(n_rows=40, n_features=1, row_norm=1.0, entry_bound=1.0)
    world = World(domain, distance, gaps=40)
    column = np.repeat([1.0, -1.0], [5, 35])[:, None]  # four are cut off, the toggled one is the fifth
    first = Pair(Rows.of(column), Rows.of(column))
    reached, _ = attack(world, ratio_to_bound(domain, distance, 38, 4), draws=60, steps=150, first=[first])
    assert 0.9 <= reached <= ROUNDING


@pytest.mark.parametrize("counts", [{"min_observed": 4, "trimmed": 2}, {"min_observed": N + 1, "trimmed": 0}])
def test_impossible_counts_mean_nothing(counts):
    domain = Domain(n_rows=N, n_features=1, row_norm=1.0)
    with pytest.raises(CertificateError):
        lookup("release.trimmed-means", "release")(domain, Adjacency.replace().distance, **counts)
    with pytest.raises(CertificateError):
        lookup("release.trimmed-means", "release")(
            domain, Distance(replaced=1, reweighted=1), min_observed=4, trimmed=1
        )
