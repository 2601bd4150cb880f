"""Stages for groups of columns against an adversary: what moves in one group stands beside what moves in the others."""

import math

import numpy as np
import pytest
from adversary import World, attack
from neighbours import ROUNDING, Chain, Pair
from worst_cases import FLOORED, four_values

from ppdp import Adjacency, Domain
from ppdp import transformers as S
from ppdp.bounds.column_groups import distance_of, domain_of
from ppdp.core.distance import Distance, GroupMoves
from ppdp.core.domain import ColumnBounds
from ppdp.core.formula import lookup
from ppdp.data.noisy_statistics import STATISTICS
from ppdp.data.rows import Rows
from ppdp.exceptions import CertificateError, UnknownStage, UnsupportedOrder
from ppdp.testing import check_stage
from ppdp.transformers.columns.column_subset import ColumnSplit, ColumnSubset

ONE = Adjacency.replace().distance
BOX = Domain(n_rows=10, n_features=4, row_norm=2.0, entry_bound=1.0)
GROUPS = ColumnBounds("a", 1, 0.8), ColumnBounds("b", 3, 1.2, 1.0)
SPLIT = ColumnSplit([("a", [1]), ("b", None)])


@pytest.mark.parametrize(
    ("stage", "group", "least"),
    [
        (S.StandardScaler(), "b", 0.9),
        (S.StandardScaler(0.05, use_floor=False, clip=None), "a", 0.8),
        (S.MeanImputer(), "b", 0.6),
        (S.MedianImputer(max_quantile_gap=0.5), "b", 0.6),
        (S.MinMaxScaler((-0.5, 0.7)), "a", 0.8),
        (S.RandomProjection(2), "b", 0.9),
        (S.PCA(1, fit_mode="noisy"), "b", 0.6),
        (S.RobustScaler(), "b", 0.9),
        (S.SelectKBest(2), "b", 0.6),
        (S.VarianceThreshold(0.05), "b", 0.6),
        (S.TargetMeanEncoder(), "b", 0.0),  # of which rows that move count as replaced
    ],
    ids=str,
)
def test_no_pair_exceeds_what_follows_for_all_columns_and_in_every_group(stage, group, least):
    """Replaced, toggled, reweighted and moved rows, with gaps and without; exact, released and public."""
    assert check_stage(ColumnSubset(stage, group), BOX.in_groups(GROUPS), pairs=4, climbs=12) >= least


def test_a_split_keeps_what_moves():
    assert check_stage(SPLIT, BOX, pairs=4, climbs=10) == pytest.approx(1.0)


def both(pair, beside=None):
    """Two datasets of which each column stands twice, or beside another pair's."""
    sides = [pair.left, pair.right], [(beside or pair).left, (beside or pair).right]
    return Pair(*(Rows.of(np.hstack([one.X, other.X])) for one, other in zip(*sides)))


@pytest.mark.parametrize("setting", list(FLOORED), ids=str)
def test_the_same_rows_move_most_in_both_groups(setting):
    """The radius of two scalers is that of one, times the root of 2, and is reached."""
    case = four_values(setting[0], *FLOORED[setting], s=setting[1], clip=None, floor=True)
    domain = Domain(n_rows=setting[0], n_features=2, row_norm=math.sqrt(2), entry_bound=1.0, max_missing=0)
    scaler = S.StandardScaler(case.stage.min_std, clip=None)
    split = ColumnSplit([("a", [0]), ("b", [1])])
    chain = Chain.of([split, ColumnSubset(scaler, "a"), ColumnSubset(scaler, "b")], domain, ONE)
    assert chain.distance.radius == pytest.approx(math.sqrt(2) * case.certified.radius, rel=1e-6)
    assert 0.89 <= chain.use(both(case.pair), [0]) <= ROUNDING


def test_other_rows_move_in_every_group():
    """The total is the sum of the groups': rows of which one column is missing are not those of which the other is."""
    n, k = 60, 10
    rest = np.full((n, 2), -1.0)
    rest[1 : k + 1, 0] = rest[k + 1 : 2 * k + 1, 1] = np.nan
    left, right = rest.copy(), rest.copy()
    left[0], right[0] = -1.0, 1.0
    domain = Domain(n_rows=n, n_features=2, row_norm=math.sqrt(2), entry_bound=1.0, min_present=n)
    split, imputer = ColumnSplit([("a", [0]), ("b", [1])]), S.MeanImputer(max_missing=k)
    chain = Chain.of([split, ColumnSubset(imputer, "a"), ColumnSubset(imputer, "b")], domain, ONE)
    assert chain.domain.missing_rows == 0
    assert chain.distance.moved == 2 * k
    one = Chain.of([split, ColumnSubset(imputer, "a")], domain, ONE).distance
    assert chain.distance.total == pytest.approx(2 * one.total, rel=1e-6)
    out = Pair.of(left, right).mapped(chain.run)
    moves = np.linalg.norm(out.left.X - out.right.X, axis=1)[1:]
    assert 0.98 <= moves.sum() / chain.distance.total <= ROUNDING
    assert np.count_nonzero(moves) == 2 * k


