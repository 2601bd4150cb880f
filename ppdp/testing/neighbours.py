"""Drawing neighbouring datasets, and measuring how far apart two datasets are."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.releases import STATISTICS
from ppdp.data.rows import Rows
from ppdp.data.statistics import clip_norms, row_norms
from ppdp.testing.tables import GAPPED, MASKS, PAIRS, STEPS, TABLES, units
from ppdp.transformers.way import Way

__all__ = ["Pair", "World", "compared", "differing", "measured", "through"]

Array = NDArray[np.float64]
STRUCTURED = 0.5, 0.2  # share of pairs that are drawn as pairs: without gaps, and with gaps, which matter more
ROUNDING = 1e-12  # of weights and lengths that are pulled back to what is allowed
Pair = tuple[Rows, Rows]
"""Two datasets; slot i of the one belongs to slot i of the other."""


@dataclass(frozen=True, slots=True)
class World:
    """What neighbouring datasets may look like.

    Slots have fixed roles: the first ones are replaced, the next toggled, reweighted, moved, the last are equal.

    Attributes
    ----------
    domain : Domain
        Kept by every row; no fewer than ``min_present`` rows are present, nobody is absent if that is all of them.
    distance : Distance
        How far apart two datasets may be.
    gaps : int, default=0
        So many slots, counted from the first, may have gaps.
    scales : tuple of float, default=()
        Lengths at which something may change its mind, such as the radius of a cluster. Without, they are drawn.
    unit : float, default=1.0
        Usual length of a row where the domain does not bound it.
    labels : tuple of float, default=(0.0, 1.0)
        Rows that are present have one of these; the label of a deleted row is 0.
    """

    domain: Domain
    distance: Distance
    gaps: int = 0
    scales: tuple[float, ...] = ()
    unit: float = 1.0
    labels: tuple[float, ...] = (0.0, 1.0)

    @property
    def length(self) -> float:
        """Length of the longest rows that are drawn."""
        return float(self.domain.row_norm or self.unit)

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

    def _slots(self, role: int) -> range:
        return range(self.roles[role].start, self.roles[role].stop)

    def __str__(self) -> str:
        return f"{self.domain.describe()}; before it {self.distance.describe()}"

    def drawn(self, rng: np.random.Generator) -> Pair:
        """A random or structured pair; what changes is reversed, erased, copied from another row or drawn afresh."""
        n, (replaced, _, reweighted, moved, _) = self.domain.n, self.roles
        fresh = self._table(rng)
        X, Z = self._replaced(fresh, rng)
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
        labels = np.asarray(rng.choice(self.labels, (2, n)) * rng.integers(2), dtype=np.float64)
        return self.legal(np.stack([X, Z]), np.stack([w, v]), labels)

    def _replaced(self, fresh: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Two tables that differ in the rows that are replaced."""
        n, replaced = self.domain.n, self.roles[0]
        if n > 2 and replaced.stop and rng.random() < STRUCTURED[self.gaps > 0]:
            return self._structured(rng)
        X = self._table(rng)
        Z = X.copy()
        another = X[rng.permutation(n)]
        near = another + self._scale(rng) * rng.choice(STEPS) * units(n, self.domain.d, rng)
        turned = rng.choice([-1, 1]) * np.roll(X, 1, axis=1)  # other columns have its gaps
        choices = [-X, np.zeros_like(X), fresh, another, near, *[turned] * (3 if self.gaps else 1)]
        Z[replaced] = choices[rng.integers(len(choices))][replaced]
        return X, Z

    def _structured(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """The same, all rows chosen for the row that is replaced; some or all others have gaps."""
        (n, d), first = (self.domain.n, self.domain.d), self.roles[0].stop
        pairs = (*PAIRS, *GAPPED) if self.gaps and d > 1 else PAIRS
        pair = pairs[rng.integers(len(pairs))]
        table, row = pair(n, d, lambda: self._scale(rng) / self.length, rng)
        X = np.asarray(table * self.length, dtype=np.float64)
        last = min(self.gaps, int(rng.choice([first + 1, n - 1, rng.integers(n + 1)])))
        missing = np.arange(d) == rng.integers(d) if rng.integers(4) else np.ones(d, dtype=bool)
        X[first:last, missing] = np.nan
        Z = X.copy()
        Z[:first] = row * self.length
        return X, Z

    def varied(self, pair: Pair, rng: np.random.Generator, size: float) -> Pair:
        """A pair near this one: all rows, equal rows, one row or one entry moves, or a row becomes another one."""
        tables, weights, labels = (np.stack([getattr(rows, name) for rows in pair]) for name in ("X", "weight", "y"))
        n, d = self.domain.n, self.domain.d
        side, slot, other, kind = (int(rng.integers(top)) for top in (2, n, n, 8))
        slot = (
            slot if rng.integers(2) else slot % (max(self.roles[3].stop, self.gaps) + 2) % n
        )  # what differs is worth a look
        row = tables[side, slot].copy()
        step = size * self.length * rng.standard_normal(d)
        if kind == 0:
            tables += step
        elif kind == 1:
            tables[side, slot] += step
        elif kind == 2:
            tables[side, slot] += step * (np.arange(d) == rng.integers(d))
        elif kind == 3:
            tables[(np.nan_to_num(tables) == np.nan_to_num(row)).all(axis=2)] += step
        elif kind == 4:
            beside = self._scale(rng) * rng.choice(STEPS) * units(1, d, rng)[0] * rng.integers(2)
            tables[side, slot] = rng.choice([-1, 1]) * np.nan_to_num(tables[side, other]) + beside
            tables[side, slot, np.isnan(row)] = np.nan
        elif kind == 5 and rng.integers(2):
            tables[side, slot] = rng.choice([-1, 1]) * np.roll(row, 1)
        elif kind == 5 and slot < self.gaps:
            column, beside = int(rng.integers(d)), np.nan_to_num(tables[1 - side, slot])
            tables[side, slot, column] = beside[column] if np.isnan(row[column]) else np.nan
        elif kind == 6 and self.domain.min_present < n and slot not in self._slots(2):
            weights[side, slot] = 1.0 - weights[side, slot]
        else:
            labels[side, slot] = rng.choice(self.labels)
        return self.legal(tables, weights, labels)

    def legal(self, tables: Array, weights: Array, labels: Array) -> Pair:
        """The pair of tables, weights and labels (left, right), changed as little as needed to be allowed."""
        X, Z = (self._bounded(table) for table in tables)
        (w, v), (y, u), distance = weights.copy(), self._labelled(labels), self.distance
        _, toggled, reweighted, moved, equal = self.roles
        if distance.one_sided < distance.replaced + distance.toggled:
            w[toggled] = np.arange(toggled.stop - toggled.start) % 2  # both sides lose equally many
        w[toggled] = w[toggled] > 0
        v[toggled] = 1 - w[toggled]
        for part in (moved, equal):
            v[part], u[part] = w[part], y[part]
        w, v = self._matched(*self._restored(w, v))
        u[reweighted] = y[reweighted]
        Z[equal], Z[reweighted] = X[equal], X[reweighted]
        step = np.nan_to_num(Z[moved]) - np.nan_to_num(X[moved])
        step *= np.minimum(1.0, distance.radius / np.maximum(row_norms(step), 1e-300))[:, None]
        step *= min(1.0, distance.total / max(float(row_norms(step).sum()), 1e-300))
        Z[moved] = self._bounded(X[moved] + step)
        raw = Z.copy()
        raw[moved] = X[moved]  # what moved them came after the raw rows
        return Rows(X, y, w, X).settled(), Rows(Z, u, v, raw).settled()

    def allows(self, pair: Pair) -> bool:
        """Whether two datasets are no further apart than they may be; else nothing is claimed of them."""
        allowed = self.distance.to_dict() | {"slots": self.distance.replaced + self.distance.toggled}
        slack = ROUNDING * max(1.0, self.length, self.distance.total, self.distance.mass)
        if any(np.count_nonzero(rows.weight) < self.domain.min_present for rows in pair):
            return False
        return all(value <= allowed[name] + slack for name, value in measured(pair, self.free).items())

    def _labelled(self, labels: Array) -> Array:
        """Labels that rows may have; those of deleted rows, which may come back, are 0 even where 0 is none."""
        return labels.copy() if 0.0 in self.labels else np.where(np.isin(labels, self.labels), labels, self.labels[0])

    def _restored(self, w: Array, v: Array) -> tuple[Array, Array]:
        """Weights of which enough are present: rows that both datasets lack come back first, replaced ones last."""
        weights, toggled = np.stack([w, v]), self.roles[1]
        short = self.domain.min_present - np.count_nonzero(weights, axis=1)
        for slot in (*range(toggled.stop, self.domain.n), *range(toggled.start)):
            if short.max() <= 0:
                break
            gone = weights[:, slot] == 0
            weights[gone, slot] = 1.0
            short -= gone
        return weights[0], weights[1]

    def _matched(self, w: Array, v: Array) -> tuple[Array, Array]:
        """Weights of which no more is unmatched than the distance has: others come closer, then free rows lose weight.

        What is unmatched of reweighted rows is linear in how far their weights are apart.
        """
        limits, free, other = (self.distance.mass, self.distance.one_sided), slice(self.roles[1].stop), self.roles[2]
        w, v = w.copy(), v.copy()
        fixed = np.array([w[free].sum(), v[free].sum()])
        share = min(1.0, *(most / max(size, 1e-300) for most, size in zip(limits, (fixed.sum(), fixed.max()))))
        if share < 1 - ROUNDING:
            w[free], v[free] = share * w[free], share * v[free]
            fixed *= share
        apart = v[other] - w[other]
        slopes = np.array([np.maximum(-apart, 0).sum(), np.maximum(apart, 0).sum()])
        left = [limits[0] - fixed.sum(), *(limits[1] - fixed)]
        steps = [room / slope for room, slope in zip(left, [slopes.sum(), *slopes]) if slope > 0]
        v[other] = w[other] + min(1.0, max(0.0, min(steps, default=1.0))) * apart
        return w, v

    def _bounded(self, X: Array) -> Array:
        bound = self.domain.entry_bound
        return clip_norms(X if bound is None else np.clip(X, -bound, bound), self.domain.row_norm)

    def _table(self, rng: np.random.Generator) -> Array:
        n, d = self.domain.n, self.domain.d
        table = TABLES[rng.integers(len(TABLES))](n, d, self._scale(rng) / self.length, rng)
        X = np.asarray(table * self.length, dtype=np.float64)
        gaps = min(self.gaps, int(self.gaps ** rng.choice([1.0, rng.random()])))  # often in few rows only
        X[:gaps] = self._gapped(X[:gaps], rng)
        return X

    def _gapped(self, X: Array, rng: np.random.Generator) -> Array:
        return np.where(MASKS[rng.integers(len(MASKS))](len(X), X.shape[1], rng), np.nan, X)

    def _scale(self, rng: np.random.Generator) -> float:
        scales = [scale for scale in self.scales if scale <= 2 * self.length]
        if scales and rng.random() < 0.8:
            return float(rng.choice(scales))
        return float(self.length * 10.0 ** rng.uniform(-3, 0))


def _labels(rows: Rows) -> Array:
    return np.zeros(rows.n) if rows.y is None else rows.y


def differing(pair: Pair) -> NDArray[np.bool_]:
    """Slots in which row, gaps, label or weight differ; either both datasets have labels or none."""
    one, other = (np.column_stack([rows.X, rows.weight, _labels(rows)]) for rows in pair)
    return ~((one == other) | (np.isnan(one) & np.isnan(other))).all(axis=1)


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


def through(stage: Any, way: Way, domain: Domain, pair: Pair) -> Pair:
    """Both datasets behind a stage that goes one way; what it takes from a release is the same for both.

    Parameters
    ----------
    stage : Stage
        What maps datasets.
    way : Way
        One of its ways at this domain.
    domain : Domain
        At its input.
    pair : tuple of Rows
        Both datasets.
    """
    if way.name == "exact":
        one, other = (stage.prepare(rows, way, domain) for rows in pair)
    elif way.name == "noisy":
        assert way.ask is not None  # what else would it be fitted from
        statistic = STATISTICS[way.ask.statistic]
        exact = statistic.measure(pair[0], domain, way.ask.parameters)
        one = other = stage.read(statistic.read(exact, domain), way, domain)
    else:
        nobody = Rows(np.empty((0, domain.d)), None, np.empty(0))
        one = other = stage.prepare(nobody, way, domain)
    return stage.apply(pair[0], one), stage.apply(pair[1], other)


def compared(out: Pair, entered: Pair, world: World, granted: Distance) -> dict[str, tuple[float, float]]:
    """What a pair attains behind a stage and what was granted, for everything that :func:`measured` measures.

    Parameters
    ----------
    out, entered : tuple of Rows
        Both datasets behind and before the stage.
    world : World
        How far apart they were before it.
    granted : Distance
        How far apart they may be behind it.
    """
    bound = granted.by_position()
    certified = bound.to_dict() | {"slots": bound.replaced + bound.toggled}
    torn: Collection[int] = world.free
    further = bound.replaced - world.distance.replaced
    if further > 0:  # of the rows that moved all, or those with gaps, count as replaced
        moved = np.arange(world.domain.n)[world.roles[3]]
        torn = {*torn, *(moved if further >= len(moved) else moved[entered[0].incomplete[moved]]).tolist()}
    if world.distance.moved > bound.moved == 0:  # rows that moved count as replaced
        torn = range(world.domain.n)
        certified["slots"] += bound.reweighted
    return {name: (value, certified[name]) for name, value in measured(out, torn).items()}
