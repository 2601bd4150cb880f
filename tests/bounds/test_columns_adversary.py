"""Scalers of some columns against an adversary: what moves there, and what had moved beside it, is within the bound."""

import math

import numpy as np
import pytest
from adversary import World, attack
from neighbours import ROUNDING, Chain, Pair
from worst_cases import FLOORED, four_values, poles

from ppdp import Domain
from ppdp.bounds.column_groups import entries_of
from ppdp.core.adjacency import Adjacency
from ppdp.core.distance import Distance
from ppdp.exceptions import CertificateError
from ppdp.transformers import MinMaxScaler, RobustScaler, StandardScaler

ONE = Adjacency.replace().distance
NORM, N = math.sqrt(3), 9
BOX = Domain(n_rows=N, n_features=3, row_norm=NORM, entry_bound=1.0, max_missing=0)


@pytest.mark.parametrize("per_column", [True, False])
def test_standard_scaling_under_its_condition(per_column):
    world = World(BOX, ONE, deleted=True)

    def ratio(pair):
        variances = [(rows.X * rows.weight[:, None])[:, [0, 2]].var(axis=0) for rows in (pair.left, pair.right)]
        least = math.sqrt(min(v.min() if per_column else v.sum() for v in variances)) / math.sqrt(2) * (1 - 1e-12)
        if least < 1e-3:
            return np.nan
        stage = StandardScaler(least, use_floor=False, clip=None, columns=[0, 2], per_column=per_column)
        return Chain.of([stage], BOX, ONE).use(pair, world.free)

    reached, _ = attack(world, ratio, draws=60, steps=60)
    assert 0.2 <= reached <= ROUNDING


@pytest.mark.parametrize(("setting", "least"), list(zip(FLOORED, (0.89, 0.90))), ids=str)
def test_the_bound_is_that_of_the_columns_alone_and_is_reached(setting, least):
    case = four_values(setting[0], *FLOORED[setting], s=setting[1], clip=None, floor=True)
    n = case.domain.n
    domain = Domain(n_rows=n, n_features=3, row_norm=math.sqrt(3), entry_bound=1.0, max_missing=0)
    beside = np.tile([0.0, 1.0], (n, 1))
    pair = case.pair.mapped(lambda rows: type(rows)(np.hstack([rows.X, beside]), None, rows.weight))
    stage = StandardScaler(case.stage.min_std, clip=None, columns=[0])
    chain = Chain.of([stage], domain, ONE)
    assert chain.distance.radius == pytest.approx(case.certified.radius, rel=1e-7)
    assert least <= chain.use(pair, [0]) <= ROUNDING


def test_rows_that_had_moved_beside_the_columns():
    """The other rows move in their other column, too."""
    case = poles(200, 0.35)
    n = case.domain.n
    domain = Domain(n_rows=n, n_features=2, row_norm=math.sqrt(2), entry_bound=1.0, max_missing=0)
    scaler = StandardScaler(0.35, use_floor=False, clip=None, columns=[0])
    step = Chain.of([scaler], domain, ONE).distance.radius / 20
    chain = Chain.of([scaler], domain, Distance(replaced=1, moved=n - 1, radius=step))
    beside = [np.full((n, 1), step / 2), np.vstack([[step / 2], np.full((n - 1, 1), -step / 2)])]
    sides = [np.hstack([rows.X, moved]) for rows, moved in zip((case.pair.left, case.pair.right), beside)]
    pair = Pair(*(type(case.pair.left)(X, None, np.ones(n)) for X in sides))
    assert 0.1 <= chain.use(pair, [0]) <= ROUNDING


@pytest.mark.parametrize(
    "stage", [RobustScaler(columns=[0, 2]), MinMaxScaler(quantiles=(0.2, 0.8), columns=[0, 2])], ids=repr
)
def test_released_quantiles_of_some_columns(stage):
    """Row by row, whatever was released."""
    distance = Distance(replaced=1, moved=4, radius=0.1, total=0.2)
    way = next(way for way in stage.fit_modes(BOX, distance) if way.name == "noisy")
    quantiles = np.sort(np.random.default_rng(0).uniform(-1, 1, (len(way.parameters["quantiles"]), 2)), axis=0)
    statistics = stage.read(quantiles, way, BOX)

    def ratio(pair):
        left, right = (stage.map_rows(rows.X, statistics) for rows in (pair.left, pair.right))
        return np.linalg.norm(left - right, axis=1)[list(set(range(N)) - set(world.free))].max() / way.distance.radius

    world = World(BOX, distance)
    reached, _ = attack(world, ratio, draws=25, steps=40)
    assert 0.1 <= reached <= ROUNDING
    np.testing.assert_array_equal(stage.map_rows(np.eye(3), statistics)[:, 1], np.eye(3)[:, 1])


@pytest.mark.parametrize("stage", [RobustScaler, MinMaxScaler], ids=lambda kind: kind.__name__)
def test_exact_quantiles_of_some_columns(stage):
    """Bounds and margin are those of the columns alone."""
    given = {"quantiles": (0.2, 0.8)} if stage is MinMaxScaler else {}
    some, alone = stage(**given, columns=[0, 2]), stage(**given)
    ways = [
        next(way for way in one.fit_modes(domain, ONE) if way.name == "exact")
        for one, domain in ((some, BOX), (alone, BOX.but(n_features=2, row_norm=math.sqrt(2))))
    ]
    assert ways[0].distance.radius == pytest.approx(ways[1].distance.radius)
    X = np.random.default_rng(0).uniform(-1, 1, (N, 3))
    margins = [way.conditions[0].margin(columns) for way, columns in zip(ways, (X, X[:, [0, 2]]))]
    assert margins[0] == margins[1]


@pytest.mark.parametrize("columns", [[], [0, 0], [3], [-1], [0.0]], ids=str)
def test_columns_that_mean_nothing(columns):
    with pytest.raises(CertificateError):
        entries_of(BOX, columns)
