"""Mean imputation against an adversary: no pair moves the means, or a row with gaps, further than certified."""

import numpy as np
import pytest
from adversary import DISTANCES, World, attack, domains, named
from neighbours import ROUNDING, Chain, by_position, shares
from worst_cases import equal_masks, masks_change, sparse_masks

from ppdp.bounds import lookup
from ppdp.bounds.imputation import mean_norm
from ppdp.distance import Distance
from ppdp.domain import Domain
from ppdp.release_points import observed_means
from ppdp.transformers import MeanImputer


def means_ratio(domain, distance, n0):
    """How much of the sensitivity of the means over ``max(n_j, n0)`` a pair uses."""
    bound = lookup("release.column-means", "release")(domain, distance, min_observed=n0)

    def ratio(pair):
        left, right = (observed_means(rows, domain, n0) for rows in (pair.left, pair.right))
        assert np.linalg.norm(left) <= mean_norm(domain, n0) * ROUNDING
        return np.linalg.norm(left - right) / bound

    return ratio


@pytest.mark.parametrize("domain", domains(9, 2, 3), ids=named)
@pytest.mark.parametrize("distance", DISTANCES, ids=named)
def test_no_pair_moves_the_means_further(domain, distance):
    world = World(domain, distance, gaps=9, deleted=True)
    for n0 in (2, 7):
        reached, _ = attack(world, means_ratio(domain, distance, n0), draws=40, steps=80)
        assert reached <= ROUNDING


@pytest.mark.parametrize("domain", domains(9, 1, 3), ids=named)
@pytest.mark.parametrize("distance", DISTANCES, ids=named)
def test_no_pair_moves_a_row_with_gaps_further(domain, distance):
    world = World(domain, distance, gaps=9, deleted=True)
    chain = Chain.of([MeanImputer(min_observed=5)], domain, distance)
    reached, _ = attack(world, lambda pair: chain.use(pair, world.free), draws=40, steps=60)
    assert reached <= ROUNDING


def test_only_rows_with_gaps_move():
    domain = Domain(n_rows=12, n_features=2, row_norm=1.0, max_missing=4)
    world = World(domain, gaps=4)
    chain = Chain.of([MeanImputer()], domain, world.distance)
    reached, _ = attack(
        world, lambda pair: shares(by_position(pair.mapped(chain.run), world.free), chain.distance)["moved"]
    )
    assert chain.distance.moved == 4
    assert reached == pytest.approx(3 / 4)  # slot 0 is the replaced one; a replacement may lose its gaps


@pytest.mark.parametrize("n0", [1, 3, 6])
def test_means_over_the_observed_count_keep_the_bound_where_the_condition_holds(n0):
    domain = Domain(n_rows=9, n_features=2, row_norm=1.0)
    world = World(domain, gaps=9)
    chain = Chain.of([MeanImputer(min_observed=n0, floor=False)], domain, world.distance)

    def ratio(pair):
        counts = min((~np.isnan(rows.X)).sum(axis=0).min() for rows in (pair.left, pair.right))
        return chain.use(pair, world.free) if counts >= n0 else np.nan

    reached, _ = attack(world, ratio)
    assert 0.4 <= reached <= ROUNDING


@pytest.mark.parametrize(("n", "least"), [(10, 0.854), (50, 0.973), (200, 0.993)])
def test_changing_masks_reach_the_bound(n, least):
    case = masks_change(n)
    assert least - 1e-3 <= case.reached.radius / case.certified.radius <= ROUNDING


@pytest.mark.parametrize("n", [10, 50, 200])
@pytest.mark.parametrize("d", [1, 3])
def test_entries_from_corner_to_corner_attain_the_bound(n, d):
    case = equal_masks(n, d)
    assert case.reached.radius / case.certified.radius == pytest.approx(1.0, abs=1e-8)


@pytest.mark.parametrize(("n", "d"), [(50, 8), (200, 16)])
def test_sparse_masks_reach_the_bound(n, d):
    case = sparse_masks(n, d)
    ratio = means_ratio(case.domain, Distance.neighbours(), case.stage.min_observed)
    assert 0.93 <= ratio(case.pair) <= ROUNDING


@pytest.mark.parametrize("distance", [Distance(toggled=1), Distance(moved=3, radius=0.1, total=0.2)], ids=named)
def test_toggles_and_moves_reach_the_bound(distance):
    domain = Domain(n_rows=40, n_features=1, row_norm=1.0, entry_bound=1.0)
    world = World(domain, distance, gaps=40)
    reached, _ = attack(world, means_ratio(domain, distance, 38), draws=100, steps=200)
    assert 0.9 <= reached <= ROUNDING
