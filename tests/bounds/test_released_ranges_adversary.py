"""Released ranges and quantiles against an adversary: no pair moves them further than their sensitivities."""

import math
from dataclasses import replace

import numpy as np
import pytest
from adversary import DISTANCES, World, attack, named
from neighbours import ROUNDING

from ppdp.bounds import lookup
from ppdp.bounds.release import FINER, RANGE_CELLS
from ppdp.core.adjacency import Adjacency
from ppdp.core.domain import Domain
from ppdp.data.histograms import EDGES, coarse, fine, first_ranges, quantile_edges, released_ranges
from ppdp.data.noisy_statistics import STATISTICS
from ppdp.data.rows import Rows

N, D = 12, 2
DOMAIN = Domain(n_rows=N, n_features=D, row_norm=math.sqrt(D), entry_bound=1.0)
every_distance = pytest.mark.parametrize("distance", DISTANCES, ids=named)


def sensitivity(statistic, distance, **parameters):
    return lookup(STATISTICS[statistic].formula, "release")(DOMAIN, distance, **parameters)


@every_distance
def test_no_pair_exceeds_what_either_histogram_of_ranges_is_charged_for(distance):
    """A half of the square for each; the second over any cells that the first may have given."""
    granted = sensitivity("ranges", distance, columns=[0, 1]) / math.sqrt(2)
    ranges = np.array([[-0.5, 0.5], [0.0, 0.1]])

    def ratio(pair):
        firsts = [coarse(rows, [0, 1]) for rows in (pair.left, pair.right)]
        seconds = [fine(rows, [0, 1], ranges) for rows in (pair.left, pair.right)]
        return max(np.linalg.norm(one - other) for one, other in (firsts, seconds)) / granted

    reached, _ = attack(World(DOMAIN, distance, gaps=N, deleted=True), ratio, draws=40, steps=60)
    assert 0.5 < reached <= ROUNDING


@every_distance
@pytest.mark.parametrize("quantiles", [[0.5], [0.1, 0.5, 0.9]], ids=len)
@pytest.mark.repeated("quantiles")
def test_no_pair_exceeds_what_choices_are_charged_for(distance, quantiles):
    granted = sensitivity("quantile-choices", distance, quantiles=quantiles)
    measure = STATISTICS["quantile-choices"].measure

    def ratio(pair):
        one, other = (measure(rows, DOMAIN, {"quantiles": quantiles}) for rows in (pair.left, pair.right))
        widths = np.ptp(one - other, axis=1)
        return math.sqrt(math.pi / 8) * np.linalg.norm(widths) / granted

    reached, _ = attack(World(DOMAIN, distance, gaps=N, deleted=True), ratio, draws=40, steps=60)
    assert 0.3 < reached <= ROUNDING


@pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("adjacency", [Adjacency.replace(), Adjacency.add_remove()], ids=["replaced", "removed"])
def test_no_choice_is_charged_for_more_than_one_row_can_do(adjacency, q):
    """For q > 1/2 a missed rank counts more above the quantile and less below it: together as if both counted 1."""
    values = np.linspace(-0.8, 0.8, N)[:, None]
    values[0] = 0.9 if q >= 0.5 else -0.9  # beyond all others
    left = Rows.of(values)
    first = np.arange(N) == 0
    replaced = Rows.of(np.where(first[:, None], -values, values))
    right = replace(left, weight=1.0 - first) if adjacency.unbounded else replaced
    domain = Domain(n_rows=N, n_features=1, row_norm=1.0, entry_bound=1.0)
    one, other = (STATISTICS["quantile-choices"].measure(rows, domain, {"quantiles": [q]}) for rows in (left, right))
    granted = lookup("release.quantile-choices", "release")(domain, adjacency.distance, quantiles=[q])
    assert math.sqrt(math.pi / 8) * np.ptp(one - other) == pytest.approx(granted, rel=1e-6)


