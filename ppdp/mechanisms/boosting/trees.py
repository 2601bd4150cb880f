"""Trees whose columns are drawn, and what noisy sums say of their leaves: ``docs/theory/boosting.md``.

All nodes of a level halve the same column, so a tree is a table of several columns: nothing of it but the sums in its
leaves is learned from rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ppdp.data.cell_grid import Codes
from ppdp.data.rows import Array
from ppdp.mechanisms.boosting.model import HALVES

AGAIN = 0.5  # as what part of before a column counts that has been halved
ALONE, SOME = 0.25, (2, 5)  # chance that a tree halves but a few columns, as often as it may; and how many, below 5
MOST_SHIFTED, FEW = 2**HALVES // 4, 8
START = 0.3  # of the variance of leaves in the search for the most likely one
STEPS = 20
NONE = 1e-9  # weight of leaves that have none to be seen


def columns_drawn(weights: Array, halves: Sequence[Codes], depth: int, rng: np.random.Generator) -> list[int]:
    """Columns that are halved one after the other, at most ``depth``: those of large weights more often.

    Some trees have few columns, each as often as before, and so tell values apart that others only halve.
    """
    again = AGAIN
    if rng.random() < ALONE:
        count = int(min(rng.integers(*SOME), np.count_nonzero(weights)))
        few = rng.choice(len(weights), count, replace=False, p=weights / weights.sum())
        again, weights = 1.0, weights * np.isin(np.arange(len(weights)), few)
    most = np.array([np.ceil(np.log2(len(np.unique(own)))) for own in halves])
    halved, columns = np.zeros(len(weights)), []
    for _ in range(depth):
        chances = np.where(halved < most, weights * again**halved, 0.0)
        if not chances.any():
            break
        columns.append(int(rng.choice(len(chances), p=chances / chances.sum())))
        halved[columns[-1]] += 1
    return columns


def shifts_drawn(halves: Sequence[Codes], rng: np.random.Generator) -> Codes:
    """By how many groups each column is shifted, at most a quarter of the rows; one of few values is not."""
    shifts = rng.integers(-MOST_SHIFTED, MOST_SHIFTED + 1, len(halves))
    return shifts * np.array([len(np.unique(own)) > FEW for own in halves])


def leaves_of_cells(columns: Sequence[int], halves: Sequence[Codes]) -> dict[int, Codes]:
    """Of each column what its cells add to the number of a leaf: a binary digit for every level that halves it."""
    added = {column: np.zeros_like(halves[column]) for column in columns}
    for level, column in enumerate(columns):
        side = (halves[column] >> (HALVES - columns[: level + 1].count(column))) & 1
        added[column] += side << (len(columns) - 1 - level)
    return added


def as_table(columns: Sequence[int], values: Array, n_columns: int) -> tuple[Codes, Array]:
    """How often each column is halved, and a table of them, from the values of leaves in the order of levels."""
    halved = np.bincount(np.array(columns, dtype=np.intp), minlength=n_columns)
    levels = values.reshape((2,) * len(columns)).transpose(np.argsort(columns, kind="stable"))
    return halved, levels.reshape(2 ** halved[halved > 0])


def values_of_leaves(
    sums: Array,  # of gradients, in every leaf
    curvature: Array,  # by how much they fall where a leaf adds 1 more, with noise
    labels: Array,  # variances of sums that come of labels, with noise
    noise: float,  # standard deviation of the noise on sums
    unseen: float,  # and on curvatures
    least: float,  # evidence from which on a level is followed
) -> Array:
    """What leaves add, most likely: on every level nodes differ from those above them by a variance of their own."""
    values, depth = np.zeros(1), len(sums).bit_length() - 1
    for level in range(1, depth + 1):
        below = 2 ** (depth - level)
        of_sums, slopes, spread = (own.reshape(-1, below).sum(axis=1) for own in (sums, curvature, labels))
        seen = slopes > unseen * np.sqrt(below)
        slopes = np.where(seen, slopes, NONE)
        variances = below * noise**2 + np.where(seen, np.maximum(spread, 0.0), 0.0)
        values = np.repeat(values, 2)
        rest = of_sums - slopes * values
        variance, evidence = _likeliest(rest, slopes, variances)
        if evidence > least:
            values = values + variance * slopes * rest / (variances + slopes**2 * variance)
    return values


def _likeliest(sums: Array, slopes: Array, noise: Array) -> tuple[float, float]:
    """Variance of effects under which sums are likeliest, and by how much the logarithm of that is above none's."""
    variance, squares = START, slopes**2
    for _ in range(STEPS):
        weights = squares / (noise + squares * variance) ** 2
        variance = max(0.0, float(weights @ (sums**2 - noise) / max(float(weights @ squares), 1e-300)))
        if not variance:
            break
    whole = noise + squares * variance
    return variance, float((sums**2 / noise - sums**2 / whole - np.log(whole / noise)).sum() / 2)
