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

from ppdp import transformers as S
from ppdp.core.adjacency import Adjacency
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.rows import Rows

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
        return Chain.of([self.stage], self.domain, Adjacency.replace().distance).distance

    @property
    def reached(self) -> Distance:
        """What the pair does, slot by slot."""
        chain = Chain.of([self.stage], self.domain, Adjacency.replace().distance)
        return by_position(self.pair.mapped(chain.run), free=[0])


def masks_change(n: int) -> Case:
    """Mean imputation: the replaced row reverses the sign of one feature and swaps which other one it observes."""
    a = math.sqrt(0.5)
    rest = [[GAP] * 3] + [[0, -a, -a]] * (n - 2)
    pair = Pair.of([[a, a, GAP], *rest], [[-a, GAP, a], *rest])
    return Case(S.MeanImputer(min_observed=n - 2), Domain(n_rows=n, n_features=3, row_norm=1.0), pair)


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
    return Case(S.MeanImputer(min_observed=observed), Domain(n_rows=n, n_features=d, row_norm=1.0), pair)


def equal_masks(n: int, d: int = 1) -> Case:
    """Mean imputation of entries in [-1, 1]: one complete row goes from one corner to the other."""
    rest = [[GAP] * d] + [[-1.0] * d] * (n - 2)
    domain = Domain(n_rows=n, n_features=d, row_norm=math.sqrt(d), entry_bound=1.0)
    pair = Pair.of([[-1.0] * d, *rest], [[1.0] * d, *rest])
    return Case(S.MeanImputer(min_observed=n - 1), domain, pair)


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
    return Case(S.StandardScaler(min_std=float(least), clip=clip, use_floor=floor), domain, pair)


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
    return Case(S.PCA(1, min_gap=float(values[1] - values[0]), with_mean=False), domain, pair)


LENSES = {
    (10, 0): ((-0.539, 0.8423), (-0.5719, -0.8203), (1.0, 0.0), (0.9998, -0.0198)),
    (50, 45): ((-0.8706, -0.4919), (0.8201, -0.5722), (-0.0373, 0.9993), (-0.0832, -0.9965)),
    (200, 99): ((-0.0441, 0.999), (-0.872, -0.4896), (0.9984, 0.0562), (0.4763, -0.8793)),
}
"""(n, k) -> z, z', the first k of the other rows, the rest: they turn the projector of a centred PCA."""


