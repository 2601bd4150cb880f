"""Whole pipelines against an adversary: certified distances add up, and one joint margin speaks for all conditions.

Theorem 3: the smallest margin along the pipeline changes by at most 1 between any two neighbouring datasets,
and where it is positive on both sides the distance at the end holds. Some pipelines nearly reach it.
"""

import math

import numpy as np
import pytest
from adversary import World, attack
from neighbours import ROUNDING, Chain, Pair, by_position, shares
from worst_cases import distinct, gap_then_scale, masks_change, rotation

from ppdp.core.adjacency import Adjacency
from ppdp.core.domain import Domain
from ppdp.mechanisms import GaussianMechanism
from ppdp.transformers import PCA, Deduplicator, MeanImputer, MinMaxScaler, NormClipper, StandardScaler

N, GAPS = 60, 6
ONE = Adjacency.replace().distance
BALL = Domain(n_rows=N, n_features=2, row_norm=1.0)
BOX = BALL.but(row_norm=math.sqrt(2), entry_bound=1.0)
COMPLETE = BALL.but(max_missing=0)

FILL, SCALE = MeanImputer(max_missing=5), StandardScaler(0.25, use_floor=False, clip=1.0)


def turn(gap):
    return PCA(1, gap, with_mean=False)


PIPELINES = {
    "dedup, impute": (BOX, [Deduplicator(), FILL]),
    "dedup, impute, scale": (BOX, [Deduplicator(), FILL, StandardScaler(0.4, clip=2.0)]),
    "impute, scale, project": (BALL, [MeanImputer(20, 5, use_floor=False), SCALE, turn(0.1)]),
    "dedup, impute, project": (BALL, [Deduplicator(), FILL, turn(0.2)]),
    "clip, keep first, scale, project": (COMPLETE, [NormClipper(0.8), Deduplicator([0]), SCALE, turn(0.1)]),
    "project, scale": (COMPLETE, [turn(0.3), StandardScaler(0.4, clip=1.0)]),
    "ranges, impute, project, scale": (
        BALL,
        [MinMaxScaler((-0.5, 0.5)), MeanImputer(30, use_floor=False), turn(0.3), StandardScaler(0.35, clip=1.0)],
    ),
    "scale, dedup, project": (
        COMPLETE.but(min_present=N),
        [StandardScaler(0.3, use_floor=False), Deduplicator(compare="raw"), turn(0.1)],
    ),
}

EVERY_PIPELINE = pytest.mark.parametrize("name", PIPELINES)
ONE_OR_TWO = pytest.mark.parametrize("rows", [1, 2], ids=["one row a person", "two rows a person"])


def planned(name, rows):
    """A pipeline with the world of its neighbouring datasets."""
    domain, stages = PIPELINES[name]
    world = World(domain, Adjacency.replace(rows).distance, gaps=0 if domain.max_missing == 0 else GAPS, labels=True)
    return Chain.of(stages, domain, world.distance), world


@EVERY_PIPELINE
@ONE_OR_TWO
@pytest.mark.repeated("name", "rows", keep=4)
def test_the_joint_margin_changes_by_at_most_one(name, rows):
    chain, world = planned(name, rows)
    changed, _ = attack(world, lambda pair: abs(chain.margin(pair.left) - chain.margin(pair.right)), draws=60, steps=60)
    assert 0 < changed <= ROUNDING


@EVERY_PIPELINE
@ONE_OR_TWO
@pytest.mark.repeated("name", "rows", keep=4)
def test_no_pair_that_keeps_the_conditions_exceeds_the_distance(name, rows):
    chain, world = planned(name, rows)
    kept = 0

    def ratio(pair):
        nonlocal kept
        if min(chain.margin(pair.left), chain.margin(pair.right)) == 0:
            return math.nan
        kept += 1
        return chain.use(pair, range(world.domain.n) if chain.distance.moved == 0 else world.free)

    reached, _ = attack(world, ratio, draws=60, steps=30)
    assert kept >= 20
    assert reached <= ROUNDING


