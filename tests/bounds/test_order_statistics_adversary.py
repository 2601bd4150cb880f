"""Medians and quantiles against an adversary: no pair that keeps the gap moves rows, or the margin, further."""

import math
from itertools import combinations, combinations_with_replacement

import numpy as np
import pytest
from adversary import DISTANCES, World, attack, domains, named
from neighbours import ROUNDING, Chain, Pair, by_position
from worst_cases import evenly_spaced, pulled_apart, three_steps

from ppdp.bounds import lookup
from ppdp.bounds.order_statistics import coordinate_moves
from ppdp.core.adjacency import Adjacency
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, largest_entry
from ppdp.data.noisy_statistics import STATISTICS
from ppdp.data.quantiles import RankGapMargin, column_quantiles
from ppdp.data.rows import Rows
from ppdp.exceptions import CertificateError
from ppdp.transformers import MedianImputer, MinMaxScaler, RobustScaler

ONE = Adjacency.replace().distance

N = 12
STAGES = {
    "median": (lambda gap: MedianImputer(max_quantile_gap=gap), (0.5,), True),
    "quantile": (
        lambda gap: MinMaxScaler(quantiles=(0.25, 0.8), min_width=0.2, max_quantile_gap=gap),
        (0.25, 0.8),
        False,
    ),
    "quantile, gaps": (
        lambda gap: MinMaxScaler(quantiles=(0.25, 0.8), min_width=0.2, max_quantile_gap=gap),
        (0.25, 0.8),
        True,
    ),
    "robust": (lambda gap: RobustScaler(min_width=0.3, clip=1.5, max_quantile_gap=gap), (0.25, 0.5, 0.75), False),
    "robust, gaps": (lambda gap: RobustScaler(min_width=0.3, clip=1.5, max_quantile_gap=gap), (0.25, 0.5, 0.75), True),
}


def rank_gap(rows, quantiles, ranks, bound):
    """How far apart the values up to so many ranks from a quantile are (L2 over the columns), counted by hand."""
    widest = []
    for column in rows.X[rows.weight > 0].T:
        values = sorted(column[~np.isnan(column)])

        def at(rank, values=values):
            return -bound if rank < 1 else bound if rank > len(values) else values[rank - 1]

        first = [math.ceil(q * len(values) - 1e-9) for q in quantiles]
        starts = [h - back for h in first for back in range(ranks + 1)]
        widest.append(max(at(i + ranks) - at(i) for i in starts))
    return math.hypot(*widest)


def least_gap(pair, quantiles, domain, distance):
    """The smallest gap for which the condition holds on both sides, as a share of the row norm."""
    ranks = math.ceil(distance.one_sided)
    wide = max(rank_gap(rows, quantiles, ranks, largest_entry(domain)) for rows in (pair.left, pair.right))
    return (wide * (1 + 1e-9) + 1e-9) / domain.row_norm


@pytest.mark.parametrize("name", STAGES)
@pytest.mark.parametrize("distance", DISTANCES, ids=named)
@pytest.mark.repeated("name")
def test_no_pair_that_keeps_the_gap_moves_a_row_further(name, distance):
    make, quantiles, gaps = STAGES[name]
    for domain in domains(N, 1, 3, max_missing=None if gaps else 0)[1::2]:
        world = World(domain, distance, gaps=N if gaps else 0, deleted=True)

        def ratio(pair, domain=domain, world=world):
            gap = least_gap(pair, quantiles, domain, distance)
            return Chain.of([make(gap)], domain, distance).use(pair, world.free) if gap <= 2 else np.nan

        reached, _ = attack(world, ratio, draws=25, steps=25)
        assert reached <= ROUNDING


@pytest.mark.parametrize("d", [1, 3])
def test_one_replaced_row_that_stays_present_shifts_all_quantiles_the_same_way(d):
    """Then the tighter bound of the robust scaler holds."""
    make, quantiles, _ = STAGES["robust"]
    domain = Domain(n_rows=N, n_features=d, row_norm=1.0, max_missing=0, min_present=N)
    loose = Chain.of([make(0.1)], domain.but(min_present=0), ONE)
    assert Chain.of([make(0.1)], domain, ONE).distance.radius < 0.7 * loose.distance.radius
    world = World(domain)

    def ratio(pair):
        if min(pair.left.weight.min(), pair.right.weight.min()) == 0:
            return np.nan
        gap = least_gap(pair, quantiles, domain, world.distance)
        return Chain.of([make(gap)], domain, world.distance).use(pair, world.free) if gap <= 2 else np.nan

    reached, _ = attack(world, ratio, draws=60, steps=60)
    assert 0.35 < reached <= ROUNDING


