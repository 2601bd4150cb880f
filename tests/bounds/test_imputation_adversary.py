"""Means and trimmed means against an adversary: no pair moves them, or a row with gaps, further than certified."""

import math

import numpy as np
import pytest
from adversary import DISTANCES, World, attack, named
from neighbours import ROUNDING, Chain, Pair, by_position
from worst_cases import equal_masks, masks_change, outliers_cut, sparse_masks

from ppdp.bounds import lookup
from ppdp.bounds.imputation import fill_sensitivity, mean_norm, mean_sensitivity
from ppdp.core.adjacency import Adjacency
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, largest_entry
from ppdp.data.noisy_statistics import observed_means
from ppdp.data.quantiles import trimmed_means
from ppdp.data.rows import Rows
from ppdp.data.statistics import clip_norms
from ppdp.transformers import MeanImputer

ONE = Adjacency.replace().distance


def means_ratio(domain, distance, n0):
    """How much of the sensitivity of the means over ``max(n_j, n0)`` a pair uses."""
    bound = lookup("release.column-means", "release")(domain, distance, min_observed=n0)

    def ratio(pair):
        left, right = (observed_means(rows, domain, n0) for rows in (pair.left, pair.right))
        assert np.linalg.norm(left) <= mean_norm(domain, n0) * ROUNDING
        return np.linalg.norm(left - right) / bound

    return ratio


@pytest.mark.parametrize("columns", [[4], [0, 1, 2]], ids=str)
@pytest.mark.parametrize("norm", [1.0, math.sqrt(6)])
def test_gaps_in_some_columns_cost_what_these_columns_cost(columns, norm):
    n, n0 = 400, 300
    domain = Domain(n_rows=n, n_features=6, row_norm=norm, entry_bound=1.0, max_missing=100, min_present=n)
    chain = Chain.of([MeanImputer(min_observed=n0, columns=columns)], domain, ONE)
    X = np.zeros((n, 6))
    X[:100, columns] = np.nan
    left, right = X.copy(), X.copy()
    left[-1, columns] = min(1.0, norm / math.sqrt(len(columns)))
    right[-1, columns] = -left[-1, columns]
    moved = by_position(Pair.of(left, right).mapped(chain.run), free=[n - 1])
    assert 0.8 <= moved.total / chain.distance.total <= ROUNDING
    if norm > 1:  # every entry at its bound
        assert moved.total / chain.distance.total >= 0.999


def turning(n: int, d: int, n0: int, gaps: int, turned: float) -> Pair:
    """The replaced row loses an entry of this size, which lay on the other side of the mean of ``n0`` rows.

    These have no gap but in the first column, the other rows with gaps no entry at all.
    """
    X = np.zeros((n, d))
    X[:, -1] = -1.0
    X[:gaps, 0] = np.nan
    X[: min(gaps, n - n0)] = np.nan
    left, right = X.copy(), X.copy()
    left[0], right[0] = 0.0, 0.0
    left[0, 0], left[0, -1] = math.sqrt(1 - turned**2), turned
    right[0, 0], right[0, -1] = -1.0, np.nan
    return Pair.of(left, right)


@pytest.mark.parametrize(("n", "d", "n0", "gaps"), [(8, 2, 3, 8), (30, 3, 6, 30), (30, 3, 15, 24), (90, 6, 60, 90)])
@pytest.mark.parametrize("distance", DISTANCES, ids=named)
@pytest.mark.repeated("n", "d", "n0", "gaps")
def test_no_pair_moves_all_rows_further(n, d, n0, gaps, distance):
    domain = Domain(n_rows=n, n_features=d, row_norm=1.0, max_missing=gaps)
    world = World(domain, distance, gaps=gaps, deleted=True)
    chain = Chain.of([MeanImputer(min_observed=n0)], domain, distance)
    first = [turning(n, d, n0, gaps, turned) for turned in (0.0, 0.2, 0.7)]
    reached, _ = attack(world, lambda pair: chain.use(pair, world.free), draws=20, steps=30, first=first)
    assert reached <= ROUNDING


