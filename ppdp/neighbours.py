"""Drawing neighbouring datasets, and measuring how far apart two datasets are."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ppdp.distance import Distance
from ppdp.domain import Domain
from ppdp.rows import Rows
from ppdp.statistics import clip_norms, row_norms

__all__ = ["Pair", "World", "measured"]

Array = NDArray[np.float64]
Pair = tuple[Rows, Rows]
"""Two datasets; slot i of the one belongs to slot i of the other."""


@dataclass(frozen=True, slots=True)
class World:
    """What neighbouring datasets may look like.

    Slots have fixed roles: the first ones are replaced, the next toggled, reweighted, moved, the last are equal.

    Attributes
    ----------
    domain : Domain
        Kept by every row; nobody is absent if ``min_present`` is the number of rows.
    distance : Distance
        How far apart two datasets may be.
    gaps : int, default=0
        So many slots, counted from the first, may have gaps.
    """

    domain: Domain
    distance: Distance
    gaps: int = 0

    @property
    def roles(self) -> list[slice]:
        """Slots that are replaced, toggled, reweighted, moved, equal."""
        d, n = self.distance, self.domain.n
        ends = np.cumsum([0, d.replaced, d.toggled, d.reweighted, d.moved, n]).clip(max=n)
        return [slice(int(a), int(b)) for a, b in pairwise(ends)]

    @property
    def free(self) -> range:
        """Slots that may differ arbitrarily."""
        return range(self.roles[1].stop)

    def __str__(self) -> str:
        return f"{self.domain.describe()}; before it {self.distance.describe()}"

    def drawn(self, rng: np.random.Generator) -> Pair:
        """A random or structured pair; what changes is reversed, erased, copied from another row or drawn afresh."""
        n, (replaced, _, reweighted, moved, _) = self.domain.n, self.roles
        X, fresh = self._table(rng), self._table(rng)
        Z = X.copy()
        Z[replaced] = (-X, np.zeros_like(X), fresh, X[rng.permutation(n)])[rng.integers(4)][replaced]
        together = np.tile(fresh[-1], (n, 1))
        alone = together * (np.arange(n) == moved.start)[:, None]
        Z[moved] += (together, alone, fresh, X, -X)[rng.integers(5)][moved]
        w = np.ones(n)
        if self.domain.min_present < n:
            w = rng.choice([1.0, 1.0, 0.5 if self.distance.reweighted else 0.0], n)
        v = w.copy()
        if self.domain.min_present < n:
            v[replaced] = rng.integers(2, size=n)[replaced]
        w[reweighted], v[reweighted] = rng.uniform(0.5, 1.0, (2, n))[:, reweighted]
        return self.legal(np.stack([X, Z]), np.stack([w, v]), rng.integers(2, size=(2, n)).astype(np.float64))

    def varied(self, pair: Pair, rng: np.random.Generator, size: float) -> Pair:
        """A pair near this one: all rows, one row or one entry moves, or a row becomes another one."""
        tables = np.stack([rows.X for rows in pair])
        n, d = self.domain.n, self.domain.d
        side, slot, other, kind = (int(rng.integers(top)) for top in (2, n, n, 4))
        step = size * float(self.domain.row_norm or 1.0) * rng.standard_normal(d)
        if kind == 0:
            tables += step
        elif kind == 1:
            tables[side, slot] += step
        elif kind == 2:
            tables[side, slot] += step * (np.arange(d) == rng.integers(d))
        else:
            gap = np.isnan(tables[side, slot])
            tables[side, slot] = np.where(gap, np.nan, rng.choice([-1, 1]) * np.nan_to_num(tables[side, other]))
        return self.legal(tables, np.stack([rows.weight for rows in pair]), np.stack([_labels(rows) for rows in pair]))

    def legal(self, tables: Array, weights: Array, labels: Array) -> Pair:
        """The pair of tables, weights and labels (left, right), changed as little as needed to be allowed."""
        X, Z = (self._bounded(table) for table in tables)
        (w, v), (y, u), distance = weights.copy(), labels.copy(), self.distance
        _, toggled, reweighted, moved, equal = self.roles
        if distance.one_sided < distance.replaced + distance.toggled:
            w[toggled] = np.arange(toggled.stop - toggled.start) % 2  # both sides lose equally many
        w[toggled] = w[toggled] > 0
        v[toggled] = 1 - w[toggled]
        for part in (moved, equal):
            v[part], u[part] = w[part], y[part]
        u[reweighted] = y[reweighted]
        Z[equal], Z[reweighted] = X[equal], X[reweighted]
        step = np.nan_to_num(Z[moved]) - np.nan_to_num(X[moved])
        step *= np.minimum(1.0, distance.radius / np.maximum(row_norms(step), 1e-300))[:, None]
        step *= min(1.0, distance.total / max(float(row_norms(step).sum()), 1e-300))
        Z[moved] = self._bounded(X[moved] + step)
        raw = Z.copy()
        raw[moved] = X[moved]  # what moved them came after the raw rows
        return Rows(X, y, w, X).settled(), Rows(Z, u, v, raw).settled()

    def _bounded(self, X: Array) -> Array:
        bound = self.domain.entry_bound
        return clip_norms(X if bound is None else np.clip(X, -bound, bound), self.domain.row_norm)

    def _table(self, rng: np.random.Generator) -> Array:
        n, d = self.domain.n, self.domain.d
        unit = rng.standard_normal((n, d))
        unit /= np.linalg.norm(unit, axis=1, keepdims=True)
        kinds = (
            lambda: unit,
            lambda: rng.choice([-1.0, 1.0], (n, d)),
            lambda: rng.choice([-1.0, 1.0], (n, 1)) * np.eye(d)[rng.integers(d, size=n)],
            lambda: unit[rng.integers(3, size=n)] * rng.choice([0.0, 0.5, 1.0], (n, 1)),
            lambda: rng.uniform(0, 0.9) * unit[0] + 10.0 ** -rng.integers(1, 6) * rng.standard_normal((n, d)),
            lambda: rng.uniform(-1, 1, (n, d)),
        )
        X = np.asarray(kinds[rng.integers(len(kinds))]() * float(self.domain.row_norm or 1.0))
        X[: self.gaps][rng.random((self.gaps, d)) < rng.random()] = np.nan
        return X


def _labels(rows: Rows) -> Array:
    return np.zeros(rows.n) if rows.y is None else rows.y


def measured(pair: Pair, free: Collection[int]) -> dict[str, float]:
    """The distance of two datasets slot by slot; the slots in ``free`` may differ arbitrarily.

    Slots are "slots" (replaced or toggled), "reweighted" or "moved"; a row whose label or mask of gaps differs counts
    as replaced wherever it stands.
    """
    left, right = pair
    w, v = left.weight, right.weight
    both = (w > 0) & (v > 0)
    chosen = np.isin(np.arange(left.n), list(free))
    move = np.linalg.norm(np.nan_to_num(left.X) - np.nan_to_num(right.X), axis=1)
    other = (np.isnan(left.X) != np.isnan(right.X)).any(axis=1) | (_labels(left) != _labels(right))
    torn = other | (chosen & (move > 0))
    slots = ((w > 0) != (v > 0)) | (both & (torn | (chosen & (w != v))))
    moved = both & ~torn & (move > 0)
    matched = np.where(torn, 0.0, np.minimum(w, v))
    sides = (w - matched).sum(), (v - matched).sum()
    return {
        "slots": float(slots.sum()),
        "reweighted": float((both & ~slots & (w != v)).sum()),
        "moved": float(moved.sum()),
        "radius": float(move[moved].max(initial=0.0)),
        "total": float((move * matched)[moved].sum()),
        "mass": float(sum(sides)),
        "one_sided": float(max(sides)),
    }