@pytest.mark.parametrize("distance", [ONE, Distance(replaced=1, moved=5, radius=0.02, total=0.05)], ids=named)
@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("clip", [0.5, 1.5, 4.0])
@pytest.mark.repeated("d", "clip", keep=3)
def test_all_rows_together_move_by_no_more_than_their_ranks_allow(distance, d, clip):
    n, quantiles = 41, (0.25, 0.5, 0.75)
    domain = Domain(n_rows=n, n_features=d, row_norm=1.0, max_missing=0, min_present=n)
    world = World(domain, distance)

    def ratio(pair):
        if min(pair.left.weight.min(), pair.right.weight.min()) == 0:
            return np.nan
        gap = least_gap(pair, quantiles, domain, distance)
        if gap > 2:
            return np.nan
        chain = Chain.of([RobustScaler(min_width=0.1, clip=clip, max_quantile_gap=gap)], domain, distance)
        assert chain.steps[0][1].formula == "scaling.robust-by-ranks"
        return by_position(pair.mapped(chain.run), world.free).total / chain.distance.total

    reached, _ = attack(world, ratio, draws=40, steps=60, first=[pulled_apart(n, d, 1e-3).pair])
    assert (0.05 if distance.moved else 0.25) < reached <= ROUNDING


@pytest.mark.parametrize("n", [41, 401, 2001])
def test_rows_far_on_both_sides_nearly_reach_the_total(n):
    case = pulled_apart(n, 1, 1e-6)
    assert kept(case)
    assert {41: 0.78, 401: 0.88, 2001: 0.89}[n] <= case.reached.total / case.certified.total <= ROUNDING
    assert case.certified.total < 0.7 * n * case.certified.radius


def test_what_ranks_allow_needs_all_of_them():
    given = {"gap": 0.01, "min_width": 0.2, "lower": 0.25, "upper": 0.75, "clip": 3.0}
    domain = Domain(n_rows=40, n_features=1, row_norm=1.0, max_missing=0, min_present=40)
    formula, other = (lookup(name, "stability") for name in ("scaling.robust-by-ranks", "scaling.robust"))
    assert formula(domain, ONE, **given)[1].radius == other(domain, ONE, **given)[1].radius
    for facts, distance in (
        (domain.but(min_present=39), ONE),
        (domain.but(max_missing=1), ONE),
        (domain, Distance(replaced=2)),
        (domain, Distance(toggled=1)),
    ):
        with pytest.raises(CertificateError):
            formula(facts, distance, **given)


def kept(case):
    """Whether both sides keep the condition."""
    chain = Chain.of([case.stage], case.domain, ONE)
    return min(chain.margin(rows) for rows in (case.pair.left, case.pair.right)) > 0


@pytest.mark.parametrize("n", [10, 50, 200])
@pytest.mark.parametrize("d", [1, 9])
def test_evenly_spaced_values_attain_the_bound_of_the_median(n, d):
    case = evenly_spaced(n, d)
    assert kept(case)
    assert case.reached.radius / case.certified.radius == pytest.approx(1.0, abs=1e-7)
    assert case.certified.radius == pytest.approx(0.5 / n * math.sqrt(d), rel=1e-7)  # printed: without the root


@pytest.mark.parametrize(
    "stage",
    [
        RobustScaler(min_width=0.2, clip=0.5, max_quantile_gap=1e-5),
        RobustScaler(min_width=0.2, clip=3.0, max_quantile_gap=1e-5),
        MinMaxScaler(quantiles=(0.25, 0.75), min_width=0.2, max_quantile_gap=1e-5),
    ],
    ids=["robust, clip=0.5", "robust, clip=3", "quantile"],
)
def test_narrow_gaps_attain_the_bounds_of_the_scalers(stage):
    """What is missing to 1 is that the width grows by a gap."""
    case = three_steps(stage)
    assert kept(case)
    assert 0.9999 <= case.reached.radius / case.certified.radius <= ROUNDING


