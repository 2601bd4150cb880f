"""Every stage without a condition against an adversary: no pair of any distance makes more of it than is certified."""

import math

import numpy as np
import pytest
from adversary import DISTANCES, World, attack, domains, named
from neighbours import ROUNDING, Chain, by_position, shares

from ppdp import transformers as S
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain

N = 9
COMPLETE = domains(N, 1, 3, max_missing=0)
WITH_GAPS = domains(N, 1, 3)
FORMS = [{"clip": None}, {"clip": 1.0}, {"clip": None, "with_mean": False}, {"clip": 1.0, "with_mean": False}]
ROW_WISE = {
    "clip": lambda d: S.NormClipper(0.6),
    "ranges": lambda d: S.MinMaxScaler(ranges=[(-0.5, 1.0), (-1.0, 0.25), (0.0, 0.5)][:d]),
    "narrow ranges": lambda d: S.MinMaxScaler(ranges=(-2.0, 2.0), feature_range=(0.25, 0.5)),
    "coarse grid": lambda d: S.GridQuantizer(cell_width=0.7),
    "fine grid": lambda d: S.GridQuantizer(cell_width=1e-3),
    "staircase": lambda d: S.GridQuantizer(cell_width=0.4, mode="staircase", soft_edge=0.3),
    "slope only": lambda d: S.GridQuantizer(cell_width=0.4, mode="staircase", soft_edge=1),
    "dither": lambda d: S.GridQuantizer(cell_width=0.4, mode="dither", seed=3),
}
FUNCTIONS = {  # a user's function may give a row with gaps others
    "smooth map": lambda d: S.RowMap(np.tanh, out_ranges=(-0.5, 1.0), lipschitz=1.0),
    "affine map": lambda d: S.RowMap(lambda X: 2 * X[:, :1] - 0.1, out_ranges=[(-1.0, 3.0)], lipschitz=2.0),
}
# A stage for so many columns, the domains, and the least share that is reached.
STAGES = {
    **{
        f"scaled, {form}": (lambda d, form=form: S.StandardScaler(0.3 / math.sqrt(d), **form), COMPLETE, 0)
        for form in FORMS
    },
    **{
        f"one scale {share}, {form}": (
            lambda d, form=form, share=share: S.StandardScaler(share, per_column=False, **form),
            COMPLETE,
            0.05 if share == 0.3 else 0,
        )
        for form in FORMS[:3]
        for share in (0.3, 0.8)  # the larger is above any deviation of some of these rows
    },
    **{
        f"columns {columns} scaled, {form}": (
            lambda d, form=form, columns=columns: S.StandardScaler(0.3, columns=columns, **form),
            COMPLETE[3:],
            0,
        )
        for columns in ([1], [0, 2])
        for form in FORMS[:3]
    },
    "soft, a small ridge": (lambda d: S.SoftPCA(0.02), COMPLETE, 0.02),
    "soft, a large ridge": (lambda d: S.SoftPCA(0.5), COMPLETE, 0.2),
    "means": (lambda d: S.MeanImputer(min_observed=5), WITH_GAPS, 0),
    "means of column 1": (lambda d: S.MeanImputer(min_observed=5, columns=[1]), WITH_GAPS[3:], 0),
    "means of columns 0 and 2": (lambda d: S.MeanImputer(min_observed=5, columns=[0, 2]), WITH_GAPS[3:], 0),
    "trimmed means": (lambda d: S.TrimmedMeanImputer(trim=0.25, min_observed=5), WITH_GAPS[1:], 0),
    "small ridge": (lambda d: S.RegressionImputer(0.3), WITH_GAPS[1:], 0),
    "large ridge": (lambda d: S.RegressionImputer(2.0), WITH_GAPS[1:], 0),
    **{name: (make, WITH_GAPS, 0) for name, make in ROW_WISE.items()},
    **{name: (make, COMPLETE, 0) for name, make in FUNCTIONS.items()},
}


@pytest.mark.parametrize("name", STAGES)
@pytest.mark.parametrize("place", range(6))
@pytest.mark.parametrize("distance", DISTANCES, ids=named)
@pytest.mark.repeated("place", "distance", keep=3)
def test_no_pair_exceeds_what_is_certified(name, place, distance):
    make, facts, least = STAGES[name]
    domain = facts[place % len(facts)]
    gaps = 0 if domain.max_missing == 0 else N
    world = World(domain, distance, gaps=gaps, labels=name in ROW_WISE | FUNCTIONS, deleted=True)
    chain = Chain.of([make(domain.d)], domain, distance)
    public = name in ROW_WISE | FUNCTIONS
    effort = {"draws": 8, "steps": 8 if distance.moved else 3} if public else {"draws": 25, "steps": 30}
    reached, _ = attack(world, lambda pair: chain.use(pair, world.free), **effort)
    assert least <= reached <= ROUNDING


@pytest.mark.parametrize("name", ["clip", "ranges", "narrow ranges", *FUNCTIONS])
def test_moves_reach_the_lipschitz_constant(name):
    distance = Distance(moved=3, radius=0.02, total=0.05)
    world = World(Domain(n_rows=8, n_features=3, row_norm=1.0, max_missing=0), distance)
    chain = Chain.of([(ROW_WISE | FUNCTIONS)[name](3)], world.domain, distance)
    for number in ("radius", "total"):
        reached, _ = attack(
            world,
            lambda pair, number=number: shares(by_position(pair.mapped(chain.run)), chain.distance)[number],
            steps=200,
        )
        assert 0.95 <= reached <= ROUNDING


@pytest.mark.parametrize("stage", [S.MeanImputer(), S.TrimmedMeanImputer(), S.RegressionImputer(0.3)], ids=repr)
def test_only_rows_with_gaps_move(stage):
    domain = Domain(n_rows=12, n_features=2, row_norm=1.0, max_missing=4)
    world = World(domain, gaps=4)
    chain = Chain.of([stage], domain, world.distance)
    reached, _ = attack(
        world, lambda pair: shares(by_position(pair.mapped(chain.run), world.free), chain.distance)["moved"]
    )
    assert chain.distance.moved == 4
    assert reached == pytest.approx(3 / 4)  # slot 0 is the replaced one; a replacement may lose its gaps
