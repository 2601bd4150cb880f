"""An adversary for bounds: it draws neighbouring datasets that try to exceed them.

A :class:`World` says what the adversary may do: the public domain and how far apart two datasets may be. It
draws pairs (random and structured), keeps them legal and varies them; :func:`attack` makes a ratio as
large as it can.

Slots have fixed roles: first the replaced ones, then the toggled, then the moved, then those that are equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from effort import found, rounds
from neighbours import ROUNDING, Pair
from numpy.typing import NDArray

from ppdp.core.adjacency import Adjacency
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.rows import Rows
from ppdp.testing import neighbours as library
from ppdp.testing.neighbours import hill_climb

Array = NDArray[np.float64]
Ratio = Callable[[Pair], float]

NEIGHBOURS = Adjacency.replace().distance

DISTANCES = (
    NEIGHBOURS,
    Distance(toggled=1),
    Distance(replaced=1, toggled=2, mass=4, one_sided=2),  # one replaced row behind keep-first
    Distance(replaced=1, toggled=3),  # any split of the toggles between the two sides
    Distance(moved=3, radius=0.1, total=0.2),
    Distance(replaced=2, toggled=1, moved=4, radius=0.05, total=0.12),
)
"""Distances over which every bound is attacked."""

LABELS = {
    "two classes": ({"classes": (0, 1)}, (0.0, 1.0)),
    "four classes": ({"classes": ("a", "b", "c", "d")}, (0.0, 1.0, 2.0, 3.0)),
    "a target": ({"y_range": (3.0, 7.0)}, (0.0, -1.0, 1.0, 0.37, -0.999)),
}
"""What is declared of labels, and those that are drawn."""


def domains(n: int, *widths: int, **facts: Any) -> list[Domain]:
    """For every width: rows in a ball; in a box inside it; in the box whose corners are on it."""
    found = []
    for d in widths:
        ball = Domain(n_rows=n, n_features=d, row_norm=1.0, **facts)
        found += [ball, ball.but(entry_bound=0.75), ball.but(row_norm=math.sqrt(d), entry_bound=1.0)]
    return found


def named(value: object) -> str | None:
    """Name of a parameter of a test."""
    if isinstance(value, Domain):
        return f"d={value.d}, norm {value.row_norm:.3g}, entries {value.entry_bound}"
    return value.describe() if isinstance(value, Distance) else None


@dataclass(frozen=True)
class World:
    """What neighbouring pairs may look like.

    Attributes
    ----------
    domain : Domain
        ``n_rows``, ``n_features``, ``row_norm`` and perhaps ``entry_bound`` are kept by every row.
    distance : Distance
        How far apart the two datasets may be.
    gaps : int
        So many slots, counted from the first, may have gaps.
    labels : bool
        Whether rows have one of the labels 0 and 1.
    deleted : bool
        Whether further slots may be deleted on both sides.
    """

    domain: Domain
    distance: Distance = NEIGHBOURS
    gaps: int = 0
    labels: bool = False
    deleted: bool = False

    @cached_property
    def roles(self) -> tuple[slice, slice, slice, slice]:
        """Slots that are replaced, toggled, moved, equal."""
        ends = np.cumsum([0, self.distance.replaced, self.distance.toggled, self.distance.moved]).astype(int)
        a, b, c, d = (min(int(end), self.domain.n) for end in ends)
        return slice(a, b), slice(b, c), slice(c, d), slice(d, self.domain.n)

    @property
    def free(self) -> range:
        """Slots that may differ arbitrarily."""
        return range(self.roles[0].stop)

    def bounded(self, X: Array) -> Array:
        """Every row projected on the box of entries, then on the ball of rows; a point inside stays."""
        bound, norm = self.domain.entry_bound, float(self.domain.require("row_norm"))
        X = X if bound is None else X.clip(-bound, bound)
        lengths = _lengths(_filled(X))
        if lengths.max(initial=0.0) <= norm:
            return X
        return X * np.where(lengths > norm, norm * (1 - 1e-15) / np.maximum(lengths, norm), 1.0)[:, None]

    def legal(self, pair: Pair) -> Pair:
        """The pair made legal by changing it as little as possible."""
        left, right = pair.left, pair.right
        return self._legal((left.X, right.X), (left.weight, right.weight), (left.y, right.y))

    def _legal(self, tables: Sequence[Array], weights: Sequence[Array], labels: Sequence[Array | None]) -> Pair:
        _, toggled, moved, equal = self.roles
        both = np.array(tables)
        both[:, self.gaps :] = _filled(both[:, self.gaps :])
        X, Z = self.bounded(both.reshape(-1, self.domain.d)).reshape(both.shape)
        w, v = np.array(weights)
        if not self.deleted:
            w[moved] = w[equal] = 1.0
        v[moved], v[equal] = w[moved], w[equal]
        if self.distance.toggled:
            if self.distance.one_sided < self.distance.replaced + self.distance.toggled:
                w[toggled] = np.arange(toggled.stop - toggled.start) % 2  # both sides lose equally many
            v[toggled] = 1 - w[toggled]
        Z[equal] = X[equal]
        if self.distance.moved:
            step = _filled(Z[moved]) - _filled(X[moved])
            length = _lengths(step)
            step *= np.minimum(1.0, self.distance.radius / np.maximum(length, 1e-300))[:, None]
            step *= min(1.0, self.distance.total / max(_lengths(step).sum(), 1e-300))
            Z[moved] = self.bounded(X[moved] + step)
        y = u = None
        if self.labels:
            y, u = (np.zeros(self.domain.n) if own is None else own.copy() for own in labels)
            u[moved], u[equal] = y[moved], y[equal]
        return Pair(Rows(X, y, w).settled(), Rows(Z, u, v).settled())

    def draw(self, rng: np.random.Generator) -> Pair:
        """A legal pair of a random kind."""
        n = self.domain.n
        X = self._table(rng)
        Z = X.copy()
        replaced, _, moved, _ = self.roles
        Z[replaced] = self._replacement(X[replaced], rng)
        Z[moved] += _MOVES[rng.integers(len(_MOVES))](X[moved], rng)
        w, v = np.ones(n), np.ones(n)
        if self.deleted:
            w[rng.random(n) < 0.3 * rng.integers(2)] = 0
        if self.distance.toggled:
            w[self.roles[1]] = rng.integers(2) if rng.random() < 0.5 else rng.integers(2, size=n)[self.roles[1]]
        if rng.random() < 0.2:
            (w, v)[rng.integers(2)][replaced] = 0
        y = rng.integers(2, size=(2, n)).astype(float) if self.labels else (None, None)
        return self._legal((X, Z), (w, v), y)

    def _table(self, rng: np.random.Generator) -> Array:
        n, d = self.domain.n, self.domain.d
        X = _TABLES[rng.integers(len(_TABLES))](n, d, rng) * float(self.domain.row_norm or 1.0)
        if self.gaps:
            X[: self.gaps][_MASKS[rng.integers(len(_MASKS))](self.gaps, d, rng)] = np.nan
        return X

    def _replacement(self, rows: Array, rng: np.random.Generator) -> Array:
        kind = rng.integers(4)
        if kind == 0:
            return -rows
        if kind == 1:
            return np.zeros_like(rows)
        fresh = self._table(rng)[: len(rows)]
        return np.where(np.isnan(fresh), np.nan, _filled(rows)) if kind == 2 else fresh

    def varied(self, pair: Pair, rng: np.random.Generator, size: float) -> Pair:
        """A legal pair near this one."""
        n, d = self.domain.n, self.domain.d
        tables = [pair.left.X.copy(), pair.right.X.copy()]
        weights = [pair.left.weight.copy(), pair.right.weight.copy()]
        labels = [None if rows.y is None else rows.y.copy() for rows in (pair.left, pair.right)]
        side, kind = int(rng.integers(2)), int(rng.integers(9))
        near = n if rng.random() < 0.5 else min(n, self.roles[2].stop + 2)
        slot = int(rng.integers(near))
        X, y = tables[side], labels[side]
        step = size * float(self.domain.row_norm or 1.0)
        if kind <= 2:
            X[slot] += step * rng.standard_normal(d)
        elif kind == 3:
            move = step * rng.standard_normal(d)
            tables = [table + move for table in tables]
        elif kind == 4:
            same = (_filled(X) == _filled(X[slot])).all(axis=1)
            move = step * rng.standard_normal(d)
            tables = [table + np.where(same[:, None], move, 0.0) for table in tables]
        elif kind == 5:
            X[slot] = X[rng.integers(n)] * rng.choice([1.0, -1.0, 0.0], p=[0.5, 0.4, 0.1])
        elif kind == 6:
            column = int(rng.integers(d))
            X[slot, column] = 0.0 if np.isnan(X[slot, column]) else rng.choice([np.nan, -X[slot, column]])
        elif kind == 7:
            weights[side][slot] = 1 - weights[side][slot]
        elif y is not None:
            y[slot] = 1 - y[slot]
        else:
            X[slot] *= 1 + size * rng.standard_normal()
        return self._legal(tables, weights, labels)


def _filled(X: Array) -> Array:
    """Zeros in place of gaps; far faster than ``np.nan_to_num``, which also looks for what is infinite."""
    return np.where(np.isnan(X), 0.0, X)


def _lengths(X: Array) -> Array:
    """Norms of short rows without gaps."""
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", X, X)))


def _unit(n: int, d: int, rng: np.random.Generator) -> Array:
    X = rng.standard_normal((n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def _poles(n: int, d: int, rng: np.random.Generator) -> Array:
    return rng.choice([-1.0, 1.0], size=(n, 1)) * np.eye(d)[rng.integers(d, size=n)]


def _corners(n: int, d: int, rng: np.random.Generator) -> Array:
    return rng.choice([-1.0, 1.0], size=(n, d))


def _two_points(n: int, d: int, rng: np.random.Generator) -> Array:
    ends = _corners(1, d, rng) * rng.uniform(0, 1, (2, 1))
    return ends[(rng.random(n) < rng.random()).astype(int)]


def _few_values(n: int, d: int, rng: np.random.Generator) -> Array:
    return _unit(3, d, rng)[rng.integers(3, size=n)] * rng.choice([0.0, 0.5, 1.0], size=(n, 1))


def _deficient(n: int, d: int, rng: np.random.Generator) -> Array:
    return rng.uniform(-1, 1, (n, 1)) * _unit(1, d, rng)


def _nearly_constant(n: int, d: int, rng: np.random.Generator) -> Array:
    return rng.uniform() * _unit(1, d, rng) + 10.0 ** -rng.integers(1, 6) * rng.standard_normal((n, d))


def _kissing(n: int, d: int, rng: np.random.Generator) -> Array:
    X = 0.5 * _unit(1, d, rng) + 0.1 * _poles(n, d, rng)
    X[0] = X.mean(axis=0)
    return X


def _all_over(n: int, d: int, rng: np.random.Generator) -> Array:
    return rng.uniform(-1, 1, (n, d))


_TABLES = (_unit, _poles, _corners, _two_points, _few_values, _deficient, _nearly_constant, _kissing, _all_over)


def _sparse(n: int, d: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    observed = np.zeros((n, d), bool)
    observed[np.arange(n), rng.integers(d, size=n)] = True
    return ~observed


_MASKS: tuple[Callable[[int, int, np.random.Generator], NDArray[np.bool_]], ...] = (
    lambda n, d, rng: rng.random((n, d)) < rng.random(),
    lambda n, d, rng: np.tile(np.arange(d) == rng.integers(d), (n, 1)),  # a column nobody observed
    lambda n, d, rng: np.tile(rng.random((n, 1)) < 0.5, (1, d)),  # rows without any entry
    _sparse,
)

_MOVES: tuple[Callable[[Array, np.random.Generator], Array], ...] = (
    lambda X, rng: np.tile(rng.standard_normal(X.shape[1]), (len(X), 1)),  # all together
    lambda X, rng: rng.standard_normal(X.shape),
    lambda X, rng: -X,
    lambda X, rng: X,
    lambda X, rng: rng.standard_normal(X.shape) * (np.arange(len(X)) == 0)[:, None],  # all of it in one row
)


def attack(
    world: World, ratio: Ratio, *, seed: int = 0, draws: int = 60, steps: int = 150, first: Sequence[Pair] = ()
) -> tuple[float, Pair]:
    """The largest ratio among ``draws`` drawn pairs and those given, climbing from the best.

    In an attack there are more of them, and it climbs from the best two.
    """
    rng = np.random.default_rng(seed)
    pairs = [world.legal(pair) for pair in first] + [world.draw(rng) for _ in range(rounds(draws))]
    values = np.nan_to_num([ratio(pair) for pair in pairs], nan=-math.inf, neginf=-math.inf)
    order = np.argsort(-values, kind="stable")[: rounds(1, 2)]
    reached = [hill_climb(world.varied, pairs[i], float(values[i]), ratio, rng, rounds(steps)) for i in order]
    ratio, pair = max(reached, key=lambda one: one[0])
    return found(ratio), pair


def largest_share(
    domain: Domain,
    distance: Distance,
    share: Callable[[tuple[Rows, Rows]], float],
    *,
    draws: int,
    steps: int,
    labels: tuple[float, ...] = (0.0, 1.0),
    gaps: int = 0,
) -> float:
    """The same of the library's own pairs, in which rows have other weights, and labels of any kind."""
    world = library.World(library.inhabited(domain, distance), distance, gaps, labels=labels)
    return found(library.best_of(world, share, np.random.default_rng(0), rounds(draws), rounds(steps))[0])


class Silence:
    """Noise that adds nothing to what is as small as is said."""

    def release(self, value: Array, noise_scale: float, bound: float) -> Array:
        assert np.linalg.norm(value) <= bound * ROUNDING
        return value
