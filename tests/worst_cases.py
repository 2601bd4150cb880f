"""Neighbouring datasets that come closest to the bounds: what a proof says is possible, written down.

Every case is one replaced row, slot 0. Found by proof (the equality cases) or by a random search over datasets of four
distinct values, whose best values are printed here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from neighbours import Chain, Pair, by_position

from ppdp.distance import Distance
from ppdp.domain import Domain
from ppdp.rows import Rows
from ppdp.transformers import PCA, MeanImputer, StandardScaler

__all__ = [
    "CLIPPED",
    "FLOORED",
    "TOTALS",
    "Case",
    "distinct",
    "equal_masks",
    "four_values",
    "gap_then_scale",
    "masks_change",
    "poles",
    "rotation",
    "sparse_masks",
]

GAP = math.nan


@dataclass(frozen=True)
class Case:
    """A stage with the pair that strains it."""

    stage: Any
    domain: Domain
    pair: Pair

    @property
    def certified(self) -> Distance:
        """What the stage promises for one replaced row."""
        return Chain.of([self.stage], self.domain, Distance.neighbours()).distance

    @property
    def reached(self) -> Distance:
        """What the pair does, slot by slot."""
        chain = Chain.of([self.stage], self.domain, Distance.neighbours())
        return by_position(self.pair.mapped(chain.run), free=[0])


def masks_change(n: int) -> Case:
    """Mean imputation: the replaced row reverses the sign of one feature and swaps which other one it observes."""
    a = math.sqrt(0.5)
    rest = [[GAP] * 3] + [[0, -a, -a]] * (n - 2)
    pair = Pair.of([[a, a, GAP], *rest], [[-a, GAP, a], *rest])
    return Case(MeanImputer(min_observed=n - 2), Domain(n_rows=n, n_features=3, row_norm=1.0), pair)


def sparse_masks(n: int, d: int) -> Case:
    """Mean imputation of unit rows that observe half of the features: the replaced row swaps its half.

    All other observed entries are negative, so the means are as long as they can be (and a row of gaps is clipped:
    compare the means themselves).
    """
    k, a = d // 2, math.sqrt(2 / d)
    z = [a] * k + [GAP] * k
    rest = [[-a if (j - i) % d < k else GAP for j in range(d)] for i in range(n - 1)]
    pair = Pair.of([z, *rest], [z[::-1], *rest])
    observed = int(min((~np.isnan(rows.X)).sum(axis=0).min() for rows in (pair.left, pair.right)))
    return Case(MeanImputer(min_observed=observed), Domain(n_rows=n, n_features=d, row_norm=1.0), pair)


def equal_masks(n: int, d: int = 1) -> Case:
    """Mean imputation of entries in [-1, 1]: one complete row goes from one corner to the other."""
    rest = [[GAP] * d] + [[-1.0] * d] * (n - 2)
    domain = Domain(n_rows=n, n_features=d, row_norm=math.sqrt(d), entry_bound=1.0)
    pair = Pair.of([[-1.0] * d, *rest], [[1.0] * d, *rest])
    return Case(MeanImputer(min_observed=n - 1), domain, pair)


def four_values(
    n: int, x: float, z: float, p: float, q: float, k: int, *, s: float | None, clip: float | None, floor: bool
) -> Case:
    """Standard scaling in one dimension: z becomes ``-sign(z)``; beside x, k rows are q and the rest p.

    Without ``s`` the threshold is the smaller of the two standard deviations.
    """
    rest = [[x], *[[q]] * k, *[[p]] * (n - 2 - k)]
    pair = Pair.of([[z], *rest], [[-math.copysign(1.0, z)], *rest])
    least = min(pair.left.X.std(), pair.right.X.std()) * (1 - 1e-12) if s is None else s
    domain = Domain(n_rows=n, n_features=1, row_norm=1.0, max_missing=0)
    return Case(StandardScaler(min_std=float(least), clip=clip, floor=floor), domain, pair)


def poles(n: int, s: float) -> Case:
    """Standard scaling: of rows at 1 as few are at -1 as a standard deviation of s allows, and one of them goes."""
    few = next(a for a in range(1, n) if 2 * math.sqrt(a * (n - a)) / n >= s * (1 - 1e-9))
    return four_values(n, -1.0, -1.0, 1.0, -1.0, few - 1, s=None, clip=None, floor=False)


CLIPPED = {
    (50, 0.2): (0.7671, 1.0, 1.0, -0.4142, 1),
    (50, 0.5): (0.3213, 1.0, 1.0, -0.6514, 5),
    (200, 0.2): (-0.7704, 1.0, -1.0, 0.4251, 4),
    (200, 0.5): (0.3212, 1.0, 1.0, -0.5945, 22),
}
"""(n, s) -> (x, z, p, q, k) for the floor form, clipped to 1."""

FLOORED = {(50, 0.35): (-1.0, 1.0, 1.0, -0.5414, 1), (200, 0.35): (-1.0, -1.0, 1.0, -0.888, 6)}
"""The same without a clip."""

TOTALS = {
    (50, 0.2): (1.0, 0.8145, 1.0, 0.5893, 29),
    (50, 0.35): (0.2138, -1.0, 1.0, 0.2926, 26),
    (50, 0.6): (-0.9552, -1.0, 0.8786, -0.3704, 33),
    (200, 0.2): (0.584, 0.8046, 1.0, 0.5985, 104),
    (200, 0.35): (0.087, 0.65, 1.0, 0.3005, 102),
    (200, 0.6): (-0.0902, 1.0, 0.4433, -0.8093, 70),
}
"""(n, s) -> (x, z, p, q, k) for the sum of all moves, conditional form."""


def rotation(n: int, beta: float, *, everywhere: bool = False) -> Case:
    """PCA of rank 1 in the plane: the replaced row is reflected in the leading axis, the eigengap is ``beta``.

    ``everywhere`` puts every row on the unit circle, so that each moves as far as any can; the gap is then near
    ``beta``.
    """
    a = math.sqrt(0.5)
    lead = math.sqrt(max((n * beta) ** 2 - 1, 0.0))
    whole = int(lead)
    rest = np.zeros((n - 1, 2))
    if everywhere:
        first = (n + whole) // 2
        rest[:first, 0] = rest[first:, 1] = 1.0
    else:
        rest[0] = 1.0, 0.0
        rest[1] = 0.0, 1.0
        rest[2 : 2 + whole, 0] = 1.0
        rest[2 + whole, 0] = math.sqrt(lead - whole)
    pair = Pair.of(np.vstack([[a, a], rest]), np.vstack([[a, -a], rest]))
    values = np.linalg.eigvalsh(pair.left.X.T @ pair.left.X / n)
    domain = Domain(n_rows=n, n_features=2, row_norm=1.0, max_missing=0)
    return Case(PCA(1, min_gap=float(values[1] - values[0])), domain, pair)


def gap_then_scale(n: int, few: int, clip: float | None) -> tuple[list[Any], Domain, Pair]:
    """Imputation, then scaling, in one dimension: rows at 1, a few at -1, one gap; one row goes from 1 to -1.

    The strained row stands where the clip begins, or at -1.
    """

    def filled(X: np.ndarray) -> np.ndarray:
        return np.where(np.isnan(X), np.nanmean(X), X)

    X = np.ones((n, 1))
    X[1], X[3 : 3 + few] = GAP, -1.0
    for _ in range(30):
        X[2] = -1.0 if clip is None else filled(X).mean() - clip * filled(X).std()
    other = X.copy()
    other[0] = -1.0
    deviation = float(min(filled(X).std(), filled(other).std())) * (1 - 1e-9)
    stages = [MeanImputer(n - 1, max_missing=1), StandardScaler(deviation, floor=False, clip=clip)]
    return stages, Domain(n_rows=n, n_features=1, row_norm=1.0, entry_bound=1.0), Pair.of(X, other)


def distinct(pair: Pair) -> Pair:
    """The same pair with rows so slightly shortened that no two are equal."""
    factor = 1 - 1e-6 * np.arange(pair.left.n)[:, None] / pair.left.n
    return pair.mapped(lambda rows: Rows(rows.X * factor, None, rows.weight))