def test_columns_that_never_change_cost_nothing():
    """A group without a column that neighbours change is the same on both sides: exact statistics there are free."""
    adjacency = Adjacency.change(coordinate={"y": 0.1})
    domain = Domain(n_rows=50, feature_names=("x", "y", "z"), n_features=3, max_missing=0, adjacency=adjacency)
    ranges, split = S.MinMaxScaler((-1, 1)), ColumnSplit([("a", ["x", "z"]), ("b", ["y"])])
    scaler = S.StandardScaler(fit_mode="exact")
    chain = Chain.of([ranges, split, ColumnSubset(scaler, "a")], domain, domain.neighbours)
    assert chain.distance.moved == 1
    assert chain.distance.radius == pytest.approx(0.1, rel=1e-6)
    moved = Chain.of([ranges, split, ColumnSubset(scaler, "b")], domain, domain.neighbours).distance
    assert moved.moved == domain.n
    assert moved.groups[0] == GroupMoves(0, 0, 0)


def test_statistics_are_charged_for_the_columns_of_their_group():
    domain = BOX.but(max_missing=0).in_groups(GROUPS)
    plain, own = (lookup(f"release.mean-and-squares{of}", "release") for of in ("", "@a"))
    assert own(domain, ONE) == pytest.approx(plain(domain_of(domain, "a"), ONE))
    assert own(domain, ONE) < plain(BOX, ONE) / 1.9
    measured = STATISTICS["squares@a"].measure(
        Rows.of(0.8 * np.eye(4)[[0, 0, 1, 2]]), domain.but(n_rows=4).in_groups(GROUPS), {}
    )
    assert len(measured) == STATISTICS["squares@a"].size(domain, {}) == 2
    assert measured[0] == pytest.approx(0.4)


def test_what_is_no_stage_of_a_group():
    domain = BOX.in_groups(GROUPS)
    with pytest.raises(UnknownStage, match="acts on whole rows"):
        ColumnSubset(S.Deduplicator(), "a").fit_modes(domain, ONE)
    with pytest.raises(UnknownStage, match="no group of columns"):
        ColumnSubset(S.StandardScaler(), "a").fit_modes(BOX, ONE)
    (way,) = ColumnSubset(S.StandardScaler(), "of no columns").fit_modes(domain, ONE)
    assert (way.domain, way.distance) == (domain, ONE)
    with pytest.raises(CertificateError):
        lookup("column-groups.none", "stability")(BOX, ONE)
    for name, there in (("deduplication.unanimous@a", domain), ("scaling.none@c", domain), ("scaling.none@a", BOX)):
        with pytest.raises(CertificateError):
            lookup(name, "stability")(there, ONE)
    for name in ("scaling.none@", "@a", "scaling.none@a@b", "nothing@a"):
        with pytest.raises(CertificateError):
            lookup(name, "stability")(domain, ONE)
    with pytest.raises(CertificateError):
        distance_of(domain, Distance(moved=1, radius=1.0).in_groups([GroupMoves(1, 1.0, 1.0)]), "a")


STAGES = [
    lambda: S.StandardScaler(0.3),
    lambda: S.StandardScaler(0.25, use_floor=False, clip=1.0),
    lambda: S.RobustScaler(min_width=0.2, max_quantile_gap=0.5),
    lambda: S.PCA(1, 0.1, with_mean=False),
    lambda: S.SoftPCA(0.2),
    lambda: S.RandomProjection(2),
    lambda: S.NormClipper(0.8),
]
FRONT = [lambda: S.Deduplicator(), lambda: S.NormClipper(0.9), lambda: S.GridDeduplicator(cell_width=0.3, keep="soft")]


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.repeated("seed", keep=6)
def test_pipelines_with_groups_drawn_at_random(seed):
    """Whole rows, a split, stages for its groups and one for all columns again: exact wherever they can be."""
    rng = np.random.default_rng(seed)
    gaps = 4 if rng.random() < 0.4 else 0
    domain = Domain(n_rows=30, n_features=3, row_norm=1.0, min_present=30, max_missing=None if gaps else 0)
    distance = (ONE, Adjacency.replace(2).distance, Distance(replaced=1, moved=2, radius=0.1))[rng.integers(3)]
    fill = [S.MeanImputer(0.4, max_missing=5)] if gaps else []
    own = [(group, [*fill, rng.choice(STAGES)()]) for group in "ab"]
    groups = [ColumnSubset(stage, group) for group, stages in own for stage in stages]
    behind = [rng.choice(STAGES)() for _ in range(rng.integers(2))]
    front = [] if distance.moved else [rng.choice(FRONT)() for _ in range(rng.integers(2))]  # what moved would be torn
    try:
        chain = Chain.of([*front, SPLIT, *groups, *behind], domain, distance)
    except UnsupportedOrder:  # ranks behind soft weights
        return
    if any(way.name == "noisy" for _, way, _ in chain.steps):  # behind these some have no exact way
        return
    world, moved = World(domain, distance, gaps=gaps, labels=True), 0.0

    def ratio(pair):
        nonlocal moved
        margins = chain.margin(pair.left), chain.margin(pair.right)
        moved = max(moved, abs(margins[0] - margins[1]) if math.isfinite(margins[0]) else 0.0)
        return math.nan if min(margins) == 0 else chain.use(pair, world.free)

    reached, _ = attack(world, ratio, seed=seed, draws=20, steps=20)
    assert not reached > ROUNDING
    assert moved <= ROUNDING