def lens(n: int, mean: float, **settings: Any) -> Case:
    """Centred PCA of rank 1 in the plane: rows of norm 1 with a mean on the first axis; z, far from it, is reflected.

    One more row stands opposite to the mean, and moves as far as any can.
    """
    v = (-mean + math.sqrt(mean**2 + 8)) / 4
    z, width = math.sqrt(1 - v * v), math.sqrt(1 - mean**2)
    tail = [[-1.0, 0.0], [-v, -z], *[[mean, width]] * (n // 2 - 2), *[[mean, -width]] * (n - n // 2 - 1)]
    pair = Pair.of([[-v, z], *tail], [[-v, -z], *tail])
    values = (np.linalg.eigvalsh(np.cov(rows.X.T, bias=True)) for rows in (pair.left, pair.right))
    gap = min(float(high - low) for low, high in values) * (1 - 1e-12)
    domain = Domain(n_rows=n, n_features=2, row_norm=1.0, max_missing=0)
    return Case(S.PCA(1, gap, with_mean=True, **settings), domain, pair)


def shrunk(n: int, ridge: float, *, everywhere: bool = False) -> Case:
    """Soft PCA: one row of norm 1 among zeros; the replaced one turns from its direction to another.

    ``everywhere`` puts all rows at ``√ridge`` in one direction, in which the replaced one is reflected.
    """
    a = math.sqrt(0.5)
    ends = ([a, a], [a, -a]) if everywhere else ([1.0, 0.0], [0.0, 1.0])
    tail = [[0.0, math.sqrt(ridge)]] * (n - 1) if everywhere else [[1.0, 0.0], *[[0.0, 0.0]] * (n - 2)]
    domain = Domain(n_rows=n, n_features=2, row_norm=1.0, max_missing=0)
    return Case(S.SoftPCA(ridge), domain, Pair.of(*([end, *tail] for end in ends)))


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
    stages = [S.MeanImputer(n - 1, max_missing=1), S.StandardScaler(deviation, use_floor=False, clip=clip)]
    return stages, Domain(n_rows=n, n_features=1, row_norm=1.0, entry_bound=1.0), Pair.of(X, other)


def distinct(pair: Pair) -> Pair:
    """The same pair with rows so slightly shortened that no two are equal."""
    factor = 1 - 1e-6 * np.arange(pair.left.n)[:, None] / pair.left.n
    return pair.mapped(lambda rows: Rows(rows.X * factor, None, rows.weight))


def steep(n: int, share: float, conditional: bool, *, gap: int = 0) -> Case:
    """Regression imputation of a third feature: the replaced row turns the slope along the first feature around.

    The other rows make the slope along the second feature as steep as it can be; the first feature varies as little as
    is assumed (or not at all, with a ridge), so that one row decides its slope. The last ``gap`` rows lie where
    the slope changes and lack the third entry.
    """
    tilt, lean = STEEP[conditional, n, share]
    others = n - 1 - gap
    least = share * n if conditional else 0.0
    turn = 2 * math.pi * np.arange(others) / others
    frame = np.column_stack([np.ones(others), math.sqrt(2) * np.cos(turn), math.sqrt(2) * np.sin(turn)])
    along = math.sqrt(1 - lean**2)
    axes = np.array([[0.0, lean, along], [1.0, 0.0, 0.0], [0.0, along, -lean]])
    rest = frame * np.sqrt(np.array([others - 2 * least, least, least]) / others) @ axes
    moment = rest.T @ rest
    slope = moment[1, 2] / (moment[1, 1] + (0.0 if conditional else share * n))
    common = np.array([0.0, -slope, 1.0]) * math.sqrt((1 - tilt**2) / (1 + slope**2))
    step = np.array([tilt, 0.0, 0.0])
    last = [[1.0, 0.0, GAP]] * gap
    pair = Pair.of(np.vstack([common + step, rest, *last]), np.vstack([common - step, rest, *last]))
    domain = Domain(n_rows=n, n_features=3, row_norm=1.0)
    if not conditional:
        return Case(S.RegressionImputer(share), domain, pair)
    complete = [np.nan_to_num(rows.X[: n - gap]) for rows in (pair.left, pair.right)]
    smallest = min(float(np.linalg.eigvalsh(X.T @ X / n)[0]) for X in complete)
    return Case(S.RegressionImputer(min_eigenvalue=smallest * (1 - 1e-12)), domain, pair)


STEEP = {
    (False, 10, 0.05): (0.59, 0.3),
    (False, 10, 0.1): (0.63, 0.36),
    (False, 10, 0.2): (0.66, 0.43),
    (False, 50, 0.05): (0.67, 0.23),
    (False, 50, 0.1): (0.69, 0.3),
    (False, 50, 0.2): (0.7, 0.39),
    (False, 200, 0.05): (0.7, 0.22),
    (False, 200, 0.1): (0.7, 0.29),
    (False, 200, 0.2): (0.7, 0.38),
    (False, 5000, 0.2): (0.707, 0.38),
    (True, 10, 0.05): (0.59, 0.32),
    (True, 10, 0.1): (0.62, 0.42),
    (True, 10, 0.2): (0.64, 0.57),
    (True, 50, 0.05): (0.67, 0.25),
    (True, 50, 0.1): (0.69, 0.35),
    (True, 50, 0.2): (0.69, 0.51),
    (True, 200, 0.05): (0.7, 0.24),
    (True, 200, 0.1): (0.7, 0.34),
    (True, 200, 0.2): (0.7, 0.5),
    (True, 5000, 0.2): (0.707, 0.5),
}
"""(conditional, n, share) -> (first entry of the replaced row, second entry of the other rows' axis)."""


CIRCLE = [(5, 0), (-5, 0), (0, 5), (0, -5), (3, 4), (-3, -4), (3, -4), (-3, 4), (4, 3), (-4, -3), (4, -3), (-4, 3)]
"""Rows at distance 5 from (0, 0), which is their only possible centre."""

_HALF = np.array(
    [
        (0.6568649024284616, 0.8999078899404863),
        (-0.450910642540281, 1.0188156373276775),
        (-1.1077755449687428, 0.11890774738719113),
    ]
)
_ENDS = [(a * 1.55, b * 2.51) for a in (1, -1) for b in (1, -1)]

KISSES = {
    1: (1.0, np.array([(2.5,), (-2.5,)])),
    2: (0.37137966653180776, np.vstack([_HALF, -_HALF])),
    3: (1.0, np.array([point for a, b in _ENDS for point in ((0, a, b), (a, b, 0), (b, 0, a))])),
}
"""d -> (eta, points within 3 eta of 0 and, as float64 has it, more than 3 eta from each other)."""


def twice(cluster: Any, z: Any) -> Pair:
    """A row z and its victims, and all of that once more with another label: there z is only on the right."""
    rest = np.vstack([cluster, cluster])
    labels = np.repeat([0.0, 1.0], len(cluster))
    X = np.vstack([z, rest])
    return Pair.of(X, X, (np.append(0.0, labels), np.append(1.0, labels)))


def evenly_spaced(n: int, d: int) -> Case:
    """Median imputation: one value goes from the bottom to the top of every column; the last row has only gaps."""
    gap = 0.5 / n
    left = np.append(gap * np.arange(n - 1), GAP)[:, None].repeat(d, axis=1)
    right = left.copy()
    right[0] = 1.0
    domain = Domain(n_rows=n, n_features=d, row_norm=math.sqrt(d), entry_bound=1.0)
    return Case(S.MedianImputer(max_quantile_gap=gap * (1 + 1e-9)), domain, Pair.of(left, right))


def outliers_cut(n: int, d: int) -> Case:
    """Trimmed-mean imputation: a row goes from corner to corner of a box, and a tenth of the rows is cut off there."""
    m = n // 10
    rest = np.repeat([[-1.0], [1.0], [GAP]], [n - 2 - m, m, 1], axis=0)
    left, right = (np.vstack([[[end]], rest]).repeat(d, axis=1) for end in (-1.0, 1.0))
    domain = Domain(n_rows=n, n_features=d, row_norm=math.sqrt(d), entry_bound=1.0)
    return Case(S.TrimmedMeanImputer(trim=(m + 0.5) / (n - 1), min_observed=n - 1), domain, Pair.of(left, right))


def pulled_apart(n: int, d: int, gap: float) -> Case:
    """Robust scaling: quartiles and median rise but for the lower one, and a quarter of the rows is far on either side.

    The rest lies at the median and one width above it.
    """
    step, far = gap * (1 - 1e-6) / math.sqrt(d), 0.6 / math.sqrt(d)
    lower, median, upper = (math.ceil(q * n) for q in (0.25, 0.5, 0.75))
    at = [0.0, -far, 0.0, step, 2 * step, far / 3, far / 3 + step, far / 3 + 2 * step, far]
    left = np.repeat(at, [1, lower - 2, median - lower + 1, 1, 1, upper - median - 2, 1, 1, n - upper - 2])
    right = np.append(far, left[1:])
    domain = Domain(n_rows=n, n_features=d, row_norm=1.0, max_missing=0, min_present=n)
    stage = S.RobustScaler(min_width=0.2 / math.sqrt(d), max_quantile_gap=gap)
    return Case(stage, domain, Pair.of(*(side[:, None].repeat(d, axis=1) for side in (left, right))))


def three_steps(stage: Any) -> Case:
    """Quantile scaling: quartiles -0.1, 0, 0.1 of 401 values; one goes from bottom to top, and raises the upper two.

    Each rises by the gap of the stage. Clips to 0.5 and 3 widths begin at rows at 0.1 and 0.6.
    """
    gap = stage.max_quantile_gap * (1 - 1e-6)
    left = np.repeat([-0.1, 0, gap, 2 * gap, 0.1, 0.1 + gap, 0.1 + 2 * gap, 0.6], [104, 97, 1, 48, 51, 1, 98, 1])
    domain = Domain(n_rows=401, n_features=1, row_norm=1.0, max_missing=0, min_present=401)
    return Case(stage, domain, Pair.of(left[:, None], np.append(1.0, left[1:])[:, None]))