def test_cells_are_finest_around_0_and_more_for_more_rows_but_public():
    few, many = quantile_edges(2.0, 100), quantile_edges(2.0, 10**6)
    assert (len(few), len(many)) == (2002, 12_002)
    assert few.tolist() == (-few[::-1]).tolist()
    assert few[-1] == pytest.approx(2.0, rel=1e-12)
    assert np.diff(few)[[1000, -1]] == pytest.approx([9.2e-5, 9.3e-3], rel=0.02)
    assert np.diff(many)[[6000, -1]] == pytest.approx([1.54e-5, 1.55e-3], rel=0.02)


def test_both_are_attained_by_a_row_that_is_replaced():
    left = np.repeat(np.linspace(-0.9, 0.8, N)[:, None], D, axis=1)
    right = np.concatenate([left[1:], np.full((1, D), 0.9)])  # the least value becomes the largest
    (left, right), one = map(Rows.of, (left, right)), Adjacency.replace().distance
    change = coarse(left, [0, 1]) - coarse(right, [0, 1])
    assert np.linalg.norm(change) * math.sqrt(2) == pytest.approx(sensitivity("ranges", one, columns=[0, 1]))
    scores = [STATISTICS["quantile-choices"].measure(rows, DOMAIN, {"quantiles": [0.5]}) for rows in (left, right)]
    widths = np.ptp(scores[0] - scores[1], axis=1)
    granted = sensitivity("quantile-choices", one, quantiles=[0.5])
    assert math.sqrt(math.pi / 8) * np.linalg.norm(widths) == pytest.approx(granted, rel=1e-6)


COLUMNS = {
    "ages": (lambda rng, n: rng.uniform(50, 101, n), 50, 101),
    "years": (lambda rng, n: rng.integers(1995, 2004, n), 1995, 2003),
    "amounts": (lambda rng, n: rng.lognormal(3, 1, n), math.exp(3 - 2.3), math.exp(3 + 2.3)),
    "temperatures": (lambda rng, n: rng.normal(-5, 10, n), -25, 15),
    "tiny": (lambda rng, n: rng.normal(3e-7, 1e-9, n), 2.98e-7, 3.02e-7),
    "seconds": (lambda rng, n: rng.uniform(1.6e9, 1.7e9, n), 1.6e9, 1.7e9),
    "zeros and ones": (lambda rng, n: rng.integers(0, 2, n), 0, 1),
}


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("sign", [1, -1])
def test_ranges_hold_nearly_all_values_and_little_else(column, sign):
    draw, low, high = COLUMNS[column]
    rng, n, scale = np.random.default_rng(0), 20_000, 40.0
    rows = Rows.of(sign * draw(rng, n).astype(np.float64)[:, None])
    first = coarse(rows, [0]) + scale * rng.standard_normal(RANGE_CELLS)
    second = fine(rows, [0], first_ranges(first, scale)) + scale * rng.standard_normal(FINER)
    ((found_low, found_high),) = sign * released_ranges(np.append(first, second), 1, scale)[:, ::sign]
    inside = (sign * rows.X >= found_low) & (sign * rows.X <= found_high)
    assert inside.mean() > 0.94
    assert found_high - found_low < (5 if column == "years" else 3) * (high - low)


def test_columns_that_are_empty_constant_or_beyond_everything_have_a_public_range():
    X = np.column_stack([np.full(5000, np.nan), np.full(5000, 7.0), np.full(5000, 1e300), np.zeros(5000)])
    rows, rng = Rows.of(X), np.random.default_rng(0)
    columns = list(range(4))
    first = coarse(rows, columns) + 20 * rng.standard_normal(4 * RANGE_CELLS)
    ranges = first_ranges(first, 20.0)
    second = fine(rows, columns, ranges) + 20 * rng.standard_normal(4 * FINER)
    found = released_ranges(np.append(first, second), 4, 20.0)
    assert found[0].tolist() == found[2].tolist() == [-1.0, 1.0]
    assert found[1][0] <= 7 <= found[1][1] <= found[1][0] + 0.2
    assert found[3][0] <= 0 <= found[3][1] < 1e-9


def test_edges_are_half_a_power_of_two_apart_on_both_sides_of_0():
    assert EDGES.tolist() == [-edge for edge in EDGES[::-1]]
    np.testing.assert_allclose(EDGES[len(EDGES) // 2 + 1 :] / EDGES[len(EDGES) // 2 : -1], math.sqrt(2), rtol=1e-15)
