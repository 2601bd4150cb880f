"""Noisy sums over disjoint blocks of rows, blocks by public index, behind pre-processing that may have moved all rows.

The one replaced row is in one block, but moved rows reach all of them. What is quadratic (Gaussian noise) or linear
(Laplace noise) in the shift is then still no more than what the worst blocks cost; for sampled steps nothing like that
is proved, and they are not offered here. Theory: ``docs/theory/ledger.md``, 6.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ppdp.core.checks import integer, length, number
from ppdp.core.distance import Distance
from ppdp.exceptions import InvalidParameter, UnsupportedOrder
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.losses import Pure


@dataclass(frozen=True, slots=True)
class Block:
    """Noisy sums of contributions of the rows of one block."""

    bound: float  # norm of every row's contribution: L2 for Gaussian noise, L1 for Laplace noise
    noise_scale: float  # standard deviation, or scale of the Laplace noise, on the sum
    lipschitz: float = math.inf  # Lipschitz constant of the contribution, in that norm, in the row; may be infinite
    steps: int = 1  # sums that are released

    def __post_init__(self) -> None:
        length("bound", self.bound)
        length("noise_scale", self.noise_scale)
        integer("steps", self.steps, most=2**53)
        if not (isinstance(self.lipschitz, float) and self.lipschitz == math.inf):
            number("lipschitz", self.lipschitz, least=0)


def gaussian_blocks(distance: Distance, blocks: Sequence[Block]) -> PrivacyLoss:
    """Loss of Gaussian sums over all blocks together, at this distance of the whole datasets.

    The root of the sum of squares of the blocks' shifts is convex in how the distance is shared out among them, so it
    is largest with all unmatched weight in one block and all moves in one.

    >>> years = [Block(bound=1.0, noise_scale=10.0, lipschitz=1.0) for _ in range(30)]
    >>> round(gaussian_blocks(Distance(replaced=1, moved=50, radius=0.04), years).mu, 3)
    0.4
    """
    return PrivacyLoss(_worst(distance, blocks, math.sqrt, math.hypot))


def laplace_blocks(distance: Distance, blocks: Sequence[Block]) -> PrivacyLoss:
    """Loss of Laplace sums over all blocks together, at this distance of the whole datasets; pure.

    The sum of the blocks' shifts is linear in how the distance is shared out among them.
    """
    epsilon = _worst(distance, blocks, float, operator.add)
    return PrivacyLoss(parts=(Pure(epsilon=epsilon),) if epsilon else ())


def _worst(
    distance: Distance,
    blocks: Sequence[Block],
    repeated: Callable[[float], float],
    together: Callable[[float, float], float],
) -> float:
    """Largest loss over what block gets the unmatched weight and what block gets the moves."""
    if not isinstance(distance, Distance):
        raise InvalidParameter(f"distance must be a Distance, got {type(distance).__name__}.")
    if not (isinstance(blocks, Sequence) and all(isinstance(block, Block) for block in blocks)):
        raise InvalidParameter("blocks must be a sequence of Block.")
    if not distance.aligned:
        what = "rows that match only up to a permutation may be in another block."
        raise UnsupportedOrder(what, fix="Distance.by_position(), which charges them as toggled.")
    if not blocks:
        raise InvalidParameter("blocks in parallel need at least one block.")
    units = [(repeated(block.steps) / block.noise_scale, block) for block in blocks]
    weight = [unit * block.bound * distance.mass for unit, block in units]
    if distance.total == 0:
        return number("loss", max(weight) * (1 + 1e-12))
    # A move is linear in its share of the total, and in its share of the rows; the same bound must serve all blocks.
    by_total = [unit * block.lipschitz * distance.total for unit, block in units]
    by_rows = [unit * 2 * block.bound * distance.moved for unit, block in units]
    return number("loss", min(_vertex(weight, moves, together) for moves in (by_total, by_rows)) * (1 + 1e-12))


def _vertex(weight: Sequence[float], moves: Sequence[float], together: Callable[[float, float], float]) -> float:
    """Largest loss with all weight in one block and all moves in one."""
    farthest = sorted(range(len(moves)), key=moves.__getitem__)[-2:]
    ways = ((i, j) for i in range(len(weight)) for j in {i, *farthest})
    return max(weight[i] + moves[j] if i == j else together(weight[i], moves[j]) for i, j in ways)
