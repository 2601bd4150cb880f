"""Neighbouring datasets for whole pipelines: Table 2 and Theorem 17 are tried on them.

A statistic is a sum over pre-processed rows of a function h that is 1-Lipschitz with values in an interval of length 1
(2 for gradients): the assumptions of Theorem 17. Every pair says how much the sum changes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray

from literature.preprocessing.clusters import (
    ETA,
    changed_rows,
    deduplicated,
    flipping_cluster,
    largest_cluster,
    quantized,
)
from literature.preprocessing.components import eigengap, leading
from literature.preprocessing.scaling import scaled
from ppdp.bounds import lookup
from ppdp.core.adjacency import Adjacency
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain

__all__ = ["Strained", "axes", "counted", "filled", "product_sum", "quantized_heights", "rotated", "stretched"]

Rows = NDArray[np.float64]
ONE = Adjacency.replace().distance


@dataclass(frozen=True)
class Strained:
    """How much a sum over pre-processed rows changes between two neighbouring datasets.

    Attributes
    ----------
    setting : str
        The datasets, the stage and h, in words.
    public : dict
        What the printed bounds are functions of.
    left, right : ndarray
        The datasets.
    points : tuple of ndarray
        The rows that are left of them, pre-processed.
    values : tuple of ndarray
        h of these.
    certified : Distance
        What ppdp certifies of the stage.
    width : float
        Length of the interval of h.
    bound : float or None
        Largest |h|, where rows are dropped; else h may be taken less the middle of its interval.
    """

    setting: str
    public: dict[str, float]
    left: Rows = field(repr=False)
    right: Rows = field(repr=False)
    points: tuple[Rows, Rows] = field(repr=False)
    values: tuple[Rows, Rows] = field(repr=False)
    certified: Distance
    width: float = 1.0
    bound: float | None = None

    @property
    def change(self) -> float:
        """Change of the sum of h."""
        one, other = self.values
        return abs(float(one.sum() - other.sum()))

    @property
    def ours(self) -> float:
        """What ppdp charges for the sum of h."""
        return self.certified.shift(self.width / 2 if self.bound is None else self.bound, 1.0)


def _stage(name: str, domain: Domain, **public: object) -> Distance:
    """The distance that a formula certifies behind a stage, for one replaced row."""
    distance: Distance = lookup(name, "stability")(domain, ONE, **public)[1]
    return distance


def _clusters(stage: str, left: Rows, right: Rows) -> Distance:
    """What is certified of clusters as large as those of a pair."""
    most = largest_cluster(left, right, eta=ETA)
    domain = Domain(n_rows=len(left), n_features=left.shape[1], row_norm=1.0)
    return _stage(f"clusters.{stage}", domain, eta=ETA, max_cluster=most, low_dimension=True)


@cache
def counted() -> Strained:
    """Deduplication of one cluster, ended by the replaced row; h is 1 near the cluster and 0 far from it."""
    copies = 200
    rest = np.full((copies, 1), -0.5)
    left, right = (np.vstack([[[end]], rest]) for end in (-0.5 + 2 * ETA, 0.5 + 2 * ETA))
    kept = [deduplicated(X, ETA) for X in (left, right)]
    p = float(changed_rows(*kept))
    one, other = (X[rows] for X, rows in zip((left, right), kept, strict=True))
    setting = (
        f"{copies} rows at -0.5 and one that goes from {left[0, 0]:.3g} to {right[0, 0]:.3g}, η = {ETA}: p = {p:g} of "
        f"them are then dropped; h(x) is {right[0, 0]:.3g} − x between 0 and 1"
    )
    values = (np.clip(right[0, 0] - one[:, 0], 0, 1), np.clip(right[0, 0] - other[:, 0], 0, 1))
    certified = _clusters("deduplicate", left, right)
    return Strained(setting, {"p": p}, left, right, (one, other), values, certified, bound=1.0)


@cache
def quantized_heights() -> Strained:
    """Quantization of one cluster in the plane, whose only centre is reflected; h is the second coordinate."""
    copies = 200
    left, right = flipping_cluster(copies)
    one, other = (quantized(X, ETA) for X in (left, right))
    p = float(changed_rows(one, other))
    setting = (
        f"{copies} rows at (-0.51η, 0) and {copies} at (0.51η, 0), η = {ETA}, and one that goes from (0, 0.86η) to "
        f"(0, -0.86η), the only possible centre both times; p = {p:g} rows move, by 1.72η; h(x, y) = y between -1/2 "
        "and 1/2"
    )
    certified = _clusters("quantize", left, right)
    values = (np.clip(one[:, 1], -0.5, 0.5), np.clip(other[:, 1], -0.5, 0.5))
    return Strained(setting, {"p": p, "eta": ETA}, left, right, (one, other), values, certified)


@cache
def filled(width: float = 1.0) -> Strained:
    """Mean imputation of two columns, some rows of gaps; h is along the axis on which the means turn."""
    n, empty, a = 150, 60, math.sqrt(0.5)
    rest = np.repeat([[math.nan, math.nan], [-a, -a]], [empty, n - 1 - empty], axis=0)
    left, right = (np.vstack([row, rest]) for row in ([1.0, math.nan], [math.nan, 1.0]))
    one, other = (np.where(np.isnan(X), np.nanmean(X, axis=0), X) for X in (left, right))
    p, gaps = (int(count) for count in (np.isnan(left).any(axis=1).sum(), np.isnan(left).sum()))
    setting = (
        f"n = {n} rows in two columns, {empty} of them gaps only, the others (-a, -a) with a = 1/√2; one row is (1, "
        f"gap) or (gap, 1). p = {p} counts rows with gaps, of which {empty} move; gaps are {gaps}. h(x, y) is (x − "
        f"y)/√2 between -{width / 2:g} and {width / 2:g}"
    )
    domain = Domain(n_rows=n, n_features=2, row_norm=1.0)
    certified = _stage("imputation.mean", domain, min_observed=n - p, max_missing=p)
    values = tuple(np.clip((X[:, 0] - X[:, 1]) * a, -width / 2, width / 2) for X in (one, other))
    public = {"p": float(p), "n": float(n)}
    return Strained(setting, public, left, right, (one, other), (values[0], values[1]), certified, width)


def axes(n: int, gap: float) -> tuple[Rows, Rows, float]:
    """Rows ± on the first or second axis of the plane, and one that is reflected; with their smaller eigengap.

    The gap is at least ``gap``, and about as small as n allows.
    """
    a = math.sqrt(0.5)
    first = 2 * math.ceil((n - 2 + n * gap) / 4) + 2
    counts = first, n - 2 - first
    rest = np.vstack([np.tile([[x, y], [-x, -y]], (m // 2, 1)) for (x, y), m in zip(((1.0, 0.0), (0.0, 1.0)), counts)])
    left, right = (np.vstack([[a, end], [-a, 0], rest]) for end in (a, -a))
    return left, right, min(eigengap(X, 1) for X in (left, right))


def _projected(X: Rows) -> Rows:
    component = leading(X, 1)
    return X @ component @ component.T


def product_sum(left: Rows, right: Rows) -> float:
    """Change of the sum of x₁x₂ over rows that are projected on their leading component.

    The product is 1-Lipschitz on the unit disk, with values in [-1/2, 1/2].
    """
    one, other = (float(_projected(X).prod(axis=1).sum()) for X in (left, right))
    return abs(one - other)


@cache
def rotated() -> Strained:
    """Rank-one PCA in the plane; h is the product of the two entries."""
    n = 200
    left, right, gap = axes(n, 0.3)
    one, other = _projected(left), _projected(right)
    setting = f"n = {n} rows along two axes of the plane, one of them reflected; k = 1, gap {gap:.3g}; h is x₁x₂"
    domain = Domain(n_rows=n, n_features=2, row_norm=1.0, max_missing=0)
    certified = _stage("pca.centred-rank", domain, min_gap=gap * (n - 1) / n, n_components=1)
    values = (one.prod(axis=1), other.prod(axis=1))
    return Strained(setting, {"gap": gap}, left, right, (one, other), values, certified)


@cache
def stretched() -> Strained:
    """Standard scaling of rows at -1 and -0.8, one of which goes to 1; h is |z| - 1/2 between 0 and 1."""
    n = 20_000
    left = np.repeat([[-1.0], [-0.8]], n // 2, axis=0)
    right = left.copy()
    right[-1] = 1.0
    one, other = scaled(left), scaled(right)
    deviation = float(min(left.std(), right.std()))
    setting = (
        f"n = {n} rows, half at -1 and half at -0.8, one of which becomes 1 (σ_min = {deviation:.3g}); h is |z| − "
        "1/2 between 0 and 1"
    )
    domain = Domain(n_rows=n, n_features=1, row_norm=1.0, max_missing=0)
    certified = _stage("scaling.standard", domain, min_std=deviation, conditional=True, clip=None)
    values = (np.clip(np.abs(one[:, 0]), 0.5, 1.5) - 0.5, np.clip(np.abs(other[:, 0]), 0.5, 1.5) - 0.5)
    return Strained(setting, {"deviation": deviation}, left, right, (one, other), values, certified)