@pytest.mark.parametrize(("n", "n0", "gaps"), [(8, 1, 3), (30, 5, 10), (30, 5, 24), (60, 40, 15)])
@pytest.mark.repeated("n", "n0", "gaps", keep=2)
def test_rows_without_gaps_are_a_floor_that_changes_no_mean(n, n0, gaps):
    domain = Domain(n_rows=n, n_features=3, row_norm=1.0, max_missing=gaps, min_present=n)
    world = World(domain, gaps=gaps)
    chain = Chain.of([MeanImputer(min_observed=n0)], domain, world.distance)
    ((stage, way, _),) = chain.steps
    floor = way.parameters["min_observed"]
    assert floor == max(n0, n - gaps)
    whole = world.draw(np.random.default_rng(0)).left
    np.testing.assert_array_equal(stage.prepare(whole, way, domain)["mean"], observed_means(whole, domain, n0))
    first = [turning(n, 3, floor, gaps, turned) for turned in (0.0, 0.2, 0.7)]
    reached, _ = attack(world, lambda pair: chain.use(pair, world.free), draws=30, steps=60, first=first)
    assert reached <= ROUNDING


def test_rows_that_may_be_absent_are_no_floor():
    n, n0, gaps = 200, 40, 140
    domain = Domain(n_rows=n, n_features=2, row_norm=1.0, max_missing=gaps)
    chain = Chain.of([MeanImputer(min_observed=n0)], domain, ONE)
    pair = turning(n, 2, n0 + n - gaps, gaps, 0.35)  # without the rows that are free of gaps n0 rows carry the means
    weight = np.concatenate([np.ones(gaps), np.zeros(n - gaps)])
    moved = by_position(pair.mapped(lambda rows: chain.run(Rows(rows.X, None, weight).settled())), free=[0])
    assert 0.89 <= moved.total / chain.distance.total <= ROUNDING


@pytest.mark.parametrize(("n0", "gaps"), [(10, 60), (50, 150), (100, 100), (100, 200), (140, 200), (200, 200)])
def test_all_rows_together_reach_the_bound(n0, gaps):
    domain = Domain(n_rows=200, n_features=2, row_norm=1.0, min_present=200)
    chain = Chain.of([MeanImputer(min_observed=n0, max_missing=gaps)], domain, ONE)
    pairs = [turning(200, 2, max(n0, 200 - gaps), gaps, s / 10) for s in range(8)]
    moves = [by_position(pair.mapped(chain.run), free=[0]).total for pair in pairs]
    assert 0.92 <= max(moves) / chain.distance.total <= ROUNDING


def test_a_row_reaches_the_bound_although_means_may_be_longer_than_rows():
    domain, n0 = Domain(n_rows=200, n_features=2, row_norm=1.0), 80
    chain = Chain.of([MeanImputer(min_observed=n0)], domain, ONE)
    moved = by_position(turning(200, 2, n0, 200, math.sqrt(0.5)).mapped(chain.run), free=[0])
    assert mean_norm(domain, n0) > 1.4
    assert 0.97 <= moved.radius / chain.distance.radius <= ROUNDING


@pytest.mark.parametrize("rows", [1, 10, 50, 100])
@pytest.mark.parametrize("n0", [20, 50, 90, 100])
@pytest.mark.parametrize(("distance", "weight"), [(ONE, 2), (Distance(toggled=1), 1)], ids=str)
@pytest.mark.repeated("rows", "n0", keep=4)
def test_bound_is_the_maximum_over_all_turns(rows, n0, distance, weight):
    """Computed once more on a grid: how the unmatched row divides its norm between kept and turned entries."""
    n, d = 100, 4
    domain = Domain(n_rows=n, n_features=d, row_norm=1.0)
    share = min(1, (n - n0) / rows)
    pull = min(math.sqrt(share * min(d, n / n0)), math.sqrt(1 + mean_sensitivity(domain, distance, n0) ** 2 / 4))
    s = np.linspace(0, math.sqrt(weight), 100_001)
    largest = np.sqrt((weight * (weight - s**2) + (math.sqrt(share) * s + pull) ** 2).max())
    assert fill_sensitivity(domain, distance, n0, rows) * n0 == pytest.approx(largest, rel=1e-7)