def test_moves_are_charged_in_every_column():
    """All rows move, half of the budget of moves goes into each of two columns."""
    domain = Domain(n_rows=9, n_features=2, row_norm=1.0)
    distance = Distance(moved=2, radius=0.1, total=0.2)
    left = np.array([[0.2, 0.2], [0.2, 0.2], *[[np.nan, np.nan]] * 7])
    right = left + np.array([[0.1, 0.0], [0.0, 0.1], *[[0.0, 0.0]] * 7])
    chain = Chain.of([MedianImputer(max_quantile_gap=0.1)], domain, distance)
    shift = column_quantiles(Rows.of(right), (1.0,)) - column_quantiles(Rows.of(left), (1.0,))
    assert np.linalg.norm(shift) == pytest.approx(coordinate_moves(domain, distance))
    assert chain.use(Pair.of(left, right), []) <= ROUNDING


@pytest.mark.parametrize("name", STAGES)
@pytest.mark.parametrize("distance", DISTANCES, ids=named)
@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.repeated("name", "d", keep=2)
def test_margins_of_neighbours_differ_by_at_most_one(name, distance, d):
    _, quantiles, gaps = STAGES[name]
    domain = Domain(n_rows=16, n_features=d, row_norm=1.0, max_missing=None if gaps else 0)
    world = World(domain, distance, gaps=16 if gaps else 0, deleted=True)
    margin = RankGapMargin(0.6, quantiles, 1.0, coordinate_moves(domain, distance))
    unit = math.ceil(distance.one_sided)
    largest, _ = attack(world, lambda pair: abs(margin(pair.left, unit) - margin(pair.right, unit)), draws=15, steps=15)
    assert largest <= 1.0
    if unit == 1:
        assert largest == 1.0


@pytest.mark.parametrize("quantiles", [(0.5,), (0.25, 0.5, 0.75), (0.1, 0.9)])
@pytest.mark.repeated("quantiles", keep=2)
def test_the_margin_is_zero_exactly_where_the_condition_fails_and_never_above_the_largest(quantiles):
    domain = Domain(n_rows=14, n_features=2, row_norm=1.0)
    world = World(domain, gaps=14, deleted=True)
    rng = np.random.default_rng(0)
    kept = failed = 0
    largest = lookup("order-statistics.gap", "margin").largest(
        domain, 1.0, gap=0.7, lower=quantiles[0], upper=quantiles[-1]
    )
    for _ in range(400):
        rows = world.draw(rng).left
        margin = RankGapMargin(0.7, quantiles, 1.0, 0.0)(rows, 1.0)
        holds = rank_gap(rows, quantiles, 1, 1.0) <= 0.7
        assert (margin > 0) == holds
        assert margin <= largest
        kept, failed = kept + holds, failed + (not holds)
    assert kept > 20
    assert failed > 20


def exact_steps(column, quantiles, gap):
    """Fewest values whose replacement breaks the condition; it suffices to replace by the ends and by the others."""
    values = np.unique([*column, -1.0, 1.0])
    for steps in range(len(column) + 1):
        for slots in combinations(range(len(column)), steps):
            rest = np.delete(column, slots)
            for new in combinations_with_replacement(values, steps):
                if rank_gap(Rows.of(np.append(rest, new)[:, None]), quantiles, 1, 1.0) > gap:
                    return steps
    return len(column)


@pytest.mark.parametrize("quantiles", [(0.5,), (0.4, 0.6)])
def test_the_margin_of_one_column_is_the_exact_distance_to_failure(quantiles):
    rng = np.random.default_rng(1)
    seen = set()
    for _ in range(25):
        column = np.round(rng.uniform(-1, 1) + rng.choice([0.1, 0.3, 0.6]) * rng.standard_normal(6), 2).clip(-1, 1)
        gap = float(rng.uniform(0.05, 0.9))
        found = RankGapMargin(gap, quantiles, 1.0, 0.0)(Rows.of(column[:, None]), 1.0)
        assert found == exact_steps(column, quantiles, gap)
        seen.add(found)
    assert len(seen) >= 3


@pytest.mark.parametrize("quantile", [0.001, 0.05, 0.1, 0.25, 0.3, 0.5, 0.7, 0.95, 0.999])
@pytest.mark.repeated("quantile", keep=4)
def test_one_value_more_raises_a_rank_by_at_most_one(quantile):
    """What the rank lemma asks of the ranks, rounding included: checked up to 2000 values, all tied but for ranks."""
    counts = np.arange(1, 2001)
    X = np.where(np.arange(2000)[:, None] < counts, np.arange(2000.0)[:, None], np.nan)
    ranks = column_quantiles(Rows.of(X), (quantile,))[0] + 1
    assert set(np.diff(ranks)) <= {0.0, 1.0}
    assert (np.abs(ranks - np.maximum(1, quantile * counts)) < 1).all()
    assert column_quantiles(Rows.of(np.arange(1.0, 31.0)[:, None]), (0.1,))[0, 0] == 3.0


