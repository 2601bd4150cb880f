"""Drawing neighbouring datasets, and measuring how far apart two datasets are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

import ppdp.testing.changes as changes
from ppdp.core.distance import Distance, Moves
from ppdp.core.domain import Domain
from ppdp.data.rows import Array, Rows
from ppdp.data.statistics import clip_norms, row_norms
from ppdp.testing.tables import GAPPED, MASKS, PAIRS, STEPS, TABLES, one_of, units

Random = np.random.Generator
P = TypeVar("P")
STRUCTURED = 0.5, 0.2  # share of pairs that are drawn as pairs: without gaps, and with gaps, which matter more
EXCESS = 1 + 1e-9  # what rounding may add to a bound
DRIFTS = 0.7  # share of pairs whose change of a row is drawn at the corners of what is allowed
MARGIN_EXCESS = 1 + 1e-6  # what the gate allows for
ROUNDING = 1e-12  # of weights and lengths that are pulled back to what is allowed
Pair = tuple[Rows, Rows]  # two datasets; slot i of the one belongs to slot i of the other


@dataclass(frozen=True, slots=True)
class World:
    """What neighbouring datasets may look like: first slots are replaced, then toggled, reweighted, moved, equal."""

    domain: Domain  # kept by every row; no fewer than min_present rows are present, nobody is absent if that is all
    distance: Distance
    gaps: int = 0  # so many slots, counted from the first, may have gaps
    scales: tuple[float, ...] = ()  # lengths at which something may change its mind; drawn where there are none
    unit: float = 1.0  # usual length of a row where the domain does not bound it
    labels: tuple[float, ...] = (0.0, 1.0)  # of rows that are present; that of a deleted row is 0
    box: tuple[Array, Array] | None = None  # ranges of the columns, beyond which entries may be clipped
    far: tuple[Array, ...] = ()  # changes of a row that reach far

    @property
    def length(self) -> float:
        """Length of the longest rows that are drawn."""
        return float(self.domain.row_norm or self.unit)

    @property
    def roles(self) -> tuple[slice, ...]:
        """Slots that are replaced, toggled, reweighted, moved, equal."""
        d = self.distance
        return _roles(self.domain.n, d.replaced, d.toggled, d.reweighted, d.moved)

    @property
    def free(self) -> range:
        """Slots that may differ arbitrarily."""
        return range(self.roles[1].stop)

    def __str__(self) -> str:
        return f"{self.domain.describe()}; before it {self.distance.describe()}"

    def drawn(self, rng: Random) -> Pair:
        """A random or structured pair; what changes is reversed, erased, copied from another row or drawn afresh."""
        n, (replaced, _, reweighted, moved, _) = self.domain.n, self.roles
        fresh = self._table(rng)
        X, Z = self._replaced(fresh, rng)
        kind = rng.integers(5)
        if moved.start < moved.stop:
            together = np.tile(fresh[-1], (n, 1))
            alone = together * (np.arange(n) == moved.start)[:, None]
            Z[moved] += (together, alone, fresh, X, -X)[kind][moved]
        if self._drifts and rng.random() < DRIFTS:
            X[moved], Z[moved] = self._drifted(X[moved], rng)
        w, v = np.ones((2, n))
        if self.domain.min_present < n:
            w = np.array([1.0, 1.0, 0.5 if self.distance.reweighted else 0.0])[rng.integers(3, size=n)]
            v = w.copy()
            v[replaced] = rng.integers(2, size=n)[replaced]
        w[reweighted], v[reweighted] = rng.uniform(0.5, 1.0, (2, n))[:, reweighted]
        labels = np.asarray(rng.choice(self.labels, (2, n)) * rng.integers(2), dtype=np.float64)
        return self.legal(np.stack([X, Z]), np.stack([w, v]), labels)

    @property
    def _drifts(self) -> bool:
        """Whether more is known of the rows that move, or of what moves them, than a length."""
        return self.roles[3] != slice(0, 0) and (self.distance.moves is not None or bool(self.far))

    def _drifted(self, X: Array, rng: Random) -> tuple[Array, Array]:
        """Rows and a change of them: one at a corner of what is allowed, or one that reaches far."""
        reaches = self.far and rng.integers(2)
        change = self.far[rng.integers(len(self.far))] if reaches else changes.corner(self.distance, self.domain.d, rng)
        bound = np.full(self.domain.d, self.domain.entry_bound or 0.0)
        low, high = self.box or (-bound, bound)
        return changes.around(X, one_of((-1.0, 1.0), rng) * change, low, high, rng)

    def _turned(self, tables: Array, rng: Random) -> Array:
        """Both tables with another change of the rows that move, or with two of its columns swapped or turned."""
        moved, columns = self.roles[3], rng.integers(self.domain.d, size=2)
        if rng.integers(2):
            tables[:, moved] = self._drifted(tables[0, moved], rng)
        else:
            change = tables[1, moved] - tables[0, moved]
            change[:, columns] = one_of((-1.0, 1.0), rng) * change[:, columns[::-1]]
            tables[1, moved] = tables[0, moved] + change
        return tables

    def _replaced(self, fresh: Array, rng: Random) -> tuple[Array, Array]:
        """Two tables that differ in the rows that are replaced."""
        n, replaced = self.domain.n, self.roles[0]
        if n > 2 and replaced.stop and rng.random() < STRUCTURED[self.gaps > 0]:
            return self._structured(rng)
        X = self._table(rng)
        Z = X.copy()
        another = X[rng.permutation(n)]
        near = another + self._scale(rng) * one_of(STEPS, rng) * units(n, self.domain.d, rng)
        turned = one_of((-1, 1), rng) * np.roll(X, 1, axis=1)  # other columns have its gaps
        choices = [-X, np.zeros_like(X), fresh, another, near, *[turned] * (3 if self.gaps else 1)]
        Z[replaced] = one_of(choices, rng)[replaced]
        return X, Z

    def _structured(self, rng: Random) -> tuple[Array, Array]:
        """The same, all rows chosen for the row that is replaced; some or all others have gaps."""
        (n, d), first = (self.domain.n, self.domain.d), self.roles[0].stop
        pairs = (*PAIRS, *GAPPED) if self.gaps and d > 1 else PAIRS
        pair = one_of(pairs, rng)
        table, row = pair(n, d, lambda: self._scale(rng) / self.length, rng)
        X = np.asarray(table * self.length, dtype=np.float64)
        last = min(self.gaps, one_of((first + 1, n - 1, int(rng.integers(n + 1))), rng))
        missing = np.arange(d) == rng.integers(d) if rng.integers(4) else np.ones(d, dtype=bool)
        X[first:last, missing] = np.nan
        Z = X.copy()
        Z[:first] = row * self.length
        return X, Z

    def varied(self, pair: Pair, rng: Random, size: float) -> Pair:
        """A pair near this one: all rows, equal rows, one row or one entry moves, or a row becomes another one."""
        tables, weights, labels = (np.stack([getattr(rows, name) for rows in pair]) for name in ("X", "weight", "y"))
        n, d = self.domain.n, self.domain.d
        if self._drifts and rng.random() < DRIFTS / 2:
            return self.legal(self._turned(tables, rng), weights, labels)
        side, slot, other, kind = (int(rng.integers(top)) for top in (2, n, n, 8))
        if not rng.integers(2):  # what differs is worth a look
            slot = slot % (max(self.roles[3].stop, self.gaps) + 2) % n
        row = tables[side, slot].copy()
        step = size * self.length * rng.standard_normal(d)
        if kind == 0:
            tables += step
        elif kind == 1:
            tables[side, slot] += step
        elif kind == 2:
            tables[side, slot] += step * (np.arange(d) == rng.integers(d))
        elif kind == 3:
            tables[(_filled(tables) == _filled(row)).all(axis=2)] += step
        elif kind == 4:
            beside = self._scale(rng) * one_of(STEPS, rng) * units(1, d, rng)[0] * rng.integers(2)
            tables[side, slot] = one_of((-1, 1), rng) * _filled(tables[side, other]) + beside
            tables[side, slot, np.isnan(row)] = np.nan
        elif kind == 5 and rng.integers(2):
            tables[side, slot] = one_of((-1, 1), rng) * np.roll(row, 1)
        elif kind == 5 and slot < self.gaps:
            column, beside = int(rng.integers(d)), _filled(tables[1 - side, slot])
            tables[side, slot, column] = beside[column] if np.isnan(row[column]) else np.nan
        elif kind == 6 and self.domain.min_present < n and slot not in np.arange(n)[self.roles[2]]:
            weights[side, slot] = 1.0 - weights[side, slot]
        else:
            labels[side, slot] = one_of(self.labels, rng)
        return self.legal(tables, weights, labels)

    def legal(self, tables: Array, weights: Array, labels: Array) -> Pair:
        """The pair of tables, weights and labels (left, right), changed as little as needed to be allowed."""
        X, Z = self._bounded(tables.reshape(-1, tables.shape[2])).reshape(tables.shape).copy()
        # Labels of deleted rows, which may come back, are 0 even where 0 is none.
        known = labels if 0.0 in self.labels else np.where(np.isin(labels, self.labels), labels, self.labels[0])
        (w, v), (y, u), distance = weights.copy(), known.copy(), self.distance
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
        if moved.start < moved.stop:
            X[moved], Z[moved] = self._moved(X[moved], _filled(Z[moved]) - _filled(X[moved]))
        raw = Z.copy()
        raw[moved] = X[moved]  # what moved them came after the raw rows
        return Rows(X, y, w, X).settled(), Rows(Z, u, v, raw).settled()

    def _moved(self, X: Array, change: Array) -> tuple[Array, Array]:
        """Rows, and what they become by a change that is pulled back to what is allowed, inside of the ball."""
        step, norm = changes.confined(change, self.distance), self.domain.row_norm
        step = changes.confined_in_groups(step, self.domain, self.distance)
        if (self.distance.moves is not None or self.distance.groups) and norm is not None:
            out = row_norms(_filled(X) + step) > norm
            room = np.maximum(norm - row_norms(step), 0.0) / np.maximum(row_norms(_filled(X)), 1e-300)
            X = np.where(out[:, None], X * room[:, None], X)
        return X, self._bounded(changes.rows_after(X, step))

    def allows(self, pair: Pair) -> bool:
        """Whether two datasets are no further apart than they may be; else nothing is claimed of them."""
        allowed = allowances(self.distance)
        slack = ROUNDING * max(1.0, self.length, self.distance.total, self.distance.mass)
        if any(np.count_nonzero(rows.weight) < self.domain.min_present for rows in pair):
            return False
        found = measured(pair, self.free, self.distance.moves)
        if not all(value <= allowed[name] + slack for name, value in found.items()):
            return False
        for _, own, _, far in changes.parts(pair, self.domain, self.distance):
            found, allowed = measured(own, self.free), allowances(far)
            if any(found[name] > allowed[name] + slack for name in ("moved", "radius", "total")):
                return False
        return True

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
        """Weights with no more unmatched than the distance has: others come closer, then free rows lose weight."""
        limits, free, other = (self.distance.mass, self.distance.one_sided), slice(self.roles[1].stop), self.roles[2]
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
        bounded = clip_norms(X if bound is None else np.clip(X, -bound, bound), self.domain.row_norm)
        return changes.bounded_in_groups(bounded, self.domain)

    def _table(self, rng: Random) -> Array:
        n, d = self.domain.n, self.domain.d
        table = one_of(TABLES, rng)(n, d, self._scale(rng) / self.length, rng)
        X = np.asarray(table * self.length, dtype=np.float64)
        gaps = min(self.gaps, int(self.gaps ** one_of((1.0, rng.random()), rng)))  # often in few rows only
        X[:gaps][one_of(MASKS, rng)(gaps, d, rng)] = np.nan
        return X

    def _scale(self, rng: Random) -> float:
        scales = [scale for scale in self.scales if scale <= 2 * self.length]
        if scales and rng.random() < 0.8:
            return float(one_of(scales, rng))
        return float(self.length * 10.0 ** rng.uniform(-3, 0))


@lru_cache(maxsize=1024)  # asked many times of every pair
def _roles(n: int, *counts: float) -> tuple[slice, ...]:
    ends = np.cumsum([0, *counts, n]).clip(max=n)
    return tuple(slice(int(a), int(b)) for a, b in pairwise(ends))


def inhabited(domain: Domain, distance: Distance) -> Domain:
    """The domain of datasets so far apart: nobody is absent where the distance neither toggles nor reweights rows."""
    if distance.toggled or distance.reweighted:
        return domain
    return domain.but(min_present=domain.n).in_groups(domain.groups)


def hill_climb(
    varied: Callable[[P, Random, float], P], pair: P, most: float, ratio: Callable[[P], float], rng: Random, steps: int
) -> tuple[float, P]:
    """Vary a pair so many times and keep what does not lower its ratio, which is known; NaN is no gain."""
    size = 0.3
    for _ in range(steps):
        trial = varied(pair, rng, size)
        value = ratio(trial)
        if value >= most:
            size = min(1.0, size * 1.5) if value > most else size
            most, pair = value, trial
        else:
            size = max(1e-4, size * 0.97)
    return most, pair


def best_of(world: World, ratio: Callable[[Pair], float], rng: Random, pairs: int, climbs: int) -> tuple[float, Pair]:
    """The largest ratio among so many drawn pairs, and on the way up from the best of them."""
    drawn = [world.drawn(rng) for _ in range(pairs)]
    ratios = [ratio(pair) for pair in drawn]
    best = int(np.argmax(ratios))
    return hill_climb(world.varied, drawn[best], ratios[best], ratio, rng, climbs)


def _filled(X: Array) -> Array:
    """Rows with 0 for what is missing; nothing in them is infinite."""
    return np.where(np.isnan(X), 0.0, X)


def finite(X: Array) -> Array:
    """Rows with 0 for what is missing, and the largest numbers for what is infinite."""
    return X if np.isfinite(X).all() else np.nan_to_num(X)


def _labels(rows: Rows) -> Array:
    return np.zeros(rows.n) if rows.y is None else rows.y


def differing(pair: Pair) -> NDArray[np.bool_]:
    """Slots in which row, gaps, label or weight differ; either both datasets have labels or none."""
    one, other = (np.column_stack([rows.X, rows.weight, _labels(rows)]) for rows in pair)
    return ~((one == other) | (np.isnan(one) & np.isnan(other))).all(axis=1)


def measured(pair: Pair, free: Collection[int], moves: Moves | None = None) -> dict[str, float]:
    """The distance of two datasets slot by slot; the slots in ``free`` may differ arbitrarily.

    Slots are "slots" (replaced or toggled), "reweighted" or "moved"; a row whose label or mask of gaps differs counts
    as replaced wherever it stands. Of what is known of each row that moved, beside its length, the same is measured.
    """
    left, right = pair
    w, v = left.weight, right.weight
    both = (w > 0) & (v > 0)
    chosen = np.zeros(left.n, dtype=bool)
    chosen[[slot for slot in free if slot < left.n]] = True
    change = finite(left.X) - finite(right.X)
    move = np.linalg.norm(change, axis=1)
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
        **changes.attained_moves(change[moved], moves),
    }


def allowances(distance: Distance) -> dict[str, float]:
    """What a distance allows for, under the names of what :func:`measured` measures, and others."""
    return {"slots": distance.replaced + distance.toggled} | distance.to_dict() | changes.most_moves(distance.moves)


def outgrown(out: Sequence[Rows], domain: Domain) -> dict[str, tuple[float, float]]:
    """Longest row and largest entry of some datasets, each beside its bound, where the domain has one."""
    X = np.vstack([rows.X for rows in out])
    largest = {
        "row_norm": (float(row_norms(X).max(initial=0.0)), domain.row_norm),
        "entry_bound": (float(np.fmax.reduce(np.abs(X), axis=None, initial=0.0)), domain.entry_bound),
    }
    return {name: (value, bound) for name, (value, bound) in largest.items() if bound is not None}


def compared(out: Pair, entered: Pair, world: World, granted: Distance) -> dict[str, tuple[float, float]]:
    """What a pair attains behind a stage and what was granted, for everything that :func:`measured` measures."""
    bound = granted.by_position()
    certified = allowances(bound)
    torn: Collection[int] = world.free
    further = bound.replaced - world.distance.replaced
    if further > 0:  # of the rows that moved all, or those with gaps, count as replaced
        moved = np.arange(world.domain.n)[world.roles[3]]
        torn = {*torn, *(moved if further >= len(moved) else moved[entered[0].incomplete[moved]]).tolist()}
    if world.distance.moved > bound.moved == 0:  # rows that moved count as replaced
        torn = range(world.domain.n)
        certified["slots"] += bound.reweighted
    return {name: (value, certified[name]) for name, value in measured(out, torn, bound.moves).items()}


def kept(out: Pair, entered: Pair, world: World, domain: Domain, granted: Distance) -> dict[str, tuple[float, float]]:
    """Everything that a pair attains behind a stage, of its rows and in every group of columns, beside its bound."""
    uses = {**compared(out, entered, world, granted), **changes.summed(out, granted), **outgrown(out, domain)}
    for name, own, here, far in changes.parts(out, domain, granted):
        of_group = {**compared(own, entered, world, far), **outgrown(own, here)}
        uses |= {f"{what} of {name!r}": use for what, use in of_group.items()}
    return uses