def test_clip_brings_long_rows_together():
    """The lemma of the proof: a factor of √(R/‖a‖) for every end outside of the ball."""
    rng = np.random.default_rng(0)
    ends = rng.standard_normal((2, 100_000, 3)) * rng.choice([0.3, 1.0, 3.0], size=(2, 100_000, 1))
    ends[1, ::2] = ends[0, ::2] + 0.01 * ends[1, ::2]
    clipped = np.stack([clip_norms(side.copy(), 1.0) for side in ends])
    outside = np.maximum(1.0, np.linalg.norm(ends, axis=2)).prod(axis=0)
    before, after = (np.linalg.norm(side[0] - side[1], axis=1) for side in (ends, clipped))
    assert (after**2 * outside <= before**2 * ROUNDING).all()
    middle = np.linalg.norm(ends.mean(axis=0), axis=1)
    assert (outside >= (middle**2 - before**2 / 4) / ROUNDING).all()


@pytest.mark.parametrize("n0", [1, 3, 6])
def test_means_over_the_observed_count_keep_the_bound_where_the_condition_holds(n0):
    domain = Domain(n_rows=9, n_features=2, row_norm=1.0)
    world = World(domain, gaps=9)
    chain = Chain.of([MeanImputer(min_observed=n0, use_floor=False)], domain, world.distance)

    def ratio(pair):
        counts = min((~np.isnan(rows.X)).sum(axis=0).min() for rows in (pair.left, pair.right))
        return chain.use(pair, world.free) if counts >= n0 else np.nan

    reached, _ = attack(world, ratio, draws=150)
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
    ratio = means_ratio(case.domain, ONE, case.stage.min_observed)
    assert 0.93 <= ratio(case.pair) <= ROUNDING


@pytest.mark.parametrize("distance", [Distance(toggled=1), Distance(moved=3, radius=0.1, total=0.2)], ids=named)
def test_toggles_and_moves_reach_the_bound(distance):
    domain = Domain(n_rows=40, n_features=1, row_norm=1.0, entry_bound=1.0)
    world = World(domain, distance, gaps=40)
    reached, _ = attack(world, means_ratio(domain, distance, 38), draws=100, steps=200)
    assert 0.9 <= reached <= ROUNDING


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


@pytest.mark.parametrize("n", [10, 50, 200])
@pytest.mark.parametrize("d", [1, 3])
def test_a_row_from_corner_to_corner_attains_the_bound(n, d):
    case = outliers_cut(n, d)
    assert case.certified.radius == pytest.approx(2 * math.sqrt(d) / (n - 1 - 2 * (n // 10)), rel=1e-8)
    assert case.reached.radius / case.certified.radius == pytest.approx(1.0, abs=1e-8)


@pytest.mark.parametrize(("n", "least"), [(10, 0.689), (50, 0.953), (200, 0.988)])
def test_changing_masks_reach_the_bound_of_trimmed_means(n, least):
    """A ball: the row reverses one feature and swaps which other one it observes (as for means, three are trimmed)."""
    a, m = math.sqrt(0.5), 1
    rest = np.array([[np.nan] * 3, *[[0, -a, -a]] * (n - 2 - 2 * m), *[[a, a, np.nan], [-a, np.nan, a]] * m])
    pair = Pair.of(np.vstack([[a, a, np.nan], rest]), np.vstack([[-a, np.nan, a], rest]))
    n0 = int(min((~np.isnan(rows.X)).sum(axis=0).min() for rows in (pair.left, pair.right)))
    domain = Domain(n_rows=n, n_features=3, row_norm=1.0)
    ratio = ratio_to_bound(domain, Adjacency.replace().distance, n0, m)
    assert least <= ratio(pair) <= ROUNDING


@pytest.mark.parametrize("distance", [Distance(toggled=1), Distance(moved=3, radius=0.1, total=0.2)], ids=named)
def test_toggles_and_moves_reach_the_bound_of_trimmed_means(distance):
    domain = Domain(n_rows=40, n_features=1, row_norm=1.0, entry_bound=1.0)
    world = World(domain, distance, gaps=40)
    column = np.repeat([1.0, -1.0], [5, 35])[:, None]  # four are cut off, the toggled one is the fifth
    first = Pair(Rows.of(column), Rows.of(column))
    reached, _ = attack(world, ratio_to_bound(domain, distance, 38, 4), draws=60, steps=150, first=[first])
    assert 0.9 <= reached <= ROUNDING