@pytest.mark.parametrize(("statistic", "values"), [("medians", 1), ("quantile-pairs", 2), ("quantile-triples", 3)])
@pytest.mark.parametrize("distance", DISTANCES, ids=named)
def test_no_pair_that_keeps_the_gap_moves_a_release_further(statistic, values, distance):
    quantiles = {1: (0.5,), 2: (0.2, 0.8), 3: (0.2, 0.5, 0.8)}[values]
    ends = {"lower": 0.2, "upper": 0.8} if values > 1 else {}
    found = STATISTICS[statistic]
    domain = Domain(n_rows=N, n_features=2, row_norm=1.0)
    world = World(domain, distance, gaps=N, deleted=True)

    def ratio(pair):
        parameters = {"gap": least_gap(pair, quantiles, domain, distance), **ends}
        left, right = (found.measure(rows, domain, parameters) for rows in (pair.left, pair.right))
        assert left.shape == (found.size(domain, parameters),)
        return np.linalg.norm(left - right) / lookup(found.formula, "release")(domain, distance, **parameters)

    reached, _ = attack(world, ratio, draws=25, steps=25)
    assert 0.3 < reached <= ROUNDING


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize(
    ("release", "quantiles"),
    [("medians", (0.5,)), ("quantile-pairs", (0.25, 0.75)), ("quantile-triples", (0.25, 0.5, 0.75))],
)
def test_releases_are_attained_wherever_they_stand(release, quantiles, d):
    """Behind stages that move rows: every quantile of every column rises by a rank and by a move, the rows' own."""
    n, gap, step = 61, 0.01, 0.002
    sides = np.empty((2, n, d))
    for column in range(d):
        # Of the rows that are not replaced; each column has its own order, so that a row moves in one of them only.
        ranks = (np.arange(n - 1) + 7 * column) % (n - 1) + 1
        near = {math.ceil(q * n) + by for q in quantiles for by in (-1, 0, 1)}
        sides[0, 0, column], sides[1, 0, column] = 0.0, gap * n
        sides[0, 1:, column] = gap * ranks
        sides[1, 1:, column] = gap * ranks + step * np.isin(ranks, list(near))
    moves = np.linalg.norm(sides[1, 1:] - sides[0, 1:], axis=1)
    moved = int((moves > 0).sum())
    distance = Distance(replaced=1, moved=moved, radius=moves.max(), total=moves.sum())
    pair = Pair.of(*(sides / math.sqrt(d)))
    domain = Domain(n_rows=n, n_features=d, row_norm=1.0, max_missing=0, min_present=n)
    distance = distance.stretched(1 / math.sqrt(d))
    given = {"gap": least_gap(pair, quantiles, domain, distance)}
    bounds = {} if release == "medians" else {"lower": 0.25, "upper": 0.75}
    certified = lookup(f"release.{release}", "release")(domain, distance, **given, **bounds)
    left, right = (column_quantiles(rows, quantiles) for rows in (pair.left, pair.right))
    assert 1 - 1e-5 <= np.linalg.norm(left - right) / certified <= ROUNDING


def test_figures_agree_with_those_of_an_independent_derivation():
    """Computed once by other code, from the same statement."""
    domain = Domain(n_rows=100, n_features=3, row_norm=1.0)
    distance = Distance(replaced=2, moved=4, radius=0.05, total=0.12)
    ends = {"gap": 0.1, "min_width": 0.2}
    assert lookup("release.medians", "release")(domain, distance, gap=0.1) == pytest.approx(0.17745967, rel=1e-7)
    quantile, robust = (lookup(name, "stability") for name in ("scaling.quantile", "scaling.robust"))
    _, far = quantile(domain, distance, **ends, lower=0.1, upper=0.9, low=0.0, high=1.0)
    assert far.radius == pytest.approx(0.05 / 0.2 + 0.88729833, rel=1e-7)
    _, far = robust(domain, distance, **ends, lower=0.25, upper=0.75, clip=1.5)
    assert far.radius == pytest.approx(0.05 / 0.2 + 3.54919334, rel=1e-7)
    column = Rows.of((np.random.default_rng(0).normal(size=40) * 0.2).clip(-1, 1)[:, None])
    assert RankGapMargin(0.2, (0.5,), 1.0, 0.0)(column, 1.0) == 14
    assert RankGapMargin(0.2, (0.5,), 1.0, 0.01)(column, 2.0) == 4
