"""Blocks of rows behind pre-processing that moved all rows: no way to share out the distance costs more."""

import math

import numpy as np
import pytest

from ppdp.core.distance import Distance
from ppdp.exceptions import InvalidParameter, UnsupportedOrder
from ppdp.privacy.blocks import Block, gaussian_blocks, laplace_blocks

DISTANCE = Distance(replaced=1, moved=40, radius=0.1, total=2.5)


def shares(draw, count):
    """A random way to share out 1, often all of it to one or two."""
    share = draw.dirichlet(np.full(count, draw.choice([0.02, 0.3, 3.0])))
    return share / share.sum()


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.repeated("seed", keep=4)
def test_no_way_to_share_out_the_distance_costs_more(seed):
    draw, alike = np.random.default_rng(seed), seed % 2 == 0
    lipschitz = draw.choice([0.1, 1.0, 20.0, math.inf], size=4) if not alike else np.full(4, draw.choice([0.1, 1.0]))
    blocks = [
        Block(*draw.uniform(0.5, 2, 2), lipschitz=float(slope), steps=int(draw.integers(1, 5)))
        for slope in lipschitz[: draw.integers(1, 5)]
    ]
    mu = gaussian_blocks(DISTANCE, blocks).mu
    epsilon = sum(part.pure for part in laplace_blocks(DISTANCE, blocks).parts)
    reached = [0.0, 0.0]
    for _ in range(2000):
        weight, total, rows = (
            amount * shares(draw, len(blocks)) for amount in (DISTANCE.mass, DISTANCE.total, DISTANCE.moved)
        )
        shifts = [
            block.bound * w + min(block.lipschitz * t if t else 0.0, 2 * block.bound * r)
            for block, w, t, r in zip(blocks, weight, total, rows)
        ]
        reached[0] = max(reached[0], math.sqrt(sum(b.steps * (s / b.noise_scale) ** 2 for b, s in zip(blocks, shifts))))
        reached[1] = max(reached[1], sum(b.steps * s / b.noise_scale for b, s in zip(blocks, shifts)))
    assert reached[0] <= mu
    assert reached[1] <= epsilon
    assert not alike or (reached[0] > 0.8 * mu and reached[1] > 0.7 * epsilon)


def test_equal_blocks_cost_what_one_costs_at_the_full_distance():
    block = Block(bound=1.0, noise_scale=10.0, lipschitz=2.0, steps=3)
    for count in (1, 2, 50):
        mu = math.sqrt(3) * (2 + 2 * 2.5) / 10
        assert gaussian_blocks(DISTANCE, [block] * count).mu == pytest.approx(mu)
        assert laplace_blocks(DISTANCE, [block] * count).parts[0].pure == pytest.approx(3 * 7 / 10)


def test_the_two_bounds_on_a_move_are_not_mixed_block_by_block():
    """Each block alone is moved little; both at once are moved more than either."""
    one, other = Block(1.0, 1.0, lipschitz=0.01), Block(0.005, 1.0, lipschitz=100.0)
    distance = Distance(moved=100, radius=1.0)
    alone = max(gaussian_blocks(distance, [block]).mu for block in (one, other))
    both = math.hypot(0.01 * 50, 2 * 0.005 * 50)  # half of the moves and of the rows each
    assert both < gaussian_blocks(distance, [one, other]).mu
    uneven = math.hypot(0.01 * 90, 2 * 0.005 * 98)
    assert alone < uneven < gaussian_blocks(distance, [one, other]).mu


def test_nothing_that_differs_costs_nothing():
    assert gaussian_blocks(Distance(), [Block(1.0, 1.0)]).mu == 0.0
    assert laplace_blocks(Distance(), [Block(1.0, 1.0)]).parts == ()


def test_rows_that_may_change_their_block_are_refused():
    for loss in (gaussian_blocks, laplace_blocks):
        with pytest.raises(UnsupportedOrder, match="another block"):
            loss(Distance(replaced=1, reordered=4), [Block(1.0, 1.0)])
        with pytest.raises(InvalidParameter):
            loss(Distance(replaced=1), [])


@pytest.mark.parametrize("loss", [gaussian_blocks, laplace_blocks])
@pytest.mark.parametrize(
    ("distance", "blocks"), [(3, [Block(1.0, 1.0)]), (DISTANCE, [3]), (DISTANCE, 5), (DISTANCE, None), (DISTANCE, "a")]
)
def test_what_are_no_blocks_is_refused(loss, distance, blocks):
    with pytest.raises(InvalidParameter):
        loss(distance, blocks)


@pytest.mark.parametrize(
    "block",
    [
        *((0.0, 1.0), (1.0, 0.0), (1e300, 1e-300), ("a", 1.0)),
        *((1.0, 1.0, slope) for slope in (-1.0, math.nan, "a", None, True, -math.inf)),
        *((1.0, 1.0, 1.0, steps) for steps in (0, 10**400, 1.5)),
    ],
)
def test_impossible_blocks_are_refused(block):
    with pytest.raises(InvalidParameter):
        Block(*block)