def mean_use(chain, pair):
    """How much of the certified shift of the mean (and of the share of rows present) a pair uses."""
    norm = chain.domain.row_norm
    mechanism = GaussianMechanism()
    question = mechanism.query_spec(chain.domain)

    def answer(rows):
        present = [math.sqrt(3) * norm * rows.weight.sum()] if question.parameters["weighted"] else []
        return np.append(rows.weight @ rows.X, present) / rows.n

    out = pair.mapped(chain.run)
    return np.linalg.norm(answer(out.left) - answer(out.right)) / question.sensitivity(chain.domain, chain.distance)


def radius_use(chain, pair):
    assert min(chain.margin(pair.left), chain.margin(pair.right)) > 0
    return shares(by_position(pair.mapped(chain.run), [0]), chain.distance)["radius"]


def test_dedup_then_impute_is_tight():
    case = masks_change(50)
    chain = Chain.of([Deduplicator(), case.stage], case.domain, ONE)
    assert 0.97 <= radius_use(chain, distinct(case.pair)) <= ROUNDING


def test_dedup_then_project_is_tight():
    case = rotation(50, 0.1, everywhere=True)
    pair = distinct(case.pair)
    spectra = [np.linalg.eigvalsh(rows.X.T @ rows.X / rows.n) for rows in (pair.left, pair.right)]
    least = min(values[1] - values[0] for values in spectra)
    chain = Chain.of([Deduplicator(), PCA(1, min_gap=float(least) * (1 - 1e-9), with_mean=False)], case.domain, ONE)
    assert 0.999 <= radius_use(chain, pair) <= ROUNDING


@pytest.mark.parametrize(("clip", "least"), [(1.0, 0.82), (None, 0.97)], ids=["clip", "no clip"])
def test_impute_then_scale_is_tight(clip, least):
    stages, domain, pair = gap_then_scale(2000, 21, clip)
    assert least <= radius_use(Chain.of(stages, domain, ONE), pair) <= ROUNDING


def test_the_mean_after_impute_is_tight():
    """Rows of gaps follow the mean, and the mean follows the replaced row."""
    n, gaps = 40, 8
    X = np.full((n, 1), -1.0)
    X[1 : 1 + gaps] = np.nan
    Y = X.copy()
    Y[0] = 1.0
    domain = Domain(n_rows=n, n_features=1, row_norm=1.0, entry_bound=1.0, min_present=n)
    chain = Chain.of([MeanImputer(n - gaps, max_missing=gaps)], domain, ONE)
    assert mean_use(chain, Pair.of(X, Y)) == pytest.approx(1.0, abs=1e-8)


def ousted(n, first, second, rest):
    """Two groups of equal key in which the replaced row, smaller in the second column, ousts the other one.

    It goes from the first group, where it is ``first`` and ousts ``second``, to the other, where it is the reverse.
    """
    tiny = 1e-9
    others = [[k * tiny, 0, row] for k, row in zip(range(3, n), rest)]
    left = [[tiny, 0, first], [tiny, tiny, second], [2 * tiny, tiny, first], *others]
    right = [[2 * tiny, 0, second], [tiny, tiny, second], [2 * tiny, tiny, first], *others]
    return Pair.of(left, right)


def test_the_mean_after_keep_first_is_tight():
    """Not 2R/n but 4R/n: two rows come and two go."""
    n = 30
    domain = Domain(n_rows=n, n_features=3, row_norm=1.0, max_missing=0, min_present=n)
    chain = Chain.of([Deduplicator([0])], domain, ONE)
    pair = ousted(n, 1.0, -1.0, np.zeros(n - 3))
    assert mean_use(chain, pair) == pytest.approx(1.0, abs=1e-6)
    out = pair.mapped(chain.run)
    shift = np.linalg.norm(out.left.X.mean(axis=0) - out.right.X.mean(axis=0))
    assert shift == pytest.approx(4 / n, rel=1e-6)
